"""Find the connection that leaves latest and still arrives in time, by a city's timetables, transfer rules and notices.

Every line has its own page with headways for working days and weekends; transfers take different times at different stations, and
mixed transfers are cheaper. One of three notices applies on the day and changes the answer; the others end a day too early or
start a day too late. A traveler's blog has old figures. A price limit may rule out the best connection, or all of them.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import product
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedSet, every, gated
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.dice import Dice
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "{day}我要从{start}到{end}，最晚{limit}到。请在{city}公交网上查：最多换乘一次、票价不超过{cap}元，出发越晚越好。{rule}",
        "帮我查{city}公共交通：{day}从{start}去{end}，{limit}前（含）必须到，尽量晚出发，换乘不超过一次，预算{cap}元。{rule}",
        "{day}要在{limit}之前（含）赶到{end}，人在{start}。最多换一次车，车费上限{cap}元，哪班走得最晚？请查{city}公交网。{rule}",
        "请用{city}公交网规划：{start}到{end}，{day}，{limit}（含）前到达，最多一次换乘，不超过{cap}元，出发时间尽量靠后。{rule}",
        "{city}：{day}{start}到{end}怎么坐车出发最晚？到达不晚于{limit}，换乘至多一次，票价至多{cap}元，以公交网为准。{rule}",
        "我{day}从{start}前往{end}，到达时间不晚于{limit}，至多换乘一次，车费不超过{cap}元，请查{city}公交网给出最晚出发的方案。{rule}",
    )
}
RULE = "出发时间相同时选到达最早的；如果都超出票价上限，就选准时方案中票价最低的。"
CITIES = ("云岭市", "临港市", "清川市", "北陵市")
STATIONS = ("人民广场", "东风路", "体育馆", "大学城", "西湖桥", "科技园", "图书馆", "南门", "会展中心", "青年公园")
LINE = """{name}（{mode}），单程票价{fare}元。
首班{first}，末班{last}，均为始发站发车时刻。
工作日每{weekday}分钟一班，周末每{weekend}分钟一班。
自始发站起的行车分钟：{stops}。
"""
GUIDE = """换乘最少用时：{special}；其他车站5分钟。
票价：各段单程票价相加；地铁与公交之间换乘减1元，同类之间换乘不减。
"""
NOTICE = "编号：{number}。自{start}起至{end}（含首尾两天），{effect}"
EFFECTS = {
    "late": "{line}各班次推迟{minutes}分钟发车。",
    "headway": "{line}改为每{minutes}分钟一班，首末班时刻不变。",
    "skip": "{line}在{station}跳停，不上下客。",
}
BLOG = "老司机攻略：{city}坐车全靠{line}，每{minutes}分钟一班，票价{fare}元，换乘两分钟足够。"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line. Times are minutes of the day at its first stop; `stops` holds the minutes from there."""

    name: str
    mode: str
    fare: int
    first: int
    last: int
    headway: tuple[int, int]
    stops: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """A connection; `via` is where one changes, or empty."""

    depart: int
    arrive: int
    fare: int
    lines: tuple[str, ...]
    via: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the traveler wants: stations, the latest arrival in minutes of the day, and whether it is a weekend."""

    start: str
    end: str
    limit: int
    weekend: bool


def latest(line: Line, stop: str, at_most: int, weekend: bool) -> int:
    """Returns the start at its first stop of the last run that is at a stop at most at some minute; below 0 for none."""
    left = min(at_most - line.stops[stop], line.last) - line.first
    return line.first + left // line.headway[weekend] * line.headway[weekend] if left >= 0 else -1


def trips(lines: Sequence[Line], wish: Wish, minutes: Mapping[str, int]) -> list[Trip]:
    """Returns the latest connection of each direct line and of each pair of lines with each station between them."""
    found = []
    for line in lines:
        if line.stops.get(wish.start, 999) < line.stops.get(wish.end, -1):
            run = latest(line, wish.end, wish.limit, wish.weekend)
            arrive = run + line.stops[wish.end]
            found += (
                [Trip(depart=run + line.stops[wish.start], arrive=arrive, fare=line.fare, lines=(line.name,))] if run >= 0 else []
            )
    for one, two in product(lines, lines):
        for via in [s for s in one.stops if one is not two and s in two.stops]:
            if one.stops.get(wish.start, 999) < one.stops[via] and two.stops[via] < two.stops.get(wish.end, -1):
                found += _change(one, two, via, wish, minutes.get(via, 5))
    return found


def _change(one: Line, two: Line, via: str, wish: Wish, minutes: int) -> list[Trip]:
    """Returns the latest connection by two lines, with the first run of the second one that can be reached."""
    run = latest(two, wish.end, wish.limit, wish.weekend)
    before = latest(one, via, run + two.stops[via] - minutes, wish.weekend) if run >= 0 else -1
    if before < 0:
        return []
    ready, step = before + one.stops[via] + minutes - two.stops[via], two.headway[wish.weekend]
    run = two.first + max(0, -(-(ready - two.first) // step)) * step
    fare = one.fare + two.fare - (one.mode != two.mode)
    depart, arrive = before + one.stops[wish.start], run + two.stops[wish.end]
    return [Trip(depart=depart, arrive=arrive, fare=fare, lines=(one.name, two.name), via=via)]


def choose(found: Sequence[Trip], cap: float) -> Trip:
    """Returns the trip that leaves latest within the price limit, or else the cheapest."""
    rest = [trip for trip in found if trip.fare <= cap]
    if rest:
        return max(rest, key=lambda trip: (trip.depart, -trip.arrive, -trip.fare))
    return min(found, key=lambda trip: (trip.fare, -trip.depart, trip.arrive))


def changed(lines: Sequence[Line], kind: str, name: str, minutes: int, station: str) -> list[Line]:
    """Returns the lines as a notice changes them."""
    result = []
    for line in lines:
        if line.name == name and kind == "late":
            line = replace(line, first=line.first + minutes, last=line.last + minutes)
        elif line.name == name and kind == "headway":
            line = replace(line, headway=(minutes, minutes))
        elif line.name == name:
            line = replace(line, stops={stop: at for stop, at in line.stops.items() if stop != station})
        result.append(line)
    return result


def clock(minutes: int) -> str:
    """Returns a minute of the day as HH:MM."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


Effect = tuple[str, str, int, str]


def build(world: World) -> Plan:
    """Draws a city; variants: the price limit excludes nothing, the latest connection, or (held out) all of them."""
    rng = world.rng
    city, day = rng.choice(CITIES), world.day(rng.randrange(2, 9))
    lines, effect, wish, minutes, cap = _draw(rng, world.variant, day.weekday() >= 5)
    right = choose(trips(changed(lines, *effect), wish, minutes), cap)
    numbers = [f"{day.year}-{n:03d}" for n in rng.sample(range(10, 200), 3)]
    _pages(world, city, lines, minutes, _notices(world, day, numbers, lines, effect))

    notice = Reported("notice", numbers[0])
    times = every(Reported("depart", clock(right.depart)), Reported("arrive", clock(right.arrive)))
    route = ReportedSet("lines", right.lines)
    shown = {"day": f"{day.month}月{day.day}日", "start": wish.start, "end": wish.end, "limit": clock(wish.limit)}
    return Plan(
        instruction=world.phrase(PHRASINGS, city=city, cap=cap, rule=RULE, **shown),
        report=(
            Slot("lines", "list of the lines, in order", "所乘线路名称的列表，按先后顺序"),
            Slot("via", 'station of the change, or "none"', "换乘站，不换乘填 none"),
            Slot("depart", "HH:MM", "出发时刻，HH:MM"),
            Slot("arrive", "HH:MM", "到达时刻，HH:MM"),
            Slot("fare", "fare, a number", "总票价，数字"),
            Slot("within_limit", "whether the fare is within the limit, true or false", "票价是否在上限内，true 或 false"),
            Slot("notice", "number of the notice that applies on that day", "当天有效的公告编号"),
        ),
        checks=(
            Check("times", 0.4, times),
            Check(
                "route", 0.2, gated(every(route, Reported("via", right.via or "none")), Reported("depart", clock(right.depart)))
            ),
            Check("price", 0.2, gated(every(Reported("fare", right.fare), Reported("within_limit", right.fare <= cap)), times)),
            Check("notice", 0.2, notice),
        ),
        solve=partial(solve, city, day, wish, cap),
    )


def _draw(rng: Dice, variant: int, weekend: bool) -> tuple[list[Line], Effect, Wish, dict[str, int], int]:
    """Draws lines, a notice and a price limit until the notice matters and the limit does what the variant says."""
    while True:
        names = rng.sample(STATIONS, 8)
        start, one, two, end = names[:4]
        minutes = {one: rng.randrange(6, 10), two: rng.randrange(2, 5)}
        paths = [
            ("1号线", "地铁", (names[4], start, one)),
            ("2号线", "地铁", (one, names[5], end)),
            ("11路", "公交", (start, names[6], two)),
            ("27路", "公交", (two, end, names[7])),
            ("35路", "公交", (names[4], start, names[6], end)),
            ("3号线", "地铁", (names[5], names[7], two)),
        ]
        lines = [_line(rng, *path) for path in paths]
        wish = Wish(start=start, end=end, limit=rng.randrange(480, 1_100), weekend=weekend)
        plain = trips(lines, wish, minutes)
        best = choose(plain, 99)
        name = rng.choice(best.lines)
        kind = rng.choice(("late", "headway", "skip")) if best.via else rng.choice(("late", "headway"))
        effect = (kind, name, rng.randrange(4, 10) if kind == "late" else rng.randrange(23, 40), best.via)
        found = trips(changed(lines, *effect), wish, minutes)
        if not found:
            continue
        first, cheapest = choose(found, 99), min(trip.fare for trip in found)
        cap = (max(trip.fare for trip in found) + rng.randrange(2), first.fare - 1, cheapest - 1)[variant]
        right = choose(found, cap)
        if variant == 1 and right.fare > cap:
            continue
        alike = [trip for trip in found if trip.depart == right.depart or (variant == 2 and trip.fare == right.fare)]
        if right.depart != choose(plain, cap).depart and len(alike) == 1:
            return lines, effect, wish, minutes, cap


def _line(rng: Dice, name: str, mode: str, path: Sequence[str]) -> Line:
    """Draws one line along some stations."""
    at, stops = 0, {}
    for station in path:
        stops[station] = at
        at += rng.randrange(6, 13) if mode == "地铁" else rng.randrange(13, 25) if len(path) > 3 else rng.randrange(8, 16)
    first, fast = rng.randrange(330, 400), rng.randrange(7, 15)
    fare = rng.randrange(3, 6) if mode == "地铁" else rng.randrange(1, 4)
    headway = (fast, fast + rng.randrange(3, 8))
    return Line(name=name, mode=mode, fare=fare, first=first, last=rng.randrange(1_290, 1_380), headway=headway, stops=stops)


def _notices(
    world: World, day: date, numbers: Sequence[str], lines: Sequence[Line], effect: Effect
) -> list[tuple[str, str, str]]:
    """Returns number, title and text of three notices in drawn order, of which the first number applies on the day."""
    rng = world.rng
    ahead = (day - world.today).days
    spans = [(-rng.randrange(3), rng.randrange(3)), (-rng.randrange(5, 9), -1), (1, rng.randrange(4, 9))]
    others = [("late", rng.choice(lines).name, rng.randrange(3, 12), ""), ("headway", rng.choice(lines).name, 45, "")]
    notices = []
    for number, (first, last), (kind, line, minutes, station) in zip(numbers, spans, [effect, *others], strict=True):
        text = EFFECTS[kind].format(line=line, minutes=minutes, station=station)
        body = NOTICE.format(number=number, start=world.day(ahead + first), end=world.day(ahead + last), effect=text)
        notices.append((number, f"关于{line}运行调整的公告（{number}）", body))
    return rng.sample(notices, 3)


def _pages(
    world: World, city: str, lines: Sequence[Line], minutes: Mapping[str, int], notices: Sequence[tuple[str, str, str]]
) -> None:
    """Writes the site and a blog."""
    site, web, rng = "https://transit.example", world.web, world.rng
    links = []
    for index, line in enumerate(lines):
        stops = "，".join(f"{stop}{at}" for stop, at in line.stops.items())
        text = LINE.format(
            name=line.name,
            mode=line.mode,
            fare=line.fare,
            first=clock(line.first),
            last=clock(line.last),
            weekday=line.headway[0],
            weekend=line.headway[1],
            stops=stops,
        )
        web.page(f"{site}/line/{index + 1}", line.name, text)
        links.append((line.name, f"{site}/line/{index + 1}"))
    special = "，".join(f"{station}{count}分钟" for station, count in minutes.items())
    web.page(f"{site}/guide", "乘车须知", GUIDE.format(special=special))
    posted = []
    for number, title, text in notices:
        web.page(f"{site}/notice/{number}", title, text)
        posted.append((title, f"{site}/notice/{number}"))
    web.page(f"{site}/notices", "运营公告", "各项公告的有效期见正文。", links=posted)
    menu = [("乘车须知", f"{site}/guide"), ("运营公告", f"{site}/notices"), *links]
    web.page(site, f"{city}公交网", f"{city}公共交通运营单位官方网站，时刻以线路页和运营公告为准。", links=menu)
    blog = BLOG.format(city=city, line=lines[0].name, minutes=rng.randrange(4, 9), fare=rng.randrange(2, 6))
    web.page("https://blog.example/transit", f"{city}公交攻略", blog)
    web.noise(3)


def solve(city: str, day: date, wish: Wish, cap: int) -> Steps:
    """Opens the site, its rules, notices and lines, works out all connections and chooses one."""
    found = yield Step(action=ToolCall("search_web", {"query": f"{city}公交"}), skill="planning")
    home = next(hit["url"] for hit in found["results"] if hit["title"] == f"{city}公交网")
    blog = next(hit["url"] for hit in found["results"] if hit["url"] != home)
    blogged = (ToolCall("open_page", {"url": blog}),)
    links = {link["text"]: link["url"] for link in (yield Step(action=_open(home), skill="exploration"))["links"]}
    guide_url, notices_url = links.pop("乘车须知"), links.pop("运营公告")
    guide = (yield Step(action=_open(guide_url), skill="exploration", slips=(blogged,)))["text"]
    rules = re.findall(r"换乘最少用时：(.+?)；", guide)[0]
    minutes = {station: int(count) for station, count in re.findall(r"([^，\d]+)(\d+)分钟", rules)}
    listed = yield Step(action=_open(notices_url), skill="planning", difficulty=0.2, slips=((_open(guide_url),),))
    effects: list[Effect] = []
    valid: list[tuple[str, Effect]] = []
    for link in listed["links"]:
        text = (yield Step(action=_open(link["url"]), skill="consistency"))["text"]
        number, first, last = re.findall(r"编号：(\S+?)。自(\S+?)起至(\S+?)（", text)[0]
        effects.append(_effect(text))
        valid += [(number, effects[-1])] if first <= day.isoformat() <= last else []
    lines = yield from _lines(links, blogged)
    now = lines
    for _, effect in valid:
        now = changed(now, *effect)
    right = choose(trips(now, wish, minutes), cap)
    data = _report(right, cap) | {"notice": valid[0][0] if valid else "none"}
    every_notice = lines
    for effect in effects:
        every_notice = changed(every_notice, *effect)
    careless = [
        trips(lines, wish, minutes),
        trips(now, replace(wish, weekend=not wish.weekend), minutes),
        trips(now, wish, {}),
        trips(every_notice, wish, minutes),
    ]
    wrong = [data | _report(choose(options, cap), cap) for options in careless if options]
    slips = tuple((Finish(answer="", data=other),) for other in wrong if other["depart"] != data["depart"])
    last_slip = (Finish(answer="", data={**data, "arrive": clock(wish.limit + 1)}),)
    yield Step(action=Finish(answer=data["depart"], data=data), skill="calculation", difficulty=1.5, slips=(*slips, last_slip))


def _open(url: str) -> ToolCall:
    return ToolCall("open_page", {"url": url})


def _report(trip: Trip, cap: int) -> dict[str, Any]:
    return {
        "lines": list(trip.lines),
        "via": trip.via or "none",
        "depart": clock(trip.depart),
        "arrive": clock(trip.arrive),
        "fare": trip.fare,
        "within_limit": trip.fare <= cap,
    }


def _effect(text: str) -> Effect:
    """Reads what a notice changes."""
    body = text.split("（含首尾两天），")[1]
    if found := re.findall(r"(.+?)各班次推迟(\d+)分钟", body):
        return ("late", found[0][0], int(found[0][1]), "")
    if found := re.findall(r"(.+?)改为每(\d+)分钟", body):
        return ("headway", found[0][0], int(found[0][1]), "")
    line, station = re.findall(r"(.+?)在(.+?)跳停", body)[0]
    return ("skip", line, 0, station)


def _lines(links: Mapping[str, str], blogged: tuple[ToolCall, ...]) -> Generator[Step, Any, list[Line]]:
    """Opens the page of every line."""
    lines = []
    for index, (name, url) in enumerate(links.items()):
        text = (yield Step(action=_open(url), skill="exploration", slips=(blogged,) if index == 0 else ()))["text"]
        mode, fare = re.findall(r"（(.+?)），单程票价(\d+)元", text)[0]
        first, last = (int(h) * 60 + int(m) for h, m in re.findall(r"(\d\d):(\d\d)", text))
        headway = tuple(int(found) for found in re.findall(r"每(\d+)分钟", text))
        stops = {stop: int(at) for stop, at in re.findall(r"([^，：\d]+)(\d+)", text.split("行车分钟：")[1])}
        line = Line(name=name, mode=mode, fare=int(fare), first=first, last=last, headway=(headway[0], headway[1]), stops=stops)
        lines.append(line)
    return lines


TASK: Task = Task(
    title="Find the latest connection that arrives in time",
    category="search",
    domain="research",
    apps=("web",),
    languages=("zh",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
