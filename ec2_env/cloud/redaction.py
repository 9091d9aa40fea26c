"""Redaction: replacing sensitive values by typed placeholders before a text is sent, and putting them back into what returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import ahocorasick_rs

from ec2_env.actions import clean
from ec2_env.cloud.detection import Found, detect
from ec2_env.cloud.folding import BLOCK, unblocked
from ec2_env.cloud.matching import matcher_for
from ec2_env.cloud.returning import ReturningValues, on_edges
from ec2_env.errors import ConfigurationError
from ec2_env.sensitive import KINDS, SensitiveUnit

TYPES: tuple[str, ...] = (*(kind.upper() for kind in KINDS), "FIRM", "LITERAL")
"""Types of placeholders. LITERAL stands for text that was already written like a placeholder."""

_LIKE_PLACEHOLDER = re.compile(
    rf"\[\s{{0,3}}({'|'.join(sorted(TYPES, key=len, reverse=True))})[\s_]{{0,3}}(\d{{3,9}})\s{{0,3}}\]", re.IGNORECASE | re.ASCII
)
MEMO_TEXTS = 500
"""Redacted texts that a session remembers; the transcript is sent again and again."""


class Redactor(Protocol):
    """Replaces values in one session. Stateful: a value keeps its placeholder as long as the session lasts."""

    def redact(self, text: str) -> str:
        """Returns `text` with the values that were detected replaced by placeholders such as [PHONE_001]."""
        ...

    def restore(self, text: str) -> str:
        """Returns `text` with the session's placeholders replaced by what they stand for; unknown ones stay."""
        ...

    def fork(self) -> Redactor:
        """Returns an independent copy of the session."""
        ...


class NoRedactor:
    """Sends everything as it is."""

    def redact(self, text: str) -> str:
        return text

    def restore(self, text: str) -> str:
        return text

    def fork(self) -> NoRedactor:
        return self


class _Session:
    """Placeholders of one session, in both directions."""

    __slots__ = ("counts", "memo", "placeholders", "values")

    def __init__(self) -> None:
        self.placeholders: dict[tuple[str, str], str] = {}
        self.values: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.memo: dict[str, str] = {}

    def fork(self) -> _Session:
        other = _Session()
        other.placeholders, other.values = dict(self.placeholders), dict(self.values)
        other.counts, other.memo = dict(self.counts), dict(self.memo)
        return other

    def placeholder(self, kind: str, value: str) -> str:
        known = self.placeholders.get((kind, value))
        if known is None:
            kind_type = kind.upper()
            number = self.counts[kind_type] = self.counts.get(kind_type, 0) + 1
            known = self.placeholders[kind, value] = f"[{kind_type}_{number:03d}]"
            self.values[known] = value
        return known

    def redact(self, text: str, found: Iterable[Found]) -> str:
        literal = (Found(*match.span(), "literal") for match in _LIKE_PLACEHOLDER.finditer(text)) if "[" in text else ()
        parts: list[str] = []
        last = 0
        for start, end, kind in _disjoint([*found, *literal]):
            parts += (text[last:start], self.placeholder(kind, text[start:end]))
            last = end
        parts.append(text[last:])
        redacted = "".join(parts)
        if len(self.memo) >= MEMO_TEXTS:
            self.memo.clear()
        self.memo[text] = redacted
        return redacted

    def forget(self, value: str) -> None:
        """Drops remembered texts that hold `value`: it was not known to be sensitive when they were redacted."""
        for text in [text for text in self.memo if value in text]:
            del self.memo[text]

    def restore(self, text: str) -> str:
        return _LIKE_PLACEHOLDER.sub(self._value, text) if "[" in text else text

    def _value(self, match: re.Match[str]) -> str:
        return self.values.get(f"[{match[1].upper()}_{match[2]}]", match[0])


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


class RuleRedactor:
    """What a careful deployment can do: patterns with checksums, and the workspace's own directory of people and firms.

    It knows no true values. It misses what has no pattern (health, contract terms, names outside the directory, encoded or
    spaced-out values) and hides some harmless numbers. What it has hidden once, it hides wherever it returns in the
    session, as it was written then.

    Args:
        directory: (kind, value) of known people, addresses and firms; kinds are those of `ec2_env.sensitive.KINDS`, or "firm".

    Raises:
        ConfigurationError: if a kind is unknown.
    """

    __slots__ = ("_automaton", "_directory", "_returning", "_session")

    def __init__(self, directory: Sequence[tuple[str, str]] = ()) -> None:
        for kind, value in directory:
            if kind.upper() not in TYPES:
                raise ConfigurationError(
                    f"directory entry {value!r} has the unknown kind {kind!r}; kinds are {', '.join(KINDS)}, firm"
                )
        self._directory = tuple(dict.fromkeys((kind, value.strip()) for kind, value in directory if value.strip()))
        self._automaton = _automaton(self._directory)
        self._session = _Session()
        self._returning = ReturningValues()

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._directory, self._session, self._returning)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._directory, self._session, self._returning = state
        self._automaton = _automaton(self._directory)

    def redact(self, text: str) -> str:
        """Returns `text` with detected values replaced, the longest first where they overlap."""
        known = self._session.memo.get(text)
        if known is not None:
            return known
        found = detect(text)
        for start, end, kind in found:
            if self._returning.add(text[start:end], kind):
                self._session.forget(text[start:end])
        return self._session.redact(text, [*found, *self._known(text), *self._returning.find(text)])

    def restore(self, text: str) -> str:
        """Returns `text` with the session's placeholders replaced by what they stand for; case and spaces do not matter."""
        return self._session.restore(text)

    def fork(self) -> RuleRedactor:
        """Returns an independent copy of the session."""
        other = RuleRedactor.__new__(RuleRedactor)
        other._directory, other._automaton, other._session = self._directory, self._automaton, self._session.fork()
        other._returning = self._returning.fork()
        return other

    def _known(self, text: str) -> list[Found]:
        plain = clean(text)  # as long as the text: each lone surrogate becomes one question mark
        lower = plain.lower()
        if len(lower) != len(plain):
            lower = plain
        return [
            Found(start, end, self._directory[index][0])
            for index, start, end in self._automaton.find_matches_as_indexes(lower)
            if on_edges(text, start, end)
        ]


def _automaton(directory: Sequence[tuple[str, str]]) -> ahocorasick_rs.AhoCorasick:
    return ahocorasick_rs.AhoCorasick(
        [clean(value).lower() for _, value in directory], matchkind=ahocorasick_rs.MatchKind.LeftmostLongest, store_patterns=False
    )


class OracleRedactor:
    """An upper bound: it knows the true values, and finds them in every form that the audit finds.

    Args:
        units: The sensitive units of the episode.
    """

    __slots__ = ("_matcher", "_session")

    def __init__(self, units: Sequence[SensitiveUnit]) -> None:
        self._matcher = matcher_for(units)
        self._session = _Session()

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._matcher.units, self._session)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        units, self._session = state
        self._matcher = matcher_for(units)

    def redact(self, text: str) -> str:
        """Returns `text` with every form of every unit replaced."""
        known = self._session.memo.get(text)
        if known is not None:
            return known
        found: list[Found] = []
        left = unblocked(text)
        while new := self._occurrences(left):  # what is taken out can make its neighbor stand alone: look again
            found += new
            for start, end, _ in new:
                left = left[:start] + BLOCK * (end - start) + left[end:]
        return self._session.redact(text, found)

    def _occurrences(self, text: str) -> list[Found]:
        found = []
        for hit in self._matcher.occurrences(text):
            start, end = hit.span
            if start and text[start - 1] in "+$€£¥\uffe5(":
                start -= 1
            found.append(Found(start, end, self._matcher.units[hit.unit].kind))
        return found

    def restore(self, text: str) -> str:
        """Returns `text` with the session's placeholders replaced by what they stand for; case and spaces do not matter."""
        return self._session.restore(text)

    def fork(self) -> OracleRedactor:
        """Returns an independent copy of the session."""
        other = OracleRedactor.__new__(OracleRedactor)
        other._matcher, other._session = self._matcher, self._session.fork()
        return other
