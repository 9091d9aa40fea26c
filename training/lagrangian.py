"""Training to a budget: cost at most B and exposure at most E, by multipliers that rise while a budget is overdrawn.

The Lagrangian of "complete as much as possible within the budgets" is the usual return with the multipliers as weights of cost
and exposure (Altman, Constrained Markov Decision Processes, 1999). PPO maximizes it while dual ascent moves the multipliers (as
in PPO-Lagrangian, Ray et al. 2019). A policy that follows preferences maximizes it already, so there only they are sought.

A budget is to hold for the mean of a batch of episodes, and nearly always. So what is held against it is not the mean but the 95%
quantile of batch means, by the normal approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import numpy as np

from ec2_env.errors import ConfigurationError
from ec2_env.reward import Terms
from ec2_env.training.features_policy import Preference
from ec2_env.training.preferences import USUAL

QUANTILE = 1.645
"""Standard deviations above the mean that 95% of a normal distribution stay below."""
MOST = 5.0
"""Largest multiplier: a policy is told no more than that (`ec2_env.features`)."""
STRICTER = 1.3
"""Factor on the multipliers while a check says that a budget does not hold."""
CHECKS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a batch of episodes may use in the mean.

    Attributes:
        cost: In units of what doing a task cloud-only costs; None for no limit.
        exposure: Weighted share of the sensitive units that may cross, 0 to 1; None for no limit.
        batch: Episodes in a batch.
    """

    cost: float | None = None
    exposure: float | None = None
    batch: int = 32

    def __post_init__(self) -> None:
        for name in ("cost", "exposure"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e6:
                raise ConfigurationError(f"the budget of {name} is {value!r}, expected a number above 0")

    def overdrawn(self, parts: Sequence[Terms]) -> tuple[float, float]:
        """Returns by what share of the budgets (cost, exposure) 95% of batches may exceed them; negative if they hold.

        Args:
            parts: What episodes brought, at least two.
        """
        return self._share(self.cost, [one.cost for one in parts]), self._share(self.exposure, [one.exposure for one in parts])

    def _share(self, limit: float | None, used: Sequence[float]) -> float:
        if limit is None:
            return -math.inf
        return (fmean(used) + QUANTILE * stdev(used) / math.sqrt(self.batch)) / limit - 1

    def kept(self, parts: Sequence[Terms], draws: int = 2_000, seed: int = 0) -> float:
        """Returns the share of random batches of these episodes, each drawn without repetition, that stay within the budgets."""
        limits = np.array([math.inf if limit is None else limit for limit in (self.cost, self.exposure)])
        used = np.array([(one.cost, one.exposure) for one in parts])
        generator = np.random.default_rng(seed)
        size = min(self.batch, len(used))
        means = np.array([used[generator.permutation(len(used))[:size]].mean(axis=0) for _ in range(draws)])
        return float((means <= limits + 1e-12).all(axis=1).mean())


@dataclass(slots=True, kw_only=True)
class Multipliers:
    """The weights of cost and exposure, moved by dual ascent; a source of preferences for training.

    Attributes:
        budget: What has to hold.
        rate: Step of the ascent, in units of weight for a budget overdrawn by its whole size.
        spread: How widely training episodes scatter around the multipliers, as a standard deviation of their logarithm, so that a
            policy learns what the multipliers do.
        values: The multipliers now.
    """

    budget: Budget
    rate: float = 0.1
    spread: float = 0.3
    values: Preference = USUAL
    _found: list[Terms] = field(default_factory=list)

    def draw(self, generator: np.random.Generator) -> Preference:
        """Returns the multipliers, scattered."""
        factors = np.exp(self.spread * generator.standard_normal(2))
        return Preference(self.values.cost * float(factors[0]), self.values.privacy * float(factors[1]))

    def ended(self, total: Terms) -> None:
        """Takes note of an episode."""
        self._found.append(total)

    def state(self) -> Any:
        """Returns the multipliers, and the episodes since they moved last."""
        return {"values": list(self.values), "found": [[one.task, one.cost, one.exposure] for one in self._found]}

    def restore(self, state: Any) -> None:
        """Goes on from what `state` returned."""
        self.values = Preference(*state["values"])
        self._found[:] = [Terms(*one) for one in state["found"]]

    def ascend(self) -> None:
        """Moves the multipliers by the episodes since the last time; two episodes are the least."""
        if len(self._found) < 2:
            return
        self.values = moved(self.values, self.budget.overdrawn(self._found), self.rate)
        self._found.clear()


def moved(values: Preference, overdrawn: tuple[float, float], rate: float) -> Preference:
    """Returns multipliers after one step of dual ascent; they stay between 0 and `MOST`."""
    return Preference(
        *(min(MOST, max(0.0, value + rate * max(-1.0, min(1.0, over)))) for value, over in zip(values, overdrawn, strict=True))
    )


def settle(play: Callable[[Preference, int], Sequence[Terms]], budget: Budget, start: Preference, rounds: int = 24) -> Preference:
    """Returns multipliers under which a policy that follows preferences keeps a budget on train episodes.

    Dual ascent with falling steps; the mean of its second half is then checked on fresh episodes, and raised until it passes.

    Args:
        play: Returns what episodes bring when the policy is told a preference. The number says which episodes: the same number,
            the same episodes.
        budget: What has to hold.
        start: Where the ascent begins.
        rounds: Steps of the ascent.
    """
    values, passed = start, []
    for number in range(rounds):
        values = moved(values, budget.overdrawn(play(values, number)), 0.5 / math.sqrt(number + 1))
        passed.append(values)
    late = passed[rounds // 2 :]
    values = Preference(fmean(one.cost for one in late), fmean(one.privacy for one in late))
    checked = range(rounds, rounds + 4)
    for _ in range(CHECKS):
        over = budget.overdrawn([one for number in checked for one in play(values, number)])
        if max(over) <= 0:
            break
        values = Preference(
            *(min(MOST, max(value, 0.02) * STRICTER) if one > 0 else value for value, one in zip(values, over, strict=True))
        )
    return values
