"""Building blocks for grading spreadsheets: cell by cell, by what cells show and by how formulas follow their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ec2_env.facts import same
from ec2_env.task import Grading
from ec2_env.workspace.apps.sheets import Sheet, plain
from ec2_env.workspace.calculation import Calculation, Grid
from ec2_env.workspace.formulas import Value, column_name, parse_area, typed

PROBES = 3
"""How many times all numbers of a spreadsheet are changed to see whether two formulas stay equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsSet:
    """Cells of one sheet that had to be filled or repaired, and no other; earns (right - wrong) / expected, never below 0.

    Attributes:
        sheet: Id of the sheet.
        cells: What each cell has to hold, by address: a value that it has to show, whether typed or computed, or a formula
            ("=...") that it has to equal in effect: both give the same when the numbers in the spreadsheet change.
    """

    sheet: str
    cells: Mapping[str, object]

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "sheet" and change.id == self.sheet and change.kind == "changed":
                state.claimed.add(index)
                edited = edits(change.before, change.after)
                book = [s for s in state.workspace.rows("sheet").values() if s.spreadsheet == change.after.spreadsheet]
                right = sum(cell in edited and self.fits(cell, change.after, book) for cell in self.cells)
                return max(0.0, (2 * right - len(edited)) / len(self.cells))
        return 0.0

    def fits(self, cell: str, sheet: Sheet, book: list[Sheet]) -> bool:
        """Says whether a cell holds what it should."""
        wanted = self.cells[cell]
        if isinstance(wanted, str) and wanted.startswith("="):
            return follows(cell, wanted, sheet, book)
        return same(plain(value_of(cell, sheet, {s.title: s.lines for s in book})), wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetAdded:
    """A sheet that had to be created, holding certain rows in any order.

    Earns (right - wrong) / expected, never below 0. A repeated row is wrong; empty rows do not count.

    Attributes:
        spreadsheet: Name of its spreadsheet.
        title: Its title.
        rows: Values of each expected row; None accepts any content.
    """

    spreadsheet: str
    title: str
    rows: tuple[tuple[object, ...], ...] | None = None

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            sheet = change.after
            if change.table != "sheet" or change.kind != "added":
                continue
            if same((sheet.spreadsheet, sheet.title), (self.spreadsheet, self.title)):
                state.claimed.add(index)
                return self.share(sheet, state)
        return 0.0

    def share(self, sheet: Sheet, state: Grading) -> float:
        if self.rows is None:
            return 1.0
        book = {s.title: s.lines for s in state.workspace.rows("sheet").values() if s.spreadsheet == sheet.spreadsheet}
        values = Calculation(book)
        given = [
            tuple(plain(values.value(sheet.title, row, column)) for column in range(1, len(line) + 1))
            for row, line in enumerate(sheet.lines, 1)
            if line
        ]
        left = list(self.rows)
        for row in given:
            match = next((i for i, expected in enumerate(left) if same(row, expected)), None)
            if match is not None:
                del left[match]
        right = len(self.rows) - len(left)
        return max(0.0, (2 * right - len(given)) / len(self.rows))


def edits(before: Sheet | None, after: Sheet) -> dict[str, str]:
    """Returns the cells in which two states of a sheet differ, with what stands in them after ("" for a cleared one)."""
    old = before.lines if before is not None else ()
    found = {}
    for row in range(max(len(old), len(after.lines))):
        first = old[row] if row < len(old) else ()
        last = after.lines[row] if row < len(after.lines) else ()
        if first == last:
            continue
        for column in range(max(len(first), len(last))):
            text = last[column] if column < len(last) else ""
            if text != (first[column] if column < len(first) else ""):
                found[f"{column_name(column + 1)}{row + 1}"] = text
    return found


def value_of(cell: str, sheet: Sheet, grids: Mapping[str, Grid]) -> Value:
    """Returns the value of a cell in a spreadsheet whose sheets hold `grids`, by title."""
    area = parse_area(cell)
    return Calculation(grids).value(sheet.title, area.first_row, area.first_column)


def follows(cell: str, formula: str, sheet: Sheet, book: list[Sheet]) -> bool:
    """Says whether a cell gives what a formula would give in its place, for the spreadsheet as it is and with other numbers."""
    area = parse_area(cell)
    row, column = area.first_row - 1, area.first_column - 1
    if row >= len(sheet.lines) or column >= len(sheet.lines[row]):
        return False
    line = sheet.lines[row]
    if line[column] == formula:
        return True
    lines = (*sheet.lines[:row], (*line[:column], formula, *line[column + 1 :]), *sheet.lines[row + 1 :])
    repaired = [msgspec.structs.replace(s, lines=lines) if s.id == sheet.id else s for s in book]
    for probe in range(PROBES + 1):
        given, wanted = (
            plain(value_of(cell, sheet, {s.title: changed(s.lines, probe, (row, column)) for s in sheets}))
            for sheets in (book, repaired)
        )
        if not same(given, wanted):
            return False
    return True


def changed(lines: Grid, probe: int, kept: tuple[int, int]) -> Grid:
    """Returns a grid with every number in it made larger, each by another share; probe 0 changes nothing."""
    if not probe:
        return lines
    return tuple(
        tuple(
            f"{value * (1 + (7 * row + 13 * column + 5 * probe) % 11 / 10):.4f}"
            if type(value := typed(text)) is float and (row, column) != kept
            else text
            for column, text in enumerate(line)
        )
        for row, line in enumerate(lines)
    )
