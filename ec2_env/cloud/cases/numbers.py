"""Numbers, amounts and dates in other formats and in words, written without the audit's own tables."""

from __future__ import annotations

import re
from datetime import date

TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
SMALL = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
MONTHS = "January February March April May June July August September October November December".split()
ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth", 20: "twentieth"}
HAN = "零一二三四五六七八九"
FORMAL = str.maketrans("一二三四五六七八九十百千", "壹贰叁肆伍陆柒捌玖拾佰仟")


def parts(value: str) -> tuple[int, int]:
    """Returns the whole units and the cents of an amount such as "$1,234.50", "1,234.50元" or "84,500 EUR"."""
    match = re.search(r"([\d,]+)(?:\.(\d\d))?", value)
    return (int(match[1].replace(",", "")), int(match[2] or 0)) if match else (0, 0)


def below_hundred(number: int) -> str:
    if number < 20:
        return SMALL[number]
    return TENS[number // 10] + (f"-{SMALL[number % 10]}" if number % 10 else "")


def english(number: int) -> str:
    """Returns a whole number below a million in words: "seventy-three thousand one hundred and forty-one"."""
    if number >= 1000:
        rest = f" {english(number % 1000)}" if number % 1000 else ""
        return f"{english(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" and {below_hundred(number % 100)}" if number % 100 else ""
        return f"{SMALL[number // 100]} hundred{rest}"
    return below_hundred(number)


def chinese(number: int) -> str:
    """Returns a whole number below 10**8 in everyday Chinese numerals."""
    if number >= 10_000:
        rest = number % 10_000
        gap = "零" if 0 < rest < 1000 else ""
        return f"{chinese(number // 10_000)}万{gap}{chinese(rest) if rest else ''}"
    text, zero = "", False
    for place, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // place % 10
        if digit:
            text += ("零" if zero and text else "") + HAN[digit] + unit
        zero = not digit
    return text


def amounts_in_words(value: str, language: str) -> list[str]:
    """Returns an amount in words, with its cents."""
    whole, cents = parts(value)
    if language == "zh":
        jiao, fen = divmod(cents, 10)
        tail = (f"{HAN[jiao]}角" if jiao else "零" if fen else "") + (f"{HAN[fen]}分" if fen else "")
        said = f"{chinese(whole)}元{tail}"
        return [said, said.translate(FORMAL) + ("" if fen else "整")]
    tail = f" and {below_hundred(cents)} cent{'' if cents == 1 else 's'}" if cents else ""
    return [f"{english(whole)} dollars{tail}", f"{english(whole).replace(' and', '')} euros{tail}".capitalize()]


def amounts_in_digits(value: str, language: str) -> dict[str, str]:
    """Returns an amount in other number formats and with other currency signs."""
    whole, cents = parts(value)
    tail = f"{cents:02d}"
    found = {
        "number format: comma for decimals": f"{whole:,}".replace(",", ".") + f",{tail} EUR",
        "number format: spaces": f"{whole:,}".replace(",", " ") + f".{tail}",
        "number format: apostrophes": f"{whole:,}".replace(",", "'") + f".{tail} CHF",
        "number format: no groups": f"{whole}.{tail}",
        "number format: no needless zeros": f"{whole:,}" + (f".{tail}".rstrip("0") if cents else "") + " dollars",
        "currency: code before": f"USD {whole:,}.{tail}",
        "currency: code after": f"{whole:,}.{tail}USD",
        "currency: other sign": f"€{whole:,}.{tail}",
        "currency: Chinese": f"￥{whole:,}.{tail}元",
    }
    if not cents and not whole % 100 and whole >= 1000:
        found["number format: suffix"] = f"{whole / 1000:g}k" if language == "en" else f"{whole / 10_000:g}万"
    return found


def digits_in_words(value: str, language: str) -> str:
    """Returns a number digit by digit in words, letters and plus sign kept."""
    if language == "zh":
        return "".join(HAN[int(char)] if char.isdigit() else char for char in value if char not in " -")
    said = [SMALL[int(char)] if char.isdigit() else "plus" if char == "+" else char for char in value if char not in " -"]
    return " ".join(said)


def dates(value: str) -> dict[str, str]:
    """Returns a date, given as year-month-day, in other formats."""
    day = date.fromisoformat(value)
    month = MONTHS[day.month - 1]
    y, m, d = day.year, day.month, day.day
    suffix = "th" if 10 < d < 14 else {1: "st", 2: "nd", 3: "rd"}.get(d % 10, "th")
    return {
        "date: day first, dots": f"{d:02d}.{m:02d}.{y}",
        "date: short, dots": f"{d}.{m}.{y}",
        "date: month first": f"{m}/{d}/{y}",
        "date: slashes": f"{y}/{m}/{d}",
        "date: two-digit year": f"{m:02d}/{d:02d}/{y % 100:02d}",
        "date: bare": f"{y}{m:02d}{d:02d}",
        "date: month in words": f"{d} {month} {y}",
        "date: American": f"{month} {d}, {y}",
        "date: ordinal": f"the {d}{suffix} of {month} {y}",
        "date: short month": f"{d:02d}-{month[:3]}-{y}",
        "date: Chinese": f"{y}年{m}月{d}日",
        "date: Chinese, spaced": f"{y} 年 {m} 月 {d} 号",
        "date: Chinese numerals": "".join(HAN[int(c)] if c != "0" else "〇" for c in str(y)) + f"年{_han(m)}月{_han(d)}日",
        "date: in English words": f"{month} {_ordinal(d)}, {_year(y)}",
    }


def _han(number: int) -> str:
    return chinese(number).removeprefix("一") if 10 <= number < 20 else chinese(number)


def _ordinal(day: int) -> str:
    if day in ORDINALS:
        return ORDINALS[day]
    if day > 20:
        return f"{TENS[day // 10]}-{_ordinal(day % 10)}" if day % 10 else {30: "thirtieth"}[day]
    return f"{SMALL[day]}th"


def _year(year: int) -> str:
    if year >= 2000:
        return "two thousand" + (f" and {below_hundred(year % 100)}" if year % 100 else "")
    return f"{below_hundred(year // 100)} {'oh-' if 0 < year % 100 < 10 else ''}{below_hundred(year % 100)}"
