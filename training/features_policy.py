"""Policies on features, and how they are kept: numpy alone decides with them, in microseconds.

A saved policy is a folder. `card.json` says what it is and how it was made; `weights.npz` holds plain arrays. Nothing in either
is ever executed. Which trade-off a policy makes stands in two of its features, the weights of cost and privacy, so that one
policy covers all of them; a `Preference` sets these two whatever the env weighs.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.strategy import Decision, View

FORMAT = 1
"""Goes up when a folder of an earlier version would mean something else."""
LARGEST = 64 * 2**20
"""Bytes of arrays beyond which a file is refused."""
COST, PRIVACY = NAMES.index("cost_weight"), NAMES.index("privacy_weight")
HINGES = (0.9, 1.3, 1.7, 2.1)
"""Entropies in nats at which the score of a decision may bend."""
SIZE = 0.1
"""A weight that counts half in `encoded`."""
CROSSED = ("step", "planned", "advised", "cloud_acts", "private_values_not_sent", "written", "steps_since_cloud", "wants_help")
"""Features whose effect may depend on the entropy."""
Floats = NDArray[np.float64]


class Preference(NamedTuple):
    """Weights of cost and privacy that a policy is told, against a weight of 1 for completion."""

    cost: float
    privacy: float


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
class TermScores:
    """Estimates what each decision changes in completion, cost and exposure, and weighs that as the preference says.

    Attributes:
        coefficients: Shape (encoded features, 6, 3).
    """

    coefficients: Floats
    kind: str = "terms"

    def scores(self, features: Sequence[float]) -> Floats:
        """Returns the estimated return of each decision less that of EDGE."""
        changes = np.tensordot(encoded(np.asarray(features, np.float64)[None])[0], self.coefficients, 1)
        found: Floats = changes @ np.array([1.0, -features[COST], -features[PRIVACY]])
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the coefficients."""
        return {"coefficients": self.coefficients}


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
        row = 0
        while self.feature[row] >= 0:
            side = self.below if features[self.feature[row]] <= self.threshold[row] else self.above
            row = int(side[row])
        found: Floats = np.eye(len(Decision))[self.decision[row]]
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the columns."""
        return {name: getattr(self, name) for name in TREE}


TREE = ("feature", "threshold", "below", "above", "decision")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturePolicy:
    """A strategy that takes the decision of the highest score.

    Attributes:
        scorer: Scores decisions.
        preference: Takes the place of the env's weights; None to be told what the env weighs.
    """

    scorer: Scorer
    preference: Preference | None = None
    name: str = "learned"
    uses_edge: bool = True

    def decide(self, view: View) -> Decision:
        """Returns the decision of the highest score, the lowest number among equals."""
        return self.choose(view.features())

    def choose(self, features: Sequence[float]) -> Decision:
        """Returns the decision for features, see `ec2_env.features.NAMES`."""
        told = list(features)
        if self.preference is not None:
            told[COST], told[PRIVACY] = (min(5.0, weight) for weight in self.preference)
        return Decision(int(self.scorer.scores(told).argmax()))


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


def save_policy(folder: Path, scorer: Scorer, card: Mapping[str, Any], preference: Preference | None = None) -> None:
    """Writes a policy.

    Args:
        folder: Made if need be.
        scorer: Scores decisions.
        card: How it was made and how it does; becomes part of `card.json`.
        preference: Of the policy, if it is not to follow the env's weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    head = {"policy": scorer.kind, "format": FORMAT, "features": NAMES, "preference": preference and preference._asdict()}
    (folder / "card.json").write_text(json.dumps({**head, **card}, indent=2) + "\n", encoding="utf-8")
    np.savez(folder / "weights.npz", **scorer.arrays())  # type: ignore[arg-type]  # numpy types further arguments as flags


def is_feature_policy(folder: Path) -> bool:
    """Says whether a folder holds a policy on features, as against an adapter of a language model."""
    return (folder / "weights.npz").is_file()


@lru_cache(maxsize=16)
def load_policy(folder: str) -> FeaturePolicy:
    """Returns the policy of a folder that `save_policy` wrote; read once in a process.

    Raises:
        ConfigurationError: if it cannot be read, is no policy, or was trained on other features than there are now.
    """
    path = Path(folder)
    again = f"make one with: ec2-env train --method ppo --out {folder}"
    try:
        card = json.loads((path / "card.json").read_text(encoding="utf-8"))
        with zipfile.ZipFile(path / "weights.npz") as archive:
            if sum(part.file_size for part in archive.infolist()) > LARGEST:
                raise ValueError("its arrays are larger than any policy's")
        with np.load(path / "weights.npz", allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
        if card["format"] != FORMAT or card["features"] != list(NAMES):
            raise ValueError("it was trained on other features than this version has")
        told = card["preference"]
        preference = None if told is None else Preference(float(told["cost"]), float(told["privacy"]))
        return FeaturePolicy(scorer=_scorer(card["policy"], arrays), preference=preference)
    except (OSError, KeyError, IndexError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{folder} holds no policy on features ({error}); {again}") from error


def _scorer(kind: str, arrays: Mapping[str, NDArray[Any]]) -> Scorer:
    """Returns what arrays mean.

    Raises:
        KeyError: if one is missing.
        ValueError: if they do not fit together.
    """
    if not all(array.dtype.kind in "fi" and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("its arrays hold something else than finite numbers")
    if kind in ("tanh", "relu"):
        layers = tuple((arrays[f"w{n}"], arrays[f"b{n}"]) for n in range(len(arrays) // 2))
        ends = [len(NAMES), *(len(bias) for _, bias in layers)]
        shapes = [(weights.shape, bias.shape) for weights, bias in layers]
        if not layers or ends[-1] != len(Decision) or shapes != [((a, b), (b,)) for a, b in pairwise(ends)]:
            raise ValueError("its layers do not fit together")
        return Network(layers, "tanh" if kind == "tanh" else "relu")
    if kind == "terms":
        width = encoded(np.zeros((1, len(NAMES)))).shape[1]
        if arrays["coefficients"].shape != (width, len(Decision), 3):
            raise ValueError("its coefficients have another shape")
        return TermScores(arrays["coefficients"])
    if kind == "tree":
        return _tree(arrays)
    raise ValueError(f"it is of the unknown kind {kind!r}")


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
