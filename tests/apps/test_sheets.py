"""Sheets: cells are typed, computed, found, imported and guarded as in the common spreadsheet programs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.apps.sheets import PAGE_ROWS
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

BOX = toolbox(("sheets", "files"))


def office(language: Language = "en") -> Workspace:
    world = World("sheets/1", language, "train")
    costs = [
        ["Item", "Units", "Price", "Total"],
        ["Pens", 10, "$1.50", "=B2*C2"],
        ["Pads", 4, "$2.25", "=B3*C3"],
        ["Sum", "", "", "=SUM(D2:D3)"],
    ]
    world.sheets.add("Office", "Costs", costs, protected=("C2:C3",), owner="Ann Vale")
    world.sheets.add("Office", "Plan", [["Budget", "=Costs!D4*2"]], shared_with=("bob@firm.example",))
    world.sheets.noise(3)
    world.files.write("data/a.csv", 'Name,Amount\n"Vale, Ann",5\nBob,"1,200"\n')
    world.files.write("data/b.csv", "\ufeffName;Amount\nAnn;=1+1\n\n")
    world.workspace.begin()
    return world.workspace


def do(workspace: Workspace, name: str, **arguments: Any) -> Result:
    return BOX.run(workspace, ToolCall(name, arguments))


def good(workspace: Workspace, name: str, **arguments: Any) -> Any:
    """Returns what a call that has to succeed brings."""
    result = do(workspace, name, **arguments)
    assert result.ok, result.text
    return result.value


def sheet_id(workspace: Workspace, title: str) -> str:
    return next(sheet["id"] for sheet in good(workspace, "list_sheets") if sheet["title"] == title)


def test_a_list_shows_sheets_but_no_cells() -> None:
    workspace = office()
    listed = good(workspace, "list_sheets", spreadsheet="office")
    assert [(sheet["title"], sheet["rows"], sheet["columns"]) for sheet in listed] == [("Costs", 4, 4), ("Plan", 1, 2)]
    assert (listed[0]["protected"], listed[0]["owner"]) == (["C2:C3"], "Ann Vale")
    assert listed[1]["shared_with"] == ["bob@firm.example"]
    assert "Pens" not in str(good(workspace, "list_sheets"))


def test_a_range_is_read_as_it_shows_as_numbers_and_as_it_was_typed() -> None:
    workspace = office()
    costs = sheet_id(workspace, "Costs")
    assert good(workspace, "read_range", sheet_id=costs, range="C2:D4")["values"] == [["$1.50", "15"], ["$2.25", "9"], ["", "24"]]
    assert good(workspace, "read_range", sheet_id=costs, range="C3:D3", render="unformatted")["values"] == [[2.25, 9]]
    whole = good(workspace, "read_range", sheet_id=costs, render="formula")
    assert whole["range"] == "A1:D4"
    assert whole["values"][3] == ["Sum", "", "", "=SUM(D2:D3)"]
    assert good(workspace, "read_range", sheet_id=costs, range="A:A")["values"] == [["Item"], ["Pens"], ["Pads"], ["Sum"]]
    assert good(workspace, "read_range", sheet_id=costs, range="3:3")["values"] == [["Pads", "4", "$2.25", "9"]]
    assert good(workspace, "read_range", sheet_id=costs, range="F9")["values"] == [[""]]


def test_a_changed_cell_changes_what_depends_on_it_in_other_sheets_too() -> None:
    workspace = office()
    costs, plan = sheet_id(workspace, "Costs"), sheet_id(workspace, "Plan")
    assert good(workspace, "update_cell", sheet_id=costs, cell="b2", value="20")["values"] == [["20"]]
    assert good(workspace, "read_range", sheet_id=plan, range="B1")["values"] == [["78"]]
    assert good(workspace, "update_cell", sheet_id=costs, cell="D4", value="=D4")["values"] == [["#CIRC!"]]
    assert good(workspace, "read_range", sheet_id=plan, range="B1")["values"] == [["#CIRC!"]]
    assert good(workspace, "update_cell", sheet_id=costs, cell="D4", value="")["updated_range"] == "D4"
    assert len(workspace.diff()) == 1


def test_an_edit_that_is_taken_back_is_no_difference() -> None:
    workspace = office()
    costs = sheet_id(workspace, "Costs")
    good(workspace, "update_cell", sheet_id=costs, cell="F9", value="note")
    good(workspace, "update_cell", sheet_id=costs, cell="F9", value="")
    assert workspace.diff() == ()


def test_ranges_are_written_and_rows_appended() -> None:
    workspace = office()
    plan = sheet_id(workspace, "Plan")
    shown = good(workspace, "write_range", sheet_id=plan, range="A3:B4", values=[["x", "=2*3"], ["y"]])
    assert (shown["updated_range"], shown["values"]) == ("A3:B4", [["x", "6"], ["y", ""]])
    assert good(workspace, "append_row", sheet_id=plan, values=["z", "9"])["updated_range"] == "A5:B5"
    assert good(workspace, "read_range", sheet_id=plan)["values"][-1] == ["z", "9"]
    assert "do not fit" in do(workspace, "write_range", sheet_id=plan, range="A1:A2", values=[["1", "2"]]).text
    for values in ([], [[]]):
        assert not do(workspace, "write_range", sheet_id=plan, range="A1", values=values).ok
    assert not do(workspace, "append_row", sheet_id=plan, values=[""]).ok


def test_protected_ranges_refuse_and_leave_no_trace() -> None:
    workspace = office()
    costs = sheet_id(workspace, "Costs")
    for name, arguments in (
        ("update_cell", {"cell": "C2", "value": "1"}),
        ("write_range", {"range": "A3", "values": [["a", "b", "c"]]}),
        ("delete_sheet", {}),
    ):
        result = do(workspace, name, sheet_id=costs, **arguments)
        assert "PERMISSION_DENIED" in result.text
        assert "Ann Vale" in result.text
    assert good(workspace, "update_cell", sheet_id=costs, cell="C4", value="1")
    good(workspace, "update_cell", sheet_id=costs, cell="C4", value="")
    assert workspace.diff() == ()


def test_a_csv_file_becomes_a_sheet() -> None:
    workspace = office()
    made = good(workspace, "import_csv", path="data/a.csv", spreadsheet="office", title="Names")
    assert (made["spreadsheet"], made["rows"], made["columns"]) == ("Office", 3, 2)
    assert good(workspace, "read_range", sheet_id=made["id"], range="A2:B3")["values"] == [["Vale, Ann", "5"], ["Bob", "1,200"]]
    good(workspace, "update_cell", sheet_id=made["id"], cell="B4", value="=SUM(B2:B3)")
    assert good(workspace, "read_range", sheet_id=made["id"], range="B4")["values"] == [["1205"]]
    other = good(workspace, "import_csv", path="data/b.csv", spreadsheet="New", title="Names")
    assert good(workspace, "read_range", sheet_id=other["id"])["values"] == [["Name", "Amount"], ["Ann", "2"]]
    assert "there is no file" in do(workspace, "import_csv", path="data/c.csv", spreadsheet="New", title="x").text


def test_sheets_are_created_and_deleted_and_titles_are_unique() -> None:
    workspace = office()
    made = good(workspace, "create_sheet", spreadsheet="Office", title="Notes", header=["a", "b"])
    assert made["rows"] == 1
    for title in ("notes", "COSTS"):
        assert "ALREADY_EXISTS" in do(workspace, "create_sheet", spreadsheet="OFFICE", title=title).text
    assert not do(workspace, "create_sheet", spreadsheet=" ", title="x").ok
    good(workspace, "delete_sheet", sheet_id=made["id"])
    assert workspace.diff() == ()


def test_cells_are_found_by_what_they_show() -> None:
    workspace = office()
    costs = sheet_id(workspace, "Costs")
    assert [hit["cell"] for hit in good(workspace, "find_cells", query="BUDGET")] == ["A1"]
    assert [hit["cell"] for hit in good(workspace, "find_cells", query="24", sheet_id=costs)] == ["D4"]
    assert not do(workspace, "find_cells", query=" ").ok


def test_long_sheets_are_read_in_pieces() -> None:
    workspace = office()
    made = good(workspace, "create_sheet", spreadsheet="Office", title="Long")
    for start in range(1, 1000, 100):
        values = [[str(row)] for row in range(start, start + 100)]
        good(workspace, "write_range", sheet_id=made["id"], range=f"A{start}", values=values)
    seen, area = [], ""
    while area is not None:
        piece = good(workspace, "read_range", sheet_id=made["id"], range=area)
        assert len(piece["values"]) <= PAGE_ROWS
        seen += piece["values"]
        area = piece.get("next_range")
    assert seen == [[str(row)] for row in range(1, 1001)]
    assert "grid limits" in do(workspace, "append_row", sheet_id=made["id"], values=["x"]).text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_range", {"sheet_id": "sheet-0"}),
        ("read_range", {"range": "nonsense"}),
        ("read_range", {"range": "A1:ZZ9"}),
        ("update_cell", {"cell": "A1:B2", "value": "x"}),
        ("update_cell", {"cell": "A0", "value": "x"}),
        ("update_cell", {"cell": "A1", "value": "x" * 3000}),
        ("update_cell", {"cell": "A1", "value": 5}),
        ("write_range", {"range": "AZ1", "values": [["1", "2"]]}),
        ("write_range", {"range": "A1", "values": ["1"]}),
        ("import_csv", {"path": "../x", "spreadsheet": "a", "title": "b"}),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(name: str, arguments: dict[str, Any]) -> None:
    workspace = office()
    values = arguments if name == "import_csv" else {"sheet_id": sheet_id(workspace, "Plan"), **arguments}
    result = do(workspace, name, **values)
    assert not result.ok
    assert len(result.text) > 20
    assert workspace.journal == ()


@settings(max_examples=40)
@given(area=st.text(max_size=12), value=st.text(max_size=40))
def test_no_argument_makes_a_tool_raise(area: str, value: str) -> None:
    workspace = office()
    plan = sheet_id(workspace, "Plan")
    do(workspace, "write_range", sheet_id=plan, range=area, values=[[value, value], []])
    do(workspace, "update_cell", sheet_id=plan, cell="A1", value=f"={value}")
    do(workspace, "read_range", sheet_id=plan, range=area)
    do(workspace, "create_sheet", spreadsheet=value, title=area, header=[value])
    assert do(workspace, "find_cells", query="e").ok


def test_what_is_written_into_a_shared_sheet_reaches_its_readers() -> None:
    workspace = office()
    good(workspace, "update_cell", sheet_id=sheet_id(workspace, "Plan"), cell="A9", value="secret")
    assert workspace.diff()[0].after.reaches == ("bob@firm.example",)


def test_forks_do_not_see_each_others_cells() -> None:
    workspace = office("zh")
    plan = sheet_id(workspace, "Plan")
    other = workspace.fork()
    good(other, "update_cell", sheet_id=plan, cell="A1", value="x")
    assert good(workspace, "read_range", sheet_id=plan, range="A1")["values"] == [["Budget"]]
    assert good(other, "read_range", sheet_id=plan, range="A1")["values"] == [["x"]]
