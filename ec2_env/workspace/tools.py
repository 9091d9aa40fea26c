"""Tools: typed functions over a workspace, validated and documented by their own signature and docstring."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ec2_env.actions import MODES, SHARES, ToolCall, clean
from ec2_env.errors import ToolError
from ec2_env.registry import Registry
from ec2_env.workspace.store import Workspace

MAX_ARGUMENT_CHARS = 20_000
"""Longest text accepted as one argument."""
MAX_RESULT_CHARS = 8_000
"""Longest tool result shown in one observation; longer ones are cut, and the cut is stated."""

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned: a JSON-able value and its compact text, or an error and its explanation."""

    ok: bool
    value: Any
    text: str


@dataclass(frozen=True)
class Tool:
    """One tool of an app.

    Attributes:
        name: Name that the model calls.
        function: Takes the workspace and the arguments; raises `ToolError` for what the model got wrong.
        write: Whether it may change the workspace. A reading tool never does.
        opens: For list and search tools, the tool that shows one of the listed records in full (its first argument is an id).
    """

    name: str
    function: Callable[..., Any]
    write: bool
    opens: str | None

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(list(inspect.signature(self.function).parameters.items())[1:])

    @cached_property
    def hints(self) -> dict[str, Any]:
        return get_type_hints(self.function)

    @cached_property
    def arguments_type(self) -> type[msgspec.Struct]:
        """A struct whose fields are the tool's parameters, for validation."""
        fields: list[Any] = []
        for name, parameter in self.parameters.items():
            if parameter.default is inspect.Parameter.empty:
                fields.append((name, self.hints[name]))
            else:
                fields.append((name, self.hints[name], parameter.default))
        return msgspec.defstruct(self.name, fields, forbid_unknown_fields=True, kw_only=True)

    @cached_property
    def documentation(self) -> tuple[str, dict[str, str]]:
        """The docstring's description and its text for each argument."""
        text = inspect.cleandoc(self.function.__doc__ or "")
        description, _, arguments = text.partition("\nArgs:\n")
        described: dict[str, str] = {}
        for line in inspect.cleandoc(arguments).splitlines() if arguments else ():
            match = re.match(r"(\w+): (.*)", line)
            if match:
                described[match[1]] = match[2].strip()
            elif described and line.strip():
                last = next(reversed(described))
                described[last] += " " + line.strip()
        return " ".join(description.split()), described

    @cached_property
    def schema(self) -> dict[str, Any]:
        """OpenAI's function schema of this tool."""
        description, described = self.documentation
        properties = {name: {**json_type(self.hints[name]), "description": described.get(name, "")} for name in self.parameters}
        required = [n for n, p in self.parameters.items() if p.default is inspect.Parameter.empty]
        body: dict[str, Any] = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        return {"type": "function", "function": {"name": self.name, "description": description, "parameters": body}}

    @cached_property
    def signature(self) -> str:
        """A one-line form of the tool's parameters, for error messages."""
        return f"{self.name}({', '.join(_parameter(n, self.hints[n], p) for n, p in self.parameters.items())})"


def tool(*, write: bool = False, opens: str | None = None) -> Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function whose first parameter is the workspace."""

    def wrap(function: Callable[..., Any]) -> Tool:
        return Tool(function.__name__, function, write, opens)

    return wrap


@dataclass(frozen=True, slots=True)
class App:
    """A program of the office: a name, the tools that it offers and the class that fills it when a world is built."""

    name: str
    tools: tuple[Tool, ...]
    seeder: type[Any]


apps: Registry[App] = Registry("app", "ec2_env.workspace.apps", "APP", App)


FINISH_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "finish",
        "description": "Ends the work.",
        "parameters": {
            "type": "object",
            "properties": {
                "answer": {"type": "string", "description": "What to tell the user."},
                "data": {"type": "object", "description": "The facts asked for, by key."},
            },
            "required": ["answer"],
            "additionalProperties": False,
        },
    },
}
CLOUD_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "invoke_cloud",
        "description": "Asks a stronger model in the cloud. It costs money, and whatever is shared leaves this machine.",
        "parameters": {
            "type": "object",
            "properties": {
                "request": {"type": "string", "description": "What to ask."},
                "mode": {
                    "type": "string",
                    "enum": list(MODES),
                    "description": "plan: a short plan; advise: what to do next; act: the cloud takes the next step itself.",
                },
                "share": {
                    "type": "string",
                    "enum": list(SHARES),
                    "description": "How much crosses: only the request, the instruction too, or the whole transcript.",
                },
                "redact": {"type": "boolean", "description": "Whether to replace sensitive values by placeholders first."},
            },
            "required": ["request", "mode", "share"],
            "additionalProperties": False,
        },
    },
}


class Toolbox:
    """The tools of a set of apps; runs calls and turns everything that can go wrong into an observation."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self.tools: dict[str, Tool] = {tool.name: tool for name in self.names for tool in apps.get(name).tools}
        self.schemas: tuple[dict[str, Any], ...] = tuple(tool.schema for tool in self.tools.values())
        self.schemas_with_finish: tuple[dict[str, Any], ...] = (*self.schemas, FINISH_SCHEMA)
        self._tokens: dict[str, int] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (Toolbox, (self.names,))

    def schema_tokens(self, family: str, count: Callable[[str, str], int]) -> int:
        """Returns how many tokens the schemas take, counted by `count(text, family)` once."""
        if family not in self._tokens:
            self._tokens[family] = count(msgspec.json.encode(self.schemas_with_finish).decode(), family)
        return self._tokens[family]

    def run(self, workspace: Workspace, call: ToolCall) -> Result:
        """Runs one call. Never raises: an invalid call, or one that the tool refuses, is a result with `ok=False`."""
        found = self.tools.get(call.name)
        if found is None:
            return failure(self._unknown(call.name))
        problem = oversized(call.arguments)
        if problem:
            return failure(f"{found.name}: {problem}")
        try:  # sorted, as a trajectory keeps them: of two wrong arguments a replay has to name the same one
            arguments = msgspec.convert(dict(sorted(tidy(call.arguments).items())), found.arguments_type)
        except (msgspec.ValidationError, OverflowError, RecursionError) as error:
            return failure(f"{found.name}: {error}; expected {found.signature}")
        since = len(workspace.journal)
        try:
            value = found.function(workspace, **{name: getattr(arguments, name) for name in arguments.__struct_fields__})
        except ToolError as error:
            workspace.undo(since)
            return failure(f"{found.name}: {error}")
        if found.write:
            workspace.react(since)
        return success(value)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name[:60], self.tools, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"the tools are {', '.join([*self.tools, 'invoke_cloud', 'finish'])}"
        return f"there is no tool {name[:60]!r}; {hint}"


def success(value: Any) -> Result:
    """Returns a result for a JSON-able value; its text is cut at `MAX_RESULT_CHARS`."""
    text = msgspec.json.encode(value).decode()
    if len(text) > MAX_RESULT_CHARS:
        left = len(text) - MAX_RESULT_CHARS
        text = f"{text[:MAX_RESULT_CHARS]} [cut here: {left} more characters; ask for less, or for the next page]"
    return Result(True, value, text)


def failure(problem: str) -> Result:
    """Returns a result for a call that was refused."""
    problem = clean(problem[:MAX_RESULT_CHARS])
    return Result(False, {"error": problem}, msgspec.json.encode({"error": problem}).decode())


def oversized(arguments: Mapping[str, Any]) -> str | None:
    """Says what is too large in the arguments, or None."""
    for name, value in arguments.items():
        items = value if isinstance(value, list | tuple) else (value,)
        if len(items) > 200:
            return f"{name[:60]} has {len(items)} items; at most 200 are accepted"
        for item in items:
            if isinstance(item, str) and len(item) > MAX_ARGUMENT_CHARS:
                return f"{name[:60]} is {len(item)} characters long; at most {MAX_ARGUMENT_CHARS} are accepted"
    return None


def tidy(value: Any) -> Any:
    """Returns arguments with lone surrogates replaced and tuples as lists, so that they can be validated and stored."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): tidy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    return value


def json_type(hint: Any) -> dict[str, Any]:
    """Returns the JSON schema of a plain type: str, int, float, bool, Literal, list of these, or optional ones."""
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": json_type(arguments[0])}
    plain = [a for a in arguments if a is not type(None)]
    if len(plain) == 1:
        return json_type(plain[0])
    raise TypeError(
        f"a tool's parameter has type {hint}; use str, int, float, bool, Literal, a list of these, or None beside one"
    )


def _parameter(name: str, hint: Any, parameter: inspect.Parameter) -> str:
    schema = json_type(hint)
    kind = "|".join(schema["enum"]) if "enum" in schema else schema["type"]
    kind = f"list of {schema['items']['type']}" if kind == "array" else kind
    return f"{name}: {kind}" if parameter.default is inspect.Parameter.empty else f"{name}: {kind} = {parameter.default!r}"
