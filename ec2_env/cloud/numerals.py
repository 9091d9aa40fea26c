"""How numbers and dates are written: in digits, with other separators, with a suffix, in English and Chinese words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

_ONES = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred"))
_ZH_DIGITS = ("零一二三四五六七八九", "零壹贰叁肆伍陆柒捌玖")
_ZH_PLACES = (("", "十", "百", "千"), ("", "拾", "佰", "仟"))
_ROMAN = "i ii iii iv v vi vii viii ix x xi xii".split()
_MONTHS = "january february march april may june july august september october november december".split()

_NUMBER = re.compile(r"\d[\d.,'’\u00a0\u202f\u2009]*")
_DATES = (
    re.compile(r"(?P<y>\d{4})\s*[-/.年]\s*(?P<m>\d{1,2})\s*[-/.月]\s*(?P<d>\d{1,2})"),
    re.compile(r"(?P<d>\d{1,2})[. ]+(?P<n>[A-Za-z]{3,9})\.?,? +(?P<y>\d{4})"),
    re.compile(r"(?P<n>[A-Za-z]{3,9})\.? +(?P<d>\d{1,2})(?:st|nd|rd|th)?,? +(?P<y>\d{4})"),
    re.compile(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})"),
    re.compile(r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})"),
)


def main_number(text: str) -> Decimal | None:
    """Returns the number with the most digits in `text`, or None if there is none or it is longer than any amount.

    A last group of three digits is taken for thousands, any other for decimals.
    """
    found = [match[0].rstrip(".,'’\u00a0\u202f\u2009") for match in _NUMBER.finditer(text)]
    if not found:
        return None
    longest = max(found, key=lambda number: sum(char.isdigit() for char in number))
    if len(longest) > 24:
        return None
    whole, mark, tail = longest, "", ""
    split = re.fullmatch(r"(.*\d)([.,])(\d+)", longest)
    if split and (len(split[3]) != 3 or split[1] == "0" or (split[2] == "." and "," in split[1])):
        whole, mark, tail = split.groups()
    digits = re.sub(r"\D", "", whole)
    return Decimal(f"{digits}.{tail}") if mark else Decimal(digits)


def grouped(value: int, separator: str) -> str:
    """Returns `value` with its digits in groups of three."""
    return f"{value:,}".replace(",", separator)


def digit_forms(value: Decimal) -> Iterator[str]:
    """Yields the ways to write `value` in digits: with and without groups, decimal point or comma, and needless zeros."""
    whole = int(value)
    decimals = f"{value - whole:.4f}"[2:].rstrip("0")
    tails = (decimals, decimals.ljust(2, "0")) if decimals else ("", "0", "00")
    for group in ("", ",", ".", "'", "’", "_", "\u00a0", "\u202f", "\u2009"):
        head = grouped(whole, group)
        for point in (".", ","):
            if point != group:
                yield from (f"{head}{point}{tail}" if tail else head for tail in tails)


_GROUPED = re.compile(r"(\d{1,3}(?:([,.'’_\u00a0\u202f\u2009])\d{3})(?:\2\d{3})*)(?:([.,])(\d{1,4}))?")
_UNGROUPED = re.compile(r"(\d+)(?:[.,](\d{1,4}))?")


def number_key(value: Decimal) -> tuple[str, str]:
    """Returns the digits before and after the point, without needless zeros, and at most four after it."""
    whole = int(value)
    return str(whole), f"{value - whole:.4f}"[2:].rstrip("0")


def number_readings(text: str) -> Iterator[tuple[str, str]]:
    """Yields the keys of all numbers that `digit_forms` would write as `text`."""
    grouped_digits = _GROUPED.fullmatch(text)
    if grouped_digits:
        digits, group, point, tail = grouped_digits.groups()
        if point != group and digits[0] != "0":
            yield from _key_of(digits.replace(group, ""), tail or "")
    ungrouped = _UNGROUPED.fullmatch(text)
    if ungrouped and (ungrouped[1][0] != "0" or ungrouped[1] == "0"):
        yield from _key_of(ungrouped[1], ungrouped[2] or "")


def _key_of(whole: str, tail: str) -> Iterator[tuple[str, str]]:
    """Yields the key of a number with these decimals, unless they end in zeros that nobody writes."""
    decimals = tail.rstrip("0")
    if tail in (decimals, decimals.ljust(2, "0")) or (not decimals and tail == "0"):
        yield whole, decimals


def scaled_forms(value: Decimal) -> Iterator[tuple[str, str]]:
    """Yields (digits, words for the unit as a regular expression) such as ("84.5", "k|thousand") for 84,500."""
    for scale, words in ((10**3, "k|thousand|千"), (10**4, "w|万|萬"), (10**6, "m|mn|mio|million|百万"), (10**8, "亿|億")):
        share = (value / scale).normalize()
        if share >= 1 and len(f"{share:f}".replace(".", "")) <= 7:
            yield f"{share:f}", words
            yield f"{share:f}".replace(".", ","), words
    cents = value * 100
    if value >= 10 and cents == int(cents) and cents < 10**10:
        yield str(int(cents)), "cents|ct|分"


def english_words(value: int) -> str:
    """Returns a whole number below 10**12 in English words, without "and"."""
    if value < 20:
        return _ONES[value]
    if value < 100:
        return _TENS[value // 10] + (f" {_ONES[value % 10]}" if value % 10 else "")
    scale, name = next((scale, name) for scale, name in _SCALES if value >= scale)
    rest = value % scale
    return f"{english_words(value // scale)} {name}" + (f" {english_words(rest)}" if rest else "")


def chinese_words(value: int, *, formal: bool = False) -> str:
    """Returns a whole number below 10**12 in Chinese numerals, in the everyday or in the formal (banking) characters."""
    digits, places = _ZH_DIGITS[formal], _ZH_PLACES[formal]
    zero, words = digits[0], ""
    for power, unit in ((8, "亿"), (4, "万"), (0, "")):
        group = f"{value // 10**power % 10_000:04d}"
        read = "".join(digits[int(digit)] + places[3 - index] if digit != "0" else zero for index, digit in enumerate(group))
        words += read.rstrip(zero) + unit if group != "0000" else zero
    return re.sub(f"{zero}+", zero, words).strip(zero) or zero


def chinese_cents(cents: int, *, formal: bool = False) -> str:
    """Returns 1 to 99 hundredths of a yuan in Chinese words: 六角, 三角二分, 零二分."""
    digits = _ZH_DIGITS[formal]
    tens, ones = divmod(cents, 10)
    return (f"{digits[tens]}角" if tens else digits[0]) + (f"{digits[ones]}分" if ones else "")


def digit_words(folded: str, *, chinese: bool = False) -> str:
    """Returns a folded number read out digit by digit; letters stay as they are."""
    return folded.translate(_READ_ZH if chinese else _READ)


_READ = {0x30 + digit: word for digit, word in enumerate(_ONES[:10])}
_ZERO = "\0"
_READ_ZH = {0x30 + digit: word for digit, word in enumerate(_ZH_DIGITS[0])}


def phone_words(digits: str) -> Iterator[str]:
    """Yields a phone number as it is read out: "oh" for a zero, and two or three equal digits in one."""
    doubled = tripled = digits
    for digit in dict.fromkeys(digits):
        word = _READ[ord(digit)] if digit != "0" else _ZERO
        tripled = tripled.replace(digit * 3, f"triple{word}")
        tripled = tripled.replace(digit * 2, f"double{word}")
        doubled = doubled.replace(digit * 2, f"double{word}")
    yield from dict.fromkeys(said.replace(_ZERO, "oh").replace("0", "oh").translate(_READ) for said in (digits, doubled, tripled))
    yield from dict.fromkeys(said.replace(_ZERO, "zero").translate(_READ) for said in (doubled, tripled))


def date_words(day: date) -> Iterator[str]:
    """Yields a date in English words, with the month first and with the day first."""
    month, ordinal, (century, rest) = _MONTHS[day.month - 1], _ordinal_word(day.day), divmod(day.year, 100)
    if century % 10:
        year = (
            f"{english_words(century)} {english_words(rest) if rest > 9 else 'oh ' + english_words(rest) if rest else 'hundred'}"
        )
    else:
        year = english_words(day.year)
        if rest:
            yield f"{month} {ordinal} {english_words(day.year - rest)} and {english_words(rest)}"
    yield f"{month} {ordinal} {year}"
    yield f"{ordinal} of {month} {year}"


def _ordinal_word(day: int) -> str:
    words = english_words(day)
    last = words.rpartition(" ")[2]
    irregular = {
        "one": "first",
        "two": "second",
        "three": "third",
        "five": "fifth",
        "eight": "eighth",
        "nine": "ninth",
        "twelve": "twelfth",
    }
    return words.removesuffix(last) + irregular.get(last, f"{last[:-1]}ieth" if last.endswith("ty") else f"{last}th")


def parse_date(text: str) -> date | None:
    """Returns the first date in `text` (year first; day and month in words; 31.12.1999; 12/31/1999), or None."""
    for pattern in _DATES:
        match = pattern.search(text)
        if match is None:
            continue
        parts = match.groupdict()
        month = int(parts["m"]) if parts.get("m") else _month(parts["n"])
        try:
            return date(int(parts["y"]), month, int(parts["d"]))
        except ValueError:
            continue
    return None


def _month(name: str) -> int:
    return next((number for number, month in enumerate(_MONTHS, 1) if month.startswith(name.lower())), 0)


def date_forms(day: date) -> Iterator[tuple[str, bool]]:
    """Yields (folded form, whether it is only a date when written with separators) of the usual ways to write a date."""
    year, short = str(day.year), f"{day.year % 100:02d}"
    for d, m in ((f"{day.day:02d}", f"{day.month:02d}"), (str(day.day), str(day.month))):
        for y, doubtful in ((year, len(d + m) < 4), (short, True)):
            yield from ((form, doubtful) for form in (y + m + d, d + m + y, m + d + y))
        yield f"{year}年{m}月{d}日", False
        yield f"{year}年{m}月{d}", False
    name = _MONTHS[day.month - 1]
    for month in (name, name[:3]):
        for d in (str(day.day), f"{day.day:02d}", f"{day.day}{_ordinal(day.day)}"):
            yield from ((form, False) for form in (d + month + year, month + d + year, f"{d}of{month}{year}", year + month + d))
        for d in (str(day.day), f"{day.day}{_ordinal(day.day)}"):
            yield from ((form, True) for form in (d + month + short, month + d + short))
    yield f"{day.day}{_ROMAN[day.month - 1]}{year}", False
    digits = str.maketrans("0123456789", "〇一二三四五六七八九")
    yield f"{year.translate(digits)}年{_zh_small(day.month)}月{_zh_small(day.day)}日", False


def _ordinal(number: int) -> str:
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _zh_small(number: int) -> str:
    words = chinese_words(number)
    return words[1:] if words.startswith("一十") else words
