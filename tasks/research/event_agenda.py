"""Enter the sessions of a conference that can be attended into the calendar, with the times and rooms that hold by now.

The program is out of date: a list of changes moves, cancels and fills sessions, some of them twice. Events at the office need
time to get there, calls need none, tentative ones do not count, and buildings take a walk. One session is in the calendar
already: it is right, has to be corrected or, in the held-out variant, has to go.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Added, Changed, Grader, Removed, ReportedSet, every, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "I am at {conference} on {first} and {second} with a {badge} badge. Enter the {track} sessions that I can attend into my "
        "calendar. {rules}",
        "Please put the {track} sessions of {conference} ({first} and {second}) that I can get to into my calendar. I have a "
        "{badge} badge. {rules}",
        "Plan {conference} for me, {first} and {second}, {badge} badge: every {track} session that I can attend goes into my "
        "calendar, nothing else. {rules}",
        "{conference} is on {first} and {second}. Which {track} sessions can I attend with a {badge} badge? Enter exactly those "
        "into my calendar. {rules}",
        "Fill my calendar with the {track} sessions of {conference}, {first} and {second}, that fit; badge: {badge}. {rules}",
        "With my {badge} badge for {conference} ({first}, {second}), add the {track} sessions that are possible to my calendar. "
        "{rules}",
    )
}
RULES = (
    "The title is the code of the session, the location its room. What is in my calendar stays, but entries that begin with "
    "Tentative may be overlapped. I need {margin} minutes to travel before and after an event at the office; calls I take where "
    "I am. If sessions clash, the one that starts first wins. If a session is in my calendar already, correct its entry, or "
    "delete it if I cannot attend, instead of adding another."
)
GUIDE = (
    "Badges: Day admits to talks; Full admits to talks and workshops. Tutorials need a ticket of their own.\n"
    "Rooms whose codes begin with the same letter are in one building. Between buildings the walk takes {walk} minutes; sessions "
    "with less time between them clash. Full sessions admit nobody.\n"
)
CONFERENCES = ("Harbor Data Days", "Northern Systems Forum", "Open Logistics Meeting", "City Energy Congress")
TRACKS = ("Planning", "Sensors", "Safety", "Methods")
TITLES = ("What we measured", "Lessons from a pilot", "A year later", "Small steps", "Open questions", "From lab to field")
OFFICE, CALL = "Office, room {n}", "Call"
ADMITS = {"Day": ("talk",), "Full": ("talk", "workshop")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session; times are minutes of a day, `day` is 0 or 1."""

    code: str
    day: int
    start: int
    end: int
    room: str
    kind: str = "talk"
    track: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides: minutes to the office and between buildings, and the kinds of sessions that the badge admits to."""

    margin: int
    walk: int
    kinds: Sequence[str]


Block = tuple[int, int, int]
"""Day, first and last minute that are taken."""


def attend(sessions: Sequence[Session], blocks: Sequence[Block], rules: Rules) -> list[Session]:
    """Returns the sessions that can be attended, in order: those that start first win."""
    taken: list[Session] = []
    for session in sorted(sessions, key=lambda s: (s.day, s.start)):
        free = all(session.day != day or session.end <= first or last <= session.start for day, first, last in blocks)
        if free and session.kind in rules.kinds and all(_apart(other, session, rules.walk) for other in taken):
            taken.append(session)
    return taken


def _apart(earlier: Session, later: Session, walk: int) -> bool:
    gap = 0 if earlier.room[0] == later.room[0] else walk
    return earlier.day != later.day or earlier.end + gap <= later.start


def clock(minutes: int) -> str:
    """Returns a minute of the day as HH:MM."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def build(world: World) -> Plan:
    """Draws a program; variants: the session that is entered already is right, was moved, or was canceled."""
    rng = world.rng
    conference, track, badge = rng.choice(CONFERENCES), rng.choice(TRACKS), rng.choice(("Day", "Full"))
    rules = Rules(margin=rng.choice((20, 30, 40)), walk=rng.choice((10, 15)), kinds=ADMITS[badge])
    first = world.workday(rng.randrange(4, 10))
    first -= timedelta(days=int(first.weekday() == 4))
    days = [first, first + timedelta(days=1)]
    shift = 5 * rng.randrange(3)
    blocks = _calendar(world, days, shift, rules.margin)
    original, current, changes, known = _program(world, track, shift, rules)
    before = next(session for session in original if session.code == known)
    entry = world.calendar.add(known, _at(world, days[before.day], before.start), before.end - before.start, location=before.room)
    _site(world, conference, days, original, changes, rules.walk)

    right = attend(current, blocks, rules)
    parts: list[Grader] = []
    for session in right:
        fields = _fields(session, days)
        if session.code != known:
            parts.append(Added(table="event", fields={**fields, "title": session.code, "attendees": ()}))
        elif session != before:
            parts.append(Changed(table="event", id=entry.id, fields=fields))
    parts += [] if any(session.code == known for session in right) else [Removed(table="event", ids=[entry.id])]
    entered = every(*parts)
    shown = {"first": days[0].isoformat(), "second": days[1].isoformat(), "track": track, "badge": badge}
    return Plan(
        instruction=world.phrase(PHRASINGS, conference=conference, rules=RULES.format(margin=rules.margin), **shown),
        report=(Slot("sessions", "list of the codes of all sessions that I attend"),),
        checks=(
            Check("calendar", 0.8, entered),
            Check("sessions", 0.2, gated(ReportedSet("sessions", [session.code for session in right]), mostly(entered))),
        ),
        solve=partial(solve, conference, track, badge, rules.margin, days),
    )


def _at(world: World, day: date, minutes: int) -> Any:
    return world.moment((day - world.today).days, minutes // 60, minutes % 60)


def _fields(session: Session, days: Sequence[date]) -> dict[str, Any]:
    """Returns what the calendar has to hold of a session."""
    day = days[session.day].isoformat()
    return {"start": f"{day} {clock(session.start)}", "end": f"{day} {clock(session.end)}", "location": session.room}


def _calendar(world: World, days: Sequence[date], shift: int, margin: int) -> list[Block]:
    """Adds the owner's own events and returns what they block."""
    number = world.rng.randrange(2, 30)
    plan = [
        ("Budget round", 0, 660, 720, OFFICE.format(n=number)),
        ("Weekly call", 0, 900, 930, CALL),
        ("Tentative: coffee with the team", 0, 990, 1_050, OFFICE.format(n=number + 1)),
        ("Supplier call", 1, 600 - shift, 615 - shift, CALL),
        ("Review", 1, 840, 900, OFFICE.format(n=number + 2)),
    ]
    blocks = []
    for title, day, first, last, place in plan:
        world.calendar.add(title, _at(world, days[day], first + shift), last - first, location=place)
        away = margin if place != CALL else 0
        blocks += [] if title.startswith("Tentative") else [(day, first + shift - away, last + shift + away)]
    return blocks


def _program(world: World, track: str, shift: int, rules: Rules) -> tuple[list[Session], list[Session], list[str], str]:
    """Draws sessions and changes; returns the program, the track as it is by now, the changes and the code entered already."""
    rng, variant = world.rng, world.variant
    codes = [f"S{number}" for number in rng.sample(range(10, 99), 15)]
    other = rng.choice([t for t in TRACKS if t != track])
    late, near = 5 * rng.randrange(2), 5 * rng.randrange(2)
    plan = [
        (0, 540, 585, "talk", track),
        (0, 585, 625, "talk", track),
        (0, 720 + shift + rules.margin - late, 770 + shift + rules.margin, "talk", track),
        (0, 670, 715, "talk", track),
        (0, 930 + shift - near, 975 + shift, rng.choice(("talk", "workshop")), track),
        (0, 995 + shift, 1_040 + shift, "talk", rng.choice((track, other))),
        (1, 540, 585, "talk", track),
        (1, 740, 785, "talk", track),
        (1, 960, 1_005, "talk", track),
        (1, 1_020, 1_065, rng.choice(("workshop", "tutorial")), track),
        (1, *((545, 590) if variant == 1 else (680, 725)), "talk", track),
        (0, 840, 885, "talk", other),
        (1, 1_080, 1_125, "talk", other),
    ]
    original = [
        Session(
            code=code,
            day=day,
            start=start,
            end=end,
            room=f"{rng.choice('ABC')}{rng.randrange(1, 7)}",
            kind=kind,
            track=name,
            title=rng.choice(TITLES),
        )
        for code, (day, start, end, kind, name) in zip(codes, plan, strict=False)
    ]
    moves = [(3, 830, 875), (6, 620, 665)]
    moves += [(7, 785, 830)] if rng.random() < 0.5 else []
    moves += [(3, 905, 950)] if rng.random() < 0.5 else [(11, 700, 745)]
    moves += [(10, 680, 725)] if variant == 1 else []
    gone = {codes[8], *([codes[10]] if variant == 2 else [])}
    current = {session.code: session for session in original}
    changes = []
    for index, start, end in moves:
        moved = replace(
            current[codes[index]], start=start + shift, end=end + shift, room=f"{rng.choice('ABC')}{rng.randrange(7, 10)}"
        )
        if index in (6, 10):
            moved = replace(moved, start=start, end=end)
        current[moved.code] = moved
        changes.append(f"{moved.code} moves to {clock(moved.start)}-{clock(moved.end)}, room {moved.room}.")
    changes.insert(rng.randrange(len(changes)), f"{codes[8]} is full.")
    changes += [f"{codes[10]} is canceled."] if variant == 2 else []
    return original, [s for s in current.values() if s.track == track and s.code not in gone], changes, codes[10]


def _site(
    world: World, conference: str, days: Sequence[date], original: Sequence[Session], changes: Sequence[str], walk: int
) -> None:
    """Writes the site of the conference, and last year's."""
    web, site = world.web, f"https://{conference.split()[0].lower()}.example"
    links = [("Guide for attendees", f"{site}/guide"), ("Changes", f"{site}/changes")]
    for number, day in enumerate(days):
        rows = sorted((s for s in original if s.day == number), key=lambda s: (s.start, s.code))
        text = "\n".join(
            f"{s.code} | {clock(s.start)}-{clock(s.end)} | {s.room} | {s.track} | {s.kind} | {s.title}" for s in rows
        )
        web.page(f"{site}/day{number + 1}", f"Program of {day}", f"Code | time | room | track | kind | title\n{text}\n")
        links.append((f"Program of {day}", f"{site}/day{number + 1}"))
    web.page(f"{site}/guide", "Guide for attendees", GUIDE.format(walk=walk))
    shown = "\n".join(f"{number}. {text}" for number, text in enumerate(changes, 1))
    web.page(
        f"{site}/changes", "Changes to the program", f"Sessions stay on their day. The latest change is at the end.\n{shown}\n"
    )
    web.page(site, conference, "Two days of talks, workshops and tutorials. See the changes before you come.", links=links)
    old = "\n".join(f"{s.code} | 09:00-09:45 | {s.room} | {s.track} | talk | {s.title}" for s in original[:4])
    web.page("https://archive.example/program", f"{conference}: program of last year", old)
    web.noise(3)


def solve(conference: str, track: str, badge: str, margin: int, days: Sequence[date]) -> Steps:
    """Reads guide, program and changes, then the calendar, and enters, corrects or deletes what follows."""
    found = yield Step(action=ToolCall("search_web", {"query": conference}), skill="planning")
    urls = {hit["title"]: hit["url"] for hit in found["results"]}
    home = urls[conference]
    archive = next(url for url in urls.values() if url != home)
    page = yield Step(action=_open(home), skill="exploration", slips=((_open(archive),),))
    links = {link["text"]: link["url"] for link in page["links"]}
    guide = (yield Step(action=_open(links["Guide for attendees"]), skill="exploration"))["text"]
    walk = int(re.findall(r"walk takes (\d+) minutes", guide)[0])
    rules = Rules(margin=margin, walk=walk, kinds=ADMITS[badge])
    program: list[Session] = []
    for number, day in enumerate(days):
        text = (yield Step(action=_open(links[f"Program of {day}"]), skill="exploration"))["text"]
        program += sessions_of(text, number)
    skipped = (_open(links["Guide for attendees"]),)
    notes = (yield Step(action=_open(links["Changes"]), skill="consistency", difficulty=0.2, slips=(skipped,)))["text"]
    current = changed(program, notes)
    blocks, entries = yield from _blocks(days, {s.code for s in program}, margin)
    right = attend([s for s in current if s.track == track], blocks, rules)
    before = {session.code: session for session in program}
    naive = attend([s for s in program if s.track == track], blocks, replace(rules, walk=0))
    over = [s for s in naive if s.code not in {r.code for r in right} and s.code not in entries]
    for index, session in enumerate(right):
        yield from _enter(session, before[session.code], days, entries, over[index : index + 1])
    for code, event_id in entries.items():
        if code not in {session.code for session in right}:
            drop = ToolCall("delete_event", {"event_id": event_id})
            yield Step(action=drop, skill="instruction", difficulty=0.4, slips=(SKIP,))
    codes = [session.code for session in right]
    wrong = [session.code for session in naive]
    ends: tuple[Slip, ...] = ((Finish(answer="", data={"sessions": codes[:-1]}),),)
    ends = (*ends, (Finish(answer="", data={"sessions": wrong}),)) if set(wrong) != set(codes) else ends
    yield Step(action=Finish(answer=", ".join(codes), data={"sessions": codes}), skill="synthesis", slips=ends)


def _enter(
    session: Session, before: Session, days: Sequence[date], entries: Mapping[str, str], over: Sequence[Session]
) -> Generator[Step, Any, None]:
    """Adds or corrects the entry of one session; slips keep the old time, leave it out, or add one that cannot be attended."""
    fields, old = _fields(session, days), _fields(before, days)
    if session.code in entries:
        if session != before:
            call = ToolCall("update_event", {"event_id": entries[session.code], **fields})
            again = ToolCall("create_event", {"title": session.code, **fields})
            yield Step(action=call, skill="instruction", difficulty=0.4, slips=((again,), SKIP))
        return
    title = {"title": session.code}
    call = ToolCall("create_event", {**title, **fields})
    slips: list[Slip] = [(ToolCall("create_event", {**title, **old}),)] if old != fields else []
    slips += [(call, ToolCall("create_event", {"title": s.code, **_fields(s, days)})) for s in over]
    yield Step(action=call, skill="calculation", difficulty=0.4, slips=(*slips, SKIP))


def _open(url: str) -> ToolCall:
    return ToolCall("open_page", {"url": url})


def sessions_of(text: str, day: int) -> list[Session]:
    """Reads the program of one day."""
    found = []
    for line in text.splitlines()[1:]:
        code, span, room, track, kind, title = line.split(" | ")
        first, last = (int(part[:2]) * 60 + int(part[3:]) for part in span.split("-"))
        found.append(Session(code=code, day=day, start=first, end=last, room=room, kind=kind, track=track, title=title))
    return found


def changed(program: Sequence[Session], notes: str) -> list[Session]:
    """Returns the sessions that are left, as the changes leave them."""
    current = {session.code: session for session in program}
    for code, rest in re.findall(r"\d+\. (S\d+) (.+)", notes):
        if found := re.findall(r"moves to (\d\d):(\d\d)-(\d\d):(\d\d), room (\w+)\.", rest):
            h1, m1, h2, m2 = (int(part) for part in found[0][:4])
            current[code] = replace(current[code], start=h1 * 60 + m1, end=h2 * 60 + m2, room=found[0][4])
        else:
            current.pop(code, None)
    return list(current.values())


def _blocks(days: Sequence[date], codes: set[str], margin: int) -> Generator[Step, Any, tuple[list[Block], dict[str, str]]]:
    """Opens the events of the days; returns what they block, and the entries of sessions by code."""
    span = {"start_date": days[0].isoformat(), "end_date": days[1].isoformat()}
    events = yield Step(action=ToolCall("list_events", span), skill="exploration")
    blocks: list[Block] = []
    entries: dict[str, str] = {}
    for row in events:
        if row["title"].split()[0] in codes:
            entries[row["title"].split()[0]] = row["id"]
        elif not row["title"].startswith("Tentative"):
            event = yield Step(action=ToolCall("get_event", {"event_id": row["id"]}), skill="exploration")
            away = margin if event["location"].startswith("Office") else 0
            first, last = (int(event[key][11:13]) * 60 + int(event[key][14:16]) for key in ("start", "end"))
            blocks.append((days.index(date.fromisoformat(event["start"][:10])), first - away, last + away))
    return blocks, entries


TASK: Task = Task(
    title="Enter the sessions that can be attended",
    category="search",
    domain="research",
    apps=("web", "calendar"),
    languages=("en",),
    patterns=("superseded sources", "rules stored as data", "near miss at a limit", "distractors", "send, draft, ask or nothing"),
    build=build,
    variants=3,
    annotated=False,
)
