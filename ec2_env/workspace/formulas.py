"""The grammar of a spreadsheet: addresses, what a typed text means, formulas as trees. No text is ever run as code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

MAX_ROWS = 1_000
MAX_COLUMNS = 52
"""Size of the grid, A1 to AZ1000; a reference beyond it is #REF!."""
MAX_FORMULA_CHARS = 2_000
MAX_TOKENS = 400
MAX_NESTING = 30
"""A formula that is longer, or nested deeper in parentheses, is #ERROR!, as one that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error value, such as #DIV/0!."""

    code: str


class FaultRaised(Exception):
    """Ends the evaluation of a cell with an error value."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


Value: TypeAlias = float | str | bool | Fault | None
"""What a cell holds; None is an empty cell. Numbers are floats; dates are texts, YYYY-MM-DD, which compare in order of time."""


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of cells, counted from 1, edges included. `last_row` is None for a column without end, such as B2:B."""

    first_row: int
    first_column: int
    last_row: int | None
    last_column: int

    @property
    def single(self) -> bool:
        return self.first_row == self.last_row and self.first_column == self.last_column

    def meets(self, other: Area) -> bool:
        """Says whether the two areas share a cell."""
        return (
            self.first_row <= (other.last_row or MAX_ROWS)
            and other.first_row <= (self.last_row or MAX_ROWS)
            and self.first_column <= other.last_column
            and other.first_column <= self.last_column
        )

    def __str__(self) -> str:
        first = f"{column_name(self.first_column)}{self.first_row}"
        return first if self.single else f"{first}:{column_name(self.last_column)}{self.last_row or ''}"


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value


@dataclass(frozen=True, slots=True)
class Reference:
    """Cells of a sheet; `sheet` is a title, or None for the formula's own sheet."""

    sheet: str | None
    area: Area


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Node, ...]


Node: TypeAlias = Constant | Reference | Unary | Binary | Call


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula and the cells that it names anywhere, in branches that are not taken too."""

    node: Node
    references: tuple[Reference, ...]


_CORNER = r"\$?[A-Za-z]{1,3}\$?[0-9]{0,7}"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
    |(?P<text>"(?:[^"]|"")*")
    |(?P<sheet>'(?:[^']|'')+'!|[\w.]+!)
    |(?P<area>{_CORNER}:{_CORNER}(?![\w(])|\$?[0-9]{{1,7}}:\$?[0-9]{{1,7}}(?!\w))
    |(?P<cell>\$?[A-Za-z]{{1,3}}\$?[0-9]{{1,7}}(?![\w(]))
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    |(?P<name>[^\W\d][\w.]*)
    |(?P<fault>\#(?:REF!|DIV/0!|VALUE!|NAME\?|N/A|NUM!|CIRC!|ERROR!))
    |(?P<operator><=|>=|<>|[-+*/^&=<>%(),;])""",
    re.VERBOSE,
)
_CORNERS = re.compile(r"\$?(?P<column>[A-Za-z]{1,3})?\$?(?P<row>[0-9]{1,7})?")
_NUMBER = re.compile(r"([-+]?)([$¥￥€]?)([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(\.[0-9]+)?(?:([eE][-+]?[0-9]{1,3}))?(%|元)?", re.ASCII)
_BINDING = {"=": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "<>": 1, "&": 2, "+": 3, "-": 3, "*": 4, "/": 4, "^": 5}


def column_name(column: int) -> str:
    """Returns the letters of a column: 1 is A, 27 is AA."""
    letters = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def parse_area(text: str) -> Area:
    """Returns the area that a text names: "B7", "$A$1:C9", "B:B", "B2:B" or "2:2".

    Raises:
        FaultRaised: #REF! if it is no area of the grid.
    """
    first, colon, last = text.strip().partition(":")
    start, end = _CORNERS.fullmatch(first), _CORNERS.fullmatch(last if colon else first)
    if start is None or end is None or (not colon and (start["column"] is None or start["row"] is None)):
        raise FaultRaised("#REF!")
    if (start["column"] is None) != (end["column"] is None) or (start["row"] is None and end["row"] is not None):
        raise FaultRaised("#REF!")
    if start["column"] is None and (start["row"] is None or end["row"] is None):
        raise FaultRaised("#REF!")
    columns = sorted((_column(start["column"] or "A"), _column(end["column"] or column_name(MAX_COLUMNS))))
    first_row = int(start["row"] or 1)
    last_row = None if end["row"] is None else int(end["row"])
    if last_row is not None and last_row < first_row:
        first_row, last_row = last_row, first_row
    if not 1 <= first_row <= (last_row or MAX_ROWS) <= MAX_ROWS or columns[1] > MAX_COLUMNS:
        raise FaultRaised("#REF!")
    return Area(first_row, columns[0], last_row, columns[1])


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


@lru_cache(maxsize=8192)
def typed(text: str) -> Value:
    """Returns the value of a text typed into a cell, which is no formula: a number, TRUE or FALSE, else the text itself.

    Amounts such as $1,234.50 or 1,234.50元 and shares such as 12% are numbers. An apostrophe in front keeps a text a text.
    """
    if not text:
        return None
    if text[0] == "'":
        return text[1:]
    if text.upper() in ("TRUE", "FALSE"):
        return text.upper() == "TRUE"
    number = as_number(text)
    return text if number is None else number


def as_number(text: str) -> float | None:
    """Returns the number that a text shows, or None."""
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= 60 else None
    if match is None or not (match[3] or match[4]):
        return None
    number = float(f"{match[1]}{(match[3] or '0').replace(',', '')}{match[4] or ''}{match[5] or ''}")
    if number in (float("inf"), float("-inf")):
        return None
    return number / 100 if match[6] == "%" else number


@lru_cache(maxsize=4096)
def parse(text: str) -> Formula | Fault:
    """Parses a formula, with or without its leading "=". Returns #ERROR! for what is none; never raises."""
    try:
        return _Parser(text).formula()
    except FaultRaised as fault:
        return Fault(fault.code)


class _Parser:
    """Precedence climbing over the tokens of one formula.

    Signs bind tighter than "^", and operators of one kind from left to right, as in the common spreadsheets.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_FORMULA_CHARS:
            raise FaultRaised("#ERROR!")
        self.tokens = [*_tokens(text.removeprefix("="))][: MAX_TOKENS + 1]
        if len(self.tokens) > MAX_TOKENS:
            raise FaultRaised("#ERROR!")
        self.position = 0
        self.nesting = 0
        self.references: list[Reference] = []

    def formula(self) -> Formula:
        node = self.binary(1)
        if self.position < len(self.tokens):
            raise FaultRaised("#ERROR!")
        return Formula(node, tuple(self.references))

    def peek(self) -> str:
        """Returns the next operator, or "" if the next token is none."""
        kind, text = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        return text if kind == "operator" else ""

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise FaultRaised("#ERROR!")
        self.position += 1

    def binary(self, binding: int) -> Node:
        left = self.signed()
        while _BINDING.get(self.peek(), 0) >= binding:
            operator = self.peek()
            self.position += 1
            left = Binary(operator, left, self.binary(_BINDING[operator] + 1))
        return left

    def signed(self) -> Node:
        negative = signs = 0
        while self.peek() in ("+", "-"):
            negative, signs = negative ^ (self.peek() == "-"), signs + 1
            self.position += 1
        node = self.primary()
        while self.peek() == "%":
            self.position += 1
            node = Unary("%", node)
        return Unary("-" if negative else "+", node) if signs else node

    def primary(self) -> Node:
        if self.position >= len(self.tokens):
            raise FaultRaised("#ERROR!")
        kind, text = self.tokens[self.position]
        self.position += 1
        match kind:
            case "number":
                return Constant(Fault("#NUM!") if float(text) == float("inf") else float(text))
            case "text":
                return Constant(text[1:-1].replace('""', '"'))
            case "fault":
                return Constant(Fault(text))
            case "sheet":
                return self.reference(text[1:-2].replace("''", "'") if text[0] == "'" else text[:-1])
            case "area" | "cell":
                self.position -= 1
                return self.reference(None)
            case "name":
                return self.named(text.upper())
            case "operator" if text == "(":
                return self.nested(lambda: self.binary(1))
        raise FaultRaised("#ERROR!")

    def reference(self, sheet: str | None) -> Node:
        kind, text = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        self.position += 1
        if kind == "fault":
            return Constant(Fault(text))
        if kind not in ("area", "cell"):
            raise FaultRaised("#ERROR!")
        try:
            node = Reference(sheet, parse_area(text))
        except FaultRaised as fault:
            return Constant(Fault(fault.code))
        self.references.append(node)
        return node

    def named(self, name: str) -> Node:
        if self.peek() != "(":
            return Constant(name == "TRUE") if name in ("TRUE", "FALSE") else Constant(Fault("#NAME?"))
        self.position += 1
        return self.nested(lambda: Call(name, self.arguments()))

    def arguments(self) -> tuple[Node, ...]:
        found: list[Node] = []
        if self.peek() == ")":
            return ()
        while True:
            found.append(Constant(None) if self.peek() in (",", ";", ")") else self.binary(1))
            if self.peek() not in (",", ";"):
                return tuple(found)
            self.position += 1

    def nested(self, inner: Callable[[], Node]) -> Node:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise FaultRaised("#ERROR!")
        node = inner()
        self.take(")")
        self.nesting -= 1
        return node


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise FaultRaised("#ERROR!")
        position = match.end()
        if match.lastgroup != "space":
            yield match.lastgroup or "", match[0]
