"""Playing a task's own solution, as it is or with some steps replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import Episode, Grade, Slip, Step, grade, toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result

MAX_CALLS = 200
BREAKS = (LookupError, ValueError, TypeError, AttributeError, RuntimeError)
"""What a solution may raise when it is shown something that it does not expect."""


@dataclass(frozen=True, slots=True)
class Played:
    """One run of a solution: its grade, the actions taken, what each returned, and the state at the end.

    Attributes:
        finish: The report, also the last of the actions; None if the run ended without one.
    """

    grade: Grade
    actions: tuple[ToolCall | Finish, ...]
    results: tuple[Result, ...]
    workspace: Workspace
    finish: Finish | None


Change = Callable[[int, Step], "Slip | None"]
"""Given a step's position and the step, returns the calls to make instead, or None to do the step as it is."""


def play(episode: Episode, change: Change | None = None) -> Played:
    """Plays a task's own solution, with some steps replaced.

    After a replaced step the solution goes on from what the last replacing call returned, or, if the step was left out, from what
    it would have returned: it does not know that something went wrong. If a changed solution breaks on that, the run ends there.
    """
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    solution = episode.solve()
    actions: list[ToolCall | Finish] = []
    results: list[Result] = []
    value: Any = None
    finish: Finish | None = None
    while finish is None and len(actions) < MAX_CALLS:
        try:
            step = solution.send(value)
        except StopIteration:
            break
        except BREAKS:
            if change is None:
                raise
            break
        instead = change(len(actions), step) if change else None
        calls = (step.action,) if instead is None else instead
        if not calls and isinstance(step.action, ToolCall):
            value = tools.run(workspace.fork(), step.action).value
        for call in calls:
            actions.append(call)
            if isinstance(call, Finish):
                finish = call
                break
            results.append(tools.run(workspace, call))
            value = results[-1].value
        if not calls and isinstance(step.action, Finish):
            break
    return Played(grade(episode, workspace, finish), tuple(actions), tuple(results), workspace, finish)


def steps_of(episode: Episode) -> list[Step]:
    """Returns the steps of a task's own solution."""
    found: list[Step] = []

    def note(index: int, step: Step) -> None:
        found.append(step)

    play(episode, note)
    return found


def texts_in(value: Any) -> Iterator[str]:
    """Yields every text and number in a tool's result, as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
