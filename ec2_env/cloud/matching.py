"""Finding sensitive values in one text. Matchers keep no session state, so all audits of the same units share one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import ahocorasick_rs

from ec2_env.cloud.decoding import decoded_views
from ec2_env.cloud.folding import BLOCK, View, fold
from ec2_env.cloud.forms import FULL, MONEY_KINDS, MOST, Fragments, Pattern, fragments_of, is_cjk, patterns_of
from ec2_env.cloud.numerals import digit_forms, main_number, scaled_forms
from ec2_env.sensitive import SensitiveUnit

MEMO_TEXTS = 2_000
"""Texts whose findings a matcher remembers in each of two generations."""
MAX_PARTS = 5_000
"""Possible parts of values looked at in one text, so that a text made of one repeated character costs no more than another."""


class Hit(NamedTuple):
    """One occurrence of a unit's value, or of a part of it that counts by itself."""

    unit: int
    level: float
    span: tuple[int, int]
    form: str


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

    def findings(self, text: str) -> Findings:
        """Returns all hits and parts in `text`; the answer is remembered for a while."""
        known = self._young.get(text) or self._old.get(text)
        if known is None:
            known = self._search(text, every=False)
            if len(self._young) >= MEMO_TEXTS:
                self._old, self._young = self._young, {}
            if len(text) < 100_000:
                self._young[text] = known
        return known

    def across(self, left: str, right: str) -> list[Hit]:
        """Returns the hits that begin in `left` and end in `right`, spans counted from the start of `right`."""
        reach = 2 * self._longest + 16
        left, right = left[-reach:], right[:reach]
        cut = len(left)
        hits = self._whole(View(left + right), every=True)
        return [hit._replace(span=(0, hit.span[1] - cut), form="split") for hit in hits if hit.span[0] < cut < hit.span[1]]

    def length(self, unit: int) -> int:
        """Returns the length of the folded value whose parts are looked for."""
        return len(self._fragments[unit].folded)

    def occurrences(self, text: str) -> tuple[Hit, ...]:
        """Returns every hit in `text`, where `findings` stops looking for a unit once it is exposed in full."""
        return self._search(text, every=True).hits

    def _search(self, text: str, *, every: bool) -> Findings:
        if not self.units:
            return Findings((), ())
        hits: list[Hit] = []
        parts: list[Part] = []
        for view in (View(text), *decoded_views(text)):
            hits += self._whole(view, every=every)
            hits += self._numbers.hits(view)
            for part, level in self._parts(view):
                if level:
                    hits.append(Hit(part.unit, level, part.span, view.form or "partial"))
                parts.append(part)
        return Findings(tuple(hits), tuple(parts))

    # -- whole values

    @cached_property
    def _patterns(self) -> list[Pattern]:
        return [pattern for index, unit in enumerate(self.units) for pattern in patterns_of(index, unit)]

    @cached_property
    def _longest(self) -> int:
        return max((len(pattern.folded) for pattern in self._patterns), default=0)

    @cached_property
    def _automaton(self) -> ahocorasick_rs.AhoCorasick:
        return _automaton([pattern.folded for pattern in self._patterns])

    @cached_property
    def _unfoldable(self) -> list[tuple[int, str]]:
        """Values without a letter or a digit, which are looked for as they stand."""
        return [(index, unit.value) for index, unit in enumerate(self.units) if unit.value.strip() and not fold(unit.value)]

    def _whole(self, view: View, *, every: bool) -> list[Hit]:
        hits = []
        full: set[int] = set()
        for number, start, end in self._automaton.find_matches_as_indexes(view.folded, overlapping=True):
            pattern = self._patterns[number]
            if pattern.unit in full:
                continue
            span = _satisfied(pattern, view, start, end)
            if span is not None:
                if pattern.level == FULL and not every:
                    full.add(pattern.unit)
                hits.append(
                    Hit(pattern.unit, pattern.level, view.span(*span), view.form or self._named(pattern, view.text[slice(*span)]))
                )
        for index, value in self._unfoldable:
            at = view.text.find(value)
            if at >= 0:
                hits.append(Hit(index, FULL, view.span(at, at + len(value)), view.form or "verbatim"))
        return hits

    def _named(self, pattern: Pattern, written: str) -> str:
        value = self.units[pattern.unit].value
        if pattern.level == FULL and pattern.form == "spacing":
            return (
                "verbatim" if written == value or written in value else "case" if written.lower() in value.lower() else "spacing"
            )
        return pattern.form

    # -- numbers, by value

    @cached_property
    def _numbers(self) -> _Numbers:
        return _Numbers(self.units)

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
            stride = max(2, fragments.least // 4)
            size = max(2, fragments.least - stride + 1)
            for start in range(0, len(fragments.folded) - size + 1, stride):
                gram = fragments.folded[start : start + size]
                if len(set(gram)) > 1:
                    grams.setdefault(gram, []).append((unit, start))
        return grams

    @cached_property
    def _gram_list(self) -> list[list[tuple[int, int]]]:
        return list(self._grams.values())

    @cached_property
    def _gram_automaton(self) -> ahocorasick_rs.AhoCorasick:
        return _automaton(list(self._grams))

    def _parts(self, view: View) -> Iterator[tuple[Part, float]]:
        """Yields the maximal parts of values in a text, with the level at which each counts by itself (0 if it does not)."""
        done: dict[tuple[int, int], int] = {}
        budget = MAX_PARTS
        for gram, start, end in self._gram_automaton.find_matches_as_indexes(view.folded, overlapping=True):
            for unit, position in self._gram_list[gram]:
                if done.get((unit, start - position), -1) >= end:
                    continue
                budget -= 1
                if budget < 0:
                    return
                fragments = self._fragments[unit]
                first, last = _extended(fragments.folded, position, view.folded, start, end - start)
                done[unit, start - position] = last
                if last - first >= fragments.least:
                    part = _part(fragments, view, first, last, first - (start - position))
                    if part is not None:
                        yield part


def matcher_for(units: Sequence[SensitiveUnit]) -> Matcher:
    """Returns the matcher of `units`, the same one for equal units."""
    return _matcher(tuple(units))


@lru_cache(maxsize=64)
def _matcher(units: tuple[SensitiveUnit, ...]) -> Matcher:
    return Matcher(units)


def _automaton(patterns: list[str]) -> ahocorasick_rs.AhoCorasick:
    return ahocorasick_rs.AhoCorasick(patterns, implementation=ahocorasick_rs.Implementation.ContiguousNFA, store_patterns=False)


# -- what a match has to satisfy in the text as written

_STOP = re.compile(r"\w\w[.!?;:]\s|[\u3002\uff01\uff1f\uff1b;!?]|\n\s*\n")
_MASK = re.compile(r"(?:[*xX•·●#…_.-]|\.\.\.)[\s-]?$")
_CUE = re.compile(
    r"(?i:\b(?:end(?:s|ing)?|last|final|digits|card|iban|account|acct|phone|tel|mobile|number|no|id|ssn)\b)|尾号|末四位|后四位|卡|账号|账户|电话|手机|证"
)
_JOINTS = " .-,/\u00a0\u202f()"


def _word(text: str, index: int) -> bool:
    """Says whether an ASCII or other alphabetic letter, or a digit, stands at `index`: what makes a neighbor part of a word."""
    return 0 <= index < len(text) and text[index].isalnum() and not is_cjk(text[index])


def _satisfied(pattern: Pattern, view: View, start: int, end: int) -> tuple[int, int] | None:
    """Returns the range of the match in the text of the view, or None if the match does not count."""
    offsets, text = view.offsets, view.text
    first, last = offsets[start], offsets[end - 1]
    if (start and offsets[start - 1] == first) or (end < len(offsets) and offsets[end] == last):
        return None
    if pattern.left and not is_cjk(text[first]) and _word(text, first - 1):
        return None
    if pattern.right and not is_cjk(text[last]) and _word(text, last + 1):
        return None
    if pattern.number and _inside_number(text, first, last, grouped=end - start < 9):
        return None
    if not _tight(text, offsets[start:end], pattern.gap):
        return None
    if pattern.separated and last - first + 1 == end - start:
        return None
    if pattern.capital >= 0 and not text[offsets[start + pattern.capital]].isupper():
        return None
    if pattern.name and _STOP.search(text, first, last):
        return None
    if pattern.cue and not (_MASK.search(text, max(0, first - 4), first) or _CUE.search(text, max(0, first - 32), first)):
        return None
    return first, last + 1


def _tight(text: str, offsets: list[int], gap: int) -> bool:
    """Says whether at most `gap` visible characters were dropped between neighbors; invisible ones do not count."""
    for left, right in pairwise(offsets):
        if right - left > 1 + gap and sum(char.isprintable() or char in "\n\t" for char in text[left + 1 : right]) > gap:
            return False
    return True


def _inside_number(text: str, first: int, last: int, *, grouped: bool) -> bool:
    """Says whether the digits go on beyond the match, directly or (for short numbers) after one separator."""
    if text[first].isdigit():
        if first and text[first - 1].isdigit():
            return True
        if grouped and first > 1 and text[first - 1] in _JOINTS and text[first - 2].isdigit():
            return True
    if text[last].isdigit():
        if text[last + 1 : last + 2].isdigit():
            return True
        if grouped and text[last + 1 : last + 2] in _JOINTS and text[last + 2 : last + 3].isdigit():
            return True
    return False


def _extended(value: str, position: int, folded: str, start: int, size: int) -> tuple[int, int]:
    """Returns the range of `folded` around `start` that agrees with `value` around `position`."""
    left = 0
    while position - left > 0 and start - left > 0 and value[position - left - 1] == folded[start - left - 1]:
        left += 1
    right = size
    while position + right < len(value) and start + right < len(folded) and value[position + right] == folded[start + right]:
        right += 1
    return start - left, start + right


def _part(fragments: Fragments, view: View, first: int, last: int, position: int) -> tuple[Part, float] | None:
    offsets, text = view.offsets, view.text
    begin, final = offsets[first], offsets[last - 1]
    size = last - first
    outside = (_word(text, begin - 1) and not is_cjk(text[begin])) or (_word(text, final + 1) and not is_cjk(text[final]))
    if not outside:
        outside = _inside_number(text, begin, final, grouped=True)
    if (fragments.bounded and outside) or not _tight(text, offsets[first:last], 8):
        return None
    part = Part(fragments.unit, position, position + size, view.span(begin, final + 1))
    ends = position + size == len(fragments.folded)
    enough = size >= fragments.most and (ends or not fragments.tail_only)
    enough = enough or bool(fragments.head and position == 0 and size >= fragments.head)
    if enough and fragments.digits:
        left_out = fragments.folded[:position] + fragments.folded[position + size :]
        enough = not any(char.isdigit() for char in left_out)
    if outside:
        return (part, MOST) if enough else None
    return part, (MOST if enough else 0.0)


# -- numbers, by value

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
_ATTACHED = re.compile(r"(?i:usd|eur|gbp|cny|rmb|jpy|chf|us|k|m|mn|w|pa)(?![A-Za-z0-9])")
_ATTACHED_BEFORE = re.compile(r"(?i:usd|eur|gbp|cny|rmb|jpy|chf|us)$")


class _Numbers:
    """Amounts of money, found by value in whatever format they are written."""

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
            yield from self._at(view, text, match.start(), token)
            if "," in token and token not in self.plain:
                at = match.start()
                for cell in token.split(","):
                    yield from self._at(view, text, at, cell)
                    at += len(cell) + 1

    def _at(self, view: View, text: str, start: int, token: str) -> Iterator[Hit]:
        end = start + len(token)
        for unit, suffix in self.scaled.get(token, ()):
            after = suffix.match(text, end)
            if after and _free_left(text, start):
                yield Hit(unit, FULL, view.span(start, after.end()), view.form or "number format")
        for unit, level in self.plain.get(token, ()):
            if _free_left(text, start) and _free_right(text, end):
                if self.small[unit] and not _UNIT.search(text, max(0, start - 6), end + 10):
                    continue
                yield Hit(unit, level, view.span(start, end), view.form or ("number format" if level == FULL else "partial"))


def _free_left(text: str, start: int) -> bool:
    """Says whether a number may begin here: not inside a word, an id such as INV-4321, a date or a time."""
    before = text[start - 1] if start else " "
    if before.isalpha() and not is_cjk(before):
        return bool(_ATTACHED_BEFORE.search(text, max(0, start - 3), start))
    return not before.isdigit() and not (
        before in "-/:_#." and start > 1 and text[start - 2].isalnum() and text[start - 2] != BLOCK
    )


def _free_right(text: str, end: int) -> bool:
    after = text[end : end + 1]
    if after.isalpha() and not is_cjk(after):
        return bool(_ATTACHED.match(text, end))
    return not (after and after in "-/:" and text[end + 1 : end + 2].isdigit())
