"""Collect figures over the linked pages of an in-house wiki.

The name of the program is ambiguous, one station was renamed and another's page merged into a new one, a mirror shows everything
as it was months ago, and some figures were adjusted: some already in force, some not yet. Which stations count stands on a page
of its own, and the rule is another one in each variant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedSet
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.words import TOWNS
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "请在内部百科里查{program}（仓储分拣那个）：按其统计口径，哪些站点计入，合计日处理量是多少，哪一站最大？",
        "帮我从内部百科整理仓储分拣方面的{program}：计入统计的站点、它们今天的合计日处理量、以及最大的一站。",
        "需要{program}（仓储分拣项目）的数据：依百科上的统计口径列出计入站点，算出合计日处理量，指出最大的站。",
        "内部百科上有仓储分拣的{program}，请照页面规定的口径统计站点和今天的日处理量，并找出最大站。",
        "请汇总仓储分拣{program}各站在内部百科上的日处理量，哪些该算以统计口径为准，再告诉我最大的是哪站。",
        "按内部百科的统计口径，统计{program}（做仓储分拣的）今天有哪些站点计入、总日处理量多少、最大站是谁。",
    )
}
PROGRAMS = ("蓝鹭计划", "铜鸢计划", "静橡计划", "铁莲计划", "冬鹅计划", "金穗计划")
PLACES = tuple(f"{town[:2]}{side}站" for town in TOWNS["zh"] for side in "东南西北")
RULES = (
    "只计状态为“启用”的站点，自营、外包不限。",
    "计状态为“启用”的站点，以及状态为“筹备”而启用日期不晚于{bound}的站点。",
    "只计状态为“启用”并且由公司自营的站点，外包站点不计。",
)
COMMON = "日处理量以今天已生效的数值为准，尚未生效的调整不算；站点用现名。"
WIKI, MIRROR = "https://wiki.office.example", "https://baike-mirror.example"
HEAD = re.compile(r"状态：(\S+)\n启用日期：(\S+)\n运营：(\S+)\n日处理量：([\d,]+)件")
LATER = re.compile(r"自(\d{4}-\d\d-\d\d)起调整为([\d,]+)件")
NEWER = re.compile(r"最新数据见“(.*?)”")


@dataclass(slots=True)
class Station:
    """One station as the wiki has it today."""

    name: str
    state: str
    opened: str
    runner: str
    figure: int
    change: tuple[str, int] | None = None

    def today(self, day: str) -> int:
        return self.change[1] if self.change and self.change[0] <= day else self.figure

    def counts(self, variant: int, bound: str) -> bool:
        if variant == 1 and self.state == "筹备":
            return self.opened <= bound
        return self.state == "启用" and (variant != 2 or self.runner == "自营")


def build(world: World) -> Plan:
    """Draws seven stations around the rule, and writes the wiki, its mirror and a namesake program."""
    rng, web = world.rng, world.web
    program = rng.choice(PROGRAMS)
    day, bound = world.today.isoformat(), world.day(rng.randrange(20, 60))
    names = rng.sample(PLACES, 9)
    states = ["启用"] * 4 + ["筹备", "筹备", "停用"]
    runners = ["自营", "外包", "自营", "自营", *(rng.choice(("自营", "外包")) for _ in range(3))]
    opened = [world.day(-rng.randrange(60, 600)) for _ in range(4)] + [bound, bound + timedelta(days=1), world.day(-700)]
    figures = rng.sample(range(1_201, 4_800), 7)
    stations = [
        Station(name, state, date.isoformat(), runner, figure)
        for name, state, date, runner, figure in zip(names, states, opened, runners, figures, strict=False)
    ]
    stations[0].change = (world.day(-rng.randrange(0, 30)).isoformat(), figures[0] + rng.randrange(110, 400))
    stations[2].change = (world.day(rng.randrange(1, 30)).isoformat(), figures[2] + rng.randrange(110, 400))
    order = rng.sample(stations, 7)
    renamed, merged = rng.sample([stations[0], *stations[2:4]], 2)
    slugs = {station.name: f"{WIKI}/site/{number}" for station, number in zip(order, rng.sample(range(100, 999), 7), strict=True)}
    shown = {station.name: station.name for station in stations} | {renamed.name: names[7], merged.name: merged.name}

    listed = []
    for station in order:
        url, head = slugs[station.name], world.person()
        counted = station.counts(world.variant, bound.isoformat())
        phone, rent = world.secret("phone", owner=head), world.secret("amount", owner=station.name)
        tail = f"\n站长：{head.name}，{phone}\n月租：{rent}"
        figure = world.secret("amount", f"{station.today(day):,}件", owner=station.name, need="reason" if counted else "none")
        text = _head(station, figure if station.change is None else f"{station.figure:,}件")
        if station.change is not None:
            text += f"\n自{station.change[0]}起调整为{f'{station.change[1]:,}件'}"
        if station is merged:
            web.page(f"{url}/new", station.name, text + tail)
            old = Station(station.name, station.state, station.opened, station.runner, station.figure - rng.randrange(90, 200))
            web.page(url, station.name, f"{_head(old)}\n本页不再更新，最新数据见“新版页面”", links=(("新版页面", f"{url}/new"),))
        else:
            web.page(url, station.name, text + tail)
        target = url
        if station is renamed:
            target = f"{WIKI}/site/old-{rng.randrange(100, 999)}"
            web.redirect(target, url)
        listed.append((shown[station.name], target))
    rule = RULES[world.variant].format(bound=bound.isoformat())
    web.page(f"{WIKI}/scope", f"{program}统计口径", f"{rule}{COMMON}")
    home = f"{WIKI}/program"
    web.page(home, f"{program}（仓储）", "仓储分拣试点项目，站点如下。", links=[("统计口径", f"{WIKI}/scope"), *listed])
    web.page(
        f"{WIKI}/course",
        f"{program}（培训）",
        f"面向新员工的培训项目，在{names[8]}和{order[0].name}上课。",
        links=[("统计口径", f"{WIKI}/scope"), (order[0].name, slugs[order[0].name]), (order[1].name, slugs[order[1].name])],
    )
    choices = [(f"{program}（培训）", f"{WIKI}/course"), (f"{program}（仓储）", home)]
    web.page(f"{WIKI}/is", program, f"“{program}”可能指：培训项目，或仓储分拣项目。", links=rng.sample(choices, 2))
    _mirror(world, program, order)
    web.noise(3)

    chosen = {station.name: station.today(day) for station in stations if station.counts(world.variant, bound.isoformat())}
    return Plan(
        instruction=world.phrase(PHRASINGS, program=program),
        report=(
            Slot("stations", "list of the current names of the stations that count", "计入站点的现名，列表"),
            Slot("total", "their total per day, a number", "合计日处理量，数字"),
            Slot("largest", "name of the largest of them", "其中最大站点的现名"),
        ),
        checks=(
            Check("stations", 0.4, ReportedSet("stations", set(chosen))),
            Check("total", 0.4, Reported("total", sum(chosen.values()))),
            Check("largest", 0.2, Reported("largest", max(chosen, key=lambda name: chosen[name]))),
        ),
        solve=partial(solve, program, day),
    )


def _head(station: Station, figure: str = "") -> str:
    shown = figure or f"{station.figure:,}件"
    return f"状态：{station.state}\n启用日期：{station.opened}\n运营：{station.runner}\n日处理量：{shown}"


def _mirror(world: World, program: str, order: list[Station]) -> None:
    """Writes the mirror: the same pages, months old."""
    links = [("统计口径", f"{MIRROR}/scope")]
    for number, station in enumerate(order):
        figure = station.figure - world.rng.randrange(210, 400)
        old = Station(station.name, "启用" if station.state == "停用" else station.state, station.opened, station.runner, figure)
        url = f"{MIRROR}/site/{number}"
        world.web.page(url, station.name, f"{_head(old)}\n（镜像，同步于{world.day(-200)}）")
        links.append((station.name, url))
    world.web.page(f"{MIRROR}/scope", f"{program}统计口径", f"{RULES[0]}{COMMON}（镜像，同步于{world.day(-200)}）")
    text = f"仓储分拣试点项目，站点如下。（镜像，同步于{world.day(-200)}，仅供参考）"
    world.web.page(f"{MIRROR}/program", f"{program}（仓储）", text, links=links)


def solve(program: str, today: str) -> Steps:
    """Resolves the name, reads the rule, opens every station, follows moved pages, adds up what counts."""
    found = yield Step(action=ToolCall("search_web", {"query": program}), skill="planning")
    urls = {hit["url"]: hit["title"] for hit in found["results"]}
    fork = next(url for url, title in urls.items() if title == program)
    copies = [url for url, title in urls.items() if url.startswith(MIRROR) and title.endswith("（仓储）")]
    start = yield Step(action=ToolCall("open_page", {"url": fork}), skill="disambiguation")
    follow = {"url": start["url"], "text": f"{program}（仓储）"}
    home = yield Step(
        action=ToolCall("follow_link", follow),
        skill="disambiguation",
        slips=(
            *((ToolCall("open_page", {"url": url}),) for url in copies),
            (ToolCall("follow_link", {**follow, "text": f"{program}（培训）"}),),
        ),
    )
    links = {link["text"]: link["url"] for link in home["links"]}
    scope = yield Step(action=ToolCall("open_page", {"url": links.pop("统计口径")}), skill="policy")
    bound = (re.findall(r"不晚于(\d{4}-\d\d-\d\d)", scope["text"]) or [""])[0]
    own = "自营的站点" in scope["text"]
    chosen: dict[str, int] = {}
    rest: dict[str, int] = {}
    stale: dict[str, int] = {}
    for url in links.values():
        page = yield Step(action=ToolCall("open_page", {"url": url}), skill="exploration")
        name, newer = page["title"], NEWER.findall(page["text"])
        if newer:
            stale[name] = int(HEAD.findall(page["text"])[0][-1].replace(",", ""))
            page = yield Step(action=ToolCall("follow_link", {"url": page["url"], "text": newer[0]}), skill="consistency")
        state, opened, runner, figure = HEAD.findall(page["text"])[0]
        later = [value for since, value in LATER.findall(page["text"]) if since <= today]
        counts = (state == "启用" and (not own or runner == "自营")) or (state == "筹备" and opened <= bound)
        (chosen if counts else rest)[name] = int((later or [figure])[-1].replace(",", ""))
    most = max(chosen, key=lambda name: chosen[name])
    total = sum(chosen.values())
    data = {"stations": list(chosen), "total": total, "largest": most}
    extra = next(iter(rest), most)
    more = {**data, "stations": [*chosen, extra], "total": total + rest.get(extra, 0)}
    fewer = {name: figure for name, figure in chosen.items() if name != most}
    yield Step(
        action=Finish(answer=f"{len(chosen)}个站点，合计{data['total']}件。", data=data),
        skill="calculation",
        difficulty=0.8,
        reasons=("amount",),
        slips=(
            (Finish(answer="见数据。", data={**data, "total": sum({**chosen, **stale}.values())}),),
            (Finish(answer="见数据。", data=more),),
            (Finish(answer="见数据。", data={**data, "stations": list(fewer), "total": sum(fewer.values())}),),
        ),
    )


TASK: Task = Task(
    title="Collect figures over linked wiki pages",
    category="search",
    domain="web",
    apps=("web",),
    languages=("zh",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors", "namesakes"),
    build=build,
    variants=3,
)
