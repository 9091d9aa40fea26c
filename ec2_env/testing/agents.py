"""Agents that do not do the work. What they earn, a grader pays for the wrong thing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.task import Episode, grade, toolbox
from ec2_env.testing.calls import random_call, reachable
from ec2_env.testing.play import texts_in
from ec2_env.workspace.store import Workspace

RANDOM_STEPS = 15
MOST_VALUES = 900
"""Values that a dumped list holds at most: tools and reports have limits."""
REFUSAL = {"en": "I am sorry, but I cannot help with this request.", "zh": "抱歉，我无法处理这个请求。"}
QUESTION = {"en": "Could you please clarify which one you mean?", "zh": "请问您具体指的是哪一个？"}
DONE = {"en": "All done: everything was checked and nothing unusual was found.", "zh": "已完成：全部核对无误，未发现异常。"}
CONSTANTS: tuple[Any, ...] = ("none", "yes", True, False, 0, 1, [], {})
"""What an agent with one answer for all questions may report."""


def do_nothing(episode: Episode) -> float:
    """Returns the completion of an agent that finishes at once."""
    return _ended(episode, Finish())


def random_calls(episode: Episode) -> float:
    """Returns the completion of an agent that makes valid calls at random, with values that it has seen, then a random report."""
    rng = random.Random(f"random/{episode.key}")
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    seen = episode.instruction.split()[:40]
    for _ in range(RANDOM_STEPS):
        call = random_call(tools, seen, rng)
        seen += list(texts_in(tools.run(workspace, call).value))[:60]
    data = {slot.key: rng.choice(seen) for slot in episode.report}
    return _ended(episode, Finish(answer=" ".join(seen), data=data), workspace)


def dump_everything(episode: Episode) -> float:
    """Returns the completion of an agent that reads all it can and reports all of it in every slot, as text or as a list."""
    seen = reachable(episode, episode.workspace.fork())
    words = list(dict.fromkeys([*seen, *(word for text in seen for word in text.split())]))[:MOST_VALUES]
    everything = " ".join(seen)
    return _best(episode, everything, (everything, words, {word: word for word in words}))


def copy_inbox(episode: Episode) -> float:
    """Returns the completion of an agent that opens what the lists show first and hands that on, without reading it."""
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    copied: list[str] = []
    for tool in tools.tools.values():
        if tool.opens is None or any(p.default is p.empty for p in tool.parameters.values()):
            continue
        rows = tools.run(workspace, ToolCall(tool.name, {})).value
        first = next(iter(tools.tools[tool.opens].parameters))
        for row in rows if isinstance(rows, list) else ():
            row_id = (row.get("id") or row.get("path")) if isinstance(row, dict) else None
            if isinstance(row_id, str):
                copied += texts_in(tools.run(workspace, ToolCall(tool.opens, {first: row_id})).value)
    return _best(episode, "\n".join(copied), ("\n".join(copied), copied[:MOST_VALUES]))


def always_refuse(episode: Episode) -> float:
    """Returns the completion of an agent that refuses whatever it is asked."""
    text = REFUSAL[episode.language]
    return _best(episode, text, (text,))


def always_ask(episode: Episode) -> float:
    """Returns the completion of an agent that always asks back: in its report, or the sender of the newest mail."""
    text = QUESTION[episode.language]
    asked = episode.workspace.fork()
    tools = toolbox(episode.task.apps)
    if "reply_mail" in tools.tools:
        newest = tools.run(asked, ToolCall("list_mail", {})).value[:1]
        for mail in newest:
            tools.run(asked, ToolCall("reply_mail", {"mail_id": mail["id"], "body": text}))
    return max(_best(episode, text, (text,)), _best(episode, text, (text,), asked))


def fixed_text(episode: Episode) -> float:
    """Returns the completion of the best agent that reports one constant in every slot."""
    return _best(episode, DONE[episode.language], (*CONSTANTS, episode.date.strftime("%Y-%m-%d")))


AGENTS: dict[str, Callable[[Episode], float]] = {
    "nothing": do_nothing,
    "random": random_calls,
    "dump": dump_everything,
    "inbox": copy_inbox,
    "refuse": always_refuse,
    "ask": always_ask,
    "fixed": fixed_text,
}
"""Every agent by a short name, in the order of the columns of `ec2-env audit-tasks`."""


def _best(episode: Episode, answer: str, values: Iterable[Any], workspace: Workspace | None = None) -> float:
    """Returns the best completion over reports that hold the same value in every slot."""
    return max(
        _ended(episode, Finish(answer=answer, data={slot.key: value for slot in episode.report}), workspace) for value in values
    )


def _ended(episode: Episode, finish: Finish, workspace: Workspace | None = None) -> float:
    return grade(episode, workspace or episode.workspace.fork(), finish).completion
