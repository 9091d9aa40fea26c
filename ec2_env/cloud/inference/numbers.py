"""What texts say about a number without writing it: near it, above it, half of it, the difference of two others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "grand": 1e3,
    "千": 1e3,
    "万": 1e4,
    "w": 1e4,
    "百万": 1e6,
    "m": 1e6,
    "million": 1e6,
    "亿": 1e8,
    "hundred": 1e2,
    "百": 1e2,
    "": 1.0,
}
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,:/-])[($€£¥]{0,3}\s?(?P<digits>\d{1,3}(?:[,'’]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d:/-])"
    r"\s?(?P<scale>百万|万|千|百|亿|[kmw](?![a-z])|thousand\b|grand\b|million\b|hundred\b)?",
    re.IGNORECASE,
)
_ENGLISH = {
    **{
        word: value
        for value, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
            "eighteen nineteen".split()
        )
    },
    **{word: 10 * value for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)},
}
_WORDS = re.compile(
    rf"\b(?:{'|'.join(_ENGLISH)})(?:(?:[\s-]{{1,3}}and)?[\s-]{{1,3}}(?:{'|'.join(_ENGLISH)}|hundred|thousand|million)){{1,14}}\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"(?<![一二两三四五六七八九十百千万亿零])[一二两三四五六七八九十百千万亿零]{2,18}|[一二两三四五六七八九](?=成|折)"
)
_ZH = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2}
_ZH_UNITS = {"十": 10, "百": 100, "千": 1000}

_ABOVE = re.compile(
    r"(?:more than|over|above|exceed\w*|at least|north of|no less than|beyond|tops|超过|高于|多于|不止|至少|不低于|大于)\W*$",
    re.I,
)
_BELOW = re.compile(
    r"(?:less than|under|below|at most|short of|no more than|up to|not quite|低于|不到|少于|至多|不超过|不足|小于)\W*$", re.I
)
_ABOVE_AFTER = re.compile(r"^\s*(?:元|块|美元)?\s*(?:以上|多|出头|or more|and change|plus\b)", re.I)
_BELOW_AFTER = re.compile(r"^\s*(?:元|块|美元)?\s*(?:以下|以内|or less)", re.I)


class Number(NamedTuple):
    """A number in a text.

    Attributes:
        step: Distance between neighboring numbers written with this precision: 0.01 for 2.50, 1000 for 85k or 85,000.
        bound: 1 if something is said to be above it, -1 below, 0 neither.
        sentence: Where it stands.
        exact: Whether it is written with decimals.
    """

    value: float
    step: float
    bound: int
    sentence: str
    exact: bool = False


def numbers(sentence: str) -> Iterator[Number]:
    """Yields the numbers of a sentence, in digits with or without a scale, and in English or Chinese words."""
    for match in _NUMBER.finditer(sentence):
        digits = re.sub(r"[,'’]", "", match["digits"])
        if len(digits) <= 15:
            scale = _SCALES[(match["scale"] or "").lower()]
            yield Number(
                float(digits) * scale, _step(digits) * scale, _bound(sentence, match), sentence, "." in digits and scale == 1
            )
    for match in _WORDS.finditer(sentence):
        value = _english(match[0].lower())
        yield Number(value, _step(str(int(value))), _bound(sentence, match), sentence)
    for match in _CHINESE.finditer(sentence):
        value = _chinese(match[0])
        if value:
            yield Number(value, _step(str(int(value))), _bound(sentence, match), sentence)


def _step(digits: str) -> float:
    whole, _, decimals = digits.partition(".")
    if decimals.strip("0"):
        return float(10.0 ** -len(decimals))
    kept = whole.rstrip("0")
    return float(10 ** (len(whole) - len(kept))) if kept else 1.0


def _bound(sentence: str, match: re.Match[str]) -> int:
    before, after = sentence[max(0, match.start() - 24) : match.start()], sentence[match.end() : match.end() + 12]
    if re.search(r"(?:between|from|介于)\W*$", before, re.I) or _ABOVE.search(before) or _ABOVE_AFTER.search(after):
        return 1
    return -1 if _BELOW.search(before) or _BELOW_AFTER.search(after) or re.search(r"between\W+\S+ and \W*$", before, re.I) else 0


def _english(words: str) -> float:
    total = current = 0
    for word in re.findall(r"[a-z]+", words):
        if word == "hundred":
            current = max(current, 1) * 100
        elif word in ("thousand", "million"):
            total += max(current, 1) * int(_SCALES[word])
            current = 0
        else:
            current += _ENGLISH.get(word, 0)
    return float(total + current)


def _chinese(text: str) -> float:
    total = section = digit = 0
    for char in text:
        if char in _ZH:
            digit = _ZH[char]
        elif char in _ZH_UNITS:
            section += (digit or 1) * _ZH_UNITS[char]
            digit = 0
        else:
            total = (total + section + digit) * (10**4 if char == "万" else 10**8)
            section = digit = 0
    return float(total + section + digit)


_HALF = re.compile(r"\bhalf\b|一半|半数", re.I)
_TWICE = re.compile(r"\btwice\b|\bdouble|两倍|翻倍|翻一番", re.I)
_OPERATION = re.compile(
    r"\bplus\b|\bmore\b|\bminus\b|\bless\b|\badd(?:ed)?\b|\btimes\b|\bon top\b|\bsum\b|\btogether\b|\bdifference\b|\bmonths?\b|"
    r"\bshort of\b|[-+×x*]\s?\$?\d|加|减|乘|倍|多|少|合计|之和|相差|每月|个月|再",
    re.I,
)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s?(?:%|percent\b|per cent\b)|百分之(\d+(?:\.\d+)?)", re.I)
_MOST = 240
"""Most numbers that are combined with one another."""


def derived(found: Sequence[Number]) -> list[Number]:
    """Returns what follows from numbers of one sentence that speaks of halves, sums, differences, products or shares."""
    by_sentence: dict[str, list[Number]] = {}
    for number in found:
        by_sentence.setdefault(number.sentence, []).append(number)
    results = []
    for sentence, members in by_sentence.items():
        results += [_scaled(n, 0.5) for n in members] if _HALF.search(sentence) else []
        results += [_scaled(n, 2) for n in members] if _TWICE.search(sentence) else []
        percents = [float(a or b) / 100 for a, b in _PERCENT.findall(sentence)[:8]]
        results += [_scaled(n, f) for n in members for p in percents for f in (p, 1 + p, 1 - p) if f > 0 and n.value > 100]
        if _OPERATION.search(sentence) and len(members) <= 6:
            for index, one in enumerate(members):
                for other in members[index + 1 :]:
                    step = min(one.step, other.step)
                    pairs = (one.value + other.value, abs(one.value - other.value))
                    results += [Number(value, step, 0, sentence) for value in pairs if value > 0]
                    results += [Number(one.value * other.value, step, 0, sentence)] if min(one.value, other.value) <= 60 else []
    return results


def _scaled(number: Number, factor: float) -> Number:
    return Number(number.value * factor, number.step * factor, 0, number.sentence)


def exact_pairs(found: Sequence[Number]) -> tuple[frozenset[int], int]:
    """Returns the sums and differences, in hundredths, of all pairs of numbers with decimals, and how many there are."""
    cents = list(dict.fromkeys(round(100 * number.value) for number in found if number.exact))[:_MOST]
    results = {a + sign * b for a in cents for b in cents if a > b for sign in (1, -1)}
    return frozenset(results) - frozenset(cents), len(results)


def closeness(value: float, found: Sequence[Number]) -> float:
    """Returns the probability that chance puts some number of a text as near to `value` as the nearest one is.

    Numbers within a factor of three are taken to be spread evenly over it in the logarithm. A number is no nearer than half of
    its last digit that is not a zero: 85,000 is within 500 of all that rounds to it.
    """
    if value <= 0:
        return 1.0
    around = [n for n in found if value / 3 < n.value < value * 3]
    if not around:
        return 1.0
    nearest = min(max(abs(math.log(n.value / value)), min(0.5, 0.5 * min(n.step, 0.1 * n.value) / n.value)) for n in around)
    return min(1.0, len(around) * 2 * nearest / (2 * math.log(3)))


def within_bounds(value: float, found: Sequence[Number]) -> int:
    """Returns how many of the bounds that numbers state hold for a value, less those that do not."""
    return sum(1 if (value - n.value) * n.bound > 0 else -1 for n in found if n.bound)
