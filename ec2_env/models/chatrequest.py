"""Writes requests of OpenAI's chat protocol so that strict endpoints accept them and they fit the model's window."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ec2_env.errors import EndpointError
from ec2_env.models.base import Message
from ec2_env.models.endpoint import EndpointOptions
from ec2_env.models.payload import arguments_text, cleaned, digest, function_of
from ec2_env.models.toolchat import chat_turns, render_tools, without_no_calls
from ec2_env.models.window import estimated_tokens, fit

_SMALLEST_ROOM = 128
_STRICT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class Ask(NamedTuple):
    """One completion, or a probe of so many tokens, that is wanted of the endpoint."""

    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]]
    logprobs: int
    probe_tokens: int = 0


def chat_request(
    name: str, options: EndpointOptions, ask: Ask, refused: frozenset[str] = frozenset(), scale: float = 1.0
) -> dict[str, Any]:
    """Returns the body of a request.

    Args:
        name: The model's name at the endpoint.
        options: How the endpoint is used.
        ask: What is wanted of it.
        refused: Parameters that the endpoint does not accept.
        scale: Shortens the chat further than the estimate of its tokens demands, 0 to 1.

    Raises:
        EndpointError: if the window has no room for a chat.
    """
    messages = _fitted(name, options, ask, scale)
    body: dict[str, Any] = {"model": name}
    if options.tools == "text":
        body["messages"] = chat_turns(messages, ask.tools)
    else:
        body["messages"] = [_message(message) for message in messages]
        if ask.tools:
            body["tools"] = _wrapped(ask.tools)
    if ask.logprobs > 0 and "logprobs" not in refused:
        body |= {"logprobs": True, "top_logprobs": ask.logprobs}
    wanted = {
        "temperature": 0.0 if ask.probe_tokens and "temperature" not in refused else options.temperature,
        "seed": options.seed,
        "max_completion_tokens" if "max_tokens" in refused else "max_tokens": ask.probe_tokens or options.max_tokens,
        "parallel_tool_calls": options.parallel_tool_calls if "tools" in body else None,
    }
    return {**cleaned(body), **{name: value for name, value in wanted.items() if value is not None}}


def _fitted(name: str, options: EndpointOptions, ask: Ask, scale: float) -> Sequence[Message]:
    """Returns the chat cut so that it fits the window together with the tools and the answer."""
    window = options.max_context_tokens
    messages = without_no_calls(ask.messages, ask.tools)
    if window is None:
        return messages
    answer = options.max_tokens or min(1024, window // 4)
    if options.tools == "text":
        described = estimated_tokens(render_tools(ask.tools)) + 64
    else:
        described = estimated_tokens(json.dumps(_wrapped(ask.tools), ensure_ascii=False, default=str)) if ask.tools else 0
    room = int((window - answer - described) * scale)
    if window - answer - described < _SMALLEST_ROOM:
        raise EndpointError(
            f"{name}: a window of {window} tokens has no room for a chat beside {described} of tools and {answer} for the "
            "answer; raise max_context_tokens, lower max_tokens, or describe the tools briefly with tools=text"
        )
    return fit(messages, room)


def _wrapped(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": function_of(tool)} for tool in tools]


def _message(message: Message) -> dict[str, Any]:
    """Returns a message as endpoints accept it: only known fields, arguments as JSON text, ids and names in their alphabets."""
    sent: list[dict[str, Any]] = []
    for position, call in enumerate(message.get("tool_calls") or ()):
        function = function_of(call)
        made_up = _NOT_IN_NAMES.sub("_", str(function.get("name")))[:64]  # a name that the model invented would be refused
        entry = {"name": made_up or "unknown", "arguments": arguments_text(function.get("arguments") or {})}
        sent.append({"id": _id(call.get("id") or f"call_{position}"), "type": "function", "function": entry})
    kept = {key: message[key] for key in ("role", "content", "name", "tool_call_id") if message.get(key) is not None}
    if "tool_call_id" in kept:
        kept["tool_call_id"] = _id(kept["tool_call_id"])
    return {**kept, "content": kept.get("content", ""), **({"tool_calls": sent} if sent else {})}


def _id(text: object) -> str:
    """Returns an id of nine letters and digits, which is what the strictest endpoints ask for; the same for the same text."""
    return str(text) if _STRICT_ID.fullmatch(str(text)) else digest(str(text))[:9]
