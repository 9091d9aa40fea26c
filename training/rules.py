"""Simple rules and what each brings: what a learner starts from, and what it falls back on.

The rules are those that people would write (`ec2_env.bench.landscape_tree.simple_trees`): when to use the cloud, for what, and
whether to begin with a plan. They race on train episodes. What an episode brings (completion, cost, exposure) does not depend on
the preference, so one race serves all: a rule stays in it while it is among the best under one of the preferences of a sweep
(successive halving, Karnin et al. 2013). All rules play the same episodes under the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ec2_env.bench.landscape_tree import Leaf, Node, TreePolicy, described, simple_trees
from ec2_env.envs import DecisionEnv
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.preferences import SWEEP
from ec2_env.training.scorers import Floats, Guided, Questions, Simple, encoded
from ec2_env.training.validation import RULES, held_out

HEATS = ((1, 4), (3, 2), (16, 1))
"""Heats: episodes of each rule, in multiples of the first heat's, and how many rules stay afterwards for each preference."""
NEVER = 100.0
"""A margin that no estimate reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules that are the best under some preference.

    Attributes:
        trees: The rules.
        terms: Mean completion, cost and exposure of an episode with each, shape (rules, 3).
    """

    trees: tuple[Node, ...]
    terms: Floats

    @classmethod
    def of(cls, told: Sequence[tuple[int, Sequence[float]]]) -> Rules:
        """Returns the rules that `told` returned."""
        every = simple_trees()
        return cls(trees=tuple(every[place] for place, _ in told), terms=np.array([terms for _, terms in told]))

    def told(self) -> list[tuple[int, list[float]]]:
        """Returns the place of each rule among all of them and its terms, as plain data."""
        every = simple_trees()
        return [(every.index(tree), terms) for tree, terms in zip(self.trees, self.terms.tolist(), strict=True)]

    def simple(self) -> Simple:
        """Returns the rules as arrays."""
        table, roots = tabled(self.trees)
        return Simple(table, roots, self.terms)

    def best(self, weights: RewardWeights) -> Node:
        """Returns the rule that returns most under the weights of a reward."""
        return self.trees[int((self.terms @ np.array([1.0, -weights.cost, -weights.privacy])).argmax())]

    def alone(self) -> Guided:
        """Returns a scorer that always follows the best rule."""
        width = encoded(np.zeros((1, len(NAMES)))).shape[1]
        return Guided(self.simple(), np.zeros((width, len(Decision), 3)), NEVER)

    def described(self) -> list[str]:
        """Says each rule in words, and what it brings."""
        return [
            f"{described(tree)}: completes {task:.3f} at cost {cost:.3f}, exposure {exposure:.3f}"
            for tree, (task, cost, exposure) in zip(self.trees, self.terms.tolist(), strict=True)
        ]


def raced(
    settings: Mapping[str, Any], count: int, episodes: int, seed: int, say: Callable[[str], None] = lambda text: None
) -> Rules:
    """Returns the rules that win.

    Args:
        settings: Arguments of `DecisionEnv`.
        count: How many rules start; fewer than there are for a quick look.
        episodes: Of each rule in the first heat.
        seed: Of the training; fixes the episodes.
        say: Is told after every heat.
    """
    env = DecisionEnv(**settings)
    every = simple_trees()
    places = np.unique(np.linspace(0, len(every) - 1, min(count, len(every))).round().astype(int))
    trees = [every[place] for place in places]
    keys = held_out(env, RULES, seed, HEATS[-1][0] * episodes)
    found: dict[Node, list[tuple[float, float, float]]] = {tree: [] for tree in trees}
    for multiple, kept in HEATS:
        for tree in trees:
            found[tree] += brought(env, tree, keys[len(found[tree]) : multiple * episodes])
        trees = winners(trees, np.array([np.mean(found[tree], axis=0) for tree in trees]), kept)
        say(f"  {len(trees)} rules after {multiple * episodes} episodes each")
    return Rules(trees=tuple(trees), terms=np.array([np.mean(found[tree], axis=0) for tree in trees]))


def brought(env: DecisionEnv, tree: Node, keys: Sequence[EpisodeKey]) -> list[tuple[float, float, float]]:
    """Returns completion, cost and exposure of episodes with a rule."""
    found = []
    for key in keys:
        play(env, TreePolicy(tree=tree), key)
        total = episode_terms(env)
        found.append((total.task, total.cost, total.exposure))
    return found


def winners(trees: Sequence[Node], terms: Floats, kept: int) -> list[Node]:
    """Returns the rules that are among the `kept` best under some preference of the sweep, in their order."""
    returns = terms @ np.array([(1.0, -wanted.cost, -wanted.privacy) for wanted in SWEEP]).T
    staying = {place for column in returns.T for place in np.argsort(-column, kind="stable")[:kept].tolist()}
    return [tree for place, tree in enumerate(trees) if place in staying]


def tabled(trees: Sequence[Node]) -> tuple[Questions, Any]:
    """Returns trees as one table, and the row where each begins."""
    rows: list[tuple[int, float, int, int, int]] = []

    def add(node: Node) -> int:
        place = len(rows)
        rows.append((-1, 0.0, 0, 0, node.decision) if isinstance(node, Leaf) else (node.feature, node.threshold, 0, 0, 0))
        if not isinstance(node, Leaf):
            below, above = add(node.below), add(node.above)
            rows[place] = (node.feature, node.threshold, below, above, 0)
        return place

    roots = np.array([add(tree) for tree in trees], dtype=np.int64)
    feature, threshold, below, above, decision = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (feature, below, above, decision)]
    return Questions(whole[0], np.array(threshold, dtype=np.float64), whole[1], whole[2], whole[3]), roots
