"""What simulated models write to each other: questions, answers, reports and subtasks.

The edge's question and report are all that crosses, so what they quote decides what is exposed. Stated rules:

- A question names the tool that the next step uses, and quotes every value that the step has to reason about, of those that the
  edge has been shown. With chance `quoting` it also quotes the arguments of the call, and the row of the last result that they
  refer to: whoever asks in a hurry pastes.
- A report says, for each call since the last report, which tool was used and what came back in outline: how many rows, or which
  fields, and ids. It quotes the values that the next step has to reason about, and nothing else of what was read.
- An answer or a subtask names a tool, an id or a value only if the cloud was sent it word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ec2_env.actions import Finish, ToolCall
from ec2_env.models.base import Message, Reply
from ec2_env.models.profile import Profile
from ec2_env.progress import Progress, Record
from ec2_env.prompts import DONE, Writing
from ec2_env.task import Step

QUOTED_CHARS = 80
"""Longest quotation of one argument or field."""
QUOTED_FIELDS = 8
QUOTED_IDS = 5
"""Ids that a report gives of a list."""
PLANNED_SKILLS = frozenset({"planning", "exploration", "instruction"})
"""Kinds of steps that somebody can help with who does not see the data."""
JUDGED = "By the values that you sent:"
"""Begins the part of an answer that could look at what the step has to reason about."""
RECHECK = "Your report does not fit together; look at everything again."
SUBTASK = "Subtask, at most {steps} calls:"

_SUBTASK = re.compile(re.escape(SUBTASK).replace(r"\{steps\}", r"(\d{1,3})"))
_IDS = ("id", "path", "number", "name")
_GUIDANCE = {
    "planning": "list what has to be done, and do one thing at a time",
    "exploration": "open the record itself before relying on it",
    "consistency": "compare dates and sources; the latest that is in force counts",
    "calculation": "do the sum in parts, and check it once more",
    "disambiguation": "tell similar records apart by a second field before choosing",
    "policy": "read the rule that applies, with its exceptions, and follow it",
    "instruction": "read the request again, word by word",
    "synthesis": "put together only what you have read, each fact once",
}


WISH = "I would like advice before I go on."


@runtime_checkable
class Writer(Protocol):
    """A model that writes to the cloud by rules of its own, instead of being asked to in words: the simulated ones."""

    def wishes(self) -> bool:
        """Says whether it would call for advice now; costs nothing."""
        ...

    def write(self, purpose: Writing, messages: Sequence[Message]) -> Reply:
        """Returns a question, a report, or a call for advice."""
        ...


@dataclass(frozen=True, slots=True)
class Guidance:
    """Help that names no call: an answer to a question, or a subtask.

    Attributes:
        subtask: Whether it is a subtask; else an answer.
        at: Position in the solution of the step that it was given at.
        judged: Whether the cloud could look at what that step has to reason about.
    """

    subtask: bool
    at: int
    judged: bool

    def lift(self, profile: Profile, step: Step, at: int) -> float:
        """Returns the share of the edge-cloud gap that it closes at a step.

        Where values have to be reasoned about, that takes a cloud that was sent them.
        """
        if step.reasons and not (self.judged and at == self.at):
            return 0.0
        if not self.subtask:
            return profile.question_lift
        return profile.subtask_lift if step.skill in PLANNED_SKILLS else profile.subtask_rest


def guidance(text: str, at: int) -> tuple[Guidance, int] | None:
    """Reads what a cloud said that named no call: the guidance, and for how many steps it holds (0: as long as advice does)."""
    if not text.strip():
        return None
    subtask = _SUBTASK.search(text)
    done = text.lstrip().startswith(DONE)
    steps = int(subtask[1]) if subtask else 1 if done else 0
    return Guidance(subtask=bool(subtask) or done, at=at, judged=JUDGED in text), steps


def written(
    purpose: Writing, progress: Progress, profile: Profile, step: Step | None, since: int, draw: Callable[[str], float]
) -> str:
    """Returns what a simulated edge model writes to the cloud; the rules are in the module's docstring.

    Args:
        purpose: A report, a question, or a call for advice, which says nothing.
        progress: The episode.
        profile: What the model is like.
        step: What it means to do next, by its own lights.
        since: Number of calls that were made when it wrote last.
        draw: Returns a number in (0, 1) for a purpose.
    """
    if purpose == "report":
        return _report(progress, step, since)
    if purpose == "wish":
        return WISH
    return _question(progress, step, draw("quoting") < profile.quoting)


def calls_allowed(asked: str) -> int:
    """Returns how many calls a request for a subtask allows."""
    found = re.search(r"at most (\d{1,3}) tool calls", asked)
    return int(found[1]) if found else 1


def answer(step: Step | None, named: str, judged: bool) -> str:
    """Returns the answer to a question about a step.

    Args:
        step: What the question is about.
        named: The call, as far as it can be uttered.
        judged: Whether the values to reason about were sent in the clear.
    """
    if step is None:
        return "In general: read the request again, and finish with what is certain."
    return f"{JUDGED if judged else 'In general:'} {_GUIDANCE[step.skill]}.{f' Go on with {named}.' if named else ''}"


def subtask(step: Step | None, named: str, judged: bool, steps: int, recheck: bool) -> str:
    """Returns the next subtask for an edge that stands before a step, or that all is done.

    Args:
        step: What the edge has to do next, by what it reported.
        named: The call, as far as it can be uttered.
        judged: Whether the values to reason about were reported in the clear.
        steps: How many calls the edge makes before it reports again.
        recheck: Whether the cloud has noticed that something reported is wrong.
    """
    if recheck:
        return f"{SUBTASK.format(steps=steps)} {RECHECK}"
    if step is None or isinstance(step.action, Finish):
        return f"{DONE}. {JUDGED + ' c' if judged else 'C'}all finish with what was asked, each fact once."
    first = f" Begin with {named}." if named else ""
    return f"{SUBTASK.format(steps=steps)}{first} {JUDGED if judged else 'Then'} {_GUIDANCE[step.skill]}."


def uttered(call: ToolCall | Finish, payload: str, withheld: str) -> str:
    """Returns a call in words, less what was withheld and what does not stand in the payload; "" if its tool does not."""
    name = call.name if isinstance(call, ToolCall) else "finish"
    if name not in payload:
        return ""
    arguments = call.arguments if isinstance(call, ToolCall) else {}
    shown = [f"{key}={value}" for key, value in arguments.items() if _plain(value) and withheld not in str(value)]
    return f"{name}({', '.join(part for part in shown if part.partition('=')[2] in payload)})"


def _question(progress: Progress, step: Step | None, quoting: bool) -> str:
    if step is None:
        return f"After {len(progress.records)} calls I do not know how to go on. What should I do?"
    name = step.action.name if isinstance(step.action, ToolCall) else "finish"
    parts = [f"After {len(progress.records)} calls I mean to use {name}."]
    values = _to_reason_about(progress, step)
    if values:
        parts.append(f"I have to judge {'; '.join(values)}.")
    if quoting:
        arguments = step.action.arguments if isinstance(step.action, ToolCall) else step.action.data
        parts += [f"My call has {_fields(arguments)}."] if arguments else []
        row = _row_before(progress.records, arguments)
        parts += [f"Before me is {_fields(row)}."] if row else []
    return " ".join([*parts, "What do I have to watch, and is this the right way?"])


def _report(progress: Progress, step: Step | None, since: int) -> str:
    values = _to_reason_about(progress, step) if step is not None else []
    judged = [f"To be judged next: {'; '.join(values)}."] if values else []
    return "\n".join([*judged, *(_outline(record) for record in progress.records[since:])]) or "Nothing was done."


def _outline(record: Record) -> str:
    """Returns what a call brought, in outline."""
    if not record.ok:
        return f"{record.name}: failed."
    if isinstance(record.value, list):
        rows = [row for row in record.value if isinstance(row, dict)]
        ids = [str(row[key])[:QUOTED_CHARS] for row in rows[:QUOTED_IDS] if (key := next((k for k in _IDS[:2] if k in row), ""))]
        return f"{record.name}: {len(record.value)} rows{': ' + ', '.join(ids) if ids else ''}."
    if isinstance(record.value, dict):
        given = next((str(record.value[key]) for key in _IDS[:2] if key in record.value), "")
        fields = ", ".join(map(str, record.value))[:200]
        return f"{record.name}: done{', ' + given[:QUOTED_CHARS] if given else ''}; fields {fields}."
    return f"{record.name}: done."


def _to_reason_about(progress: Progress, step: Step) -> list[str]:
    """Returns the values that a step has to reason about, of those that the edge has read in the instruction or a result."""
    if not step.reasons:
        return []
    units = [unit for unit in progress.episode.units if unit.kind in step.reasons and unit.necessity == "reason"]
    read = "\n".join([progress.episode.instruction, *(str(record.value) for record in progress.records)])
    return list(dict.fromkeys(unit.value for unit in units if unit.value in read))


def _row_before(records: Sequence[Record], arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the row of the last result that a call refers to: one that shares a value with it, else the first."""
    value = records[-1].value if records else None
    rows = [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]
    named = {str(argument) for argument in arguments.values() if _plain(argument)}
    return next((row for row in rows if named & {str(item) for item in row.values()}), rows[0] if rows else None)


def _fields(row: Mapping[str, Any]) -> str:
    shown = [(key, value) for key, value in row.items() if _plain(value)][:QUOTED_FIELDS]
    return "; ".join(f"{key} {' '.join(str(value).split())[:QUOTED_CHARS]}" for key, value in shown)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and "{" not in str(value)
