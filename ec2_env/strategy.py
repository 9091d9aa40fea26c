"""The decisions about the cloud, and what a strategy is: something that takes one before every step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ec2_env.actions import InvokeCloud, Mode, Share
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message, Signals
from ec2_env.prompts import Writing
from ec2_env.registry import Registry


class Decision(IntEnum):
    """What to do before a step: the action space of `DecisionEnv`."""

    EDGE = 0
    """The edge model takes the step alone."""
    PLAN = 1
    """The cloud sees the instruction and sends a plan; then the edge model takes the step."""
    ADVISE = 2
    """The cloud sees the transcript and advises; then the edge model takes the step."""
    ADVISE_REDACTED = 3
    """The same, with detected sensitive values replaced by placeholders."""
    ACT = 4
    """The cloud sees the transcript and takes the step."""
    ACT_REDACTED = 5
    """The same, redacted."""


REQUESTS: Mapping[Decision, InvokeCloud] = {
    Decision.PLAN: InvokeCloud(mode="plan", share="instruction"),
    Decision.ADVISE: InvokeCloud(mode="advise", share="transcript"),
    Decision.ADVISE_REDACTED: InvokeCloud(mode="advise", share="transcript", redact=True),
    Decision.ACT: InvokeCloud(mode="act", share="transcript"),
    Decision.ACT_REDACTED: InvokeCloud(mode="act", share="transcript", redact=True),
}

Choice: TypeAlias = Decision | InvokeCloud
"""What a strategy may choose: one of the six decisions, or a request of its own to the cloud."""


def decision_of(choice: Choice) -> Decision:
    """Returns the decision that a choice comes down to: the one of the same mode, with or without redaction."""
    if isinstance(choice, Decision):
        return choice
    match choice.mode:
        case "plan":
            return Decision.PLAN
        case "advise":
            return Decision.ADVISE_REDACTED if choice.redact else Decision.ADVISE
        case "act":
            return Decision.ACT_REDACTED if choice.redact else Decision.ACT


SHARING = ("relevant", "redacted")
"""Options of strategies that share the transcript: only what is relevant of it, and with placeholders for what is private."""


def sharing(mode: Mode, chosen: Collection[str]) -> Choice:
    """Returns the request of a mode that shares the transcript under options of `SHARING`, as a decision if it is one."""
    share: Share = "relevant" if "relevant" in chosen else "transcript"
    request = InvokeCloud(mode=mode, share=share, redact="redacted" in chosen)
    return next((decision for decision, known in REQUESTS.items() if known == request), request)


def full_name(name: str, chosen: Collection[str]) -> str:
    """Returns the specification of a strategy under some of the options `SHARING`."""
    words = ",".join(word for word in SHARING if word in chosen)
    return f"{name}:{words}" if words else name


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a strategy sees before a step.

    Attributes:
        step: Steps taken so far.
        task: Name of the task.
        language: Language of the episode.
        edge: Name of the edge model, or "" if there is none.
        decisions: What the strategy's earlier choices in this episode came down to.
        signals: Asks the edge model for its signals; the first call in a step costs a probe.
        wish: Says whether the edge model wants help, without a probe; None if it does not tell.
        prompt: Text for a language-model policy; made when asked for.
        features: Numbers for a classical policy; made when asked for. Their names are `ec2_env.features.NAMES`.
        draw: Returns a number in (0, 1), fixed by the episode, the step and a purpose.
        messages: The transcript so far, for strategies that write requests; not to be changed.
        tools: Schemas of the workspace's tools and of `finish`.
        write: Has the edge model write a text for the cloud, which then stands in the transcript; "" if it writes none. Costs a
            completion.
        fork: Returns a copy of the env, for upper references that look ahead; None where the models are real.
    """

    step: int
    task: str
    language: str
    edge: str
    decisions: tuple[Decision, ...]
    signals: Callable[[], Signals]
    wish: Callable[[], bool | None]
    prompt: Callable[[], str]
    features: Callable[[], tuple[float, ...]]
    draw: Callable[[str], float]
    messages: Sequence[Message] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    write: Callable[[Writing], str] = lambda purpose: ""
    fork: Callable[[], Any] | None = None


class Strategy(Protocol):
    """Decides before every step. Keeps no state between episodes; what it needs of the past is in the view."""

    @property
    def name(self) -> str: ...

    @property
    def uses_edge(self) -> bool:
        """Whether an edge model runs at all."""
        ...

    def decide(self, view: View) -> Choice:
        """Returns one of the six decisions; or a request to the cloud in its own words, with its own share.

        After a request of mode `plan` or `advise`, and after one that failed, the edge model takes the step, as after a decision.
        """
        ...


@runtime_checkable
class Prepared(Protocol):
    """A strategy that has to look at earlier runs first, such as an offline router."""

    def prepare(self, gaps: Mapping[tuple[str, str], float]) -> Strategy:
        """Returns the ready strategy.

        Args:
            gaps: For every (task, language) of the suite, how much more the cloud alone completes than the edge alone, as
                measured on the train split, or as the strategy itself estimates it, see `Estimating`.
        """
        ...


class Measured(NamedTuple):
    """What one model, alone, completed of a task in one language: the mean over so many `runs`, 0 to 1."""

    completion: float
    runs: int


@runtime_checkable
class Estimating(Prepared, Protocol):
    """A strategy that has to be prepared, and makes estimates of its own from what was measured."""

    def estimate(
        self, edge: Mapping[tuple[str, str], Measured], cloud: Mapping[tuple[str, str], Measured]
    ) -> Mapping[tuple[str, str], float]:
        """Returns what `prepare` is to be given.

        Args:
            edge: What the edge model alone completed of every (task, language) of the suite, on the train split.
            cloud: The same for the cloud model alone.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyMaker:
    """Makes a strategy from the text behind its name ("redacted", "ratio=0.5", a path).

    Attributes:
        make: Gets that text, "" if there is none.
        about: One line for `ec2-env bench --help` and the tables.
    """

    make: Callable[[str], Strategy]
    about: str = field(default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """Makes the same choice at every step."""

    name: str
    decision: Choice
    uses_edge: bool = True

    def decide(self, view: View) -> Choice:
        """Returns the one choice."""
        return self.decision


def options(text: str, **defaults: float) -> dict[str, float]:
    """Reads "NAME=NUMBER,NAME=NUMBER" into numbers over defaults.

    Raises:
        ConfigurationError: if a name is unknown or a value is no number.
    """
    values = dict(defaults)
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in defaults:
            raise ConfigurationError(f"unknown option {name!r}; expected {', '.join(f'{k}=NUMBER' for k in defaults) or 'none'}")
        try:
            values[name] = float(value)
        except ValueError:
            raise ConfigurationError(f"option {name} is {value!r}, expected a number") from None
    return values


def flags(text: str, *known: str) -> frozenset[str]:
    """Reads a comma-separated set of words.

    Raises:
        ConfigurationError: if a word is unknown.
    """
    words = frozenset(filter(None, text.split(",")))
    for word in sorted(words - set(known)):
        raise ConfigurationError(f"unknown option {word!r}; expected {', '.join(known) or 'no option'}")
    return words


strategies: Registry[StrategyMaker] = Registry("strategy", "ec2_env.agents", "STRATEGY", StrategyMaker)


def load_strategy(spec: str) -> Strategy:
    """Returns the strategy of a specification: `NAME` or `NAME:OPTIONS`, such as `step_routing:threshold=1.5`.

    Raises:
        UnknownName: if there is no such strategy.
        ConfigurationError: if the options are wrong.
    """
    name, _, rest = spec.partition(":")
    return strategies.get(name).make(rest)
