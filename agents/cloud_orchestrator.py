"""Cloud orchestrator: the cloud sets subtasks, the edge carries them out and reports; no tool result crosses by itself.

The cloud sees the instruction, the names of the tools with a line about each, its own subtasks and the edge's reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ec2_env.actions import InvokeCloud
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message
from ec2_env.prompts import ADVICE_MARK, CLOUD_DOWN, DELEGATE, DONE
from ec2_env.strategy import Choice, Decision, Strategy, StrategyMaker, View, options

ATTEMPTS = 3
"""Failed attempts in a row after which the edge goes on alone: the study's limit."""
STEPS = 5
"""Calls that the edge makes for a subtask, unless told otherwise."""
KEPT_CHARS = 600
"""So much of an earlier subtask is repeated to the cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudOrchestrator:
    """Lets the cloud lead.

    An attempt fails if the cloud sends no subtask, or if no call of the edge succeeds in it.

    Attributes:
        steps: Calls that the edge makes before it reports.
        redacted: Whether what crosses holds placeholders.
    """

    steps: int = STEPS
    redacted: bool = False
    uses_edge: bool = True

    @property
    def name(self) -> str:
        set_by_hand = [*(["redacted"] if self.redacted else []), *([f"steps={self.steps}"] if self.steps != STEPS else [])]
        return "cloud_orchestrator" + (f":{','.join(set_by_hand)}" if set_by_hand else "")

    def decide(self, view: View) -> Choice:
        """Returns a request for the next subtask when the last one has had its steps, EDGE within one and when all is done."""
        rounds = list(rounds_of(view.messages))
        if any(one.subtask.lstrip().upper().startswith(DONE) for one in rounds) or _failed_in_a_row(rounds) >= ATTEMPTS:
            return Decision.EDGE
        if rounds and rounds[-1].subtask and rounds[-1].calls < self.steps:
            return Decision.EDGE
        report = view.write("report") if view.step else ""
        return InvokeCloud(request=self._request(view, rounds, report), mode="advise", share="instruction", redact=self.redacted)

    def _request(self, view: View, rounds: Sequence[Round], report: str) -> str:
        """Returns what is asked. Each request begins with the one before it, so that a prompt cache serves it."""
        lines = [DELEGATE.format(steps=self.steps), "Tools:", *map(_tool_line, view.tools)]
        for one in rounds:
            lines += [f"Report: {one.report}"] if one.report else []
            lines += [f"Your subtask: {one.subtask[:KEPT_CHARS]}"] if one.subtask else []
        return "\n".join([*lines, f"Report: {report}" if report else "Nothing has been done yet."])


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What went to the cloud and came back once.

    Attributes:
        report: What the edge had written; "" if nothing.
        subtask: What the cloud answered; "" if it did not.
        calls: Calls made since.
        succeeded: How many of them the tools accepted.
    """

    report: str
    subtask: str
    calls: int
    succeeded: int


def rounds_of(messages: Sequence[Message]) -> Iterator[Round]:
    """Yields the rounds so far, read off the transcript: a strategy keeps nothing itself."""
    starts = [i for i, message in enumerate(messages) if i > 1 and _from_cloud(message)]
    for start, end in zip(starts, [*starts, len(messages)][1:], strict=True):
        said, before = str(messages[start]["content"]), messages[start - 1]
        results = [str(message["content"]) for message in messages[start:end] if message.get("role") == "tool"]
        written = before.get("role") == "assistant" and not before.get("tool_calls")
        yield Round(
            report=str(before["content"]) if written else "",
            subtask=said.removeprefix(ADVICE_MARK).strip() if said.startswith(ADVICE_MARK) else "",
            calls=len(results),
            succeeded=sum(not result.startswith('{"error":') for result in results),
        )


def _from_cloud(message: Message) -> bool:
    return message.get("role") == "user" and str(message.get("content")).startswith((ADVICE_MARK, CLOUD_DOWN))


def _failed_in_a_row(rounds: Sequence[Round]) -> int:
    """Returns how many attempts up to now have failed, one after the other; one that has just begun has not."""
    count = 0
    for one in reversed(rounds):
        if one.subtask and (one.succeeded or not one.calls):
            return count
        count += 1
    return count


def _tool_line(tool: Mapping[str, Any]) -> str:
    function = tool["function"]
    return f"- {function['name']}: {str(function.get('description', '')).strip().partition(chr(10))[0]}"


def make(text: str) -> Strategy:
    """Takes the options `redacted` and `steps=NUMBER`; default 5."""
    parts = [part for part in text.split(",") if part]
    steps = options(",".join(part for part in parts if part != "redacted"), steps=STEPS)["steps"]
    if steps < 1 or steps != int(steps):
        raise ConfigurationError(f"cloud_orchestrator steps is {steps:g}, expected a whole number of at least 1")
    return CloudOrchestrator(steps=int(steps), redacted="redacted" in parts)


STRATEGY = StrategyMaker(make=make, about="the cloud sets subtasks from the edge's reports; only instruction and reports cross")
