"""Rewards: pure functions of events and of the episode's sensitive units, in scalar, vector and constraint form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.sensitive import SensitiveUnit
from ec2_env.trace import CloudCall, Ended, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardWeights:
    """How much each axis counts in the scalar reward.

    Attributes:
        task: Reward for a completion of 1.
        cost: Penalty for spending what doing the task cloud-only costs.
        privacy: Penalty for exposing every sensitive unit of the episode in full.
    """

    task: float = 1.0
    cost: float = 0.15
    privacy: float = 0.25

    def __post_init__(self) -> None:
        for name in ("task", "cost", "privacy"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
                raise ConfigurationError(f"reward weight {name} is {value!r}, expected a number of at least 0")


def reward_weights(values: Mapping[str, Any]) -> RewardWeights:
    """Makes weights of keyword arguments.

    Raises:
        ConfigurationError: if a key is unknown or a value impossible.
    """
    known = [field.name for field in fields(RewardWeights)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigurationError(f"unknown reward weight {unknown[0]!r}; the weights are {', '.join(known)}")
    return RewardWeights(**values)


@dataclass(frozen=True, slots=True)
class Terms:
    """What one step brought, unweighted. Cost and exposure are losses and at least 0.

    Attributes:
        task: Completion gained; the episode's completion on its last step, 0 before.
        cost: US dollars spent, as a share of what doing the task cloud-only costs.
        exposure: Weighted share of the episode's sensitive units that newly crossed.
    """

    task: float
    cost: float
    exposure: float

    def scalar(self, weights: RewardWeights) -> float:
        """Returns weights.task * task - weights.cost * cost - weights.privacy * exposure."""
        return weights.task * self.task - weights.cost * self.cost - weights.privacy * self.exposure

    def vector(self) -> tuple[float, float, float]:
        """Returns (task, -cost, -exposure), MO-Gymnasium's convention: more is better in each."""
        return (self.task, -self.cost, -self.exposure)


def terms(events: Sequence[Event], known: dict[str, float], units: Sequence[SensitiveUnit], reference_usd: float) -> Terms:
    """Returns the terms of one step.

    Args:
        events: What happened in the step.
        known: Exposure level of each unit before the step; brought up to date in place.
        units: The episode's sensitive units.
        reference_usd: Price of doing the task cloud-only, above 0.
    """
    task, usd, exposure = 0.0, Decimal(0), 0.0
    total = sum(unit.weight for unit in units)
    for event in events:
        if isinstance(event, CloudCall):
            usd += Decimal(event.usd)
            for found in event.exposures:
                gained = found.level - known.get(found.unit, 0.0)
                if gained > 0:
                    known[found.unit] = found.level
                    exposure += gained * next(unit.weight for unit in units if unit.id == found.unit)
        elif isinstance(event, Ended):
            task = event.completion
    return Terms(task, float(usd) / reference_usd, exposure / total if total else 0.0)


def privacy(units: Iterable[SensitiveUnit], levels: Mapping[str, float], touched: Iterable[str]) -> float:
    """Returns the weighted share of the touched units that did not reach the cloud, 0 to 1; 1.0 if none was touched.

    1 - sum(weight * level) / sum(weight) over the units that the episode touched: EC2-Bench's privacy score, with levels from the
    audit instead of a judge, and with every touched unit in the denominator.
    """
    seen = set(touched) | set(levels)
    weights = {unit.id: unit.weight for unit in units if unit.id in seen}
    whole = sum(weights.values())
    return 1 - sum(weights[u] * levels.get(u, 0.0) for u in weights) / whole if whole else 1.0
