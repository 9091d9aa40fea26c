"""Preferences: how much cost and privacy count against completion, and an env whose episodes each have their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ec2_env.envs import DecisionEnv
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights, Terms, terms
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision, View
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.features_policy import Preference
from ec2_env.training.scorers import COST, PRIVACY, Simple

NOTHING = 0.15
"""Chance that a weight is 0."""
LEAST, MOST = 0.02, 2.0
"""Other weights are drawn between these, evenly on a scale of ratios."""
SWEEP = (
    Preference(0.0, 0.0),
    *(Preference(cost, privacy) for cost in (0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.0) for privacy in (0.0, 0.25)),
)
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

    def state(self) -> Any:
        """Returns what it remembers, as plain data."""
        ...

    def restore(self, state: Any) -> None:
        """Remembers what `state` returned."""
        ...


class AnyPreference:
    """Draws from all that a user may want: often little weight, rarely much."""

    def draw(self, generator: np.random.Generator) -> Preference:
        """Returns two independent weights."""
        return Preference(*(self._weight(generator) for _ in range(2)))

    def ended(self, total: Terms) -> None:
        """Changes nothing."""

    def state(self) -> Any:
        """Returns nothing."""

    def restore(self, state: Any) -> None:
        """Changes nothing."""

    def _weight(self, generator: np.random.Generator) -> float:
        if generator.random() < NOTHING:
            return 0.0
        return math.exp(generator.uniform(math.log(LEAST), math.log(MOST)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A strategy that follows the rule for a preference; without one, for what the env weighs."""

    guide: Simple
    preference: Preference | None = None
    name: str = "rule"
    uses_edge: bool = True

    def decide(self, view: View) -> Decision:
        """Returns the decision of the rule."""
        told = list(view.features())
        if self.preference is not None:
            told[COST], told[PRIVACY] = self.preference
        return Decision(self.guide.answer(told))


class FeatureEnv(gym.Env[Any, np.int64]):
    """A `DecisionEnv` for learners on features: a box instead of a dict, a preference for each episode, and nothing in `info`.

    Args:
        settings: Arguments of `DecisionEnv`.
        preferences: Where preferences come from; envs may share one.
        guide: Simple rules, of which the preference chooses one. Its decision is shown behind the features, as six numbers of
            which one is 1, and the last reward of an episode is less by the return of the rule in the same episode under the
            same luck. What both have of it in common is no longer noise, and as no decision changes what the rule gets, no policy
            becomes better or worse by it. None for features and rewards as they are.
    """

    def __init__(self, settings: Mapping[str, Any], preferences: Preferences, guide: Simple | None = None) -> None:
        self.inner = DecisionEnv(**settings)
        self.preferences = preferences
        self._guide = guide
        self._beside = DecisionEnv(**settings)
        self._to_beat = 0.0
        self.action_space = self.inner.action_space
        self.observation_space = spaces.Box(-1, 5, (len(NAMES) + (len(Decision) if guide is not None else 0),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with a preference of its own."""
        super().reset(seed=seed)
        wanted = self.preferences.draw(self.np_random)
        self.inner.weights = RewardWeights(cost=wanted.cost, privacy=wanted.privacy)
        self.inner.reset(seed=seed, options=options)
        self._to_beat = 0.0
        if self._guide is not None:
            play(self._beside, Following(guide=self._guide, preference=wanted), self._key())
            self._to_beat = episode_terms(self._beside).scalar(self.inner.weights)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one decision; the reward is that of `DecisionEnv` under the episode's preference."""
        inner = self.inner
        session = inner._running()
        since = len(session.events)
        inner.take(action)
        found = terms(session.events[since:], inner._levels, session.episode.units, inner._reference)
        over, reward = session.ended, found.scalar(inner.weights)
        if over:
            self.preferences.ended(episode_terms(inner))
            reward -= self._to_beat
        return self._seen(), reward, over, False, {}

    def _seen(self) -> Any:
        """Returns the features, and the rule's decision behind them if there is a guide."""
        features = self.inner.features()
        if self._guide is None:
            return np.array(features, np.float32)
        return np.array([*features, *np.eye(len(Decision))[self._guide.answer(features)]], np.float32)

    def _key(self) -> EpisodeKey:
        session = self.inner._running()
        one = session.episode
        return EpisodeKey(task=one.name, language=one.language, split=one.split, seed=one.seed, trial=session.trial)

    def state(self) -> dict[str, Any]:
        """Returns all that the rest of the training depends on, in the middle of an episode, as plain data."""
        inner = self.inner
        return {
            "key": asdict(self._key()),
            "decisions": [int(one) for one in inner.decisions],
            "preference": [inner.weights.cost, inner.weights.privacy],
            "to_beat": self._to_beat,
            "random": [self.np_random.bit_generator.state, inner.np_random.bit_generator.state],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Comes into the state that `state` returned, by taking the decisions of the episode again."""
        inner, key = self.inner, EpisodeKey(**state["key"])
        inner.weights = RewardWeights(cost=state["preference"][0], privacy=state["preference"][1])
        inner.begin(key.task, key.language, key.split, key.seed, key.trial)
        inner.features()
        for decision in state["decisions"]:
            inner.take(decision)
            inner.features()
        self._to_beat = state["to_beat"]
        self.np_random.bit_generator.state, inner.np_random.bit_generator.state = state["random"]
