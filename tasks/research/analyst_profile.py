"""Write a company's profile as JSON from sources that contradict one another, by a file that says which one goes first.

Sources age, and one sits on the limit; a correction changes a figure of the annual report; a sister company has a report of its
own. How figures are settled is another rule in each variant: by rank, by date, or only where two sources agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import JsonWritten, ReportedSet, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.words import FAMILY, GIVEN, TOWNS
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Write the analyst profile of {firm} from our source files, as profiles/RULES.md asks.",
        "Please prepare the JSON profile of {firm}; profiles/RULES.md says which source counts for what.",
        "We need {firm}'s profile. The sources contradict each other: go by profiles/RULES.md.",
        "Build the profile of {firm} out of the sources folder, following the rules in profiles/RULES.md.",
        "The profile of {firm} is due. Sources and rules are in the files; keep to profiles/RULES.md.",
        "Turn what our sources say of {firm} into the JSON profile that profiles/RULES.md describes.",
    )
}
FIELDS = ("legal_name", "seat", "founded", "chief_executive", "employees", "revenue", "products", "auditor")
FIGURES = (
    "from annual_report, then rating_note, then press_kit",
    "from whichever of annual_report and rating_note has the later date",
    "only a value on which two of annual_report, rating_note and press_kit agree exactly",
)
RULES = (
    "# Profiles\n\nWrite profiles/<company>.json: one JSON object with exactly these fields: {fields}. Texts as the source has "
    "them, founded, employees and revenue (millions) as numbers, products as a list.\n\n"
    "- A source dated more than {limit} days before today is not used, except for legal_name and founded.\n"
    "- What corrections.md of a company corrects holds for the source it names.\n"
    "- legal_name, founded: from registry_extract.\n- seat: from registry_extract, then annual_report, then press_kit.\n"
    "- chief_executive: from the usable source with the latest date that names one.\n"
    "- employees, revenue: {figures}.\n"
    "- products: the first {most} of annual_report, otherwise of press_kit.\n- auditor: from annual_report.\n"
    "- A field that no usable source settles is null.\n"
)
PRODUCTS = ("pumps", "valves", "sensors", "filters", "cranes", "belts", "lamps", "scales", "locks", "labels")
NEWS = "news_clip"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rules fix: the oldest day that is usable, how figures are settled (0 to 2), and how many products are kept."""

    since: str
    figures: int
    most: int


def profile(sources: Mapping[str, Mapping[str, Any]], rules: Rules) -> dict[str, Any]:
    """Returns the profile; each source holds its "date" and its fields, corrections applied."""
    usable = {name: source for name, source in sources.items() if str(source["date"]) >= rules.since}

    def ranked(field: str, *names: str) -> Any:
        return next((usable[name][field] for name in names if field in usable.get(name, {})), None)

    def figure(field: str) -> Any:
        names = ["annual_report", "rating_note", "press_kit"]
        if rules.figures == 1:
            names = sorted(names[:2], key=lambda name: str(sources[name]["date"]), reverse=True)
        if rules.figures == 2:
            values = [usable[name][field] for name in names if field in usable.get(name, {})]
            return next((value for value in values if values.count(value) > 1), None)
        return ranked(field, *names)

    heads = [(str(source["date"]), source["chief_executive"]) for source in usable.values() if "chief_executive" in source]
    products = ranked("products", "annual_report", "press_kit")
    return {
        "legal_name": sources["registry_extract"]["legal_name"],
        "seat": ranked("seat", "registry_extract", "annual_report", "press_kit"),
        "founded": sources["registry_extract"]["founded"],
        "chief_executive": max(heads)[1],
        "employees": figure("employees"),
        "revenue": figure("revenue"),
        "products": products[: rules.most] if products else None,
        "auditor": ranked("auditor", "annual_report"),
    }


def conflicts(sources: Mapping[str, Mapping[str, Any]], rules: Rules) -> list[str]:
    """Returns the fields, other than products, of which usable sources state different values."""
    usable = [source for source in sources.values() if str(source["date"]) >= rules.since]
    said = {field: {source[field] for source in usable if field in source} for field in FIELDS if field != "products"}
    return [field for field, values in said.items() if len(values) > 1]


def build(world: World) -> Plan:
    """Draws five sources, a correction and the rules."""
    rng = world.rng
    firm = world.firm()
    slug = firm.name.lower().replace(" ", "_")
    limit, most = rng.randrange(80, 200), rng.randrange(2, 5)
    rules = Rules(world.day(-limit).isoformat(), world.variant, most)
    ages = rng.sample(range(5, limit), 5)
    near, *old = rng.sample(range(5), rng.choice((2, 3)))
    for index, age in zip((near, *old), (limit, limit + 1, limit + rng.randrange(2, 90)), strict=False):
        ages[index] = age
    dates = [world.day(-age).isoformat() for age in ages]
    heads = [f"{rng.choice(GIVEN['en'])} {name}" for name in rng.sample(FAMILY["en"], 3)]
    towns = rng.sample(TOWNS["en"], 3)
    staff, sales = rng.sample(range(410, 9_800), 4), rng.sample(range(51, 990), 4)
    goods = rng.sample(PRODUCTS, 7)
    founded = rng.randrange(1931, 2009)
    sources: dict[str, dict[str, Any]] = {
        "registry_extract": {"legal_name": f"{firm.name} Group plc", "seat": towns[0], "founded": founded},
        "annual_report": {
            "legal_name": f"{firm.name} plc", "seat": towns[1], "chief_executive": heads[0], "employees": staff[0],
            "revenue": sales[0], "products": goods[:5], "auditor": f"{rng.choice(FAMILY['en'])} & Partners",
        },
        "rating_note": {"chief_executive": heads[1], "employees": staff[1], "revenue": sales[1]},
        "press_kit": {
            "seat": towns[2], "founded": founded - 3, "employees": staff[2], "revenue": sales[2], "products": goods[2:],
            "chief_executive": heads[rng.randrange(2)],
        },
        NEWS: {"chief_executive": heads[2], "revenue": sales[3]},
    }  # fmt: skip
    pair = (("annual_report", "rating_note"), ("rating_note", "press_kit"), ("annual_report", "press_kit"))[rng.randrange(3)]
    field = rng.choice(("employees", "revenue"))
    for name in ("employees", "revenue"):
        sources[pair[1]][name] = sources[pair[0]][name]
    for source, day in zip(sources.values(), dates, strict=True):
        source["date"] = day
    printed = sources["annual_report"][field]
    corrected = sources[rng.choice(("rating_note", "press_kit"))][field] if rng.random() < 0.5 else printed
    corrected += rng.randrange(3, 40) if corrected == printed else 0
    note = f"Date: {world.day(-3)}\nannual_report: {field} is {corrected}, not {printed}.\n"

    files = world.files
    files.write(
        "profiles/RULES.md", RULES.format(fields=", ".join(FIELDS), limit=limit, figures=FIGURES[world.variant], most=most)
    )
    files.write("profiles/aldgate_mills.json", json.dumps(dict.fromkeys(FIELDS)))
    for name, source in sources.items():
        files.write(f"sources/{slug}/{name}.md", _page(name, source))
    files.write(f"sources/{slug}/corrections.md", note)
    sister = {**sources["annual_report"], "employees": staff[3], "revenue": sales[3], "legal_name": f"{firm.name} Finance plc"}
    files.write(f"sources/{slug}_finance/annual_report.md", _page("annual_report", sister))
    sources["annual_report"][field] = corrected

    written = JsonWritten(path=f"profiles/{slug}.json", content=profile(sources, rules))
    aged = [f"sources/{slug}/{name}.md" for name, source in sources.items() if str(source["date"]) < rules.since]
    return Plan(
        instruction=world.phrase(PHRASINGS, firm=firm.name) + f" The file is profiles/{slug}.json.",
        report=(
            Slot("too_old", "list of the paths of this company's sources that are too old"),
            Slot(
                "conflicts",
                "list of the fields, other than products, of which sources that are not too old state different values",
            ),
        ),
        checks=(
            Check("profile", 0.7, written),
            Check("conflicts", 0.2, gated(ReportedSet("conflicts", conflicts(sources, rules)), mostly(written))),
            Check("too_old", 0.1, gated(ReportedSet("too_old", aged), mostly(written))),
        ),
        solve=partial(solve, slug, world.today.isoformat()),
    )


def _page(name: str, source: Mapping[str, Any]) -> str:
    """Writes a source, one fact a line."""
    lines = [f"# {name.replace('_', ' ').capitalize()}", "", f"Date: {source['date']}"]
    for field, value in source.items():
        if field != "date":
            shown = ", ".join(value) if isinstance(value, list) else f"{value} million" if field == "revenue" else value
            lines.append(f"{field.replace('_', ' ').capitalize()}: {shown}")
    return "\n".join(lines) + "\n"


def solve(slug: str, today: str) -> Steps:
    """Reads the rules, every source of the company and the correction, and writes the profile."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="planning")
    text = (yield Step(action=ToolCall("read_file", {"path": "profiles/RULES.md"}), skill="policy"))["content"]
    limit, most = (int(re.findall(pattern, text)[0]) for pattern in (r"more than (\d+) days", r"the first (\d+) of"))
    since = (date.fromisoformat(today) - timedelta(days=limit)).isoformat()
    rules = Rules(since, next(n for n, rule in enumerate(FIGURES) if rule in text), most)
    sources: dict[str, dict[str, Any]] = {}
    note = ""
    for file in listed:
        folder, _, name = file["path"].rpartition("/")
        if folder == f"sources/{slug}":
            page = yield Step(action=ToolCall("read_file", {"path": file["path"]}), skill="exploration", difficulty=-0.3)
            if name == "corrections.md":
                note = page["content"]
            else:
                sources[name.removesuffix(".md")] = _facts(page["content"])
    printed = {name: dict(source) for name, source in sources.items()}
    name, field, value = re.findall(r"^(\w+): (\w+) is (\d+),", note, re.MULTILINE)[0]
    sources[name][field] = int(value)

    right = profile(sources, rules)
    path = f"profiles/{slug}.json"
    first = (rules.figures + 1) % 3
    wrong = [
        profile(sources, Rules("0000", rules.figures, most)),
        profile(printed, rules),
        profile(sources, Rules(since, first, most)),
        profile(sources, Rules(since, rules.figures, most + 1)),
        {**right, "chief_executive": sources["annual_report"]["chief_executive"]},
    ]
    yield Step(
        action=ToolCall("write_file", {"path": path, "content": json.dumps(right, indent=1)}),
        skill="policy",
        difficulty=0.8,
        slips=(
            *((ToolCall("write_file", {"path": path, "content": json.dumps(data)}),) for data in wrong if data != right),
            SKIP,
        ),
    )
    aged = [f"sources/{slug}/{name}.md" for name, source in sources.items() if source["date"] < since]
    data = {"too_old": aged, "conflicts": conflicts(sources, rules)}
    everything = conflicts(sources, Rules("0000", rules.figures, most))
    wide = {**data, "conflicts": everything} if everything != data["conflicts"] else {**data, "too_old": []}
    yield Step(
        action=Finish(answer=path, data=data),
        skill="consistency",
        slips=((Finish(answer=path, data=wide),), (Finish(answer=path, data={**data, "too_old": []}),)),
    )


def _facts(text: str) -> dict[str, Any]:
    """Reads a source as `_page` writes it."""
    facts: dict[str, Any] = {}
    for label, value in re.findall(r"^([A-Z][a-z ]+): (.+)$", text, re.MULTILINE):
        field = label.lower().replace(" ", "_")
        whole = field in ("founded", "employees", "revenue")
        facts[field] = int(value.split()[0]) if whole else value.split(", ") if field == "products" else value
    return facts


TASK: Task = Task(
    title="Write a company profile from conflicting sources",
    category="search",
    domain="research",
    apps=("files",),
    languages=("en",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors", "conflicting sources"),
    build=build,
    variants=3,
    annotated=False,
)
