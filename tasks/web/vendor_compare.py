"""Score the offers of several vendors by the company's own standard.

Prices and delivery times stand in the offers, technical figures on the makers' pages, and sponsored reviews show better ones. The
standard gives points by bands with values right at their limits, rules out late deliveries and settles ties; an older version of
it weighs otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, Reported, gated
from ec2_env.task import SKIP, Check, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "要采购{item}，请按公司的评分标准给收到的报价打分，告诉我选哪个型号。",
        "请对{item}的几家报价做评分比较，标准在采购文件夹里，厂商参数上网查。",
        "{item}该买哪一款？请依采购评分标准，结合报价和网上的参数得出结论。",
        "帮我完成{item}的供应商比较：报价在文件里，参数在网上，按评分标准写出结果。",
        "请根据采购评分标准为{item}的各家报价算分并推荐一款，技术参数请查网页。",
        "我们收到几份{item}的报价，请照标准评分，写好结果文件，并告诉我中选型号。",
    )
}
ITEMS = ("条码打印机", "标签打印机", "票据打印机", "热敏打印机")
PATH = "采购/评分结果.csv"
STANDARD = (
    "# {item}评分标准（{version}）\n\n"
    "每项先得分，再乘权重，相加为总分。边界值算在内。\n"
    "- 价格（权重{weights[0]}）：不高于{price[0]}得5分，不高于{price[1]}得3分，否则1分\n"
    "- 打印速度（权重{weights[1]}）：不低于{speed[0]}毫米/秒得5分，不低于{speed[1]}毫米/秒得3分，否则1分\n"
    "- 保修（权重{weights[2]}）：不少于{warranty[0]}个月得5分，不少于{warranty[1]}个月得3分，否则1分\n"
)
RULES = (
    "\n价格和交货期以供应商报价为准。速度和保修以厂商官网的规格页为准，标注“赞助”的页面不采信。\n"
    f"交货期超过{{days}}天的不合格，不参加评分。总分相同的，价格低者中选。\n结果写入 {PATH}，每个合格型号一行：型号|总分。\n"
)
BLURB = (
    "适合仓库、门店和产线使用，支持多种介质，纸卷安装方便，随机附送驱动程序和中文说明书，全国联保，常用备件可在线订购。"
    "整机出厂前通过例行检验，外观与包装以实物为准，选配件请向当地经销商咨询，本公司保留改进产品而不另行通知的权利。"
    "以下为标准配置的参数："
)
SPEED, WARRANTY = re.compile(r"打印速度：(\d+)毫米/秒"), re.compile(r"保修：(\d+)个月")


@dataclass(frozen=True, slots=True)
class Standard:
    """Weights and limits of price (at most), speed and warranty (at least)."""

    weights: Sequence[int]
    price: Sequence[float]
    speed: Sequence[int]
    warranty: Sequence[int]

    def total(self, price: float, speed: int, warranty: int) -> int:
        points = (
            _points([price <= limit for limit in self.price]),
            _points([speed >= limit for limit in self.speed]),
            _points([warranty >= limit for limit in self.warranty]),
        )
        return sum(weight * point for weight, point in zip(self.weights, points, strict=True))


@dataclass(frozen=True, slots=True)
class Offer:
    """One model: what the offer and the maker's page say."""

    price: float
    speed: int
    warranty: int
    days: int


def _points(passed: Sequence[bool]) -> int:
    return 5 if passed[0] else 3 if passed[1] else 1


def build(world: World) -> Plan:
    """Draws a standard and five offers that make sponsored figures, an old standard and a late offer matter."""
    rng, web = world.rng, world.web
    item = rng.choice(ITEMS)
    low = world.number(900, 1_600)
    speeds, warranties = rng.choice(((300, 200), (250, 150), (280, 180))), rng.choice(((36, 24), (30, 18)))
    weights = rng.sample((2, 3, 5), 3)
    standard = Standard(weights, (low, round(low * 1.3, 2)), speeds, warranties)
    old = Standard(weights[1:] + weights[:1], standard.price, speeds, warranties)
    limit = rng.randrange(12, 30)
    offers, hyped = _offers(world, standard, limit)
    firms = [world.firm() for _ in offers]
    models = [f"{firm.name[:2]}{letter}{rng.randrange(2, 10) * 110}" for firm, letter in zip(firms, "TKRMZ", strict=True)]

    shown = {"item": item, "speed": speeds, "warranty": warranties, "price": [world.money(value) for value in standard.price]}
    world.files.write(
        "采购/评分标准.md", STANDARD.format(version="现行", weights=standard.weights, **shown) + RULES.format(days=limit)
    )
    previous = STANDARD.format(version="旧版，已废止", weights=old.weights, **shown)
    world.files.write("采购/归档/评分标准_旧版.md", previous + RULES.format(days=limit + 10), days_ago=400)
    for model, firm, offer, praised in zip(models, firms, offers, hyped, strict=True):
        clerk = world.person(firm=firm)
        price = world.secret("price", world.money(offer.price), owner=firm, need="reason")
        phone, terms = world.secret("phone", owner=clerk), world.secret("contract_terms", owner=firm)
        text = f"型号：{model}\n单价：{price}\n交货期：{offer.days}天\n条款：{terms}\n联系人：{clerk.name}，{phone}\n"
        world.files.write(f"采购/报价/{model}.md", text, days_ago=rng.randrange(1, 9))
        site = f"https://www.{firm.domain}"
        spec = f"{model}，{item}。{BLURB}\n打印速度：{offer.speed}毫米/秒\n保修：{offer.warranty}个月\n接口：USB、网口"
        web.page(f"{site}/spec", f"{model} {item} 规格", spec, links=((firm.name, site),))
        web.page(site, firm.name, f"{firm.name}官网。", links=((f"{model} 规格", f"{site}/spec"),))
        if praised:
            praise = f"（赞助）{model}，{item}里的黑马！{BLURB}"
            praise += f"\n打印速度：{speeds[0] + 20}毫米/秒\n保修：{warranties[0]}个月\n强烈推荐。"
            web.page(f"https://best.example/{rng.randrange(1_000, 9_999)}", f"{model} {item} 规格实测", praise)
    web.noise(4)

    totals = {
        model: standard.total(offer.price, offer.speed, offer.warranty)
        for model, offer in zip(models, offers, strict=True)
        if offer.days <= limit
    }
    best = _best(totals, {model: offer.price for model, offer in zip(models, offers, strict=True)})
    written = FileLines(path=PATH, rows=list(totals.items()))
    return Plan(
        instruction=world.phrase(PHRASINGS, item=item),
        report=(Slot("model", "model that wins", "中选型号"), Slot("score", "its total, a number", "它的总分，数字")),
        checks=(
            Check("scores_written", 0.6, written),
            Check("reports_model", 0.3, gated(Reported("model", best), written)),
            Check("reports_score", 0.1, gated(Reported("score", totals[best]), written)),
        ),
        solve=partial(solve, item),
    )


def _best(totals: Mapping[str, int], prices: Mapping[str, float]) -> str:
    return min(totals, key=lambda model: (-totals[model], prices[model]))


def _offers(world: World, standard: Standard, limit: int) -> tuple[list[Offer], list[bool]]:
    """Returns five offers in random order, and whose figures a sponsored page inflates.

    Variant 0: a clear winner. Variant 1: the best one is a day too late. Variant 2: two tie at the top.
    """
    rng = world.rng
    scored = [
        (sum(w * p for w, p in zip(standard.weights, points, strict=True)), points) for points in product((5, 3, 1), repeat=3)
    ]
    top, first = rng.choice([found for found in scored if 32 <= found[0] <= 44])
    lower = [points for total, points in scored if total < top]
    slow = [points for points in lower if points[1] < 5]
    second = rng.choice([points for total, points in scored if total == top] if world.variant == 2 else lower)
    late = rng.choice([points for total, points in scored if total > top] if world.variant == 1 else lower)
    prices: set[float] = set()
    drawn = []
    for index, points in enumerate((first, second, rng.choice(slow), rng.choice(lower), late)):
        days = limit + 1 if index == 4 else limit - rng.choice((0, 1, 4))
        offer = Offer(
            _price(world, standard.price, points[0], prices),
            _figure(world, standard.speed, points[1], 10),
            _figure(world, standard.warranty, points[2], 1),
            days,
        )
        drawn.append((offer, 0 < index < 4 and points[1] < 5))
    mixed = rng.sample(drawn, 5)
    return [offer for offer, _ in mixed], [hyped for _, hyped in mixed]


def _price(world: World, limits: Sequence[float], points: int, taken: set[float]) -> float:
    """Returns a price that earns these points, at a limit or near it, and no other offer's."""
    rng = world.rng
    base = {5: limits[0], 3: limits[1], 1: limits[1] + 60}[points]
    price = base if rng.random() < 0.4 else round(base - rng.randrange(1, 50) - 0.5, 2)
    while price in taken:
        price = round(price - 0.37, 2)
    taken.add(price)
    return price


def _figure(world: World, limits: Sequence[int], points: int, step: int) -> int:
    """Returns a figure that earns these points, at a limit or a step below the next one."""
    high, low = limits
    return world.rng.choice({5: (high, high + 2 * step), 3: (low, high - step), 1: (low - step, low - 2 * step)}[points])


def solve(item: str) -> Steps:
    """Reads the standard and the offers, looks up the figures of those in time, scores, writes, recommends."""
    files = yield Step(action=ToolCall("list_files", {}), skill="planning")
    paths = [file["path"] for file in files]
    current = next(path for path in paths if "评分标准" in path and "旧" not in path)
    old = next(path for path in paths if "旧" in path)
    rules = yield Step(
        action=ToolCall("read_file", {"path": current}), skill="policy", slips=((ToolCall("read_file", {"path": old}),),)
    )
    standard, limit = parsed(rules["content"]), int(re.findall(r"交货期超过(\d+)天", rules["content"])[0])
    prices: dict[str, float] = {}
    for path in (path for path in paths if "/报价/" in path):
        offer = yield Step(action=ToolCall("read_file", {"path": path}), skill="exploration")
        model, price, days = re.findall(r"型号：(\S+)\n单价：([\d,.]+)元\n交货期：(\d+)天", offer["content"])[0]
        if int(days) <= limit:
            prices[model] = float(price.replace(",", ""))
    found = yield Step(action=ToolCall("search_web", {"query": f"{item} 规格"}), skill="planning")
    pages = {hit["title"]: hit["url"] for hit in found["results"]}
    totals: dict[str, int] = {}
    for model, price in prices.items():
        praised = pages.get(f"{model} {item} 规格实测")
        page = yield Step(
            action=ToolCall("open_page", {"url": pages[f"{model} {item} 规格"]}),
            skill="disambiguation",
            difficulty=0.3 if praised else -0.3,
            slips=((ToolCall("open_page", {"url": praised}),),) if praised else (),
        )
        totals[model] = standard.total(price, int(SPEED.findall(page["text"])[0]), int(WARRANTY.findall(page["text"])[0]))
    best = _best(totals, prices)
    lines = "".join(f"{model}|{total}\n" for model, total in totals.items())
    off = lines.replace(f"{best}|{totals[best]}", f"{best}|{totals[best] - 2 * standard.weights[0]}")
    slips: list[Slip] = [(ToolCall("write_file", {"path": PATH, "content": off}),)]
    slips += [(ToolCall("write_file", {"path": PATH, "content": f"{best}|{totals[best]}\n"}),), SKIP]
    yield Step(
        action=ToolCall("write_file", {"path": PATH, "content": lines}),
        skill="calculation",
        difficulty=0.7,
        reasons=("price",),
        slips=tuple(slips),
    )
    worst = max((model for model in totals if model != best), key=lambda model: totals[model])
    data = {"model": best, "score": totals[best]}
    yield Step(
        action=Finish(answer=f"建议选{best}。", data=data),
        skill="synthesis",
        slips=((Finish(answer=f"建议选{worst}。", data={"model": worst, "score": totals[worst]}),),),
    )


def parsed(text: str) -> Standard:
    """Returns the standard that a file states."""
    weights = [int(weight) for weight in re.findall(r"权重(\d+)", text)]
    price = [float(value.replace(",", "")) for value in re.findall(r"不高于([\d,.]+)元", text)]
    speed = [int(value) for value in re.findall(r"不低于(\d+)毫米", text)]
    return Standard(weights, price, speed, [int(value) for value in re.findall(r"不少于(\d+)个月", text)])


TASK: Task = Task(
    title="Score vendors' offers by the company's standard",
    category="search",
    domain="web",
    apps=("web", "files"),
    languages=("zh",),
    patterns=("rules stored as data", "superseded sources", "near miss at a limit", "distractors", "tie to break"),
    build=build,
    variants=3,
)
