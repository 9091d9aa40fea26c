"""Simple rules, and which of them suits a task: what a head starts from.

The rules are watched on the same train episodes, under the same luck. A ridge regression on the vector of the sentence that names
the task says what completion, cost and exposure each rule brings, more or less than the others. Any preference can weigh that, so
one guide serves all.
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

from ec2_env.bench.landscape_tree import Leaf, Node, Split, decided
from ec2_env.bench.records import start_worker
from ec2_env.envs import DecisionEnv
from ec2_env.features import NAMES
from ec2_env.models.draws import uniform
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision
from ec2_env.training.bandit import shuffled_keys
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.preferences import AnyPreference
from ec2_env.training.rules import tabled
from ec2_env.training.scorers import COST, PRIVACY, TREE, Floats, Questions, scorer_of

ALWAYS: tuple[Node, ...] = (
    Leaf(Decision.EDGE),
    Split(NAMES.index("step"), 0.0, Leaf(Decision.PLAN), Leaf(Decision.EDGE)),
    Leaf(Decision.ACT_REDACTED),
    Leaf(Decision.ACT),
)
"""Rules that are watched whether they win or not: none may suit all tasks, and each suits some."""
KEPT = 0.1
"""Share of the states of an episode that are kept, to see what states look like."""
RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0, 1e6)
"""Strengths of shrinking that are tried, in episodes."""
PREFERENCES = 300
"""Preferences under which they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """Rules, and what each brings in a task.

    Attributes:
        rules: The rules, one table for all.
        roots: Row of the table where each rule begins.
        coefficients: Of completion, cost and exposure under each rule: first those of 1, then those of the entries of the
            task's vector; shape (1 + width, rules, 3). With the first row alone, a task's text is not looked at.
    """

    rules: Questions
    roots: NDArray[np.int64]
    coefficients: Floats

    def suited(self, tasks: NDArray[Any], weights: Floats) -> NDArray[np.int64]:
        """Returns the number of the rule that suits each task.

        Args:
            tasks: Their vectors, shape (tasks, width); a width of 0 will do if they are not looked at.
            weights: Of cost and privacy, shape (tasks, 2).
        """
        width = len(self.coefficients) - 1
        brought = self.coefficients[0] + np.tensordot(tasks[:, :width], self.coefficients[1:], 1)
        returns = brought[:, :, 0] - (brought[:, :, 1:] * weights[:, None]).sum(axis=2)
        found: NDArray[np.int64] = returns.argmax(axis=1)
        return found

    def decisions(self, features: Floats, tasks: NDArray[Any]) -> list[int]:
        """Returns what the rules that suit decide in states.

        Args:
            features: Shape (states, len(NAMES)); the weights among them are those of the preference.
            tasks: Vectors of the states' tasks.
        """
        chosen = self.roots[self.suited(tasks, features[:, [COST, PRIVACY]])]
        return [self.rules.answer(row, root) for row, root in zip(features.tolist(), chosen.tolist(), strict=True)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns what has to be kept."""
        return {**self.rules.arrays(), "roots": self.roots, "coefficients": self.coefficients}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A state as a policy sees it."""

    features: tuple[float, ...]
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A train episode under every rule.

    Attributes:
        brought: Completion, cost and exposure under each rule.
        states: Some of the states under all of them, first the one in which the episode begins.
    """

    brought: tuple[tuple[float, float, float], ...]
    states: tuple[Seen, ...]


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
    brought, seen = [], list[Seen]()
    for number, tree in enumerate(trees):
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
        while env.session is not None and not env.session.ended:
            view, step = env.view(), env.session.step
            features = view.features()
            if not seen or uniform("watched", number, key.task, key.language, key.seed, step) < KEPT:
                seen.append(Seen(features=features, prompt=view.prompt()))
            env.take(decided(tree, features))
        total = episode_terms(env)
        brought.append((total.task, total.cost, total.exposure))
    return Watched(brought=tuple(brought), states=tuple(seen))


@lru_cache(maxsize=2)
def _env(settings: tuple[tuple[str, Any], ...]) -> DecisionEnv:
    return DecisionEnv(**dict(settings))


def guide_of(arrays: Mapping[str, NDArray[Any]]) -> Guide:
    """Returns what the arrays of a guide mean, all of them finite numbers.

    Raises:
        KeyError: if one is missing.
        ValueError: if they do not fit together.
    """
    rules = scorer_of("tree", {name: arrays[name] for name in TREE})
    assert isinstance(rules, Questions)
    roots, coefficients = arrays["roots"], arrays["coefficients"]
    if coefficients.ndim != 3 or not len(coefficients) or coefficients.shape[1:] != (len(roots), 3):
        raise ValueError("its coefficients have another shape")
    if roots.dtype.kind != "i" or roots.ndim != 1 or not len(roots) or not ((roots >= 0) & (roots < len(rules.feature))).all():
        raise ValueError("its rules begin nowhere")
    return Guide(rules=rules, roots=roots, coefficients=coefficients)


def guide(trees: Sequence[Node], episodes: Sequence[Watched], tasks: NDArray[Any], seed: int) -> Guide:
    """Returns what watching teaches.

    The strength of shrinking is that under which the rules that seem to suit an episode, by all other episodes, return most
    there, over preferences as training draws them. The strongest says that all tasks are alike.

    Args:
        trees: The rules.
        episodes: What was watched.
        tasks: Vectors of their tasks, shape (episodes, width); with a width of 0, all tasks count as one.
        seed: Draws the preferences.
    """
    generator = np.random.default_rng(seed)
    weights = np.array([AnyPreference().draw(generator) for _ in range(PREFERENCES)])
    weighing = np.concatenate([np.ones((PREFERENCES, 1)), -weights], axis=1).T
    brought = np.array([one.brought for one in episodes])
    wanted = (brought - brought.mean(axis=1, keepdims=True)).reshape(len(brought), -1)
    center, spread = tasks.mean(axis=0, dtype=np.float64), tasks.std(axis=0, dtype=np.float64)
    scale = np.where(spread > 1e-6, spread, np.inf) * max(1, tasks.shape[1]) ** 0.5
    basis = np.concatenate([np.ones((len(tasks), 1)), (tasks - center) / scale], axis=1)
    fits = []
    for ridge in RIDGES if tasks.shape[1] else RIDGES[:1]:
        fitted, left_out = _ridge(basis, wanted, ridge)
        chosen = (left_out.reshape(brought.shape) @ weighing).argmax(axis=1, keepdims=True)
        fits.append((float(np.take_along_axis(brought @ weighing, chosen, axis=1).mean()), ridge, fitted))
    coefficients = max(fits, key=lambda fit: fit[:2])[2].reshape(-1, *brought.shape[1:])
    coefficients[1:] /= scale[:, None, None]
    coefficients[0] -= np.tensordot(center, coefficients[1:], 1)
    rules, roots = tabled(trees)
    return Guide(rules=rules, roots=roots, coefficients=coefficients)


def _ridge(basis: Floats, wanted: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Returns coefficients, and what those without an episode say of it; column 0 is 1 and is not shrunk."""
    penalty = np.full(basis.shape[1], ridge)
    penalty[0] = 1e-6
    solved = np.linalg.solve(basis.T @ basis + np.diag(penalty), basis.T)
    influence = np.minimum((basis * solved.T).sum(axis=1), 0.99)[:, None]
    fitted = solved @ wanted
    return fitted, (basis @ fitted - influence * wanted) / (1 - influence)
