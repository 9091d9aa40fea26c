"""Values that a redaction session has hidden once, found again where they return without what gave them away the first time."""

from __future__ import annotations

import re

import ahocorasick_rs

from ec2_env.actions import clean
from ec2_env.cloud.detection import Found

MAX_YOUNG = 32
"""Values that are looked for one by one; more are put into an automaton, which is quicker to ask and slower to make."""
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{1,10}|[A-Z]{1,11}")


class ReturningValues:
    """The values that one session has hidden, each with its kind. Exact case and spelling, from one token's edge to another's."""

    __slots__ = ("_automaton", "_old", "_young", "kinds")

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self._young: list[str] = []
        self._old: list[str] = []
        self._automaton: ahocorasick_rs.AhoCorasick | None = None

    def __getstate__(self) -> tuple[dict[str, str]]:
        return (self.kinds,)

    def __setstate__(self, state: tuple[dict[str, str]]) -> None:
        self.kinds = state[0]
        self._young, self._old, self._automaton = list(self.kinds), [], None

    def fork(self) -> ReturningValues:
        """Returns an independent copy; the automaton is shared."""
        other = ReturningValues.__new__(ReturningValues)
        other.kinds, other._young, other._old, other._automaton = dict(self.kinds), list(self._young), self._old, self._automaton
        return other

    def add(self, value: str, kind: str) -> bool:
        """Takes in a value and says whether it is new. A plain word after "password:" is hidden there and nowhere else."""
        if value in self.kinds or (kind == "password" and _PLAIN_WORD.fullmatch(value)):
            return False
        self.kinds[value] = kind
        self._young.append(value)
        return True

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
        return [
            Found(start, start + len(value), self.kinds[value])
            for start, value in found
            if on_edges(text, start, start + len(value))
        ]


def on_edges(text: str, start: int, end: int) -> bool:
    """Says whether the range begins and ends at the edge of a token: no letter or digit of ASCII goes on across it."""
    return not (_ascii_word(text, start - 1) and _ascii_word(text, start)) and not (
        _ascii_word(text, end) and _ascii_word(text, end - 1)
    )


def _ascii_word(text: str, index: int) -> bool:
    return 0 <= index < len(text) and text[index].isascii() and text[index].isalnum()
