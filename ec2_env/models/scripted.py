"""A model that says what it was told to say: `scripted:FILE.json`, for tests and examples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message, ModelCard, Reply
from ec2_env.models.loading import Loader
from ec2_env.models.payload import read_card, read_reply

FORM = 'scripted:FILE.json, a list of replies or {"card": {...}, "replies": [...]}'
_CARD = ModelCard(name="scripted", family="o200k")


class ScriptedModel:
    """Gives fixed replies in order, one for each assistant turn; the last one repeats.

    Which reply comes next is read off the chat (the number of assistant turns in it), so the model has no state and episodes may
    share it, interleave and branch.

    Args:
        replies: `Reply` objects, mappings with their fields, single calls `{"name", "arguments"}`, or bare texts.
        card: What the accounting sees.

    Raises:
        ConfigurationError: if there is no reply, or one cannot be read.
    """

    def __init__(self, replies: Sequence[Reply | Mapping[str, Any] | str], card: ModelCard = _CARD) -> None:
        if not replies:
            raise ConfigurationError("a scripted model needs at least one reply")
        self.replies: tuple[Reply, ...] = tuple(read_reply(reply) for reply in replies)
        self._card = card

    @property
    def card(self) -> ModelCard:
        return self._card

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the reply whose position is the number of assistant turns in `messages`."""
        turns = sum(1 for message in messages if message.get("role") == "assistant")
        return self.replies[min(turns, len(self.replies) - 1)]


def _load(rest: str) -> ScriptedModel:
    path = Path(rest).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"no file {rest!r}; a scripted model is written {FORM}")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"{rest} is not JSON: {error}; expected {FORM}") from error
    if isinstance(data, list):
        data = {"replies": data}
    if not isinstance(data, dict) or not isinstance(data.get("replies"), list):
        raise ConfigurationError(f"{rest} holds no replies; expected {FORM}")
    return ScriptedModel(data["replies"], read_card(data["card"]) if "card" in data else _CARD)


LOADER = Loader(load=_load, form=FORM)
