"""PPO and DQN of Stable-Baselines3 on features; what they learn leaves as plain arrays.

Everything runs in one process with one thread, so a seed fixes the result. An episode is about twenty steps and its return is
not discounted.

PPO does not start from nothing: a return is mostly luck, and a policy that starts without a rule learns little in minutes but
that the cloud costs. It is told what the simple rule that suits the preference would do (`ec2_env.training.rules`), and starts by
doing it, with a little chance left to all other decisions. What it gets in an episode is measured against what that rule gets in
the same episode under the same luck. And of the policies on the way, the one is kept that does best on train episodes that
nothing was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ec2_env.registry import require
from ec2_env.strategy import Decision
from ec2_env.training.metrics import Metrics
from ec2_env.training.preferences import FeatureEnv, Preferences
from ec2_env.training.rules import Rules
from ec2_env.training.sb3_checkpoint import Checkpoint
from ec2_env.training.scorers import Advised, Floats, Network, Scorer, Simple
from ec2_env.training.stages import Stages

ENVS = 16
"""Episodes that run side by side."""
HIDDEN = (64, 64)
LEFT = 0.15
"""Chance that the first policy leaves to the other decisions together."""
SNAPSHOTS = 4
"""Policies on the way, beside the first one, of which one is kept."""
CHECKPOINTS = 20
"""Checkpoints of a whole training."""
PPO: Mapping[str, Any] = {
    "n_steps": 128,
    "batch_size": 512,
    "n_epochs": 8,
    "gamma": 1.0,
    "gae_lambda": 0.95,
    "ent_coef": 0.003,
    "target_kl": 0.02,
}
DQN: Mapping[str, Any] = {
    "learning_rate": 5e-4,
    "buffer_size": 200_000,
    "learning_starts": 2_000,
    "batch_size": 256,
    "gamma": 1.0,
    "train_freq": (2, "step"),
    "gradient_steps": 4,
    "target_update_interval": 2_000,
    "exploration_fraction": 0.3,
    "exploration_initial_eps": 0.5,
    "exploration_final_eps": 0.05,
}
RATE = 5e-4
"""Learning rate of PPO at the start; it falls to 0."""
Say = Callable[[str], None]


def train_ppo(
    settings: Mapping[str, Any],
    preferences: Preferences,
    rules: Rules,
    steps: int,
    seed: int,
    stages: Stages,
    metrics: Metrics,
    say: Say = lambda text: None,
    rollout_ended: Callable[[], None] = lambda: None,
) -> dict[str, Scorer]:
    """Trains with PPO (Schulman et al., arXiv 1707.06347); returns policies on the way, which take the likeliest decision.

    Args:
        settings: Arguments of `DecisionEnv`.
        preferences: Where the preference of each episode comes from.
        rules: What it starts from, and what returns are measured against.
        steps: Steps of the env, rounded up to whole rollouts of `ENVS` times `PPO["n_steps"]`.
        seed: Fixes episodes, exploration and network.
        stages: Of the run; its workplace `policy` holds the checkpoint.
        metrics: Of the run.
        say: Is told from time to time how it goes.
        rollout_ended: Is called after every rollout, before the policy is updated.

    Raises:
        MissingExtra: if Stable-Baselines3 is not installed.
    """
    torch = _quiet_torch()
    sb3 = require("stable_baselines3", extra="rl")
    settled = {**PPO, "learning_rate": lambda left: RATE * left}
    guide = rules.simple()
    envs = _envs(settings, preferences, guide)
    model = sb3.PPO(_advised(torch), envs, seed=seed, device="cpu", policy_kwargs=_nets(), **settled)
    checkpoint = Checkpoint(stages.workplace("policy"), preferences)
    kept = checkpoint.load(model) or {"start": _held(model)}
    metrics.rewind("ppo", model.num_timesteps)
    watching = _Watching("ppo", steps, checkpoint, kept, metrics, say, rollout_ended, model.num_timesteps)
    model.learn(steps - model.num_timesteps, callback=watching.callback(), reset_num_timesteps=False)
    kept["whole"] = _held(model)
    found: dict[str, Scorer] = {}
    for name, state in kept.items():
        model.policy.load_state_dict(state)
        layers = _layers([*model.policy.mlp_extractor.actor, model.policy.action_net])
        weights, bias = layers[-1]
        network = Network((*layers[:-1], (weights[: HIDDEN[-1]], bias)))
        found[name] = Advised(guide, network, weights[HIDDEN[-1] :])
    return found


def train_dqn(
    settings: Mapping[str, Any],
    preferences: Preferences,
    steps: int,
    seed: int,
    stages: Stages,
    metrics: Metrics,
    say: Say = lambda text: None,
) -> dict[str, Scorer]:
    """Trains with DQN (Mnih et al. 2015) from nothing; returns networks of values; arguments and errors as in `train_ppo`."""
    _quiet_torch()
    sb3 = require("stable_baselines3", extra="rl")
    model = sb3.DQN("MlpPolicy", _envs(settings, preferences), seed=seed, device="cpu", policy_kwargs=_nets(), **DQN)
    checkpoint = Checkpoint(stages.workplace("policy"), preferences)
    kept = checkpoint.load(model) or {}
    metrics.rewind("dqn", model.num_timesteps)
    watching = _Watching("dqn", steps, checkpoint, kept, metrics, say, lambda: None, model.num_timesteps)
    model.learn(steps - model.num_timesteps, callback=watching.callback(), log_interval=10**9, reset_num_timesteps=False)
    kept["whole"] = _held(model)
    found: dict[str, Scorer] = {}
    for name, state in kept.items():
        model.policy.load_state_dict(state)
        found[name] = Network(_layers(model.q_net.q_net), "relu")
    return found


def _advised(torch: Any) -> Any:
    """Returns a policy of Stable-Baselines3 whose last layer also sees the rule's decision, and at first does little else."""
    base: Any = require("stable_baselines3.common.policies", extra="rl").ActorCriticPolicy
    choices = len(Decision)

    class Beside(torch.nn.Module):  # type: ignore[misc]  # loaded only now, so that its type is not known
        """Two networks; the actor's passes the rule's decision on beside what it made of everything."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.actor, self.critic = (_hidden(torch, width) for _ in range(2))
            self.latent_dim_pi, self.latent_dim_vf = HIDDEN[-1] + choices, HIDDEN[-1]

        def forward(self, seen: Any) -> tuple[Any, Any]:
            return self.forward_actor(seen), self.forward_critic(seen)

        def forward_actor(self, seen: Any) -> Any:
            return torch.cat([self.actor(seen), seen[:, -choices:]], dim=1)

        def forward_critic(self, seen: Any) -> Any:
            return self.critic(seen)

    class Advisable(base):  # type: ignore[misc]  # as above
        """Starts by doing as the rule does."""

        def _build_mlp_extractor(self) -> None:
            self.mlp_extractor = Beside(self.features_dim)

        def _build(self, schedule: Any) -> None:
            super()._build(schedule)
            with torch.no_grad():
                self.action_net.weight[:, HIDDEN[-1] :] = math.log((1 - LEFT) * (choices - 1) / LEFT) * torch.eye(choices)

    return Advisable


def _hidden(torch: Any, width: int) -> Any:
    """Returns dense layers with tanh after each."""
    ends = [width, *HIDDEN]
    return torch.nn.Sequential(*(part for a, b in pairwise(ends) for part in (torch.nn.Linear(a, b), torch.nn.Tanh())))


def _quiet_torch() -> Any:
    """Returns torch, bound to one thread: these networks are too small to share out."""
    torch = require("torch", extra="rl")
    torch.set_num_threads(1)
    return torch


def _nets() -> dict[str, Any]:
    return {"net_arch": list(HIDDEN)}


def _envs(settings: Mapping[str, Any], preferences: Preferences, guide: Simple | None = None) -> Any:
    vec_env = require("stable_baselines3.common.vec_env", extra="rl")
    return vec_env.DummyVecEnv([partial(FeatureEnv, settings, preferences, guide) for _ in range(ENVS)])


def _held(model: Any) -> dict[str, Any]:
    """Returns a copy of the networks as they are."""
    return {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}


class _Watching:
    """Follows a training: says how far it is, takes figures down, and keeps checkpoints and policies on the way."""

    def __init__(
        self,
        name: str,
        steps: int,
        checkpoint: Checkpoint,
        kept: dict[str, Any],
        metrics: Metrics,
        say: Say,
        rollout_ended: Callable[[], None],
        begun: int,
    ) -> None:
        self.name, self.steps, self.checkpoint, self.kept = name, steps, checkpoint, kept
        self.metrics, self.say, self.rollout_ended = metrics, say, rollout_ended
        self.saved = begun * CHECKPOINTS // steps

    def callback(self) -> Any:
        """Returns it as a callback of Stable-Baselines3."""
        base: Any = require("stable_baselines3.common.callbacks", extra="rl").BaseCallback
        watching = self

        class Telling(base):  # type: ignore[misc]  # loaded only now, so that its type is not known
            """Passes on where the training is."""

            def _on_step(self) -> bool:
                return True

            def _on_rollout_start(self) -> None:
                watching.between(self.model)

            def _on_rollout_end(self) -> None:
                watching.rollout_ended()

        return Telling()

    def between(self, model: Any) -> None:
        """Is called between two rollouts, when nothing is half done."""
        done = model.num_timesteps
        if done == 0 or done * CHECKPOINTS // self.steps == self.saved:
            return
        self.saved = done * CHECKPOINTS // self.steps
        passed = done * SNAPSHOTS // self.steps
        if 0 < passed < SNAPSHOTS:
            self.kept.setdefault(f"after {passed}/{SNAPSHOTS}", _held(model))
        figures = {name.rpartition("/")[2]: value for name, value in model.logger.name_to_value.items()}
        self.metrics.log(self.name, done, **{name: float(value) for name, value in figures.items()})
        self.checkpoint.save(model, self.kept)
        self.say(f"  {done} of {self.steps} steps")


def _layers(modules: Any) -> tuple[tuple[Floats, Floats], ...]:
    """Returns the dense layers among torch modules as arrays."""
    dense = [one for one in modules if hasattr(one, "weight")]
    parts = [[tensor.detach().numpy().astype(np.float64) for tensor in (one.weight.T, one.bias)] for one in dense]
    return tuple((np.ascontiguousarray(weights), bias.copy()) for weights, bias in parts)
