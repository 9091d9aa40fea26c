"""Tool calls for models that know only text: tools as a list in the system prompt, a call as one JSON object in the answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ec2_env.actions import MAX_DEPTH, shallow
from ec2_env.models.base import Message
from ec2_env.models.payload import arguments_text, function_of

MAX_PASSES = 8
"""At most this many times the length of a text is parsed in the search for a call, which keeps the search linear."""

_SHAPE = 'Answer with exactly one JSON object and nothing else:\n{"name": "TOOL", "arguments": {"ARGUMENT": VALUE}}'
_NAME_KEYS = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")

_MARK = re.compile(r'["{}]')
_REST_OF_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TOKEN = re.compile(
    r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z))|\'([^\'\\]*(?:\\.[^\'\\]*)*)(?:\'|\Z)|([\[\]{}:,])|([^\s\[\]{}:,"\']+)',
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_NUMBER = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")


def render_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """Returns one line for each tool: `- name(argument: type, optional?: type): first line of its description`."""
    return "\n".join(_tool_line(function_of(tool)) for tool in tools)


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


def read_call(text: str) -> dict[str, Any] | None:
    """Returns the first tool call in a text as `{"name": str, "arguments": dict | str}`, or None.

    A call is an object with a name; prose, code fences and tags around it do not matter. Single quotes, trailing commas, bare
    words and Python's constants are understood; what a model thought aloud before `</think>` is passed over. Never raises; takes
    time linear in the text's length.
    """
    text = text.rpartition("</think>")[2]
    budget = MAX_PASSES * len(text)
    for start, end in _objects(text):
        budget -= end - start
        if budget < 0:
            return None
        call = _as_call(_parse(text[start:end]))
        if call is not None:
            return call
    return None


def _objects(text: str) -> list[tuple[int, int]]:
    """Returns the ranges of all balanced braces nested not much deeper than arguments may be, in order of their start."""
    found: list[tuple[int, int]] = []
    open_at: list[tuple[int, int]] = []  # start, height of what is inside
    position, strings = 0, True
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        match mark.group():
            case "{":
                open_at.append((mark.start(), 0))
            case "}" if open_at:
                start, height = open_at.pop()
                if height <= MAX_DEPTH:
                    found.append((start, position))
                if open_at:
                    outer, inside = open_at[-1]
                    open_at[-1] = (outer, max(inside, height + 1))
            case '"' if open_at and strings:
                closed = _REST_OF_STRING.match(text, position)
                strings = closed is not None  # one string without an end: no later quote can close either
                position = closed.end() if closed else position
    return sorted(found)


def _parse(text: str) -> Any:
    for written in (str, _repaired):
        try:
            return json.loads(written(text), strict=False, parse_float=_number, parse_constant=_number)
        except (ValueError, RecursionError):
            continue  # not JSON; repaired, it may be
    return None


def _number(text: str) -> float | None:
    """Reads a number; what JSON does not have (NaN, infinities, overflow) becomes null."""
    value = float(text)
    return value if math.isfinite(value) else None


def _repaired(text: str) -> str:
    """Rewrites Python-like and sloppy objects as JSON, token by token."""
    parts: list[str] = []
    for token in _TOKEN.finditer(text):
        double, single, mark, word = token.groups()
        if mark in ("}", "]") and parts and parts[-1] == ",":
            parts.pop()
        if double is not None:
            parts.append(double)
        elif single is not None:
            parts.append('"' + single.replace("\\'", "'").replace('\\"', '"').replace('"', '\\"') + '"')
        elif word is not None:
            parts.append(_WORDS.get(word) or (word if _NUMBER.fullmatch(word) else json.dumps(word)))
        else:
            parts.append(mark)
    return "".join(parts)


def _as_call(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str) and value[key]), None)
    if name is None:
        return None
    arguments: Any = next((value[key] for key in _ARGUMENT_KEYS if isinstance(value.get(key), dict | str)), {})
    return {"name": name, "arguments": arguments} if shallow(arguments) else None


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
