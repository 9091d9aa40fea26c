"""Say which teams are over their headcount plan on a day, with leaves and starters counted.

The staff are on one sheet, the plan, which changes on certain days, on another; leaves and first days are in the calendar, by
address; the address book says whose it is, and which team a starter joins. Days and lengths lie at the limits of the rules, and
one starter is on the sheet already. Salaries stand beside what is needed and need not be read. In one variant shares of full
time are added up, in the held-out one interns do not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import ReportedMap, ReportedSet, gated, whole
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import Person, World

PHRASINGS = {
    "en": (
        "Which teams are over their headcount plan on {day}? The spreadsheet {book} has plan and staff, my calendar the leaves.",
        "Please find out which teams of {book} exceed the plan on {day}; leaves and first days are in my calendar.",
        "For {day}: compare each team's headcount with the plan in {book}, by its Notes, and name the teams over plan.",
        "I need to know who is over plan on {day}. See {book} (mind the Notes) and the calendar for leaves and starters.",
        "Check the headcount of all teams in {book} as of {day}, leaves and new starters included, and list those over plan.",
        "Which teams in {book} have more people than planned on {day}? Notes says what counts, my calendar who is away.",
    )
}
TEAMS = ("Engineering", "Finance", "Legal", "Marketing", "Operations", "Sales", "Support")
MEETINGS = ("Budget round", "Town hall", "Fire drill", "Design review")


@dataclass(slots=True)
class Member:
    """Somebody of a team; the dates are the first and the last day of work, the last one None if open."""

    person: Person
    team: str
    kind: str
    share: float
    first: date
    last: date | None = None


def build(world: World) -> Plan:
    """Draws four teams, the plan, leaves around the day and starters."""
    rng = world.rng
    book = f"Workforce {world.firm().name.split(' ')[0]}"
    day = world.day(rng.randrange(4, 25))
    teams = rng.sample(TEAMS, 4)
    long = rng.randrange(11, 21)
    staff = draw_staff(world, teams, day)
    special = rng.sample(staff, 7)
    special[0].last, special[1].last = day, day - timedelta(days=1)
    special[2].first, special[3].first = day + timedelta(days=1), day
    special[4].kind = special[6].kind = "staff"
    away = leaves(world, special[4:], day, long)
    others = [team for team in teams if team != special[4].team]
    starters = [Member(world.person(role=role, department=rng.choice(others)), "", kind, 1.0, day) for role, kind in ROLES]
    starters[1].first = day + timedelta(days=rng.choice((-2, 1)))
    for member in (*starters, special[3]):
        if member.first <= day + timedelta(days=2):
            first = datetime(member.first.year, member.first.month, member.first.day, 9)
            world.calendar.add("First day", first, 60, attendees=[member.person])
    for title in rng.sample(MEETINGS, 3):
        world.calendar.add(title, world.moment((day - world.today).days - rng.randrange(6)), 60)
    for member in (*special[3:], *starters):
        world.contacts.add(
            member.person,
            phone=world.secret("phone", owner=member.person),
            home_address=world.secret("home_address", owner=member.person),
        )
    world.contacts.noise(3)
    for starter in starters:
        starter.team = starter.person.department
    present = [m for m in (*staff, *starters) if m.first <= day and (m.last is None or m.last >= day) and m not in away]
    counted = {team: counts([(m.kind, m.share) for m in present if m.team == team], world.variant) for team in teams}
    over = write_sheets(world, book, staff, counted, day, long)
    headcount = ReportedMap("headcount", counted)
    return Plan(
        instruction=world.phrase(PHRASINGS, book=book, day=day.isoformat()),
        report=(
            Slot("headcount", "object from each team to what counts against its plan, a number"),
            Slot("over", "list of the teams over plan"),
        ),
        checks=(
            Check("reports_headcount", 0.6, headcount),
            Check("reports_over", 0.4, gated(whole(ReportedSet("over", over)), headcount)),
        ),
        solve=partial(solve, book, day.isoformat()),
    )


ROLES = (("analyst", "staff"), ("intern", "intern"))


def draw_staff(world: World, teams: Sequence[str], day: date) -> list[Member]:
    """Returns three or four people for each team, two of them interns."""
    rng = world.rng
    staff = []
    for place in range(14):
        person = world.person(department=teams[place % 4])
        kind = "intern" if place in (3, 8) else "staff"
        share = rng.choice((1.0, 1.0, 0.8, 0.5))
        staff.append(Member(person, teams[place % 4], kind, share, day - timedelta(days=rng.randrange(60, 2_000))))
    return staff


def leaves(world: World, members: Sequence[Member], day: date, long: int) -> list[Member]:
    """Enters three leaves and returns who is away: one that is just long enough, one too short, one that ends around the day."""
    rng = world.rng
    ended = rng.random() < 0.5
    spans = (
        (day - timedelta(days=rng.randrange(2, long - 1)), long),
        (day - timedelta(days=rng.randrange(2, long - 1)), long - 1),
        (day - timedelta(days=long + ended), long + 1),
    )
    for member, (start, days) in zip(members, spans, strict=True):
        note = f"Away because of {world.secret('health', owner=member.person)}."
        begin = datetime(start.year, start.month, start.day, 8)
        world.calendar.add("Leave", begin, (days - 1) * 1440 + 600, attendees=[member.person], notes=note)
    return [members[0]] if ended else [members[0], members[2]]


def counts(members: Sequence[tuple[str, float]], variant: int) -> float:
    """Returns what (kind, share) pairs count: heads, shares of full time (variant 1), or heads without interns (variant 2)."""
    if variant == 1:
        return round(sum(share for _, share in members), 1)
    return float(sum(1 for kind, _ in members if kind != "intern" or variant == 0))


def write_sheets(
    world: World, book: str, staff: Sequence[Member], counted: Mapping[str, float], day: date, long: int
) -> list[str]:
    """Writes notes, plan, an old draft of it and staff, and returns the teams over plan."""
    rng = world.rng
    rule = (
        "Every person counts as 1, whatever the share.",
        "A person counts with the share of full time; starters count 1.",
        "Every person counts as 1, but interns do not count.",
    )[world.variant]
    notes = [
        "The plan of a team is the row with the latest From that is not after the day in question.",
        rule,
        "First and last day of work both count. Starters may be missing on Staff: the calendar has their First day, the address "
        "book their team and role.",
        f"Whoever is on leave on the day does not count if the leave has {long} days or more, first and last day included. "
        "No leave is longer than 30 days.",
        "A team is over plan if more count than planned.",
    ]
    world.sheets.add(book, "Notes", [[text] for text in notes])
    gaps = rng.sample((0.5 if world.variant == 1 else 1, 0, -1, rng.choice((1, 0))), 4)
    froms = rng.sample((0, 1, -rng.randrange(5, 40), -rng.randrange(5, 40)), 4)
    plan, draft, over = [], [], []
    for (team, count), gap, start in zip(counted.items(), gaps, froms, strict=True):
        due, other = count - gap, count - gap + rng.choice((-1, 1, 2))
        past, coming = (other, due) if start <= 0 else (due, other)
        steps = ((day - timedelta(days=rng.randrange(60, 120)), past), (day + timedelta(days=start), coming))
        plan += [(team, since.isoformat(), f"{heads:g}") for since, heads in steps]
        draft += [(team, since.isoformat(), f"{heads + 3:g}") for since, heads in steps]
        over += [team] if gap > 0 else []
    world.sheets.add(book, "Plan", [["Team", "From", "Planned"], *plan])
    world.sheets.add(book, "Plan (draft)", [["Team", "From", "Planned"], *draft])
    header = ["Name", "Team", "Kind", "Share", "First day", "Last day", "Salary"]
    rows = []
    for m in staff:
        last = m.last.isoformat() if m.last else ""
        salary = world.secret("salary", owner=m.person)
        rows.append([m.person.name, m.team, m.kind, f"{m.share:g}", m.first.isoformat(), last, salary])
    world.sheets.add(book, "Staff", [header, *rows])
    world.sheets.noise(1)
    return over


def solve(book: str, day: str) -> Steps:
    """Reads the rules, the plan, the staff without salaries, and whom the calendar takes away or adds; then compares."""
    listed = yield Step(action=ToolCall("list_sheets", {"spreadsheet": book}), skill="planning")
    ids = {sheet["title"]: sheet["id"] for sheet in listed}
    notes = yield Step(action=ToolCall("read_range", {"sheet_id": ids["Notes"]}), skill="policy")
    text = "\n".join(row[0] for row in notes["values"])
    variant = 1 if "share of full time" in text else 2 if "interns do not" in text else 0
    long = int(re.findall(r"has (\d+) days or more", text)[0])
    plan = yield Step(
        action=ToolCall("read_range", {"sheet_id": ids["Plan"]}),
        skill="disambiguation",
        slips=((ToolCall("read_range", {"sheet_id": ids["Plan (draft)"]}),),),
    )
    head = yield Step(action=ToolCall("read_range", {"sheet_id": ids["Staff"], "range": "1:1"}), skill="planning")
    last = "ABCDEFG"[head["values"][0].index("Salary") - 1]
    shown = yield Step(action=ToolCall("read_range", {"sheet_id": ids["Staff"], "range": f"A:{last}"}), skill="exploration")
    staff = {row[0]: row for row in shown["values"][1:]}
    start = (date.fromisoformat(day) - timedelta(days=30)).isoformat()
    events = yield Step(
        action=ToolCall("list_events", {"start_date": start, "end_date": day}),
        skill="exploration",
        difficulty=0.3,
        slips=((ToolCall("list_events", {"start_date": day, "end_date": day}),),),
    )
    away, new = set(), dict[str, tuple[str, str]]()
    gone = [event for event in events if is_long(event, day, long)]
    started = [event for event in events if event["title"] == "First day"]
    for listing in (*gone, *started):
        event = yield Step(
            action=ToolCall("get_event", {"event_id": listing["id"]}),
            skill="exploration",
            slips=((ToolCall("get_event", {"event_id": started[0]["id"]}),),) if listing in gone else (),
        )
        hits = yield Step(action=ToolCall("search_contacts", {"query": event["attendees"][0]}), skill="consistency")
        card = hits[0]
        if is_long(event, day, long):
            away.add(card["name"])
        elif card["name"] not in staff:
            new[card["name"]] = (card["department"], card["role"])
    teams = list(dict.fromkeys(row[0] for row in plan["values"][1:]))
    planned = {row[0]: float(row[2]) for row in sorted(plan["values"][1:], key=lambda row: row[1]) if row[1] <= day}
    present = [(row[1], row[2], float(row[3]), name) for name, row in staff.items() if row[4] <= day and (row[5] or day) >= day]
    joined = [(team, role, 1.0, name) for name, (team, role) in new.items()]
    found = by_team(teams, [member for member in present + joined if member[3] not in away], variant)
    data = report(found, planned)
    yield Step(
        action=Finish(answer=", ".join(data["over"]), data=data),
        skill="calculation",
        difficulty=1.0,
        slips=(
            (Finish(answer="", data=report(by_team(teams, present + joined, variant), planned)),),
            (Finish(answer="", data=report(by_team(teams, [m for m in present if m[3] not in away], variant), planned)),),
            (Finish(answer="", data={**data, "over": [team for team in teams if found[team] >= planned[team]]}),),
        ),
    )


def is_long(event: Mapping[str, Any], day: str, long: int) -> bool:
    """Says whether an event is a leave that covers a day and has at least `long` days."""
    start, end = event["start"][:10], event["end"][:10]
    days = (date.fromisoformat(end) - date.fromisoformat(start)).days + 1
    return bool(event["title"] == "Leave" and start <= day <= end and days >= long)


def by_team(teams: Sequence[str], members: Sequence[tuple[str, str, float, str]], variant: int) -> dict[str, float]:
    """Returns what counts for each team; members are (team, kind, share, name)."""
    return {team: counts([(kind, share) for t, kind, share, _ in members if t == team], variant) for team in teams}


def report(found: Mapping[str, float], planned: Mapping[str, float]) -> dict[str, Any]:
    """Returns the data to report."""
    return {"headcount": dict(found), "over": [team for team in found if found[team] > planned[team]]}


TASK: Task = Task(
    title="Find the teams that are over their headcount plan",
    category="data",
    domain="research",
    apps=("sheets", "contacts", "calendar"),
    languages=("en",),
    patterns=(
        "join under different keys",
        "rules stored as data",
        "near miss at a limit",
        "superseded sources",
        "distractors",
        "data minimization",
    ),
    build=build,
    variants=3,
)
