"""Mutation testing of graders: a right solution with one thing wrong has to score below 1.

A mutant that leaves the same state and the same report as the right solution is equivalent, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any, Literal, get_args, get_origin

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import Episode, Slip, Step, toolbox
from ec2_env.testing.calls import EMAIL, ID, STAMP, stray_calls
from ec2_env.testing.play import Played, play, steps_of, texts_in

STRANGER = "somebody.else@office.example"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A solution with one thing wrong, and the completion it got."""

    name: str
    completion: float


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What to do instead of a step. Declared slips always count; what else leaves everything as it should be is no mutant."""

    name: str
    instead: dict[int, Slip]
    declared: bool = False


def mutants(episode: Episode) -> Iterator[Mutant]:
    """Yields every solution with one essential thing wrong, and what it scores.

    Each declared slip; each write dropped, doubled, or with one argument corrupted (another recipient, record, choice, amount or
    path, the next day); two writes of one tool with their targets swapped; each reported fact left out, negated, wrong or among
    everything that was read; a stray call of each writing tool; and a right solution that never finishes.
    """
    right = play(episode)
    for wrong in _wrongs(episode, right):
        played = play(episode, _instead(wrong.instead))
        if wrong.declared or played.finish != right.finish or played.workspace.diff() != right.workspace.diff():
            yield Mutant(wrong.name, played.grade.completion)


def _wrongs(episode: Episode, right: Played) -> Iterator[_Wrong]:
    steps = steps_of(episode)
    for index, step in enumerate(steps):
        name = f"step {index} {step.action.name if isinstance(step.action, ToolCall) else 'finish'}"
        for number, slip in enumerate(step.slips):
            yield _Wrong(f"{name}: slip {number}", {index: slip}, declared=True)
        if isinstance(step.action, Finish):
            yield from _wrong_endings(episode, right, name, index, step.action)
        elif toolbox(episode.task.apps).tools[step.action.name].write:
            yield _Wrong(f"{name}: dropped", {index: ()})
            if not _idempotent(step.action, right, index, episode):
                yield _Wrong(f"{name}: doubled", {index: (step.action, step.action)})
            for what, call in _corrupted(step.action, episode):
                yield _Wrong(f"{name}: {what}", {index: (call,)})
    yield from _swapped(episode, steps)


def _wrong_endings(episode: Episode, right: Played, name: str, index: int, finish: Finish) -> Iterator[_Wrong]:
    yield _Wrong(f"{name}: dropped", {index: ()})
    everything = " ".join(text for result in right.results for text in texts_in(result.value))
    for what, data in _wrong_data(finish.data, everything):
        yield _Wrong(f"{name}: {what}", {index: (Finish(answer=finish.answer, data=data),)})
    for stray in stray_calls(episode):
        yield _Wrong(f"{name}: stray {stray.name} before it", {index: (stray, finish)})


def _instead(changes: dict[int, Slip]) -> Any:
    """Returns a change for `play` that replaces steps by their number, counted in steps of the solution and not in calls made."""
    count = -1

    def change(index: int, step: Step) -> Slip | None:
        nonlocal count
        count += 1
        return changes.get(count)

    return change


def _idempotent(call: ToolCall, right: Played, index: int, episode: Episode) -> bool:
    """Says whether doing a call twice touches what doing it once touches (a label, a file): no mistake, so no mutant."""
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    for action in right.actions[: index + 1]:
        if isinstance(action, ToolCall):
            tools.run(workspace, action)
    once = {(change.table, change.id) for change in workspace.diff()}
    tools.run(workspace, call)
    return {(change.table, change.id) for change in workspace.diff()} == once


def _swapped(episode: Episode, steps: Sequence[Step]) -> Iterator[_Wrong]:
    """Yields solutions in which two writes of one tool have each other's first argument: the right work on the wrong records."""
    tools = toolbox(episode.task.apps).tools
    calls = [
        (index, step.action)
        for index, step in enumerate(steps)
        if isinstance(step.action, ToolCall) and tools[step.action.name].write and len(step.action.arguments) > 1
    ]
    for (one, first), (two, second) in combinations(calls, 2):
        if first.name != second.name or set(first.arguments) != set(second.arguments):
            continue
        key = next(iter(first.arguments))
        others = [name for name in first.arguments if name != key]
        if first.arguments[key] == second.arguments[key] or all(first.arguments[n] == second.arguments[n] for n in others):
            continue
        yield _Wrong(
            f"steps {one} and {two} {first.name}: {key} swapped",
            {
                one: (ToolCall(first.name, {**first.arguments, key: second.arguments[key]}),),
                two: (ToolCall(second.name, {**second.arguments, key: first.arguments[key]}),),
            },
        )


def _wrong_data(data: dict[str, Any], everything: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in data.items():
        yield f"{key} left out", {k: v for k, v in data.items() if k != key}
        for number, wrong in enumerate(_wrong_values(value)):
            yield f"{key} wrong ({number})", {**data, key: wrong}
        if not isinstance(value, bool):
            dump = everything.split() if isinstance(value, list) else f"{value} {everything}"
            yield f"{key} dumped with everything read", {**data, key: [*value, *dump] if isinstance(value, list) else dump}


def _wrong_values(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        yield str(value * 10 + 10)
        yield -value if value else -1
    elif isinstance(value, str):
        yield shift_days(value) if STAMP.fullmatch(value) else f"{value} or another"
        yield f"not {value}"
    elif isinstance(value, list):
        yield value[:-1] if value else ["something"]
        yield [*value, "something else"]
    elif isinstance(value, dict) and value:
        first = next(iter(value))
        yield {k: v for k, v in value.items() if k != first}
        for wrong in _wrong_values(value[first]):
            yield {**value, first: wrong}


def _corrupted(call: ToolCall, episode: Episode) -> Iterator[tuple[str, ToolCall]]:
    hints = toolbox(episode.task.apps).tools[call.name].hints
    for name, value in call.arguments.items():
        for number, wrong in enumerate(_corrupt(name, value, hints.get(name), episode)):
            yield f"{name} corrupted ({number})", ToolCall(call.name, {**call.arguments, name: wrong})


def _corrupt(name: str, value: Any, hint: Any, episode: Episode) -> Iterator[Any]:
    choices = _choices(hint)
    if choices:
        yield from [choice for choice in choices if choice != value][:2]
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
    elif isinstance(value, list) and value and all(isinstance(v, str) and EMAIL.fullmatch(v) for v in value):
        yield [*value[:-1], STRANGER]
        yield [*value, STRANGER]
        if len(value) > 1:
            yield value[:-1]
    elif isinstance(value, list) and value and all(isinstance(v, str) and ID.fullmatch(v) for v in value):
        yield value[:-1]
        yield from ([*value, other] for other in _others(value[-1], value, episode)[:1])
    elif isinstance(value, str) and EMAIL.fullmatch(value):
        yield STRANGER
    elif isinstance(value, str) and ID.fullmatch(value):
        others = _others(value, [value], episode)
        yield from dict.fromkeys(others[:1] + others[-1:])
    elif isinstance(value, str) and STAMP.fullmatch(value):
        yield shift_days(value)
    elif name in ("label", "path", "new_path"):
        yield f"{value}2"


def _choices(hint: Any) -> tuple[Any, ...]:
    """Returns the values that an argument chooses from, or nothing if it is free."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((get_args(option) for option in get_args(hint) if get_origin(option) is Literal), ())


def _others(value: str, but: Sequence[str], episode: Episode) -> list[str]:
    """Returns the ids of the initial rows of the same kind."""
    kind = value.rpartition("-")[0]
    rows = (row_id for table in episode.workspace.tables().values() for row_id in table)
    return [row_id for row_id in rows if row_id.rpartition("-")[0] == kind and row_id not in but]


def shift_days(text: str) -> str:
    """Returns the same time on the next day."""
    form = "%Y-%m-%d %H:%M" if " " in text else "%Y-%m-%d"
    return (datetime.strptime(text, form) + timedelta(days=1)).strftime(form)
