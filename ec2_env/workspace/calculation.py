"""Computes the cells of a spreadsheet: each at most once, in order of dependence, within a fixed amount of work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from itertools import zip_longest
from typing import TypeAlias

from ec2_env.workspace.cell_values import arithmetic, as_bool, as_float, combined, compared, criterion, same_value, sound
from ec2_env.workspace.formulas import (
    Binary,
    Call,
    Constant,
    Fault,
    FaultRaised,
    Formula,
    Node,
    Reference,
    Unary,
    Value,
    parse,
    typed,
)

MAX_WORK = 20_000
"""Cells looked at by one computation; formulas that would need more are #ERROR!."""
FORMULA_WORK = 2
"""What each of the two looks at a formula counts, in cells."""

Grid: TypeAlias = tuple[tuple[str, ...], ...]
Key: TypeAlias = tuple[str, int, int]
_CIRCULAR = Fault("#CIRC!")


class Calculation:
    """The values of a spreadsheet's cells, computed when asked for.

    Args:
        grids: What was typed into each sheet, by title; rows may be of different lengths.
    """

    def __init__(self, grids: Mapping[str, Grid]) -> None:
        self.grids = {title.casefold(): grid for title, grid in grids.items()}
        self.values: dict[Key, Value] = {}
        self.work = 0

    def value(self, sheet: str, row: int, column: int) -> Value:
        """Returns the value of a cell, rows and columns counted from 1. Never raises."""
        return self._value((sheet.casefold(), row, column))

    def _value(self, key: Key) -> Value:
        text = self._typed(key)
        if not text.startswith("="):
            return typed(text)
        if key not in self.values:
            self._settle(key)
        return self.values[key]

    def area(self, reference: Reference, home: str) -> list[list[Value]]:
        """Returns the values of an area by row, without the rows below the last one in use.

        Raises:
            FaultRaised: #REF! if there is no such sheet, #ERROR! if the work is used up.
        """
        sheet, rows = self._extent(reference, home)
        columns = range(reference.area.first_column, reference.area.last_column + 1)
        return [[self._value((sheet, row, column)) for column in columns] for row in rows]

    def _typed(self, key: Key) -> str:
        grid = self.grids.get(key[0], ())
        line = grid[key[1] - 1] if key[1] <= len(grid) else ()
        return line[key[2] - 1] if key[2] <= len(line) else ""

    def _extent(self, reference: Reference, home: str) -> tuple[str, range]:
        sheet, area = home if reference.sheet is None else reference.sheet.casefold(), reference.area
        if sheet not in self.grids:
            raise FaultRaised("#REF!")
        used = len(self.grids[sheet])
        rows = range(area.first_row, min(area.last_row or used, used) + 1)
        self.spend(1 + len(rows) * (area.last_column - area.first_column + 1))
        return sheet, rows

    def spend(self, cells: int) -> None:
        """Counts work.

        Raises:
            FaultRaised: #ERROR! if there has been too much.
        """
        self.work += cells
        if self.work > MAX_WORK:
            raise FaultRaised("#ERROR!")

    def _settle(self, start: Key) -> None:
        """Computes a formula after those that it depends on, without recursion; a formula that reaches a cycle is #CIRC!."""
        stack, opened = [start], dict[Key, list[Key]]()
        while stack:
            key = stack[-1]
            if key in self.values:
                stack.pop()
                continue
            self.work += FORMULA_WORK
            formula = parse(self._typed(key)) if self.work <= MAX_WORK else Fault("#ERROR!")
            if isinstance(formula, Fault):
                self.values[key] = formula
            elif key in opened:
                needed = opened.pop(key)
                circular = any(self.values.get(other) == _CIRCULAR for other in needed)
                self.values[key] = _CIRCULAR if circular else self._computed(formula, key)
            else:
                self._open(key, formula, stack, opened)

    def _open(self, key: Key, formula: Formula, stack: list[Key], opened: dict[Key, list[Key]]) -> None:
        try:
            needed = [*self._needed(formula, key[0])]
        except FaultRaised as fault:
            self.values[key] = Fault(fault.code)
            return
        opened[key] = needed
        if any(other in opened for other in needed):
            self.values[key] = _CIRCULAR
            del opened[key]
            return
        stack += [other for other in needed if other not in self.values]

    def _needed(self, formula: Formula, home: str) -> Iterator[Key]:
        """Yields the formula cells that a formula names. A sheet that does not exist is left to the evaluation."""
        for reference in formula.references:
            if reference.sheet is not None and reference.sheet.casefold() not in self.grids:
                continue
            sheet, rows = self._extent(reference, home)
            for row in rows:
                line = self.grids[sheet][row - 1][reference.area.first_column - 1 : reference.area.last_column]
                for offset, text in enumerate(line):
                    if text.startswith("="):
                        yield (sheet, row, reference.area.first_column + offset)

    def _computed(self, formula: Formula, key: Key) -> Value:
        try:
            result = Evaluation(self, key[0]).scalar(formula.node)
        except FaultRaised as fault:
            return Fault(fault.code)
        return 0.0 if result is None else result


class Evaluation:
    """Evaluates the tree of one formula.

    Args:
        calculation: Knows the values of all other cells.
        home: Folded title of the formula's own sheet.
    """

    def __init__(self, calculation: Calculation, home: str) -> None:
        self.calculation = calculation
        self.home = home

    def scalar(self, node: Node) -> Value:
        """Returns one value.

        Raises:
            FaultRaised: with the error value that the node evaluates to.
        """
        match node:
            case Constant(value):
                return sound(value)
            case Reference(_, area):
                if not area.single:
                    raise FaultRaised("#VALUE!")
                rows = self.rows(node)
                return sound(rows[0][0]) if rows else None
            case Unary(sign, operand):
                number = as_float(self.scalar(operand))
                return number / 100 if sign == "%" else -number if sign == "-" else number
            case Binary(symbol, left, right):
                return combined(symbol, self.scalar(left), self.scalar(right))
            case Call(name, arguments):
                known = FUNCTIONS.get(name)
                if known is None:
                    raise FaultRaised("#NAME?")
                function, fewest, most = known
                if not fewest <= len(arguments) <= most:
                    raise FaultRaised("#N/A")
                return function(self, arguments)

    def rows(self, node: Node) -> list[list[Value]]:
        """Returns the values of a reference by row, error values included.

        Raises:
            FaultRaised: #VALUE! if the node is no reference.
        """
        if not isinstance(node, Reference):
            raise FaultRaised("#VALUE!")
        return self.calculation.area(node, self.home)

    def each(self, arguments: tuple[Node, ...]) -> Iterator[tuple[Value, bool]]:
        """Yields every value of the arguments, and whether it was given directly and not by a reference."""
        for node in arguments:
            if isinstance(node, Reference):
                for row in self.rows(node):
                    yield from ((value, False) for value in row)
            else:
                yield self.scalar(node), True

    def numbers(self, arguments: tuple[Node, ...]) -> list[float]:
        """Returns the numbers among the arguments; texts and truth values in cells do not count, error values spread."""
        found = []
        for value, direct in self.each(arguments):
            if direct:
                found.append(as_float(value))
            elif isinstance(sound(value), float):
                found.append(float(value))  # type: ignore[arg-type]  # it is a float
        return found


Function: TypeAlias = Callable[[Evaluation, tuple[Node, ...]], Value]


# -- functions


def _round(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    number = as_float(ev.scalar(nodes[0]))
    places = int(max(-15.0, min(15.0, as_float(ev.scalar(nodes[1]))))) if len(nodes) > 1 else 0
    if abs(number) >= 1e12:
        return number
    return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP))


def _total(numbers: Iterable[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        raise FaultRaised("#NUM!") from None


def _sum(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    return _total(ev.numbers(nodes))


def _average(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    numbers = ev.numbers(nodes)
    return arithmetic("/", _total(numbers), float(len(numbers)))


def _count(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    return float(sum(isinstance(value, float) for value, _ in ev.each(nodes)))


def _counta(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    return float(sum(value is not None for value, _ in ev.each(nodes)))


def _if(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    if as_bool(ev.scalar(nodes[0])):
        return ev.scalar(nodes[1])
    return ev.scalar(nodes[2]) if len(nodes) > 2 else False


def _iferror(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    try:
        return ev.scalar(nodes[0])
    except FaultRaised:
        return ev.scalar(nodes[1]) if len(nodes) > 1 else None


def _truths(ev: Evaluation, nodes: tuple[Node, ...]) -> list[bool]:
    found = [as_bool(sound(v)) for v, direct in ev.each(nodes) if direct or isinstance(v, bool | float | Fault)]
    if not found:
        raise FaultRaised("#VALUE!")
    return found


def _fitting(ev: Evaluation, pairs: tuple[Node, ...], shape: Node) -> list[bool]:
    """Returns, for each cell of areas of one shape, whether it fits all (area, criterion) pairs."""
    fits: list[bool] = []
    for area, wanted in zip(pairs[::2], pairs[1::2], strict=True):
        if _size(area) != _size(shape):
            raise FaultRaised("#VALUE!")
        test = criterion(ev.scalar(wanted), ev.calculation.spend)
        column = [test(value) for row in ev.rows(area) for value in row]
        fits = column if not fits else [a and b for a, b in zip_longest(fits, column, fillvalue=False)]
    return fits


def _size(node: Node) -> tuple[int, int | None]:
    if not isinstance(node, Reference):
        raise FaultRaised("#VALUE!")
    area = node.area
    width = area.last_column - area.first_column
    return (width, -area.first_row if area.last_row is None else area.last_row - area.first_row)


def _sum_where(ev: Evaluation, pairs: tuple[Node, ...], summed: Node) -> Value:
    if len(pairs) % 2:
        raise FaultRaised("#N/A")
    fits = _fitting(ev, pairs, summed)
    values = [value for row in ev.rows(summed) for value in row]
    kept = [sound(value) for value, fit in zip(values, fits, strict=False) if fit]
    return _total(value for value in kept if isinstance(value, float))


def _sumif(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    return _sum_where(ev, nodes[:2], nodes[2] if len(nodes) > 2 else nodes[0])


def _sumifs(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    return _sum_where(ev, nodes[1:], nodes[0])


def _countifs(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    if len(nodes) % 2:
        raise FaultRaised("#N/A")
    return float(sum(_fitting(ev, nodes, nodes[0])))


def _vlookup(ev: Evaluation, nodes: tuple[Node, ...]) -> Value:
    """The last argument says whether the first column is sorted (TRUE if left out): then the last key not above is taken."""
    key, table, index = ev.scalar(nodes[0]), ev.rows(nodes[1]), as_float(ev.scalar(nodes[2]))
    near = as_bool(ev.scalar(nodes[3])) if len(nodes) > 3 else True
    width, _ = _size(nodes[1])
    if not 1 <= index <= width + 1:
        raise FaultRaised("#REF!" if index >= 1 else "#VALUE!")
    found: Value = Fault("#N/A")
    for row in table:
        if near:
            if row[0] is None or isinstance(row[0], Fault) or type(row[0]) is not type(key):
                continue
            if compared(">", row[0], key):
                break
            found = row[int(index) - 1]
        elif same_value(row[0], key):
            return sound(row[int(index) - 1])
    return sound(found)


FUNCTIONS: Mapping[str, tuple[Function, int, int]] = {
    "SUM": (_sum, 1, 60),
    "AVERAGE": (_average, 1, 60),
    "COUNT": (_count, 1, 60),
    "COUNTA": (_counta, 1, 60),
    "MIN": (lambda ev, nodes: min(ev.numbers(nodes), default=0.0), 1, 60),
    "MAX": (lambda ev, nodes: max(ev.numbers(nodes), default=0.0), 1, 60),
    "ROUND": (_round, 1, 2),
    "ABS": (lambda ev, nodes: abs(as_float(ev.scalar(nodes[0]))), 1, 1),
    "IF": (_if, 2, 3),
    "AND": (lambda ev, nodes: all(_truths(ev, nodes)), 1, 60),
    "OR": (lambda ev, nodes: any(_truths(ev, nodes)), 1, 60),
    "NOT": (lambda ev, nodes: not as_bool(ev.scalar(nodes[0])), 1, 1),
    "IFERROR": (_iferror, 1, 2),
    "SUMIF": (_sumif, 2, 3),
    "SUMIFS": (_sumifs, 3, 31),
    "COUNTIF": (_countifs, 2, 2),
    "COUNTIFS": (_countifs, 2, 30),
    "VLOOKUP": (_vlookup, 3, 4),
}
"""Each function with its fewest and most arguments."""
