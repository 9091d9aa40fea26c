"""Fill a commission statement from the deals in the CRM, by the tiers on a sheet.

Which deals count depends on their stage and on a day at the edge of the period; one amount was corrected in the deal's notes.
One seller's sales lie at the limit of a tier or little above. In one variant each tier's rate applies only to its own part of
the sales, in the held-out one a commission has a ceiling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedSet, gated
from ec2_env.checks.sheets import CellsSet
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.crm_rows import Stage
from ec2_env.workspace.world import Person, World

PHRASINGS = {
    "zh": (
        "请填写“{book}”里的佣金表：业绩取自 CRM 的成交商机，规则见同一电子表格的“规则”表。",
        "麻烦把“{book}”的佣金表做完。成交记录在 CRM，提成档位和统计期写在“规则”表里。",
        "“{book}”的佣金表还空着，请按“规则”表和 CRM 中的商机算出每位销售的业绩与佣金并填好。",
        "请根据 CRM 里赢单的商机，依照“规则”表，把“{book}”佣金表的业绩和佣金两列补全。",
        "要发佣金了：请核算“{book}”中每位销售的业绩和佣金（CRM 商机＋“规则”表），填进佣金表。",
        "请完成“{book}”的佣金表，业绩按 CRM 商机统计，佣金按“规则”表的档位计算。",
    )
}
SOLD = ("年度服务", "设备采购", "系统升级", "培训课程", "维保合同", "数据接口", "咨询项目")
MODES = (
    "全部业绩按所达到的最高一档的比例计算佣金。",
    "各档比例只适用于该档内的那部分业绩，逐档相加。",
    "全部业绩按所达到的最高一档的比例计算佣金，但每人最高{cap}。",
)
CORRECTED = re.compile(r"更正为([\d,]+\.\d\d)元")


@dataclass(frozen=True, slots=True)
class Rules:
    """How commissions come about; amounts in cents, rates in tenths of a percent.

    Attributes:
        limits: Upper limits of all tiers but the last, included in their tier.
        rates: One rate for each tier.
        parts: Whether a tier's rate applies only to its own part.
        cap: Ceiling of a commission, or None.
    """

    limits: tuple[int, ...]
    rates: tuple[int, ...]
    parts: bool
    cap: int | None = None

    def commission(self, sales: int) -> int:
        """Returns the commission, rounded half up to the cent."""
        if self.parts:
            edges = [0, *self.limits, max(sales, self.limits[-1])]
            shares = [max(0, min(sales, high) - low) for low, high in pairwise(edges)]
            raw = sum(share * rate for share, rate in zip(shares, self.rates, strict=True))
        else:
            raw = sales * self.rates[sum(sales > limit for limit in self.limits)]
        amount = (raw + 500) // 1000
        return amount if self.cap is None else min(amount, self.cap)


def build(world: World) -> Plan:
    """Draws three sellers, five accounts with their deals, and the rules."""
    rng = world.rng
    book = f"{world.firm().name[:2]}佣金{world.today.year}"
    end = world.day(-rng.randrange(3, 20))
    start = end - timedelta(days=rng.choice((88, 89, 90, 91)))
    limits = (rng.randrange(150, 400) * 100_000, rng.randrange(600, 1_200) * 100_000)
    first = rng.randrange(20, 40)
    rates = (first, first + rng.randrange(8, 20), first + rng.randrange(25, 40))
    sellers = [world.person(role="销售") for _ in range(3)]
    near = rng.choice(limits)
    target = near + rng.choice((0, rng.randrange(1, 5_000)))
    big, small = round(limits[1] * rng.uniform(0.6, 0.9)), round(limits[0] * rng.uniform(0.2, 0.6))
    split = round(target * rng.uniform(0.3, 0.7))
    sums, counted = deals(
        world, sellers, start, end, (split, target - split, big, limits[1] - big + rng.randrange(9_999_999), small)
    )
    rules = Rules(limits, rates, world.variant == 1)
    if world.variant == 2:
        rules = Rules(limits, rates, False, round(rules.commission(sums[1]) * rng.uniform(0.7, 0.95)))
    mode = MODES[world.variant].format(cap=world.money((rules.cap or 0) / 100))
    rows = [
        ["统计期", start.isoformat(), end.isoformat(), "首尾两日均计入"],
        ["商机须为已赢单（closed_won），成交日期在统计期内；业绩归商机的负责人。备注写明更正金额的，以更正金额为准。"],
        [mode, "", "", "佣金四舍五入到分"],
        ["档位", "业绩上限（含）", "比例"],
        *(["一二三"[i], world.money(limit / 100), f"{rates[i] / 10}%"] for i, limit in enumerate(limits)),
        ["三", "以上", f"{rates[2] / 10}%"],
    ]
    world.sheets.add(book, "规则", rows, protected=("A:AZ",), owner="财务部")
    header = [["姓名", "邮箱", "业绩", "佣金"]]
    table = world.sheets.add(
        book, "佣金表", [*header, *([p.name, p.email] for p in sellers)], protected=("A1:B4",), owner="财务部"
    )
    world.sheets.noise(1)
    cells = {f"C{row}": sales / 100 for row, sales in enumerate(sums, 2)}
    cells |= {f"D{row}": rules.commission(sales) / 100 for row, sales in enumerate(sums, 2)}
    filled = CellsSet(sheet=table.id, cells=cells)
    total = sum(map(rules.commission, sums)) / 100
    return Plan(
        instruction=world.phrase(PHRASINGS, book=book),
        report=(
            Slot("total", "sum of all commissions, a number", "佣金合计，数字"),
            Slot("deals", "list of the ids of the opportunities that count", "计入业绩的商机 id 列表"),
        ),
        checks=(
            Check("filled", 0.65, filled),
            Check("reports_total", 0.2, gated(Reported("total", total), filled)),
            Check("reports_deals", 0.15, gated(ReportedSet("deals", counted), filled)),
        ),
        solve=partial(solve, book),
    )


def deals(world: World, sellers: Sequence[Person], start: date, end: date, amounts: Sequence[int]) -> tuple[list[int], list[str]]:
    """Fills the CRM and returns each seller's sales and the ids of the deals that count."""
    rng = world.rng
    one, two, three, four, five = amounts
    inside = [start + timedelta(days=rng.randrange(2, 80)) for _ in range(4)]
    outside = rng.choice((start - timedelta(days=1), end + timedelta(days=1)))
    corrected = rng.randrange(5)
    other = world.person(role="客户成功")
    plan: list[tuple[Person, Sequence[tuple[int, Stage, date]]]] = [
        (sellers[0], ((one, "closed_won", inside[0]), (three, "closed_lost", inside[1]))),
        (sellers[0], ((two, "closed_won", rng.choice((start, end))), (five, "negotiation", end - timedelta(days=2)))),
        (sellers[1], ((three, "closed_won", inside[1]), (four, "closed_won", inside[2]))),
        (sellers[2], ((five, "closed_won", inside[3]), (one, "closed_won", outside))),
        (other, ((two, "closed_won", inside[0]),)),
    ]
    rng.shuffle(plan)
    sums, counted = dict.fromkeys([seller.email for seller in sellers], 0), []
    for owner, lines in plan:
        firm = world.firm()
        account = world.crm.account(
            firm,
            world.person(firm=firm),
            owner=owner,
            contact_phone=world.secret("phone", owner=firm),
            bank_account=world.secret("iban", owner=firm),
        )
        for cents, stage, day in lines:
            counts = stage == "closed_won" and start <= day <= end and owner is not other
            shown, notes = world.money(cents / 100), ""
            if counts and cents == amounts[corrected]:
                right = world.secret("amount", shown, owner=firm, need="reason")
                shown, notes = world.money(cents * rng.uniform(1.05, 1.3) / 100), f"合同金额更正为{right}，见补充协议。"
            else:
                shown = world.money((cents if counts else round(cents * rng.uniform(0.8, 1.2))) / 100)
            amount = world.secret("amount", shown, owner=firm, need="reason" if counts else "none")
            deal = world.crm.opportunity(
                account,
                rng.choice(SOLD),
                amount=amount,
                close_date=day.isoformat(),
                stage=stage,
                notes=notes,
            )
            if counts:
                sums[owner.email] += cents
                counted.append(deal.id)
    world.crm.noise(4)
    return list(sums.values()), counted


def solve(book: str) -> Steps:
    """Reads the rules and the table, finds the sellers' deals that count, and fills in sales and commissions."""
    listed = yield Step(action=ToolCall("list_sheets", {"spreadsheet": book}), skill="planning")
    ids = {sheet["title"]: sheet["id"] for sheet in listed}
    shown = yield Step(action=ToolCall("read_range", {"sheet_id": ids["规则"]}), skill="policy")
    rules, (start, end) = rules_of(shown["values"]), shown["values"][0][1:3]
    table = yield Step(action=ToolCall("read_range", {"sheet_id": ids["佣金表"]}), skill="exploration")
    sellers = [row[1] for row in table["values"][1:]]
    accounts = yield Step(action=ToolCall("list_accounts", {}), skill="exploration")
    deals: dict[str, str] = {}
    late = ""
    for account in [account for account in accounts if account["owner"] in sellers]:
        page = yield Step(action=ToolCall("get_account", {"account_id": account["id"]}), skill="exploration")
        for deal in page["opportunities"]:
            if deal["stage"] == "closed_won" and start <= deal["close_date"] <= end:
                deals[deal["id"]] = account["owner"]
            elif deal["stage"] == "closed_won":
                late = deal["id"]
    sums, stale = dict.fromkeys(sellers, 0), dict.fromkeys(sellers, 0)
    for deal_id, owner in deals.items():
        deal = yield Step(action=ToolCall("get_opportunity", {"opportunity_id": deal_id}), skill="exploration")
        corrected = CORRECTED.findall(deal.get("notes", ""))
        sums[owner] += cents_of(corrected[0] if corrected else deal["amount"])
        stale[owner] += cents_of(deal["amount"])
    write, *wrong = writes(ids["佣金表"], sums, stale, rules)
    yield Step(
        action=write,
        skill="calculation",
        difficulty=1.0,
        reasons=("amount",),
        slips=(*((call,) for call in wrong if call != write), SKIP),
    )
    data: dict[str, Any] = {"total": sum(map(rules.commission, sums.values())) / 100, "deals": list(deals)}
    yield Step(
        action=Finish(answer=f"{data['total']:.2f}", data=data),
        skill="synthesis",
        difficulty=0.3,
        slips=(
            (Finish(answer="", data={**data, "deals": [*deals, late]}),),
            (Finish(answer="", data={**data, "total": sum(sums.values()) / 100}),),
        ),
    )


def rules_of(rows: Sequence[Sequence[str]]) -> Rules:
    """Returns the rules that a sheet states."""
    tiers = [row for row in rows if row[2].endswith("%")]
    text = "\n".join(row[0] for row in rows)
    cap = re.findall(r"最高([\d,]+\.\d\d)元", text)
    return Rules(
        tuple(cents_of(row[1]) for row in tiers[:-1]),
        tuple(round(float(row[2].rstrip("%")) * 10) for row in tiers),
        "逐档" in text,
        cents_of(cap[0]) if cap else None,
    )


def writes(sheet: str, sums: Mapping[str, int], stale: Mapping[str, int], rules: Rules) -> list[ToolCall]:
    """Returns the right entries, then wrong ones: stale amounts, the other mode, a limit taken for the next tier, no ceiling."""
    lower = Rules(tuple(limit - 1 for limit in rules.limits), rules.rates, rules.parts, rules.cap)
    rounded = Rules(tuple(limit + 5_000 for limit in rules.limits), rules.rates, rules.parts, rules.cap)
    tries = (
        (sums, rules),
        (stale, rules),
        (sums, Rules(rules.limits, rules.rates, not rules.parts, rules.cap)),
        (sums, lower),
        (sums, rounded),
        (sums, Rules(rules.limits, rules.rates, rules.parts)),
    )
    return [
        ToolCall(
            "write_range",
            {
                "sheet_id": sheet,
                "range": f"C2:D{len(sums) + 1}",
                "values": [[f"{cents / 100:.2f}", f"{ruled.commission(cents) / 100:.2f}"] for cents in found.values()],
            },
        )
        for found, ruled in tries
    ]


def cents_of(text: str) -> int:
    """Returns an amount of money in cents."""
    return int(re.sub(r"\D", "", text))


TASK: Task = Task(
    title="Fill a commission statement by tiers",
    category="data",
    domain="finance",
    apps=("sheets", "crm"),
    languages=("zh",),
    patterns=(
        "rules stored as data",
        "join under different keys",
        "near miss at a limit",
        "superseded sources",
        "distractors",
        "data minimization",
    ),
    build=build,
    variants=3,
)
