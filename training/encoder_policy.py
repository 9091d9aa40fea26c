"""Policies with a head on a language-model encoder: what they read, and how they are kept.

A saved policy is a folder: `card.json`, `head.npz` with plain arrays, and an adapter if the layers were trained too. Nothing in
it is ever executed. As in `ec2_env.training.features_policy`, the preference is told in two of the numbers.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.strategy import Decision, View
from ec2_env.training.encoder_guide import Guide, guide_of
from ec2_env.training.encoder_text import SentenceEncoder, load_encoder
from ec2_env.training.features_policy import LARGEST, Preference
from ec2_env.training.scorers import COST, PRIVACY, SIZE, Floats

FORMAT = 1
"""Goes up when a folder of an earlier version would mean something else."""
Inputs = Literal["both", "numbers", "text"]
"""What the network of a head is shown. The preference is always among it. With "numbers", no text is looked at for anything."""
LEAD = 4.0
"""What the decision of a rule is ahead of the others, as a logit: with a network that says nothing it has a chance of 92%."""
HEAD = "head.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Scores decisions: the one of the rule that suits the task has a lead of `LEAD`, and a network says what to change of that.

    Attributes:
        inputs: What the network is shown.
        guide: Chooses the rule.
        center: Subtracted from what is shown.
        scale: Divides it then; above 0.
        layers: Weights of shape (in, out) and biases of shape (out,) of dense layers, with tanh between them.
    """

    inputs: Inputs
    guide: Guide
    center: Floats
    scale: Floats
    layers: tuple[tuple[Floats, Floats], ...]

    def scores(self, features: Floats, texts: NDArray[Any]) -> Floats:
        """Returns a score for each decision, shape (states, 6); the highest is taken.

        Args:
            features: Shape (states, len(NAMES)); the weights among them are those of the preference.
            texts: Vectors of the texts, shape (states, width of the encoder).
        """
        found: Floats = (shown(self.inputs, features, texts) - self.center) / self.scale
        for number, (weights, bias) in enumerate(self.layers):
            found = (np.tanh(found) if number else found) @ weights + bias
        found[np.arange(len(found)), self.led(features, texts)] += LEAD
        return found

    def led(self, features: Floats, texts: NDArray[Any]) -> list[int]:
        """Returns the decisions of the rules that suit; arguments as above."""
        return self.guide.decisions(features, texts[:, : texts.shape[1] // 2])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns what has to be kept."""
        layers = {f"{name}{n}": part for n, layer in enumerate(self.layers) for name, part in zip("wb", layer, strict=True)}
        return {"center": self.center, "scale": self.scale, **layers, **self.guide.arrays()}


def shown(inputs: Inputs, features: Floats, texts: NDArray[Any]) -> Floats:
    """Returns what a network is shown of states, shape (states, width): the preference, the other numbers, the text.

    Weights count by their size, up to about 1, as in `ec2_env.training.scorers.encoded`.

    Args:
        inputs: Which of it.
        features: Shape (states, len(NAMES)); the weights among them are those of the preference.
        texts: Vectors of their texts, shape (states, width of the encoder); not looked at for "numbers".
    """
    others = np.delete(features, [COST, PRIVACY], axis=1)
    parts = {"numbers": [others], "text": [texts], "both": [others, texts]}[inputs]
    weights = features[:, [COST, PRIVACY]]
    return np.concatenate([weights / (weights + SIZE), *parts], axis=1)


@dataclass(frozen=True, kw_only=True)
class EncoderPolicy:
    """A strategy that reads a state in words and in numbers. The model is loaded at the first decision.

    Attributes:
        head: Scores decisions.
        reader: Base model, layers kept and folder of the adapter, see `ec2_env.training.encoder_text.load_encoder`; or the
            encoder itself.
        preference: Takes the place of the env's weights; None to be told what the env weighs.
        heavy: Tells suites that a decision takes a forward pass.
    """

    head: Head
    reader: tuple[str, int, str] | SentenceEncoder
    preference: Preference | None = None
    name: str = "learned"
    uses_edge: bool = True
    heavy: bool = True

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The encoder."""
        return self.reader if isinstance(self.reader, SentenceEncoder) else load_encoder(*self.reader)

    def decide(self, view: View) -> Decision:
        """Returns the decision of the highest score, the lowest number among equals."""
        return self._best([view])[0]

    def choose(self, envs: Sequence[DecisionEnv]) -> list[Decision]:
        """Decides for running episodes: what their texts have of new sentences goes through the encoder together."""
        return self._best([env.view() for env in envs])

    def _best(self, views: Sequence[View]) -> list[Decision]:
        features = told([view.features() for view in views], [self.preference] * len(views))
        scores = self.head.scores(features, read(self.head.inputs, self.encoder, [view.prompt() for view in views]))
        return [Decision(int(place)) for place in scores.argmax(axis=1)]

    def told(self, preference: Preference, name: str = "learned") -> EncoderPolicy:
        """Returns the policy under a preference, with the same encoder."""
        return replace(self, preference=preference, name=name)


def read(inputs: Inputs, encoder: SentenceEncoder, prompts: Sequence[str]) -> NDArray[Any]:
    """Returns the vectors of states' texts; of width 0 where no text is shown."""
    return np.zeros((len(prompts), 0)) if inputs == "numbers" else encoder.states(prompts)


def told(features: Sequence[Sequence[float]], preferences: Sequence[Preference | None]) -> Floats:
    """Returns features with the weights of preferences in place of those of the env, where there is a preference."""
    rows = np.array(features, np.float64).reshape(len(features), len(NAMES))
    for row, wanted in zip(rows, preferences, strict=True):
        if wanted is not None:
            row[COST], row[PRIVACY] = (min(5.0, weight) for weight in wanted)
    return rows


def save_head(path: Path, head: Head) -> None:
    """Writes a head to a file."""
    with path.open("wb") as file:
        np.savez(file, inputs=np.array(get_args(Inputs).index(head.inputs)), **head.arrays())  # type: ignore[arg-type]  # numpy types further arguments as flags


def load_head(path: Path) -> Head:
    """Reads a head.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it holds no head; KeyError, IndexError or BadZipFile likewise.
    """
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > LARGEST:
            raise ValueError("its arrays are larger than any head's")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: np.asarray(file[name]) for name in file.files}
    return _head(get_args(Inputs)[int(arrays.pop("inputs"))], arrays)


def save_encoder_policy(folder: Path, policy: EncoderPolicy, base: str, depth: int, card: Mapping[str, Any]) -> None:
    """Writes a policy; the adapter, if there is one, has to be saved beside it.

    Args:
        folder: Made if need be.
        policy: What was trained.
        base: "smollm2" or the folder of the model.
        depth: Layers of the model that are kept.
        card: How it was made and how it does; becomes part of `card.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = {"policy": "encoder", "format": FORMAT, "features": NAMES, "base_model": base, "depth": depth}
    told_all = {**about, "adapter": policy.encoder.adapted, **card}
    (folder / "card.json").write_text(json.dumps(told_all, indent=2) + "\n", encoding="utf-8")
    save_head(folder / HEAD, policy.head)


def is_encoder_policy(folder: Path) -> bool:
    """Says whether a folder holds a policy with a head on an encoder."""
    return (folder / HEAD).is_file()


@lru_cache(maxsize=16)
def load_encoder_policy(folder: str) -> EncoderPolicy:
    """Returns the policy of a folder that `save_encoder_policy` wrote; read once in a process.

    Raises:
        ConfigurationError: if it cannot be read, is no policy, or was trained on other features than there are now.
    """
    path = Path(folder)
    try:
        card = json.loads((path / "card.json").read_text(encoding="utf-8"))
        if card["format"] != FORMAT or card["features"] != list(NAMES):
            raise ValueError("it was trained on other features than this version has")
        reader = (str(card["base_model"]), int(card["depth"]), folder if card["adapter"] else "")
        return EncoderPolicy(head=load_head(path / HEAD), reader=reader)
    except (OSError, KeyError, IndexError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        again = f"make one with: ec2-env train --method encoder --out {folder}"
        raise ConfigurationError(f"{folder} holds no policy with an encoder ({error}); {again}") from error


def _head(inputs: Inputs, arrays: Mapping[str, NDArray[Any]]) -> Head:
    """Returns what arrays mean.

    Raises:
        KeyError: if one is missing.
        ValueError: if they do not fit together.
    """
    if not all(array.dtype.kind in "fi" and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("its arrays hold something else than finite numbers")
    layers = tuple((arrays[f"w{n}"], arrays[f"b{n}"]) for n in range(sum(name[0] == "w" for name in arrays)))
    center, scale = arrays["center"], arrays["scale"]
    ends = [len(center) if center.ndim == 1 else 0, *(len(bias) for _, bias in layers)]
    shapes = [(weights.shape, bias.shape) for weights, bias in layers]
    fits = layers and ends[-1] == len(Decision) and shapes == [((a, b), (b,)) for a, b in pairwise(ends)]
    if not fits or scale.shape != center.shape or (scale <= 0).any():
        raise ValueError("its layers do not fit together")
    return Head(inputs=inputs, guide=guide_of(arrays), center=center, scale=scale, layers=layers)
