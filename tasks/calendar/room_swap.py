"""Move the meetings of a closed floor to other rooms.

Who has to move follows from the hours in a notice that a later one extends; where to, from seats, equipment, the choice rule and
what the other rooms are booked for. Two meetings want the same room at the same time, one needs a seat more than any room has,
and two only touch the closed hours. What becomes of a meeting without a room is the variant: online, canceled, or (held out) a
day later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Changed, Grader, Removed, ReportedMap, ReportedSet, every, gated, whole
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
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
3. 有多间可选时，{choice}。
4. 按开始时间先后安排；同时开始的，人数多的先安排。
5. 没有合适会议室的会议，{otherwise}。
人数和设备写在会议备注里，地点写会议室名称。
"""
CHOICES = ("选座位最少的一间", "选楼层离{floor}楼最近的一间，同样近时选座位最少的")
OTHERWISE = ("地点改为“线上”", "取消", "推迟一天，时刻和地点不变")
NAMES = ("听松厅", "望竹厅", "问梅厅", "观澜厅", "知行厅", "致远厅", "明德厅", "格物厅")
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
    """The closed floor and hours, the spare seats, and whether near floors go first."""

    floor: int
    start: str
    end: str
    spare: int
    near: bool


def assign(meetings: Sequence[Meeting], rooms: Sequence[Room], rules: Rules) -> dict[str, str | None]:
    """Returns the new room of each meeting that has to move, by id; None if no room will do."""
    closed = {room.name for room in rooms if room.floor == rules.floor}
    moving = [m for m in meetings if m.room in closed and m.meets(rules.start, rules.end)]
    taken = [m for m in meetings if m not in moving]
    found: dict[str, str | None] = {}
    for meeting in sorted(moving, key=lambda m: (m.start, -m.people)):
        fitting = [
            room
            for room in rooms
            if room.usable
            and room.name not in closed
            and room.seats >= meeting.people + rules.spare
            and meeting.devices <= room.devices
            and not any(m.room == room.name and m.meets(meeting.start, meeting.end) for m in taken)
        ]
        best = min(fitting, key=lambda r: (abs(r.floor - rules.floor) if rules.near else 0, r.seats), default=None)
        found[meeting.id] = None if best is None else best.name
        if best is not None:
            taken.append(Meeting(meeting.id, meeting.start, meeting.end, best.name, 0, frozenset()))
    return found


def build(world: World) -> Plan:
    """Draws a floor with two closed rooms, six others, and a day of meetings."""
    rng = world.rng
    day = world.workday(rng.randrange(2, 9))
    floor = rng.randrange(3, 6)
    names = rng.sample(NAMES, 8)
    seats = [8 + rng.randrange(3)]
    for _ in range(4):
        seats.append(seats[-1] + rng.randrange(3, 6))
    floors = rng.sample([n for n in range(1, 9) if n != floor], 5)
    fits = (("白板",), ("投影",), ("投影", "视频会议"), ("白板", "投影"), ("投影", "视频会议"))
    rooms = [Room(name, up, count, frozenset(own)) for name, up, count, own in zip(names, floors, seats, fits, strict=False)]
    rooms += [Room(names[5], floor, 40, frozenset(DEVICES)), Room(names[6], floor, 36, frozenset(DEVICES))]
    rooms.append(Room(names[7], floor + 1, 40, frozenset(DEVICES), usable=False))
    opens, spare, near = rng.choice((540, 570, 600)), rng.randrange(1, 4), rng.random() < 0.5
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
    one, two = rng.sample(rooms[5:7], 2)
    meet(one, *first, seats[0] - spare - rng.randrange(2), ("白板",))
    meet(rooms[0], first[0] + rng.choice((-30, 30)), 60, 4)
    meet(one, *second, seats[1] - spare, ("投影",))
    meet(two, *second, seats[1] - spare - rng.randrange(1, 4), ("投影",))
    meet(two, *third, seats[4] - spare + 1, ("视频会议",))
    meet(two if first[0] < opens else one, opens - 90, 60 if second[0] < opens else 90, 5)
    meet(one, ends, 60, 6, ("投影",))
    meet(rooms[4], second[0] + 15, 30, 7)
    meet(rooms[2], third[0] + 60, 45, 9)
    world.calendar.add(
        titles.pop(), begins + timedelta(days=1, minutes=opens), 60, location=rooms[0].name, notes="人数：5；设备：无"
    )
    write_files(world, rooms, Rules(floor, clock(opens), clock(ends), spare, near), str(day), clock(cut))

    rules = Rules(floor, moment(opens), moment(ends), spare, near)
    assigned = assign(meetings, rooms, rules)
    graders = [grader_of(meeting, assigned[meeting.id], world.variant) for meeting in meetings if meeting.id in assigned]
    weight = 0.8 / len(graders)
    checks = [Check(f"meeting_{number}", weight, grader) for number, grader in enumerate(graders, 1)]
    done = whole(every(*graders))
    placed = {key: room for key, room in assigned.items() if room is not None}
    left = [key for key, room in assigned.items() if room is None]
    return Plan(
        instruction=world.phrase(PHRASINGS, day=day, floor=floor),
        report=(
            Slot(
                "moved",
                "object from the id of each meeting with a new room to the room's name",
                "对象：换了会议室的会议编号 → 会议室名称",
            ),
            Slot("without_room", "list of the ids of meetings without a room", "没有合适会议室的会议编号列表"),
        ),
        checks=(
            *checks,
            Check("reports_moved", 0.1, gated(ReportedMap("moved", placed), done)),
            Check("reports_without_room", 0.1, gated(ReportedSet("without_room", left), done)),
        ),
        solve=partial(solve, str(day), str(floor)),
    )


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
    choice = CHOICES[rules.near].format(floor=rules.floor)
    world.files.write("会议室/规则.md", RULES.format(spare=rules.spare, choice=choice, otherwise=OTHERWISE[world.variant]))
    world.files.write("会议室/保洁.md", "每晚八点后打扫，白板请自行擦净。")


def grader_of(meeting: Meeting, room: str | None, variant: int) -> Grader:
    """Returns what checks that one meeting was dealt with."""
    if room is None and variant == 1:
        return Removed(table="event", ids=[meeting.id])
    if room is None and variant == 2:
        fields = {"start": next_day(meeting.start), "end": next_day(meeting.end)}
        return Changed(table="event", id=meeting.id, fields=fields)
    return Changed(table="event", id=meeting.id, fields={"location": room or "线上"})


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
    rules = Rules(int(floor), f"{day} {start}", f"{day} {end}", spare, "最近的一间" in text["content"])
    events = yield Step(action=ToolCall("list_events", {"start_date": day, "end_date": day}), skill="exploration")
    meetings: list[Meeting] = []
    for event in events:
        full = yield Step(action=ToolCall("get_event", {"event_id": event["id"]}), skill="exploration")
        people, devices = re.findall(r"人数：(\d+)；设备：(.*)", full["notes"])[0]
        needs = frozenset(devices.split("、")) - {"无"}
        meetings.append(Meeting(full["id"], full["start"], full["end"], full["location"], int(people), needs))
    assigned = assign(meetings, rooms, rules)
    closed = {room.name for room in rooms if room.floor == int(floor)}
    touching = [m for m in meetings if m.room in closed and m.id not in assigned]
    for meeting in [m for m in meetings if m.id in assigned]:
        room = assigned[meeting.id]
        open_ = [r for r in rooms if r.name not in closed and r.usable and r.name != room]
        near = min(open_, key=lambda r: (not meeting.devices <= r.devices, abs(r.seats - meeting.people), r.seats))
        wrong: list[Slip] = [(moving(meeting.id, near.name),), SKIP]
        if room is None:
            yield Step(action=without_room(meeting, text["content"]), skill="policy", difficulty=0.8, slips=tuple(wrong))
            continue
        call = moving(meeting.id, room)
        wrong += [(call, moving(touching[0].id, room))] if touching else []
        yield Step(action=call, skill="calculation", difficulty=0.7, slips=tuple(wrong))
    data: dict[str, Any] = {"moved": {key: room for key, room in assigned.items() if room is not None}}
    data["without_room"] = [key for key, room in assigned.items() if room is None]
    slip: Mapping[str, Any] = {**data, "without_room": [m.id for m in touching]}
    yield Step(action=Finish(answer="会议已调整。", data=data), skill="synthesis", slips=((Finish(answer="", data={**slip}),),))


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
    title="Move the meetings of a closed floor",
    category="office",
    domain="calendar",
    apps=("calendar", "files"),
    languages=("zh",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors", "join under different keys"),
    build=build,
    variants=3,
    annotated=False,
)
