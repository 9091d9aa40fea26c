"""Where a head starts: simple rules are watched on the same train episodes, and the head learns to decide as the rule that should
suit the task and the preference.

Which rule suits is estimated at the first state of an episode: a ridge regression on what names the task (the numbers, for a head
that is shown no text) says what completion, cost and exposure each rule brings there, more or less than the others under the same
luck. Any preference can weigh that. A rule that looks better by `SOFTNESS` counts e times as much in what is imitated, so that a
doubtful choice stays a mixture.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.landscape_tree import Node, decided
from ec2_env.bench.records import start_worker
from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.registry import require
from ec2_env.rollout import EpisodeKey
from ec2_env.training.bandit import shuffled_keys
from ec2_env.training.encoder_head import LearningHead
from ec2_env.training.encoder_policy import with_preferences
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.preferences import AnyPreference
from ec2_env.training.scorers import Floats

KEPT = 1 / 3
"""Share of the states of an episode that are learned from: neighbors are much alike."""
SOFTNESS = 0.02
"""Difference of expected returns at which a rule counts e times as much."""
RIDGES = tuple(10.0**power for power in (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2))
"""Strengths of shrinking that are tried, in episodes."""
PREFERENCES = 1_000
"""Preferences that are drawn, for the whole of the training."""
ROWS = 1_024
"""States in a step of imitation."""
LEFT = 0.1
"""Chance left to the decisions that no rule takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A state as a policy sees it, and what was decided there."""

    features: tuple[float, ...]
    prompt: str
    decision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A train episode under every rule.

    Attributes:
        brought: Completion, cost and exposure under each rule.
        states: Some of the states under each, the first one always.
    """

    brought: tuple[tuple[float, float, float], ...]
    states: tuple[tuple[Seen, ...], ...]

    @property
    def first(self) -> Seen:
        """Where it begins, under every rule."""
        return self.states[0][0]


def watch_all(settings: Mapping[str, Any], trees: Sequence[Node], episodes: int, seed: int, workers: int) -> list[Watched]:
    """Returns so many train episodes under every rule; what they are does not depend on `workers`."""
    keys = list(islice(shuffled_keys(DecisionEnv(**settings), seed), episodes))
    job = partial(watch, tuple(settings.items()), tuple(trees))
    if workers == 1:
        return list(map(job, keys))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=start_worker) as pool:
        return list(pool.map(job, keys, chunksize=8))


def watch(settings: tuple[tuple[str, Any], ...], trees: Sequence[Node], key: EpisodeKey) -> Watched:
    """Plays one episode with every rule."""
    env = _env(settings)
    brought, states = [], []
    for number, tree in enumerate(trees):
        seen = list[Seen]()
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
        while env.session is not None and not env.session.ended:
            view, step = env.view(), env.session.step
            features = view.features()
            decision = decided(tree, features)
            if step == 0 or uniform("watched", number, key.task, key.language, key.seed, step) < KEPT:
                seen.append(Seen(features=features, prompt=view.prompt(), decision=decision))
            env.take(decision)
        total = episode_terms(env)
        brought.append((total.task, total.cost, total.exposure))
        states.append(tuple(seen))
    return Watched(brought=tuple(brought), states=tuple(states))


@lru_cache(maxsize=2)
def _env(settings: tuple[tuple[str, Any], ...]) -> DecisionEnv:
    return DecisionEnv(**dict(settings))


def expected(episodes: Sequence[Watched], seen: NDArray[Any]) -> Floats:
    """Returns what each rule should bring in each episode, less the mean of all rules; shape (episodes, rules, 3).

    What an episode itself brought does not count for what is expected of it, only what all others did.

    Args:
        episodes: What was watched.
        seen: What is known of each at its start, shape (episodes, width).
    """
    basis = np.concatenate([np.ones((len(seen), 1)), _evened(seen)], axis=1)
    brought = np.array([one.brought for one in episodes])
    wanted = brought - brought.mean(axis=1, keepdims=True)
    found = np.empty_like(wanted)
    for term in range(wanted.shape[2]):
        fits = [_left_out(basis, wanted[:, :, term], ridge) for ridge in RIDGES]
        found[:, :, term] = min(fits, key=lambda fit: fit[0])[1]
    return found


def _evened(block: NDArray[Any]) -> Floats:
    """Returns columns of mean 0, all of the same variance, which is 1 for all of them together."""
    spread = block.std(axis=0)
    kept = spread > 1e-6
    evened: Floats = (block[:, kept] - block[:, kept].mean(axis=0)) / spread[kept] / max(1, kept.sum()) ** 0.5
    return evened


def _left_out(basis: Floats, wanted: Floats, ridge: float) -> tuple[float, Floats]:
    """Returns the mean square error on episodes left out one at a time, and what is then expected of each; column 0 is 1."""
    penalty = np.full(basis.shape[1], ridge)
    penalty[0] = 1e-6
    hat = basis @ np.linalg.solve(basis.T @ basis + np.diag(penalty), basis.T)
    influence = np.minimum(np.diag(hat), 0.99)[:, None]
    left_out = (hat @ wanted - influence * wanted) / (1 - influence)
    return float(((wanted - left_out) ** 2).mean()), left_out


def imitate(
    head: LearningHead, rows: Floats, episodes: Sequence[Watched], expected: Floats, passes: int, rate: float, seed: int
) -> None:
    """Trains a head to decide as the rules that should suit.

    Args:
        head: Is trained in place.
        rows: What it is shown of the states of all episodes, in their order.
        episodes: What was watched.
        expected: What the rules should bring in each.
        passes: Times that every state is seen, each time under another preference.
        rate: Learning rate at the start; it falls to 0.
        seed: Fixes preferences and order.
    """
    torch = require("torch", extra="local")
    generator = np.random.default_rng(seed)
    told = preferences(generator)
    whose = np.array([(n, k) for n, one in enumerate(episodes) for k, states in enumerate(one.states) for _ in states])
    wanted = torch.tensor([state.decision for one in episodes for states in one.states for state in states])
    optimizer = torch.optim.Adam(head.parameters(), lr=rate)
    steps = [part for _ in range(passes) for part in _parts(generator.permutation(len(rows)))]
    for number, part in enumerate(steps):
        weights = told[generator.integers(len(told), size=len(part))]
        shares = suited(expected[whose[part, 0]], weights)[np.arange(len(part)), whose[part, 1]] * expected.shape[1]
        logits = head.logits(with_preferences(rows[part], weights))
        losses = torch.nn.functional.cross_entropy(logits, wanted[part], reduction="none", label_smoothing=LEFT)
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - number / len(steps))
        optimizer.zero_grad()
        (losses * torch.tensor(shares, dtype=torch.float32)).mean().backward()
        optimizer.step()


def preferences(generator: np.random.Generator) -> Floats:
    """Returns preferences as episodes have them, shape (`PREFERENCES`, 2)."""
    source = AnyPreference()
    return np.array([source.draw(generator) for _ in range(PREFERENCES)])


def suited(expected: Floats, weights: Floats) -> Floats:
    """Returns how much each rule counts in a state under a preference, shape (states, rules); sums to 1.

    Args:
        expected: Completion, cost and exposure under each rule, shape (states, rules, 3).
        weights: Of cost and privacy, shape (states, 2).
    """
    returns = expected[:, :, 0] - (expected[:, :, 1:] * weights[:, None]).sum(axis=2)
    shares = np.exp((returns - returns.max(axis=1, keepdims=True)) / SOFTNESS)
    found: Floats = shares / shares.sum(axis=1, keepdims=True)
    return found


def _parts(order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [order[start : start + ROWS] for start in range(0, len(order), ROWS)]
