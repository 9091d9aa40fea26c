"""Actions: what an agent may do in one step, and how untrusted text becomes one.

An action is one tool call. Two tools are part of every environment: `invoke_cloud` and `finish`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import msgspec

Mode = Literal["plan", "advise", "act"]
Share = Literal["request", "instruction", "transcript", "relevant"]
MODES: tuple[str, ...] = get_args(Mode)
SHARES: tuple[str, ...] = get_args(Share)

MAX_ACTION_CHARS = 100_000
"""Longer action texts are refused unread, so that a runaway model cannot fill memory."""
MAX_NAME_CHARS = 200
"""Longer tool names are cut: no tool has such a name, and what is wrong with it shows in the first characters."""
MAX_DEPTH = 20
"""Deepest nesting of lists and objects accepted in arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one workspace tool by name, with JSON-able arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeCloud:
    """A request to the cloud model.

    Attributes:
        request: What the edge agent writes to the cloud.
        mode: `plan` asks for a short sketch, `advise` for a correction or the next steps, `act` lets it take the next step.
        share: How much context crosses: only the request, the task's instruction as well, the whole transcript, or of the
            transcript what the request needs by the rule of `ec2_env.cloud.relevance`.
        redact: Whether detected sensitive values are replaced by reversible placeholders before sending.
    """

    request: str = ""
    mode: Mode = "advise"
    share: Share = "request"
    redact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of the work: a text for the user, and the facts asked for as structured data."""

    answer: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Malformed:
    """What came instead of an action. `problem` is the observation: what was wrong and what would be right."""

    problem: str


Action: TypeAlias = ToolCall | InvokeCloud | Finish

_SHAPE = 'expected one JSON object like {"name": "search_mail", "arguments": {"query": "invoice"}}'


def parse_action(raw: object) -> Action | Malformed:
    """Turns an action object, a mapping or JSON text into an action. Never raises on any input.

    Mappings are `{"name": ..., "arguments": {...}}`; OpenAI's `{"function": {...}}` wrapping and arguments given as JSON text
    are accepted, because models produce them. What is accepted holds plain JSON values only, finite and without lone surrogates.
    """
    try:
        return _parsed(raw)
    except _Unusable as error:
        return Malformed(str(error))
    except Exception as error:  # an object of a foreign class may raise anything when it is looked at
        return Malformed(f"not a tool call: reading it failed ({type(error).__name__}); {_SHAPE}")


def _parsed(raw: object) -> Action | Malformed:
    if isinstance(raw, ToolCall | InvokeCloud | Finish):
        raw = dump_action(raw)
    if isinstance(raw, bytes | bytearray):
        raw = bytes(raw[: MAX_ACTION_CHARS + 1]).decode("utf-8", "replace")
    if isinstance(raw, str):
        raw = _decode(raw)
    if not isinstance(raw, Mapping):
        return raw if isinstance(raw, Malformed) else Malformed(f"not a tool call: got {_kind(raw)}; {_SHAPE}")
    inner = raw.get("function")
    if isinstance(inner, Mapping):
        raw = inner
    name, arguments = raw.get("name"), raw.get("arguments", {})
    if not isinstance(name, str) or not name:
        return Malformed(f"the call has no tool name: 'name' is {_kind(name)}; {_SHAPE}")
    name = clean(str.__str__(name)[:MAX_NAME_CHARS])
    if isinstance(arguments, str):
        arguments = _decode(arguments) if arguments.strip() else {}
        if isinstance(arguments, Malformed):
            return Malformed(f"'arguments' of {name[:60]!r}: {arguments.problem}")
    if not isinstance(arguments, Mapping):
        return Malformed(f"'arguments' of {name[:60]!r} must be an object with text keys, got {_kind(arguments)}; {_SHAPE}")
    try:
        return _from_call(name, plain(arguments))
    except _Unusable as error:
        return Malformed(f"'arguments' of {name[:60]!r}: {error}")


def _from_call(name: str, arguments: dict[str, Any]) -> Action | Malformed:
    match name:
        case "invoke_cloud":
            return _invoke_cloud(arguments)
        case "finish":
            return _finish(arguments)
        case _:
            return ToolCall(name, arguments)


def _invoke_cloud(arguments: dict[str, Any]) -> InvokeCloud | Malformed:
    unknown = sorted(set(arguments) - {"request", "mode", "share", "redact"})
    if unknown:
        return Malformed(f"invoke_cloud has no argument {unknown[0][:60]!r}; it takes request, mode, share, redact")
    request, mode = arguments.get("request", ""), arguments.get("mode", "advise")
    share, redact = arguments.get("share", "request"), arguments.get("redact", False)
    if not isinstance(request, str):
        return Malformed(f"invoke_cloud.request must be text, got {_kind(request)}")
    if mode not in MODES:
        return Malformed(f"invoke_cloud.mode must be one of {', '.join(MODES)}, got {str(mode)[:40]!r}")
    if share not in SHARES:
        return Malformed(f"invoke_cloud.share must be one of {', '.join(SHARES)}, got {str(share)[:40]!r}")
    if not isinstance(redact, bool):
        return Malformed(f"invoke_cloud.redact must be true or false, got {_kind(redact)}")
    return InvokeCloud(request=request, mode=mode, share=share, redact=redact)


def _finish(arguments: dict[str, Any]) -> Finish | Malformed:
    unknown = sorted(set(arguments) - {"answer", "data"})
    if unknown:
        return Malformed(f"finish has no argument {unknown[0][:60]!r}; it takes answer and data")
    answer, data = arguments.get("answer", ""), arguments.get("data")
    if isinstance(data, str):
        decoded = _decode(data) if data.strip() else {}
        data = plain(decoded) if isinstance(decoded, dict) else data
    if not isinstance(answer, str):
        return Malformed(f"finish.answer must be text, got {_kind(answer)}")
    if data is not None and not isinstance(data, dict):
        return Malformed(f"finish.data must be an object, got {_kind(data)}")
    return Finish(answer=answer, data=data or {})


def dump_action(action: Action) -> dict[str, Any]:
    """Returns the action as `{"name": ..., "arguments": {...}}`, the form that `parse_action` reads back."""
    match action:
        case ToolCall():
            return {"name": action.name, "arguments": action.arguments}
        case InvokeCloud():
            return {
                "name": "invoke_cloud",
                "arguments": {"request": action.request, "mode": action.mode, "share": action.share, "redact": action.redact},
            }
        case Finish():
            return {"name": "finish", "arguments": {"answer": action.answer, "data": action.data}}


_TOO_MUCH = f"the values are too many or too long; at most {MAX_ACTION_CHARS} characters are read"


class _Unusable(ValueError):
    """Why a value cannot be part of an action."""


def plain(value: Any) -> Any:
    """Returns a copy of a JSON value that is made of exact JSON types, with lists for tuples and without lone surrogates.

    Raises:
        ValueError: if it is nested deeper than `MAX_DEPTH`, larger than `MAX_ACTION_CHARS` (each value counts as one character at
            least), or holds what JSON cannot: other types, keys that are not text, infinite numbers, integers beyond 64 bits.
    """
    try:
        return _plain(value, 0, [MAX_ACTION_CHARS])
    except _Unusable:
        raise
    except Exception as error:  # an object of a foreign class may raise anything when it is looked at
        raise _Unusable(f"reading a value failed ({type(error).__name__})") from None


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    if isinstance(value, str):
        return _plain_text(value, left)
    left[0] -= 1
    if left[0] < 0:
        raise _Unusable(_TOO_MUCH)
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int | float):
        return _plain_number(value)
    if depth >= MAX_DEPTH:
        raise _Unusable(f"the values are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        found = {}
        for key in value:
            if not isinstance(key, str):
                raise _Unusable(f"must be an object with text keys, got a key that is {_kind(key)}")
            found[_plain_text(key, left)] = _plain(value[key], depth + 1, left)
        return found
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1, left) for item in value]
    raise _Unusable(f"{_kind(value)} is not a JSON value")


def _plain_number(value: int | float) -> int | float:
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _Unusable("a whole number is out of range; at most 64 bits are read")
        return int.__int__(value)
    if not math.isfinite(value):
        raise _Unusable("a number is not finite, which JSON cannot hold")
    return float.__float__(value)


def _plain_text(text: str, left: list[int]) -> str:
    if type(text) is not str:
        text = str.__str__(text)
    left[0] -= len(text) + 1
    if left[0] < 0:
        raise _Unusable(_TOO_MUCH)
    return text if text.isascii() else clean(text)


def shallow(value: object) -> bool:
    """Says whether `plain` accepts a value."""
    try:
        plain(value)
    except _Unusable:
        return False
    return True


def clean(text: str) -> str:
    """Returns `text` without lone surrogates, which no tokenizer, file or JSON encoder accepts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _decode(text: str) -> Any:
    text = str.__str__(text)
    if len(text) > MAX_ACTION_CHARS:
        return Malformed(f"the action is {len(text)} characters long; at most {MAX_ACTION_CHARS} are read")
    try:
        return msgspec.json.decode(clean(text))
    except (msgspec.DecodeError, RecursionError) as error:
        return Malformed(f"not valid JSON ({str(error)[:200]}); {_SHAPE}")


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    names = {bool: "a truth value", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def action_text(action: Action) -> str:
    """Returns the action as compact JSON text with sorted keys: equal calls have equal texts."""
    try:
        return msgspec.json.encode(dump_action(action), order="sorted").decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(dump_action(action), separators=(",", ":"), default=str)
