"""Preferences: how much cost and privacy count against completion, and an env whose episodes each have their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ec2_env.envs import DecisionEnv
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights, Terms, terms
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.features_policy import Preference

NOTHING = 0.15
"""Chance that a weight is 0."""
LEAST, MOST = 0.02, 2.0
"""Other weights are drawn between these, evenly on a scale of ratios."""
SWEEP = tuple(Preference(cost, privacy) for cost in (0.0, 0.05, 0.15, 0.5) for privacy in (0.0, 0.25, 1.0))
"""Preferences that a policy is played with to see its front; the default weights are among them."""
USUAL = Preference(RewardWeights().cost, RewardWeights().privacy)


class Preferences(Protocol):
    """Where the preference of an episode comes from."""

    def draw(self, generator: np.random.Generator) -> Preference:
        """Returns the preference of the next episode."""
        ...

    def ended(self, total: Terms) -> None:
        """Is told what an episode brought."""
        ...


class AnyPreference:
    """Draws from all that a user may want: often little weight, rarely much."""

    def draw(self, generator: np.random.Generator) -> Preference:
        """Returns two independent weights."""
        return Preference(*(self._weight(generator) for _ in range(2)))

    def ended(self, total: Terms) -> None:
        """Changes nothing."""

    def _weight(self, generator: np.random.Generator) -> float:
        if generator.random() < NOTHING:
            return 0.0
        return math.exp(generator.uniform(math.log(LEAST), math.log(MOST)))


class FeatureEnv(gym.Env[Any, np.int64]):
    """A `DecisionEnv` for learners on features: a box instead of a dict, a preference for each episode, and nothing in `info`.

    Args:
        settings: Arguments of `DecisionEnv`.
        preferences: Where preferences come from; envs may share one.
    """

    def __init__(self, settings: Mapping[str, Any], preferences: Preferences) -> None:
        self.inner = DecisionEnv(**settings)
        self.preferences = preferences
        self.action_space = self.inner.action_space
        self.observation_space = spaces.Box(-1, 5, (len(NAMES),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with a preference of its own."""
        super().reset(seed=seed)
        wanted = self.preferences.draw(self.np_random)
        self.inner.weights = RewardWeights(cost=wanted.cost, privacy=wanted.privacy)
        observation, _ = self.inner.reset(seed=seed, options=options)
        return observation["features"], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one decision; the reward is that of `DecisionEnv` under the episode's preference."""
        inner = self.inner
        session = inner._running()
        since = len(session.events)
        inner.take(action)
        found = terms(session.events[since:], inner._levels, session.episode.units, inner._reference)
        over = session.ended
        if over:
            self.preferences.ended(episode_terms(inner))
        return np.array(inner.features(), np.float32), found.scalar(inner.weights), over, False, {}
