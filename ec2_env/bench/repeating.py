"""Makes the calls of a stored trajectory again on a fresh workspace; no strategy and no model takes part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from ec2_env.actions import Finish, ToolCall
from ec2_env.session import FAULTS, PASS_THRESHOLD
from ec2_env.task import Episode, build_episode, grade, toolbox
from ec2_env.trace import Decided, Ended, ToolRan, Trajectory
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Toolbox, failure
from ec2_env.workspace.world import Language, Split

CLIPPED_TEXT, CLIPPED_NAME = 200, 60
"""Characters of a refused call that a record keeps: a longer one cannot be made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What the calls of a trajectory bring now.

    Attributes:
        episode: The episode, built again from its key.
        texts: Result of each call, by the position of its event.
        ended: How the episode ends now, by the position of that event.
    """

    episode: Episode
    texts: dict[int, str]
    ended: dict[int, Ended]


def repeat(trajectory: Trajectory) -> Repeated:
    """Makes every recorded call again and grades the end.

    Faults that a service was drawn to have, and refused calls of which the record keeps only a part, are not made again: they
    changed nothing, and their recorded text is taken.

    Raises:
        UnknownName: if the task does not exist.
        ConfigurationError: if it does not exist in that language or split.
    """
    language, split = cast(Language, trajectory.language), cast(Split, trajectory.split)
    episode = build_episode(trajectory.task, trajectory.seed, language, split)
    tools, workspace = toolbox(episode.task.apps), episode.workspace.fork()
    texts: dict[int, str] = {}
    ended: dict[int, Ended] = {}
    finish: Finish | None = None
    for index, event in enumerate(trajectory.events):
        if isinstance(event, ToolRan):
            texts[index] = _made_again(event, tools, workspace)
            finish = _finish(event) if event.name == "finish" and event.ok else finish
        elif isinstance(event, Ended):
            shown = "\n".join([episode.instruction, *texts.values()])
            ended[index] = _ended(trajectory, episode, event, shown, workspace, finish)
    return Repeated(episode=episode, texts=texts, ended=ended)


def graded_again(trajectory: Trajectory) -> Trajectory:
    """Returns the record with its end graded by the graders that are installed."""
    ended = repeat(trajectory).ended
    events = tuple(ended.get(index, event) for index, event in enumerate(trajectory.events))
    return msgspec.structs.replace(trajectory, events=events)


def _made_again(event: ToolRan, tools: Toolbox, workspace: Workspace) -> str:
    """Returns the text that a call brings now; what was recorded if the call cannot be made again."""
    if event.name == "finish" and event.ok:
        return '{"finished":true}'
    problem = event.arguments.get("text")
    if event.name == "invalid" and not event.ok and isinstance(problem, str):
        return event.result if len(problem) >= CLIPPED_TEXT else failure(problem).text
    partial = set(event.arguments) == {"too_large"} or len(event.name) >= CLIPPED_NAME
    fault = any(event.result == failure(f"{event.name}: {text}").text for text in FAULTS)
    if not event.ok and (partial or fault):
        return event.result
    result = tools.run(workspace, ToolCall(event.name, event.arguments))
    if not event.ok and not result.ok and result.text != event.result and event.result in _refusals(event, tools, workspace):
        return event.result
    return result.text


def _refusals(event: ToolRan, tools: Toolbox, workspace: Workspace) -> set[str]:
    """Returns how a call with several wrong arguments can be refused: one is named, and records keep no order of arguments."""
    orders = [{name: event.arguments[name], **event.arguments} for name in event.arguments]
    return {tools.run(workspace.fork(), ToolCall(event.name, order)).text for order in orders}


def _finish(event: ToolRan) -> Finish:
    answer, data = event.arguments.get("answer"), event.arguments.get("data")
    return Finish(answer=answer if isinstance(answer, str) else "", data=data if isinstance(data, dict) else {})


def _ended(
    trajectory: Trajectory, episode: Episode, event: Ended, shown: str, workspace: Workspace, finish: Finish | None
) -> Ended:
    """Returns how the episode ends now. What broke an endpoint, and the number of steps, are taken as they were recorded."""
    graded = grade(episode, workspace, finish)
    touched = tuple(unit.id for unit in episode.units if unit.value in shown)
    if not any(isinstance(one, Decided) for one in trajectory.events) and set(touched) < set(event.touched):
        touched = event.touched  # an agent that calls the cloud itself reads the cloud's answers as results of a tool
    status = "pass" if graded.completion >= PASS_THRESHOLD else "fail"
    if event.status == "error" or _all_invalid(trajectory, toolbox(episode.task.apps)):
        status = "error" if event.status == "error" else "invalid"
    return Ended(
        step=event.step,
        status=cast(Any, status),
        completion=graded.completion,
        checks=graded.checks,
        strays=graded.strays,
        forbidden=graded.forbidden,
        touched=touched,
        finished=finish is not None,
        answer=finish.answer if finish else "",
        data=finish.data if finish else {},
        problem=event.problem,
    )


def _all_invalid(trajectory: Trajectory, tools: Toolbox) -> bool:
    calls = [event for event in trajectory.events if isinstance(event, ToolRan)]
    return bool(calls) and all(not call.ok and call.name not in tools.tools and call.name != "finish" for call in calls)
