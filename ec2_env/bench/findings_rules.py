"""How a finding is tested: hypotheses stated before anything is played, and one rule that decides them.

A hypothesis names a statistic, the value that it must exceed, and why that value. It is *reproduced* if the 95% interval of the
statistic lies above the value, *contradicted* if it lies below, and *not reproduced* if it includes the value. Intervals come
from a bootstrap over tasks, the same tasks for all strategies and models, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.statistics import DRAWS, SEED
from ec2_env.reward import RewardWeights

Array = NDArray[np.float64]
Key = tuple[str, str | None]
"""Strategy, and specification of its edge model; None if it has none."""
COMPLETION, COST, PRIVACY, EXPOSURE, CALLS = range(5)
"""Places of the figures of `means`. Cost: 1 is what cloud-only costs. Privacy: share of what was seen that did not cross, over
episodes with sensitive values. Exposure: share of all sensitive values that crossed, over all episodes, as in the return."""
REPRODUCED, CONTRADICTED, OPEN = "reproduced", "contradicted", "not reproduced"
ROUNDING = 1e-9
"""Less than this is no difference."""
Verdict = Literal["reproduced", "contradicted", "not reproduced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One part of a finding.

    Attributes:
        name: Such as "1.2".
        text: What is claimed.
        statistic: What is measured, in words; more speaks for the claim.
        above: What it must exceed.
        peaked: Whether the statistic takes the best or the spread of several means. Noise makes those larger, so the bootstrap's
            estimate of that bias is taken off, once from the estimate and twice from the draws, which are biased once more.
        counts: Whether it decides the finding, or is only a check of how far it holds.
    """

    name: str
    text: str
    statistic: str
    above: float = 0.0
    peaked: bool = False
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A hypothesis with what was found.

    Attributes:
        estimate: The statistic over all tasks.
        low: End of its 95% interval.
        high: The other end.
    """

    hypothesis: Hypothesis
    estimate: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """What the rule says."""
        if self.low > self.hypothesis.above + ROUNDING:
            return "reproduced"
        return "contradicted" if self.high < self.hypothesis.above - ROUNDING else "not reproduced"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table that is shown beside the verdicts and decides nothing."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A published finding with its hypotheses, tested.

    Attributes:
        number: 1 to 4.
        claim: As published.
        setup: What was played to test it.
    """

    number: int
    claim: str
    setup: str
    tested: Sequence[Tested]
    exhibits: Sequence[Exhibit]

    @property
    def verdict(self) -> str:
        """What the hypotheses that count come to together, in words."""
        found = [one.verdict for one in self.tested if one.hypothesis.counts]
        held, against = found.count("reproduced"), found.count("contradicted")
        if held == len(found):
            return f"reproduced ({held} of {held} hypotheses)"
        tail = f"; {against} contradicted" if against else ""
        if held:
            return f"reproduced in part ({held} of {len(found)} hypotheses{tail})"
        return f"{CONTRADICTED if against == len(found) else OPEN} (0 of {len(found)} hypotheses{tail})"


def decided(hypothesis: Hypothesis, values: Array) -> Tested:
    """Returns a hypothesis with estimate and interval.

    Args:
        hypothesis: What was stated.
        values: The statistic over all tasks, and then over each draw of tasks, shape (1 + draws,).
    """
    low, high = np.percentile(values[1:], [2.5, 97.5])
    bias = float(values[1:].mean() - values[0]) if hypothesis.peaked else 0.0
    return Tested(hypothesis=hypothesis, estimate=float(values[0]) - bias, low=float(low) - 2 * bias, high=float(high) - 2 * bias)


def means(records: Iterable[EpisodeRecord], tasks: Sequence[str], draws: int = DRAWS) -> dict[Key, Array]:
    """Returns the mean figures of every strategy and edge model, over all tasks and over each draw of them.

    Two calls with the same tasks draw the same of them, so that their results can be compared draw by draw.

    Args:
        records: Episodes; those of other tasks and those that ended in an infrastructure error are left out.
        tasks: Names of tasks, sorted.
        draws: Size of the bootstrap.

    Returns:
        By strategy and edge, shape (1 + draws, 5): see `COMPLETION` and the places after it.
    """
    place = {task: number for number, task in enumerate(tasks)}
    sums: dict[Key, Array] = {}
    for record in records:
        if record.task not in place or record.result["status"] == "error":
            continue
        rows = sums.setdefault((record.strategy, record.edge), np.zeros((len(tasks), 7)))
        rows[place[record.task]] += _figures(record)
    picks = np.random.default_rng(SEED).multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), size=draws)
    weights = np.vstack([np.ones(len(tasks)), picks])
    return {key: _averaged(weights @ rows) for key, rows in sums.items()}


def _figures(record: EpisodeRecord) -> tuple[float, ...]:
    """Returns the figures of an episode, then 1, then 1 if it has sensitive values."""
    annotated = bool(record.result["units"])
    privacy = record.result["privacy"] if annotated else 0.0
    reward = record.reward
    return (reward["task"], reward["cost"], privacy, reward["exposure"], record.result["cloud_calls"], 1.0, float(annotated))


def _averaged(sums: Array) -> Array:
    """Divides sums by their numbers of episodes; privacy without any sensitive value is 1."""
    counts = np.repeat(np.maximum(sums[:, 5:6], 1), 5, axis=1)
    annotated = sums[:, 6]
    counts[:, PRIVACY] = np.maximum(annotated, 1)
    found: Array = sums[:, :5] / counts
    found[annotated == 0, PRIVACY] = 1.0
    return found


def returns(figures: Array, weights: RewardWeights | None = None) -> Array:
    """Returns the mean return at given weights, the default ones if left out, shape (1 + draws,)."""
    used = weights or RewardWeights()
    found: Array = used.task * figures[:, COMPLETION] - used.cost * figures[:, COST] - used.privacy * figures[:, EXPOSURE]
    return found


AXIS: Array = np.linspace(0, 1, 11)
"""Weights of cost and of exposure in the sweep, completion weighing 1: from not at all to as much as completion."""


def sweep(figures: Array) -> Array:
    """Returns the mean return at every weight of cost and every weight of exposure in `AXIS`, shape (1 + draws, 11, 11)."""
    cost, exposure = figures[:, COST, None, None], figures[:, EXPOSURE, None, None]
    found: Array = figures[:, COMPLETION, None, None] - AXIS[None, :, None] * cost - AXIS[None, None, :] * exposure
    return found


def lead(found: Mapping[Key, Array], ours: Sequence[Key], others: Sequence[Key]) -> Array:
    """Returns by how much the best of some strategies leads the best of others at all weights, shape (1 + draws, 11, 11)."""
    best = [np.max([sweep(found[key]) for key in keys], axis=0) for keys in (ours, others)]
    difference: Array = best[0] - best[1]
    return difference


def spread(values: Sequence[Array]) -> Array:
    """Returns the highest less the lowest of several figures, draw by draw."""
    found: Array = np.max(values, axis=0) - np.min(values, axis=0)
    return found


def change(places: Sequence[float], values: Sequence[Array]) -> Array:
    """Returns by how much a figure changes from the first place to the last, along the line of least squares, draw by draw."""
    x = np.asarray(places, dtype=np.float64) - np.mean(places)
    slope: Array = np.tensordot(x, np.asarray(values), axes=1) / float(x @ x)
    return slope * (places[-1] - places[0])


def shown(values: Array, digits: int = 3) -> str:
    """Returns an estimate with its interval as text."""
    low, high = np.percentile(values[1:], [2.5, 97.5])
    return f"{values[0]:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
