"""The conformance kit: what every task has to prove, for the tasks that ship and for yours.

`check_task("my_task", seeds=range(20)) == []` is all that a test of a task has to assert.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args, get_origin

from ec2_env.actions import Finish, ToolCall, action_text
from ec2_env.task import Episode, Grade, Slip, Step, build_episode, grade, tasks, toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result, Toolbox

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_STAMP = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_DATED = re.compile(r"\A[^.。]*[.。]\s*")
_ID = re.compile(r"[a-z]+-\d{4,5}")
_PATH = re.compile(r"(?:[\w-]+/)+[\w-]+\.\w+", re.ASCII)


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


@dataclass(frozen=True, slots=True)
class Mutant:
    """A solution with one thing wrong, and the completion it got."""

    name: str
    completion: float


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
    while finish is None and len(actions) < 200:
        try:
            step = solution.send(value)
        except StopIteration:
            break
        except (LookupError, ValueError, TypeError, AttributeError, RuntimeError):
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


def mutants(episode: Episode) -> Iterator[Mutant]:
    """Yields every solution with one essential thing wrong: each write dropped, doubled or corrupted, each reported fact wrong,
    each declared slip, a stray write, a stray deletion, and a right solution that never finishes.
    """
    tools = toolbox(episode.task.apps)
    steps = _steps(episode)
    for index, step in enumerate(steps):
        name = f"step {index} {step.action.name if isinstance(step.action, ToolCall) else 'finish'}"
        for number, slip in enumerate(step.slips):
            yield _mutant(f"{name}: slip {number}", episode, step.action, slip)
        if isinstance(step.action, Finish):
            yield _mutant(f"{name}: dropped", episode, step.action, ())
            for what, wrong in _wrong_data(step.action.data):
                yield _mutant(f"{name}: {what}", episode, step.action, (Finish(answer=step.action.answer, data=wrong),))
            for what, stray in _strays(episode):
                yield _mutant(f"{name}: {what} before it", episode, step.action, (stray, step.action))
        elif tools.tools[step.action.name].write:
            yield _mutant(f"{name}: dropped", episode, step.action, ())
            if not _idempotent(step.action, episode):
                yield _mutant(f"{name}: doubled", episode, step.action, (step.action, step.action))
            for what, call in _corrupted(step.action, episode):
                yield _mutant(f"{name}: {what}", episode, step.action, (call,))


def do_nothing(episode: Episode) -> float:
    """Returns the completion of an agent that finishes at once."""
    return grade(episode, episode.workspace.fork(), Finish()).completion


def random_calls(episode: Episode, steps: int = 15) -> float:
    """Returns the completion of an agent that makes valid calls at random, with values that it has seen, then a random report."""
    rng = random.Random(f"random/{episode.key}")
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    seen = episode.instruction.split()[:40]
    for _ in range(steps):
        call = random_call(tools, seen, rng)
        seen += list(_texts(tools.run(workspace, call).value))[:60]
    data = {slot.key: rng.choice(seen) for slot in episode.report}
    return grade(episode, workspace, Finish(answer=" ".join(seen), data=data)).completion


def random_call(tools: Toolbox, seen: list[str], rng: random.Random) -> ToolCall:
    """Returns a call that is valid for its schema, with texts drawn from `seen` (ids and addresses where they fit)."""
    tool = tools.tools[rng.choice(list(tools.tools))]
    arguments: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        if parameter.default is parameter.empty or rng.random() < 0.3:
            arguments[name] = _random_value(name, tool.hints[name], seen, rng)
    return ToolCall(tool.name, arguments)


def dump_everything(episode: Episode, as_list: bool) -> float:
    """Returns the completion of an agent that reads all it can and reports all of it in every slot."""
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    seen: dict[str, None] = {}
    for table in ("mail", "contact", "event", "file"):
        reader = {"mail": "read_mail", "contact": "get_contact", "event": "get_event", "file": "read_file"}[table]
        for row_id in list(workspace.rows(table)) if reader in tools.tools else ():
            first = next(iter(tools.tools[reader].parameters))
            seen.update(dict.fromkeys(_texts(tools.run(workspace, ToolCall(reader, {first: row_id})).value)))
    words = dict.fromkeys([*seen, *(word for text in seen for word in text.split())])
    everything = " ".join(seen)
    names = list(words)[:900]
    data: dict[str, Any] = {slot.key: names if as_list else everything for slot in episode.report}
    return grade(episode, workspace, Finish(answer=everything, data=data)).completion


def unseen_values(episode: Episode) -> list[str]:
    """Returns ids and addresses that the solution uses before any tool has shown them: signs of a crystal ball."""
    known = [episode.instruction]
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    solution, value = episode.solve(), None
    problems: list[str] = []
    while True:
        try:
            step = solution.send(value)
        except StopIteration:
            return problems
        text = action_text(step.action)
        for token in [*_EMAIL.findall(text), *_ID.findall(text), *_PATH.findall(text)]:
            if not any(token in shown for shown in known):
                problems.append(f"{token} in {text[:120]}")
        if isinstance(step.action, Finish):
            return problems
        result = tools.run(workspace, step.action)
        value = result.value
        known.append(result.text)


def check_task(name: str, seeds: Iterable[int] = range(20)) -> list[str]:
    """Returns everything that is wrong with a task, in words; an empty list for a sound one.

    Checked for every seed, language and split: the solution scores 1.0 and uses only what it has seen, no mutant scores 1.0,
    idle, random and dumping agents score at most 0.2, the same seed gives the same episode, and ten seeds
    or more differ in what they ask. Once per task: its solution has at least four steps and three slips.
    """
    task, seeds = tasks.get(name), list(seeds)
    problems: list[str] = []
    steps = _steps(build_episode(name, 0))
    if len(steps) < 4:
        problems.append(f"{name}: the solution has fewer than 4 steps; a task has at least 4")
    if sum(len(step.slips) for step in steps) < 3:
        problems.append(f"{name}: fewer than 3 slips; name the plausible ways to fail")
    for language in task.languages:
        for split in ("train", "test"):
            instructions = set()
            for seed in seeds:
                episode = build_episode(name, seed, language, split)
                instructions.add(_DATED.sub("", episode.instruction))
                problems += check_episode(episode)
            if len(instructions) < 2 and len(seeds) >= 10:
                problems.append(f"{name} ({language}, {split}): every seed has the same instruction; draw names and values")
    return problems


def check_episode(episode: Episode) -> list[str]:
    """Returns everything that is wrong with one episode; see `check_task`."""
    key, problems = episode.key, []
    again = build_episode(episode.name, episode.seed, episode.language, episode.split)
    if again.instruction != episode.instruction or dict(again.workspace.rows("mail")) != dict(episode.workspace.rows("mail")):
        problems.append(f"{key}: building it twice gives two episodes; draw only from world.rng, and iterate over no sets")
    done = play(episode)
    if done.grade.completion != 1.0:
        problems.append(f"{key}: the solution scores {done.grade.completion}, expected 1.0: {done.grade}")
    failed = [r.text for r in done.results if not r.ok]
    if failed:
        problems.append(f"{key}: a call of the solution fails: {failed[0][:200]}")
    problems += [f"{key}: the solution uses a value that no tool showed: {value}" for value in unseen_values(episode)]
    problems += [f"{key}: mutant survives with {m.completion}: {m.name}" for m in mutants(episode) if m.completion >= 1.0]
    idle = {
        "idle": do_nothing(episode),
        "random": random_calls(episode),
        "dump": dump_everything(episode, as_list=False),
        "dump as lists": dump_everything(episode, as_list=True),
    }
    problems += [f"{key}: the {agent} agent scores {score}, expected at most 0.2" for agent, score in idle.items() if score > 0.2]
    if not episode.units:
        problems.append(f"{key}: no sensitive unit; draw secrets with world.secret(...)")
    return problems


def _steps(episode: Episode) -> list[Step]:
    found: list[Step] = []

    def note(index: int, step: Step) -> None:
        found.append(step)

    play(episode, note)
    return found


def _mutant(name: str, episode: Episode, at: ToolCall | Finish, slip: Slip) -> Mutant:
    done = False

    def change(index: int, step: Step) -> Slip | None:
        nonlocal done
        if done or step.action != at:
            return None
        done = True
        return slip

    return Mutant(name, play(episode, change).grade.completion)


def _idempotent(call: ToolCall, episode: Episode) -> bool:
    """Says whether doing a call twice leaves what doing it once leaves (a label, a file): no mistake, so no mutant."""
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    tools.run(workspace, call)
    once = {(change.table, change.id) for change in workspace.diff()}
    tools.run(workspace, call)
    return bool(once) and {(change.table, change.id) for change in workspace.diff()} == once


def _wrong_data(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in data.items():
        yield f"{key} left out", {k: v for k, v in data.items() if k != key}
        for number, wrong in enumerate(_wrong_values(value)):
            yield f"{key} wrong ({number})", {**data, key: wrong}


def _wrong_values(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        yield str(value * 10)
    elif isinstance(value, str):
        yield _shift_days(value) if _STAMP.fullmatch(value) else f"{value} or another"
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
    for name, value in call.arguments.items():
        for number, wrong in enumerate(_corrupt_argument(name, value, episode)):
            yield f"{name} corrupted ({number})", ToolCall(call.name, {**call.arguments, name: wrong})


def _corrupt_argument(name: str, value: Any, episode: Episode) -> Iterator[Any]:
    if isinstance(value, list) and value and all(isinstance(v, str) and _EMAIL.fullmatch(v) for v in value):
        yield [*value[:-1], "somebody.else@office.example"]
        yield [*value, "somebody.else@office.example"]
        if len(value) > 1:
            yield value[:-1]
    elif isinstance(value, str) and _ID.fullmatch(value):
        table = {"mail_id": "mail", "event_id": "event", "reply_to": "mail"}.get(name)
        others = [key for key in episode.workspace.rows(table) if key != value] if table else []
        if others:
            yield others[0]
            yield others[-1]
    elif isinstance(value, str) and _STAMP.fullmatch(value):
        yield _shift_days(value)
    elif name in ("label", "path", "new_path"):
        yield f"{value}2"


def _strays(episode: Episode) -> Iterator[tuple[str, ToolCall]]:
    mails = list(episode.workspace.rows("mail"))
    if mails:
        yield "stray reply", ToolCall("reply_mail", {"mail_id": mails[-1], "body": "Thanks!"})
        yield "stray label", ToolCall("label_mail", {"mail_id": mails[-1], "label": "seen by somebody"})
    if "mail" in episode.task.apps:
        yield "stray mail", ToolCall("send_mail", {"to": ["somebody.else@office.example"], "subject": "FYI", "body": "Done."})
    if "files" in episode.task.apps:
        yield "stray file", ToolCall("write_file", {"path": "stray/notes.txt", "content": "x"})
    if "calendar" in episode.task.apps:
        day = episode.date.strftime("%Y-%m-%d")
        yield "stray event", ToolCall("create_event", {"title": "Stray", "start": f"{day} 18:00", "end": f"{day} 18:30"})


def _shift_days(text: str) -> str:
    form = "%Y-%m-%d %H:%M" if " " in text else "%Y-%m-%d"
    return (datetime.strptime(text, form) + timedelta(days=1)).strftime(form)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _random_value(name: str, hint: Any, seen: list[str], rng: random.Random) -> Any:
    options = get_args(hint)
    if options and type(None) in options:
        return _random_value(name, options[0], seen, rng)
    if get_origin(hint) is list:
        return [_random_value(name, options[0], seen, rng)]
    if options:
        return rng.choice(options)
    if hint is int:
        return rng.randrange(0, 3)
    if hint is bool:
        return rng.random() < 0.5
    pattern = _EMAIL if name in ("to", "cc", "emails", "attendees") else _ID if name.endswith("_id") else None
    if name in ("start", "end", "start_date", "end_date"):
        pattern = _STAMP
    fitting = [text for text in seen if pattern.fullmatch(text)] if pattern else seen
    return rng.choice(fitting or seen)
