"""Forms written down to be measured, before anything in the audit was made for them: what it sees of a form nobody listed.

They come in two halves, dealt out before the first measurement. `MENDED` was measured, and the audit then learned what is cheap
to see of it; `LEFT` was measured and nothing was made for it, so it says what the audit sees of forms that nobody thought of.
A form that the audit is taught moves from `LEFT` to `MENDED`.
"""

from __future__ import annotations

import base64
import json
import random
import re
import textwrap
from collections.abc import Callable, Iterator
from datetime import date

from ec2_env.cloud.cases.numbers import HAN, MONTHS, SMALL, below_hundred, english, parts
from ec2_env.cloud.cases.texts import sentence
from ec2_env.cloud.cases.writing import MONEY, Calls

Write = Callable[[str], str]
ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
WIDE_MARKS = str.maketrans(".,-@:$%/+", "．，－＠：＄％／＋")
KEYCAPS = {ord("0") + digit: f"{digit}\ufe0f\u20e3" for digit in range(10)}
CIRCLED = {ord("0"): "\u24ea", **{ord("0") + digit: chr(0x2460 + digit - 1) for digit in range(1, 10)}}
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
LEET = str.maketrans("aeio", "4310")
UPSIDE_DOWN = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ɐqɔpǝɟƃɥıɾʞןɯuodbɹsʇnʌʍxʎz")
SMALL_CAPITALS = str.maketrans("abcdefghijklmnopqrstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢ")
NATO = (
    "alfa bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec romeo sierra tango "
    "uniform victor whiskey xray yankee zulu"
).split()


def _quoted_printable(value: str) -> str:
    return "".join(char if char.isascii() and char not in "=@" else "".join(f"={b:02X}" for b in char.encode()) for char in value)


def _words(value: str) -> list[str]:
    return value.split() if " " in value else [value[: len(value) // 2], value[len(value) // 2 :]]


def _nato(value: str) -> str:
    spoken = (SMALL[int(c)] if c in "0123456789" else NATO[ord(c) - 97] if "a" <= c <= "z" else c for c in value.lower())
    return " ".join(" ".join(spoken).split())


MENDED: dict[str, Write] = {
    "quoted-printable, every byte": lambda s: "".join(f"={byte:02X}" for byte in s.encode()),
    "quoted-printable, soft line break": lambda s: (
        _quoted_printable(s[: len(s) // 2]) + "=\n" + _quoted_printable(s[len(s) // 2 :])
    ),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "base64 of UTF-16": lambda s: base64.b64encode(s.encode("utf-16-le")).decode(),
    "escapes of eight digits": lambda s: "".join(f"\\U{ord(char):08x}" for char in s),
    "escapes in braces": lambda s: "".join(f"\\u{{{ord(char):x}}}" for char in s),
    "octal escapes": lambda s: "".join(f"\\{byte:03o}" for byte in s.encode()),
    "character codes in decimal": lambda s: ", ".join(str(byte) for byte in s.encode()),
    "binary": lambda s: " ".join(f"{byte:08b}" for byte in s.encode()),
    "percent twice": lambda s: "".join(f"%25{byte:02X}" for byte in s.encode()),
    "token of three parts": lambda s: ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, {"sub": s}, {})
    ),
    "tags inside words": lambda s: f"<b>{s[:2]}</b><i>{s[2 : max(2, len(s) // 2)]}</i><wbr>{s[max(2, len(s) // 2) :]}",
    "superscripts": lambda s: s.translate(SUPERSCRIPT),
    "small capitals": lambda s: s.lower().translate(SMALL_CAPITALS),
    "LaTeX": lambda s: re.sub(r"([#$%&_])", r"\\\1", s).replace(",", "{,}").replace(" ", "~"),
    "string pieces joined": lambda s: '" + "'.join(s[start : start + 5] for start in range(0, len(s), 5)),
    "comment over lines": lambda s: "\n".join(f"# {word}" for word in _words(s)),
    "quoted mail over lines": lambda s: "\n".join(f"> > {word}" for word in _words(s)),
}
"""Writers that work on any value."""
LEFT: dict[str, Write] = {
    "full-width punctuation": lambda s: s.translate(WIDE_MARKS),
    "Markdown link target": lambda s: f"[the entry](https://files.office.example/find?q={s.replace(' ', '%20')}#top)",
    "CSV, doubled quotes": lambda s: f'7,"see ""{s}"", then file",open',
    "SQL text": lambda s: "INSERT INTO notes VALUES (7, 'it''s " + s.replace("'", "''") + "')",
    "folded YAML": lambda s: "note: >-\n" + textwrap.indent("\n".join(_words(s)), "    "),
    "soft hyphens": lambda s: "\u00ad".join(s[start : start + 3] for start in range(0, len(s), 3)),
    "isolates and right-to-left marks": lambda s: " ".join(f"\u2067\u200f{word}\u2069" for word in s.split()),
    "data URI": lambda s: f"data:text/plain;base64,{base64.b64encode(s.encode()).decode()}",
    "basic authorization": lambda s: f"Authorization: Basic {base64.b64encode(f'user:{s}'.encode()).decode()}",
    "hex in SQL": lambda s: f"X'{s.encode().hex().upper()}'",
    "hexdump": lambda s: "00000000: " + " ".join(s.encode().hex()[i : i + 4] for i in range(0, 2 * len(s.encode()), 4)),
    "base85": lambda s: base64.b85encode(s.encode()).decode(),
    "keycaps": lambda s: s.translate(KEYCAPS),
    "circled digits": lambda s: s.translate(CIRCLED),
    "leetspeak": lambda s: s.lower().translate(LEET),
    "upside down": lambda s: s.lower().translate(UPSIDE_DOWN)[::-1],
    "letters and digits in words": _nato,
    "cells of a row": lambda s: " | ".join(s),
}


def _mended(kind: str, value: str, language: str) -> Iterator[tuple[str, str]]:
    if kind == "email":
        yield "dot and at", value.replace(".", " dot ").replace("@", " at ").upper()
        yield "(at) and (dot)", value.replace("@", "(at)").replace(".", "(dot)")
        yield "at in Chinese", value.replace("@", "艾特").replace(".", "点")
        yield "=40", value.replace("@", "=40")
    elif kind == "phone":
        digits = re.sub(r"\D", "", value)
        yield "said with oh", " ".join("oh" if digit == "0" else SMALL[int(digit)] for digit in digits)
        yield "said with double", " ".join(_doubled(digits))
    elif kind == "birth_date":
        day = date.fromisoformat(value)
        yield "Roman month", f"{day.day}.{ROMAN[day.month - 1]}.{day.year}"
        yield "with weekday and apostrophe", f"{day:%A}, {MONTHS[day.month - 1][:3]} {day.day} '{day.year % 100:02d}"
        yield "time of day after it", f"{value}T00:00:00Z"
    elif kind in MONEY:
        whole, cents = parts(value)
        yield "in cents", f"{whole * 100 + cents} cents"
        yield "Indian groups", _indian(whole) + f".{cents:02d}"
        if whole >= 1000 and cents:
            yield "suffix with all digits", f"{whole / 1000 + cents / 100_000:.5f}".rstrip("0") + "k"
    elif kind == "name" and language == "en":
        yield "as in a passenger list", "/".join(reversed(value.upper().rsplit(" ", 1)))
        yield "in one word", value.title().replace(" ", "")


def _left(kind: str, value: str, language: str) -> Iterator[tuple[str, str]]:
    if kind == "email":
        local, _, domain = value.partition("@")
        yield "{at}", value.replace("@", "{at}")
        yield "as an object", json.dumps({"user": local, "host": domain})
        yield "spaces around marks", re.sub(r"([.@])", r" \1 ", value)
    elif kind == "phone":
        digits = re.sub(r"\D", "", value)
        yield "link", f"tel:{value.replace(' ', '-')};ext=2"
        yield "pairs", " ".join(digits[start : start + 2] for start in range(0, len(digits), 2))
        yield "said in pairs", " ".join(_said(digits[start : start + 2]) for start in range(0, len(digits), 2))
    elif kind == "birth_date":
        day = date.fromisoformat(value)
        yield "day of the year", f"{day.year}, day {day.timetuple().tm_yday}"
        yield "named parts", f"day {day.day}, month {day.month}, year {day.year}"
        yield "Chinese words, short year", f"{HAN[day.year // 10 % 10]}{HAN[day.year % 10]}年{day.month}月{day.day}号"
    elif kind in MONEY:
        whole, cents = parts(value)
        yield "scientific", f"{whole + cents / 100:.6e} dollars"
        yield (
            "dash for no cents" if not cents else "units and cents apart",
            (f"{whole:,}.-" if not cents else f"{whole:,} dollars and {cents} cents"),
        )
        yield "leading zeros", f"{whole:010d}.{cents:02d}"
        if whole >= 1000:
            said = f"{english(whole // 1000)} K {english(whole % 1000)} dollars"
            yield "said in hundreds", f"{said} and {below_hundred(cents)} cents"
    elif kind == "name" and language == "en":
        yield "initial in the middle", f"{value.split()[0]} Q. {value.split()[-1]}"
        yield "as an object", json.dumps({"given": value.split()[0], "family": value.split()[-1]})
    elif kind == "home_address" and language == "en":
        yield "town first", ", ".join(reversed(value.split(", ")))


def _doubled(digits: str) -> Iterator[str]:
    for run in re.findall(r"(\d)(\1)?", digits):
        yield f"double {SMALL[int(run[0])]}" if run[1] else SMALL[int(run[0])]


def _said(pair: str) -> str:
    return " ".join(SMALL[int(digit)] for digit in pair) if pair[0] == "0" or len(pair) < 2 else below_hundred(int(pair))


def _indian(whole: int) -> str:
    head, tail = str(whole)[:-3], str(whole)[-3:]
    return ",".join([*re.findall(r"\d{1,2}(?=(?:\d\d)*$)", head), tail]) if head else tail


def unlisted(kind: str, value: str, rng: random.Random, language: str) -> Iterator[tuple[str, Calls]]:
    """Yields (form, calls): "mended: base32" or "left: keycaps", where the form changes the value."""
    for half, writers, own in (("mended", MENDED, _mended), ("left", LEFT, _left)):
        for form, text in (*((form, write(value)) for form, write in writers.items()), *own(kind, value, language)):
            if text != value:
                yield f"{half}: {form}", ((sentence(text, rng, language),),)
