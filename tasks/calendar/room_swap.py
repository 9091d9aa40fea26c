"""Move the meetings of a closed floor to other rooms, at the lowest cost in all.

Who has to move follows from the hours in a notice that a later one extends; where to, from seats, equipment, what the other rooms
are booked for, and what a move costs: people times floors, and empty seats. Of two meetings at the same time, the larger one has
to leave the room that is best for it to the other. A plan that keeps the rules earns the lowest cost as a share of its own, one
that breaks them nothing. What becomes of a meeting without a room is the variant: online, canceled, or (held out) a day later.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Changed, Grader, Removed, Reported, ReportedSet, gated
from ec2_env.task import SKIP, Check, Forbidden, Grading, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "{day}，{floor}楼部分时段停用，请按“会议室”文件夹里的通知和规则，把受影响的会议挪到别的会议室。",
        "{floor}楼会议室{day}要停用，麻烦依照“会议室”文件夹中的规则调整当天受影响的会议。",
        "请处理{floor}楼{day}停用的事：受影响的会议按规则换会议室，资料在“会议室”文件夹。",
        "因{floor}楼施工，{day}有会议得换地方。请照“会议室”文件夹里的规则改好日历。",
        "“会议室”文件夹里有{floor}楼停用通知和调整规则，请据此调整{day}的会议地点。",
        "{day}，{floor}楼停用期间的会议要另行安排，请按“会议室”文件夹的规则在日历中调整。",
    )
}
NOTICE = "{day} {start}至{end}，{floor}楼全部会议室停用。"
EXTENDED = "更正：{day}，{floor}楼停用的结束时间由{old}改为{end}，开始时间不变。"
RULES = """# 调整规则

1. 只调整与停用时段有重叠的会议；恰好在停用开始时结束、或在停用结束时开始的不动。
2. 新会议室须可用、不在停用楼层、会议期间没有其他会议，设备齐全，座位数不少于人数加{spare}。会议时间和标题不变。
3. 每场会议换会议室的代价＝人数×新会议室与{floor}楼相差的层数＋{weight}×空座位数（座位数减人数）。
4. 有合适会议室的会议都要换，同一时间一间只能开一场会；全部代价合计越小越好。
5. 没有合适会议室的会议，{otherwise}。
人数和设备写在会议备注里，地点写会议室名称。
"""
OTHERWISE = ("地点改为“线上”", "取消", "推迟一天，时刻和地点不变")
NAMES = ("听松厅", "望竹厅", "问梅厅", "观澜厅", "知行厅", "致远厅", "明德厅", "格物厅", "静思厅")
TITLES = (
    "预算评审",
    "产品周会",
    "供应商会谈",
    "培训",
    "招标答疑",
    "运营复盘",
    "安全例会",
    "设计评审",
    "项目启动会",
    "季度总结",
    "接口讨论",
)
DEVICES = ("投影", "白板", "视频会议")


@dataclass(frozen=True, slots=True)
class Room:
    """A meeting room."""

    name: str
    floor: int
    seats: int
    devices: frozenset[str]
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Meeting:
    """A meeting and what it needs; times as the calendar writes them."""

    id: str
    start: str
    end: str
    room: str
    people: int
    devices: frozenset[str]

    def meets(self, start: str, end: str) -> bool:
        return self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class Rules:
    """The closed floor and hours, the spare seats, and what an empty seat costs."""

    floor: int
    start: str
    end: str
    spare: int
    weight: int

    def cost(self, meeting: Meeting, room: Room) -> int:
        """Returns what it costs to move a meeting to a room."""
        return meeting.people * abs(room.floor - self.floor) + self.weight * (room.seats - meeting.people)

    def fits(self, meeting: Meeting, room: Room) -> bool:
        """Says whether a room will do for a meeting, whatever it is booked for."""
        enough = room.seats >= meeting.people + self.spare and meeting.devices <= room.devices
        return enough and room.usable and room.floor != self.floor


def assign(meetings: Sequence[Meeting], rooms: Sequence[Room], rules: Rules) -> tuple[dict[str, str], list[Meeting]]:
    """Returns the rooms of all meetings that have to move and can, by id, for the lowest cost; and the meetings that cannot."""
    closed = {room.name for room in rooms if room.floor == rules.floor}
    moving = [m for m in meetings if m.room in closed and m.meets(rules.start, rules.end)]
    taken = [m for m in meetings if m not in moving]
    options = {
        meeting: [
            room
            for room in rooms
            if rules.fits(meeting, room) and not any(m.room == room.name and m.meets(meeting.start, meeting.end) for m in taken)
        ]
        for meeting in moving
    }
    movable = [meeting for meeting in moving if options[meeting]]
    plans = []
    for chosen in itertools.product(*(options[meeting] for meeting in movable)):
        pairs = itertools.combinations(zip(movable, chosen, strict=True), 2)
        if not any(r is other and m.meets(n.start, n.end) for (m, r), (n, other) in pairs):
            cost = sum(rules.cost(meeting, room) for meeting, room in zip(movable, chosen, strict=True))
            plans.append((cost, [room.name for room in chosen]))
    names = min(plans)[1]
    return {m.id: name for m, name in zip(movable, names, strict=True)}, [m for m in moving if m not in movable]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Meetings that were moved to other rooms: earns the lowest cost as a share of what it cost.

    Attributes:
        meetings: Those that have to move and can, by id.
        rooms: All rooms, by name.
        rules: The rules in force.
        best: Lowest cost in all, by meeting.
    """

    meetings: Mapping[str, Meeting]
    rooms: Mapping[str, Room]
    rules: Rules
    best: Mapping[str, int]

    def moved(self, state: Grading) -> dict[str, tuple[int, Room]]:
        """Returns the positions of the changes that only moved a meeting to another room, with that room, by id."""
        found = {}
        for index, change in enumerate(state.changes):
            if change.table == "event" and change.kind == "changed" and change.id in self.meetings:
                room = self.rooms.get(change.after.location.strip())
                if room is not None and msgspec.structs.replace(change.before, location=change.after.location) == change.after:
                    found[change.id] = (index, room)
        return found

    def broken(self, state: Grading) -> bool:
        """Says whether a meeting was moved to a room that will not do, or that is booked at that time."""
        events = state.workspace.rows("event").values()
        for key, (_, room) in self.moved(state).items():
            meeting = self.meetings[key]
            booked = (event for event in events if event.id != key and event.location.strip() == room.name)
            if not self.rules.fits(meeting, room) or any(meeting.meets(event.start, event.end) for event in booked):
                return True
        return False

    def cost(self, state: Grading) -> int:
        return sum(self.rules.cost(self.meetings[key], room) for key, (_, room) in self.moved(state).items())

    def __call__(self, state: Grading) -> float:
        moved = self.moved(state)
        state.claimed |= {index for index, _ in moved.values()}
        best = sum(self.best[key] for key in moved)
        return best / max(best, self.cost(state), 1) * len(moved) / len(self.meetings)

    def reported(self, state: Grading) -> float:
        """Earns the same share if the cost of the moves was reported right."""
        return self(state) * Reported("cost", self.cost(state))(state)


def build(world: World) -> Plan:
    """Draws a floor with two closed rooms, seven others, and a day of meetings."""
    rng = world.rng
    day = world.workday(rng.randrange(2, 9))
    floor = rng.randrange(3, 6)
    names = rng.sample(NAMES, 9)
    seats = [8 + rng.randrange(3)]
    for _ in range(5):
        seats.append(seats[-1] + rng.randrange(3, 6))
    opens, spare = rng.choice((540, 570, 600)), rng.randrange(1, 4)
    larger = seats[1] - spare
    smaller = larger - rng.randrange(1, 4)
    floors, weight = _floors(world, floor, seats, (larger, smaller))
    fits = (("白板",), ("投影",), ("投影", "视频会议"), ("白板", "投影"), ("投影", "视频会议"), ("投影",))
    rooms = [Room(name, up, count, frozenset(own)) for name, up, count, own in zip(names, floors, seats, fits, strict=False)]
    rooms += [Room(names[6], floor, 40, frozenset(DEVICES)), Room(names[7], floor, 36, frozenset(DEVICES))]
    rooms.append(Room(names[8], floor + 1, 40, frozenset(DEVICES), usable=False))
    cut, ends = opens + 150, opens + rng.choice((330, 360))
    begins = datetime(day.year, day.month, day.day)

    def moment(minute: int) -> str:
        return (begins + timedelta(minutes=minute)).isoformat(" ", "minutes")

    titles = rng.sample(TITLES, 11)
    meetings: list[Meeting] = []

    def meet(room: Room, start: int, minutes: int, people: int, devices: Sequence[str] = ()) -> Meeting:
        notes = f"人数：{people}；设备：{'、'.join(devices) or '无'}"
        event = world.calendar.add(titles.pop(), begins + timedelta(minutes=start), minutes, location=room.name, notes=notes)
        meetings.append(Meeting(event.id, event.start, event.end, room.name, people, frozenset(devices)))
        return meetings[-1]

    first, second, third = rng.sample(((opens - 30, 60), (opens + 60, 60), (cut + 15, 60)), 3)
    one, two = rng.sample(rooms[6:8], 2)
    meet(one, *first, seats[0] - spare - rng.randrange(2), ("白板",))
    meet(rooms[0], first[0] + rng.choice((-30, 30)), 60, 4)
    meet(one, *second, larger, ("投影",))
    meet(two, *second, smaller, ("投影", "视频会议"))
    meet(two, *third, seats[4] - spare + 1, ("视频会议",))
    meet(two if first[0] < opens else one, opens - 90, 60 if second[0] < opens else 90, 5)
    meet(one, ends, 60, 6, ("投影",))
    meet(rooms[3], second[0] + 15, 30, 7)
    meet(rooms[2], ends + 90, 45, 9)
    world.calendar.add(
        titles.pop(), begins + timedelta(days=1, minutes=opens), 60, location=rooms[0].name, notes="人数：5；设备：无"
    )
    write_files(world, rooms, Rules(floor, clock(opens), clock(ends), spare, weight), str(day), clock(cut))

    rules = Rules(floor, moment(opens), moment(ends), spare, weight)
    chosen, left = assign(meetings, rooms, rules)
    by_name, movable = {room.name: room for room in rooms}, {m.id: m for m in meetings if m.id in chosen}
    lowest = {key: rules.cost(movable[key], by_name[name]) for key, name in chosen.items()}
    assigned, dealt = Assigned(movable, by_name, rules, lowest), grader_of(left[0], world.variant)
    return Plan(
        instruction=world.phrase(PHRASINGS, day=day, floor=floor),
        report=(
            Slot("cost", "sum of the costs of all moves, a number", "各会议换会议室的代价合计，数字"),
            Slot("without_room", "list of the ids of meetings without a room", "没有合适会议室的会议编号列表"),
        ),
        checks=(
            Check("moved", 0.6, assigned),
            Check("meeting_without_room", 0.2, dealt),
            Check("reports_cost", 0.1, assigned.reported),
            Check("reports_without_room", 0.1, gated(ReportedSet("without_room", [m.id for m in left]), dealt)),
        ),
        forbidden=(Forbidden("rules_broken", assigned.broken),),
        solve=partial(solve, str(day), str(floor)),
    )


def _floors(world: World, floor: int, seats: Sequence[int], people: tuple[int, int]) -> tuple[list[int], int]:
    """Draws floors, and what an empty seat costs, such that greed costs a lot for two meetings at the same time.

    The larger one, first in `people`, can have room 1, 2, 4 or 5, the other one 2 or 4. Greed takes the best one for the larger.
    """
    for _ in range(100):
        floors, weight = world.rng.sample([n for n in range(1, 9) if n != floor], 6), world.rng.randrange(1, 5)
        first, second = (
            {n: count * abs(floors[n] - floor) + weight * (seats[n] - count) for n in own}
            for count, own in zip(people, ((1, 2, 4, 5), (2, 4)), strict=True)
        )
        totals = sorted(first[a] + second[b] for a in first for b in second if a != b)
        best = min(first, key=lambda n: first[n])
        greedy = first[best] + min(cost for n, cost in second.items() if n != best)
        tie = sum(cost == first[best] for cost in first.values()) > 1
        if totals[0] < 0.98 * totals[1] and totals[0] < 0.85 * greedy and not tie:
            break
    return floors, weight


def write_files(world: World, rooms: Sequence[Room], rules: Rules, day: str, cut: str) -> None:
    """Writes the list of rooms, the notice and its extension, and the rules. Times are "HH:MM" here."""
    rng = world.rng
    rows = []
    for room in rng.sample(rooms, len(rooms)):
        devices = "、".join(device for device in DEVICES if device in room.devices)
        rows.append(f"{room.name},{room.floor},{room.seats},{devices},{'可用' if room.usable else '维修'}")
    world.files.write("会议室/房间.csv", "名称,楼层,座位数,设备,状态\n" + "\n".join(rows) + "\n")
    notice = NOTICE.format(day=day, start=rules.start, end=cut, floor=rules.floor)
    world.files.write("会议室/通知/停用通知.md", notice, days_ago=9)
    extended = EXTENDED.format(day=day, floor=rules.floor, old=cut, end=rules.end)
    world.files.write("会议室/通知/停用通知更正.md", extended, days_ago=2)
    text = RULES.format(spare=rules.spare, floor=rules.floor, weight=rules.weight, otherwise=OTHERWISE[world.variant])
    world.files.write("会议室/规则.md", text)
    world.files.write("会议室/保洁.md", "每晚八点后打扫，白板请自行擦净。")


def grader_of(meeting: Meeting, variant: int) -> Grader:
    """Returns what checks that a meeting without a room was dealt with."""
    if variant == 1:
        return Removed(table="event", ids=[meeting.id])
    if variant == 2:
        fields = {"start": next_day(meeting.start), "end": next_day(meeting.end)}
        return Changed(table="event", id=meeting.id, fields=fields)
    return Changed(table="event", id=meeting.id, fields={"location": "线上"})


def solve(day: str, floor: str) -> Steps:
    """Reads notices, rules and rooms, opens the meetings of the day, and moves those that have to move."""
    files = yield Step(action=ToolCall("search_files", {"query": "停用"}), skill="planning")
    notices = sorted(f["path"] for f in files if "通知" in f["path"])
    start = end = ""
    for path in sorted(notices, key=len):
        again = ((ToolCall("read_file", {"path": min(notices, key=len)}),),) if path != min(notices, key=len) else ()
        notice = yield Step(action=ToolCall("read_file", {"path": path}), skill="consistency", difficulty=0.2, slips=again)
        times = re.findall(r"\d\d:\d\d", notice["content"])
        start, end = (start or times[0], times[1])
    text = yield Step(action=ToolCall("read_file", {"path": "会议室/规则.md"}), skill="policy")
    table = yield Step(action=ToolCall("read_file", {"path": "会议室/房间.csv"}), skill="exploration")
    cells = [line.split(",") for line in table["content"].splitlines()[1:]]
    rooms = [Room(name, int(up), int(n), frozenset(own.split("、")), state == "可用") for name, up, n, own, state in cells]
    spare = int(re.findall(r"人数加(\d+)", text["content"])[0])
    weight = int(re.findall(r"＋(\d+)×空座位数", text["content"])[0])
    rules = Rules(int(floor), f"{day} {start}", f"{day} {end}", spare, weight)
    events = yield Step(action=ToolCall("list_events", {"start_date": day, "end_date": day}), skill="exploration")
    meetings: list[Meeting] = []
    for event in events:
        full = yield Step(action=ToolCall("get_event", {"event_id": event["id"]}), skill="exploration")
        people, devices = re.findall(r"人数：(\d+)；设备：(.*)", full["notes"])[0]
        needs = frozenset(devices.split("、")) - {"无"}
        meetings.append(Meeting(full["id"], full["start"], full["end"], full["location"], int(people), needs))
    assigned, left = assign(meetings, rooms, rules)
    by_name = {room.name: room for room in rooms}
    closed = {room.name for room in rooms if room.floor == int(floor)}
    free = [room for room in rooms if room.usable and room.name not in closed]
    touching = [m for m in meetings if m.room in closed and m.id not in assigned and m not in left]
    total = 0
    for meeting in sorted(meetings, key=lambda m: m.start):
        near = min(free, key=lambda r: (not meeting.devices <= r.devices, abs(r.seats - meeting.people), r.seats))
        if meeting in left:
            wrong: tuple[Slip, ...] = ((moving(meeting.id, near.name),), SKIP)
            yield Step(action=without_room(meeting, text["content"]), skill="policy", difficulty=0.8, slips=wrong)
        elif meeting.id in assigned:
            room = by_name[assigned[meeting.id]]
            total += rules.cost(meeting, room)
            greedy = min((r for r in free if rules.fits(meeting, r)), key=lambda r: rules.cost(meeting, r))
            call = moving(meeting.id, room.name)
            slips: list[Slip] = [(moving(meeting.id, other.name),) for other in {greedy.name: greedy, near.name: near}.values()]
            slips += [(call, moving(touching[0].id, room.name)), SKIP]
            yield Step(action=call, skill="calculation", difficulty=0.7, slips=tuple(slip for slip in slips if slip != (call,)))
    data: dict[str, Any] = {"cost": total, "without_room": [meeting.id for meeting in left]}
    seats = sum(by_name[name].seats - m.people for m in meetings for key, name in assigned.items() if key == m.id)
    wrongs = ({**data, "without_room": [m.id for m in touching]}, {**data, "cost": total - rules.weight * seats})
    slips = [(Finish(answer="", data=wrong_data),) for wrong_data in wrongs]
    yield Step(action=Finish(answer="会议已调整。", data=data), skill="synthesis", slips=tuple(slips))


def without_room(meeting: Meeting, rules: str) -> ToolCall:
    """Returns what the rules want to be done with a meeting for which there is no room."""
    if OTHERWISE[1] in rules.split("5. ")[1].split("\n")[0]:
        return ToolCall("delete_event", {"event_id": meeting.id})
    if "推迟一天" in rules:
        later = {"start": next_day(meeting.start), "end": next_day(meeting.end)}
        return ToolCall("update_event", {"event_id": meeting.id, **later})
    return moving(meeting.id, "线上")


def moving(event_id: str, room: str) -> ToolCall:
    return ToolCall("update_event", {"event_id": event_id, "location": room})


def next_day(moment: str) -> str:
    return (datetime.fromisoformat(moment) + timedelta(days=1)).isoformat(" ", "minutes")


def clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


TASK: Task = Task(
    title="Move the meetings of a closed floor at the lowest cost",
    category="office",
    domain="calendar",
    apps=("calendar", "files"),
    languages=("zh",),
    patterns=(
        "optimum ratio",
        "rules stored as data",
        "superseded sources",
        "near miss at a limit",
        "distractors",
        "join under different keys",
    ),
    build=build,
    variants=3,
    annotated=False,
)
