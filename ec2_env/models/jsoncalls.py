"""Finds JSON objects in what a model wrote, and reads them even when they are not quite JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ec2_env.actions import MAX_DEPTH, shallow

_NAME_KEYS = ("name", "tool", "tool_name", "function")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")

_MARK = re.compile(r'["{}]')
_REST_OF_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TOKEN = re.compile(
    r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z))|\'([^\'\\]*(?:\\.[^\'\\]*)*)(?:\'|\Z)|([\[\]{}:,])|([^\s\[\]{}:,"\']+)',
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_NUMBER = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")


def objects(text: str) -> list[tuple[int, int]]:
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


def completed(text: str) -> str:
    """Returns a text whose last object was not written to its end with what is missing to close it; others unchanged.

    A string or a word that is cut short is left out, so that nothing is read of what is only half there.
    """
    position, whole = 0, text
    text = text.rstrip("\\")  # half an escape
    while (start := text.find("{", position)) >= 0:
        closers: list[str] = []
        cut = len(text)
        for token in _TOKEN.finditer(text, start):
            written, position = token.group(), token.end()
            if written in "{[":
                closers.append("}" if written == "{" else "]")
            elif written in "}]":
                closers.pop()
            elif position == len(text) and (token[4] or _is_open(written)):
                cut = token.start()
            if not closers:
                break
        if closers:
            return _closed(text[:cut].rstrip(), start, "".join(reversed(closers)))
    return whole


def _is_open(written: str) -> bool:
    """Says whether a token is a string without its end; a quote after a backslash ends none."""
    inside = written[1:-1]
    escaped = (len(inside) - len(inside.rstrip("\\"))) % 2 == 1
    return written[0] in "\"'" and (len(written) == 1 or written[-1] != written[0] or escaped)


def _closed(text: str, start: int, closers: str) -> str:
    """Returns a text with its last object, which begins at `start`, closed: a key without a value gets null."""
    for missing in ("", "null", ":null"):
        if parse(text[start:] + missing + closers) is not None:
            return text + missing + closers
    return text


def parse(text: str) -> Any:
    """Returns what a text stands for, read as JSON or, failing that, as sloppy JSON; None if it is neither."""
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


def as_call(value: Any) -> dict[str, Any] | None:
    """Returns a JSON value as a call `{"name", "arguments"}`, or None if it is none."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str) and value[key]), None)
    if name is None:
        return None
    arguments: Any = next((value[key] for key in ARGUMENT_KEYS if isinstance(value.get(key), dict | str)), {})
    return {"name": name, "arguments": arguments} if shallow(arguments) else None
