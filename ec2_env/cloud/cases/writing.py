"""Forms that give a value away in full: what anyone undoes in one step."""

from __future__ import annotations

import base64
import codecs
import html
import json
import random
import re
import urllib.parse
from collections.abc import Callable, Iterator

from ec2_env.cloud.cases.numbers import amounts_in_digits, amounts_in_words, dates, digits_in_words, parts
from ec2_env.cloud.cases.texts import FRAMES

MONEY = ("salary", "amount", "price")
NUMBERED = ("phone", "national_id", "iban", "card_number")
CYRILLIC = str.maketrans("aeopcxyABEHKMOPCTX", "аеорсхуАВЕНКМОРСТХ")
GREEK = str.maketrans("oavABEHIKMNOPTXYZ", "οανΑΒΕΗΙΚΜΝΟΡΤΧΥΖ")
BOLD = {
    **{ord("a") + i: 0x1D41A + i for i in range(26)},
    **{ord("A") + i: 0x1D400 + i for i in range(26)},
    **{ord("0") + i: 0x1D7CE + i for i in range(10)},
}
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
Writer = Callable[[str], str]
Calls = tuple[tuple[str, ...], ...]
"""The texts of one payload after the other."""


def _halves(value: str) -> str:
    return value[: len(value) // 2] + "\n    " + value[len(value) // 2 :]


WRITERS: dict[str, Writer] = {
    "verbatim": str,
    "case: upper": str.upper,
    "case: lower": str.lower,
    "case: swapped": str.swapcase,
    "width: full": lambda value: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in value),
    "width: bold letters": lambda value: value.translate(BOLD),
    "width: Arabic digits": lambda value: value.translate(ARABIC),
    "spacing: spaced out": " ".join,
    "spacing: broken line": _halves,
    "spacing: tabs and no-break spaces": lambda value: value.replace(" ", "\u00a0\t"),
    "separators: dashes": lambda value: value.replace(" ", "-"),
    "separators: underscores": lambda value: value.replace(" ", "_").replace("-", "_"),
    "separators: dots in between": ".".join,
    "separators: none": lambda value: re.sub(r"[ -]", "", value),
    "look-alikes: Cyrillic": lambda value: value.translate(CYRILLIC),
    "look-alikes: Greek": lambda value: value.translate(GREEK),
    "look-alikes: combining marks": lambda value: re.sub(r"([aeiou])", "\\1\u0301", value),
    "zero width: spaces": "\u200b".join,
    "zero width: joiners and soft hyphens": lambda value: "\u2060\u00ad".join(value),
    "zero width: direction marks": lambda value: f"\u202a{value[:3]}\u200e{value[3:]}\u202c",
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64: inside more": lambda value: base64.b64encode(f"a note: {value}; end".encode()).decode(),
    "base64: URL alphabet, no padding": lambda value: base64.urlsafe_b64encode(f"{value} ???>>>".encode()).decode().rstrip("="),
    "base64: twice": lambda value: base64.b64encode(base64.b64encode(value.encode())).decode(),
    "hex": lambda value: value.encode().hex(),
    "hex: upper, spaced": lambda value: value.encode().hex(" ").upper(),
    "hex: bytes": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "hex: list": lambda value: ", ".join(f"0x{byte:02x}" for byte in value.encode()),
    "URL": lambda value: urllib.parse.quote(value, safe=""),
    "URL: plus": urllib.parse.quote_plus,
    "URL: every byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "HTML: named": lambda value: html.escape(value).replace(" ", "&nbsp;"),
    "HTML: decimal": lambda value: "".join(f"&#{ord(char)};" for char in value),
    "HTML: hexadecimal": lambda value: "".join(f"&#x{ord(char):X};" for char in value),
    "JSON: escapes": lambda value: "".join(f"\\u{ord(char):04x}" for char in value),
    "JSON: text in text": lambda value: json.dumps(json.dumps({"note": f'"{value}"\n'})),
    "reversed": lambda value: value[::-1],
    "ROT13": lambda value: codecs.encode(value, "rot13"),
}
UNCHANGED_COUNTS = ("verbatim",)
"""Other forms that leave a value as it is make no case of their own."""


def written(kind: str, value: str, language: str) -> Iterator[tuple[str, str]]:
    """Yields (form, the value in that form) for every form that applies to a value."""
    for form, write in WRITERS.items():
        if form == "ROT13" and sum(char.isascii() and char.isalpha() for char in value) < 4:
            continue
        text = write(value)
        if text != value or form in UNCHANGED_COUNTS:
            yield form, text
    yield from _formats(kind, value, language)


def _formats(kind: str, value: str, language: str) -> Iterator[tuple[str, str]]:
    """Yields the forms that belong to one kind of value."""
    if kind in MONEY:
        yield from amounts_in_digits(value, language).items()
        if parts(value)[0] >= 1000:
            yield from zip(("words: amount", "words: amount, formal"), amounts_in_words(value, language), strict=True)
    elif kind in NUMBERED:
        yield "words: digit by digit", digits_in_words(value, language)
        if kind == "phone":
            yield from _phones(value)
    elif kind == "birth_date":
        yield from dates(value).items()
    elif kind == "name" and language == "en":
        given, _, family = value.rpartition(" ")
        yield "order: family name first", f"{family}, {given}"
        yield "order: list", f"{family.upper()} {given}"
    elif kind == "email":
        yield "spelled: at and dot", value.replace("@", " [at] ").replace(".", " [dot] ")
        yield "spelled: words", value.replace("@", " at ").replace(".", " dot ")
        yield "spelled: link", f"<mailto:{value}>"


def _phones(value: str) -> Iterator[tuple[str, str]]:
    digits = re.sub(r"\D", "", value)
    national = digits[1:] if value.startswith("+1") else digits
    yield "phone: national", f"({national[:3]}) {national[3:6]}-{national[6:]}"
    yield "phone: dots", ".".join((national[:3], national[3:7], national[7:]))
    yield "phone: with calling code", f"00{digits}" if value.startswith("+") else f"+86 {national}"


def framed(value: str) -> Iterator[tuple[str, str]]:
    """Yields (form, text) for every place other than a sentence in which a value stands."""
    for form, frame in FRAMES.items():
        yield f"in a {form}", frame(value)


def cut(kind: str, value: str, rng: random.Random, language: str) -> Iterator[tuple[str, Calls]]:
    """Yields (form, calls) for the ways to send a value in two pieces."""
    size = len(value)
    at = size // 2 if size < 6 else rng.randrange(-(-2 * size // 5), 3 * size // 5 + 1)
    left, right = value[:at], value[at:]
    yield "split: over two calls, where they meet", ((f"It begins with {left}",), (f"{right} is the end of it.",))
    yield "split: over two texts of a call", ((f"It begins with {left}", f"{right} is the end of it."),)
    if size < 12 or kind in (*MONEY, "name", "email", "birth_date", "code_name", "national_id"):
        return
    first, second = (
        ("前一部分是{}，请记下。", "后一部分是{}，就这些。")
        if language == "zh"
        else ("The first part is {} so far.", "Then comes {} at the end.")
    )
    yield "split: over sentences", ((f"{first} {second}".replace("{}", left, 1).replace("{}", right, 1),),)
    yield "split: over two calls, in sentences", ((first.replace("{}", left),), ("-",), (second.replace("{}", right),))
    arguments = json.dumps({"name": "save", "arguments": {"part_1": left, "part_2": right}}, ensure_ascii=False)
    yield "split: over tool arguments", ((arguments,),)
