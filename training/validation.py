"""Train instances that no learner learns from: candidates are chosen on them, so that no test episode chooses anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.rollout import EpisodeKey
from ec2_env.training.evaluation import by_strategy, evaluate
from ec2_env.training.features_policy import FeaturePolicy, Preference
from ec2_env.training.preferences import USUAL
from ec2_env.training.scorers import Floats, Scorer
from ec2_env.training.states import episode_keys

RULES, CHOICES = 1_100_000_000, 1_200_000_000
"""First instance that simple rules are tried on, and that candidates are chosen on; a training seed has a thousand of each."""
PREFERENCES = (Preference(0.0, 0.0), USUAL, Preference(0.05, 1.0), Preference(0.5, 0.25))
"""Under which candidates are compared."""


def held_out(env: DecisionEnv, first: int, seed: int, episodes: int) -> list[EpisodeKey]:
    """Returns train episodes: all tasks and languages in a random order, then again with other instances.

    Args:
        env: Has the tasks.
        first: `RULES` or `CHOICES`.
        seed: Of the training.
        episodes: How many.
    """
    keys = _endless(env, first + 1_000 * seed)
    return [next(keys) for _ in range(episodes)]


def _endless(env: DecisionEnv, first: int) -> Iterator[EpisodeKey]:
    for number in count(first):
        yield from sorted(
            episode_keys(env, "train", [number]), key=lambda key: uniform("held out", key.task, key.language, key.seed)
        )


def returns(scorer: Scorer, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], wanted: Preference) -> Floats:
    """Returns the return of each episode under a preference."""
    policy = FeaturePolicy(scorer=scorer, preference=wanted)
    parts = [
        part
        for start in range(0, len(keys), 100)
        for part in evaluate("", by_strategy(policy), settings, keys[start : start + 100]).parts
    ]
    return np.array([part.task - wanted.cost * part.cost - wanted.privacy * part.exposure for part in parts])


def worths(
    candidates: Mapping[str, Scorer], settings: Mapping[str, Any], keys: Sequence[EpisodeKey]
) -> dict[str, tuple[float, ...]]:
    """Returns the mean return of each candidate under each of `PREFERENCES`, all on the same episodes."""
    return {
        name: tuple(float(returns(scorer, settings, keys, wanted).mean()) for wanted in PREFERENCES)
        for name, scorer in candidates.items()
    }


def best_of(found: Mapping[str, Sequence[float]]) -> str:
    """Returns the candidate of the highest mean over the preferences, the first among equals."""
    return max(found, key=lambda name: float(np.mean(found[name])))
