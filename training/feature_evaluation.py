"""How policies on features do: at the usual weights, over a sweep of preferences as a front, and within budgets.

All policies play the same episodes of the test split, once for each preference; what an episode brings is weighed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.grid import strategy_of
from ec2_env.bench.pareto import hypervolume, pareto_front
from ec2_env.bench.suites import STRATEGIES
from ec2_env.envs import DecisionEnv
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Prepared, Strategy
from ec2_env.task import tasks
from ec2_env.training.evaluation import Score, by_strategy, difference, evaluate, half_width
from ec2_env.training.features_policy import FeaturePolicy, Preference
from ec2_env.training.lagrangian import Budget
from ec2_env.training.preferences import SWEEP, USUAL
from ec2_env.training.scorers import Scorer

FIXED = tuple(spec for spec in STRATEGIES if spec != "random")
"""Strategies with a rule of their own that nobody trained: what a learned front is held against."""
STEP_ROUTING = "step_routing"
SCORED = 2
"""Train instances of each task that an offline router is scored on."""
BOOTSTRAPS = 400


def chosen_keys(env: DecisionEnv, split: str, seeds: Sequence[int]) -> list[EpisodeKey]:
    """Returns every task of the env, each in its first language, once for each seed: as the suite `ec2-128` has them."""
    return [
        EpisodeKey(task=name, language=language, split=split, seed=seed, trial=0)
        for seed in seeds
        for name in env.names
        for language in tasks.get(name).languages
        if language == (env.language or tasks.get(name).languages[0])
    ]


def fixed_scores(settings: Mapping[str, Any], keys: Sequence[EpisodeKey]) -> dict[str, Score]:
    """Plays the episodes with every fixed strategy; offline routers are scored on the train split before."""
    found = {}
    for spec in FIXED:
        strategy = strategy_of(spec)
        if isinstance(strategy, Prepared):
            strategy = strategy.prepare(measured_gaps(settings))
        found[spec] = played(spec, strategy, settings, keys)
    return found


def measured_gaps(settings: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Returns how much more the cloud alone completes of each task than the edge alone, on the train split."""
    keys = chosen_keys(DecisionEnv(**settings), "train", range(SCORED))
    edge, cloud = (played(spec, strategy_of(spec), settings, keys).parts for spec in ("edge_only", "cloud_only"))
    gaps: dict[tuple[str, str], float] = {}
    for key, one, other in zip(keys, edge, cloud, strict=True):
        gaps[key.task, key.language] = gaps.get((key.task, key.language), 0.0) + (other.task - one.task) / SCORED
    return gaps


def played(name: str, strategy: Strategy, settings: Mapping[str, Any], keys: Sequence[EpisodeKey]) -> Score:
    """Plays episodes with a strategy, a hundred at a time."""
    parts = [
        evaluate(name, by_strategy(strategy), settings, keys[start : start + 100], edge=strategy.uses_edge)
        for start in range(0, len(keys), 100)
    ]
    return Score(
        name=name,
        returns=tuple(value for part in parts for value in part.returns),
        parts=tuple(one for part in parts for one in part.parts),
        decisions={number: sum(part.decisions[number] for part in parts) for number in parts[0].decisions},
    )


def swept(
    scorer: Scorer, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], sweep: Sequence[Preference] = SWEEP
) -> dict[Preference, Score]:
    """Plays the episodes once for each preference."""
    return {
        wanted: played(f"cost={wanted.cost:g},privacy={wanted.privacy:g}", told(scorer, wanted), settings, keys)
        for wanted in sweep
    }


def told(scorer: Scorer, wanted: Preference) -> FeaturePolicy:
    """Returns a policy that follows one preference."""
    return FeaturePolicy(scorer=scorer, preference=wanted)


def points(scores: Sequence[Score]) -> NDArray[np.float64]:
    """Returns completion, 1 - cost and 1 - exposure of every episode, shape (scores, episodes, 3)."""
    return np.array([[(one.task, 1 - one.cost, 1 - one.exposure) for one in score.parts] for score in scores])


def volume(means: NDArray[np.float64]) -> float:
    """Returns the hypervolume of points over the origin, coordinates cut to 0 to 1."""
    inside = means.clip(0, 1).tolist()
    return hypervolume([inside[place] for place in pareto_front(inside)])


@dataclass(frozen=True, slots=True)
class Front:
    """The hypervolumes of two sets of policies on the same episodes.

    Attributes:
        learned: Of a policy swept over preferences.
        fixed: Of the fixed strategies.
        gain: learned / fixed - 1.
        low: Lower end of the gain's 95% interval (bootstrap over episodes).
        high: Upper end.
    """

    learned: float
    fixed: float
    gain: float
    low: float
    high: float


def front(mine: Sequence[Score], fixed: Sequence[Score], seed: int = 0) -> Front:
    """Compares hypervolumes; both sets lose the same episodes in a bootstrap draw."""
    ours, theirs = points(mine), points(fixed)
    generator = np.random.default_rng(seed)
    episodes = ours.shape[1]
    gains = []
    for _ in range(BOOTSTRAPS):
        drawn = generator.integers(episodes, size=episodes)
        gains.append(_gain(volume(ours[:, drawn].mean(axis=1)), volume(theirs[:, drawn].mean(axis=1))))
    one, other = volume(ours.mean(axis=1)), volume(theirs.mean(axis=1))
    low, high = np.quantile(gains, (0.025, 0.975))
    return Front(one, other, _gain(one, other), float(low), float(high))


def _gain(one: float, other: float) -> float:
    """Returns by what share a volume is larger; 0 where the other is nothing."""
    return one / other - 1 if other > 0 else 0.0


def row(name: str, score: Score, mine: Score | None = None) -> str:
    """Returns a line of a table: return at the usual weights, completion, cost, exposure; with `mine`, its lead over the row."""
    parts = " | ".join(f"{fmean(getattr(one, term) for one in score.parts):.3f}" for term in ("task", "cost", "exposure"))
    lead = ""
    if mine is not None and mine is not score:
        gap, width = difference(mine, score)
        lead = f"{gap:+.3f} ± {width:.3f}"
    return f"| {name} | {score.mean:.3f} ± {half_width(score.returns):.3f} | {lead} | {parts} |"


def table(name: str, usual: Score, fixed: Mapping[str, Score]) -> str:
    """Returns the policy among the fixed strategies, at the usual weights, best first."""
    rows = sorted([(name, usual), *fixed.items()], key=lambda pair: -pair[1].mean)
    head = f"| policy | return, mean ± 95% CI | {name} minus it, paired | task | cost | exposure |\n|---|---|---|---|---|---|"
    return "\n".join([head, *(row(title, score, usual) for title, score in rows)])


def sweep_table(scores: Mapping[Preference, Score]) -> str:
    """Returns where a policy stands under each preference, and whether that is on its front."""
    means = points(list(scores.values())).mean(axis=1)
    on = pareto_front(means.tolist())
    lines = ["| cost weight | privacy weight | task | cost | exposure | on the front |", "|---|---|---|---|---|---|"]
    for place, (wanted, mean) in enumerate(zip(scores, means, strict=True)):
        mark = "yes" if place in on else ""
        lines.append(f"| {wanted.cost:g} | {wanted.privacy:g} | {mean[0]:.3f} | {1 - mean[1]:.3f} | {1 - mean[2]:.3f} | {mark} |")
    return "\n".join(lines)


def verdicts(scores: Mapping[Preference, Score], fixed: Mapping[str, Score]) -> dict[str, Any]:
    """Returns the figures that the targets are about."""
    usual = scores[USUAL]
    over = {spec: difference(usual, fixed[spec]) for spec in (STEP_ROUTING, best_fixed(fixed))}
    at = front(list(scores.values()), list(fixed.values()))
    return {
        "return": usual.mean,
        "over": {spec: {"mean": gap, "half_width": width} for spec, (gap, width) in over.items()},
        "hypervolume": {"learned": at.learned, "fixed": at.fixed, "gain": at.gain, "low": at.low, "high": at.high},
    }


def best_fixed(fixed: Mapping[str, Score]) -> str:
    """Returns the fixed strategy of the highest return on these episodes."""
    return max(fixed, key=lambda spec: fixed[spec].mean)


def budgeted(budget: Budget, score: Score, weighed: Score, seed: int = 0) -> dict[str, Any]:
    """Returns how a policy trained to a budget keeps it, beside one with weighted rewards at the usual weights."""
    found = {}
    for name, one in (("to the budget", score), ("weighted rewards", weighed)):
        means = {term: fmean(getattr(part, term) for part in one.parts) for term in ("task", "cost", "exposure")}
        found[name] = {**means, "batches_within": budget.kept(one.parts, seed=seed)}
    return found
