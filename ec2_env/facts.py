"""Comparing facts with texts and with one another, without regard to wording, case or width."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from datetime import date

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
KINDS = {
    "date": re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)"),
    "time": re.compile(r"(?<!\d)\d{1,2}:\d\d(?!\d)"),
    "money": re.compile(r"[$\u00a5\u20ac] ?\d[\d,]*(?:\.\d+)?|\d[\d,]*\.\d+|\d[\d,]*(?= ?\u5143)"),
}
"""Values that can be listed in a text in the hope that one of them is right: dates, times of day, amounts of money."""


def stated(text: str, states: Sequence[object], avoids: Sequence[object] = ()) -> float:
    """Returns the share of facts that a text holds, or 0 if it holds one of the look-alikes to avoid.

    Facts are found on token boundaries, numbers by value: 1,200.50 is 1200.5, and is not in 11200.50. A look-alike that a fact
    itself holds (two draws may give the same amount) is no look-alike.
    """
    wanted = "\n".join(map(str, states))
    if any(holds(text, fact) and not holds(wanted, fact) for fact in avoids):
        return 0.0
    return sum(holds(text, fact) for fact in states) / len(states) if states else 1.0


def holds(text: str, fact: object) -> bool:
    """Says whether a text holds one fact on token boundaries."""
    number = as_number(fact)
    folded = unicodedata.normalize("NFKC", text)
    if number is not None:
        return any(as_number(match) == number for match in _NUMBER.findall(folded))
    wanted = folding(str(fact))
    start = 0
    haystack = folding(text)
    while (found := haystack.find(wanted, start)) >= 0:
        end = found + len(wanted)
        if not (_joined(haystack, found) or _joined(haystack, end)):
            return True
        start = found + 1
    return False


def strangers(text: str, kinds: Collection[str], known: Sequence[object]) -> list[str]:
    """Returns the values of some kinds that a text holds beside the known ones."""
    folded = unicodedata.normalize("NFKC", text)
    texts = {folding(str(fact)).zfill(5) for fact in known}
    numbers = {as_number(fact) for fact in known}
    found = []
    for kind in kinds:
        for match in KINDS[kind].findall(folded):
            right = as_number(match) in numbers if kind == "money" else match.zfill(5) in texts
            found += [] if right else [match]
    return found


def labeled(text: str, label: str) -> list[str]:
    """Returns what stands after a label and a colon on the lines that begin with it; list marks and asterisks do not count."""
    pattern = re.compile(rf"[\W\d_]*{re.escape(folding(label))}[\s*]*:(.*)")
    lines = (pattern.fullmatch(folding(line)) for line in text.splitlines())
    return [found[1].strip(" *.;,\u3002") for found in lines if found]


def _joined(text: str, position: int) -> bool:
    """Says whether a token of ASCII letters or digits runs across a position."""
    if position <= 0 or position >= len(text):
        return False
    left, right = text[position - 1], text[position]
    return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()


def same(given: object, expected: object) -> bool:
    """Compares two facts in canonical form. Booleans equal only booleans."""
    return canonical(given) == canonical(expected)


def canonical(value: object) -> object:
    """Returns a fact in the form in which facts are compared: numbers by value to the cent, text without case, width or edges."""
    if isinstance(value, bool) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, date):
        return value.isoformat()
    number = as_number(value)
    if number is not None:
        return number
    if isinstance(value, list | tuple):
        return tuple(canonical(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((str(key), str(canonical(item))) for key, item in value.items()))
    return folding(str(value))


def as_number(value: object) -> float | None:
    """Returns a number, or a text that is nothing but a number with an optional currency sign, rounded to the cent; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return round(float(value), 2) if abs(value) < 1e15 else None
    if not isinstance(value, str) or len(value) > 40:
        return None
    text = unicodedata.normalize("NFKC", value).strip().strip("$¥€元").removesuffix("USD").strip().replace(",", "")
    return round(float(text), 2) if re.fullmatch(r"[-+]?\d+(\.\d+)?", text, re.ASCII) and len(text) < 16 else None


def folding(text: str) -> str:
    """Returns text without case, width and repeated spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def squeezed(text: str) -> str:
    """Returns only the letters and digits of a text, without case and width."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())
