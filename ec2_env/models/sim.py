"""Simulated models: the default, so that everything runs in seconds on a laptop.

A simulated model walks the task's solution and does each step right with a probability that its profile, the step and the task
give. Whatever stands in for the cloud may use only what crossed to it: see `SimulatedCloud`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ec2_env.actions import Finish, ToolCall, action_text, dump_action
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message, ModelCard, Reply
from ec2_env.models.draws import normal, uniform
from ec2_env.models.loading import Loader
from ec2_env.models.mind import Mind, ability_logit, card_of, choose, fumble, logistic
from ec2_env.models.profile import Profile, load_profile, profile_names
from ec2_env.models.walker import from_progress
from ec2_env.progress import Progress
from ec2_env.prompts import ADVISE, PLAN
from ec2_env.task import Step

_TOKEN = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[a-z]+-\d{4,5}|\d[\d,.]*\d|\d", re.ASCII)
"""What a model cannot guess: addresses, ids and numbers."""
WITHHELD = "(not shown to me)"


class SimulatedModel:
    """A simulated model, before it is bound to an episode."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @property
    def card(self) -> ModelCard:
        return card_of(self.profile)

    def bind(self, progress: Progress, better: SimulatedModel | None = None) -> Mind:
        """Returns the edge side for one episode."""
        return Mind(self.profile, progress, better.profile if isinstance(better, SimulatedModel) else None)

    def bind_cloud(self, progress: Progress) -> SimulatedCloud:
        """Returns the cloud side for one episode."""
        return SimulatedCloud(self.profile, progress)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Always refuses: a simulated model needs an episode.

        Raises:
            ConfigurationError: always; says how to bind it.
        """
        raise ConfigurationError(f"sim:{self.profile.name} is simulated and answers only inside an episode; use it as a model of an env")


class SimulatedCloud:
    """A simulated model at the far side of the boundary. It keeps no state between requests.

    It knows the solution, but says only what its payload held: an id, address, number or sensitive value that did not cross comes
    out as `WITHHELD`, one that crossed as a placeholder comes out as that placeholder, and a step that has to reason about a value
    that did not cross in the clear succeeds less often.

    Attributes:
        hide: Set by the gateway for a redacted request: replaces sensitive values by the placeholders that crossed.
    """

    def __init__(self, profile: Profile, progress: Progress) -> None:
        self.profile = profile
        self.progress = progress
        self.hide: Callable[[str], str] | None = None

    @property
    def card(self) -> ModelCard:
        return card_of(self.profile)

    def fork(self, progress: Progress) -> SimulatedCloud:
        """Returns the same model, bound to a copy of the episode."""
        return SimulatedCloud(self.profile, progress)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns a plan, advice or a call, by what the first message asks for."""
        role = str(messages[0].get("content")) if messages else ""
        if role.startswith(PLAN):
            return Reply(text=self._plan(), thinking_tokens=self._thinking())
        payload = "\n".join(_texts(messages))
        action = self._action(payload, any(message.get("role") == "tool" for message in messages))
        if role.startswith(ADVISE):
            return Reply(text=f"Do this next: {action_text(action)}", thinking_tokens=self._thinking())
        return Reply(calls=(dump_action(action),), thinking_tokens=self._thinking())

    def _plan(self) -> str:
        """Returns the names of the tools that the work takes, in order: no value is in it."""
        walker = from_progress(self.progress, ())
        names: list[str] = []
        for record in self.progress.records:
            names.append(record.name)
        step = walker.step
        first = step.action.name if step is not None and isinstance(step.action, ToolCall) else "finish"
        return f"1. Read the rules that apply. 2. Begin with {first}. 3. Open each record before you rely on it. 4. Compare dates and sources; later ones count. 5. Act once. 6. Report."

    def _action(self, payload: str, transcript: bool) -> ToolCall | Finish:
        walker = from_progress(self.progress, self.progress.records if transcript else ())
        step = walker.step
        if step is None:
            return Finish(answer="I could not complete this.")
        purpose = (self.progress.noise, self.profile.name, len(walker.sends), len(self.progress.records))
        if uniform(*purpose, "success") < self._chance(step, payload):
            action = step.action
        elif step.slips and (slip := step.slips[choose(len(step.slips), uniform(*purpose, "slip"))]):
            action = slip[0]
        else:
            action = fumble(step.action, [], uniform(*purpose, "fumble"))
        return self._as_seen(action, payload)

    def _chance(self, step: Step, payload: str) -> float:
        logit = ability_logit(self.profile, self.progress, step)
        hidden = any(
            unit.kind in step.reasons and unit.necessity == "reason" and unit.value not in payload
            for unit in self.progress.episode.units
        )
        return logistic(logit - (self.profile.reason_penalty if hidden else 0.0))

    def _as_seen(self, action: ToolCall | Finish, payload: str) -> ToolCall | Finish:
        """Returns the call as somebody can utter it who has read nothing but the payload."""
        if isinstance(action, Finish):
            return Finish(answer=self._said(action.answer, payload), data=self._masked(action.data, payload))
        return ToolCall(action.name, self._masked(action.arguments, payload))

    def _masked(self, value: Any, payload: str) -> Any:
        if isinstance(value, str):
            return self._said(value, payload)
        if isinstance(value, dict):
            return {self._said(key, payload): self._masked(item, payload) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(item, payload) for item in value]
        return value

    def _said(self, text: str, payload: str) -> str:
        hidden = self.hide(text) if self.hide is not None else text
        for unit in self.progress.episode.units:
            if unit.value in hidden and unit.value not in payload:
                hidden = hidden.replace(unit.value, WITHHELD)
        if hidden in payload:
            return hidden
        return _TOKEN.sub(lambda found: found[0] if found[0] in payload else WITHHELD, hidden)

    def _thinking(self) -> int:
        draw = normal(self.progress.noise, self.profile.name, "thinking", len(self.progress.records))
        return round(self.profile.thinking_tokens * 2.718281828 ** (0.5 * draw))


def _texts(messages: Sequence[Message]) -> list[str]:
    found: list[str] = []
    for message in messages:
        if isinstance(message.get("content"), str):
            found.append(message["content"])
        found += [str(call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return found


def _load(rest: str) -> SimulatedModel:
    return SimulatedModel(load_profile(rest))


LOADER = Loader(load=_load, form="sim:NAME", names=lambda: tuple(profile_names()))
