"""A small language model, trained or not, that is only asked which of six digits comes next."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from inspect import signature
from itertools import takewhile
from pathlib import Path
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.models import smollm2
from ec2_env.registry import require

PROMPT_END = " "
"""What follows the env's prompt, so that the next token is a digit by itself."""
DIGITS = ("0", "1", "2", "3", "4", "5")
"""One for each `ec2_env.strategy.Decision`."""
BATCH = 24
"""Prompts in one forward pass."""
SHARED = 8
"""Tokens that the prompts of a pass have to begin with in common to be computed once for all of them."""


class DecisionModel:
    """A causal language model that is only asked which of six digits comes next.

    Args:
        model: A Transformers model, with or without a PEFT adapter.
        tokenizer: Its tokenizer; must have a token for each digit.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.digits: list[int] = [tokenizer.convert_tokens_to_ids(digit) for digit in DIGITS]
        self.read = 0
        """Tokens read so far."""
        self._known: dict[str, int] = {}
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._cache = "cache" if "cache" in signature(type(base).forward).parameters else "past_key_values"
        """What this version of Transformers calls the keys and values of earlier tokens."""

    def tokens(self, prompt: str) -> list[int]:
        """Returns the token ids of a prompt, up to where the digit comes."""
        ids: list[int] = self.tokenizer(prompt + PROMPT_END, add_special_tokens=False)["input_ids"]
        return ids

    def log_chances(self, rows: Sequence[Sequence[int]]) -> Any:
        """Returns the log probability of each decision among the six after each row of token ids.

        Equal rows are computed once, and what all rows begin with as well; gradients flow if the caller lets them.

        Returns:
            A tensor of shape (len(rows), 6).
        """
        torch = require("torch", extra="local")
        places = {row: place for place, row in enumerate(dict.fromkeys(map(tuple, rows)))}
        shared = self._shared(list(places))
        rests = [list(row[shared:]) for row in places]
        self.read += shared + sum(map(len, rests))
        width = max(map(len, rests))
        tensor = partial(torch.tensor, device=self.model.device)
        inputs = tensor([[0] * (width - len(row)) + row for row in rests])
        mask = tensor([[1] * shared + [0] * (width - len(row)) + [1] * len(row) for row in rests])
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, shared:]
        before: dict[str, Any] = {"use_cache": False}
        if shared:
            cache = require("transformers", extra="local").DynamicCache()
            before = {self._cache: cache, "use_cache": True}
            self.model(input_ids=tensor([next(iter(places))[:shared]]), logits_to_keep=1, **before)
            cache.batch_repeat_interleave(len(rests))
        logits = self.model(input_ids=inputs, attention_mask=mask, position_ids=positions, logits_to_keep=1, **before).logits
        chances = logits[:, -1, self.digits].float().log_softmax(-1)
        return chances[tensor([places[tuple(row)] for row in rows])]

    def _shared(self, rows: Sequence[Sequence[int]]) -> int:
        """Returns how many tokens all rows begin with, if it is worth a pass of its own; at least one token is left of each."""
        same = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False))))
        same = min(same, min(map(len, rows)) - 1)
        return same if len(rows) > 1 and same >= SHARED else 0

    def scores(self, prompts: Sequence[str]) -> list[list[float]]:
        """Returns the log probability of each decision among the six, shape (len(prompts), 6)."""
        torch = require("torch", extra="local")
        rows: list[list[float]] = []
        self.model.eval()
        for start in range(0, len(prompts), BATCH):
            with torch.no_grad():
                rows += self.log_chances([self.tokens(prompt) for prompt in prompts[start : start + BATCH]]).tolist()
        return rows

    def decide(self, prompts: Sequence[str]) -> list[int]:
        """Returns the likeliest decision for each prompt; a prompt that has been seen is not computed again."""
        fresh = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._known]
        for prompt, row in zip(fresh, self.scores(fresh), strict=True):
            self._known[prompt] = max(range(len(row)), key=row.__getitem__)
        return [self._known[prompt] for prompt in prompts]

    def forget(self) -> None:
        """Drops what is remembered of earlier prompts, after the model has been trained."""
        self._known.clear()


def shorten(model: Any, depth: int) -> None:
    """Keeps only the first `depth` layers of a model of Llama's kind; what follows them (norm, vocabulary) stays.

    Choosing one of six digits needs less than writing does, and most of the time of a small machine goes into layers.
    """
    model.model.layers = model.model.layers[:depth]
    model.config.num_hidden_layers = len(model.model.layers)
    if getattr(model.config, "layer_types", None):
        model.config.layer_types = model.config.layer_types[:depth]


@lru_cache(maxsize=4)
def load_decision_model(path: str) -> DecisionModel:
    """Loads a base model and the adapter trained on it; the same object for the same path.

    Args:
        path: Folder of the adapter, as `ec2-env train` writes it; "" for SmolLM2 as it is, untrained.

    Raises:
        ConfigurationError: if there is no adapter, or its base model has not been pulled.
        MissingExtra: if Transformers, PyTorch or PEFT is not installed.
    """
    torch = require("torch", extra="local")
    transformers = require("transformers", extra="local")
    peft = require("peft", extra="local")
    transformers.utils.logging.disable_progress_bar()
    base, depth = "smollm2", None
    if path:
        if not all((Path(path) / name).is_file() for name in ("adapter_config.json", "card.json")):
            raise ConfigurationError(f"{path} holds no adapter with a card; make one with: ec2-env train --quick --out {path}")
        base = peft.PeftConfig.from_pretrained(path).base_model_name_or_path
        depth = json.loads((Path(path) / "card.json").read_text(encoding="utf-8"))["plan"]["depth"]
    folder = smollm2.folder() if base == "smollm2" else Path(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if depth is not None:
        shorten(model, depth)
    if path:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PEFT uses an older name of Transformers
            model = peft.PeftModel.from_pretrained(model, path)
    return DecisionModel(model, tokenizer)
