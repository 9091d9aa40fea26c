"""Fits the abilities of the simulated models to the published single-model rows, and to nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ec2_env.bench.suites import DEFAULT_SUITE, load_suite
from ec2_env.envs import DecisionEnv
from ec2_env.models import profile as profiles
from ec2_env.models.profile import Profile, load_profile, read_toml
from ec2_env.models.sim import SimulatedModel
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Always, Decision

ANCHORS = Path(profiles.__file__).parent / "anchors.toml"
ROUNDS = 12
"""Halvings of the bracket; the ability is then exact to 0.002 logits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One fitted model.

    Attributes:
        name: Profile name.
        ability: Fitted ability, in logits.
        target: Published completion, 0 to 1.
        reached: Completion at the fitted ability on the same episodes.
        episodes: Number of episodes per evaluation.
    """

    name: str
    ability: float
    target: float
    reached: float
    episodes: int


def calibrate(suite: str = DEFAULT_SUITE, seeds: Sequence[int] = range(5), trials: int = 1) -> list[Fit]:
    """Fits every anchored model by bisection on the train split. Draws are common to all abilities, so the search is smooth.

    Args:
        suite: Suite whose tasks stand for the study's.
        seeds: Train seeds of each task and language.
        trials: Trials of each.
    """
    keys = [
        EpisodeKey(task=name, language=language, split="train", seed=seed, trial=trial)
        for name, language in load_suite(suite).pairs()
        for seed in seeds
        for trial in range(trials)
    ]
    return [_fit(name, percent / 100, keys) for name, percent in read_toml(ANCHORS)["completion"].items()]


def _fit(name: str, target: float, keys: Sequence[EpisodeKey]) -> Fit:
    own = load_profile(name)
    low, high = -2.0, 6.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if completion(replace(own, ability=middle), keys) < target:
            low = middle
        else:
            high = middle
    ability = round((low + high) / 2, 3)
    return Fit(
        name=name, ability=ability, target=target, reached=completion(replace(own, ability=ability), keys), episodes=len(keys)
    )


def completion(profile: Profile, keys: Sequence[EpisodeKey]) -> float:
    """Returns the mean completion of a model that works alone: a priced one through the boundary, any other at the edge."""
    model = SimulatedModel(profile)
    if profile.price is not None:
        env, strategy = DecisionEnv(edge=None, cloud=model), Always(name="alone", decision=Decision.ACT, uses_edge=False)
    else:
        env, strategy = DecisionEnv(edge=model), Always(name="alone", decision=Decision.EDGE)
    reached: list[float] = [play(env, strategy, key).result["completion"] for key in keys]
    return sum(reached) / len(reached)
