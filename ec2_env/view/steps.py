"""The timeline of an episode: its events by step, with everything that crossed to the cloud marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ec2_env.cloud.matching import Matcher
from ec2_env.render import DECISION_NAMES
from ec2_env.reward import RewardWeights, terms
from ec2_env.sensitive import SensitiveUnit
from ec2_env.trace import CloudCall, Decided, EdgeTurn, Ended, Event, Exposed, ToolRan, Trajectory
from ec2_env.view.marks import hidden_values, pieces, placeholder_marks, value_marks
from ec2_env.view.plain import plain


class Timeline:
    """Makes plain data of an episode's events.

    Args:
        trajectory: The episode.
        matcher: Looks for its sensitive units.
    """

    def __init__(self, trajectory: Trajectory, matcher: Matcher) -> None:
        self.trajectory = trajectory
        self.matcher = matcher
        self.hidden = hidden_values(trajectory)

    def steps(self) -> list[dict[str, Any]]:
        """Returns the steps in order, each with its number and its events. How the episode ended is no event of a step."""
        events = [(index, event) for index, event in enumerate(self.trajectory.events) if not isinstance(event, Ended)]
        found = []
        for step, group in groupby(events, key=lambda pair: pair[1].step):
            shown = [self._event(index, event) for index, event in group]
            found.append({"step": step, "events": shown})
        return found

    def _event(self, index: int, event: Event) -> dict[str, Any]:
        match event:
            case Decided():
                name = DECISION_NAMES[event.decision] if 0 <= event.decision < len(DECISION_NAMES) else str(event.decision)
                shown = {"type": "decision", "name": name, "request": plain(event.request)}
            case ToolRan():
                shown = {
                    "type": "tool",
                    "by": event.by,
                    "name": event.name,
                    "arguments": plain(event.arguments),
                    "ok": event.ok,
                    "result": event.result,
                }
            case EdgeTurn():
                shown = {"type": "edge", **plain(event)}
            case CloudCall():
                shown = self._call(event)
            case Ended():
                shown = {"type": "end"}
        return {"index": index, **shown}

    def _call(self, call: CloudCall) -> dict[str, Any]:
        kept = {name: value for name, value in plain(call).items() if name not in ("sent", "exposures", "step")}
        names = _names(call, self.trajectory.instruction)
        sent = [
            {
                "position": position,
                "name": names.get(position, "transcript"),
                "text": self._sent(position, text, call),
                "exposed": sum(line.text == position for line in call.exposures),
            }
            for position, text in call.sent
        ]
        return {"type": "cloud", **kept, "sent": sent, "exposures": [exposure(line) for line in call.exposures]}

    def _sent(self, position: int, text: str, call: CloudCall) -> list[Any]:
        marks = list(value_marks(text, position, call.exposures, self.matcher))
        if call.redact:
            marks += placeholder_marks(text, self.hidden)
        return pieces(text, marks)


def exposure(line: Exposed) -> dict[str, Any]:
    """Returns what newly crossed, as plain data."""
    return {name: getattr(line, name) for name in ("unit", "level", "form", "call", "step", "origin", "event", "necessity")}


def _names(call: CloudCall, instruction: str) -> dict[int, str]:
    """Returns what the texts of a payload are whose positions say it; see `ec2_env.cloud.payload.build_payload`."""
    found = {0: "tool schemas", 1: "role"} if call.mode == "act" else {0: "role"}
    if call.share != "request" and call.texts > len(found):
        found[len(found)] = "instruction"
    last = call.texts - 1
    if last not in found and (call.mode == "advise" or call.share in ("request", "instruction")):
        found[last] = "request"
    return found


def step_terms(
    trajectory: Trajectory, units: Sequence[SensitiveUnit], weights: RewardWeights, cost: float
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yields the reward terms of each step, unweighted, and the weighted reward, by the number of the step.

    The end of the episode belongs to its last step.

    Args:
        trajectory: The episode.
        units: Its sensitive units.
        weights: Weights of the run.
        cost: Cost term of the whole episode: says what a US dollar counts.
    """
    spent = float(trajectory.result.get("cloud_usd") or 0.0)
    reference = spent / cost if spent > 0 and cost > 0 else 1.0
    known: dict[str, float] = {}
    last = max((event.step for event in trajectory.events if not isinstance(event, Ended)), default=0)
    for step, group in groupby(trajectory.events, key=lambda event: last if isinstance(event, Ended) else event.step):
        found = terms(list(group), known, units, reference)
        yield step, {"task": found.task, "cost": found.cost, "exposure": found.exposure, "reward": found.scalar(weights)}


def weights_of(settings: Mapping[str, Any]) -> RewardWeights:
    """Returns the weights of a run; the defaults if its manifest names none that can be used."""
    try:
        return RewardWeights(**settings["weights"])
    except (KeyError, TypeError, ValueError):
        return RewardWeights()
