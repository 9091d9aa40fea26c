"""Agree by mail on a call with two people on other clocks, one of whom may contradict himself.

Both answer in local time. Whether summer time holds on a day is in a mail that replaces last year's, and the change lies within a
day of the call. An answer whose weekday and date do not match (or, held out, whose window ends before it begins) has to be asked
about; in the variant where both are clear, a second question is one too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Booked, Posted, Reported, every, gated, removed, whole
from ec2_env.task import SKIP, Check, Forbidden, Grading, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.apps.mail import Mail, stamp
from ec2_env.workspace.store import Change, Reaction, Workspace
from ec2_env.workspace.world import Person, World

PHRASINGS = {
    "en": (
        "Set up the 60-minute committee call with {a} ({here}) and {b} ({there}) on a day from {first} to {last}.",
        "The committee call, 60 minutes with {a} in {here} and {b} in {there}, has to take place between {first} and {last}.",
        "Please arrange an hour's committee call with {a} ({here}) and {b} ({there}), some day from {first} to {last}.",
        "I need 60 minutes on the phone with {a} from {here} and {b} from {there} for the committee, {first} to {last}.",
        "Find an hour between {first} and {last} for the committee call with {a} ({here}) and {b} ({there}), and book it.",
        "{a} ({here}) and {b} ({there}) join a 60-minute committee call with me between {first} and {last}. Please fix it.",
    )
}
ENDING = (
    " Ask both for their times by mail first; they answer in their local time. The clocks of all places are in a mail from the "
    "secretariat. If an answer contradicts itself, ask again in reply to it instead of guessing, but not without need. Nothing "
    'in my calendar moves. Invite the two, and confirm to each in a mail of its own with one line "Start: YYYY-MM-DD HH:MM" in '
    "that person's local time."
)
TOWNS = ("Corvane", "Nerine", "Maravelle", "Tessaly", "Ostrell", "Branmoor")
CLOCK = "{town}: UTC{offset:+d}, summer time (one hour more) from {begin} to {end}, both days included."
OFFER = "Thank you for asking. Within these times (my local time) any hour suits me:\n\n{times}\n\n{who}"
CLEAR = "Sorry, that was a slip. I meant:\n\n{times}\n\nThe other times stand.\n\n{who}"
WINDOW = re.compile(r"(\w+day), (\d{4}-\d\d-\d\d), (\d\d):(\d\d) to (\d\d):(\d\d)")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Clock:
    """A town's offset to UTC in hours, and the first and last day of its summer time."""

    offset: int
    begin: date
    end: date

    def shift(self, day: date, ours: int) -> int:
        """Returns how many minutes the town is ahead of our clock on a day."""
        return 60 * (self.offset + (self.begin <= day <= self.end) - ours)


@dataclass(frozen=True, slots=True)
class Asked:
    """Mails that had to be sent before the booking: one to each person (or one to both), and a reply to one person's answer.

    Attributes:
        people: Addresses of those who had to be asked.
        again: Address of the one who had to be asked again; empty for nobody.
    """

    people: Sequence[str]
    again: str

    def __call__(self, state: Grading) -> float:
        left, again = {*self.people}, {self.again} - {""}
        parts = len(left) + len(again)
        came = {c.id: c.after.sender for c in state.workspace.journal if c.author == "world" and c.table == "mail"}
        booked = next((i for i, c in enumerate(state.changes) if c.table == "event" and c.kind == "added"), len(state.changes))
        for index, change in state.unclaimed():
            mail = change.after
            sent = index < booked and change.table == "mail" and change.kind == "added" and mail.folder == "sent"
            if not sent or not {*mail.to, *mail.cc} <= {*self.people}:
                continue
            if left & {*mail.to}:
                state.claimed.add(index)
                left -= {*mail.to}
            elif again & {*mail.to} and came.get(mail.source or "") in again:
                state.claimed.add(index)
                again = set()
        return 1 - (len(left) + len(again)) / parts


def build(world: World) -> Plan:
    """Draws the clocks, the three days, the hour that fits, and what the two will answer."""
    rng = world.rng
    monday = world.day(14 - world.today.weekday())
    days = [monday + timedelta(days=n) for n in sorted(rng.sample(range(5), 3))]
    good, other, full = rng.sample(days, 3)
    start, late = rng.randrange(600, 841, 30), rng.randrange(600, 781, 30)
    ours = rng.randrange(0, 3)
    people = [world.person(firm=world.firm(), role="delegate") for _ in range(2)]
    towns = rng.sample(TOWNS, 5)
    clocks = [draw_clock(world, ours, good) for _ in towns]
    world.mail.noise(4)
    write_clocks(world, towns, clocks, ours, good)

    odd = rng.randrange(2)
    shifts = [partial(clock.shift, ours=ours) for clock in clocks[:2]]
    say = [partial(spoken, shift=shift) for shift in shifts]
    wide = [(start - 60, start + 60), (start, start + 120)]
    rng.shuffle(wide)
    plain = say[1 - odd]
    steady = [plain(day, *wide[0]) for day in (good, other)] + [plain(full, late + 30, late + 120)]
    meant = say[odd](good, *wide[1])
    first = [meant, say[odd](full, late, late + 90)]
    if world.variant == 0:
        named, dated = rng.sample((good, other), 2)
        first[0] = meant.replace(str(good), str(dated)).replace(WEEKDAYS[good.weekday()], WEEKDAYS[named.weekday()])
    elif world.variant == 2:
        first[0] = say[odd](good, wide[1][1], wide[1][0])
    reactions = []
    for index, person in enumerate(people):
        text = f"Dear {world.me.name},\nbefore our committee meets I should like to talk.\n{person.name}, {towns[index]}"
        world.mail.receive(person, "Committee call", text, at=world.moment(-rng.randrange(1, 6)))
        offered = first if index == odd else steady
        body = OFFER.format(times="\n".join(f"- {line}" for line in sorted(offered, key=lambda t: t[-30:])), who=person.name)
        reactions.append(Reaction(partial(writes, person.email, False), answer(world, person, body)))
    if world.variant != 1:
        body = CLEAR.format(times=f"- {meant}", who=people[odd].name)
        reactions.append(Reaction(partial(writes, people[odd].email, True), answer(world, people[odd], body)))
    world.mail.noise(3)
    fill_calendar(world, good, full, start, late)

    emails = [person.email for person in people]
    again = people[odd] if world.variant != 1 else None
    here = moment(good, start)
    event = Booked(here, moment(good, start + 60), emails, world.me.email)
    confirmed = [
        Posted(to={person.email}, lines={"Start": moment(good, start + shift(good))})
        for person, shift in zip(people, shifts, strict=True)
    ]
    asked = Asked(emails, again.email if again else "")
    return Plan(
        instruction=world.phrase(
            PHRASINGS, a=people[0].name, b=people[1].name, here=towns[0], there=towns[1], first=days[0], last=days[-1]
        )
        + ENDING,
        report=(
            Slot("start", "start in our time, YYYY-MM-DD HH:MM"),
            Slot("asked_again", "full name of the person who had to be asked again, or nobody"),
        ),
        checks=(
            Check("asked", 0.2, gated(asked, event)),
            Check("booked", 0.35, gated(event, asked)),
            Check("confirmed", 0.3, gated(whole(every(*confirmed)), event, asked)),
            Check("reports_start", 0.1, gated(Reported("start", here), event, asked)),
            Check("reports_asked_again", 0.05, gated(Reported("asked_again", again.name if again else "nobody"), event, asked)),
        ),
        forbidden=(Forbidden("entry_deleted", removed("event", [*world.workspace.rows("event")])),),
        reactions=tuple(reactions),
        solve=partial(
            solve, (people[0].name, people[1].name), (towns[0], towns[1]), str(days[0]), str(days[-1]), str(world.today)
        ),
    )


def draw_clock(world: World, ours: int, day: date) -> Clock:
    """Draws a clock whose summer time begins or ends within a day of the call."""
    rng = world.rng
    offset = ours + rng.choice((-5, -4, -3, 3, 4, 5))
    edge = day + timedelta(days=rng.randrange(2))
    if rng.random() < 0.5:
        return Clock(offset, edge, edge + timedelta(days=190))
    return Clock(offset, edge - timedelta(days=190), edge - timedelta(days=1))


def write_clocks(world: World, towns: Sequence[str], clocks: Sequence[Clock], ours: int, good: date) -> None:
    """Sends the list of clocks in force, and before it one by which summer time is the other way round on the day of the call."""
    office = world.person(role="secretariat")
    stale = []
    for clock in clocks:
        near = abs((clock.begin - good).days) < 5
        change = timedelta(days=1 if (clock.begin if near else clock.end + timedelta(days=1)) <= good else -1)
        wrong = (
            Clock(clock.offset, clock.begin + change, clock.end) if near else Clock(clock.offset, clock.begin, clock.end + change)
        )
        stale.append(wrong)
    for name, listed, ago in (("previous list", stale, 60), ("list in force", clocks, 9)):
        lines = [
            CLOCK.format(town=town, offset=clock.offset, begin=clock.begin, end=clock.end)
            for town, clock in zip(towns, listed, strict=True)
        ]
        lines.append(f"Our office: UTC{ours:+d} all year.")
        text = "Clocks of the committee's places:\n\n" + "\n".join(lines) + "\n\nThis replaces every earlier list."
        world.mail.receive(office, f"Clocks, {name}" if ago < 30 else "Clocks", text, at=world.moment(-ago))


def fill_calendar(world: World, good: date, full: date, start: int, late: int) -> None:
    """Adds entries: one right before and one right after the hour that fits, and one in the way on another day."""
    titles = world.rng.sample(("Budget review", "Editors' meeting", "Planning", "Reading time (flexible)", "Site visit"), 4)
    world.calendar.add(titles[0], at(good, start - 45), 45)
    world.calendar.add(titles[1], at(good, start + 60), 30)
    world.calendar.add(titles[2], at(full, late + 45), 30)
    world.calendar.add(titles[3], at(full, late + 180), 60)


def writes(address: str, again: bool, workspace: Workspace, change: Change) -> bool:
    """Says whether a change is a mail sent to an address; `again` asks that the person has answered before."""
    mail = change.after
    if change.table != "mail" or change.kind != "added" or mail.folder != "sent" or address not in (*mail.to, *mail.cc):
        return False
    return not again or any(c.author == "world" and c.after.sender == address for c in workspace.journal)


def answer(world: World, sender: Person, body: str) -> Callable[[Workspace], None]:
    """Returns an effect that puts an answer into the inbox."""

    def effect(workspace: Workspace) -> None:
        number, day = workspace.new_id("mail"), stamp(workspace.now)
        me = (world.me.email,)
        mail = Mail(id=number, folder="inbox", sender=sender.email, to=me, subject="Re: Committee call", body=body, date=day)
        workspace.put("mail", mail)

    return effect


Window = tuple[date, int, int]
"""A day and two minutes of it."""


def read_windows(text: str) -> tuple[list[Window], list[Window]]:
    """Returns the windows of an answer, in local time: those that make sense, and those that contradict themselves."""
    clear: list[Window] = []
    odd: list[Window] = []
    for name, day, a, b, c, d in WINDOW.findall(text):
        window = (date.fromisoformat(day), int(a) * 60 + int(b), int(c) * 60 + int(d))
        fits = WEEKDAYS[window[0].weekday()] == name and window[1] < window[2]
        (clear if fits else odd).append(window)
    return clear, odd


def solve(names: tuple[str, str], towns: tuple[str, str], first: str, last: str, today: str) -> Steps:
    """Reads the clocks, asks both, asks again where an answer is not clear, books and confirms."""
    lists = yield Step(action=ToolCall("search_mail", {"query": "clocks committee"}), skill="planning")
    text = yield Step(
        action=ToolCall("read_mail", {"mail_id": lists[0]["id"]}),
        skill="consistency",
        slips=((ToolCall("read_mail", {"mail_id": lists[-1]["id"]}),),),
    )
    ours = int(re.findall(r"Our office: UTC([+-]\d+)", text["body"])[0])
    clocks = [clock_of(town, text["body"]) for town in towns]
    events = yield Step(action=ToolCall("list_events", {"start_date": first, "end_date": last}), skill="exploration")
    taken = [(e["start"], e["end"]) for e in events]
    mails: list[str] = []
    emails: list[str] = []
    offered: list[list[Window]] = []
    unclear = ""
    for name in names:
        local_part = name.lower().replace(" ", ".")
        hits = yield Step(action=ToolCall("search_mail", {"query": f"{name} call"}), skill="exploration")
        found = [m for m in hits if local_part in f"{m['from']} {m['to']}"]
        received = [m for m in found if m["folder"] == "inbox"]
        request = [m for m in received if m["date"] < today][-1]
        if not any(m["folder"] == "sent" for m in found) and len(received) < 2:
            yield Step(action=asking(request["id"], f"{first} to {last}?"), skill="planning", slips=(SKIP,))
            hits = yield Step(action=ToolCall("search_mail", {"query": f"{name} call"}), skill="exploration")
            found = [m for m in hits if m["from"] == request["from"]]
        answers = [m for m in reversed(found) if m["folder"] == "inbox" and m["date"] >= today]
        shown = yield Step(action=ToolCall("read_mail", {"mail_id": answers[0]["id"]}), skill="exploration")
        clear, odd = read_windows(shown["body"])
        if odd:
            unclear = name
            guess = (ToolCall("search_mail", {"query": f"{name} call"}),)
            if len(answers) < 2:
                ask = asking(answers[0]["id"], "Which one?")
                yield Step(action=ask, skill="consistency", difficulty=0.9, slips=(SKIP, guess))
                hits = yield Step(action=ToolCall("search_mail", {"query": f"{name} call"}), skill="exploration")
                found = [m for m in hits if m["from"] == request["from"]]
                answers = [m for m in reversed(found) if m["folder"] == "inbox" and m["date"] >= today]
            later = yield Step(action=ToolCall("read_mail", {"mail_id": answers[-1]["id"]}), skill="exploration")
            guessed = [(day, min(a, b), max(a, b)) for day, a, b in odd]
            clear += read_windows(later["body"])[0] if len(answers) > 1 else guessed
        mails.append(request["id"])
        emails.append(shown["from"])
        offered.append(clear)
    here = [[local(window, clock, ours) for window in windows] for windows, clock in zip(offered, clocks, strict=True)]
    day, start = common(here[0], here[1], taken)
    shifts = [clock.shift(day, ours) for clock in clocks]
    book = partial(booking, emails)
    yield Step(
        action=book(day, start),
        skill="calculation",
        difficulty=0.8,
        slips=((book(day, start + 60),), (book(day, start + shifts[0]),)),
    )
    for mail_id, shift in zip(mails, shifts, strict=True):
        wrong = (confirming(mail_id, moment(day, start + shift - 60)), confirming(mail_id, moment(day, start - shift)))
        yield Step(
            action=confirming(mail_id, moment(day, start + shift)),
            skill="calculation",
            difficulty=0.5,
            slips=((wrong[0],), (wrong[1],), SKIP),
        )
    data = {"start": moment(day, start), "asked_again": unclear or "nobody"}
    slip = (Finish(answer="", data={**data, "asked_again": names[0] if unclear != names[0] else names[1]}),)
    yield Step(action=Finish(answer=moment(day, start), data=data), skill="synthesis", slips=(slip,))


def clock_of(town: str, text: str) -> Clock:
    offset, begin, end = re.findall(rf"{town}: UTC([+-]\d+), .* from (\S+) to (\S+), both", text)[0]
    return Clock(int(offset), date.fromisoformat(begin), date.fromisoformat(end))


def local(window: Window, clock: Clock, ours: int) -> Window:
    """Returns a window of a town on our clock."""
    shift = clock.shift(window[0], ours)
    return window[0], window[1] - shift, window[2] - shift


def common(one: Sequence[Window], two: Sequence[Window], taken: Sequence[tuple[str, str]]) -> tuple[date, int]:
    """Returns the first hour that lies in a window of both and in nothing that is taken."""
    for day, a, b in sorted(one):
        for start in range(a, b - 59, 15):
            spans = [(moment(day, start), moment(day, start + 60))]
            inside = any(d == day and c <= start and start + 60 <= e for d, c, e in two)
            if inside and not any(s < end and begin < e for begin, end in taken for s, e in spans):
                return day, start
    raise LookupError("no hour suits both")


def asking(mail_id: str, text: str) -> ToolCall:
    return ToolCall("reply_mail", {"mail_id": mail_id, "body": f"Committee call, {text}"})


def booking(emails: Sequence[str], day: date, start: int) -> ToolCall:
    times = {"start": moment(day, start), "end": moment(day, start + 60)}
    return ToolCall("create_event", {"title": "Committee call", **times, "attendees": [*emails]})


def confirming(mail_id: str, start: str) -> ToolCall:
    return ToolCall("reply_mail", {"mail_id": mail_id, "body": f"Start: {start}"})


def spoken(day: date, start: int, end: int, *, shift: Callable[[date], int]) -> str:
    """Writes a window on somebody's own clock."""
    a, b = start + shift(day), end + shift(day)
    return f"{WEEKDAYS[day.weekday()]}, {day}, {a // 60:02d}:{a % 60:02d} to {b // 60:02d}:{b % 60:02d}"


def at(day: date, minute: int) -> datetime:
    return datetime(day.year, day.month, day.day) + timedelta(minutes=minute)


def moment(day: date, minute: int) -> str:
    return stamp(at(day, minute))


TASK: Task = Task(
    title="Agree on a call over changing clocks",
    category="office",
    domain="calendar",
    apps=("mail", "calendar"),
    languages=("en",),
    patterns=(
        "reactive people",
        "ask before acting",
        "superseded sources",
        "near miss at a limit",
        "recovery after a failure",
    ),
    build=build,
    variants=3,
    annotated=False,
)
