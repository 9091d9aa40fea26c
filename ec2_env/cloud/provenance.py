"""Where a value that crossed had come from: which earlier event brought it into the context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ec2_env.cloud.audit import Exposure
from ec2_env.cloud.matching import matcher_for
from ec2_env.sensitive import SensitiveUnit
from ec2_env.trace import Event, Exposed, Origin, ToolRan


def exposed(
    found: Sequence[Exposure],
    texts: Sequence[str],
    units: tuple[SensitiveUnit, ...],
    instruction: str,
    events: Sequence[Event],
    *,
    step: int,
    call: int,
) -> tuple[Exposed, ...]:
    """Returns what a call exposed, for the record.

    Args:
        found: What the audit says to the call.
        texts: The texts of its payload.
        units: The episode's sensitive units.
        instruction: The episode's instruction.
        events: What happened before the call.
        step: Number of the step.
        call: Number of the call among those that were sent, from 1.
    """
    if not found:
        return ()
    numbers = {unit.id: number for number, unit in enumerate(units)}
    context = Context(instruction, events)
    matcher = matcher_for(units)
    lines = []
    for one in found:
        number = numbers[one.unit]

        def level(text: str, number: int = number) -> float:
            return max((hit.level for hit in matcher.findings(text).hits if hit.unit == number), default=0.0)

        origin, event = context.origin(units[number].value, one.level, texts[one.field], level)
        need = units[number].necessity
        start, end = one.span
        lines.append(Exposed(one.unit, one.level, one.form, one.field, start, end, step, call, origin, event, need))
    return tuple(lines)


class Context:
    """The texts that an agent has read and written, in order.

    Args:
        instruction: The episode's instruction.
        events: What happened so far.
    """

    __slots__ = ("_texts",)

    def __init__(self, instruction: str, events: Sequence[Event]) -> None:
        self._texts: list[tuple[Origin, int, str]] = [("instruction", -1, instruction)]
        for index, event in enumerate(events):
            if isinstance(event, ToolRan):
                self._texts.append(("agent", index, msgspec.json.encode(event.arguments).decode()))
                self._texts.append(("tool", index, event.result))

    def origin(self, value: str, level: float, sent: str, level_in: Callable[[str], float]) -> tuple[Origin, int]:
        """Returns what brought a value into the context, and its position among the events, -1 if it is no event.

        That is the first text that shows the value as it is written; else the first that shows it to the audit; else the text
        that was sent, if it was read before (a value cut in two); else the agent's own request.

        Args:
            value: The value as it is written in the workspace.
            level: How much of it crossed.
            sent: The text that crossed with it.
            level_in: Returns how much of the value a text shows.
        """
        exact = self._first(lambda text: value in text)
        if exact is not None and exact[0] != "agent":
            return exact
        shown = self._first(lambda text: value in text or level_in(text) >= level)
        return shown or self._first(lambda text: text == sent) or ("agent", -1)

    def _first(self, shows: Callable[[str], bool]) -> tuple[Origin, int] | None:
        return next(((origin, index) for origin, index, text in self._texts if shows(text)), None)
