"""Values that a redaction session has hidden once, found again where they return without what gave them away the first time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import ahocorasick_rs

from ec2_env.actions import clean
from ec2_env.cloud.finding import MONEY, Found
from ec2_env.cloud.numerals import main_number

MAX_YOUNG = 32
"""Values that are looked for one by one; more are put into an automaton, which is quicker to ask and slower to make."""
MAX_LAST_DIGITS = 6
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{1,10}|[A-Z]{1,11}")
_MAIL_NAME = re.compile(r"([a-z]{2,20})[._]([a-z]{2,20})@", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,3}(?:[,.'\u00a0\u202f ]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?", re.ASCII)


class ReturningValues:
    """The values that one session has hidden, each with its kind. Exact case and spelling, from one token's edge to another's.

    An amount is found in other number formats, too, and an address such as `alma.dunmore@` gives away the name in it.
    """

    __slots__ = ("_automaton", "_numbers", "_old", "_young", "kinds")

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self._numbers: dict[Decimal, str] = {}
        self._young: list[str] = []
        self._old: list[str] = []
        self._automaton: ahocorasick_rs.AhoCorasick | None = None

    def __getstate__(self) -> tuple[dict[str, str], dict[Decimal, str]]:
        return (self.kinds, self._numbers)

    def __setstate__(self, state: tuple[dict[str, str], dict[Decimal, str]]) -> None:
        self.kinds, self._numbers = state
        self._young, self._old, self._automaton = list(self.kinds), [], None

    def fork(self) -> ReturningValues:
        """Returns an independent copy; the automaton is shared."""
        other = ReturningValues.__new__(ReturningValues)
        other.kinds, other._young, other._old, other._automaton = dict(self.kinds), list(self._young), self._old, self._automaton
        other._numbers = dict(self._numbers)
        return other

    def add(self, value: str, kind: str) -> bool:
        """Takes in a value and says whether it is new.

        Three sorts are hidden where they are found and nowhere else: a plain word after "password:", an amount that may as well
        be a count, and the last digits of a longer number.
        """
        if not value.strip() or value in self.kinds or (kind == "password" and _PLAIN_WORD.fullmatch(value)):
            return False
        if kind in MONEY:
            number = main_number(value)
            if number is None or not _telling(number):
                return False
            self._numbers.setdefault(number, kind)
        elif kind != "password" and len(value) <= MAX_LAST_DIGITS and value.isdigit():
            return False
        found = _MAIL_NAME.match(value) if kind == "email" else None
        if found:
            self._keep(f"{found[1].capitalize()} {found[2].capitalize()}", "name")
        self._keep(value, kind)
        return True

    def _keep(self, value: str, kind: str) -> None:
        if value not in self.kinds:
            self.kinds[value] = kind
            self._young.append(value)

    def find(self, text: str) -> list[Found]:
        """Returns where the values stand in `text`; ranges may overlap."""
        if len(self._young) > MAX_YOUNG:
            self._old, self._young = [*self._old, *self._young], []
            self._automaton = ahocorasick_rs.AhoCorasick([clean(value) for value in self._old], store_patterns=False)
        found = []
        for value in self._young:
            start = text.find(value)
            while start >= 0:
                found.append((start, value))
                start = text.find(value, start + 1)
        if self._automaton is not None:
            matches = self._automaton.find_matches_as_indexes(clean(text), overlapping=True)
            found += [(start, self._old[index]) for index, start, _ in matches if text.startswith(self._old[index], start)]
        exact = [
            Found(start, start + len(value), self.kinds[value])
            for start, value in found
            if on_edges(text, start, start + len(value))
        ]
        return [*exact, *self._amounts(text)]

    def _amounts(self, text: str) -> Iterator[Found]:
        if not self._numbers:
            return
        for match in _NUMBER.finditer(text):
            number = main_number(match[0])
            kind = self._numbers.get(number) if number is not None else None
            if kind is not None and _stands_alone(text, *match.span()):
                yield Found(*match.span(), kind)


def _telling(number: Decimal) -> bool:
    """Says whether an amount is one wherever its digits stand: with cents, or large, and not like a year."""
    whole = number == int(number)
    return (not whole and number >= 10) or (number >= 1000 and not (whole and 1900 <= number <= 2100))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Says whether a number is no part of a longer number, a date, a path or an id."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if _ascii_word(before, len(before) - 1) or before[-1:] in tuple("_/#"):
        return False
    if len(before) == 2 and before[-1] in ".,-:" and before[0].isalnum() and before[0].isascii():
        return before[-1] == "," and not before[0].isdigit()
    if _ascii_word(after, 0) or after[:1] in tuple("_/%"):
        return False
    return not (len(after) == 2 and after[0] in ".,-:" and after[1].isdigit())


def on_edges(text: str, start: int, end: int) -> bool:
    """Says whether the range begins and ends at the edge of a token: no letter or digit of ASCII goes on across it."""
    return not (_ascii_word(text, start - 1) and _ascii_word(text, start)) and not (
        _ascii_word(text, end) and _ascii_word(text, end - 1)
    )


def _ascii_word(text: str, index: int) -> bool:
    return 0 <= index < len(text) and text[index].isascii() and text[index].isalnum()
