"""A small decision tree that is grown on the values of decisions: what a policy as simple as that gets out of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ec2_env.features import NAMES
from ec2_env.strategy import Decision, View


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a branch: one decision."""

    decision: int


@dataclass(frozen=True, slots=True)
class Split:
    """A question to one feature: `below` answers up to and including the threshold, `above` beyond it."""

    feature: int
    threshold: float
    below: Node
    above: Node


Node = Leaf | Split


def grow(features: NDArray[np.float64], values: NDArray[np.float64], depth: int, leaf: int) -> Node:
    """Returns the tree that greedily raises the total value of the decisions it takes.

    CART (Breiman et al. 1984) with the value of the best single decision in place of purity: a wrong decision costs what it
    loses, not one error. Every threshold of every feature is tried.

    Args:
        features: Shape (states, features).
        values: Value of each decision, shape (states, 6).
        depth: Most questions from the root to a leaf.
        leaf: Fewest states on either side of a question.
    """
    totals = values.sum(axis=0)
    here = Leaf(int(totals.argmax()))
    found = best_split(features, values, leaf) if depth else None
    if found is None or found[0] <= totals.max() + 1e-9:
        return here
    _, feature, threshold = found
    under = features[:, feature] <= threshold
    below = grow(features[under], values[under], depth - 1, leaf)
    above = grow(features[~under], values[~under], depth - 1, leaf)
    return below if below == above else Split(feature, threshold, below, above)


def best_split(features: NDArray[np.float64], values: NDArray[np.float64], leaf: int) -> tuple[float, int, float] | None:
    """Returns total value, feature and threshold of the best question; None if none leaves enough states on both sides."""
    best: tuple[float, int, float] | None = None
    for feature in range(features.shape[1]):
        order = np.argsort(features[:, feature], kind="stable")
        column, sums = features[order, feature], values[order].cumsum(axis=0)
        ends = np.flatnonzero(column[1:] > column[:-1])
        ends = ends[(ends + 1 >= leaf) & (len(column) - ends - 1 >= leaf)]
        if not len(ends):
            continue
        reached = sums[ends].max(axis=1) + (sums[-1] - sums[ends]).max(axis=1)
        top = int(reached.argmax())
        if best is None or reached[top] > best[0] + 1e-9:
            best = (float(reached[top]), feature, float((column[ends[top]] + column[ends[top] + 1]) / 2))
    return best


def decided(tree: Node, features: Sequence[float]) -> int:
    """Returns the decision of a tree."""
    while isinstance(tree, Split):
        tree = tree.below if features[tree.feature] <= tree.threshold else tree.above
    return tree.decision


def described(tree: Node) -> str:
    """Returns a tree in words: `entropy <= 0.66 ? EDGE : ADVISE`."""
    if isinstance(tree, Leaf):
        return Decision(tree.decision).name
    sides = [f"({text})" if " ? " in (text := described(side)) else text for side in (tree.below, tree.above)]
    return f"{NAMES[tree.feature]} <= {tree.threshold:.3g} ? {sides[0]} : {sides[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePolicy:
    """A strategy that follows a tree."""

    tree: Node
    name: str = "tree"
    uses_edge: bool = True

    def decide(self, view: View) -> Decision:
        """Returns the decision of the tree in the state."""
        return Decision(decided(self.tree, view.features()))


def simple_trees() -> tuple[Node, ...]:
    """Returns trees of at most four questions that people would write: when to ask, what for, and whether to begin with a plan.

    The cloud is used when the entropy is high, when the edge model wants help, when it has not been used for some steps, always,
    or never; at any step, or only where the edge model is about to change something or to finish; in the clear, redacted, or in
    the clear where many amounts of money have been read.
    """
    edge = Leaf(Decision.EDGE)
    uses: list[Node] = [Leaf(int(decision)) for decision in Decision if decision not in (Decision.EDGE, Decision.PLAN)]
    uses += [_asking("amounts", 0.25, Leaf(Decision.ACT_REDACTED), Leaf(Decision.ACT))]
    triggers = [("entropy", nats / 3) for nats in (1.0, 1.3, 1.7, 2.1)] + [("wants_help", 0.5), ("steps_since_cloud", 0.25)]
    bodies: list[Node] = [edge, *uses, *(_asking(name, threshold, edge, use) for name, threshold in triggers for use in uses)]
    careful: list[Node] = [_asking("commits", 0.5, edge, body) for body in bodies[1:]]
    doubts = [_asking("entropy", nats / 3, edge, Leaf(Decision.ACT_REDACTED)) for nats in (1.0, 1.3, 1.7)]
    doubts += [_asking("commits", 0.5, edge, doubt) for doubt in doubts]
    mixed: list[Node] = [_asking("wants_help", 0.5, doubt, Leaf(Decision.ADVISE_REDACTED)) for doubt in doubts]
    planned = [_asking("step", 0.0, Leaf(Decision.PLAN), body) for body in (*bodies, *careful, *mixed)]
    return (*bodies, *planned)


def _asking(name: str, threshold: float, below: Node, above: Node) -> Node:
    return Split(NAMES.index(name), threshold, below, above)
