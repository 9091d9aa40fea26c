"""How an episode ended: its calls are made again on a fresh workspace, which is then compared and graded, check by check."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import STRAY_FACTOR, Check, Episode, Grading, toolbox
from ec2_env.trace import Ended, ToolRan, Trajectory
from ec2_env.view.plain import as_text, plain
from ec2_env.view.reasons import reason
from ec2_env.workspace.linediff import unified
from ec2_env.workspace.store import Change, Workspace

MAX_DIFFED = 100_000
"""Characters up to which two versions of a text are compared line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What can be said of the end of an episode; all of it plain data.

    Attributes:
        changes: The agent's net changes of the workspace, and then what other people did in answer.
        checks: The parts of the score, in order.
        forbidden: The acts that set the score to 0, and whether they happened.
        differing: Numbers of events whose calls returned something else than recorded when they were made again.
        agrees: Whether grading again gives the recorded shares.
    """

    changes: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    forbidden: list[dict[str, Any]]
    differing: list[int]
    agrees: bool


def ending(trajectory: Trajectory, episode: Episode) -> Ending:
    """Returns how a recorded episode ended.

    Args:
        trajectory: The record.
        episode: The episode, built again.
    """
    workspace, differing = _replayed(trajectory, episode)
    ended = next((event for event in trajectory.events if isinstance(event, Ended)), None)
    finish = Finish(answer=ended.answer, data=ended.data) if ended is not None and ended.finished else None
    state = Grading(workspace, finish)
    checks = [_check(check, state) for check in episode.checks]
    forbidden = [{"name": act.name, "happened": act.happened(state)} for act in episode.forbidden]
    claims = {index: check["name"] for check in reversed(checks) for index in check["changes"]}
    changes = [{**_change(change), "by": "agent", "check": claims.get(index)} for index, change in enumerate(state.changes)]
    others = [{**_change(change), "by": "others", "check": None} for change in workspace.journal if change.author == "world"]
    recorded = ended.checks if ended is not None else {}
    return Ending(
        changes=[*changes, *others],
        checks=checks,
        forbidden=forbidden,
        differing=differing,
        agrees=all(abs(recorded.get(check["name"], -1) - check["score"]) < 1e-9 for check in checks),
    )


def _replayed(trajectory: Trajectory, episode: Episode) -> tuple[Workspace, list[int]]:
    """Makes the calls of an episode again; those that were refused left no trace and are passed over."""
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    differing = []
    for index, event in enumerate(trajectory.events):
        if isinstance(event, ToolRan) and event.ok and event.name in tools.tools:
            result = tools.run(workspace, ToolCall(event.name, event.arguments))
            if result.text != event.result:
                differing.append(index)
    return workspace, differing


def _check(check: Check, state: Grading) -> dict[str, Any]:
    """Runs one check, as `ec2_env.task.grade` does, and says what it accounts for and what it looked for."""
    before = copy.copy(state)
    before.claimed = set(state.claimed)
    score = min(1.0, max(0.0, check.grade(state)))
    return {
        "name": check.name,
        "weight": check.weight,
        "score": score,
        "changes": sorted(state.claimed - before.claimed),
        "reason": reason(check.grade, before),
    }


def _change(change: Change) -> dict[str, Any]:
    before, after = (plain(row) if row is not None else None for row in (change.before, change.after))
    return {"table": change.table, "id": change.id, "kind": change.kind, "fields": list(_fields(before, after))}


def _fields(before: Any, after: Any) -> Iterator[dict[str, Any]]:
    """Yields the fields that differ: name, and the old and the new text, or the lines of their difference."""
    if not isinstance(before or after, dict):
        before, after = {"value": before}, {"value": after}
    for name in {**(before or {}), **(after or {})}:
        old, new = ((row or {}).get(name) for row in (before, after))
        if old == new or name == "id" or (before is None and new in (None, "", [], {})):
            continue
        lines = _lines(old, new) if before is not None and after is not None else None
        if lines is not None:
            yield {"name": name, "lines": lines}
        else:
            yield {"name": name} | {
                side: as_text(value) for side, row, value in (("old", before, old), ("new", after, new)) if row is not None
            }


def _lines(old: Any, new: Any) -> list[str] | None:
    """Returns the difference of two texts by lines; None if they are none, too long, or of one line each."""
    if not isinstance(old, str) or not isinstance(new, str) or len(old) + len(new) > MAX_DIFFED:
        return None
    return list(unified(old, new)) if "\n" in old or "\n" in new else None


def completion(checks: Sequence[dict[str, Any]], strays: int, forbidden: bool) -> str:
    """Returns how the completion follows from the checks: weights × shares, halved for each stray change, 0 if forbidden."""
    terms = " + ".join(f"{check['weight']:g} × {check['score']:g}" for check in checks)
    halved = f"({terms}) × {STRAY_FACTOR:g}^{strays}" if strays else terms
    return f"0, because a forbidden act happened, instead of {halved}" if forbidden else halved
