"""PPO and DQN of Stable-Baselines3 on features; what they learn leaves as plain arrays.

Everything runs in one process with one thread, so a seed fixes the result. An episode is about twenty steps and its return is
not discounted.

PPO does not start from nothing. A return is mostly luck, and a policy that starts without a rule learns little in minutes but
that the cloud costs: it ended at edge_only. So it first learns to decide as the fixed strategies do, under each preference as
the one that returns most on some train episodes, with some chance left to all other decisions, and improves on that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.registry import require
from ec2_env.rollout import play
from ec2_env.strategy import Strategy, decision_of, load_strategy
from ec2_env.training.bandit import shuffled_keys
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.features_policy import Floats, Network
from ec2_env.training.preferences import FeatureEnv, Preferences
from ec2_env.training.states import EXPLORE

ENVS = 16
"""Episodes that run side by side."""
HIDDEN = (64, 64)
STARTS = (
    "edge_only",
    "sketch_guided",
    "adaptive_assistance:redacted",
    "adaptive_assistance",
    "step_routing:redacted",
    "cloud_only",
)
"""Strategies that PPO may start from."""
MEASURED = 48
"""Train episodes on which they are compared."""
CLONED = 150
"""Train episodes from whose states the first policy is learned."""
LEFT = 0.4
"""Chance left to the other decisions together."""
PASSES = 200
"""Passes over these states."""
PPO: Mapping[str, Any] = {
    "n_steps": 128,
    "batch_size": 512,
    "n_epochs": 8,
    "gamma": 1.0,
    "gae_lambda": 0.95,
    "ent_coef": 0.003,
    "target_kl": 0.05,
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


def train_ppo(
    settings: Mapping[str, Any],
    preferences: Preferences,
    steps: int,
    seed: int,
    say: Callable[[str], None] = lambda text: None,
    rollout_ended: Callable[[], None] = lambda: None,
) -> Network:
    """Trains with PPO (Schulman et al., arXiv 1707.06347) and returns the policy, which takes the likeliest decision.

    Args:
        settings: Arguments of `DecisionEnv`.
        preferences: Where the preference of each episode comes from.
        steps: Steps of the env, rounded up to whole rollouts of `ENVS` times `PPO["n_steps"]`.
        seed: Fixes episodes, exploration and network.
        say: Is told from time to time how it goes.
        rollout_ended: Is called after every rollout, before the policy is updated.

    Raises:
        MissingExtra: if Stable-Baselines3 is not installed.
    """
    torch = _quiet_torch()
    sb3 = require("stable_baselines3", extra="rl")
    settled = {**PPO, "learning_rate": lambda left: RATE * left}
    model = sb3.PPO("MlpPolicy", _envs(settings, preferences), seed=seed, device="cpu", policy_kwargs=_nets(), **settled)
    _clone(torch, model.policy, *decided_states(settings, preferences, seed))
    model.learn(steps, callback=_telling(steps, say, rollout_ended))
    return _network([*model.policy.mlp_extractor.policy_net, model.policy.action_net], "tanh")


def train_dqn(
    settings: Mapping[str, Any],
    preferences: Preferences,
    steps: int,
    seed: int,
    say: Callable[[str], None] = lambda text: None,
) -> Network:
    """Trains with DQN (Mnih et al. 2015) and returns the network of values; arguments and errors as in `train_ppo`."""
    _quiet_torch()
    sb3 = require("stable_baselines3", extra="rl")
    model = sb3.DQN("MlpPolicy", _envs(settings, preferences), seed=seed, device="cpu", policy_kwargs=_nets(), **DQN)
    model.learn(steps, callback=_telling(steps, say, lambda: None), log_interval=10**9)
    return _network(model.q_net.q_net, "relu")


def decided_states(settings: Mapping[str, Any], preferences: Preferences, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Returns features of states, under preferences, and what the best start decides there; some of the moves are random."""
    env, rules = FeatureEnv(settings, preferences), [load_strategy(spec) for spec in STARTS]
    env.reset(seed=seed)
    found = measured(env, rules)
    env.action_space.seed(seed)
    features, decisions = list[Any](), list[int]()
    for _ in range(CLONED):
        seen, _ = env.reset()
        over, weights = False, env.inner.weights
        returns = [weights.task * task - weights.cost * cost - weights.privacy * exposure for task, cost, exposure in found]
        rule = rules[int(np.argmax(returns))]
        while not over:
            features.append(seen)
            decisions.append(int(decision_of(rule.decide(env.inner.view()))))
            explores = env.np_random.random() < EXPLORE
            seen, _, over, _, _ = env.step(env.action_space.sample() if explores else decisions[-1])
    return np.array(features, np.float64), np.array(decisions)


def measured(env: FeatureEnv, rules: Sequence[Strategy]) -> list[tuple[float, float, float]]:
    """Returns the mean completion, cost and exposure of strategies on the same train episodes."""
    inner = env.inner
    keys = [key for key, _ in zip(shuffled_keys(inner, int(env.np_random.integers(500))), range(MEASURED), strict=False)]
    found = []
    for rule in rules:
        totals = []
        for key in keys:
            play(inner, rule, key)
            total = episode_terms(inner)
            totals.append((total.task, total.cost, total.exposure))
        task, cost, exposure = np.mean(totals, axis=0).tolist()
        found.append((task, cost, exposure))
    return found


def _clone(torch: Any, policy: Any, features: Floats, decisions: NDArray[np.int64]) -> None:
    """Trains the actor to decide as a strategy did, with `LEFT` for everything else."""
    seen, wanted = torch.tensor(features, dtype=torch.float32), torch.tensor(decisions)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(PASSES):
        logits = policy.get_distribution(seen).distribution.logits
        loss = torch.nn.functional.cross_entropy(logits, wanted, label_smoothing=LEFT)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _quiet_torch() -> Any:
    """Returns torch, bound to one thread: these networks are too small to share out."""
    torch = require("torch", extra="rl")
    torch.set_num_threads(1)
    return torch


def _nets() -> dict[str, Any]:
    return {"net_arch": list(HIDDEN)}


def _envs(settings: Mapping[str, Any], preferences: Preferences) -> Any:
    vec_env = require("stable_baselines3.common.vec_env", extra="rl")
    return vec_env.DummyVecEnv([partial(FeatureEnv, settings, preferences) for _ in range(ENVS)])


def _telling(steps: int, say: Callable[[str], None], rollout_ended: Callable[[], None]) -> Any:
    """Returns a callback that says ten times how far it is."""
    callback: Any = require("stable_baselines3.common.callbacks", extra="rl").BaseCallback

    class Telling(callback):  # type: ignore[misc]  # loaded only now, so that its type is not known
        """Says how many steps are done."""

        told = 0

        def _on_step(self) -> bool:
            if self.num_timesteps * 10 >= steps * (self.told + 1):
                self.told += 1
                say(f"  {self.num_timesteps} steps")
            return True

        def _on_rollout_end(self) -> None:
            rollout_ended()

    return Telling()


def _network(layers: Any, kind: Any) -> Network:
    """Returns the dense layers among torch modules as arrays."""
    dense = [layer for layer in layers if hasattr(layer, "weight")]
    parts = [[tensor.detach().numpy().astype(np.float64) for tensor in (one.weight.T, one.bias)] for one in dense]
    return Network(tuple((np.ascontiguousarray(weights), bias) for weights, bias in parts), kind)
