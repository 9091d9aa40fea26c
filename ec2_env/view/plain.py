"""Whatever a row, a grader or a report holds, as plain data for a page: the same for the same value, in any process."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

MAX_DEPTH = 8


def plain(value: Any, depth: int = 0) -> Any:
    """Returns a value as what JSON can hold. Sets are sorted; functions are named; what has no form is written as text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name), depth + 1) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value) if field.repr}
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted((plain(item, depth + 1) for item in value), key=as_text)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    return getattr(value, "__name__", "…") if callable(value) else str(value)


def as_text(value: Any) -> str:
    """Returns plain data as readable text: a text as it is, a plain list with commas, the rest as JSON."""
    if isinstance(value, list) and value and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
