"""Simulated models: the default, so that everything runs in seconds on a laptop.

A simulated model walks the task's solution and does each step right with a probability that its profile, the step and the task
give. Whatever stands in for the cloud may use only what crossed to it: see `SimulatedCloud`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall, action_text, dump_action
from ec2_env.errors import ConfigurationError
from ec2_env.facts import as_number, holds
from ec2_env.models import asking, lookback
from ec2_env.models.base import Message, Model, ModelCard, Reply
from ec2_env.models.chances import ability_logit, choose, logistic, luck
from ec2_env.models.draws import normal, uniform
from ec2_env.models.loading import Loader
from ec2_env.models.mind import Mind, card_of, fumble
from ec2_env.models.profile import Profile, load_profile, profile_names
from ec2_env.models.walker import Walker
from ec2_env.progress import Progress
from ec2_env.prompts import ADVISE, DELEGATE, LEFT_OUT, PLAN
from ec2_env.sensitive import SensitiveUnit
from ec2_env.task import Step
from ec2_env.trace import ToolRan

_NAMED = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[a-z]+-\d{4,5}", re.ASCII)
"""What nobody can work out: addresses and ids."""
_AMOUNT = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
WITHHELD = "(not shown to me)"


class SimulatedModel:
    """A simulated model, before it is bound to an episode."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @property
    def card(self) -> ModelCard:
        return card_of(self.profile)

    def bind_edge(self, progress: Progress, cloud: Model | None) -> Mind:
        """Returns the edge side for one episode. Help from a real cloud model is reckoned as help from its equal."""
        return Mind(self.profile, progress, cloud.profile if isinstance(cloud, SimulatedModel) else None)

    def bind_cloud(self, progress: Progress) -> SimulatedCloud:
        """Returns the cloud side for one episode."""
        return SimulatedCloud(self.profile, progress)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Always refuses: a simulated model needs an episode.

        Raises:
            ConfigurationError: always; says how to bind it.
        """
        raise ConfigurationError(
            f"sim:{self.profile.name} is simulated and answers only inside an episode; use it as a model of an env"
        )


class SimulatedCloud:
    """A simulated model at the far side of the boundary. What it said before does not matter to it.

    It knows the solution, but says only what its payload held, or what can be worked out from it: an id, address or sensitive
    value that did not cross comes out as `WITHHELD`, one that crossed as a placeholder comes out as that placeholder. Without the
    transcript, nothing comes out that was not sent word for word. A step that has to reason about a value that did not cross in
    the clear succeeds less often, and no number is worked out there.

    Args:
        profile: What the model is like.
        progress: The episode.

    Attributes:
        hide: Set before a redacted request: replaces sensitive values by the placeholders that crossed.
    """

    def __init__(self, profile: Profile, progress: Progress) -> None:
        self.profile = profile
        self.progress = progress
        self.hide: Callable[[str], str] | None = None
        self._worker = Mind(profile, progress, side="cloud")

    def fork(self, progress: Progress) -> SimulatedCloud:
        """Returns an independent copy that works in a copy of the episode."""
        other = SimulatedCloud.__new__(SimulatedCloud)
        other.profile, other.progress, other.hide = self.profile, progress, None
        other._worker = self._worker.fork(progress)
        return other

    @property
    def card(self) -> ModelCard:
        return card_of(self.profile)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns a plan, advice or a call, by what the first message asks for."""
        role = str(messages[0].get("content")) if messages else ""
        if role.startswith(PLAN):
            return Reply(text=self._plan(), thinking_tokens=round(self.profile.plan_thinking * self._thinking()))
        payload = "\n".join(_texts(messages))
        transcript = any(message.get("role") == "tool" for message in messages) or self._at_the_start(payload)
        if role.startswith(ADVISE) and (guidance := self._guidance(messages, payload)):
            return Reply(text=guidance, thinking_tokens=self._thinking())
        if role.startswith(ADVISE):
            action = self._as_seen(self._advised(payload, transcript), payload, transcript)
            return Reply(text=f"Do this next: {action_text(action)}", thinking_tokens=self._thinking())
        if transcript:
            self._worker.handicap = partial(self._handicap, payload)
            action = self._worker.turn()
        else:
            action = self._advised(payload, transcript)
        uttered = self._as_seen(action, payload, transcript)
        if LEFT_OUT in payload and WITHHELD in action_text(uttered):
            again = lookback.look_again(action, payload, self.progress.records, self._results())
            if again is not None:
                uttered, self._worker.awaiting, self._worker.queue = again, "", ()
        return Reply(calls=(dump_action(uttered),), thinking_tokens=self._thinking())

    def _results(self) -> list[str]:
        """Returns what the calls so far have returned, as text."""
        return [event.result for event in self.progress.events if isinstance(event, ToolRan)]

    def _at_the_start(self, payload: str) -> bool:
        """Says whether nothing has been done yet and the instruction is in the payload: then there is nothing else to know."""
        return not self.progress.records and self.progress.episode.instruction in payload

    def _plan(self) -> str:
        """Returns a plan in general terms; of the solution it tells only which tool comes first."""
        step = Walker(self.progress.episode).step
        first = step.action.name if step is not None and isinstance(step.action, ToolCall) else "finish"
        return (
            f"1. Begin with {first}. 2. Read the rules that apply. 3. Open each record before relying on it. "
            "4. Compare dates and sources; the latest counts. 5. Act once. 6. Report what was asked."
        )

    def _guidance(self, messages: Sequence[Message], payload: str) -> str:
        """Returns the answer to a question that crossed alone, or the next subtask; "" if neither was asked for.

        Where the edge stands it takes from what the edge wrote: if that is simulated, the step is the one it means to do.
        """
        asked = str(messages[-1].get("content"))
        delegated = asked.startswith(DELEGATE.partition("{steps}")[0])
        if len(messages) != 2 and not delegated:
            return ""
        edge = self.progress.minds.get("edge")
        step = edge.standing if edge is not None else self._worker.tracker.walker.step
        named, judged = "", False
        if step is not None:
            named = asking.uttered(self._as_seen(step.action, payload, transcript=False), payload, WITHHELD)
            judged = bool(step.reasons) and not self._hidden(payload, step)
        if not delegated:
            return asking.answer(step, named, judged)
        noticed = uniform(self.progress.noise, self.profile.name, "report", len(self.progress.records)) < self.profile.repair
        return asking.subtask(step, named, judged, asking.calls_allowed(asked), bool(edge and edge.astray and noticed))

    def _advised(self, payload: str, transcript: bool) -> ToolCall | Finish:
        """Returns what it takes to be the next call, right or wrong, seeing the episode as it would when it took over."""
        worker = self._worker
        if transcript:
            worker.notice()
        walker = worker._walker() if transcript else Walker(self.progress.episode)
        step = walker.step
        if step is None:
            return Finish(answer="I could not complete this.")
        purpose = (self.progress.noise, self.profile.draws, len(walker.sends), len(self.progress.records))
        at, lucks = len(walker.sends), (worker.stuck, worker.repairs) if transcript else (0, 0)
        logit = ability_logit(self.profile, self.progress, step, at) - self._handicap(payload, step)
        if luck(self.profile, self.progress, at, *lucks) < logistic(logit):
            return step.action
        if step.slips and (slip := step.slips[choose(len(step.slips), uniform(*purpose, "slip"))]):
            return slip[0]
        return fumble(step.action, [], uniform(*purpose, "fumble"))

    def _handicap(self, payload: str, step: Step) -> float:
        """Returns the logits lost if a value that the step has to reason about did not cross in the clear."""
        return self.profile.reason_penalty if self._hidden(payload, step) else 0.0

    def _hidden(self, payload: str, step: Step) -> bool:
        return any(
            unit.kind in step.reasons and unit.necessity == "reason" and unit.value not in payload
            for unit in self.progress.episode.units
        )

    def _as_seen(self, action: ToolCall | Finish, payload: str, transcript: bool) -> ToolCall | Finish:
        """Returns a call as somebody can utter it who has read nothing but the payload."""
        hide = self.hide
        reasoned = [unit.value for unit in self.progress.episode.units if unit.necessity == "reason"]
        clear = transcript and (hide is None or all(hide(value) == value for value in reasoned))
        lost = lookback.lost_figures(payload, self._results()) if LEFT_OUT in payload else frozenset()
        seen = _Seen(payload, self.progress.episode.units, self.hide, derives=clear, quotes=not transcript, lost=lost)
        if isinstance(action, Finish):
            return Finish(answer=seen.text(action.answer), data=seen.value(action.data))
        return ToolCall(action.name, seen.value(action.arguments))

    def _thinking(self) -> int:
        draw = normal(self.progress.noise, self.profile.draws, "thinking", len(self.progress.records))
        return round(self.profile.thinking_tokens * math.exp(0.5 * draw))


@dataclass(frozen=True, slots=True)
class _Seen:
    """Utters values as somebody can who has read nothing but a payload.

    Attributes:
        derives: Whether numbers that are not in the payload may be worked out from it.
        quotes: Whether only texts that stand in the payload word for word may be uttered.
        lost: Figures that were left out of the payload.
    """

    payload: str
    units: tuple[SensitiveUnit, ...]
    hide: Callable[[str], str] | None
    derives: bool
    quotes: bool
    lost: frozenset[str] = frozenset()

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._key(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        hidden = self._hidden_numbers().get(float(value))
        if hidden is not None:
            return hidden
        if holds(self.payload, value) or (self.derives and not lookback.is_lost(value, self.lost)):
            return value
        return WITHHELD

    def text(self, text: str) -> str:
        shown = self.hide(text) if self.hide is not None else text
        if shown in self.payload:
            return shown
        if self.quotes:
            return WITHHELD
        for unit in self.units:
            if unit.value in shown and unit.value not in self.payload:
                shown = shown.replace(unit.value, WITHHELD)
        shown = lookback.withheld(shown, self.lost, WITHHELD)
        hidden = self._hidden_numbers()
        if hidden:
            shown = _AMOUNT.sub(lambda found: hidden.get(as_number(found[0]) or 0.0, found[0]), shown)
        return _NAMED.sub(lambda found: found[0] if found[0] in self.payload else WITHHELD, shown)

    def _key(self, key: str) -> str:
        return self.text(key) if _NAMED.fullmatch(key) or any(unit.value == key for unit in self.units) else key

    def _hidden_numbers(self) -> dict[float, str]:
        """Returns, for each amount that was redacted away, what stands for it in the payload: no figure utters it."""
        if self.hide is None:
            return {}
        found: dict[float, str] = {}
        for unit in self.units:
            number = as_number(unit.value)
            if number is not None and unit.value not in self.payload:
                shown = self.hide(unit.value)
                found[number] = shown if shown in self.payload else WITHHELD
        return found


def _texts(messages: Sequence[Message]) -> list[str]:
    found: list[str] = []
    for message in messages:
        if isinstance(message.get("content"), str):
            found.append(message["content"])
        found += [str(call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return found


def _load(rest: str) -> SimulatedModel:
    return SimulatedModel(load_profile(rest))


LOADER = Loader(load=_load, form="sim:NAME@SETTING=NUMBER,...", names=lambda: tuple(profile_names()))
