"""What goes into a model and comes out of it, as plain data: cleaned, digested, written and read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ec2_env.actions import clean
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import ModelCard, Reply

RecordT = TypeVar("RecordT")


def cleaned(value: Any) -> Any:
    """Returns a copy of a JSON-like value whose texts hold no lone surrogates; mappings and sequences become dict and list."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): cleaned(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [cleaned(item) for item in value]
    return value


def digest(value: Any) -> str:
    """Returns the SHA-256, in hexadecimal, of a JSON-like value's canonical text (sorted keys, ASCII, no spaces)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def arguments_text(arguments: Any) -> str:
    """Returns a call's arguments as JSON text; text passes unchanged."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)


def function_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a tool's schema without OpenAI's `{"type": "function", "function": ...}` wrapping, if it has one."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def reply_record(reply: Reply) -> dict[str, Any]:
    """Returns a reply as JSON-able data without its defaults; `read_reply` reads it back."""
    blank = dataclasses.asdict(Reply())
    return {name: value for name, value in dataclasses.asdict(reply).items() if value != blank[name]}


def read_reply(data: Any) -> Reply:
    """Reads a reply from a mapping with the fields of `Reply`, from one call `{"name", "arguments"}`, or from bare text.

    Raises:
        ConfigurationError: if it is none of these.
    """
    if isinstance(data, Reply):
        return data
    if isinstance(data, str):
        return Reply(text=data)
    if isinstance(data, Mapping) and "name" in data:
        data = {"calls": [dict(data)]}
    return _convert(data, Reply, "a reply")


def read_card(data: Any) -> ModelCard:
    """Reads a model card from a mapping with the fields of `ModelCard`.

    Raises:
        ConfigurationError: if a field is unknown, missing or of the wrong type.
    """
    return _convert(data, ModelCard, "a model card")


def _convert(data: Any, kind: type[RecordT], what: str) -> RecordT:
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # both kinds are dataclasses
    if not isinstance(data, Mapping) or not set(data) <= set(known):
        raise ConfigurationError(
            f"not {what}: {str(data)[:200]!r}; expected an object with some of the fields {', '.join(known)}"
        )
    try:
        return msgspec.convert(dict(data), kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"not {what}: {error}; got {str(data)[:200]!r}") from error
