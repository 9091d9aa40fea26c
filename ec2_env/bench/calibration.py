"""Fits simulated models to single models that worked alone, and to nothing else: two parameters to two figures each.

How much a model completes gives its ability; how much of that it completes in every one of three runs (Pass^3) gives its
steadiness, the share of its luck that is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

from ec2_env.bench.statistics import PASS_K, pass_hat_k
from ec2_env.bench.suites import DEFAULT_SUITE, load_suite
from ec2_env.envs import DecisionEnv
from ec2_env.models import profile as profiles
from ec2_env.models.profile import Profile, load_profile, read_toml
from ec2_env.models.sim import SimulatedModel
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import PASS_THRESHOLD
from ec2_env.strategy import Always, Decision

ANCHORS = Path(profiles.__file__).parent / "anchors.toml"
ABILITIES = (-2.0, 6.0)
"""Bracket of the search, in logits."""
HALVINGS = 10
"""Halvings of that bracket; the ability is then exact to 0.008 logits."""
STEADINESSES = tuple(step / 20 for step in range(20))
"""Values among which the steadiness is looked for. Pass^3 of 128 tasks tells it no finer."""
CORRECTIONS = 2
"""Searches that are repeated for a cloud model."""
NEAR = 0.5
"""By so much the ability moves, at most, when the steadiness changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a model is fitted to.

    Attributes:
        completion: Its mean completion, 0 to 1.
        pass_hat_3: Share of tasks that it passes in all of three runs, 0 to 1; None leaves the steadiness as it is.
    """

    completion: float
    pass_hat_3: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What a profile comes to on the episodes of a fit, 0 to 1 each; `pass_hat_3` is 0 with fewer than three trials."""

    completion: float
    pass_hat_3: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One fitted model.

    Attributes:
        name: Profile name.
        ability: Fitted ability, in logits.
        steadiness: Fitted steadiness, 0 to below 1.
        target: What was to be reached.
        reached: What is reached on the same episodes.
        episodes: Number of episodes per evaluation.
    """

    name: str
    ability: float
    steadiness: float
    target: Target
    reached: Reached
    episodes: int


def anchors() -> dict[str, Target]:
    """Returns what was published of single models, by profile name."""
    read = read_toml(ANCHORS)
    passed: Mapping[str, float] = read.get("pass_hat_3", {})
    return {
        name: Target(completion=percent / 100, pass_hat_3=passed[name] / 100 if name in passed else None)
        for name, percent in read["completion"].items()
    }


def suite_keys(suite: str = DEFAULT_SUITE) -> tuple[EpisodeKey, ...]:
    """Returns the episodes of a suite as `ec2-env bench` plays them, so that rows of its table are what was fitted."""
    found = load_suite(suite)
    return tuple(
        EpisodeKey(task=name, language=language, split=found.split, seed=seed, trial=trial)
        for name, language in found.pairs()
        for seed in range(found.seeds)
        for trial in range(found.trials)
    )


def calibrate(keys: Sequence[EpisodeKey], pool: Executor | None = None) -> list[Fit]:
    """Fits every anchored model. Draws are common to all values of a parameter, so the search is smooth.

    Args:
        keys: Episodes to fit on.
        pool: Where to fit several models at once; None fits one after the other.
    """
    jobs = [(load_profile(name), target, tuple(keys)) for name, target in anchors().items()]
    return list(pool.map(fit, *zip(*jobs, strict=True))) if pool is not None else [fit(*job) for job in jobs]


def fit(own: Profile, target: Target, keys: Sequence[EpisodeKey]) -> Fit:
    """Returns the ability and steadiness at which a model reaches its target.

    Searches where an episode is cheap, at the edge. A cloud model that works alone does nearly the same behind the boundary; by
    what it falls short there, the search is repeated with a target that is higher by as much.
    """
    found, aim = _search(own, target, keys), target
    real = reached(found, keys)
    if own.price is not None:
        for _ in range(CORRECTIONS):
            seen = _at_the_edge(found, keys)
            aim = Target(
                completion=target.completion + seen.completion - real.completion,
                pass_hat_3=None if target.pass_hat_3 is None else target.pass_hat_3 + seen.pass_hat_3 - real.pass_hat_3,
            )
            found = _search(own, aim, keys)
            real = reached(found, keys)
    return Fit(
        name=own.name,
        ability=found.ability,
        steadiness=found.steadiness,
        target=target,
        reached=real,
        episodes=len(keys),
    )


def _search(own: Profile, target: Target, keys: Sequence[EpisodeKey]) -> Profile:
    """Returns the profile that reaches a target at the edge, by nested bisection."""
    found = _abler(own, target, keys, *ABILITIES, HALVINGS)
    if target.pass_hat_3 is not None:
        low, high = 0, len(STEADINESSES) - 1
        while low < high:
            middle = (low + high) // 2
            found = _near(replace(found, steadiness=STEADINESSES[middle]), target, keys, 4)
            if _at_the_edge(found, keys).pass_hat_3 < target.pass_hat_3:
                low = middle + 1
            else:
                high = middle
        found = _near(replace(found, steadiness=STEADINESSES[low]), target, keys, 7)
    return replace(found, ability=round(found.ability, 3))


def _near(own: Profile, target: Target, keys: Sequence[EpisodeKey], halvings: int) -> Profile:
    return _abler(own, target, keys, own.ability - NEAR, own.ability + NEAR, halvings)


def _abler(own: Profile, target: Target, keys: Sequence[EpisodeKey], low: float, high: float, halvings: int) -> Profile:
    """Returns the profile with the ability at which it completes as much as it should, at the edge."""
    for _ in range(halvings):
        middle = (low + high) / 2
        if _at_the_edge(replace(own, ability=middle), keys).completion < target.completion:
            low = middle
        else:
            high = middle
    return replace(own, ability=(low + high) / 2)


def _at_the_edge(profile: Profile, keys: Sequence[EpisodeKey]) -> Reached:
    return reached(replace(profile, price=None), keys)


def reached(profile: Profile, keys: Sequence[EpisodeKey]) -> Reached:
    """Plays a model that works alone: a priced one through the boundary, any other at the edge.

    Args:
        profile: The model.
        keys: Episodes; trials of the same instance count as runs of it.
    """
    model = SimulatedModel(profile)
    if profile.price is not None:
        env, strategy = DecisionEnv(edge=None, cloud=model), Always(name="alone", decision=Decision.ACT, uses_edge=False)
    else:
        env, strategy = DecisionEnv(edge=model), Always(name="alone", decision=Decision.EDGE)
    runs: dict[EpisodeKey, list[float]] = {}
    for key in keys:
        runs.setdefault(replace(key, trial=0), []).append(play(env, strategy, key).result["completion"])
    return summary(runs.values())


def summary(runs: Iterable[Sequence[float]]) -> Reached:
    """Returns completion and Pass^3 of runs that are given by instance; instances with fewer than three runs pass nothing."""
    groups = list(runs)
    every = [score for group in groups for score in group]
    repeated = [group for group in groups if len(group) >= PASS_K]
    passed = [pass_hat_k(sum(score >= PASS_THRESHOLD for score in group), len(group), PASS_K) for group in repeated]
    return Reached(completion=sum(every) / len(every), pass_hat_3=sum(passed) / len(passed) if passed else 0.0)
