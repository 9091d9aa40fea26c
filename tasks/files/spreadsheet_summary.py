"""Import a CSV export that is not clean and report totals by region.

Amounts are written in several ways, some of which a spreadsheet takes for text; regions in several spellings; orders appear
twice; subtotal rows stand between them. A note beside the exports says which line of a repeated order counts, and an older export
lies next to the newest. In one variant orders of some status do not count, in the held-out one some are converted.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, gated
from ec2_env.checks.sheets import CellsSet, SheetAdded
from ec2_env.task import SKIP, Check, Grading, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.apps.sheets import plain
from ec2_env.workspace.formulas import typed
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Import the newest export of {shop} as sheet Orders of {book} and fill Totals by region; the note beside it says how.",
        "Please put the latest {shop} export into {book} (new sheet: Orders) and fill in Totals by region, as its note asks.",
        "{book} needs new numbers: import the newest {shop} CSV as Orders, then fill Totals. Rules are in the note beside it.",
        "Could you import the last {shop} export into {book} as Orders and fill the totals per region, under the note's rules?",
        "Bring {book} up to date: newest {shop} export into a sheet named Orders, regional totals into Totals, as its note says.",
        "For {book}: import the most recent {shop} export (sheet Orders) and complete Totals under the rules in its folder.",
    ),
    "zh": (
        "请把{shop}最新的导出文件导入{book}，工作表命名为 Orders，并填写 Totals 表的各区域合计，规则见同目录说明。",
        "麻烦将{shop}最近一次导出导入{book}（新表 Orders），再按文件夹里的说明填好 Totals 表。",
        "{book}要更新：导入{shop}最新的 CSV 为 Orders 表，然后在 Totals 表填各区域金额，规则在文件旁的说明里。",
        "能否把{shop}的最新订单导出导入{book}的 Orders 表，并算出 Totals 表里每个区域的合计？请看文件夹中的说明。",
        "请更新{book}：{shop}最新导出放进名为 Orders 的工作表，各区域合计填入 Totals，按说明计数。",
        "{book}：请导入{shop}最近的导出（工作表 Orders），并依照文件夹内说明完成 Totals。",
    ),
}
REGIONS = {"en": ("North", "South", "East", "West"), "zh": ("华北", "华南", "华东", "西部")}
STATES = {"en": ("paid", "open", "cancelled"), "zh": ("已付", "未付", "取消")}
HEADER = {"en": "order,date,customer,phone,region,amount,status", "zh": "订单号,日期,客户,电话,区域,金额,状态"}
SUBTOTAL = {"en": "Subtotal", "zh": "小计"}
NOTE = {
    "en": "# Orders of {shop}: how to count\n\n- An order that stands in the export twice counts once: its {keep} line.\n"
    "- An amount in parentheses is a refund: it is subtracted.\n- Subtotal rows are no orders.\n- Spelling of regions varies; "
    "spaces and capitals mean nothing.\n{extra}",
    "zh": "# {shop}订单计数规则\n\n- 同一订单号出现两次的只计一次：以{keep}一行为准。\n- 括号中的金额是退款，要减去。\n"
    "- 小计行不是订单。\n- 区域写法不一，空格和全半角没有意义。\n{extra}",
}
EXTRA = {
    "en": ("", "- Orders with the status {status} do not count.\n", "- 1 CHF = {rate}; round each order to the cent.\n"),
    "zh": ("", "- 状态为“{status}”的订单不计。\n", "- CHF 金额按 1 CHF = {rate} 换算，每笔四舍五入到分。\n"),
}
KEEP = {"en": ("first", "last"), "zh": ("最先", "最后")}
MONEY = re.compile(r"(\()?(CHF )?\$?(\d[\d, ]*\.\d\d)")
ORDERS = 11
PAID = [place for place in range(ORDERS) if (place + place // 4) % 3 == 0]
"""Places of the orders that have the first status, which always counts."""


def build(world: World) -> Plan:
    """Draws eleven orders with repeats, refunds and subtotals, an older export, another shop's, and the rules."""
    rng, language = world.rng, world.language
    shop, other = world.firm(), world.firm()
    book = world.text(f"Weekly sales {shop.name.split(' ')[0]}", f"{shop.name[:2]}销售周报")
    last = rng.random() < 0.5
    status = rng.choice(STATES[language][1:])
    rate = f"{1 + rng.randrange(21, 180) / 1000:.3f}"
    rows = draw_orders(world, world.variant == 2)
    for firm, kept in ((shop, last), (other, not last)):
        folder = f"exports/{firm.domain.partition('.')[0]}"
        days = sorted(rng.sample(range(2, 26), 2))
        orders = [row for row in rows if row[0].isdigit()]
        exports = (rows, altered(world, orders[1:6])) if firm is shop else (altered(world, orders[2:5]), orders[:1])
        for day, lines in zip(days, exports, strict=True):
            world.files.write(f"{folder}/orders_{world.day(-day).isoformat()}.csv", written(world, lines), days_ago=day)
        extra = EXTRA[language][world.variant].format(status=status, rate=rate)
        note = NOTE[language].format(shop=firm.name, keep=KEEP[language][kept], extra=extra)
        world.files.write(f"{folder}/README.md", note)
    header = world.text(["Region", "Amount"], ["区域", "金额"])
    totals = world.sheets.add(book, "Totals", [header, *([name, ""] for name in REGIONS[language])], protected=("A1:A5",))
    world.sheets.noise(2)
    counted, sums = count(rows, last=last, excluded=status if world.variant == 1 else "", rate=rate)
    imported = partial(holds_export, book, [HEADER[language].split(","), *rows])
    filled = CellsSet(sheet=totals.id, cells={f"B{row}": sums[name] / 100 for row, name in enumerate(REGIONS[language], 2)})
    return Plan(
        instruction=world.phrase(PHRASINGS, shop=shop.name, book=book),
        report=(
            Slot("orders", "number of orders that count", "计入的订单数"),
            Slot("total", "sum of all regions, a number", "各区域合计，数字"),
        ),
        checks=(
            Check("imported", 0.2, imported),
            Check("filled", 0.45, gated(filled, imported)),
            Check("reports_orders", 0.15, gated(Reported("orders", counted), filled)),
            Check("reports_total", 0.2, gated(Reported("total", sum(sums.values()) / 100), filled)),
        ),
        solve=partial(solve, shop.name, book),
    )


def holds_export(book: str, rows: Sequence[Sequence[str]], state: Grading) -> float:
    """Grades the imported sheet."""
    lines = [[plain(typed(cell)) for cell in row] for row in rows]
    expected = tuple(tuple(line if line[-1] != "" else line[:-1]) for line in lines)
    return SheetAdded(spreadsheet=book, title="Orders", rows=expected)(state)


def draw_orders(world: World, foreign: bool) -> list[list[str]]:
    """Returns the rows of the export without its header: orders, three of them twice, and two subtotals."""
    rng, language = world.rng, world.language
    refunds = (rng.choice(PAID), rng.randrange(ORDERS))
    rows: list[list[str]] = []
    customers = [(person.name, world.secret("phone", owner=person)) for person in world.people(6)]
    for place, number in enumerate(rng.sample(range(10_000, 99_999), ORDERS)):
        region = REGIONS[language][place % 4]
        spelled = rng.choice((region, f" {region}", region.upper(), f"{region} ", f"{region[0]} {region[1:]}".lower()))
        mark = "CHF " if foreign and (place in (2, 6) or place == refunds[0]) else ""
        amount = styled(world, rng.randrange(4_000, 900_000), place in refunds, mark)
        day = world.day(-rng.randrange(26, 40)).isoformat()
        rows.append([str(number), day, *customers[place % 6], spelled, amount, STATES[language][(place + place // 4) % 3]])
    repeated = [rng.choice(PAID), *rng.sample([place for place in range(ORDERS) if place not in PAID], 2)]
    for row in [rows[place] for place in repeated]:
        refund, mark, _ = MONEY.findall(row[5])[0]
        again = [*row[:5], styled(world, rng.randrange(4_000, 900_000), bool(refund), mark), row[6]]
        rows.insert(rng.randrange(rows.index(row) + 1, len(rows) + 1), again)
    for place in (rng.randrange(4, 7), rng.randrange(10, 14)):
        rows.insert(place, [SUBTOTAL[language], "", "", "", "", world.money(rng.randrange(900_000, 4_000_000) / 100), ""])
    return rows


def altered(world: World, rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns the rows of another export: the same orders with other amounts."""
    rng = world.rng
    return [[*row[:5], f"{rng.randrange(90, 999)}.{rng.randrange(10, 99)}", row[6]] for row in rows]


def styled(world: World, cents: int, refund: bool, mark: str) -> str:
    """Returns an amount in one of several ways of writing, annotated as confidential."""
    value = cents / 100
    text = f"{mark}{value:.2f}"
    if not mark:
        text = world.rng.choice((text, f"{value:,.2f}", f"${value:,.2f}", f"{value:,.2f}".replace(",", " ")))
    return world.secret("amount", f"({text})" if refund else text, owner=world.me, need="reason")


def written(world: World, rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as CSV text under the header."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return f"{HEADER[world.language]}\n{out.getvalue()}"


def count(
    rows: Sequence[Sequence[str]], *, last: bool, excluded: str, rate: str, signs: bool = True
) -> tuple[int, dict[str, int]]:
    """Returns the number of orders that count and the cents by region.

    Args:
        rows: Rows of the export.
        last: Whether the last line of a repeated order counts, else the first.
        excluded: Status that does not count, or "".
        rate: What 1 CHF is, with three decimals, or "".
        signs: Whether refunds are subtracted.
    """
    orders: dict[str, Sequence[str]] = {}
    for row in rows:
        if row[0].isdigit() and (last or row[0] not in orders):
            orders[row[0]] = row
    sums: dict[str, int] = {}
    counted = [row for row in orders.values() if row[6] != excluded]
    names = {spelling(name): name for names in REGIONS.values() for name in names}
    for row in counted:
        refund, mark, digits = MONEY.findall(row[5])[0]
        cents = int(re.sub(r"\D", "", digits))
        cents = (cents * int(rate.replace(".", "")) + 500) // 1000 if mark else cents
        name = names[spelling(row[4])]
        sums[name] = sums.get(name, 0) + (-cents if refund and signs else cents)
    return len(counted), {
        name: sums.get(name, 0) for name in names.values() if name in sums or name in REGIONS["en"] + REGIONS["zh"]
    }


def spelling(region: str) -> str:
    """Returns a region's name without spaces and capitals."""
    return "".join(region.casefold().split())


def solve(shop: str, book: str) -> Steps:
    """Finds the note and the newest export, imports it, counts by the rules and fills in the totals."""
    hits = yield Step(action=ToolCall("search_files", {"query": shop}), skill="planning")
    note = yield Step(action=ToolCall("read_file", {"path": hits[0]["path"]}), skill="policy")
    folder = hits[0]["path"].rpartition("/")[0]
    files = yield Step(action=ToolCall("list_files", {"folder": folder}), skill="exploration")
    *_, older, newest = sorted(file["path"] for file in files if file["path"].endswith(".csv"))
    sheets = yield Step(action=ToolCall("list_sheets", {"spreadsheet": book}), skill="exploration")
    totals = next(sheet["id"] for sheet in sheets if sheet["title"] == "Totals")
    empty = yield Step(action=ToolCall("read_range", {"sheet_id": totals}), skill="exploration")
    regions = [row[0] for row in empty["values"][1:]]
    place = {"spreadsheet": book, "title": "Orders"}
    made = yield Step(
        action=ToolCall("import_csv", {"path": newest, **place}),
        skill="disambiguation",
        slips=((ToolCall("import_csv", {"path": older, **place}),),),
    )
    shown = yield Step(action=ToolCall("read_range", {"sheet_id": made["id"]}), skill="exploration")
    rows = shown["values"][1:]
    last = bool(re.search("last line|最后", note["content"]))
    status = re.findall("(?:status |状态为“)(\\w+)", note["content"])
    rate = re.findall(r"1 CHF = (\d\.\d+)", note["content"])
    rules: dict[str, Any] = {"last": last, "excluded": status[0] if status else "", "rate": rate[0] if rate else "1.000"}
    orders, sums = count(rows, **rules)
    wrong = [count(rows, **{**rules, "last": not last}), count(rows, **rules, signs=False), count(numbers_only(rows), **rules)]
    fill, *wrong_fills = [
        ToolCall(
            "write_range", {"sheet_id": totals, "range": "B2:B5", "values": [[f"{found[name] / 100:.2f}"] for name in regions]}
        )
        for found in (sums, *(found for _, found in wrong))
    ]
    yield Step(
        action=fill,
        skill="calculation",
        difficulty=0.9,
        reasons=("amount",),
        slips=(*((call,) for call in wrong_fills if call != fill), SKIP),
    )
    data = {"orders": orders, "total": sum(sums[name] for name in regions) / 100}
    yield Step(
        action=Finish(answer=f"{data['total']:.2f}", data=data),
        skill="synthesis",
        slips=(
            (Finish(answer="", data={**data, "orders": len(rows)}),),
            (Finish(answer="", data={**data, "total": sum(wrong[0][1].values()) / 100}),),
        ),
    )


def numbers_only(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns the rows as a spreadsheet's own sum sees them: an amount that is text counts nothing."""
    return [[*row[:5], row[5] if isinstance(typed(row[5]), float) else "0.00", row[6]] for row in rows if row[0].isdigit()]


TASK: Task = Task(
    title="Import an unclean export and total it by region",
    category="data",
    domain="files",
    apps=("files", "sheets"),
    languages=("en", "zh"),
    patterns=("rules stored as data", "superseded sources", "distractors", "data minimization", "mixed formats", "duplicates"),
    build=build,
    variants=3,
)
