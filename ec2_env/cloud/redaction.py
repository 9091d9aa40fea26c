"""Redaction: replacing sensitive values by typed placeholders before a text is sent, and putting them back into what returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import ahocorasick_rs

from ec2_env.actions import clean
from ec2_env.cloud.detection import detect
from ec2_env.cloud.finding import Found
from ec2_env.cloud.folding import BLOCK, unblocked
from ec2_env.cloud.matching import matcher_for
from ec2_env.cloud.placeholders import TYPES, Placeholders
from ec2_env.cloud.returning import ReturningValues, on_edges
from ec2_env.errors import ConfigurationError
from ec2_env.sensitive import KINDS, SensitiveUnit


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


@runtime_checkable
class Hiding(Protocol):
    """A redactor that can say how somebody writes who has read nothing but redacted texts."""

    def hide(self, text: str) -> str:
        """Returns `text` with the values that are known to the session replaced. Quick, and without an effect on later texts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a redactor has read and written on the edge since it was last asked.

    Attributes:
        tokens_in: Uncached input tokens.
        tokens_out: Output tokens.
        parameters: Weights used for a token.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    parameters: float = 0.0


@runtime_checkable
class Working(Protocol):
    """A redactor whose work is counted with the edge model's."""

    def take_work(self) -> Work:
        """Returns the work since the last call."""
        ...


class NoRedactor:
    """Sends everything as it is."""

    def redact(self, text: str) -> str:
        return text

    def restore(self, text: str) -> str:
        return text

    def fork(self) -> NoRedactor:
        return self


class Unusable:
    """Stands in for a redactor that could not be copied: nothing can be sent through it.

    Args:
        problem: Why, in words.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def redact(self, text: str) -> str:
        raise RuntimeError(self.problem)

    def restore(self, text: str) -> str:
        return text

    def fork(self) -> Unusable:
        return self


class RuleRedactor:
    """What a careful deployment can do: patterns with checksums, names of fields, cues, and the workspace's own directory.

    It knows no true values. What it has hidden once, it hides wherever it returns in the session.

    Args:
        directory: (kind, value) of known people, addresses and firms; kinds are those of `ec2_env.sensitive.KINDS`, or "firm".
        more: Finds what the rules do not; what both find is hidden. A function of a module, so that sessions can be pickled.

    Raises:
        ConfigurationError: if a kind is unknown.
    """

    __slots__ = ("_automaton", "_directory", "_more", "_names", "_returning", "_session")

    _session: Placeholders
    _returning: ReturningValues

    def __init__(self, directory: Sequence[tuple[str, str]] = (), more: Callable[[str], Sequence[Found]] | None = None) -> None:
        for kind, value in directory:
            if kind.upper() not in TYPES:
                raise ConfigurationError(
                    f"directory entry {value!r} has the unknown kind {kind!r}; kinds are {', '.join(KINDS)}, firm"
                )
        self.__setstate__((tuple(_spellings(directory)), more, Placeholders(), ReturningValues()))

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._directory, self._more, self._session, self._returning)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._directory, self._more, self._session, self._returning = state
        self._automaton = _automaton(self._directory)
        self._names = frozenset(value for kind, value in self._directory if kind == "name")

    def redact(self, text: str) -> str:
        """Returns `text` with detected values replaced, the longest first where they overlap."""
        known = self._session.memo.get(text)
        return self._session.redact(text, self._found(text)) if known is None else known

    def hide(self, text: str) -> str:
        """Returns `text` as a reader of the session would write it: an amount as the placeholder that an equal one has."""
        return self._session.hide(text, self._found(text))

    def restore(self, text: str) -> str:
        """Returns `text` with the session's placeholders replaced by what they stand for; case and spaces do not matter."""
        return self._session.restore(text)

    def fork(self) -> RuleRedactor:
        """Returns an independent copy of the session."""
        other = RuleRedactor.__new__(RuleRedactor)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other._session, other._returning = self._session.fork(), self._returning.fork()
        return other

    def _found(self, text: str) -> list[Found]:
        known = self._known(text)
        spans = {(start, end) for start, end, _ in known}  # the directory knows better what a value is
        detected = (*detect(text), *(self._more(text) if self._more is not None else ()))
        found = [one for one in detected if (one.start, one.end) not in spans]
        for start, end, kind in found:
            if self._returning.add(text[start:end], kind):
                self._session.memo.clear()  # what was redacted before may hold the value
        return [*found, *known, *self._returning.find(text)]

    def _known(self, text: str) -> list[Found]:
        plain = clean(text)  # as long as the text: each lone surrogate becomes one question mark
        lower = plain.lower()
        if len(lower) != len(plain):
            lower = plain
        found = [
            Found(start, end, self._directory[index][0])
            for index, start, end in self._automaton.find_matches_as_indexes(lower)
            if on_edges(text, start, end)
        ]
        if self._names:
            found += [
                Found(*match.span(), "name")
                for match in _MIDDLE_INITIAL.finditer(plain)
                if f"{match[1]} {match[2]}" in self._names
            ]
        return found


_MIDDLE_INITIAL = re.compile(r"\b([A-Z][A-Za-z'-]{1,20}) [A-Z]\.? ([A-Z][A-Za-z'-]{1,20})\b")


def _spellings(directory: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields the entries, each once, and a name of two words in the other order and with an initial as well."""
    entries = dict.fromkeys((kind, value.strip()) for kind, value in directory if value.strip())
    for kind, value in entries:
        yield kind, value
        first, space, last = value.partition(" ")
        if kind == "name" and space and " " not in last and len(first) > 1:
            yield from ((kind, f"{last}, {first}"), (kind, f"{last} {first}"), (kind, f"{first[0]}. {last}"))


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
        self._session = Placeholders()

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
