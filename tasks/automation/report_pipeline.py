"""Fill a monthly report from a database, a table of rules and notices, and write its summary.

A shipment may be entered in another month than it was shipped in, and its crates may be corrected; the rules have rows that no
longer hold and rows that do not hold yet. A figure of the month before is restated, or was until that was withdrawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, Reported, gated, mostly
from ec2_env.checks.sheets import CellsSet
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please do the {book} report for last month; docs/report.md says how.",
        "Last month's {book} report is due: sheet and summary. The steps are in docs/report.md.",
        "Run the {book} report for the month that has just ended, following docs/report.md.",
        "Could you fill in the {book} figures of last month and write the summary? See docs/report.md.",
        "It is time for the monthly {book} report. Everything it needs is described in docs/report.md.",
        "Prepare the {book} report of last month by docs/report.md, please.",
    ),
}
GUIDE = """# {book} report

1. The report is about the calendar month before this one, now {month}. A shipment belongs to the month in which it was shipped,
   whenever it was entered.
2. What counts is in the sheet Rules: of a kind's rows, the one with the latest "From" that is not after the first day of the
   report's month. "Share" is the share of its {unit} that counts.
3. An approved correction in the database replaces a shipment's {unit}; of several approved ones, the one decided last.
4. Column C of the sheet Figures is the month before, {previous}. Where a final notice in notices/ restates one of its
   figures, put the restated figure there first; the newest final notice on a hub holds. Provisional notices change nothing.
5. Fill columns B and D (B less C) of Figures for each hub. Leave the last row alone, it adds up by itself.
6. Write `reports/{month}.md`: for each hub one line, and no other, `HUB | {unit} | change`.
"""
NOTICE = "# Notice\n\nHub: {hub}\nMonth: {month}\nState: {state}\n\n{text}\n"
RESTATED, WITHDRAWN = "The figure is restated from {old} to {new}.", "Earlier restatements are withdrawn; {old} stands."
BOOKS = (("Crates", "crates"), ("Parcels", "parcels"), ("Pallets", "pallets"), ("Totes", "totes"))
HUBS = ("Elmport", "Graymoor", "Westhaven", "Oldbridge", "Saltmarsh", "Tarnfield", "Quayside", "Millbrook")
KINDS = ("standard", "express", "sample", "return", "internal", "promo", "exchange")
ROWS = 4
"""Number of hubs, and of kinds."""
QUERY = """SELECT s.hub, s.kind, SUM(COALESCE((SELECT c.{unit} FROM corrections c WHERE c.shipment_id = s.shipment_id{state}
ORDER BY c.decided DESC LIMIT 1), s.{unit})) AS total FROM shipments s WHERE s.{day} LIKE '{month}%' GROUP BY s.hub, s.kind"""


def build(world: World) -> Plan:
    """Draws shipments, rules and notices; variants: a figure is restated, or that was withdrawn, or it was restated twice."""
    rng, variant = world.rng, world.variant
    book, unit = rng.choice(BOOKS)
    last = world.today.replace(day=1) - timedelta(days=1)
    first = last.replace(day=1)
    month, previous = f"{first:%Y-%m}", f"{first - timedelta(days=1):%Y-%m}"
    hubs, kinds = sorted(rng.sample(HUBS, ROWS)), rng.sample(KINDS, ROWS)
    shares = _rules(world, book, kinds, first)
    counted = _database(world, unit, hubs, kinds, first)
    right = {hub: sum(shares[kind] * counted[hub, kind] for kind in kinds) for hub in hubs}

    published = {hub: round(right[hub] * rng.uniform(0.7, 1.3)) for hub in hubs}
    hub, other = rng.sample(hubs, 2)
    restated = published[hub] + rng.choice((-1, 1)) * rng.randrange(12, 90)
    notices = [(30, hub, previous, "final", RESTATED.format(old=published[hub], new=restated))]
    if variant == 1:
        notices.append((14, hub, previous, "final", WITHDRAWN.format(old=published[hub])))
        restated = published[hub]
    if variant == 2:
        restated += rng.choice((-1, 1)) * rng.randrange(3, 9)
        notices.append((14, hub, previous, "final", RESTATED.format(old=published[hub], new=restated)))
    final = {**published, hub: restated}
    name = rng.choice((hub, other))
    vague = RESTATED.format(old=final[name], new=final[name] + rng.randrange(5, 50))
    notices.append((3, name, previous, "provisional", vague))
    elder = rng.randrange(400, 1200)
    notices.append(
        (50, other, f"{first - timedelta(days=40):%Y-%m}", "final", RESTATED.format(old=elder, new=elder + rng.randrange(5, 50)))
    )
    for (ago, name, about, state, text), number in zip(notices, rng.sample(range(10, 99), len(notices)), strict=True):
        days_ago = ago + rng.randrange(6)
        content = NOTICE.format(hub=name, month=about, state=state, text=text) + f"\nIssued {world.day(-days_ago)}\n"
        world.files.write(f"notices/notice-{number}.md", content, days_ago=days_ago)
    world.files.write("docs/report.md", GUIDE.format(book=book, unit=unit, month=month, previous=previous))
    world.files.write("docs/holidays.md", f"The office is closed on {world.day(rng.randrange(5, 60))}.\n")
    lines: list[list[str | float]] = [[name, "", published[name]] for name in hubs]
    sums: list[str | float] = ["Total", *(f"=SUM({column}2:{column}{ROWS + 1})" for column in "BCD")]
    sheet = world.sheets.add(book, "Figures", [["Hub", month, previous, "Change"], *lines, sums])
    world.sheets.noise(2)

    cells: dict[str, object] = {}
    for row, name in enumerate(hubs, 2):
        cells |= {f"B{row}": right[name], f"D{row}": right[name] - final[name]}
        if final[name] != published[name]:
            cells[f"C{row}"] = final[name]
    filled = CellsSet(sheet=sheet.id, cells=cells)
    change = {name: right[name] - final[name] for name in hubs}
    summary = FileLines(path=f"reports/{month}.md", rows=[(name, right[name], change[name]) for name in hubs])
    return Plan(
        instruction=world.phrase(PHRASINGS, book=book),
        report=(
            Slot("total", "total of the month over all hubs, a number"),
            Slot("change", "change of that total from the month before, a number"),
        ),
        checks=(
            Check("figures", 0.5, filled),
            Check("summary", 0.3, summary),
            Check("reports_total", 0.1, gated(Reported("total", sum(right.values())), mostly(filled))),
            Check("reports_change", 0.1, gated(Reported("change", sum(change.values())), mostly(filled))),
        ),
        solve=partial(solve, book),
    )


def _rules(world: World, book: str, kinds: Sequence[str], first: date) -> dict[str, float]:
    """Writes the sheet of rules and returns the share of each kind that counts in the month."""
    rng = world.rng
    old, new, later = rng.sample((0.0, 0.5, 1.0), 3)
    start = first - timedelta(days=rng.choice((0, 0, rng.randrange(1, 90))))
    ahead = first + timedelta(days=rng.choice((1, rng.randrange(2, 28), 31)))
    whole, part = 1.0, rng.choice((0.5, 0.25))
    began = date(first.year - 1, 1, 1)
    rows: list[tuple[str, float, date]] = [
        (kinds[0], whole, began),
        (kinds[1], part, began),
        (kinds[2], old, began),
        (kinds[2], new, start),
        (kinds[3], later, began),
        (kinds[3], old, ahead),
    ]
    rng.shuffle(rows)
    lines: list[list[str | float]] = [[kind, share, f"{day}"] for kind, share, day in rows]
    world.sheets.add(book, "Rules", [["Kind", "Share", "From"], *lines])
    return {kinds[0]: whole, kinds[1]: part, kinds[2]: new, kinds[3]: later}


def _database(world: World, unit: str, hubs: Sequence[str], kinds: Sequence[str], first: date) -> dict[tuple[str, str], int]:
    """Writes shipments and corrections and returns what each hub shipped of each kind in the month, corrected."""
    rng = world.rng
    numbers = iter(rng.sample(range(10_000, 99_999), 60))
    rows: list[tuple[str, str, str, str, str, int]] = []
    counted: dict[tuple[str, str], int] = {}

    def ship(hub: str, kind: str, day: date, entered: date) -> tuple[str, int]:
        key, number = f"S{next(numbers)}", rng.randrange(20, 400)
        rows.append((key, hub, kind, f"{day}", f"{entered}", number))
        if day.month == first.month:
            counted[hub, kind] = counted.get((hub, kind), 0) + number
        return key, number

    end = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    for hub in hubs:
        for kind in kinds:
            day = first + timedelta(days=rng.randrange(26))
            ship(hub, kind, day, day)
    fixed = [(hub, kinds[0], ship(hub, kinds[0], end, end + timedelta(days=1))) for hub in hubs]
    early = first - timedelta(days=1)
    for hub in hubs:
        ship(hub, kinds[rng.randrange(2)], early, first + timedelta(days=rng.randrange(3)))
    ship(hubs[0], kinds[0], end + timedelta(days=1), end + timedelta(days=1))

    keys = iter(rng.sample(range(100, 999), 6))
    corrections = []
    for (hub, kind, (key, number)), states in zip(
        fixed, (("approved", "approved"), ("pending",), ("approved", "rejected"), ("approved",)), strict=True
    ):
        for index, state in enumerate(states):
            value = number + rng.choice((-1, 1)) * rng.randrange(8 + 4 * index, 12 + 4 * index)
            corrections.append((f"C{next(keys)}", key, value, state, f"{end + timedelta(days=index)}"))
            if state == "approved":
                counted[hub, kind] += value - number
                number = value
    rng.shuffle(rows)
    rng.shuffle(corrections)
    text, whole = "TEXT", "INTEGER"
    columns = {"shipment_id": text, "hub": text, "kind": text, "shipped": text, "entered": text, unit: whole}
    world.sql.table("shipments", columns, rows, description=f"Shipments with their {unit}")
    columns = {"correction_id": text, "shipment_id": text, unit: whole, "state": text, "decided": text}
    notes = {unit: "number that replaces the shipment's", "state": "approved, pending or rejected"}
    world.sql.table("corrections", columns, corrections, description="Corrections of shipments", notes=notes)
    return counted


def solve(book: str) -> Steps:
    """Reads the guide, the notices, the rules and the database, then fills the sheet and writes the summary."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="planning")
    guide = yield Step(action=ToolCall("read_file", {"path": "docs/report.md"}), skill="exploration")
    month = re.findall(r"now (\S+)\. A", guide["content"])[0]
    previous = re.findall(r"the month before, (\S+)\.", guide["content"])[0]
    unit = re.findall(r"of its (\w+) that counts", guide["content"])[0]
    notices: list[str] = []
    for path in [file["path"] for file in listed if file["path"].startswith("notices/")]:
        notices.append((yield Step(action=ToolCall("read_file", {"path": path}), skill="exploration"))["content"])
    sheets = yield Step(action=ToolCall("list_sheets", {"spreadsheet": book}), skill="exploration")
    notices.sort(key=lambda text: text.rpartition("Issued ")[2])
    ids = {sheet["title"]: sheet["id"] for sheet in sheets}
    rules = yield Step(action=ToolCall("read_range", {"sheet_id": ids["Rules"]}), skill="exploration")
    figures = yield Step(action=ToolCall("read_range", {"sheet_id": ids["Figures"]}), skill="exploration")
    yield Step(action=ToolCall("list_tables", {}), skill="exploration")
    for table in ("shipments", "corrections"):
        yield Step(action=ToolCall("describe_table", {"table": table}), skill="exploration")
    ask = partial(QUERY.format, unit=unit, month=month)
    approved = " AND c.state = 'approved'"
    wrong = (
        ask(day="shipped", state=""),
        ask(day="entered", state=approved),
        ask(day="shipped", state=" AND c.state = 'none'"),
    )
    result = yield Step(
        action=ToolCall("query_sql", {"query": ask(day="shipped", state=approved)}),
        skill="calculation",
        difficulty=0.5,
        slips=tuple((ToolCall("query_sql", {"query": query}),) for query in wrong),
    )
    shares: dict[str, float] = {}
    stale: dict[str, float] = {}
    for kind, share, _ in sorted(rules["values"][1:], key=lambda row: str(row[2])):
        stale.setdefault(kind, float(share))
    for kind, share, start in sorted(rules["values"][1:], key=lambda row: str(row[2])):
        if start <= f"{month}-01":
            shares[kind] = float(share)
    newest = {kind: float(share) for kind, share, _ in sorted(rules["values"][1:], key=lambda row: str(row[2]))}
    published = {row[0]: float(row[2]) for row in figures["values"][1:-1]}
    restated = {**published, **restatements(notices, previous, ("final",))}
    loose = {**published, **restatements(notices, previous, ("final", "provisional"))}
    first = {**published, **restatements(notices[::-1], previous, ("final",))}

    def filled(weights: Mapping[str, float], before: Mapping[str, float]) -> dict[str, tuple[float, float]]:
        sums = {hub: sum(weights[kind] * total for name, kind, total in result["rows"] if name == hub) for hub in before}
        return {hub: (sums[hub], sums[hub] - before[hub]) for hub in before}

    def write(rows: Mapping[str, tuple[float, float]], before: Mapping[str, float]) -> Slip:
        values = [[f"{total:g}", f"{before[hub]:g}", f"{change:g}"] for hub, (total, change) in rows.items()]
        return (ToolCall("write_range", {"sheet_id": ids["Figures"], "range": f"B2:D{len(rows) + 1}", "values": values}),)

    right = filled(shares, restated)
    slips = (
        write(filled(newest, restated), restated),
        write(filled(stale, restated), restated),
        write(filled(shares, loose), loose),
        *((write(filled(shares, first), first),) if first != restated else ()),
        SKIP,
    )
    (call,) = write(right, restated)
    yield Step(action=call, skill="policy", difficulty=0.8, slips=slips)

    def summary(rows: Mapping[str, tuple[float, float]]) -> ToolCall:
        lines = [f"{hub} | {total:g} | {change:g}" for hub, (total, change) in rows.items()]
        return ToolCall("write_file", {"path": f"reports/{month}.md", "content": "\n".join(lines)})

    yield Step(
        action=summary(right),
        skill="instruction",
        slips=((summary(filled(stale, restated)),), (summary(filled(shares, loose)),), SKIP),
    )
    data: dict[str, Any] = {"total": sum(t for t, _ in right.values()), "change": sum(c for _, c in right.values())}
    old = {**data, "change": data["total"] - sum(loose.values())}
    yield Step(action=Finish(answer=f"{data['total']:g}", data=data), skill="synthesis", slips=((Finish(answer="", data=old),),))


def restatements(notices: Sequence[str], month: str, states: Sequence[str]) -> dict[str, float]:
    """Returns the figures of a month by hub, as the last of the notices in one of these states has them."""
    found: dict[str, float] = {}
    for text in notices:
        hub, about, state = re.findall(r"Hub: (\w+)\nMonth: (\S+)\nState: (\w+)", text)[0]
        if about == month and state in states:
            found[hub] = float(re.findall(r"(?:to|withdrawn;) (\d+)", text)[-1])
    return found


TASK: Task = Task(
    title="Fill a monthly report from a database and its rules",
    category="automation",
    domain="automation",
    apps=("sql", "sheets", "files"),
    languages=("en",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
