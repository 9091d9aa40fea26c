"""Write the digest of the day from five briefings: what is due soon, without what was replaced, cancelled or put off.

News on an item stands in another briefing than the item; days are named in several ways, and one that falls on a weekend moves. A
briefing may have been revised as a whole, and a cancellation taken back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, Reported, ReportedSet, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.apps.files import File
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please write the digest of {day} from the briefings, as docs/digest.md has it.",
        "The briefings of {day} are in. Make the digest from them; docs/digest.md says how.",
        "Put together the daily digest for {day} by the rules in docs/digest.md.",
        "I need the digest for {day}: what is due, from all five briefings. See docs/digest.md.",
        "Could you turn the briefings of {day} into the digest? docs/digest.md explains what goes in.",
        "Write up the digest for {day}, please, following docs/digest.md.",
    ),
}
GUIDE = """# Daily digest

1. Sources are the five briefings of the day, briefings/. If a briefing was revised (-r2), only the revision counts, as a whole.
2. In go the items due from {today} to {last}, both included. Nothing that was due earlier.
3. "tomorrow", "in 3 days" and names of weekdays count from the day of the briefing; a weekday is the next one after it. What
   falls on a Saturday or Sunday is due on the Friday before. "Postponed" gives an item its new day.
4. Out go items that another one replaces, even if that one is not due yet, and items that were cancelled, unless a briefing takes
   the cancellation back. News on an item may stand in any of the briefings.
5. Write `digest/{today}.md`: one line `DATE | ITEM | TITLE` for each item, with the day on which it is due, and no other line.
"""
NAMES = ("ops", "sales", "facilities", "product", "press", "legal", "supply", "training")
TITLES = (
    "Renew the gate permit", "Return the loan scanners", "Book the spring stand", "Send the price list to print",
    "Inspect the sprinklers", "File the export notice", "Order winter tires", "Swap the lobby screens",
    "Approve the new logo", "Answer the trade paper", "Count the spare parts", "Publish the opening hours",
    "Close the survey", "Sign the cleaning contract", "Test the backup line", "Collect the name badges",
    "Review the packing guide", "Update the shelf plan", "Confirm the bus charter", "Prepare the fire drill",
    "Ship the demo units", "Label the archive boxes", "Choose a stand builder", "Announce the open day",
    "Paint the loading bay", "Check the crane hooks",
)  # fmt: skip
FILLERS = (
    "All quiet since yesterday.",
    "The team meets at ten as usual.",
    "Two visitors are expected in the afternoon.",
    "Nothing to add on the weekly figures.",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
Items = Mapping[str, tuple[date, str]]
"""Day and title by number of the item."""


def build(world: World) -> Plan:
    """Draws five briefings; variants: none revised, one revised, one revised and a cancellation taken back."""
    rng, variant, today = world.rng, world.variant, world.today
    days = max(2, 4 - today.weekday()) + rng.randrange(3)
    last = today + timedelta(days=days)
    beyond = next(n for n in range(days + 1, days + 4) if (today + timedelta(days=n)).weekday() < 5)
    names = rng.sample(NAMES, 5)
    titles, numbers = iter(rng.sample(TITLES, 20)), iter(rng.sample(range(10, 99), 20))
    lines: dict[str, list[str]] = {name: [] for name in names}
    items: dict[str, tuple[date, str]] = {}

    def item(name: str, offset: int, note: str = "") -> tuple[str, str]:
        key, title, day = f"{name[:3].upper()}-{next(numbers)}", next(titles), today + timedelta(days=offset)
        items[key] = (day, title)
        return key, f"- [{key}] {title}, due {spoken(world, day)}{note}"

    def add(offset: int, note: str = "") -> str:
        name = names[len(items) % 5]
        key, line = item(name, offset, note)
        lines[name].append(line)
        return key

    def news(text: str, about: str) -> None:
        lines[rng.choice([name for name in names if not about.startswith(name[:3].upper())])].append(f"- {text}")

    weekend = 5 - today.weekday() + rng.randrange(2)
    for offset in (0, days, weekend, beyond, -1, rng.randrange(days + 1), rng.randrange(beyond + 3, 40)):
        add(offset)
    gone: set[str] = set()
    moved: dict[str, date] = {}
    for later in (rng.randrange(days + 1), beyond + rng.randrange(9)):
        key = add(rng.randrange(days + 1))
        gone.add(key)
        add(later, f" (replaces {key})")
    kept = ""
    for _ in range(2):
        key = kept = add(rng.randrange(1, days + 1))
        news(f"Cancelled: {key}", key)
        gone.add(key)
    if variant == 2:
        news(f"Not cancelled after all: {kept}", kept)
        gone.remove(kept)
    for before, after in ((-rng.randrange(1, 5), rng.randrange(1, days + 1)), (rng.randrange(days), beyond + rng.randrange(9))):
        key = add(before)
        moved[key] = today + timedelta(days=after)
        news(f"Postponed: {key} to {moved[key]}", key)

    rows = due(items, gone, moved, today, last)
    everything = due(items, (), moved, today, last)
    for name, own in lines.items():
        _briefing(world, today, f"{name}-r2" if variant and name == names[0] else name, own)
    if variant:
        dropped = item(names[0], rng.randrange(1, days + 1))[1]
        _briefing(world, today, names[0], [*before_revision(lines[names[0]], today + timedelta(days=beyond)), dropped])
    for name in rng.sample(names, 2):
        _briefing(world, today - timedelta(days=1), name, [item(name, rng.randrange(days + 1))[1]])
    world.files.write("docs/digest.md", GUIDE.format(today=today, last=last))

    out = [row[1] for row in everything if row[1] in gone]
    written = FileLines(path=f"digest/{today}.md", rows=rows)
    return Plan(
        instruction=world.phrase(PHRASINGS, day=today),
        report=(
            Slot("lines", "number of lines in the digest"),
            Slot("out", "list of the items that would be due but were replaced or cancelled"),
        ),
        checks=(
            Check("digest", 0.8, written),
            Check("reports_lines", 0.1, gated(Reported("lines", len(rows)), mostly(written))),
            Check("reports_out", 0.1, gated(ReportedSet("out", out), mostly(written))),
        ),
        solve=partial(solve, today),
    )


def _briefing(world: World, day: date, name: str, lines: Sequence[str]) -> None:
    lines = world.rng.sample(lines, len(lines))
    text = f"# Briefing {name}\n\n{world.rng.choice(FILLERS)}\n\n" + "\n".join(lines) + "\n"
    time = f"{day} {'08' if name.endswith('-r2') else '07'}:{world.rng.randrange(10, 60)}"
    world.workspace.put("file", File(id=f"briefings/{day}-{name}.md", content=text, modified=time))


def before_revision(lines: Sequence[str], late: date) -> list[str]:
    """Returns the lines of a briefing with another day for its first item."""
    first = next(line for line in lines if line.startswith("- ["))
    return [f"{line.rpartition(', due ')[0]}, due {late}" if line == first else line for line in lines]


def spoken(world: World, day: date) -> str:
    """Returns one of the ways to name a day."""
    offset = (day - world.today).days
    ways = [f"{day}"]
    if 1 <= offset <= 7:
        ways += [f"in {offset} days" if offset > 1 else "tomorrow", f"on {WEEKDAYS[day.weekday()]}"]
    return "today" if offset == 0 else world.rng.choice(ways)


def named(text: str, today: date) -> date:
    """Returns the day that a briefing names."""
    if text in ("today", "tomorrow"):
        return today + timedelta(days=int(text == "tomorrow"))
    if text.startswith("in "):
        return today + timedelta(days=int(text.split()[1]))
    if text.startswith("on "):
        return today + timedelta(days=(WEEKDAYS.index(text[3:]) - today.weekday() - 1) % 7 + 1)
    return date.fromisoformat(text)


def due(items: Items, gone: Collection[str], moved: Mapping[str, date], first: date, last: date) -> list[tuple[str, str, str]]:
    """Returns the lines of the digest: day, number and title."""
    rows = []
    for key, (day, title) in items.items():
        day = moved.get(key, day)
        day -= timedelta(days=max(0, day.weekday() - 4))
        if key not in gone and first <= day <= last:
            rows.append((f"{day}", key, title))
    return sorted(rows)


def solve(today: date) -> Steps:
    """Reads the guide and the briefings that count, gathers the news from all of them, and writes the digest."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="planning")
    guide = yield Step(action=ToolCall("read_file", {"path": "docs/digest.md"}), skill="exploration")
    last = date.fromisoformat(re.findall(rf"due from {today} to ([\d-]+),", guide["content"])[0])
    paths = [file["path"] for file in listed if file["path"].startswith(f"briefings/{today}")]
    items: dict[str, tuple[date, str]] = {}
    gone: set[str] = set()
    cancelled: set[str] = set()
    back: set[str] = set()
    moved: dict[str, date] = {}
    for path in [path for path in paths if path.replace(".md", "-r2.md") not in paths]:
        older = path.replace("-r2", "")
        slips: tuple[Slip, ...] = ((ToolCall("read_file", {"path": older}),),) if older != path else ()
        shown = yield Step(action=ToolCall("read_file", {"path": path}), skill="exploration", slips=slips)
        text: str = shown["content"]
        for key, title, day in re.findall(r"^- \[(\S+)\] (.*), due ([\w -]+?)(?: \(.*)?$", text, re.MULTILINE):
            items[key] = (named(day, today), title)
        gone |= set(re.findall(r"\(replaces (\S+)\)", text))
        cancelled |= set(re.findall(r"Cancelled: (\S+)", text))
        back |= set(re.findall(r"Not cancelled after all: (\S+)", text))
        moved |= {key: date.fromisoformat(day) for key, day in re.findall(r"Postponed: (\S+) to (\S+)", text)}
    replaced, gone = gone, gone | (cancelled - back)

    def write(rows: Sequence[tuple[str, str, str]]) -> ToolCall:
        return ToolCall("write_file", {"path": f"digest/{today}.md", "content": "\n".join(" | ".join(row) for row in rows)})

    rows = due(items, gone, moved, today, last)
    literal = [(f"{moved.get(key, items[key][0])}", key, title) for _, key, title in rows]
    further = next(day for n in range(1, 4) if (day := last + timedelta(days=n)).weekday() < 5)
    wrong = (
        due(items, cancelled - back, moved, today, last),
        due(items, gone, {}, today, last),
        due(items, replaced, moved, today, last),
        literal,
        due(items, gone, moved, today, further),
        *([due(items, gone | back, moved, today, last)] if back else []),
    )
    yield Step(action=write(rows), skill="consistency", difficulty=0.8, slips=(*((write(other),) for other in wrong), SKIP))
    out = [key for _, key, _ in due(items, (), moved, today, last) if key in gone]
    data: dict[str, Any] = {"lines": len(rows), "out": out}
    fewer = (Finish(answer="", data={**data, "out": [key for key in out if key in replaced]}),)
    all_out = (Finish(answer="", data={**data, "out": sorted({*gone, *moved})}),)
    yield Step(action=Finish(answer=f"{len(rows)}", data=data), skill="synthesis", slips=(fewer, all_out))


TASK: Task = Task(
    title="Write the digest of the day from five briefings",
    category="office",
    domain="files",
    apps=("files",),
    languages=("en",),
    patterns=("superseded sources", "near miss at a limit", "rules stored as data", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
