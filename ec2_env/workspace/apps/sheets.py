"""Sheets: spreadsheets with real cells and formulas. A list shows which sheets there are; only reading one shows its cells.

A sheet is one frozen row that holds what was typed into its cells, line by line: a copy of the workspace costs nothing, an edit
replaces one line, and the difference between two states of a sheet is graded cell by cell (`ec2_env.sheet_checks`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.files import inside
from ec2_env.workspace.calculation import Calculation, Grid
from ec2_env.workspace.cell_values import as_text
from ec2_env.workspace.formulas import MAX_COLUMNS, MAX_ROWS, Area, Fault, FaultRaised, Value, column_name, parse_area
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import World

Render = Literal["formatted", "unformatted", "formula"]
MAX_CELL_CHARS = 2_000
PAGE_ROWS = 100
"""Rows shown by one read."""
MAX_FOUND = 40


class Sheet(Row, frozen=True, kw_only=True):
    """One sheet (tab) of a spreadsheet.

    Attributes:
        spreadsheet: Name of the spreadsheet; its sheets refer to one another by title.
        title: Unique in the spreadsheet.
        lines: What was typed into the cells, by row from the top; empty cells at the end of a line are left out.
        protected: Areas that nobody but the sheet's owner may edit, such as "B2:B9".
        owner: Who may be asked about protected areas.
        shared_with: Addresses of others who can read the sheet.
    """

    spreadsheet: str
    title: str
    lines: Grid
    protected: tuple[str, ...] = ()
    owner: str = ""
    shared_with: tuple[str, ...] = ()

    @property
    def reaches(self) -> tuple[str, ...]:
        return self.shared_with


@tool(opens="read_range")
def list_sheets(workspace: Workspace, spreadsheet: str = "") -> list[dict[str, Any]]:
    """Lists the sheets of all spreadsheets, or of one, without their cells. At most 50 are shown.

    Args:
        spreadsheet: Show only sheets of spreadsheets whose name contains this text.
    """
    wanted = spreadsheet.strip().casefold()
    found = [s for s in workspace.rows("sheet").values() if wanted in s.spreadsheet.casefold()]
    return [listed(sheet) for sheet in sorted(found, key=lambda s: (s.spreadsheet, s.title, s.id))[:50]]


@tool()
def read_range(workspace: Workspace, sheet_id: str, range: str = "", render: Render = "formatted") -> dict[str, Any]:
    """Shows the cells of a range, row by row; at most 100 rows at a time.

    Args:
        sheet_id: Id of the sheet, as shown by list_sheets.
        range: Range in A1 notation, such as B2:D20 or C:C; empty for the whole sheet.
        render: formatted: values as texts; unformatted: numbers as numbers; formula: what was typed, formulas as formulas.
    """
    sheet = workspace.get("sheet", sheet_id)
    used = Area(1, 1, max(1, len(sheet.lines)), max(1, *map(len, sheet.lines), 1))
    area = area_of(range) if range.strip() else used
    last = min(area.last_row or used.last_row or 1, max(used.last_row or 1, area.first_row))
    end = min(last, area.first_row + PAGE_ROWS - 1)
    wide = area.last_column if area.last_column < MAX_COLUMNS else max(area.first_column, used.last_column)
    shown_area = Area(area.first_row, area.first_column, end, wide)
    shown = {"sheet_id": sheet.id, "range": str(shown_area), "values": rendered(workspace, sheet, shown_area, render)}
    if end < last:
        shown["next_range"] = str(Area(end + 1, area.first_column, last, wide))
    return shown


@tool(opens="read_range")
def find_cells(workspace: Workspace, query: str, sheet_id: str | None = None) -> list[dict[str, Any]]:
    """Finds the cells whose shown value contains a text. At most 40 are shown.

    Args:
        query: Text to look for; upper and lower case are the same.
        sheet_id: Look only in this sheet.
    """
    wanted = query.strip().casefold()
    if not wanted:
        raise ToolError("query is empty; give a text to look for")
    sheets = [*workspace.rows("sheet").values()] if sheet_id is None else [workspace.get("sheet", sheet_id)]
    return [*islice(matching(workspace, sheets, wanted), MAX_FOUND)]


@tool(write=True)
def update_cell(workspace: Workspace, sheet_id: str, cell: str, value: str) -> dict[str, Any]:
    """Types a value or a formula into one cell, as a user would.

    Args:
        sheet_id: Id of the sheet.
        cell: Cell in A1 notation, such as B7.
        value: What to type: a number, a text, or a formula such as =SUM(B2:B6); empty to clear the cell.
    """
    area = area_of(cell)
    if not area.single:
        raise ToolError(f"cell: {cell[:40]!r} is a range; give one cell such as B7, or use write_range")
    return written(workspace, sheet_id, area.first_row, area.first_column, [[value]])


@tool(write=True)
def write_range(workspace: Workspace, sheet_id: str, range: str, values: list[list[str]]) -> dict[str, Any]:
    """Types values into a range, as a user would.

    Args:
        sheet_id: Id of the sheet.
        range: Range in A1 notation, or its upper left cell; the values must not be larger than a range.
        values: Rows of values, each as it would be typed; formulas begin with "=".
    """
    area = area_of(range)
    height, width = len(values), max(map(len, values), default=0)
    too_high = area.last_row is not None and height > area.last_row - area.first_row + 1
    if not area.single and (too_high or width > area.last_column - area.first_column + 1):
        raise ToolError(f"INVALID_ARGUMENT: {height} rows of up to {width} values do not fit into {range[:40]}")
    if not width:
        raise ToolError("values is empty; give at least one row with one value")
    return written(workspace, sheet_id, area.first_row, area.first_column, values)


@tool(write=True)
def append_row(workspace: Workspace, sheet_id: str, values: list[str]) -> dict[str, Any]:
    """Adds a row below the last row of a sheet that holds anything.

    Args:
        sheet_id: Id of the sheet.
        values: Values of the new row from column A on, each as it would be typed.
    """
    if not any(values):
        raise ToolError("values is empty; give at least one value")
    return written(workspace, sheet_id, len(workspace.get("sheet", sheet_id).lines) + 1, 1, [values])


@tool(write=True)
def create_sheet(workspace: Workspace, spreadsheet: str, title: str, header: list[str] | None = None) -> dict[str, Any]:
    """Adds a sheet to a spreadsheet; a spreadsheet of a new name is created with it.

    Args:
        spreadsheet: Name of the spreadsheet.
        title: Title of the new sheet, unique in the spreadsheet.
        header: Values of the first row.
    """
    return listed(added(workspace, spreadsheet, title, [header] if header else []))


@tool(write=True)
def import_csv(workspace: Workspace, path: str, spreadsheet: str, title: str) -> dict[str, Any]:
    """Imports a CSV file of the workspace as a new sheet. Every field is typed in as it stands.

    Args:
        path: Path of the file; fields are separated by commas, semicolons or tabs.
        spreadsheet: Name of the spreadsheet.
        title: Title of the new sheet, unique in the spreadsheet.
    """
    content = workspace.get("file", inside(path)).content.removeprefix("\ufeff")
    first = content.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    try:
        rows = [*csv.reader(io.StringIO(content, newline=""), delimiter=separator)]
    except csv.Error as error:
        raise ToolError(f"{path[:80]!r} is not a CSV file: {error}") from None
    return listed(added(workspace, spreadsheet, title, rows))


@tool(write=True)
def delete_sheet(workspace: Workspace, sheet_id: str) -> dict[str, Any]:
    """Deletes a sheet with all its cells.

    Args:
        sheet_id: Id of the sheet.
    """
    sheet = workspace.get("sheet", sheet_id)
    if sheet.protected:
        raise ToolError(f"PERMISSION_DENIED: {sheet.title!r} has protected ranges; ask {sheet.owner or 'its owner'}")
    workspace.remove("sheet", sheet_id)
    return {"deleted": sheet_id}


def matching(workspace: Workspace, sheets: Sequence[Sheet], wanted: str) -> Iterator[dict[str, Any]]:
    """Yields the cells whose shown value contains a folded text."""
    books: dict[str, Calculation] = {}
    for sheet in sheets:
        values = books.setdefault(sheet.spreadsheet, calculation(workspace, sheet))
        for row, line in enumerate(sheet.lines, 1):
            for column, text in enumerate(line, 1):
                text = as_text(values.value(sheet.title, row, column)) if text.startswith("=") else text
                if wanted in text.casefold():
                    yield {"sheet_id": sheet.id, "title": sheet.title, "cell": f"{column_name(column)}{row}", "value": text}


def written(workspace: Workspace, sheet_id: str, row: int, column: int, values: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Types values into a sheet from a cell on, and shows what the cells hold then."""
    sheet = workspace.get("sheet", sheet_id)
    width = max(map(len, values))
    area = Area(row, column, row + len(values) - 1, column + width - 1)
    if area.last_row is None or area.last_row > MAX_ROWS or area.last_column > MAX_COLUMNS:
        raise ToolError(f"INVALID_ARGUMENT: {area} exceeds grid limits of {MAX_ROWS} rows and {MAX_COLUMNS} columns")
    for guarded in sheet.protected:
        if area.meets(parse_area(guarded)):
            owner = sheet.owner or "its owner"
            raise ToolError(f"PERMISSION_DENIED: {guarded} of {sheet.title!r} is a protected range; ask {owner} to edit it")
    lines = [*sheet.lines, *[()] * (area.last_row - len(sheet.lines))]
    for index, line in enumerate(checked(values), row - 1):
        old = lines[index] + ("",) * (column - 1 - len(lines[index]))
        lines[index] = old[: column - 1] + line + old[column - 1 + len(line) :]
    sheet = msgspec.structs.replace(sheet, lines=trimmed(lines))
    workspace.put("sheet", sheet)
    shown = Area(row, column, min(area.last_row, row + PAGE_ROWS - 1), area.last_column)
    return {"sheet_id": sheet.id, "updated_range": str(area), "values": rendered(workspace, sheet, shown, "formatted")}


def added(workspace: Workspace, spreadsheet: str, title: str, rows: Sequence[Sequence[str]]) -> Sheet:
    """Adds a sheet of the owner."""
    book, name = spreadsheet.strip(), title.strip()
    if not (0 < len(book) <= 100 and 0 < len(name) <= 100):
        raise ToolError("spreadsheet and title must have 1 to 100 characters")
    same = [s for s in workspace.rows("sheet").values() if s.spreadsheet.casefold() == book.casefold()]
    if any(s.title.casefold() == name.casefold() for s in same):
        raise ToolError(f"ALREADY_EXISTS: a sheet with the title {name!r} already exists in {book!r}; choose another title")
    if len(rows) > MAX_ROWS or any(len(row) > MAX_COLUMNS for row in rows):
        raise ToolError(f"INVALID_ARGUMENT: the data exceed the grid limits of {MAX_ROWS} rows and {MAX_COLUMNS} columns")
    book = same[0].spreadsheet if same else book
    sheet = Sheet(id=workspace.new_id("sheet"), spreadsheet=book, title=name, lines=trimmed(checked(rows)))
    workspace.put("sheet", sheet)
    return sheet


def checked(rows: Sequence[Sequence[str]]) -> Grid:
    """Returns rows of cells, none of which is too long."""
    if any(len(text) > MAX_CELL_CHARS for row in rows for text in row):
        raise ToolError(f"INVALID_ARGUMENT: a cell holds at most {MAX_CELL_CHARS} characters")
    return tuple(tuple(row) for row in rows)


def trimmed(lines: Sequence[Sequence[str]]) -> Grid:
    """Returns lines without the empty cells at their ends and without the empty lines below."""
    found: list[tuple[str, ...]] = []
    for line in lines:
        end = len(line)
        while end and not line[end - 1]:
            end -= 1
        found.append(tuple(line[:end]))
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def rendered(workspace: Workspace, sheet: Sheet, area: Area, render: Render) -> list[list[Any]]:
    """Returns the cells of an area by row. Typed texts and amounts are shown as they were typed."""
    values = calculation(workspace, sheet)
    shown: list[list[Any]] = []
    for row in range(area.first_row, (area.last_row or area.first_row) + 1):
        line = sheet.lines[row - 1] if row <= len(sheet.lines) else ()
        cells: list[Any] = []
        for column in range(area.first_column, area.last_column + 1):
            text = line[column - 1] if column <= len(line) else ""
            if render == "formula" or (render == "formatted" and not text.startswith(("=", "'"))):
                cells.append(text)
            else:
                value = values.value(sheet.title, row, column)
                cells.append(as_text(value) if render == "formatted" else plain(value))
        shown.append(cells)
    return shown


def plain(value: Value) -> float | int | str | bool:
    """Returns a value as JSON holds it: numbers to 13 digits, whole ones without a point; errors and empty cells as texts."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.13g}")
    return "" if value is None else value.code if isinstance(value, Fault) else value


def calculation(workspace: Workspace, sheet: Sheet) -> Calculation:
    """Returns the values of a sheet's spreadsheet."""
    book = [s for s in workspace.rows("sheet").values() if s.spreadsheet == sheet.spreadsheet]
    return Calculation({s.title: s.lines for s in book})


def area_of(text: str) -> Area:
    """Returns the area that an argument names.

    Raises:
        ToolError: if it names none.
    """
    try:
        return parse_area(text)
    except FaultRaised:
        raise ToolError(
            f"INVALID_ARGUMENT: unable to parse range {text[:40]!r}; expected A1 notation such as B2:D9 within A1:AZ1000"
        ) from None


def listed(sheet: Sheet) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": sheet.id,
        "spreadsheet": sheet.spreadsheet,
        "title": sheet.title,
        "rows": len(sheet.lines),
        "columns": max(map(len, sheet.lines), default=0),
    }
    for name in ("owner", "protected", "shared_with"):
        if getattr(sheet, name):
            shown[name] = value if isinstance(value := getattr(sheet, name), str) else list(value)
    return shown


class SheetsSeeder:
    """Fills spreadsheets while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(
        self,
        spreadsheet: str,
        title: str,
        rows: Sequence[Sequence[str | float]],
        *,
        protected: Sequence[str] = (),
        owner: str = "",
        shared_with: Sequence[str] = (),
    ) -> Sheet:
        """Adds a sheet and returns it. Numbers are typed in as they are written: 12.5, not 12.50."""
        sheet = Sheet(
            id=self.world.new_id("sheet"),
            spreadsheet=spreadsheet,
            title=title,
            lines=trimmed([[text if isinstance(text, str) else f"{text:.12g}" for text in row] for row in rows]),
            protected=tuple(protected),
            owner=owner,
            shared_with=tuple(shared_with),
        )
        self.world.workspace.put("sheet", sheet)
        return sheet

    def noise(self, count: int) -> list[Sheet]:
        """Adds small spreadsheets that have nothing to do with the task, each of another name."""
        rng = self.world.rng
        topics = rng.sample(NOISE[self.world.language], count)
        return [
            self.add(name, title, [header, *((label, str(rng.randrange(2, 90))) for label in labels)])
            for name, title, header, labels in topics
        ]


Topic = tuple[str, str, tuple[str, ...], tuple[str, ...]]
NOISE: Mapping[str, Sequence[Topic]] = {
    "en": (
        ("Team lunch", "Votes", ("Dish", "Votes"), ("Soup", "Curry", "Pasta", "Salad")),
        ("Stationery", "Stock", ("Item", "Pieces"), ("Pens", "Pads", "Staples")),
        ("Parking rota", "Spring", ("Space", "Days"), ("P1", "P2", "P3", "P4")),
        ("Plant watering", "Rota", ("Floor", "Plants"), ("First", "Second", "Third")),
        ("Book exchange", "Shelf", ("Kind", "Books"), ("Crime", "Travel", "Poetry")),
    ),
    "zh": (
        ("团队午餐", "投票", ("菜品", "票数"), ("汤", "咖喱", "面条", "沙拉")),
        ("办公文具", "库存", ("物品", "件数"), ("圆珠笔", "便签", "订书钉")),
        ("停车轮值", "春季", ("车位", "天数"), ("P1", "P2", "P3", "P4")),
        ("浇花值日", "轮值", ("楼层", "盆数"), ("一楼", "二楼", "三楼")),
        ("图书交换", "书架", ("类别", "册数"), ("推理", "旅行", "诗歌")),
    ),
}

APP = App(
    "sheets",
    (list_sheets, read_range, find_cells, update_cell, write_range, append_row, create_sheet, import_csv, delete_sheet),
    SheetsSeeder,
)
