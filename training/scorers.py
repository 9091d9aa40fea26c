"""What decides inside a policy on features: scores for the six decisions, made by numpy from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ec2_env.features import NAMES
from ec2_env.strategy import Decision

COST, PRIVACY = NAMES.index("cost_weight"), NAMES.index("privacy_weight")
HINGES = (0.9, 1.3, 1.7, 2.1)
"""Entropies in nats at which the score of a decision may bend."""
SIZE = 0.1
"""A weight that counts half in `encoded`."""
CROSSED = ("step", "planned", "advised", "cloud_acts", "private_values_not_sent", "written", "steps_since_cloud", "wants_help")
"""Features whose effect may depend on the entropy."""
Floats = NDArray[np.float64]


class Scorer(Protocol):
    """What decides inside a policy."""

    @property
    def kind(self) -> str:
        """Which kind it is, as the card says it."""
        ...

    def scores(self, features: Sequence[float]) -> Floats:
        """Returns a score for each decision, shape (6,); the highest is taken."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns what has to be kept."""
        ...


@dataclass(frozen=True, slots=True)
class Network:
    """A network of dense layers, the last of them linear.

    Attributes:
        layers: Weights of shape (in, out) and biases of shape (out,) of each layer.
        kind: What stands between the layers.
    """

    layers: tuple[tuple[Floats, Floats], ...]
    kind: Literal["tanh", "relu"] = "tanh"

    def scores(self, features: Sequence[float]) -> Floats:
        """Returns the output of the last layer."""
        found: Floats = np.asarray(features, np.float64)
        for number, (weights, bias) in enumerate(self.layers):
            if number:
                found = np.tanh(found) if self.kind == "tanh" else np.maximum(found, 0.0)
            found = found @ weights + bias
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the layers under numbered names."""
        return {f"{name}{n}": part for n, layer in enumerate(self.layers) for name, part in zip("wb", layer, strict=True)}


@dataclass(frozen=True, slots=True)
class Questions:
    """A decision tree as a table, a row for each node, the root first.

    Attributes:
        feature: Which feature is asked for; -1 in a leaf.
        threshold: The answer is yes up to and including it.
        below: Row to go on with if so; always a later one.
        above: Row to go on with if not; always a later one.
        decision: Of a leaf.
    """

    feature: NDArray[np.int64]
    threshold: Floats
    below: NDArray[np.int64]
    above: NDArray[np.int64]
    decision: NDArray[np.int64]
    kind: str = "tree"

    def scores(self, features: Sequence[float]) -> Floats:
        """Returns 1 for the decision of the leaf, 0 for the others."""
        found: Floats = np.eye(len(Decision))[self.answer(features)]
        return found

    def answer(self, features: Sequence[float], row: int = 0) -> int:
        """Returns the decision of the leaf that the questions from a row on lead to."""
        while self.feature[row] >= 0:
            side = self.below if features[self.feature[row]] <= self.threshold[row] else self.above
            row = int(side[row])
        return int(self.decision[row])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the columns."""
        return {name: getattr(self, name) for name in TREE}


TREE = ("feature", "threshold", "below", "above", "decision")


@dataclass(frozen=True, slots=True)
class Simple:
    """Simple rules, of which the preference chooses one.

    Attributes:
        table: The rules, one table for all.
        roots: Row of the table where each rule begins.
        terms: Completion, cost and exposure that each rule brings in an episode; shape (rules, 3).
    """

    table: Questions
    roots: NDArray[np.int64]
    terms: Floats

    def answer(self, features: Sequence[float]) -> int:
        """Returns the decision of the rule that returns most under the weights among the features."""
        told = np.array([1.0, -features[COST], -features[PRIVACY]])
        return self.table.answer(features, int(self.roots[(self.terms @ told).argmax()]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the rules and what they bring."""
        return {**self.table.arrays(), "roots": self.roots, "terms": self.terms}


@dataclass(frozen=True, slots=True)
class Guided:
    """Follows the simple rule that suits the preference, and leaves it where another decision is worth more by a margin.

    Attributes:
        rules: The rules.
        coefficients: Of what each decision changes in completion, cost and exposure; shape (encoded features, 6, 3).
        margin: By how much a decision has to be worth more than that of the rule, in units of the return.
    """

    rules: Simple
    coefficients: Floats
    margin: float
    kind: str = "guided"

    def scores(self, features: Sequence[float]) -> Floats:
        """Returns the estimated return of each decision less that of the rule's; the rule's own has the margin instead."""
        own = self.rules.answer(features)
        told = np.array([1.0, -features[COST], -features[PRIVACY]])
        found: Floats = np.tensordot(encoded(np.asarray(features, np.float64)[None])[0], self.coefficients, 1) @ told
        found -= found[own]
        found[own] = self.margin
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the rules, and what decisions change."""
        return {**self.rules.arrays(), "coefficients": self.coefficients, "margin": np.array(self.margin)}


@dataclass(frozen=True, slots=True)
class Advised:
    """A network that is also told what the simple rule for the preference would do, and at first does the same.

    Attributes:
        rules: The rules.
        network: Gets the features and the rule's decision as six numbers, of which one is 1.
        direct: What the rule's decision adds to the scores by itself, shape (6, 6).
    """

    rules: Simple
    network: Network
    direct: Floats
    kind: str = "advised"

    def scores(self, features: Sequence[float]) -> Floats:
        """Returns the scores of the network, with what the rule adds to them."""
        own = self.rules.answer(features)
        told: Floats = self.network.scores([*features, *np.eye(len(Decision))[own].tolist()]) + self.direct[own]
        return told

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the rules and the layers."""
        return {**self.rules.arrays(), **self.network.arrays(), "direct": self.direct}


def encoded(features: Floats) -> Floats:
    """Returns what linear scores are made of, shape (rows, encoded): 1, the features, bends in the entropy, products with it.

    Weights count by their size, up to about 1: what a decision changes depends on them only through what is done afterwards.
    """
    entropy = features[:, NAMES.index("entropy")] * 3
    bends = np.maximum(entropy[:, None] - np.array(HINGES), 0.0)
    own = features.copy()
    own[:, [COST, PRIVACY]] /= own[:, [COST, PRIVACY]] + SIZE
    crossed = features[:, [NAMES.index(name) for name in CROSSED]] * entropy[:, None]
    return np.concatenate([np.ones((len(features), 1)), own, bends, crossed], axis=1)


def scorer_of(kind: str, arrays: Mapping[str, NDArray[Any]]) -> Scorer:
    """Returns what arrays mean.

    Raises:
        KeyError: if one is missing.
        ValueError: if they do not fit together.
    """
    if not all(array.dtype.kind in "fi" and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("its arrays hold something else than finite numbers")
    if kind in ("tanh", "relu"):
        return _network(arrays, len(NAMES), "tanh" if kind == "tanh" else "relu")
    if kind == "tree":
        return _tree(arrays)
    if kind == "guided":
        return _guided(arrays)
    if kind == "advised":
        return _advised(arrays)
    raise ValueError(f"it is of the unknown kind {kind!r}")


def _network(arrays: Mapping[str, NDArray[Any]], width: int, kind: Literal["tanh", "relu"]) -> Network:
    layers = tuple((arrays[f"w{n}"], arrays[f"b{n}"]) for n in range(sum(name[0] == "w" for name in arrays)))
    ends = [width, *(len(bias) for _, bias in layers)]
    shapes = [(weights.shape, bias.shape) for weights, bias in layers]
    if not layers or ends[-1] != len(Decision) or shapes != [((a, b), (b,)) for a, b in pairwise(ends)]:
        raise ValueError("its layers do not fit together")
    return Network(layers, kind)


def _tree(arrays: Mapping[str, NDArray[Any]]) -> Questions:
    columns = feature, threshold, below, above, decision = [arrays[name] for name in TREE]
    tree = Questions(feature, threshold, below, above, decision)
    rows = np.arange(len(tree.feature))
    inner = tree.feature >= 0
    fits = len(rows) > 0 and all(column.shape == rows.shape for column in columns)
    if not fits or any(column.dtype.kind != "i" for column in (tree.feature, tree.below, tree.above, tree.decision)):
        raise ValueError("its tree is no table of nodes")
    later = all(((side > rows) & (side < len(rows)))[inner].all() for side in (tree.below, tree.above))
    if not later or (tree.feature >= len(NAMES)).any() or ((tree.decision < 0) | (tree.decision >= len(Decision))).any():
        raise ValueError("its tree leads nowhere")
    return tree


def _simple(arrays: Mapping[str, NDArray[Any]]) -> Simple:
    rules, roots, terms = _tree(arrays), arrays["roots"], arrays["terms"]
    if roots.dtype.kind != "i" or roots.ndim != 1 or not len(roots) or not ((roots >= 0) & (roots < len(rules.feature))).all():
        raise ValueError("its rules begin nowhere")
    if terms.shape != (len(roots), 3):
        raise ValueError("its rules are of another number")
    return Simple(rules, roots, terms)


def _guided(arrays: Mapping[str, NDArray[Any]]) -> Guided:
    coefficients, margin = arrays["coefficients"], arrays["margin"]
    width = encoded(np.zeros((1, len(NAMES)))).shape[1]
    if coefficients.shape != (width, len(Decision), 3) or margin.shape != ():
        raise ValueError("its coefficients have another shape")
    return Guided(_simple(arrays), coefficients, float(margin))


def _advised(arrays: Mapping[str, NDArray[Any]]) -> Advised:
    size = len(Decision)
    if arrays["direct"].shape != (size, size):
        raise ValueError("what its rules add has another shape")
    return Advised(_simple(arrays), _network(arrays, len(NAMES) + size, "tanh"), arrays["direct"])
