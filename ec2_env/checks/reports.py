"""Facts that had to be reported in `finish(data=...)`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ec2_env.facts import canonical, same
from ec2_env.task import Grading


@dataclass(frozen=True, slots=True)
class Reported:
    """One reported fact: `finish(data={key: value})`, compared in canonical form.

    A slot holds one value; a text that merely contains the right value among others does not earn it.
    """

    key: str
    value: object

    def __call__(self, state: Grading) -> float:
        return float(state.finish is not None and same(state.finish.data.get(self.key), self.value))


@dataclass(frozen=True, slots=True)
class ReportedSet:
    """A reported list: earns (right - wrong) / expected, never below 0, so that listing everything earns nothing."""

    key: str
    values: Collection[object]

    def __call__(self, state: Grading) -> float:
        given = state.finish.data.get(self.key) if state.finish is not None else None
        if not isinstance(given, list) or len(given) > 1000:
            return 0.0
        expected = {canonical(value) for value in self.values}
        found = {canonical(value) for value in given}
        repeats = len(given) - len(found)
        if not expected:
            return float(not given)
        return max(0.0, (len(found & expected) - len(found - expected) - repeats) / len(expected))


@dataclass(frozen=True, slots=True)
class ReportedMap:
    """A reported mapping from names to values: earns (right - wrong) / expected, never below 0."""

    key: str
    values: Mapping[str, object]

    def __call__(self, state: Grading) -> float:
        given = state.finish.data.get(self.key) if state.finish is not None else None
        if not isinstance(given, dict) or len(given) > 1000:
            return 0.0
        expected = {canonical(name): value for name, value in self.values.items()}
        if not expected:
            return float(not given)
        right = sum(1 for name, value in given.items() if canonical(name) in expected and same(value, expected[canonical(name)]))
        return max(0.0, (right - (len(given) - right)) / len(expected))
