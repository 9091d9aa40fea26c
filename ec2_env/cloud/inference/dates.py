"""What sentences about a birthday say of a date without writing it: year, age, month, season, weekday, sign."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_ZH_DAYS = "一二三四五六日"
_SEASONS = {"spring|春": (3, 4, 5), "summer|夏": (6, 7, 8), "autumn|fall\\b|秋": (9, 10, 11), "winter|冬": (12, 1, 2)}
_SIGNS = (
    (1, 20, "capricorn|摩羯"),
    (2, 19, "aquari|水瓶"),
    (3, 21, "pisces|双鱼"),
    (4, 20, "aries|白羊"),
    (5, 21, "taur(?:us|ean)|金牛"),
    (6, 22, "gemini|双子"),
    (7, 23, "cancer(?:ian)?\\b|巨蟹"),
    (8, 23, "leo\\b|狮子座"),
    (9, 23, "virgo|处女座"),
    (10, 24, "libra|天秤"),
    (11, 23, "scorpi|天蝎"),
    (12, 22, "sagittari|射手"),
    (13, 1, "capricorn|摩羯"),
)
_PART = (r"early|beginning|上旬|月初", r"mid\b|middle|中旬|月中", r"late|end of|下旬|月底|月末")
_ANIMALS = "猴鸡狗猪鼠牛虎兔龙蛇马羊"
_SMALL = {
    word: n
    for n, word in enumerate(
        "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
        13,
    )
} | {word: 10 * n for n, word in enumerate("twenty thirty forty fifty sixty seventy".split(), 2)}
_ROUND = {"twenties": 1, "thirties": 2, "forties": 3, "fifties": 4, "sixties": 5, "seventies": 6, "eighties": 7, "nineties": 8}


def agreement(day: date, sentence: str) -> float:
    """Returns how much a sentence says for a date of birth, in nats: the sum over what agrees, each by how rare it is."""
    text = sentence.casefold()
    score = 3.5 * _age(day, text) + sum(weight for weight, pattern in _signs(day) if pattern.search(text))
    return score + (1.0 if score and re.search(_PART[min(day.day - 1, 29) // 10], text) else 0.0)


@lru_cache(maxsize=1024)
def _signs(day: date) -> tuple[tuple[float, re.Pattern[str]], ...]:
    """Returns what may be said of a date, with its weight: about the logarithm of how many dates it leaves out."""
    month, season = _MONTHS[day.month - 1], next(name for name, months in _SEASONS.items() if day.month in months)
    sign = next(name for limit, first, name in _SIGNS if (day.month, day.day) < (limit, first))
    said = (
        (3.7, rf"(?<!\d){day.year}(?![-\d])"),
        (2.0, _decade(day)),
        (2.5, rf"\b{month}\b|\b{month[:3]}\.?\b(?! i\b)|(?<![\d一二三四五六七八九十]){day.month}月|(?<!十){_zh(day.month)}月"),
        (1.4, season),
        (1.9, rf"\b{_WEEKDAYS[day.weekday()]}\b|(?:星期|周){_ZH_DAYS[day.weekday()]}"),
        (2.5, sign),
        (2.5, rf"属{_ANIMALS[day.year % 12]}"),
        (2.5, rf"(?<![\d.,:/-]){day.day}(?:st|nd|rd|th)\b|(?<!\d){day.day}[日号]"),
    )
    return tuple((weight, re.compile(pattern)) for weight, pattern in said)


def _decade(day: date) -> str:
    tens = day.year // 10 * 10
    word = {1950: "fifties", 1960: "sixties", 1970: "seventies", 1980: "eighties", 1990: "nineties"}.get(tens)
    zh = {1950: "五", 1960: "六", 1970: "七", 1980: "八", 1990: "九"}.get(tens, "零")
    named = f"|in the (?:(?:early|mid|late)[- ])?{word}" if word else ""
    return rf"\b{tens}s|\b'?{tens % 100:02d}s\b{named}|(?:{tens % 100:02d}|{zh}十?)(?:年代|后)"


def _age(day: date, text: str) -> float:
    """Returns how well the ages that a sentence states fit, 0 to 1, seen from 2026, when the worlds are."""
    ages = [int(a) for a in re.findall(r"(?<![\d.,:/-])(\d{2})(?:th birthday|(?:\s|-)?years?(?:\s|-)old|\s?岁|\s?周岁)", text)]
    ages += [int(a) for a in re.findall(r"\b(?:aged?|turn(?:s|ed|ing)|over|under) (\d{2})\b", text)]
    for tens, one in re.findall(
        r"\b(twenty|thirty|forty|fifty|sixty|seventy)(?:[- ](one|two|three|four|five|six|seven|eight|nine))?", text
    ):
        ages.append(_SMALL[tens] + (" one two three four five six seven eight nine".split(" ").index(one) if one else 0))
    for name, index in _ROUND.items():
        if re.search(rf"\b(?:his|her|their) (?:(?:early|mid|late)[- ]?)?{name}\b", text):
            ages += [10 * (index + 1) + 5]
    ages += [10 * "一二三四五六七".index(char) + 10 for char in re.findall(r"([二三四五六七])十(?:岁|多岁|出头)", text)]
    return max((max(0.0, 1 - abs((2026 - day.year) - age) / 6) for age in ages), default=0.0)


def _zh(month: int) -> str:
    return "十" * (month >= 10) + ("" if month == 10 else "一二三四五六七八九"[month % 10 - 1])
