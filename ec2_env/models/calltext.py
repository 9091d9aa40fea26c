"""Reads tool calls out of a model's text: bare JSON, JSON with anything around it, and the formats that models are trained on.

Known formats: `<tool_call>` with JSON (Qwen, Hermes), `<function=NAME>` with JSON or `<parameter=NAME>` (Llama 3.1, Qwen3-Coder,
Qwen3.5), `<invoke name="NAME">` (DeepSeek V3.2, MiniMax), `<tool_call>NAME<arg_key>` (GLM), DeepSeek V3's and Kimi's marks,
Mistral's `[TOOL_CALLS]`, the channels of gpt-oss, and Llama's `[NAME(argument=value)]`. They appear in a text where an endpoint
was started without a parser for its model, or its parser gave up.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ec2_env.actions import shallow
from ec2_env.models.jsoncalls import as_call, objects, parse
from ec2_env.models.payload import function_of

MAX_PASSES = 8
"""At most this many times the length of a text is parsed in the search for a call, which keeps the search linear."""
MAX_CALLS = 16
"""At most this many calls are read from one reply."""

_THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))
_CALL_BEGINS = re.compile(r"\s*(?:\{|\[(?!THINK\])|```|<tool_call>|<function=|<invoke )")
_BETWEEN = re.compile(r"(?:\s|[,;]|</?tool_call>|```(?:json)?|<\|python_tag\|>)*")
_TAG = re.compile(r"<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]")
_OPENING = re.compile(
    r"<function=([^<>\s]{1,120})>"
    r'|<(?:｜DSML｜)?invoke name="([^"<>]{1,120})">'
    r"|<tool_call>\s{0,20}([\w.-]{1,120})\s{0,20}(?=<arg_key>)"
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\w.-]{1,120})\s{0,20}(?:<｜tool▁sep｜>|```json)"
    r"|\[TOOL_CALLS\]\s{0,20}([\w.-]{1,120})(?:\[CALL_ID\]\w{0,60})?\[ARGS\]"
    r"|<\|tool_call_begin\|>\s{0,20}(?:functions\.)?([\w.-]{1,120})(?::\d{1,9})?\s{0,20}<\|tool_call_argument_begin\|>"
    r"|to=(?:functions\.)?([\w.-]{1,120})\s{0,20}(?:<\|(?:channel|constrain)\|>\w{0,20}\s{0,20}){0,2}<\|message\|>"
)
_PARAMETER = re.compile(
    r'\s*<(?:｜DSML｜)?parameter(?:=([^<>\s]{1,120})|\s+name="([^"<>]{1,120})"[^<>]{0,60})>'
    r"|\s*<arg_key>([^<>]{1,120})</arg_key>\s*<arg_value>"
)
_PARAMETER_ENDS = re.compile(r"</(?:｜DSML｜)?parameter>|</arg_value>")
_FENCE = re.compile(r"\s*(?:```json\s*)?")
_PYTHONIC = re.compile(r"\s*(?:<\|python_start\|>)?\[?\s*[A-Za-z_][\w.]*\(")
_LONGEST_PYTHONIC = 4_000


def split_thoughts(text: str) -> tuple[str, str]:
    """Splits a text into what was thought and what was said.

    A thought that was not closed, because the tokens ran out, goes on to the end; one that the chat template opened begins with
    the text. Takes time linear in the text's length.
    """
    thoughts: list[str] = []
    for opening, closing in _THOUGHTS:
        if closing in text or opening in text:
            text = _without(text, opening, closing, thoughts)
    return "\n".join(thoughts), text


def _without(text: str, opening: str, closing: str, thoughts: list[str]) -> str:
    """Returns a text without what stands between two marks, which is added to `thoughts`. A call may quote the marks."""
    said: list[str] = []
    position, end = 0, text.find(closing)
    start = text.find(opening)
    if end >= 0 and not 0 <= start < end and not _CALL_BEGINS.match(text):
        thoughts.append(text[:end].strip())
        position = end + len(closing)
    while (start := text.find(opening, position)) >= 0 and not _CALL_BEGINS.match(text, position):
        said.append(text[position:start])
        end = text.find(closing, start)
        thoughts.append(text[start + len(opening) : end if end >= 0 else len(text)].strip())
        if end < 0:
            return "".join(said)
        position = end + len(closing)
    return "".join([*said, text[position:]])


def read_call(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """Returns the first tool call in a text as `{"name": str, "arguments": dict | str}`, or None; see `read_calls`."""
    calls = read_calls(text, tools, most=1)
    return calls[0] if calls else None


def read_calls(
    text: str, tools: Sequence[Mapping[str, Any]] = (), *, most: int = MAX_CALLS, tagged: bool = False
) -> tuple[dict[str, Any], ...]:
    """Returns the tool calls in a text, in order, as `{"name": str, "arguments": dict | str}`.

    A call in JSON is an object with a name; prose, code fences and tags around it do not matter. Single quotes, trailing commas,
    bare words and Python's constants are understood; thoughts are passed over. Further calls are read only where nothing but
    space, commas, fences or tags stands between: a model that goes on to imagine results is not believed. Never raises; takes
    time linear in the text's length.

    Args:
        text: What the model wrote.
        tools: Schemas: they say which values of a format without types are numbers, and which names Python-like calls may have.
        most: At most so many calls are returned.
        tagged: Whether only calls in one of the known formats or after a tag count, not bare JSON.
    """
    text = split_thoughts(text)[1]
    opening = _OPENING.search(text)
    tag = _TAG.search(text)
    if tagged and opening is None and tag is None:
        return ()
    begin = tag.start() if tagged and tag else 0
    limit = opening.start() if opening else len(text)
    found = () if tagged and tag is None else tuple(_json_calls(text, begin, limit, most))
    if not found and opening is not None:
        found = tuple(_marked_calls(text, opening, tools, most))
    if not found and not tagged and _PYTHONIC.match(text):
        found = tuple(_pythonic_calls(text, tools))[:most]
    return found


def _json_calls(text: str, begin: int, limit: int, most: int) -> Iterator[dict[str, Any]]:
    """Yields the first call that begins in a range of the text, and those that follow it."""
    budget, count, end = MAX_PASSES * len(text), 0, -1
    for start, stop in objects(text[begin:] if begin else text):
        start, stop = start + begin, stop + begin
        if count == most or (count == 0 and start >= limit):
            return
        if count and (start < end or not _BETWEEN.fullmatch(text, end, start)):
            if start < end:
                continue
            return
        budget -= stop - start
        if budget < 0:
            return
        call = as_call(parse(text[start:stop]))
        if call is None and count:
            return
        if call is not None:
            count, end = count + 1, stop
            yield call


def _marked_calls(
    text: str, opening: re.Match[str] | None, tools: Sequence[Mapping[str, Any]], most: int
) -> Iterator[dict[str, Any]]:
    for _ in range(most):
        if opening is None:
            return
        name = next(filter(None, opening.groups()))
        parameters, position = _parameters(text, opening.end(), _properties(name, tools))
        if parameters or not (body := _json_body(text, position)):
            call = {"name": name, "arguments": parameters}
        else:
            value = parse(text[body[0] : body[1]])
            call = {"name": name, "arguments": value if isinstance(value, dict) else text[body[0] : body[1]]}
            position = body[1]
        if shallow(call["arguments"]):
            yield call
        opening = _OPENING.search(text, position)


def _json_body(text: str, position: int) -> tuple[int, int] | None:
    """Returns the range of the JSON object that begins here, after space and a fence; to the end if it is not closed."""
    start = _FENCE.match(text, position)
    begin = start.end() if start else position
    if text[begin : begin + 1] != "{":
        return None
    first = next(iter(objects(text[begin:])), None)
    return (begin, begin + first[1]) if first and first[0] == 0 else (begin, len(text))


def _parameters(text: str, position: int, types: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while (tag := _PARAMETER.match(text, position)) is not None:
        name = next(filter(None, tag.groups())).strip()
        closed = _PARAMETER_ENDS.search(text, tag.end())
        value = text[tag.end() : closed.start() if closed else len(text)]
        found[name] = _typed(value.removeprefix("\n").removesuffix("\n"), types.get(name))
        position = closed.end() if closed else len(text)
    return found, position


def _properties(name: str, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for tool in tools:
        function = function_of(tool)
        if function.get("name") == name:
            return (function.get("parameters") or {}).get("properties") or {}
    return {}


def _typed(value: str, schema: Any) -> Any:
    """Returns the value that a text stands for: the text itself, unless the schema allows no text there."""
    if not isinstance(schema, Mapping) or _takes_text(schema):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _takes_text(schema: Mapping[str, Any]) -> bool:
    if "enum" in schema:
        return any(isinstance(value, str) for value in schema["enum"])
    if "anyOf" in schema:
        return any(_takes_text(part) for part in schema["anyOf"])
    kind = schema.get("type", "string")
    return "string" in kind if isinstance(kind, list) else kind == "string"


def _pythonic_calls(text: str, tools: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields calls written as a Python list; only names of `tools` count, for prose may look like a call."""
    names = {function_of(tool).get("name") for tool in tools}
    for mark in ("<|python_start|>", "<|python_end|>"):
        text = text.replace(mark, "")
    if not names or len(text) > _LONGEST_PYTHONIC:
        return
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        for part in tree.elts if isinstance(tree, ast.List) else [tree]:
            if not isinstance(part, ast.Call) or part.args or ast.unparse(part.func) not in names:
                return
            arguments = {str(word.arg): ast.literal_eval(word.value) for word in part.keywords}
            if shallow(arguments):
                yield {"name": ast.unparse(part.func), "arguments": arguments}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return
