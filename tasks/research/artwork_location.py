"""Identify a painting among works of one title, and find out where it is today.

Three scrolls share title and painter: a seal that differs by one character and a copy on paper look right. The holder may have
become part of another museum, and what was announced was changed by a later notice. The painting is on loan, was put up for
sale, or travels with an exhibition, by variant, and today lies close to the days that decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, gated
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.words import TOWNS
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "想看{painter}的《{title}》，要{silk}、钤有“{seal}”印的那一本。请在网上查清它今天在哪里。",
        "请查{painter}《{title}》（{silk}，有“{seal}”鉴藏印）今天归谁、身在何处。",
        "{painter}画过《{title}》，我们要找的是{silk}、带“{seal}”印的一本，请查它今天所在的机构。",
        "帮忙核实一件作品今天的下落：{painter}《{title}》，{silk}，鉴藏印里有“{seal}”。",
        "图录要写明{painter}《{title}》（{silk}，钤“{seal}”印）今天的收藏者和所在地，请查实。",
        "请根据线索确认{painter}的《{title}》——{silk}、钤“{seal}”——今天由谁收藏、放在哪里。",
    )
}
PAINTERS = ("沈砚樵", "顾石田", "陆半村", "文雪江", "许松岩", "程墨农")
TITLES = ("秋山行旅图", "溪桥策杖图", "寒林归樵图", "春江晚渡图", "松下观泉图", "雪溪访友图")
SEALS = (("云谷珍赏", "云谷真赏"), ("半亩园藏", "半亩山藏"), ("听松书屋", "听松书室"), ("石渠清玩", "石渠清赏"))
HALLS = ("博物馆", "美术馆", "艺术馆", "民俗馆", "画院")
HOUSES = ("恒昌", "瑞和", "中宝")
PLAIN = "公告：展厅周一闭馆，其余照常。"
CARD = re.compile(r"藏品号：(\S+)\s质地：(\S+)\s鉴藏印：(\S+)\s收藏：(\S+)")
STAY = re.compile(r"(\d{4}-\d\d-\d\d)至(\d{4}-\d\d-\d\d)，(\S+?)[。；]")


@dataclass(frozen=True, slots=True)
class Stay:
    """Where a work is on some day: its owner, the place, and the last day of a loan."""

    owner: str
    place: str
    until: str = "无"


def build(world: World) -> Plan:
    """Draws three scrolls and what happened to the right one; variants: loan, sale, traveling exhibition."""
    rng, page = world.rng, world.web.page
    painter, title, (seal, near) = rng.choice(PAINTERS), rng.choice(TITLES), rng.choice(SEALS)
    towns = rng.sample(TOWNS["zh"], 7)
    names = [f"{town[:2]}{rng.choice(HALLS)}" for town in towns]
    home, moved, other, third = names[0], names[1], names[2], names[3]
    number, *numbers = (f"{rng.choice('甲乙丙丁')}{n}" for n in rng.sample(range(1000, 9999), 3))
    silk, paper = f"绢本{rng.choice(('设色', '水墨'))}", "纸本设色"
    base = "https://huazhi.example"
    keeper = moved if rng.random() < 0.8 else home
    state = (
        f"自{world.day(-rng.randrange(300, 900))}起并入{moved}，藏品随之移交，馆名不再使用。" if keeper != home else "常年开放。"
    )
    slugs = rng.sample(range(100, 999), 6)
    for slug, name, text in zip(slugs[3:], (home, other, third), (state, "常年开放。", "常年开放。"), strict=True):
        page(f"{base}/org/{slug}", name, text)

    shapes = [
        (number, silk, (seal, "听雨楼"), home),
        (numbers[0], silk, (near, "听雨楼"), other),
        (numbers[1], paper, (seal, "听雨楼"), third),
    ]
    links = []
    for index in rng.sample(range(3), 3):
        key, ground, seals, holder = shapes[index]
        marks = "".join(f"“{mark}”" for mark in rng.sample(seals, 2))
        note = "\n附记：后人仿本，印章亦为摹刻。" if index == 2 else ""
        text = f"藏品号：{key}\n质地：{ground}\n鉴藏印：{marks}\n收藏：{holder}{note}"
        url = f"{base}/work/{slugs[index]}"
        page(
            url, f"《{title}》{key}", text, links=[("收藏机构", f"{base}/org/{slugs[3 + index]}"), ("递藏记录", f"{url}/record")]
        )
        links.append((f"《{title}》{key}", url))
        if index:
            page(f"{url}/record", f"《{title}》{key}递藏记录", f"{world.day(-9000).year}年入藏{holder}，此后未曾外借。")
        else:
            stay = _history(world, f"{url}/record", f"《{title}》{key}", home, keeper, names[4:])
    page(f"{base}/title/{rng.randrange(10, 99)}", f"{painter}《{title}》", "同名作品存世三件，见各条。", links=links)
    page(
        f"https://daily.example/art/{rng.randrange(100)}",
        f"《{title}》亮相{third}",
        f"{painter}名作《{title}》近日在{third}展出，钤“{seal}”印。",
    )
    page(f"https://daily.example/art/{rng.randrange(100, 200)}", f"临《{title}》", f"本地画家临{painter}笔意，现挂于{names[6]}。")
    world.web.noise(3)

    told = Reported("number", number)
    return Plan(
        instruction=world.phrase(PHRASINGS, painter=painter, title=title, seal=seal, silk=silk),
        report=(
            Slot("number", "the work's inventory number", "该作品的藏品号"),
            Slot("owner", "current name of its owner today", "今天的收藏者，用现名"),
            Slot("place", "current name of the institution where it is today", "今天所在机构，用现名"),
            Slot(
                "until",
                "last day of the loan it is on, YYYY-MM-DD, or 无",
                "若正在外借，借展在该处的最后一天，YYYY-MM-DD；否则写“无”",
            ),
        ),
        checks=(
            Check("number", 0.1, told),
            Check("place", 0.5, gated(Reported("place", stay.place), told)),
            Check("owner", 0.2, gated(Reported("owner", stay.owner), told)),
            Check("until", 0.2, gated(Reported("until", stay.until), told, Reported("place", stay.place))),
        ),
        solve=partial(solve, painter, title, silk, seal, world.today.isoformat()),
    )


def _history(world: World, url: str, name: str, home: str, keeper: str, names: list[str]) -> Stay:
    """Writes what happened to the right scroll, with a notice that may change it, and returns where it is today."""
    rng, page, day = world.rng, world.web.page, world.today.isoformat()
    first, second, spare = names
    begin = f"{world.day(-9000).year}年由藏家捐赠{home}。"
    links = (("公告", f"{url}/notice"),)
    notice = PLAIN
    if world.variant == 1:
        handover, house, lot = world.day(rng.choice((-20, -1, 0, 1, 12))), rng.choice(HOUSES), rng.randrange(10, 99)
        page(
            url,
            f"{name}递藏记录",
            f"{begin}\n{world.day(-90)}在{house}拍卖行上拍，拍品{lot}号。",
            links=[("拍卖结果", f"{url}/event")],
        )
        text = f"拍品{lot}号{name}成交，买受人{first}。自{handover}起归买受人所有，由其运走；此前仍存原处。"
        stay = Stay(first, first) if handover <= world.today else Stay(keeper, keeper)
        case = rng.randrange(3)
        if case == 1:
            notice, stay = f"公告：拍品{lot}号买受人未付款，成交取消，作品仍归原主。", Stay(keeper, keeper)
        elif case == 2:
            notice = f"公告：拍品{lot}号的买受人已安排，作品交割后即长期寄存于{second}，所有权不变。"
            stay = Stay(first, second) if handover <= world.today else stay
        page(f"{url}/event", f"{house}拍卖结果", text, links=links)
    else:
        page(url, f"{name}递藏记录", f"{begin}\n{world.day(-70)}起外借参展。", links=[("展览", f"{url}/event")])
        end = rng.choice((-6, -1, 0, 7))
        stays = [(world.day(-60), world.day(end), first)]
        if world.variant == 2:
            gap = rng.randrange(3, 8)
            start = rng.choice((end + gap, min(0, end + gap)) if end < 0 else (end + gap,))
            stays.append((world.day(start), world.day(start + 40), second))
        text = "；".join(f"{start}至{last}，{place}" for start, last, place in stays)
        if world.variant == 2 and rng.random() < 0.6:
            notice = f"公告：第二站改为{stays[1][0]}至{stays[1][1]}，{spare}。第一站不变。"
            stays[1] = (*stays[1][:2], spare)
        elif world.variant == 0 and rng.random() < 0.6:
            last = world.day(end + rng.choice((1, 6, 30)))
            notice = f"公告：展期延长，{stays[0][0]}至{last}，{first}。"
            stays = [(stays[0][0], last, first)]
        page(f"{url}/event", f"{name}参加的展览", f"展期（含首尾两天）：{text}。\n其余日子作品存于出借方。", links=links)
        now = [(str(last), place) for start, last, place in stays if str(start) <= day <= str(last)]
        stay = Stay(keeper, now[0][1], now[0][0]) if now else Stay(keeper, keeper)
    page(f"{url}/notice", f"{name}：公告", notice)
    return stay


def solve(painter: str, title: str, silk: str, seal: str, today: str) -> Steps:
    """Finds the scroll by ground and seal, follows its record, and applies the notice to the day."""
    found = yield Step(action=ToolCall("search_web", {"query": f"{painter} {title}"}), skill="planning")
    hub = next(hit["url"] for hit in found["results"] if hit["title"] == f"{painter}《{title}》")
    yield Step(action=ToolCall("open_page", {"url": hub}), skill="exploration")
    query = f"{title} {silk} 鉴藏印"
    found = yield Step(action=ToolCall("search_web", {"query": query}), skill="exploration")
    marked = sorted(found["results"], key=lambda hit: f"“{seal}”" not in hit["snippet"])
    work = yield Step(
        action=ToolCall("open_page", {"url": marked[0]["url"]}),
        skill="disambiguation",
        difficulty=0.5,
        slips=tuple((ToolCall("open_page", {"url": hit["url"]}),) for hit in marked[1:]),
    )
    number, _, _, holder = CARD.findall(work["text"])[0]
    links = {link["text"]: link["url"] for link in work["links"]}
    org = yield Step(action=ToolCall("open_page", {"url": links["收藏机构"]}), skill="consistency")
    keeper = (re.findall(r"起并入(\S+?)，", org["text"]) or [holder])[0]
    record = yield Step(action=ToolCall("open_page", {"url": links["递藏记录"]}), skill="exploration")
    event, notice = {"text": ""}, {"text": ""}
    if record["links"]:
        event = yield Step(action=ToolCall("open_page", {"url": record["links"][0]["url"]}), skill="exploration")
        notice = yield Step(action=ToolCall("open_page", {"url": event["links"][0]["url"]}), skill="consistency")

    def told(owner: str, news: str, day: str) -> dict[str, str]:
        stay = located(event["text"], news, owner, day)
        return {"number": number, "owner": stay.owner, "place": stay.place, "until": stay.until}

    right = told(keeper, notice["text"], today)
    cards = [CARD.findall(hit["snippet"]) for hit in marked[1:]]
    others = [dict(zip(right, (card[0][0], card[0][3], card[0][3], "无"), strict=True)) for card in cards if card]
    wrong = [told(keeper, "", today), told(holder, notice["text"], today), told(keeper, notice["text"], "9999"), *others]
    yield Step(
        action=Finish(answer=f"今天在{right['place']}。", data=right),
        skill="consistency",
        difficulty=0.8,
        slips=tuple((Finish(answer="", data=data),) for data in wrong if data != right),
    )


def located(event: str, notice: str, keeper: str, day: str) -> Stay:
    """Returns where a work is on a day, from the page of its sale or exhibition and the notice about it."""
    sold = re.findall(r"买受人(\S+?)。自(\S+?)起", event)
    if sold:
        buyer, handover = sold[0]
        if "成交取消" in notice or day < handover:
            return Stay(keeper, keeper)
        return Stay(buyer, (re.findall(r"寄存于(\S+?)，", notice) or [buyer])[0])
    stays, changed = STAY.findall(event), STAY.findall(notice)
    stays = [*stays[: len(stays) - 1], *changed] if changed else stays
    now = [Stay(keeper, place, last) for start, last, place in stays if start <= day <= last]
    return now[0] if now else Stay(keeper, keeper)


TASK: Task = Task(
    title="Find out where a painting is today",
    category="search",
    domain="research",
    apps=("web",),
    languages=("zh",),
    patterns=("superseded sources", "near miss at a limit", "distractors", "namesakes", "join under different keys"),
    build=build,
    variants=3,
    annotated=False,
)
