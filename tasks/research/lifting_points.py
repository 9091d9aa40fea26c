"""Write the lifting points of a machine: from the revision in force on the day, the survey that counts, in the right units.

A register says which revision was approved from when; a draft and one that starts a day too late look newer. Each revision has
units of its own. A survey replaces heights only if it is signed, recent and off by more than the tolerance, and a worn point
carries half. If the points cannot carry the machine, a hold has to be written instead of a plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, Reported, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please prepare the lifting points for the {item}, following the lifting procedure.",
        "The {item} is going to be lifted. Work out its lifting points as the procedure says and write the file it asks for.",
        "Could you do the lifting paperwork for the {item}? The procedure is among the files.",
        "We need the file on the lifting points of the {item}. Take the values that are in force, by the lifting procedure.",
        "Prepare the {item} for its lift: find the right values for its points and file them by the procedure.",
        "Fill in the lifting points of the {item}; what counts is in the lifting procedure.",
    )
}
ITEMS = ("transformer", "press frame", "boiler drum", "pump skid", "gearbox", "rotor case")
PROCEDURE = """# Lifting procedure

1. The job sheet of the machine (jobs/) names its specification, the date of the lift, the weight and the points to be used.
2. The specification in force is the approved revision with the latest effective date that is not after the date of the lift
   (documents/register.csv). Drafts and withdrawn revisions never count.
3. A site survey (survey/) counts if it is signed and was taken at most {age} days before the lift; of several the latest. If
   its height of a point differs from the specification by more than the tolerance, the
   surveyed height is used (source: survey), else the specified one (source: spec).
4. A point that this survey calls worn carries half its specified load.
5. 1 in = 25.4 mm, 1 lb = 0.4536 kg, 1 kN = 101.97 kg, 1 t = 1000 kg. Heights are rounded to whole mm, loads down to full 10 kg.
6. Capacity = {legs} x the smallest load of the points used. Required = weight x {factor}, rounded up to whole kg.
7. If the capacity is at least what is required, write the plan (its path is on the job sheet): one line per point used,
   without a header: point | height in mm | load in kg | source
   Otherwise write the hold instead, with a single line: job | capacity in kg | required in kg
"""
MM = {"mm": Fraction(1), "cm": Fraction(10), "in": Fraction("25.4")}
KG = {"kg": Fraction(1), "lb": Fraction("0.4536"), "kN": Fraction("101.97"), "t": Fraction(1000)}
UNITS = (("mm", "kg"), ("in", "lb"), ("cm", "kN"), ("in", "kg"), ("mm", "lb"))
SPEC = """{number} revision {letter}: lifting points of the {item}
Heights in {length}, loads in {mass}. Tolerance of heights: {tolerance} {length}.

{rows}
"""
SURVEY = """Site survey, taken on {day}
Signed: {signed}
Heights in {length}.

{rows}
"""
JOB = """Job {job}: {item}
Specification: {number}
Date of the lift: {day}
Weight: {weight} {mass}
Points used: {points}
Plan: lifting/{job}.csv
Hold: lifting/hold_{job}.csv
"""
POINTS = ("P1", "P2", "P3", "P4", "P5", "P6")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One revision as written: texts of heights and loads by point, in its units."""

    length: str
    mass: str
    tolerance: str
    points: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One survey: texts of heights by point, and the points that it calls worn."""

    length: str
    heights: Mapping[str, str]
    worn: Collection[str]


Row = tuple[str, int, int, str]


def combine(spec: Spec, survey: Survey | None, used: Sequence[str]) -> list[Row]:
    """Returns point, height in mm, load in kg and source of each point used."""
    rows: list[Row] = []
    for point in used:
        height, load = spec.points[point]
        exact, source = Fraction(height) * MM[spec.length], "spec"
        kilograms = Fraction(load) * KG[spec.mass]
        if survey is not None and point in survey.heights:
            measured = Fraction(survey.heights[point]) * MM[survey.length]
            if abs(measured - exact) > Fraction(spec.tolerance) * MM[spec.length]:
                exact, source = measured, "survey"
            kilograms /= 2 if point in survey.worn else 1
        rows.append((point, int(exact + Fraction(1, 2)), int(kilograms // 10 * 10), source))
    return rows


def build(world: World) -> Plan:
    """Draws revisions, surveys and a weight; variants: a plan is right, a hold is, and (held out) no survey counts."""
    rng = world.rng
    item, job, number = rng.choice(ITEMS), world.new_id("J"), world.new_id("SPEC")
    ahead, age = rng.randrange(2, 7), rng.choice((21, 28, 35))
    lift = world.day(ahead)
    used = sorted(rng.sample(POINTS, 4))
    legs, factor = rng.choice((2, 3)), rng.choice(("1.2", "1.25", "1.3"))
    spec, effective = _revisions(world, item, number, lift)
    survey = _surveys(world, spec, used, ahead - age)
    rows = combine(spec, survey, used)
    capacity = legs * min(load for _, _, load, _ in rows)
    enough = world.variant == 0 or (world.variant == 2 and rng.random() < 0.5)
    mass = rng.choice(("t", "lb"))
    near = capacity / float(factor) * (1 + rng.uniform(0.004, 0.03) * (-1 if enough else 1))
    weight = f"{near / float(KG[mass]):.{3 if mass == 't' else 0}f}"
    required = required_kg(weight, mass, factor)
    body = JOB.format(job=job, item=item, number=number, day=lift, weight=weight, mass=mass, points=", ".join(used))
    world.files.write(f"jobs/{job}.md", body)
    other = JOB.format(job="J-900", item="spare fan", number="SPEC-900", day=lift, weight="0.4", mass="t", points="P1, P2")
    world.files.write("jobs/J-900.md", other)
    world.files.write("procedures/lifting.md", PROCEDURE.format(legs=legs, factor=factor, age=age))
    world.files.write("procedures/scaffolding.md", "Scaffolds are checked every morning before work begins.\n")

    plan = FileLines(path=f"lifting/{job}.csv", rows=rows)
    hold = FileLines(path=f"lifting/hold_{job}.csv", rows=[(job, capacity, required)])
    written = plan if enough else hold
    return Plan(
        instruction=world.phrase(PHRASINGS, item=item),
        report=(
            Slot("effective", "effective date of the revision used, YYYY-MM-DD"),
            Slot("capacity", "capacity in kg, a number"),
            Slot("weakest", "point with the smallest load among those used"),
        ),
        checks=(
            Check("file", 0.7, written),
            Check("effective", 0.1, gated(Reported("effective", effective), mostly(written))),
            Check("capacity", 0.1, gated(Reported("capacity", capacity), mostly(written))),
            Check("weakest", 0.1, gated(Reported("weakest", min(rows, key=lambda row: row[2])[0]), mostly(written))),
        ),
        solve=partial(solve, item),
    )


def required_kg(weight: str, mass: str, factor: str) -> int:
    """Returns the capacity that a weight requires, rounded up to whole kg."""
    return math.ceil(Fraction(weight) * KG[mass] * Fraction(factor))


def _revisions(world: World, item: str, number: str, lift: date) -> tuple[Spec, str]:
    """Writes four revisions and the register; returns the one in force and its effective date."""
    rng = world.rng
    starts = [-400, *sorted(rng.sample(range(-200, -60), 2))]
    days = [world.day(start) for start in starts]
    late = rng.random() < 0.6
    days.append(world.day((lift - world.today).days + late))
    states = ["approved", *rng.sample(["approved", rng.choice(("draft", "withdrawn"))], 2), "approved"]
    valid = [index for index, day in enumerate(days) if states[index] == "approved" and day <= lift]
    right = valid[-1]
    base = {point: (rng.randrange(900, 2_400), rng.randrange(3_000, 3_600)) for point in POINTS}
    units = rng.sample(UNITS, 4)
    specs = []
    lines = []
    for index, (day, state, (length, mass)) in enumerate(zip(days, states, units, strict=True)):
        scale = 1 + (index - right) * rng.uniform(0.06, 0.12)
        points = {point: _written(height * scale, load * scale, length, mass) for point, (height, load) in base.items()}
        spec = Spec(length=length, mass=mass, tolerance={"mm": "12", "cm": "1.2", "in": "0.5"}[length], points=points)
        letter = "ABCD"[index]
        rows = "\n".join(f"{point} | {height} | {load}" for point, (height, load) in points.items())
        text = SPEC.format(number=number, letter=letter, item=item, length=length, mass=mass, tolerance=spec.tolerance, rows=rows)
        world.files.write(f"specs/{number}_{letter}.md", text)
        specs.append(spec)
        lines.append(f"{number},{letter},{state},{day}")
    lines.append(f"SPEC-900,A,approved,{days[0]}")
    world.files.write("documents/register.csv", "\n".join(["specification,revision,status,effective", *rng.sample(lines, 5)]))
    return specs[right], days[right].isoformat()


def _written(height: float, load: float, length: str, mass: str) -> tuple[str, str]:
    """Returns a height and a load as written in some units; no height is halfway between two millimeters."""
    if length == "mm":
        text = str(round(height))
    else:
        tenths = round(height / (2.54 if length == "in" else 1))
        tenths += length == "in" and tenths * 254 % 100 == 50
        text = f"{tenths // 10}.{tenths % 10}"
    return text, f"{load / 101.97:.1f}" if mass == "kN" else str(round(load / 0.4536 if mass == "lb" else load))


def _surveys(world: World, spec: Spec, used: Sequence[str], oldest: int) -> Survey | None:
    """Writes three surveys: a signed one that counts (or is too old), a newer one without signature, and an old one."""
    rng = world.rng
    counts = world.variant < 2
    start = rng.choice((oldest, oldest + rng.randrange(1, 9))) if counts else oldest - rng.randrange(1, 3)
    days = [start, start + rng.randrange(3, 6), oldest - rng.randrange(10, 40)]
    worn = rng.sample(used, 3)
    surveys = []
    for index, day in enumerate(days):
        far = rng.sample(used, 2) if index != 1 else []
        heights = {}
        for point in used:
            exact = float(spec.points[point][0]) * {"mm": 1.0, "cm": 10.0, "in": 25.4}[spec.length]
            off = rng.randrange(16, 90) if point in far else rng.randrange(0, 9)
            heights[point] = f"{(exact + off * rng.choice((-1, 1))) / 10:.1f}"
        rows = [f"{point} | {height}{' | worn' if point == worn[index] else ''}" for point, height in heights.items()]
        text = SURVEY.format(day=world.day(day), signed="no" if index == 1 else "yes", length="cm", rows="\n".join(rows))
        world.files.write(f"survey/{world.day(day)}.md", text)
        surveys.append(Survey(length="cm", heights=heights, worn=(worn[index],)))
    return surveys[0] if counts else None


def solve(item: str) -> Steps:
    """Reads procedure, job and register, then the revision in force and the surveys, and writes a plan or a hold."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="planning")
    paths = [row["path"] for row in listed]
    rules = (yield from _read(next(path for path in paths if path.endswith("lifting.md"))))["content"]
    found = yield Step(action=ToolCall("search_files", {"query": f"weight {item}"}), skill="exploration")
    path = next(row["path"] for row in found if row["path"].startswith("jobs/"))
    read, other = (
        ToolCall("read_file", {"path": name}) for name in (path, next(p for p in paths if p[:5] == "jobs/" and p != path))
    )
    sheet = (yield Step(action=read, skill="exploration", slips=((other,),)))["content"]
    register = (yield from _read("documents/register.csv"))["content"]
    job, number = re.findall(r"Job (\S+):", sheet)[0], re.findall(r"Specification: (\S+)", sheet)[0]
    lift = re.findall(r"lift: (\S+)", sheet)[0]
    lines = [line.split(",") for line in register.splitlines()[1:]]
    own = sorted((line for line in lines if line[0] == number), key=lambda line: line[3])
    right = [line for line in own if line[2] == "approved" and line[3] <= lift][-1]
    call = ToolCall("read_file", {"path": f"specs/{number}_{right[1]}.md"})
    wrong = [ToolCall("read_file", {"path": f"specs/{number}_{line[1]}.md"}) for line in reversed(own) if line != right]
    text = (yield Step(action=call, skill="policy", difficulty=0.4, slips=((wrong[0],), (wrong[-1],))))["content"]
    spec = spec_of(text)
    age = int(re.findall(r"at most (\d+) days", rules)[0])
    oldest = (date.fromisoformat(lift) - timedelta(days=age)).isoformat()
    surveys = yield from _read_surveys([path for path in paths if path.startswith("survey/")], oldest)
    valid = [survey for day, signed, survey in surveys if signed and day >= oldest]
    used = re.findall(r"P\d", re.findall(r"used: (.*)", sheet)[0])
    legs, factor = re.findall(r"Capacity = (\d+) x", rules)[0], re.findall(r"weight x ([\d.]+),", rules)[0]
    weight, mass = re.findall(r"Weight: (\S+) (\S+)", sheet)[0]
    rows = combine(spec, valid[0] if valid else None, used)
    capacity, required = int(legs) * min(row[2] for row in rows), required_kg(weight, mass, factor)
    careless = combine(spec, None if valid else surveys[0][2], used)
    call = _file(job, rows, capacity, required)
    wrongly = _file(job, careless, int(legs) * min(row[2] for row in careless), required)
    flipped = _file(job, rows, capacity, required, flip=True)
    slips: tuple[Slip, ...] = ((wrongly,), (flipped,), SKIP)
    yield Step(action=call, skill="calculation", difficulty=0.9, slips=slips)
    data: dict[str, Any] = {"effective": right[3], "capacity": capacity, "weakest": min(rows, key=lambda row: row[2])[0]}
    ends = (
        (Finish(answer="", data={**data, "effective": next(line[3] for line in reversed(own) if line != right)}),),
        (Finish(answer="", data={**data, "capacity": capacity + 10}),),
    )
    yield Step(action=Finish(answer=f"{capacity} kg", data=data), skill="synthesis", slips=ends)


def _file(job: str, rows: Sequence[Row], capacity: int, required: int, *, flip: bool = False) -> ToolCall:
    """Returns the call that writes the plan or the hold, or the other one of both."""
    if (capacity >= required) != flip:
        content = "\n".join(" | ".join(map(str, row)) for row in rows)
        return ToolCall("write_file", {"path": f"lifting/{job}.csv", "content": f"{content}\n"})
    return ToolCall("write_file", {"path": f"lifting/hold_{job}.csv", "content": f"{job} | {capacity} | {required}\n"})


def _read(path: str) -> Generator[Step, Any, dict[str, Any]]:
    file: dict[str, Any] = yield Step(action=ToolCall("read_file", {"path": path}), skill="exploration")
    return file


def _read_surveys(paths: Sequence[str], oldest: str) -> Generator[Step, Any, list[tuple[str, bool, Survey]]]:
    """Reads the surveys, newest first, and returns day, signature and content."""
    surveys = []
    newest = max(paths)
    for path in sorted(paths, reverse=True):
        read, other = (ToolCall("read_file", {"path": name}) for name in (path, newest))
        doubtful = path != newest and path[7:17] >= oldest
        text = (yield Step(action=read, skill="consistency", slips=((other,),) if doubtful else ()))["content"]
        table = [line.split(" | ") for line in text.splitlines() if line.startswith("P")]
        heights, worn = {row[0]: row[1] for row in table}, [row[0] for row in table if row[-1] == "worn"]
        surveys.append((path[7:17], "Signed: yes" in text, Survey(length="cm", heights=heights, worn=worn)))
    return surveys


def spec_of(text: str) -> Spec:
    """Reads a revision."""
    length, mass = re.findall(r"Heights in (\w+), loads in (\w+)\.", text)[0]
    table = [line.split(" | ") for line in text.splitlines() if re.match(r"P\d \|", line)]
    tolerance = re.findall(r"Tolerance of heights: ([\d.]+)", text)[0]
    return Spec(length=length, mass=mass, tolerance=tolerance, points={row[0]: (row[1], row[2]) for row in table})


TASK: Task = Task(
    title="Write lifting points from the values in force",
    category="search",
    domain="research",
    apps=("files",),
    languages=("en",),
    patterns=("superseded sources", "rules stored as data", "near miss at a limit", "distractors", "units"),
    build=build,
    variants=3,
    annotated=False,
)
