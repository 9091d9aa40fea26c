"""Grades the work that an outer time limit cuts off."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from ec2_env.episode_env import EpisodeEnv


class Cutoff(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Closes an episode that a wrapper below has truncated, so that its last step brings the grade and `info["result"]`.

    `gym.make(..., max_episode_steps=N)` keeps N to itself and puts a `TimeLimit` around the env, unseen by it: without
    this wrapper, the work of a truncated episode would never be graded. Every registered id comes with it.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Makes a step; if it was the last one by an outer limit, grades it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        inner = self.unwrapped
        if truncated and "result" not in info and isinstance(inner, EpisodeEnv):
            reward = inner.cut_off(reward, info)
        return observation, reward, terminated, truncated, info
