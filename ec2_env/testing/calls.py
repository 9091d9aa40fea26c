"""Valid calls at random: right for the tools' schemas, with ids, addresses and dates where they fit."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from ec2_env.actions import ToolCall
from ec2_env.task import Episode, toolbox
from ec2_env.testing.play import texts_in
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Tool, Toolbox

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
STAMP = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
ID = re.compile(r"[a-z]+-\d{4,5}")
PATH = re.compile(r"(?:[\w-]+/)+[\w-]+\.\w+", re.ASCII)
_PEOPLE = ("to", "cc", "emails", "attendees", "recipients", "email", "assignee")
_TIMES = ("start", "end", "date", "due")
STRAY_LINE = "echo x > stray/notes.txt"
TRIES = 25
"""Calls tried at random for each writing tool before it is taken to have nothing stray to do."""


def random_call(tools: Toolbox, seen: Sequence[str], rng: random.Random, tool: Tool | None = None) -> ToolCall:
    """Returns a call that is valid for its schema, with texts drawn from `seen` (ids and addresses where they fit)."""
    tool = tool or tools.tools[rng.choice(list(tools.tools))]
    arguments: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        if parameter.default is parameter.empty or rng.random() < 0.3:
            arguments[name] = _value(name, tool.hints[name], seen, rng)
    return ToolCall(tool.name, arguments)


def reachable(episode: Episode, workspace: Workspace) -> list[str]:
    """Returns every text that the reading tools show: lists with their default arguments, and each record in full."""
    tools = toolbox(episode.task.apps)
    seen: dict[str, None] = {}
    openers = {tool.opens for tool in tools.tools.values() if tool.opens is not None}
    for tool in tools.tools.values():
        if tool.write or any(p.default is p.empty for p in tool.parameters.values()):
            continue
        seen.update(dict.fromkeys(texts_in(tools.run(workspace, ToolCall(tool.name, {})).value)))
    for name in sorted(openers & set(tools.tools)):
        first = next(iter(tools.tools[name].parameters))
        for table in workspace.tables():
            for row_id in list(workspace.rows(table)):
                shown = tools.run(workspace, ToolCall(name, {first: row_id}))
                if not shown.ok:
                    break  # another table's ids: this tool knows none of them
                seen.update(dict.fromkeys(texts_in(shown.value)))
    if "run_command" in tools.tools:
        for path in workspace.rows("file"):
            shown = tools.run(workspace, ToolCall("run_command", {"command": f"cat '{path}'"}))
            seen.update(dict.fromkeys(line for text in texts_in(shown.value) for line in text.splitlines()))
    return list(seen)


def stray_calls(episode: Episode) -> list[ToolCall]:
    """Returns, for each writing tool that can be made to do something, one call that changes the workspace."""
    tools, rng = toolbox(episode.task.apps), random.Random(f"stray/{episode.key}")
    seen = [*reachable(episode, episode.workspace.fork()), *(i for rows in episode.workspace.tables().values() for i in rows)]
    seen += ["somebody.else@office.example", episode.date.strftime("%Y-%m-%d 18:30"), "stray/notes.txt", STRAY_LINE]
    found = []
    for tool in tools.tools.values():
        for _ in range(TRIES if tool.write else 0):
            call, workspace = random_call(tools, seen, rng, tool), episode.workspace.fork()
            if tools.run(workspace, call).ok and workspace.diff():
                found.append(call)
                break
    return found


def _value(name: str, hint: Any, seen: Sequence[str], rng: random.Random) -> Any:
    options = get_args(hint)
    if options and type(None) in options:
        return _value(name, options[0], seen, rng)
    if get_origin(hint) is list:
        return [_value(name, options[0], seen, rng)]
    if options:
        return rng.choice(options)
    if hint is int:
        return rng.randrange(0, 3)
    if hint is float:
        return float(rng.randrange(1, 1_000))
    if hint is bool:
        return rng.random() < 0.5
    return rng.choice(_fitting(name, seen) or list(seen) or ["x"])


def _fitting(name: str, seen: Sequence[str]) -> list[str]:
    """Returns the texts that look like what an argument of this name takes."""
    if name.endswith(("_id", "_ids")):
        ids = [text for text in seen if ID.fullmatch(text)]
        kind = name.rpartition("_id")[0]
        return [text for text in ids if kind.startswith(text.rpartition("-")[0])] or ids
    if name == "command":
        return [STRAY_LINE, "ls"]
    if name in _PEOPLE:
        return [text for text in seen if EMAIL.fullmatch(text)]
    if any(part in _TIMES for part in name.split("_")):
        return [text for text in seen if STAMP.fullmatch(text)]
    if "path" in name:
        return [text for text in seen if PATH.fullmatch(text)]
    return []
