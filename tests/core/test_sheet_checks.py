"""Spreadsheets are graded by what cells show and how formulas behave, never by how a formula is written."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.checks.sheets import CellsSet, SheetAdded
from ec2_env.task import Grading, toolbox
from ec2_env.workspace.world import World

BOX = toolbox(("sheets", "files"))


def earned(check: Any, *calls: tuple[str, dict[str, Any]]) -> tuple[float, int]:
    """Returns what a check earns after some calls on the sheet, and the number of stray changes."""
    world = World("checks/1", "en", "train")
    sheet = world.sheets.add("Book", "Main", [["a", 2, "=B1*2"], ["b", 3, "=B2+100"], ["sum", "", "=SUM(B1:B1)"]])
    world.workspace.begin()
    workspace = world.workspace.fork()
    for name, arguments in calls:
        result = BOX.run(
            workspace, ToolCall(name, {"sheet_id": sheet.id, **arguments} if "title" not in arguments else arguments)
        )
        assert result.ok, result.text
    state = Grading(workspace, None)
    found = check(sheet.id)(state) if callable(check) and not isinstance(check, SheetAdded) else check(state)
    return found, len(state.unclaimed())


def put(cell: str, value: str) -> tuple[str, dict[str, Any]]:
    return "update_cell", {"cell": cell, "value": value}


@pytest.mark.parametrize(
    ("typed", "share"),
    [
        ("=B2*2", 1.0),
        ("=2*B2", 1.0),
        ("=B2+B2", 1.0),
        ("=SUM(B2,B2)", 1.0),
        ("6", 0.0),
        ("=B2+3", 0.0),
        ("=B1*3", 0.0),
        ("=C2", 0.0),
    ],
)
def test_a_repaired_formula_has_to_follow_its_inputs(typed: str, share: float) -> None:
    assert earned(lambda sheet: CellsSet(sheet=sheet, cells={"C2": "=B2*2"}), put("C2", typed)) == (share, 0)


def test_a_value_may_be_typed_or_computed_and_each_wrong_cell_costs_one() -> None:
    def check(sheet: str) -> CellsSet:
        return CellsSet(sheet=sheet, cells={"D1": 4, "D2": 5.5})

    assert earned(check, put("D1", "4"), put("D2", "=11/2")) == (1.0, 0)
    assert earned(check, put("D1", "$4.00"), put("D2", "6")) == (0.0, 0)
    assert earned(check, put("D1", "4")) == (0.5, 0)
    assert earned(check, put("D1", "4"), put("D2", "5.5"), put("A9", "x")) == (0.5, 0)
    assert earned(check) == (0.0, 0)


def test_a_new_sheet_is_compared_row_by_row() -> None:
    check = SheetAdded(spreadsheet="Book", title="Out", rows=(("n", "v"), ("x", 4.5), ("y", 2)))
    made = ("create_sheet", {"spreadsheet": "Book", "title": "Out", "header": ["n", "v"]})
    assert earned(check, made)[0] == pytest.approx(1 / 3)
    world = World("checks/2", "en", "train")
    world.files.write("a.csv", "n,v\ny,2\nx,$4.50\n")
    world.workspace.begin()
    workspace = world.workspace.fork()
    assert BOX.run(workspace, ToolCall("import_csv", {"path": "a.csv", "spreadsheet": "book", "title": "out"})).ok
    state = Grading(workspace, None)
    assert check(state) == 1.0
    assert state.unclaimed() == []
