"""Fits a chat into a context window, by a rule that is stated and the same for every model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ec2_env.models.base import Message
from ec2_env.models.payload import arguments_text, function_of

TURN_TOKENS = 16
"""Allowance for the role and the delimiters of one message."""
CUT = "[cut: too long for the context]"
_SHORTEST = 2 * len(CUT)


def estimated_tokens(text: str) -> int:
    """Returns one token for every 3 bytes of UTF-8, rounded up: more than today's vocabularies need for English or Chinese."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def fit(messages: Sequence[Message], max_tokens: int, count: Callable[[str], int] = estimated_tokens) -> list[Message]:
    """Returns the chat cut to at most `max_tokens`, or as near as its shape allows.

    In this order, and only as far as needed: the oldest tool results are emptied (never the newest one); the oldest exchanges
    (an assistant turn and what follows it up to the next) are dropped, except the newest; the longest texts are halved, keeping
    their beginnings and ends; the arguments of the calls that are left are emptied. Every result keeps the call that it answers.
    Messages are not changed in place.

    Args:
        messages: The chat, oldest first.
        max_tokens: Size to fit, `TURN_TOKENS` for each message included.
        count: Tokens of a text.
    """
    chat = list(messages)
    sizes = [_size(message, count) for message in chat]
    results = [i for i, message in enumerate(chat) if message.get("role") == "tool"]
    for i in results[:-1]:
        if sum(sizes) <= max_tokens:
            return chat
        chat[i] = chat[i] | {"content": CUT}
        sizes[i] = _size(chat[i], count)
    while sum(sizes) > max_tokens and (exchange := _oldest_exchange(chat)) is not None:
        del chat[exchange], sizes[exchange]
    while sum(sizes) > max_tokens:
        longest = max(range(len(chat)), key=lambda i: len(_content(chat[i])))
        content = _content(chat[longest])
        if len(content) <= _SHORTEST:
            return _without_arguments(chat) if any(message.get("tool_calls") for message in chat) else chat
        keep = len(content) // 4
        chat[longest] = chat[longest] | {"content": f"{content[:keep]}{CUT}{content[-keep:]}" if keep > len(CUT) else CUT}
        sizes[longest] = _size(chat[longest], count)
    return chat


def _size(message: Message, count: Callable[[str], int]) -> int:
    calls: Sequence[dict[str, Any]] = message.get("tool_calls") or ()
    texts = [_content(message)]
    for call in calls:
        function = function_of(call)
        texts.append(f"{function.get('name')} {arguments_text(function.get('arguments'))}")
    return sum(count(text) for text in texts) + TURN_TOKENS * len(texts)


def _without_arguments(chat: Sequence[Message]) -> list[Message]:
    """Returns the chat with empty arguments in all calls: nothing else in it can be made shorter."""
    return [
        message | {"tool_calls": [_emptied(call) for call in message.get("tool_calls") or ()]}
        if message.get("tool_calls")
        else message
        for message in chat
    ]


def _emptied(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "function": {**function_of(call), "arguments": "{}"}}


def _content(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "" if content is None else str(content)


def _oldest_exchange(chat: Sequence[Message]) -> slice | None:
    starts = [i for i, message in enumerate(chat) if message.get("role") == "assistant"]
    return slice(starts[0], starts[1]) if len(starts) > 1 else None
