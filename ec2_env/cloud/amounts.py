"""Amounts of money, found by their value in whatever number format they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from ec2_env.cloud.conditions import free_left, free_right, inside_number
from ec2_env.cloud.folding import View
from ec2_env.cloud.forms import FULL, MONEY_KINDS, MOST
from ec2_env.cloud.numerals import digit_forms, main_number, scaled_forms
from ec2_env.sensitive import SensitiveUnit


class Hit(NamedTuple):
    """One occurrence of a unit's value, or of a part of it that counts by itself."""

    unit: int
    level: float
    span: tuple[int, int]
    form: str


_TOKEN = re.compile(r"\d[\d.,'’_\u00a0\u202f\u2009]*")
_TRAILING = ".,'’_\u00a0\u202f\u2009"
_WIDTH = {
    **{0xFF10 + digit: 0x30 + digit for digit in range(10)},
    0xFF0C: 0x2C,
    0xFF0E: 0x2E,
    0xFFE5: 0xA5,
    0xFF04: 0x24,
    0xFF05: 0x25,
}
_WIDE = re.compile("[\uff10-\uff19]")
_UNIT = re.compile(
    r"[$€£¥%‰]|\b(?:usd|eur|gbp|cny|rmb|jpy|chf|dollars?|euros?|pounds?|yuan|percent)\b|元|块|美元|欧元|人民币|百分之",
    re.IGNORECASE,
)


def _in_path(text: str, start: int, token: str) -> bool:
    """Says whether an amount with a mark in it begins a file name."""
    return start > 1 and text[start - 1] == "/" and text[start - 2].isalpha() and ("," in token or "." in token)


class Amounts:
    """The amounts among `units`, by the ways to write them."""

    def __init__(self, units: tuple[SensitiveUnit, ...]) -> None:
        self.plain: dict[str, list[tuple[int, float]]] = {}
        self.scaled: dict[str, list[tuple[int, re.Pattern[str]]]] = {}
        self.small: dict[int, bool] = {}
        for index, unit in enumerate(units):
            value = main_number(unit.value) if unit.kind in MONEY_KINDS else None
            if value is not None:
                self._add(index, unit, value)

    def _add(self, index: int, unit: SensitiveUnit, value: Decimal) -> None:
        self.small[index] = value < 1000 and value == int(value) and bool(_UNIT.search(unit.value))
        for form in digit_forms(value):
            self.plain.setdefault(form, []).append((index, FULL))
        if value != int(value) and value >= 1000:
            for form in digit_forms(Decimal(int(value))):
                self.plain.setdefault(form, []).append((index, MOST))
        for form, words in scaled_forms(value):
            self.scaled.setdefault(form, []).append((index, re.compile(rf"\s*(?:{words})(?![A-Za-z])", re.IGNORECASE)))

    def hits(self, view: View) -> Iterator[Hit]:
        """Yields the amounts in a text, best reading first."""
        if not self.plain:
            return
        text = view.text.translate(_WIDTH) if not view.text.isascii() and _WIDE.search(view.text) else view.text
        for match in _TOKEN.finditer(text):
            token = match[0].rstrip(_TRAILING)
            if token in self.plain or token in self.scaled:
                yield from self._at(view, text, match.start(), token)
            if "," in token and token not in self.plain:
                at = match.start()
                for cell in token.split(","):
                    if cell in self.plain or cell in self.scaled:
                        yield from self._at(view, text, at, cell)
                    at += len(cell) + 1

    def _at(self, view: View, text: str, start: int, token: str) -> Iterator[Hit]:
        end = start + len(token)
        for unit, suffix in self.scaled.get(token, ()):
            after = suffix.match(text, end)
            if after and free_left(text, start):
                yield Hit(unit, FULL, view.span(start, after.end()), view.form or "number format")
        for unit, level in self.plain.get(token, ()):
            if (free_left(text, start) or _in_path(text, start, token)) and free_right(text, end):
                if level < FULL and inside_number(text, start, end - 1, grouped=True):
                    continue
                if self.small[unit] and not _UNIT.search(text, max(0, start - 6), end + 10):
                    continue
                yield Hit(unit, level, view.span(start, end), view.form or ("number format" if level == FULL else "partial"))
