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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES, preferring
from ec2_env.reward import RewardWeights
from ec2_env.strategy import Decision, View
from ec2_env.training.scorers import COST, PRIVACY, Scorer, scorer_of

FORMAT = 1
"""Goes up when a folder of an earlier version would mean something else."""
LARGEST = 64 * 2**20
"""Bytes of arrays beyond which a file is refused."""


class Preference(NamedTuple):
    """Weights of cost and privacy that a policy is told, against a weight of 1 for completion."""

    cost: float
    privacy: float

    def told(self, prompt: str) -> str:
        """Returns a prompt for a language-model policy as it would be under these weights."""
        return preferring(prompt, RewardWeights(cost=self.cost, privacy=self.privacy))


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
        return FeaturePolicy(scorer=scorer_of(card["policy"], arrays), preference=preference)
    except (OSError, KeyError, IndexError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{folder} holds no policy on features ({error}); {again}") from error
