"""Find the cells of a forecast that are broken, repair exactly these, and report the right result.

A formula leaves out a cell of its range, takes the growth of another group or month, or was typed over by hand.
A hand value that is listed, and has not run out, is right as it stands; so is a formula that is only written in another way. In
the held-out variant a listed hand value ran out shortly before today.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Grader, Reported, ReportedSet, gated
from ec2_env.checks.sheets import CellsSet, value_of
from ec2_env.task import SKIP, Check, Grading, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.apps.sheets import Sheet
from ec2_env.workspace.world import World

PHRASINGS = {
    "zh": (
        "{book}的净额不对。请找出“月度”表里出错的单元格并只修复它们（规定见“说明”表），再报告修复后的净额。",
        "请检查{book}：“月度”表有公式被改坏了。按“说明”表的规定修复，其他单元格不要动，并报告正确的净额。",
        "财务怀疑{book}的“月度”表里有错误公式。请修好，“说明”表写明哪些手工值有效，最后告诉我净额。",
        "麻烦修一下{book}：“月度”表里有单元格算错了，能不能动请看“说明”表，修完报净额。",
        "{book}的汇总看起来有问题，原因在“月度”表。请依照“说明”表恢复应有的公式，并给出修复后的净额。",
        "请把{book}“月度”表中坏掉的公式恢复好（参照“说明”表），不要改动其余内容，然后报告净额。",
    )
}
GROUPS = ("平台", "门店", "渠道")
PRODUCTS = ("精选茶", "便携杯", "旅行箱", "台灯", "咖啡豆", "瑜伽垫", "蓝牙音箱", "保温壶", "帆布包", "香薰")
MONTHS = "DEFGH"
FIRST, LAST = 2, 7
RULES = (
    ["每月收入等于上月收入乘以（1＋该分组的月增长率），四舍五入到分；一月为实际数。"],
    ["手工值只有列在下表、且有效至当日或以后的，才保留；过期的和未列出的手工值都要恢复为公式。"],
    ["单元格", "手工值", "批准人", "有效至", "联系电话"],
)


def growth(column: str, row: int, group: int) -> str:
    """Returns the formula of one month: the month before, times the growth of the group (its place in 假设, from 0)."""
    return f"=ROUND({chr(ord(column) - 1)}{row}*(1+假设!$B${group + 2}),2)"


def written_differently(formula: str) -> str:
    """Returns a formula that gives the same."""
    return re.sub(r"\((\w+)\*(\(.*\)),2", r"(\2*\1,2", formula)


def build(world: World) -> Plan:
    """Draws a model of six products in three groups, one or two faults, and hand values."""
    rng = world.rng
    book = f"{world.firm().name[:2]}销售预测{world.today.year}"
    rates = rng.sample(range(12, 60), 3)
    groups = rng.sample((0, 0, 1, 1, 2, 2), 6)
    products = rng.sample(PRODUCTS, 6)
    bases = [rng.randrange(4_000_000, 60_000_000) for _ in products]
    right: dict[str, str] = {}
    for row, (base, group) in enumerate(zip(bases, groups, strict=True), FIRST):
        right[f"C{row}"] = world.secret("amount", world.money(base / 100), owner=products[row - FIRST])
        right |= {f"{column}{row}": growth(column, row, group) for column in MONTHS}
        right[f"I{row}"] = f"=SUM(C{row}:H{row})"
    right |= {f"{column}8": f"=SUM({column}{FIRST}:{column}{LAST})" for column in "CDEFGHI"}

    rows = rng.sample(range(FIRST, LAST + 1), 4)
    listed: list[list[str]] = []

    def by_hand(row: int, valid: bool | None) -> tuple[str, str]:
        """Returns a cell and the amount typed into it; lists it as valid, as run out, or not at all (None)."""
        column = rng.choice(MONTHS[:-1])
        months, rate = ord(column) - ord("C"), rates[groups[row - FIRST]] / 1000
        cents = round(bases[row - FIRST] * (1 + rate) ** months * (1 + rng.choice((-1, 1)) * rng.uniform(0.01, 0.05)))
        owner = world.person()
        amount = world.secret("amount", world.money(cents / 100), owner=owner)
        if valid is not None:
            end = world.day(rng.randrange(4) if valid else -rng.randrange(1, 4))
            listed.append([f"月度!{column}{row}", amount, owner.name, end.isoformat(), world.secret("phone", owner=owner)])
        return f"{column}{row}", amount

    kept = by_hand(rows[0], True)
    faults = dict([broken(world, rows[1], groups[rows[1] - FIRST])])
    if world.variant == 0 and rng.random() < 0.5:
        faults |= dict([broken(world, rows[2], groups[rows[2] - FIRST])])
    elif world.variant > 0:
        faults |= dict([by_hand(rows[2], None if world.variant == 1 else False)])
    right[kept[0]] = kept[1]
    other = f"{rng.choice(MONTHS)}{rows[3]}"
    right[other] = written_differently(right[other])
    wanted = {cell: right[cell] for cell in faults}
    rng.shuffle(listed)
    sheets = add_sheets(world, book, [GROUPS[g] for g in groups], products, rates, right, faults, listed)
    repaired = CellsSet(sheet=sheets["月度"].id, cells=wanted)
    return Plan(
        instruction=world.phrase(PHRASINGS, book=book),
        report=(
            Slot("cells", "list of the repaired cells of 月度, such as E4", "修复的“月度”表单元格列表，形如 E4"),
            Slot("net", "net amount after the repair, a number", "修复后的净额，数字"),
        ),
        checks=(
            Check("repaired", 0.6, repaired),
            Check("reports_cells", 0.15, gated(ReportedSet("cells", list(faults)), repaired)),
            Check("reports_net", 0.25, gated(reports_net(sheets, {**right, **wanted}), repaired)),
        ),
        solve=partial(solve, book, world.today.isoformat()),
    )


def broken(world: World, row: int, group: int) -> tuple[str, str]:
    """Returns a cell and a formula in it that is wrong."""
    rng = world.rng
    kind = rng.choice(("row", "column", "group", "month"))
    if kind in ("row", "column"):
        cell = f"I{row}" if kind == "row" else "I8"
        return cell, rng.choice(short_sums(cell))
    column = rng.choice(MONTHS[1:])
    if kind == "group":
        return f"{column}{row}", growth(column, row, (group + rng.randrange(1, 3)) % 3)
    return f"{column}{row}", growth(column, row, group).replace(f"{chr(ord(column) - 1)}{row}", f"{chr(ord(column) - 2)}{row}")


def short_sums(cell: str) -> tuple[str, str]:
    """Returns two sums for a total that each leave out one cell of the range."""
    if cell == "I8":
        return f"=SUM(I{FIRST}:I{LAST - 1})", f"=SUM(I{FIRST + 1}:I{LAST})"
    return f"=SUM(C{cell[1:]}:G{cell[1:]})", f"=SUM(D{cell[1:]}:H{cell[1:]})"


def add_sheets(
    world: World,
    book: str,
    groups: Sequence[str],
    products: Sequence[str],
    rates: Sequence[int],
    right: Mapping[str, str],
    faults: Mapping[str, str],
    listed: Sequence[Sequence[str]],
) -> dict[str, Sheet]:
    """Writes the spreadsheet, with the faults in it, and returns its sheets by title."""
    terms = world.secret("contract_terms", owner=book)
    cells = {**right, **faults}
    monthly = [["产品线", "分组", *(f"{month}月" for month in range(1, 7)), "合计"]]
    for row, (product, group) in enumerate([*zip(products, groups, strict=True), ("合计", "")], FIRST):
        monthly.append([product, group, *(cells[f"{column}{row}"] for column in "CDEFGHI")])
    rebate, cost = world.rng.randrange(30, 90), world.rng.randrange(300, 550)
    shares = [
        *((f"{name}组月增长率", rate) for name, rate in zip(GROUPS, rates, strict=True)),
        ("返利率", rebate),
        ("成本率", cost),
    ]
    notes = ("", "", "", f"合同：{terms}", "")
    summary = ("=月度!I8", "=ROUND(B2*假设!$B$5,2)", "=ROUND(B2*假设!$B$6,2)", "=B2-B3-B4")
    content: dict[str, Sequence[Sequence[str | float]]] = {
        "假设": [
            ["项目", "数值", "备注"],
            *([name, f"{rate / 10}%", note] for (name, rate), note in zip(shares, notes, strict=True)),
        ],
        "月度": monthly,
        "汇总": [["项目", "金额"], *zip(("收入", "返利", "成本", "净额"), summary, strict=True)],
        "说明": [*RULES, *listed],
    }
    world.sheets.noise(2)
    return {title: world.sheets.add(book, title, rows) for title, rows in content.items()}


def reports_net(sheets: Mapping[str, Sheet], cells: Mapping[str, str]) -> Grader:
    """Returns a grader of the reported net amount, which is computed from the model with the right cells in it."""

    def graded(state: Grading) -> float:
        grids = {title: sheet.lines for title, sheet in sheets.items()}
        lines = [list(line) for line in grids["月度"]]
        for cell, text in cells.items():
            lines[int(cell[1:]) - 1][ord(cell[0]) - ord("A")] = text
        return Reported("net", value_of("B5", sheets["汇总"], {**grids, "月度": tuple(map(tuple, lines))}))(state)

    return graded


def solve(book: str, today: str) -> Steps:
    """Reads the notes, the model's formulas and the result, repairs what is broken, and reads the result again."""
    listed = yield Step(action=ToolCall("list_sheets", {"spreadsheet": book}), skill="planning")
    ids = {sheet["title"]: sheet["id"] for sheet in listed}
    notes = yield Step(action=ToolCall("read_range", {"sheet_id": ids["说明"]}), skill="policy")
    hand = {row[0].removeprefix("月度!"): row[3] for row in notes["values"] if row[0].startswith("月度!")}
    rates = yield Step(action=ToolCall("read_range", {"sheet_id": ids["假设"], "range": "A:B"}), skill="exploration")
    groups = [row[0] for row in rates["values"][1:]]
    shown = yield Step(
        action=ToolCall("read_range", {"sheet_id": ids["月度"], "render": "formula"}),
        skill="planning",
    )
    ask = ToolCall("read_range", {"sheet_id": ids["汇总"], "range": "B5", "render": "unformatted"})
    before = yield Step(action=ask, skill="exploration")
    typed = {f"{'ABCDEFGHI'[c]}{r}": text for r, line in enumerate(shown["values"], 1) for c, text in enumerate(line)}
    due = {f"{column}8": f"=SUM({column}{FIRST}:{column}{LAST})" for column in "CDEFGHI"}
    for row in range(FIRST, LAST + 1):
        group = next(place for place, name in enumerate(groups) if name.startswith(typed[f"B{row}"]))
        due |= {f"{column}{row}": growth(column, row, group) for column in MONTHS}
        due[f"I{row}"] = f"=SUM(C{row}:H{row})"
    odd = [cell for cell, formula in due.items() if typed[cell] not in (formula, written_differently(formula))]
    faulty = [cell for cell in odd if hand.get(cell, "") < today or typed[cell].startswith("=")]
    kept = next(cell for cell, end in hand.items() if end >= today)
    for cell in faulty:
        fix = ToolCall("update_cell", {"sheet_id": ids["月度"], "cell": cell, "value": due[cell]})
        yield Step(
            action=fix,
            skill="consistency",
            difficulty=0.8,
            slips=(*wrong_repairs(fix, typed[cell], kept, due[kept]), SKIP),
        )
    after = yield Step(action=ask, skill="exploration")
    data: dict[str, Any] = {"cells": faulty, "net": after["values"][0][0]}
    yield Step(
        action=Finish(answer=str(data["net"]), data=data),
        skill="synthesis",
        slips=(
            (Finish(answer="", data={**data, "net": before["values"][0][0]}),),
            (Finish(answer="", data={**data, "cells": [*faulty, kept]}),),
        ),
    )


def wrong_repairs(fix: ToolCall, found: str, kept: str, formula: str) -> Iterator[Slip]:
    """Yields repairs that go wrong: another formula that is wrong, and a valid hand value overwritten too."""
    value, cell = str(fix.arguments["value"]), str(fix.arguments["cell"])
    if value.startswith("=SUM"):
        wrong = next(formula for formula in short_sums(cell) if formula != found)
    else:
        wrong = re.sub(r"\$B\$(\d)", lambda place: f"$B${(int(place[1]) - 1) % 3 + 2}", value)
    yield (ToolCall(fix.name, {**fix.arguments, "value": wrong}),)
    yield (fix, ToolCall(fix.name, {**fix.arguments, "cell": kept, "value": formula}))


TASK: Task = Task(
    title="Repair the broken formulas of a forecast",
    category="data",
    domain="finance",
    apps=("sheets",),
    languages=("zh",),
    patterns=("rules stored as data", "near miss at a limit", "distractors", "data minimization", "repair, not rewrite"),
    build=build,
    variants=3,
)
