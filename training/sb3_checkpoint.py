"""Checkpoints of Stable-Baselines3's learners from which training goes on exactly as it would have: the same policy, bit for bit.

SB3's own `save` keeps networks, but not the running episodes, the replay buffer or the generators of random numbers. Here all of
it is kept, as tensors and plain data that can be loaded without executing anything. Episodes are kept as their decisions, and
played again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ec2_env.registry import require
from ec2_env.training.preferences import Preferences

COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate")
"""What a learner counts; PPO has the first three."""
BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
"""Arrays of a replay buffer."""


class Checkpoint:
    """A file of one run.

    Args:
        folder: Where it is.
        preferences: Of the envs; it has a memory of its own.
    """

    def __init__(self, folder: Path, preferences: Preferences) -> None:
        self.path = folder / "checkpoint.pt"
        self.preferences = preferences

    def save(self, model: Any, kept: Mapping[str, Any]) -> None:
        """Keeps a learner between two rollouts.

        Args:
            model: PPO or DQN of Stable-Baselines3, on a `DummyVecEnv` of `FeatureEnv`.
            kept: State dicts of networks by name, which are kept with it.
        """
        torch = require("torch", extra="rl")
        plain = {
            "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
            "envs": [env.state() for env in model.get_env().envs],
            "preferences": self.preferences.state(),
            "random": [_listed(random.getstate()), _listed(np.random.get_state(legacy=True))],
            "actions": model.action_space.np_random.bit_generator.state,
        }
        held = {
            "plain": json.dumps(plain),
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "torch": torch.get_rng_state(),
            "seen": torch.tensor(model._last_obs),
            "starts": torch.tensor(model._last_episode_starts),
            "buffer": _buffer(torch, model),
            "kept": dict(kept),
        }
        partial = self.path.with_suffix(".partial")
        torch.save(held, partial)
        partial.replace(self.path)

    def load(self, model: Any) -> dict[str, Any] | None:
        """Brings a new learner, made with the same arguments, to where one was kept; returns `kept`, None if none was."""
        if not self.path.exists():
            return None
        torch = require("torch", extra="rl")
        held = torch.load(self.path, weights_only=True)
        plain = json.loads(held["plain"])
        model.policy.load_state_dict(held["policy"])
        model.policy.optimizer.load_state_dict(held["optimizer"])
        for name, value in plain["counters"].items():
            setattr(model, name, value)
        for env, state in zip(model.get_env().envs, plain["envs"], strict=True):
            env.restore(state)
        self.preferences.restore(plain["preferences"])
        model._last_obs, model._last_episode_starts = held["seen"].numpy(), held["starts"].numpy()
        _fill(model, held["buffer"])
        python, numpy = plain["random"]
        random.setstate((python[0], tuple(python[1]), python[2]))
        np.random.set_state((numpy[0], np.array(numpy[1], np.uint32), *numpy[2:]))
        model.action_space.np_random.bit_generator.state = plain["actions"]
        torch.set_rng_state(held["torch"])
        found: dict[str, Any] = held["kept"]
        return found


def _listed(state: Any) -> list[Any]:
    """Returns the state of a generator of random numbers as plain data."""
    return [list(map(int, part)) if isinstance(part, tuple | np.ndarray) else part for part in state]


def _buffer(torch: Any, model: Any) -> dict[str, Any]:
    """Returns what a replay buffer holds; nothing if there is none."""
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None:
        return {}
    used = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: torch.tensor(getattr(buffer, name)[:used]) for name in BUFFER}
    return {**arrays, "pos": buffer.pos, "full": buffer.full}


def _fill(model: Any, held: Mapping[str, Any]) -> None:
    """Puts back what a replay buffer held."""
    if not held:
        return
    buffer = model.replay_buffer
    for name in BUFFER:
        getattr(buffer, name)[: len(held[name])] = held[name].numpy()
    buffer.pos, buffer.full = held["pos"], held["full"]
