"""Why a check earned what it earned, as far as its grader can say: what it looks for, what it found, and what it depends on.

Graders are functions. Those made of the blocks in `ec2_env.checks` can be read: their fields say what they expect, and gates say
what has to be earned first. Of a task's own function only the first line of its docstring is known. Nothing else is said.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from typing import Any

from ec2_env.checks.blocks import Grader
from ec2_env.task import Grading
from ec2_env.view.plain import plain

BLOCKS = "ec2_env.checks.blocks"
MAX_DEPTH = 5
WORDS = {
    "gated": "counts only if what it needs is fully earned",
    "whole": "all or nothing",
    "mostly": "open once half is earned",
    "every": "the mean of its parts",
}
"""What the graders of graders in `ec2_env.checks.blocks` do, by the names of the functions that make them."""


def reason(grader: Grader, state: Grading, depth: int = 0) -> dict[str, Any]:
    """Returns what a grader looks for and found, as plain data.

    Keys, each only where there is something to say: `rule` (name of its class), `about` (one line), `expects` (fields by name),
    `key` and `reported` (what the agent reported under it), `needs` (gates) and `parts`; these two list the same with a `score`.

    Args:
        grader: The grader.
        state: The grading before it ran; stays as it is.
        depth: How many graders it stands in.
    """
    block = _block(grader)
    if block is not None and depth < MAX_DEPTH:
        inside = inspect.getclosurevars(grader).nonlocals
        parts = inside.get("graders") or (inside["grader"],)
        found: dict[str, Any] = {"about": WORDS[block]}
        if inside.get("gates"):
            found["needs"] = [one for gate in inside["gates"] for one in _scored((gate,), _unclaimed(state), depth)]
        return found | {"parts": _scored(parts, state, depth)}
    if dataclasses.is_dataclass(grader) and not isinstance(grader, type):
        return _fields(grader, state)
    about = _first_line(grader)
    return {"about": about} if about else {}


def _block(grader: Grader) -> str | None:
    """Returns the name of the block that made a grader, or None."""
    if not inspect.isfunction(grader) or grader.__module__ != BLOCKS:
        return None
    name = grader.__qualname__.partition(".")[0]
    return name if name in WORDS else None


def _scored(graders: Any, state: Grading, depth: int) -> list[dict[str, Any]]:
    """Runs graders one after the other, as a block does, on a copy."""
    now, found = _copy(state), []
    for grader in graders:
        why = reason(grader, now, depth + 1)
        found.append({"score": float(grader(now)), **why})
    return found


def _copy(state: Grading) -> Grading:
    other = copy.copy(state)
    other.claimed = set(state.claimed)
    return other


def _unclaimed(state: Grading) -> Grading:
    other = copy.copy(state)
    other.claimed = set()
    return other


def _fields(grader: Any, state: Grading) -> dict[str, Any]:
    """Returns the fields of a grader that differ from their defaults, and what was reported under its key."""
    expects = {
        field.name: plain(value)
        for field in dataclasses.fields(grader)
        if field.repr and (value := getattr(grader, field.name)) != _default(field)
    }
    found: dict[str, Any] = {"rule": type(grader).__name__, "about": _first_line(type(grader)), "expects": expects}
    key = getattr(grader, "key", None)
    if isinstance(key, str):
        found["reported"] = plain(state.finish.data[key]) if state.finish is not None and key in state.finish.data else None
        found["key"] = key
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _first_line(of: Any) -> str:
    """Returns the first sentence of a docstring."""
    return (inspect.getdoc(of) or "").partition("\n")[0].partition(". ")[0].rstrip(".")
