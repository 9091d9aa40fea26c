"""Put a weekly series in order around holidays and a cut-over that was moved.

The cut-over's date is that of the newest approved change, not of the plan nor of a later proposal. Entries in the freeze before
it go (one lies on its first day or just outside), those after it become fortnightly at another hour. What becomes of an entry on
a holiday of our own site is the variant: it moves on, it goes, or (held out) it moves back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Booked, Changed, Removed, Reported, every, gated, whole
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        'Please put my weekly series "{title}" in order, {first} to {last}: holidays and the {system} cut-over get in its way.',
        'The entries "{title}" from {first} to {last} have to be brought into line with the holidays and the {system} cut-over.',
        'Go through the series "{title}" ({first} to {last}) and fix it around the cut-over of {system} and the holidays.',
        'My series "{title}" ignores the holidays and the {system} cut-over. Please correct it for {first} to {last}.',
        'Bring the series "{title}" between {first} and {last} up to date: {system} is cut over then, and there are holidays.',
        'From {first} to {last}, adapt the weekly "{title}" to the holidays and to the cut-over of {system}.',
    )
}
ENDING = " The rules are in calendar/series_rules.md."
RULES = """# Series around a cut-over

Our site is {site}. Other series and other entries stay as they are. By their planned dates:

1. Entries from {freeze} days before the cut-over to the cut-over itself, both included, are deleted.
2. After the cut-over the series is fortnightly: the first entry stays, the second is deleted, and so on. Those that stay start at
   {hour} and keep their length.
3. Then the holidays: an entry that is left and falls on a holiday of our site {holiday}.
4. Add one entry of 90 minutes, the rollback rehearsal, on the last working day before the first day of rule 1. It starts when an
   entry of the series on that day would end. Nobody is invited.

Working days are Monday to Friday without the holidays of our site (calendar/holidays.csv). The date of the cut-over is that of
the newest change with the status approved, or of the plan if there is none.
"""
HOLIDAY = (
    "moves to the next working day, at the same time of day",
    "is deleted",
    "moves to the last working day before it, at the same time of day",
)
SITES = ("Northgate", "Harborside", "Millfield", "Eastpark")
SYSTEMS = ("Ledgerline", "Stockwell", "Paygrid", "Routemap", "Fleetbook")
SERIES = ("Interface check", "Data sync check", "Migration standup", "Load test review", "Release check")
DAYS = ("Founders' Day", "Harvest Day", "Spring Day", "River Day", "Remembrance Day", "Market Day")


@dataclass(frozen=True, slots=True)
class Rules:
    """What the files say: the cut-over, the days of freeze before it, the hour after it, our holidays, what they do to an entry.

    `shift` is 1 or -1 for the direction in which an entry moves off a holiday, and 0 if it is deleted.
    """

    cutover: date
    freeze: int
    hour: str
    holidays: frozenset[date]
    shift: int


def build(world: World) -> Plan:
    """Draws a series of eight weeks, the cut-over in its middle, and the holidays."""
    rng = world.rng
    site, *others = rng.sample(SITES, 3)
    system = rng.choice(SYSTEMS)
    title, neighbor = rng.sample(SERIES, 2)
    first = world.day(7 - world.today.weekday() + rng.randrange(5)) + timedelta(days=7 * rng.randrange(1, 3))
    planned = [first + timedelta(days=7 * week) for week in range(8)]
    after_cut = rng.randrange(1, 4)
    cutover = planned[3] + timedelta(days=after_cut)
    on_limit = rng.random() < 0.5
    minute, minutes = rng.randrange(13 * 60, 15 * 60, 30), rng.choice((30, 45, 60))
    hour = f"{rng.randrange(8, 11):02d}:{rng.choice((0, 15, 30)):02d}"

    early, foreign = rng.sample(planned[:2], 2)
    ours = {early, rng.choice(planned[4:7]), planned[7] + timedelta(days=9)}
    step = -1 if world.variant == 2 else 1
    if rng.random() < 0.6:
        ours.add(working(early, step, ()))
    theirs = {foreign: others[0], working(foreign, 1, ()): others[1], planned[6] + timedelta(days=1): others[0]}
    shift = (1, 0, -1)[world.variant]
    rules = Rules(cutover, after_cut + (7 if on_limit else 6), hour, frozenset(ours), shift)
    write_files(world, system, rules, site, theirs | {day: rng.choice((site, "all sites")) for day in sorted(ours)})

    ids: dict[date, str] = {}
    for week, day in enumerate(planned):
        start = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)
        ids[day] = world.calendar.add(title, start, minutes).id
        if week % 2:
            world.calendar.add(f"{title} (archive)", start + timedelta(hours=2), 30)
        if week % 3 == 0:
            world.calendar.add(neighbor, start - timedelta(days=1, hours=3), 45)
    span = (minute, minute + minutes)
    wanted = targets(planned, span, rules)
    gone = [ids[day] for day, times in wanted.items() if times is None]
    edits = [
        Changed(table="event", id=ids[day], fields=dict(zip(("start", "end"), times, strict=True)))
        for day, times in moved(wanted, span)
    ]
    begins, ends = rehearsal(span, rules)
    booked = Booked(begins, ends, (), world.me.email)
    deleted, changed = Removed(table="event", ids=gone), every(*edits)
    done = whole(every(deleted, changed, booked))
    return Plan(
        instruction=world.phrase(PHRASINGS, title=title, first=planned[0], last=planned[-1], system=system) + ENDING,
        report=(
            Slot("cutover", "date of the cut-over, YYYY-MM-DD"),
            Slot("entries_left", "number of entries of the series that are left in that time, without the rehearsal"),
        ),
        checks=(
            Check("entries_deleted", 0.3, deleted),
            Check("entries_moved", 0.3, changed),
            Check("rehearsal_added", 0.2, booked),
            Check("reports_cutover", 0.1, gated(Reported("cutover", cutover), done)),
            Check("reports_left", 0.1, gated(Reported("entries_left", 8 - len(gone)), done)),
        ),
        solve=partial(solve, title, str(planned[0]), str(planned[-1])),
    )


def write_files(world: World, system: str, rules: Rules, site: str, holidays: Mapping[date, str]) -> None:
    """Writes the rules, the holidays of all sites, and the plan of the cut-over with its changes."""
    rng = world.rng
    text = RULES.format(site=site, freeze=rules.freeze, hour=rules.hour, holiday=HOLIDAY[(1, 0, -1).index(rules.shift)])
    world.files.write("calendar/series_rules.md", text)
    rows = [f"{day},{rng.choice(DAYS)},{where}" for day, where in sorted(holidays.items())]
    world.files.write("calendar/holidays.csv", "date,name,site\n" + "\n".join(rows) + "\n")
    folder = f"projects/{system.lower()}"
    week = timedelta(days=7)
    dates = (rules.cutover + week, rules.cutover - week, rules.cutover, rules.cutover + rng.choice((-1, 1)) * week)
    for number, (day, status) in enumerate(zip(dates, ("approved", "approved", "approved", "proposed"), strict=True)):
        name = f"change_{number}.md" if number else "plan.md"
        text = f"# Cut-over of {system}{f', change {number}' if number else ''}\n\nStatus: {status}\nCut-over: {day}\n"
        world.files.write(f"{folder}/{name}", text, days_ago=60 - 12 * number)
    world.files.write(f"{folder}/risks.md", f"If the cut-over of {system} fails, the old system stays for another quarter.")


def working(day: date, step: int, holidays: Collection[date]) -> date:
    """Returns the next working day after a day (step 1) or the last before it (step -1)."""
    day += timedelta(days=step)
    while day.weekday() >= 5 or day in holidays:
        day += timedelta(days=step)
    return day


def targets(planned: Sequence[date], span: tuple[int, int], rules: Rules) -> dict[date, tuple[str, str] | None]:
    """Returns for each planned day when its entry has to be, or None if it has to go. `span` is in minutes of the day."""
    found: dict[date, tuple[str, str] | None] = {}
    later = [day for day in planned if day > rules.cutover]
    hour = int(rules.hour[:2]) * 60 + int(rules.hour[3:])
    for day in planned:
        frozen = rules.cutover - timedelta(days=rules.freeze) <= day <= rules.cutover
        skipped = day in later and later.index(day) % 2 == 1
        holiday = day in rules.holidays
        if frozen or skipped or (holiday and not rules.shift):
            found[day] = None
            continue
        start = hour if day in later else span[0]
        to = working(day, rules.shift, rules.holidays) if holiday else day
        found[day] = (moment(to, start), moment(to, start + span[1] - span[0]))
    return found


def moved(wanted: Mapping[date, tuple[str, str] | None], span: tuple[int, int]) -> list[tuple[date, tuple[str, str]]]:
    """Returns the entries that stay and have to change, with their new times."""
    return [
        (day, times)
        for day, times in wanted.items()
        if times is not None and times != (moment(day, span[0]), moment(day, span[1]))
    ]


def rehearsal(span: tuple[int, int], rules: Rules) -> tuple[str, str]:
    """Returns start and end of the rehearsal."""
    day = working(rules.cutover - timedelta(days=rules.freeze), -1, rules.holidays)
    return moment(day, span[1]), moment(day, span[1] + 90)


def moment(day: date, minute: int) -> str:
    return f"{day} {minute // 60:02d}:{minute % 60:02d}"


def solve(title: str, first: str, last: str) -> Steps:
    """Reads the rules, the holidays and the changes, lists the series, and puts each entry right."""
    text = yield Step(action=ToolCall("read_file", {"path": "calendar/series_rules.md"}), skill="planning")
    site = re.findall(r"Our site is (\w+)", text["content"])[0]
    days = yield Step(action=ToolCall("read_file", {"path": "calendar/holidays.csv"}), skill="exploration")
    rows = [line.split(",") for line in days["content"].splitlines()[1:]]
    holidays = frozenset(date.fromisoformat(day) for day, _, where in rows if where in (site, "all sites"))
    files = yield Step(action=ToolCall("search_files", {"query": "Status Cut-over"}), skill="exploration")
    paths = sorted((f["path"] for f in files), key=lambda p: (not p.endswith("plan.md"), p))
    cutover = date.min
    for path in paths:
        again = ((ToolCall("read_file", {"path": paths[0]}),),) if path == paths[-2] else ()
        change = yield Step(action=ToolCall("read_file", {"path": path}), skill="consistency", difficulty=0.3, slips=again)
        if "Status: approved" in change["content"]:
            cutover = date.fromisoformat(re.findall(r"Cut-over: (\S+)", change["content"])[0])
    freeze, hour = re.findall(r"from (\d+) days before.*start at\s+(\d\d:\d\d)", text["content"], re.DOTALL)[0]
    shift = next((1, 0, -1)[n] for n, words in enumerate(HOLIDAY) if f"our site {words}" in text["content"])
    rules = Rules(cutover, int(freeze), hour, holidays, shift)

    entries: dict[date, dict[str, str]] = {}
    start = date.fromisoformat(first)
    while start.isoformat() <= last:
        until = min(start + timedelta(days=31), date.fromisoformat(last))
        call = ToolCall("list_events", {"start_date": str(start), "end_date": str(until)})
        events = yield Step(action=call, skill="exploration")
        entries |= {date.fromisoformat(e["start"][:10]): e for e in events if e["title"] == title}
        alike = [e["id"] for e in events if e["title"] != title]
        start = until + timedelta(days=1)
    any_entry = next(iter(entries.values()))
    span = (minute_of(any_entry["start"]), minute_of(any_entry["end"]))
    wanted = targets([*entries], span, rules)
    keep = next(entries[day]["id"] for day, times in wanted.items() if times is not None)
    for day in [day for day, times in wanted.items() if times is None]:
        call = ToolCall("delete_event", {"event_id": entries[day]["id"]})
        slips: list[Slip] = [SKIP, (call, ToolCall("delete_event", {"event_id": keep}))]
        slips += [(call, ToolCall("delete_event", {"event_id": alike[0]}))] if alike else []
        yield Step(action=call, skill="policy", difficulty=0.5, slips=tuple(slips))
    for day, times in moved(wanted, span):
        naive = day + timedelta(days=rules.shift if day in holidays else 0)
        easy = (moment(naive, span[0]), moment(naive, span[1]))
        plain = (moment(day, minute_of(times[0])), moment(day, minute_of(times[1])))
        wrong: list[Slip] = [(moving(entries[day]["id"], t),) for t in (easy, plain) if t != times]
        yield Step(action=moving(entries[day]["id"], times), skill="calculation", difficulty=0.7, slips=(*wrong, SKIP))
    begins, ends = rehearsal(span, rules)
    eve = working(rules.cutover, -1, rules.holidays)
    yield Step(
        action=rehearsing(begins, ends),
        skill="calculation",
        difficulty=0.6,
        slips=((rehearsing(moment(eve, span[1]), moment(eve, span[1] + 90)),), SKIP),
    )
    data: dict[str, Any] = {"cutover": str(cutover), "entries_left": sum(times is not None for times in wanted.values())}
    slip = (Finish(answer="", data={**data, "entries_left": len(wanted)}),)
    yield Step(action=Finish(answer=str(data), data=data), skill="synthesis", slips=(slip,))


def moving(event_id: str, times: tuple[str, str]) -> ToolCall:
    return ToolCall("update_event", {"event_id": event_id, "start": times[0], "end": times[1]})


def rehearsing(start: str, end: str) -> ToolCall:
    return ToolCall("create_event", {"title": "Rollback rehearsal", "start": start, "end": end})


def minute_of(moment: str) -> int:
    return int(moment[11:13]) * 60 + int(moment[14:16])


TASK: Task = Task(
    title="Fit a series of entries around a cut-over",
    category="automation",
    domain="calendar",
    apps=("calendar", "files"),
    languages=("en",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
