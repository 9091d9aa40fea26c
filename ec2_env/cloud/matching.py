"""Finding sensitive values in one text. Matchers keep no session state, so all audits of the same units share one."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import ahocorasick_rs

from ec2_env.cloud.amounts import Amounts, Hit
from ec2_env.cloud.conditions import inside_number, other_code, satisfied, tight, word
from ec2_env.cloud.decoding import decoded_views
from ec2_env.cloud.folding import View, fold, unblocked
from ec2_env.cloud.forms import FULL, MOST, Fragments, Pattern, fragments_of, is_cjk, patterns_of
from ec2_env.sensitive import SensitiveUnit

MEMO_TEXTS = 300
"""Texts whose findings a matcher remembers in each of two generations."""
MEMO_PAIRS = 1_000
"""Pairs of neighboring texts whose findings a matcher remembers."""
MAX_PARTS = 5_000
"""Possible parts of values looked at in one text, so that a text made of one repeated character costs no more than another."""


_Match: TypeAlias = tuple[int, int, int]
"""Number of what was looked for, and the half-open range in the folded text."""


class Part(NamedTuple):
    """A contiguous part of a value that does not count by itself, but does together with the others."""

    unit: int
    start: int
    end: int
    span: tuple[int, int]


class Findings(NamedTuple):
    """What one text holds: hits in the order found, and parts."""

    hits: tuple[Hit, ...]
    parts: tuple[Part, ...]

    @property
    def best(self) -> dict[int, Hit]:
        """The first hit of the highest level of each unit."""
        best: dict[int, Hit] = {}
        for hit in self.hits:
            if hit.unit not in best or hit.level > best[hit.unit].level:
                best[hit.unit] = hit
        return best


class Matcher:
    """Finds the values of `units` in texts. Building it costs about as much as scanning a few long messages, at first use."""

    def __init__(self, units: tuple[SensitiveUnit, ...]) -> None:
        self.units = units
        self._young: dict[str, Findings] = {}
        self._old: dict[str, Findings] = {}
        self._crossing: dict[tuple[str, str], tuple[Hit, ...]] = {}

    def findings(self, text: str) -> Findings:
        """Returns all hits and parts in `text`; the answer is remembered for a while."""
        known = self._young.get(text) or self._old.get(text)
        if known is None:
            known = self._search(unblocked(text), every=False)
            if len(self._young) >= MEMO_TEXTS:
                self._old, self._young = self._young, {}
            if len(text) < 100_000:
                self._young[text] = known
        return known

    def across(self, left: str, right: str) -> tuple[Hit, ...]:
        """Returns the hits that begin in `left` and end in `right`, spans counted from the start of `right`."""
        known = self._crossing.get((left, right))
        if known is None:
            if len(self._crossing) >= MEMO_PAIRS:
                self._crossing.clear()
            known = self._crossing[left, right] = tuple(self._across(left, right))
        return known

    def _across(self, left: str, right: str) -> list[Hit]:
        reach = 2 * self._longest + 16
        left, right = left[-reach:], right[:reach]
        cut = len(left)
        if not self._unfoldable and not self._may_cross(_edge(left), _edge(right)):
            return []
        view = View(unblocked(left + right))
        hits = self._whole(view, self._matches(view)[0], None)
        return [hit._replace(span=(0, hit.span[1] - cut), form="split") for hit in hits if hit.span[0] < cut < hit.span[1]]

    def _may_cross(self, left: str, right: str) -> bool:
        """Says whether any folded pattern begins in one folded text and ends in the next: nearly always not, and cheap to see."""
        cut, count = len(left), len(self._patterns)
        found = self._automaton.find_matches_as_indexes(left + right, overlapping=True)
        return any(start < cut < end and number < count for number, start, end in found)

    def whole(self, unit: int, start: int, end: int) -> bool:
        """Says whether the range `start`, `end` of a unit's folded value is all of it, up to an optional calling code."""
        fragments = self._fragments[unit]
        return start <= fragments.optional and end == len(fragments.folded)

    def occurrences(self, text: str) -> tuple[Hit, ...]:
        """Returns every hit in `text`, where `findings` stops looking for a unit once it is exposed in full.

        A range overwritten with `BLOCK` is left out, and no match reaches across it.
        """
        return self._search(text, every=True).hits

    def _search(self, text: str, *, every: bool) -> Findings:
        if not self.units:
            return Findings((), ())
        hits: list[Hit] = []
        parts: list[Part] = []
        full: set[int] | None = None if every else set()
        for view in (View(text), *decoded_views(text)):
            whole, grams, triggers = self._matches(view)
            if whole or self._unfoldable:
                hits += self._whole(view, whole, full)
            if triggers:
                hits += self._amounts.hits(view, triggers)
            for part, level in self._parts(view, grams, full or ()) if grams else ():
                if level:
                    hits.append(Hit(part.unit, level, part.span, view.form or "partial"))
                parts.append(part)
        return Findings(tuple(hits), tuple(parts))

    def _matches(self, view: View) -> tuple[list[_Match], list[_Match], list[int]]:
        """Returns what one pass over a folded text finds: whole patterns, grams, and where triggers of amounts are."""
        wholes, grams = len(self._patterns), len(self._patterns) + len(self._gram_list)
        found: tuple[list[_Match], list[_Match], list[int]] = [], [], []
        for number, start, end in self._automaton.find_matches_as_indexes(view.folded, overlapping=True):
            if number < wholes:
                found[0].append((number, start, end))
            elif number < grams:
                found[1].append((number - wholes, start, end))
            else:
                found[2].append(start)
        return found

    # -- whole values

    @cached_property
    def _patterns(self) -> list[Pattern]:
        return [pattern for index, unit in enumerate(self.units) for pattern in patterns_of(index, unit)]

    @cached_property
    def _longest(self) -> int:
        return max((len(pattern.folded) for pattern in self._patterns), default=0)

    @cached_property
    def _automaton(self) -> ahocorasick_rs.AhoCorasick:
        """Finds patterns, then grams, then triggers of amounts, by their numbers in one sequence."""
        return _automaton([*(pattern.folded for pattern in self._patterns), *self._grams, *dict.fromkeys(self._amounts.triggers)])

    @cached_property
    def _unfoldable(self) -> list[tuple[int, str]]:
        """Values without a letter or a digit, which are looked for as they stand."""
        values = ((index, unblocked(unit.value)) for index, unit in enumerate(self.units))
        return [(index, value) for index, value in values if value.strip() and not fold(value)]

    def _whole(self, view: View, matches: list[_Match], full: set[int] | None) -> list[Hit]:
        """Returns the hits among `matches`. Units in `full` are passed over, and those found in full are added to it."""
        hits = []
        for number, start, end in matches:
            pattern = self._patterns[number]
            if full is not None and pattern.unit in full:
                continue
            span = satisfied(pattern, view, start, end)
            if span is not None:
                if pattern.level == FULL and full is not None:
                    full.add(pattern.unit)
                hits.append(
                    Hit(pattern.unit, pattern.level, view.span(*span), view.form or self._named(pattern, view.text[slice(*span)]))
                )
        for index, value in self._unfoldable:
            for match in re.finditer(re.escape(value), view.text):
                hits.append(Hit(index, FULL, view.span(*match.span()), view.form or "verbatim"))
        return hits

    def _named(self, pattern: Pattern, written: str) -> str:
        value = self.units[pattern.unit].value
        if pattern.level == FULL and pattern.form == "spacing":
            return (
                "verbatim" if written == value or written in value else "case" if written.lower() in value.lower() else "spacing"
            )
        return pattern.form

    # -- amounts, by value

    @cached_property
    def _amounts(self) -> Amounts:
        return Amounts(self.units)

    # -- parts of values

    @cached_property
    def _fragments(self) -> dict[int, Fragments]:
        found = (fragments_of(index, unit) for index, unit in enumerate(self.units))
        return {fragments.unit: fragments for fragments in found if fragments is not None}

    @cached_property
    def _grams(self) -> dict[str, list[tuple[int, int]]]:
        """Maps short texts to (unit, position in its value). Every part long enough to count contains one of them."""
        grams: dict[str, list[tuple[int, int]]] = {}
        for unit, fragments in self._fragments.items():
            stride = max(1, fragments.least // 4) if fragments.least >= 8 else 1
            size = fragments.least - stride + 1
            for start in range(0, len(fragments.folded) - size + 1, stride):
                gram = fragments.folded[start : start + size]
                if len(set(gram)) > 1:
                    grams.setdefault(gram, []).append((unit, start))
        return grams

    @cached_property
    def _gram_list(self) -> list[list[tuple[int, int]]]:
        return list(self._grams.values())

    def _parts(self, view: View, matches: list[_Match], full: Container[int]) -> Iterator[tuple[Part, float]]:
        """Yields the maximal parts of values in a text, with the level at which each counts by itself (0 if it does not).

        Units in `full` are passed over.
        """
        done: dict[tuple[int, int], int] = {}
        inside: dict[tuple[int, int], bool] = {}
        budget, folded = MAX_PARTS, view.folded
        for gram, start, end in matches:
            for unit, position in self._gram_list[gram]:
                if unit in full or done.get((unit, start - position), -1) >= end:
                    continue
                budget -= 1
                if budget < 0:
                    return
                fragments = self._fragments[unit]
                first, last = _extended(fragments.folded, position, folded, start, end)
                done[unit, start - position] = last
                if last - first < fragments.least:
                    continue
                if fragments.bounded and not fragments.digits:
                    if (first, last) not in inside:
                        inside[first, last] = _inside(view.text, *view.origins_of([first, last - 1]))
                    if inside[first, last]:
                        continue
                part = _part(fragments, view, first, last, first - (start - position))
                if part is not None:
                    yield part


def matcher_for(units: Sequence[SensitiveUnit]) -> Matcher:
    """Returns the matcher of `units`, the same one for equal units."""
    return _matcher(tuple(units))


@lru_cache(maxsize=32)
def _matcher(units: tuple[SensitiveUnit, ...]) -> Matcher:
    return Matcher(units)


def _automaton(patterns: list[str]) -> ahocorasick_rs.AhoCorasick:
    return ahocorasick_rs.AhoCorasick(patterns, implementation=ahocorasick_rs.Implementation.ContiguousNFA, store_patterns=False)


@lru_cache(maxsize=4_000)
def _edge(text: str) -> str:
    """Returns the start or the end of a text, folded."""
    return fold(unblocked(text))


def _extended(value: str, position: int, folded: str, start: int, end: int) -> tuple[int, int]:
    """Returns the range of `folded` around `start`, `end` that agrees with `value` around `position`."""
    offset = start - position
    if offset >= 0 and folded.startswith(value, offset):
        return offset, offset + len(value)
    first, last = max(0, offset), min(len(folded), offset + len(value))
    while start > first and value[start - 1 - offset] == folded[start - 1]:
        start -= 1
    while end < last and value[end - offset] == folded[end]:
        end += 1
    return start, end


def _whole_words(text: str, offsets: list[int]) -> list[int]:
    """Returns `offsets` without the parts of words at their ends."""
    first, last = 0, len(offsets)
    while first < last and word(text, offsets[first] - 1) and not is_cjk(text[offsets[first]]):
        first += 1
    while first < last and word(text, offsets[last - 1] + 1) and not is_cjk(text[offsets[last - 1]]):
        last -= 1
    return offsets[first:last]


def _in_word(text: str, begin: int, final: int) -> bool:
    """Says whether a word goes on beyond `begin` or `final`."""
    return (word(text, begin - 1) and not is_cjk(text[begin])) or (word(text, final + 1) and not is_cjk(text[final]))


def _inside(text: str, begin: int, final: int) -> bool:
    """Says whether a word or a number goes on beyond `begin` or `final`."""
    return inside_number(text, begin, final, grouped=True) or _in_word(text, begin, final)


def _part(fragments: Fragments, view: View, first: int, last: int, position: int) -> tuple[Part, float] | None:
    text, size = view.text, last - first
    offsets = view.origins(first, last)
    begin, final = offsets[0], offsets[-1]
    outside = _in_word(text, begin, final)
    if outside and (fragments.digits or (not fragments.bounded and size < fragments.most)):
        shorter = _whole_words(text, offsets)
        if len(shorter) >= fragments.least:
            position += offsets.index(shorter[0])
            offsets, begin, final, size, outside = shorter, shorter[0], shorter[-1], len(shorter), False
    if not outside:
        outside = inside_number(text, begin, final, grouped=True)
    if fragments.optional and position <= fragments.optional and other_code(text, begin, fragments.folded[: fragments.optional]):
        return None
    if (fragments.bounded and outside) or not tight(text, offsets, 8):
        return None
    part = Part(fragments.unit, position, position + size, view.span(begin, final + 1))
    ends = position + size == len(fragments.folded)
    enough = size >= fragments.most and (ends or not fragments.tail_only)
    enough = enough or bool(fragments.head and position <= fragments.optional and position + size >= fragments.head)
    if enough and fragments.digits:
        left_out = fragments.folded[:position] + fragments.folded[position + size :]
        enough = not any(char.isdigit() for char in left_out)
    if outside:
        return (part, MOST) if enough else None
    return part, (MOST if enough else 0.0)
