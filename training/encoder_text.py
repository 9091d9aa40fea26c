"""The first layers of a small language model read the text of a state, one sentence at a time and each sentence once.

Nearly every state of an episode has a text of its own, but its sentences recur: a few thousand of them make up hundreds of
thousands of states. The first one names the task; a state is its vector, and the mean of the others. Reading whole texts
would take most of the time of a training: twelve layers take about a millisecond a token on one core.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.features import OPTIONS
from ec2_env.models import smollm2
from ec2_env.models.choice import shorten
from ec2_env.registry import require

LEAD = "\n"
"""Stands before each sentence. Models of Llama's kind use the first token as a place to look at when nothing else matters, so its
state says nothing of the text and is left out of the mean."""
BATCH = 32
"""Sentences in one forward pass. All have the same number of tokens: padding would change the last digits of a state."""
_PREFERENCE = re.compile(r" ?Cost matters [^.\n]*\.")
_ENDS = re.compile(r"(?<=\.)\s+")
Vectors = NDArray[np.float32]


def sentences(prompt: str) -> tuple[str, ...]:
    """Returns the sentences of a prompt that describe the state, the task by itself first.

    The list of decisions is the same everywhere, and a policy is told its preference in numbers, so both are left out.
    """
    text = _PREFERENCE.sub("", prompt.removeprefix(OPTIONS).removesuffix("Choice:")).strip()
    first, *others = _ENDS.split(text)
    task, _, step = first.rpartition(", ")
    return (f"{task}.", step, *others)


class SentenceEncoder:
    """Turns sentences into vectors and remembers them.

    Args:
        model: A causal language model of Llama's kind, with or without a PEFT adapter; only its layers are used.
        tokenizer: Its tokenizer.
        folder: Where the model, without the adapter, is.
    """

    def __init__(self, model: Any, tokenizer: Any, folder: Path) -> None:
        self.model = model.eval()
        self.tokenizer, self.folder = tokenizer, folder
        self.layers = (model.get_base_model() if hasattr(model, "get_base_model") else model).model
        self._known: dict[str, Vectors] = {}

    @property
    def width(self) -> int:
        """Length of the vector of a state."""
        return 2 * int(self.layers.config.hidden_size)

    @property
    def adapted(self) -> bool:
        """Whether there is an adapter."""
        return hasattr(self.model, "peft_config")

    def states(self, prompts: Sequence[str]) -> Vectors:
        """Returns the vector of each state, the first sentence's and the mean of the others'; shape (len(prompts), width)."""
        split = [sentences(prompt) for prompt in prompts]
        self.learn(sentence for parts in split for sentence in parts)
        if not split:
            return np.zeros((0, self.width), np.float32)
        known = [np.stack([self._known[sentence] for sentence in parts]) for parts in split]
        return np.stack([np.concatenate([rows[0], rows[1:].mean(axis=0)]) for rows in known])

    def means(self, prompts: Sequence[str]) -> Any:
        """Returns what `states` does as a tensor through which gradients pass, and remembers nothing."""
        torch = require("torch", extra="local")
        split = [sentences(prompt) for prompt in prompts]
        places = {text: place for place, text in enumerate(dict.fromkeys(text for parts in split for text in parts))}
        shares = torch.zeros((len(split), len(places)))
        for row, parts in zip(shares, split, strict=True):
            for text in parts[1:]:
                row[places[text]] += 1 / (len(parts) - 1)
        vectors = self.vectors(list(places))
        return torch.cat([vectors[[places[parts[0]] for parts in split]], shares @ vectors], dim=1)

    def learn(self, texts: Iterable[str]) -> None:
        """Computes the vectors of sentences that are not known yet."""
        torch = require("torch", extra="local")
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        with torch.no_grad():
            found = self.vectors(fresh)
        self._known.update(zip(fresh, found.numpy(), strict=True))

    def vectors(self, texts: Sequence[str]) -> Any:
        """Returns a tensor with the mean state of each text's tokens, shape (len(texts), width); gradients pass through."""
        torch = require("torch", extra="local")
        lead = self._tokens(LEAD)
        ids = [lead + self._tokens(text) for text in texts]
        found: list[Any] = [None] * len(ids)
        for places in same_length(ids):
            states = self.layers(input_ids=torch.tensor([ids[place] for place in places]), use_cache=False).last_hidden_state
            means = states[:, len(lead) :].float().mean(dim=1)
            for place, mean in zip(places, means, strict=True):
                found[place] = mean
        return torch.stack(found) if found else torch.zeros((0, self.width // 2))

    def forget(self) -> None:
        """Drops what is remembered, after the model has been trained."""
        self._known.clear()

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def same_length(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns the places of rows in groups of one length, at most `BATCH` to a group."""
    by_length: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(place)
    groups = [places for _, places in sorted(by_length.items())]
    return [places[start : start + BATCH] for places in groups for start in range(0, len(places), BATCH)]


def fresh_encoder(folder: Path, depth: int) -> SentenceEncoder:
    """Returns an encoder of the first layers of a model as it is.

    Args:
        folder: Of the model.
        depth: Layers that are kept.

    Raises:
        MissingExtra: if Transformers or PyTorch is not installed.
    """
    torch = require("torch", extra="local")
    transformers = require("transformers", extra="local")
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    shorten(model, depth)
    return SentenceEncoder(model, transformers.AutoTokenizer.from_pretrained(folder), folder)


@lru_cache(maxsize=4)
def load_encoder(base: str, depth: int, adapter: str) -> SentenceEncoder:
    """Returns the encoder of a saved policy; the same object for the same arguments.

    Args:
        base: "smollm2" or the folder of a model.
        depth: Layers that are kept.
        adapter: Folder of the adapter; "" if there is none.

    Raises:
        ConfigurationError: if SmolLM2 has not been pulled.
        MissingExtra: if Transformers, PyTorch or PEFT is not installed.
    """
    encoder = fresh_encoder(smollm2.folder() if base == "smollm2" else Path(base), depth)
    if not adapter:
        return encoder
    peft = require("peft", extra="local")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT uses an older name of Transformers
        model = peft.PeftModel.from_pretrained(encoder.model, adapter)
    return SentenceEncoder(model, encoder.tokenizer, encoder.folder)
