"""Tool calls for models that know only text: tools as a list in the system prompt, a call as one JSON object in the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ec2_env.models.base import Message
from ec2_env.models.payload import arguments_text, function_of

_SHAPE = 'Answer with exactly one JSON object and nothing else:\n{"name": "TOOL", "arguments": {"ARGUMENT": VALUE}}'


def render_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """Returns one line for each tool: `- name(argument: type, optional?: type): first line of its description`."""
    return "\n".join(_tool_line(function_of(tool)) for tool in tools)


NO_CALL = "invalid"
"""Name under which a transcript keeps a reply without a call that could be read."""


def without_no_calls(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[Message]:
    """Returns the chat as a model should see it that was answered without a call: what was wrong comes from the user.

    The transcript keeps such a reply as a call of a tool `invalid`, which does not exist. Small models repeat whatever stands
    there in their name, so nothing does.
    """
    if any(function_of(tool).get("name") == NO_CALL for tool in tools):
        return list(messages)
    wrong = {call.get("id") for message in messages for call in message.get("tool_calls") or () if _is_no_call(call)}
    shown: list[Message] = []
    for message in messages:
        if any(call.get("id") in wrong for call in message.get("tool_calls") or ()):
            continue
        if message.get("role") == "tool" and message.get("tool_call_id") in wrong:
            shown.append({"role": "user", "content": message.get("content")})
        else:
            shown.append(message)
    return shown


def _is_no_call(call: Mapping[str, Any]) -> bool:
    return function_of(call).get("name") == NO_CALL and call.get("id") is not None


def chat_turns(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, str]]:
    """Returns the chat as plain turns with the roles system, user and assistant only.

    Calls become the JSON text that the model is asked to write, results become user turns, the tools go into the one system
    turn at the front, and neighbors of the same role are merged, because many chat templates demand alternation.
    """
    system = [_text(message) for message in messages if message.get("role") in ("system", "developer")]
    if tools:
        system.append(f"You work by calling tools. Tools:\n{render_tools(tools)}\n\n{_SHAPE}")
    turns: list[dict[str, str]] = []
    if system:
        turns.append({"role": "system", "content": "\n\n".join(filter(None, system))})
    names: dict[str, str] = {}
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer"):
            continue
        content = _text(message)
        if role == "assistant":
            content = "\n".join(filter(None, [content, *_call_lines(message, names)]))
        elif role == "tool":
            role, content = "user", f"Result of {_result_name(message, names)}:\n{content}"
        else:
            role = "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{content}"
        else:
            turns.append({"role": role, "content": content})
    return turns


def _tool_line(function: Mapping[str, Any]) -> str:
    schema = function.get("parameters") or {}
    required = schema.get("required") or ()
    arguments = [
        f"{name}{'' if name in required else '?'}: {_type(part)}" for name, part in (schema.get("properties") or {}).items()
    ]
    summary = str(function.get("description") or "").strip().split("\n", 1)[0]
    return f"- {function.get('name')}({', '.join(arguments)}){': ' if summary else ''}{summary}"


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return "|".join(_type(part) for part in schema["anyOf"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items') or {})}"
    return "|".join(kind) if isinstance(kind, list) else str(kind)


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)


def _call_lines(message: Message, names: dict[str, str]) -> list[str]:
    lines = []
    for call in message.get("tool_calls") or ():
        function = function_of(call)
        names[str(call.get("id"))] = str(function.get("name"))
        name = json.dumps(function.get("name"), ensure_ascii=False)
        lines.append(f'{{"name": {name}, "arguments": {arguments_text(function.get("arguments") or {})}}}')
    return lines


def _result_name(message: Message, names: Mapping[str, str]) -> str:
    return str(message.get("name") or names.get(str(message.get("tool_call_id")), "the call"))
