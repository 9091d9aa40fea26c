"""What a request to the cloud is made of, for each mode and each share of context."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ec2_env.actions import InvokeCloud, Share
from ec2_env.cloud.relevance import relevant
from ec2_env.models.base import Message
from ec2_env.prompts import ADVISE, AGENT, ASK, PLAN


@dataclass(frozen=True, slots=True)
class Payload:
    """One request: its messages, the tools that may be called, and all of its texts in the order in which they cross."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...]
    texts: tuple[str, ...]


class Transcript:
    """An episode's messages as they may cross, each prepared once: with its text, and redacted if there is a `change`.

    Args:
        change: Replaces sensitive values in a text; None to leave texts as they are.
    """

    __slots__ = ("_change", "messages", "texts")

    def __init__(self, change: Callable[[str], str] | None = None) -> None:
        self._change = change
        self.messages: list[Message] = []
        self.texts: list[str] = []

    def catch_up(self, messages: Sequence[Message]) -> None:
        """Takes in the messages that are new; the transcript of an episode only grows."""
        fresh = messages[len(self.messages) :]
        if self._change is not None and len(fresh) > 1:
            for message in fresh:  # a value that a later message gives away has to be hidden in the earlier ones, too
                self.last(message)
        for message in fresh:
            self._add(message)

    def fork(self, change: Callable[[str], str] | None = None) -> Transcript:
        """Returns an independent copy, which goes on with its own `change`."""
        other = Transcript(change)
        other.messages, other.texts = list(self.messages), list(self.texts)
        return other

    def last(self, message: Message) -> tuple[Message, str]:
        """Returns one more message, prepared like the others, without keeping it."""
        changed = message if self._change is None else _redact_message(message, self._change)
        return changed, message_text(changed)

    def _add(self, message: Message) -> None:
        changed, text = self.last(message)
        self.messages.append(changed)
        self.texts.append(text)


def build_payload(request: InvokeCloud, transcript: Transcript, tools: tuple[dict[str, Any], ...]) -> Payload:
    """Returns the payload of a request.

    Args:
        request: What is asked, and how much context may cross.
        transcript: The episode so far: a system message, the instruction, then the turns.
        tools: Schemas of the workspace's tools; they cross in mode `act` only.
    """
    role = {"plan": PLAN, "advise": ADVISE, "act": AGENT}[request.mode]
    asked = request.request or (ASK if request.mode == "advise" else "")
    last = [transcript.last({"role": "user", "content": asked})] if asked else []
    offered = tools if request.mode == "act" else ()
    context, said = _shared(request.share, transcript, last[0][1] if request.request else "")
    messages = ({"role": "system", "content": role}, *context, *(message for message, _ in last))
    texts = (*((_schema_text(offered),) if offered else ()), role, *said, *(text for _, text in last))
    return Payload(messages, offered, texts)


def _shared(share: Share, transcript: Transcript, asked: str) -> tuple[Sequence[Message], Sequence[str]]:
    """Returns the messages of the transcript that cross, and their texts."""
    match share:
        case "request":
            return (), ()
        case "instruction":
            return transcript.messages[1:2], transcript.texts[1:2]
        case "transcript":
            return transcript.messages[1:], transcript.texts[1:]
        case "relevant":
            whole = transcript.messages[1:]
            kept = relevant(whole, asked)
            texts = transcript.texts[1:]
            return kept, [text if new is old else message_text(new) for new, old, text in zip(kept, whole, texts, strict=True)]


def texts_of(messages: Sequence[Message], tools: tuple[dict[str, Any], ...]) -> tuple[str, ...]:
    """Returns every text that crosses, tool schemas first, then one text a message."""
    schemas = (_schema_text(tools),) if tools else ()
    return (*schemas, *map(message_text, messages))


def message_text(message: Message) -> str:
    """Returns all that a message says: its content and the calls it makes."""
    content = message.get("content") or ""
    calls = message.get("tool_calls")
    if not calls:
        return str(content)
    return "\n".join([content, *(f"{call['function']['name']}({call['function']['arguments']})" for call in calls)]).lstrip("\n")


def _redact_message(message: Message, redact: Callable[[str], str]) -> Message:
    changed = dict(message)
    if message.get("content") is not None:
        changed["content"] = _redacted(message["content"], redact)
    if message.get("tool_calls"):
        changed["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _redacted(call["function"]["arguments"], redact)}}
            for call in message["tool_calls"]
        ]
    return changed


def _redacted(text: object, redact: Callable[[str], str]) -> str:
    """Returns a text redacted. What is no text, before or after, must not cross.

    Raises:
        TypeError: if `text` is no text, or the engine returns none.
    """
    changed = redact(text) if isinstance(text, str) else None
    if not isinstance(changed, str):
        raise TypeError("redaction takes a text and returns a text")
    return changed


_schema_texts: dict[int, tuple[tuple[dict[str, Any], ...], str]] = {}


def _schema_text(tools: tuple[dict[str, Any], ...]) -> str:
    """Returns the schemas as JSON; remembers the text by the identity of the tuple, which is kept alive with it."""
    known = _schema_texts.get(id(tools))
    if known is None or known[0] is not tools:
        if len(_schema_texts) > 256:
            _schema_texts.clear()
        known = _schema_texts[id(tools)] = tools, json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    return known[1]
