"""Reads answers of OpenAI's chat protocol as vendors and servers really give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ec2_env.models.base import Reply, Usage
from ec2_env.models.calltext import MAX_CALLS, read_calls, split_thoughts
from ec2_env.models.entropy import top_entropy
from ec2_env.models.payload import cleaned, function_of
from ec2_env.models.window import estimated_tokens

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_HUGE = 1e12
"""No count of tokens and no logarithm is so large."""


class Unusable(ValueError):
    """An answer that is JSON but not what the protocol says."""


def read_answer(answer: Any, tools: Sequence[Mapping[str, Any]], protocol: Literal["native", "text"]) -> Reply:
    """Returns an answer's reply.

    Thoughts, whether in a field of their own (`reasoning_content`, `reasoning`) or between `<think>` tags, are kept apart from
    the text. In the protocol `native`, a call that the endpoint left in the text is read only if it stands in a known format.

    Args:
        answer: The decoded body.
        tools: Schemas that were offered; none if no call can come.
        protocol: How the tools were offered.

    Raises:
        Unusable: if there is no message in it.
    """
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise Unusable("without choices")
    message = cleaned(choice["message"])
    thoughts, text = split_thoughts(_content(message))
    reasoning = "\n".join(filter(None, [_reasoning(message), thoughts]))
    calls = native_calls(message)
    if not calls and tools:
        calls = read_calls(text, tools, tagged=protocol == "native")
    usage = read_usage(answer)
    return Reply(
        text=text.strip(),
        calls=calls,
        usage=usage,
        entropy=first_entropy(choice),
        thinking_tokens=0 if usage else estimated_tokens(reasoning),
        reasoning=reasoning,
    )


def native_calls(message: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Returns the calls of a message's own fields, those that cannot be read left out; `MAX_CALLS` at most."""
    entries = message.get("tool_calls")
    entries = entries if isinstance(entries, list) else []
    if not entries and isinstance(message.get("function_call"), Mapping):
        entries = [message["function_call"]]  # the protocol's first form, which some servers still speak
    calls = []
    for call in entries[:MAX_CALLS]:
        function = function_of(call) if isinstance(call, Mapping) else {}
        if isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            calls.append({"name": function["name"], "arguments": arguments if isinstance(arguments, dict | str) else {}})
    return tuple(calls)


def read_usage(answer: Mapping[str, Any]) -> Usage | None:
    """Returns what an answer says of its tokens, or None if it does not.

    Cached input: `prompt_tokens_details.cached_tokens` (OpenAI, vLLM, llama.cpp), `prompt_cache_hit_tokens` (DeepSeek),
    `cached_tokens` (Moonshot) or `cache_read_input_tokens`. Thinking is part of `completion_tokens`, except where only both
    together make up `total_tokens`.
    """
    usage = answer.get("usage")
    prompt = _whole(usage, "prompt_tokens")
    if not isinstance(usage, Mapping) or prompt is None:
        return None
    found = (
        _whole(usage.get("prompt_tokens_details"), "cached_tokens"),
        *(_whole(usage, name) for name in ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")),
    )
    cached = min(max((value for value in found if value is not None), default=0), prompt)
    output = _whole(usage, "completion_tokens") or 0
    details = usage.get("completion_tokens_details")
    reasoning = _whole(details, "reasoning_tokens") or _whole(usage, "reasoning_tokens") or 0
    total = _whole(usage, "total_tokens")
    if reasoning and total == prompt + output + reasoning:
        output += reasoning
    return Usage(raw=prompt - cached, cached=cached, output=output, reasoning=min(reasoning, output))


def first_entropy(choice: Mapping[str, Any]) -> float | None:
    """Returns the entropy of the first token's most likely alternatives, or None if the choice does not list them.

    llama.cpp holds back a token that is only a part of a character and tells the alternatives of the part that completes it
    instead. They say nothing of the first token and do not count.
    """
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    first = tokens[0] if isinstance(tokens, list) and tokens else None
    top = first.get("top_logprobs") if isinstance(first, Mapping) else None
    if not isinstance(top, list):
        return None
    found = [entry for entry in top if isinstance(entry, Mapping) and _is_logarithm(entry.get("logprob"))]
    if found and _goes_on_within_a_character(max(found, key=lambda entry: float(entry["logprob"])).get("bytes")):
        return None
    return top_entropy(float(entry["logprob"]) for entry in found)


def _is_logarithm(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < _HUGE


def _goes_on_within_a_character(token: Any) -> bool:
    """Says whether a token, as a list of bytes, begins with one that begins no character in UTF-8."""
    return isinstance(token, list) and bool(token) and isinstance(token[0], int) and 0x80 <= token[0] < 0xC0


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type", "text") == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    if not content and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    return content if isinstance(content, str) else ""


def _reasoning(message: Mapping[str, Any]) -> str:
    found = (message.get(name) for name in _REASONING_FIELDS)
    return next((text for text in found if isinstance(text, str) and text), "")


def _whole(fields: Any, name: str) -> int | None:
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) and value < _HUGE else None
