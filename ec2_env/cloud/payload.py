"""What a request to the cloud is made of, for each mode and each share of context."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ec2_env.actions import InvokeCloud
from ec2_env.models.base import Message
from ec2_env.prompts import ADVISE, AGENT, ASK, PLAN


@dataclass(frozen=True, slots=True)
class Payload:
    """One request: its messages, the tools that may be called, and all of its texts in the order in which they cross."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...]
    texts: tuple[str, ...]


def build_payload(request: InvokeCloud, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Payload:
    """Returns the payload of a request, before redaction.

    Args:
        request: What is asked, and how much context may cross.
        messages: The episode's transcript: a system message, the instruction, then the turns.
        tools: Schemas of the workspace's tools; they cross in mode `act` only.
    """
    role = {"plan": PLAN, "advise": ADVISE, "act": AGENT}[request.mode]
    asked = request.request or ("" if request.mode == "act" else ASK)
    context: Sequence[Message] = ()
    if request.share == "instruction":
        context = messages[1:2]
    elif request.share == "transcript":
        context = messages[1:]
    last = ({"role": "user", "content": asked},) if asked and (request.mode != "plan" or request.request) else ()
    whole = ({"role": "system", "content": role}, *context, *last)
    offered = tuple(tools) if request.mode == "act" else ()
    return Payload(whole, offered, texts_of(whole, offered))


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


def redacted(payload: Payload, redact: Callable[[str], str]) -> Payload:
    """Returns the payload with every text of every message but the first passed through `redact`."""
    messages = (payload.messages[0], *(_redact_message(message, redact) for message in payload.messages[1:]))
    return Payload(messages, payload.tools, texts_of(messages, payload.tools))


def _redact_message(message: Message, redact: Callable[[str], str]) -> Message:
    changed = dict(message)
    if isinstance(message.get("content"), str):
        changed["content"] = redact(message["content"])
    if message.get("tool_calls"):
        changed["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": redact(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
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
