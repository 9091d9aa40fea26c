"""Amounts of money, found by their value in whatever number format they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from ec2_env.cloud.conditions import free_left, free_right, inside_number
from ec2_env.cloud.folding import View, fold
from ec2_env.cloud.forms import FULL, MONEY_KINDS, MOST
from ec2_env.cloud.numerals import main_number, number_key, number_readings, scaled_forms
from ec2_env.sensitive import SensitiveUnit


class Hit(NamedTuple):
    """One occurrence of a unit's value, or of a part of it that counts by itself."""

    unit: int
    level: float
    span: tuple[int, int]
    form: str


_MARKS = ".,'’_\u00a0\u202f\u2009"
_LONGEST = 64
"""Characters that no amount is longer than."""
_WIDTH = {
    **{0xFF10 + digit: 0x30 + digit for digit in range(10)},
    0xFF0C: 0x2C,
    0xFF0E: 0x2E,
    0xFFE5: 0xA5,
    0xFF04: 0x24,
    0xFF05: 0x25,
}
_WIDE = re.compile("[\uff10-\uff19]")
_TOKEN = re.compile(rf"\d[\d{_MARKS}]*")
_GROUP_BEFORE, _GROUP_AFTER = re.compile(r"\d[+\s]{1,2}$"), re.compile(r"[+\s]{1,2}\d")
_BEFORE = re.compile(rf"\d[\d{_MARKS}]*$")
_UNIT = re.compile(
    r"[$€£¥%‰]|\b(?:usd|eur|gbp|cny|rmb|jpy|chf|dollars?|euros?|pounds?|yuan|percent)\b|元|块|美元|欧元|人民币|百分之",
    re.IGNORECASE,
)


def _triggers(value: Decimal, scaled: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yields folded texts so that each way to write `value` has one of them in it: its first digits, or all of few digits."""
    whole, decimals = number_key(value)
    first = whole.rstrip("0") if value >= 1000 else whole + decimals
    if len(first) > 2 or not scaled:
        yield first
        return
    yield whole
    for form, words in scaled:
        yield from (fold(form + word.rstrip("?")) for word in words.split("|"))


@lru_cache(maxsize=100)
def _suffix(words: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{words})(?![A-Za-z])", re.IGNORECASE)


def _number_at(text: str, place: int) -> tuple[int, str]:
    """Returns where the number around `place` begins, and the number, without the marks at its end."""
    begin = max(0, place - _LONGEST)
    before = _BEFORE.search(text, begin, place + 1)
    if before is None:
        return place, ""
    start = before.start()
    match = _TOKEN.match(text, start, place + _LONGEST)
    return start, match[0].rstrip(_MARKS) if match else ""


def _among_groups(text: str, start: int, end: int) -> bool:
    """Says whether groups of digits stand on both sides, so that this is one more group of a long number."""
    return bool(_GROUP_AFTER.match(text, end) and _GROUP_BEFORE.search(text, max(0, start - 3), start))


def _in_path(text: str, start: int, token: str) -> bool:
    """Says whether an amount with a mark in it begins a file name."""
    return start > 1 and text[start - 1] == "/" and text[start - 2].isalpha() and ("," in token or "." in token)


class Amounts:
    """The amounts among `units`, by their values.

    `triggers` are folded texts, each with its unit: every way to write an amount folds to a text with one of them in it, so only
    the numbers around a trigger have to be looked at.
    """

    def __init__(self, units: tuple[SensitiveUnit, ...]) -> None:
        self.triggers: list[str] = []
        self._plain: dict[tuple[str, str], list[tuple[int, float]]] = {}
        self._scaled: dict[str, list[tuple[int, str]]] = {}
        self._small: set[int] = set()
        for index, unit in enumerate(units):
            value = main_number(unit.value) if unit.kind in MONEY_KINDS else None
            if value is not None:
                self._add(index, unit, value)

    def _add(self, index: int, unit: SensitiveUnit, value: Decimal) -> None:
        whole, decimals = number_key(value)
        if not decimals and value < 1000 and _UNIT.search(unit.value):
            self._small.add(index)
        self._plain.setdefault((whole, decimals), []).append((index, FULL))
        if decimals and value >= 1000:
            self._plain.setdefault((whole, ""), []).append((index, MOST))
        scaled = list(scaled_forms(value))
        for form, words in scaled:
            self._scaled.setdefault(form, []).append((index, words))
        self.triggers += _triggers(value, scaled)

    def hits(self, view: View, triggered: list[int]) -> Iterator[Hit]:
        """Yields the amounts in a text, best reading first. `triggered` are the positions of triggers in the folded text."""
        text = view.text.translate(_WIDTH) if not view.text.isascii() and _WIDE.search(view.text) else view.text
        for start, token in sorted({_number_at(text, place) for place in view.origins_of(triggered)}):
            plain = self._of(token)
            yield from self._at(view, text, start, token, plain)
            if "," in token and not plain:
                at = start
                for cell in token.split(","):
                    yield from self._at(view, text, at, cell, self._of(cell))
                    at += len(cell) + 1

    def _of(self, token: str) -> list[tuple[int, float]]:
        """Returns the amounts that a number can be read as: unit and level."""
        return [found for key in number_readings(token) for found in self._plain.get(key, ())]

    def _at(self, view: View, text: str, start: int, token: str, plain: list[tuple[int, float]]) -> Iterator[Hit]:
        end = start + len(token)
        for unit, words in self._scaled.get(token, ()):
            after = _suffix(words).match(text, end)
            if after and free_left(text, start):
                yield Hit(unit, FULL, view.span(start, after.end()), view.form or "number format")
        for unit, level in plain:
            if (free_left(text, start) or _in_path(text, start, token)) and free_right(text, end):
                if level < FULL and (inside_number(text, start, end - 1, grouped=True) or _among_groups(text, start, end)):
                    continue
                if unit in self._small and not _UNIT.search(text, max(0, start - 6), end + 10):
                    continue
                yield Hit(unit, level, view.span(start, end), view.form or ("number format" if level == FULL else "partial"))
