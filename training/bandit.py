"""Contextual bandit: what each decision would change, tried on copies of states, and two policies fitted to it. Numpy only.

In states of train episodes every decision is taken on copies, which go on with the episode's own simple rule to the end. What
comes of it (completion, cost, exposure) does not depend on any preference, so one set of samples serves all of them. All
decisions of a state are tried under the same luck, one that fits what the edge model shows (`ec2_env.training.teacher`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ec2_env.bench.landscape_rollouts import CONTINUATIONS, outcome
from ec2_env.bench.landscape_tree import Leaf, Node, grow
from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision
from ec2_env.training.features_policy import COST, PRIVACY, Floats, Questions, TermScores, encoded
from ec2_env.training.preferences import AnyPreference
from ec2_env.training.states import EXPLORE, advance, episode_keys
from ec2_env.training.teacher import likely_lucks

VALUED = 0.3
"""Share of the states of an episode that are valued: neighbors are much alike."""
CANDIDATES = 24
"""Fresh lucks among which those are taken that fit what the edge model shows."""
RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Strengths of shrinking, in states, that are tried."""
COPIES = 8
"""Preferences under which a state stands in the sample that a tree is grown on."""


@dataclass(frozen=True, slots=True)
class Samples:
    """States and what decisions brought there.

    Attributes:
        features: Shape (states, features).
        changes: Completion, cost and exposure from there on, less those of EDGE under the same luck; shape (states, 6, 3).
    """

    features: Floats
    changes: Floats


def sampled(
    settings: Mapping[str, Any], states: int, draws: int, seed: int, say: Callable[[str], None] = lambda text: None
) -> Samples:
    """Returns samples of the train split.

    Args:
        settings: Arguments of `DecisionEnv`.
        states: How many states.
        draws: Lucks under which every decision is tried.
        seed: Fixes episodes, exploration and which states are taken.
        say: Is told from time to time how far it is.
    """
    env = DecisionEnv(**settings)
    features: list[tuple[float, ...]] = []
    changes: list[Floats] = []
    for key in shuffled_keys(env, seed):
        for seen, found in valued_states(env, key, draws):
            features.append(seen)
            changes.append(found)
            if len(features) % 100 == 0:
                say(f"  {len(features)} states")
        if len(features) >= states:
            break
    return Samples(np.array(features[:states]), np.array(changes[:states]))


def shuffled_keys(env: DecisionEnv, seed: int) -> Iterator[EpisodeKey]:
    """Yields train episodes without end: all tasks and languages in a random order, then again with other instances."""
    for number in range(1_000 * seed, 1_000 * (seed + 1)):
        keys = list(episode_keys(env, "train", [number]))
        yield from sorted(keys, key=lambda key: uniform("bandit", key.task, key.language, key.seed))


def valued_states(env: DecisionEnv, key: EpisodeKey, draws: int) -> Iterator[tuple[tuple[float, ...], Floats]]:
    """Plays an episode with one of the simple rules and some random decisions; yields some of its states and their changes."""
    drawn = partial(uniform, "bandit states", key.task, key.language, key.seed)
    rule = CONTINUATIONS[int(drawn("rule") * len(CONTINUATIONS))]
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    while env.session is not None and not env.session.ended:
        step = env.session.step
        if drawn(step, "valued") < VALUED:
            lucks = likely_lucks(env, draws, CANDIDATES)
            found = np.array([[outcome(env, decision, rule, luck) for luck in lucks] for decision in Decision]).mean(axis=1)
            yield env.view().features(), found - found[0]
        by_rule = rule.decide(env.view())
        advance(env, Decision(int(drawn(step, "which") * len(Decision))) if drawn(step, "explore") < EXPLORE else by_rule)


def fit_terms(samples: Samples) -> TermScores:
    """Returns ridge regressions of the changes, the strength of shrinking chosen for each term by leaving one state out.

    Shrinking is towards the mean change of a decision. Completion is mostly luck and shrinks much, cost hardly.
    """
    rows = encoded(samples.features)
    scale = np.maximum(rows.std(axis=0), 0.05)
    center = rows.mean(axis=0)
    center[0], scale[0] = 0.0, 1.0
    basis = (rows - center) / scale
    coefficients = np.zeros((rows.shape[1], *samples.changes.shape[1:]))
    for term in range(samples.changes.shape[2]):
        wanted = samples.changes[:, :, term]
        _, fitted = min((_left_out(basis, wanted, ridge) for ridge in RIDGES), key=lambda pair: pair[0])
        coefficients[:, :, term] = fitted / scale[:, None]
        coefficients[0, :, term] = fitted[0] - (center[1:] / scale[1:]) @ fitted[1:]
    return TermScores(coefficients)


def _left_out(basis: Floats, wanted: Floats, ridge: float) -> tuple[float, Floats]:
    """Returns the mean square error on states left out one at a time, and the coefficients fitted to all; column 0 is 1."""
    penalty = np.full(basis.shape[1], ridge)
    penalty[0] = 1e-6
    solved = np.linalg.solve(basis.T @ basis + np.diag(penalty), basis.T)
    fitted = solved @ wanted
    influence = np.minimum((basis * solved.T).sum(axis=1), 0.99)
    return float((((wanted - basis @ fitted) / (1 - influence)[:, None]) ** 2).mean()), fitted


def fit_tree(samples: Samples, seed: int, depth: int = 5, leaf: float = 0.03) -> Questions:
    """Returns a tree that may also ask for the preference: every state stands in its sample under several.

    Args:
        samples: What to fit.
        seed: Draws the preferences.
        depth: Most questions from the root to a leaf.
        leaf: Fewest rows in a leaf, as a share of all.
    """
    generator = np.random.default_rng(seed)
    told = np.array([AnyPreference().draw(generator) for _ in range(COPIES * len(samples.features))])
    features = np.repeat(samples.features, COPIES, axis=0)
    features[:, [COST, PRIVACY]] = told
    changes = np.repeat(samples.changes, COPIES, axis=0)
    values = changes[:, :, 0] - changes[:, :, 1] * told[:, :1] - changes[:, :, 2] * told[:, 1:]
    values -= values.mean(axis=1, keepdims=True)
    return tabled(grow(features, values, depth, max(1, round(leaf * len(features)))))


def tabled(tree: Node) -> Questions:
    """Returns a tree as a table."""
    rows: list[tuple[int, float, int, int, int]] = []

    def add(node: Node) -> int:
        place = len(rows)
        rows.append((-1, 0.0, 0, 0, node.decision) if isinstance(node, Leaf) else (node.feature, node.threshold, 0, 0, 0))
        if not isinstance(node, Leaf):
            below, above = add(node.below), add(node.above)
            rows[place] = (node.feature, node.threshold, below, above, 0)
        return place

    add(tree)
    feature, threshold, below, above, decision = zip(*rows, strict=True)
    whole = partial(np.array, dtype=np.int64)
    return Questions(whole(feature), np.array(threshold), whole(below), whole(above), whole(decision))
