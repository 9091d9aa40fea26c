"""Spaces for text and tool calls that sample, validate, batch and seed as Gymnasium expects."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

from ec2_env.actions import Malformed, ToolCall, parse_action
from ec2_env.workspace.tools import CLOUD_SCHEMA, FINISH_SCHEMA, Toolbox, oversized, tidy

_ALPHABET = "abcdefghijklmnopqrstuvwxyz .,中文字样"


class UnicodeText(spaces.Text):
    """Any text up to a length. `sample()` draws short texts, which keeps checks and logs readable."""

    def __init__(self, max_length: int = 100_000, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=_ALPHABET, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Returns a text of 0 to 16 characters."""
        length = int(self.np_random.integers(0, 17))
        return "".join(_ALPHABET[i] for i in self.np_random.integers(0, len(_ALPHABET), length))

    def contains(self, x: Any) -> bool:
        """Says whether `x` is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.max_length == self.max_length


class ToolCallSpace(UnicodeText):
    """Tool calls as JSON text, `{"name": ..., "arguments": {...}}`, for a set of tools and the two that every env has."""

    def __init__(self, toolbox: Toolbox, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(seed=seed)
        self.toolbox = toolbox
        schemas = [*toolbox.schemas, CLOUD_SCHEMA, FINISH_SCHEMA]
        self._schemas: list[dict[str, Any]] = [schema["function"] for schema in schemas]

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Returns a call that is valid for its schema, with made-up values."""
        schema = self._schemas[int(self.np_random.integers(0, len(self._schemas)))]
        parameters = schema["parameters"]
        arguments = {
            name: self._value(kind)
            for name, kind in parameters["properties"].items()
            if name in parameters["required"] or self.np_random.random() < 0.3
        }
        return msgspec.json.encode({"name": schema["name"], "arguments": arguments}).decode()

    def contains(self, x: Any) -> bool:
        """Says whether `x` is the JSON text of a call that passes its tool's schema."""
        if not super().contains(x):
            return False
        action = parse_action(x)
        if isinstance(action, Malformed):
            return False
        if not isinstance(action, ToolCall):
            return True
        tool = self.toolbox.tools.get(action.name)
        if tool is None or oversized(action.arguments):
            return False
        try:
            msgspec.convert(tidy(action.arguments), tool.arguments_type)
        except (msgspec.ValidationError, OverflowError, RecursionError):
            return False
        return True

    def _value(self, schema: dict[str, Any]) -> Any:
        rng = self.np_random
        if "enum" in schema:
            return schema["enum"][int(rng.integers(0, len(schema["enum"])))]
        match schema["type"]:
            case "string":
                return super().sample()
            case "integer":
                return int(rng.integers(1, 10))
            case "number":
                return float(rng.random())
            case "boolean":
                return bool(rng.random() < 0.5)
            case "array":
                return [self._value(schema["items"]) for _ in range(int(rng.integers(1, 3)))]
        return {}

    def __repr__(self) -> str:
        return f"ToolCallSpace({len(self._schemas)} tools)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCallSpace) and other._schemas == self._schemas


def _refuse(space: spaces.Space[Any], n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError(
        "shared memory would cut and mix texts: use "
        "gym.make_vec(..., vectorization_mode='async', vector_kwargs={'shared_memory': False})"
    )


for _space in (UnicodeText, ToolCallSpace):
    create_shared_memory.register(_space, _refuse)
