"""Writes the next turns of many chats at once, on one processor or many: of every chat only what is new is read."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.models.hf import LocalModel
from ec2_env.registry import require


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a model has read of one chat: the tokens, and of each layer keys and values of shape (1, heads, tokens, size)."""

    tokens: list[int]
    layers: list[tuple[Any, Any]]


class Decoder:
    """Writes the next turns of chats that go on from one call to the next.

    Only for models whose layers all attend to everything: what is remembered is put side by side, padded on the left.

    Args:
        chat: The model; its adapter may change between calls if `forget` is called.
        max_new_tokens: Longest turn.
        temperature: 0 is greedy decoding.
        draw: A `torch.Generator` for temperatures above 0.

    Raises:
        ConfigurationError: if the model has other layers.
    """

    def __init__(self, chat: LocalModel, max_new_tokens: int, temperature: float = 0.0, draw: Any = None) -> None:
        self.transformers = require("transformers", extra="local")
        self.chat, self.max_new_tokens, self.temperature, self.draw = chat, max_new_tokens, temperature, draw
        inner = chat.model.get_base_model() if hasattr(chat.model, "get_base_model") else chat.model
        self._memory_name = "cache" if "cache" in inspect.signature(inner.forward).parameters else "past_key_values"
        if set(getattr(chat.model.config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
            raise ConfigurationError(f"{chat.card.name} has layers with a window; chats of such models are not decoded together")
        self.stops = chat._stops()
        self._known: list[Remembered] = []

    def forget(self) -> None:
        """Forgets all chats."""
        self._known = []

    def reply(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """Returns the tokens of the next turn of each chat, the end of the turn included unless it grew too long.

        Args:
            prompts: The chats, in tokens. What the call before has read of them is not read again.
        """
        torch = require("torch", extra="local")
        with torch.inference_mode():
            read: dict[tuple[int, ...], tuple[Remembered, Any]] = {}
            for prompt in prompts:
                if tuple(prompt) not in read:
                    read[tuple(prompt)] = self._read(torch, prompt)
            chats = [read[tuple(prompt)] for prompt in prompts]
            written, memory = self._write(torch, [one for one, _ in chats], torch.cat([scores for _, scores in chats]))
        width = max(map(len, prompts))
        self._known = [
            _cut(memory, row, width - len(prompt), width + len(new) - 1, [*prompt, *new[:-1]])
            for row, (prompt, new) in enumerate(zip(prompts, written, strict=True))
        ]
        return written

    def _read(self, torch: Any, prompt: list[int]) -> tuple[Remembered, Any]:
        """Reads a chat to its end; returns what is remembered then, and the scores of the next token, shape (1, vocabulary)."""
        best = max(self._known, key=lambda one: _shared(one.tokens, prompt), default=None)
        known = min(_shared(best.tokens, prompt), len(prompt) - 1) if best is not None else 0
        memory = self.transformers.DynamicCache(config=self.chat.model.config)
        if best is not None and known:
            for number, (keys, values) in enumerate(best.layers):
                memory.update(keys[:, :, :known], values[:, :, :known], number)
        ids = torch.tensor([prompt[known:]], device=self.chat.model.device)
        output = self.chat.model(input_ids=ids, use_cache=True, logits_to_keep=1, **{self._memory_name: memory})
        return Remembered(prompt, [(layer.keys, layer.values) for layer in memory.layers]), output.logits[:, -1]

    def _write(self, torch: Any, chats: Sequence[Remembered], scores: Any) -> tuple[list[list[int]], Any]:
        """Returns what each chat goes on with, and what is remembered of all of them, side by side."""
        lengths = torch.tensor([len(chat.tokens) for chat in chats], device=scores.device)
        width = int(lengths.max())
        memory = self._side_by_side(torch, chats, width)
        mask = torch.arange(width, device=scores.device)[None] >= width - lengths[:, None]
        written: list[list[int]] = [[] for _ in chats]
        for step in range(self.max_new_tokens):
            chosen = self._choose(torch, scores.float())
            for new, token in zip(written, chosen.tolist(), strict=True):
                if not new or new[-1] not in self.stops:
                    new.append(token)
            if step + 1 == self.max_new_tokens or all(new[-1] in self.stops for new in written):
                break
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
            output = self.chat.model(
                input_ids=chosen[:, None],
                attention_mask=mask,
                position_ids=(lengths + step)[:, None],
                use_cache=True,
                logits_to_keep=1,
                **{self._memory_name: memory},
            )
            scores = output.logits[:, -1]
        return written, memory

    def _choose(self, torch: Any, scores: Any) -> Any:
        if self.temperature == 0:
            return scores.argmax(-1)
        chances = (scores / self.temperature).softmax(-1)
        return torch.multinomial(chances.cpu(), 1, generator=self.draw)[:, 0].to(scores.device)

    def _side_by_side(self, torch: Any, chats: Sequence[Remembered], width: int) -> Any:
        """Returns a memory of all chats, padded on the left, with room for the longest turn, so that nothing is copied later."""

        class Roomy(self.transformers.cache_utils.DynamicLayer):  # type: ignore[misc,name-defined]  # not typed, and imported late
            """A layer's memory that is written in place."""

            def __init__(self, keys: Any, values: Any) -> None:
                super().__init__()
                self.whole, self.used, self.is_initialized = (keys, values), width, True
                self.keys, self.values = keys[:, :, :width], values[:, :, :width]

            def update(self, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
                end = self.used + keys.shape[-2]
                for whole, new in zip(self.whole, (keys, values), strict=True):
                    whole[:, :, self.used : end] = new
                self.used, (self.keys, self.values) = end, (whole[:, :, :end] for whole in self.whole)
                return self.keys, self.values

        memory = self.transformers.DynamicCache(config=self.chat.model.config)
        memory.layers = []
        for number, (first, _) in enumerate(chats[0].layers):
            shape = (len(chats), first.shape[1], width + self.max_new_tokens, first.shape[3])
            keys, values = first.new_zeros(shape), first.new_zeros(shape)
            for row, chat in enumerate(chats):
                start = width - len(chat.tokens)
                keys[row, :, start:width], values[row, :, start:width] = (part[0] for part in chat.layers[number])
            memory.layers.append(Roomy(keys, values))
        return memory


def _shared(first: list[int], second: list[int]) -> int:
    """Returns the number of tokens that two chats begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))


def _cut(memory: Any, row: int, start: int, end: int, tokens: list[int]) -> Remembered:
    """Returns what is remembered of one chat."""
    layers = [
        (layer.keys[row : row + 1, :, start:end].clone(), layer.values[row : row + 1, :, start:end].clone())
        for layer in memory.layers
    ]
    return Remembered(tokens, layers)
