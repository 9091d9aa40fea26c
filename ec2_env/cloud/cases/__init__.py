"""Generated leaks and near-misses, with the level that an audit should give each: what the audit is measured with.

Everything is drawn from a seed and made of invented values; nothing is copied. `benchmarks/audit.py` prints the measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ec2_env.cloud.cases import benign, values
from ec2_env.cloud.cases.partial import fragment, most
from ec2_env.cloud.cases.texts import sentence
from ec2_env.cloud.cases.unlisted import unlisted as unlisted_forms
from ec2_env.cloud.cases.writing import Calls, cut, framed, written
from ec2_env.sensitive import SensitiveUnit
from ec2_env.workspace.dice import Dice

LANGUAGES = ("en", "zh")
WORLDS = 4
"""Worlds a language: with four there are more than 5,000 leaks and as many near-misses."""


class Case(NamedTuple):
    """What is sent, and what it gives away.

    Attributes:
        units: The sensitive values of the world, one of each kind.
        target: Id of the unit that the case is about.
        language: Language of the world, "en" or "zh".
        form: How the value is written ("base64: twice"); what comes before the colon is its family.
        calls: The payloads sent, in order; each is a sequence of texts.
        level: Expected level of the target: 1.0, 0.7, 0.3, or 0.0 for a near-miss, which should give away nothing of any unit.
    """

    units: tuple[SensitiveUnit, ...]
    target: str
    language: str
    form: str
    calls: Calls
    level: float

    @property
    def unit(self) -> SensitiveUnit:
        """The unit that the case is about."""
        return next(unit for unit in self.units if unit.id == self.target)


def leaks(seed: int, worlds: int = WORLDS) -> Iterator[Case]:
    """Yields leaks: every kind of value in every form that applies to it, in both languages."""
    for units, unit, language, rng in _targets(seed, worlds):
        for form, calls, level in _leaks_of(unit, language, rng):
            yield Case(units, unit.id, language, form, calls, level)


def near_misses(seed: int, worlds: int = WORLDS) -> Iterator[Case]:
    """Yields texts that resemble a leak and are none."""
    for units, unit, language, rng in _targets(seed, worlds):
        for form, calls in benign.texts(unit, rng, language):
            yield Case(units, unit.id, language, form, calls, 0.0)


def unlisted(seed: int, worlds: int = WORLDS, *, other: bool = False) -> Iterator[Case]:
    """Yields leaks in forms that were written down to be measured, or, with `other`, other values in the same forms."""
    for units, unit, language, rng in _targets(seed, worlds):
        value = values.other(unit, rng, language) if other else unit.value
        for form, calls in unlisted_forms(unit.kind, value, rng, language):
            yield Case(units, unit.id, language, form, calls, 0.0 if other else 1.0)


def _targets(seed: int, worlds: int) -> Iterator[tuple[tuple[SensitiveUnit, ...], SensitiveUnit, str, Dice]]:
    for index in range(worlds):
        for language in LANGUAGES:
            units = values.world(seed, index, language)
            for unit in units:
                yield units, unit, language, Dice(f"cases/{seed}/{index}/{language}/{unit.kind}")


def _leaks_of(unit: SensitiveUnit, language: str, rng: Dice) -> Iterator[tuple[str, Calls, float]]:
    kind, value = unit.kind, unit.value
    for form, text in written(kind, value, language):
        yield form, ((sentence(text, rng, language),),), 1.0
    for form, text in framed(value):
        yield form, ((text,),), 1.0
    for form, calls in cut(kind, value, rng, language):
        yield form, calls, 1.0
    for form, text in most(kind, value, language):
        yield f"most: {form}", ((sentence(text, rng, language),),), 0.7
    for form, text in fragment(kind, value, rng, language):
        yield f"fragment: {form}", ((sentence(text, rng, language),),), 0.3
