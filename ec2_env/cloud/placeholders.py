"""The placeholders of one redaction session, in both directions."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable

from ec2_env.cloud.finding import MONEY, Found
from ec2_env.cloud.numerals import main_number
from ec2_env.sensitive import KINDS

TYPES: tuple[str, ...] = (*(kind.upper() for kind in KINDS), "FIRM", "OTHER", "LITERAL")
"""Types of placeholders. OTHER is what an engine has no kind for, LITERAL text that was already written like a placeholder."""

_WRITTEN = rf"\[\s{{0,3}}({'|'.join(sorted(TYPES, key=len, reverse=True))})[\s_]{{0,3}}(\d{{3,9}})\s{{0,3}}\]"
_LIKE_PLACEHOLDER = re.compile(_WRITTEN, re.IGNORECASE | re.ASCII)
_RETURNED = re.compile(rf'("(?={_WRITTEN}"))?{_WRITTEN}(?(1)")', re.IGNORECASE | re.ASCII)
_JSON_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
MEMO_TEXTS = 500
"""Redacted texts that a session remembers; the transcript is sent again and again."""


class Placeholders:
    """Placeholders of one session.

    A number that is a JSON value becomes a JSON string, because a payload whose tool calls are no JSON is refused by many
    endpoints. Its placeholder has a number of its own, so that it can be told from the same digits between quotes.
    """

    __slots__ = ("_bare", "_counts", "_like", "_placeholders", "memo", "values")

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.memo: dict[str, str] = {}
        self._placeholders: dict[tuple[str, str, bool], str] = {}
        self._bare: set[str] = set()
        self._counts: dict[str, int] = {}
        self._like: dict[str, str] = {}

    def __getstate__(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            setattr(self, name, value)

    def fork(self) -> Placeholders:
        """Returns an independent copy."""
        other = Placeholders.__new__(Placeholders)
        other.__setstate__(tuple(part.copy() for part in self.__getstate__()))  # type: ignore[attr-defined]  # dicts and a set
        return other

    def placeholder(self, kind: str, value: str, bare: bool = False) -> str:
        """Returns the placeholder of a value, which is new if the value is."""
        known = self._placeholders.get((kind, value, bare))
        if known is None:
            kind_type = kind.upper()
            number = self._counts[kind_type] = self._counts.get(kind_type, 0) + 1
            known = self._placeholders[kind, value, bare] = f"[{kind_type}_{number:03d}]"
            self.values[known] = value
            if bare:
                self._bare.add(known)
            if kind in MONEY:
                self._like.setdefault(_number(value), known)
        return known

    def redact(self, text: str, found: Iterable[Found]) -> str:
        """Returns `text` with the ranges replaced, the longest first where they overlap, and remembers it."""
        redacted = self._replaced(text, found, new=True)
        if len(self.memo) >= MEMO_TEXTS:
            self.memo.clear()
        self.memo[text] = redacted
        return redacted

    def hide(self, text: str, found: Iterable[Found]) -> str:
        """Returns `text` with the ranges replaced as a reader of the session would, amounts by placeholders of equal ones."""
        return self._replaced(text, found, new=False)

    def _replaced(self, text: str, found: Iterable[Found], new: bool) -> str:
        literal = (Found(*match.span(), "literal") for match in _LIKE_PLACEHOLDER.finditer(text)) if "[" in text else ()
        ranges = _disjoint([*found, *literal])
        strings = _strings(text) if any(kind in MONEY for _, _, kind in ranges) else None
        parts: list[str] = []
        last = 0
        for index, (start, end, kind) in enumerate(ranges):
            value = text[start:end]
            alone = start > last and (index + 1 == len(ranges) or ranges[index + 1].start > end)  # so that quotes pair up
            bare = alone and strings is not None and kind in MONEY and _is_bare(text, start, end, strings)
            like = None if new or (kind, value, bare) in self._placeholders else self._like.get(_number(value))
            shown = like if like and kind in MONEY else self.placeholder(kind, value, bare)
            parts += (text[last:start], f'"{shown}"' if bare else shown)
            last = end
        parts.append(text[last:])
        return "".join(parts)

    def restore(self, text: str) -> str:
        """Returns `text` with placeholders replaced by what they stand for; case and spaces do not matter."""
        return _RETURNED.sub(self._value, text) if "[" in text else text

    def _value(self, match: re.Match[str]) -> str:
        quoted, _, _, kind, number = match.groups(default="")
        known = f"[{kind.upper()}_{number}]"
        if known not in self.values:
            return match[0]
        return self.values[known] if known in self._bare else f"{quoted}{self.values[known]}{quoted}"


def _number(value: str) -> str:
    number = main_number(value)
    return value if number is None else f"{'-' if value.lstrip()[:1] in ('-', '(') else ''}{number.normalize():f}"


def _strings(text: str) -> list[tuple[int, int]] | None:
    """Returns where the strings of a JSON text are, or None if it is none."""
    return [match.span() for match in _JSON_STRING.finditer(text)] if text.lstrip()[:1] in ("{", "[") else None


def _is_bare(text: str, start: int, end: int, strings: list[tuple[int, int]]) -> bool:
    """Says whether a range is a whole number in JSON, outside all strings."""
    index = bisect(strings, (start, 0)) - 1
    if not _JSON_NUMBER.fullmatch(text, start, end) or (index >= 0 and strings[index][1] > start):
        return False
    before, after = text[max(0, start - 20) : start].rstrip()[-1:], text[end : end + 20].lstrip()[:1]
    return before in (":", ",", "[") and after in (",", "}", "]")


def _disjoint(found: list[Found]) -> list[Found]:
    """Returns disjoint ranges that cover the same characters, in order. Joined ranges take the kind of the longest."""
    joined: list[Found] = []
    longest = 0
    for start, end, kind in sorted(set(found), key=lambda item: (item.start, -item.end, item.kind)):
        if joined and start < joined[-1].end:
            before = joined[-1]
            longest, kind = (end - start, kind) if end - start > longest else (longest, before.kind)
            joined[-1] = Found(before.start, max(before.end, end), kind)
        elif end > start:
            joined.append(Found(start, end, kind))
            longest = end - start
    return joined
