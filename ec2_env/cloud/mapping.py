"""Mapping replies back: placeholders of a reply become what they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ec2_env.cloud.numerals import main_number

_AMOUNT = re.compile(r"(\(|-)? ?[$€£¥\uffe5]? ?(?:[A-Z]{3} )?-?\d[\d,.' \u00a0\u202f]*\)? ?(?:[A-Z]{3}|元)?")


def restored(value: Any, restore: Callable[[str], str]) -> Any:
    """Returns a JSON-like value with every text in it mapped back, keys too."""
    if isinstance(value, str):
        return restore(value)
    if isinstance(value, dict):
        return {restore(key) if isinstance(key, str) else key: restored(item, restore) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [restored(item, restore) for item in value]
    return value


def restored_call(call: dict[str, Any], tools: Sequence[dict[str, Any]], restore: Callable[[str], str]) -> dict[str, Any]:
    """Returns a call mapped back. A placeholder in place of a number becomes a number, if the tool asks for one."""
    mapped: dict[str, Any] = restored(call, restore)
    given, found = call.get("arguments"), mapped.get("arguments")
    if isinstance(given, dict) and isinstance(found, dict):
        for name, kind in _number_types(tools, call.get("name")).items():
            if isinstance(given.get(name), str) and isinstance(found.get(name), str) and found[name] != given[name]:
                found[name] = _number(found[name], kind)
    return mapped


def _number_types(tools: Sequence[dict[str, Any]], name: Any) -> dict[str, str]:
    """Returns the parameters of a tool that are numbers, with their JSON types."""
    for tool in tools:
        function = tool.get("function", tool)
        if function.get("name") == name:
            properties = function.get("parameters", {}).get("properties", {})
            types = {key: str(schema.get("type")) for key, schema in properties.items()}
            return {key: kind for key, kind in types.items() if "number" in kind or "integer" in kind}
    return {}


def _number(text: str, kind: str) -> Any:
    number = main_number(text) if _AMOUNT.fullmatch(text.strip()) else None
    if number is None:
        return text
    value = float(-number if text.strip()[:1] in "(-" else number)
    return int(value) if "integer" in kind and value.is_integer() else value
