"""One protocol for everything that thinks: real models, simulated ones, scripts and recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from ec2_env.actions import MAX_ACTION_CHARS, clean, plain, shallow

Message: TypeAlias = dict[str, Any]
"""A chat message in OpenAI's form: role, content, and for calls tool_calls / tool_call_id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one completion as the provider counts them. `raw`, `cached` and `output` are disjoint."""

    raw: int = 0
    """Input tokens that were not served from a prompt cache."""
    cached: int = 0
    """Input tokens served from the prompt cache."""
    output: int = 0
    """Output tokens, thinking included."""
    reasoning: int = 0
    """Those of `output` that were thinking, where the provider says so. They are not counted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model says.

    Attributes:
        text: What the model says, without its thoughts; may be empty.
        calls: Tool calls as `{"name": str, "arguments": dict | str}`, unvalidated: they come from a model. A step makes the
            first. The others wait for an edge model's next steps (`ec2_env.models.queued`); of a cloud's reply they are dropped.
        usage: What the provider reported, or None: then the caller counts by the model's vocabulary.
        entropy: Shannon entropy in nats of the renormalized top-k distribution of the first token, or None if unknown.
        thinking_tokens: Output tokens that `text` and `calls` do not show; counted when `usage` is None.
        reasoning: Thoughts that an endpoint returned. They are kept in recordings and go into no transcript.
    """

    text: str = ""
    calls: tuple[dict[str, Any], ...] = field(default_factory=tuple)
    usage: Usage | None = None
    entropy: float | None = None
    thinking_tokens: int = 0
    reasoning: str = ""


def tamed(reply: Reply) -> Reply:
    """Returns a reply of a foreign model as it can be kept and shown: no lone surrogates, no text beyond `MAX_ACTION_CHARS`.

    A call that is not made of JSON values becomes an empty one, which is no call that any tool accepts.
    """
    calls = tuple(plain(call) if shallow(call) else {} for call in reply.calls[:1])
    return replace(reply, text=clean(str(reply.text)[:MAX_ACTION_CHARS]), calls=calls)


@dataclass(frozen=True, slots=True)
class Signals:
    """What an edge model shows of its own certainty before a step.

    Attributes:
        entropy: Shannon entropy in nats of its first token; None if the model does not tell.
        wants_help: Whether it would ask for advice now; None if it does not tell.
        tool: Name of the tool of the call that it has begun to write, or "finish"; None if it does not tell.
        tokens: Output tokens that it took to tell; 0 if it was not asked.
    """

    entropy: float | None = None
    wants_help: bool | None = None
    tool: str | None = None
    tokens: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What the accounting has to know of a model."""

    name: str
    family: str
    """Vocabulary that its tokens are counted with: one of `ec2_env.cloud.tokens.FAMILIES`."""
    parameters: float | None = None
    """Number of weights used for a token, for FLOPs; None if unknown."""
    price: str | None = None
    """Entry of the price book, for cloud models; None if it is not sold by the token."""
    simulated: bool = False


class Model(Protocol):
    """A language model. Implementations are shared between episodes and must not keep state from one to the next."""

    @property
    def card(self) -> ModelCard: ...

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the next assistant turn.

        Args:
            messages: The chat so far, oldest first.
            tools: OpenAI function schemas that may be called.
            logprobs: Size k of the top-k first-token distribution to report the entropy of; 0 for none.

        Raises:
            EndpointError: if a remote model stays unreachable or misbehaves after retries.
        """
        ...


@cache
def implements(kind: type, protocol: type) -> bool:
    """Says whether a class implements a protocol; remembered, because asking takes longer than a step of an episode."""
    return issubclass(kind, protocol)


@runtime_checkable
class Probing(Protocol):
    """A model that can tell its signals without writing a whole turn."""

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the signals for the next turn; costs one prefill and as many tokens as they say."""
        ...


@runtime_checkable
class BindableEdge(Protocol):
    """A model whose edge side for one episode may look at that episode: the simulated ones."""

    def bind_edge(self, progress: Any, cloud: Model | None) -> EdgeMind:
        """Returns the model for one episode. `cloud` is the model that it may get help from."""
        ...


@runtime_checkable
class BindableCloud(Protocol):
    """A model whose cloud side for one episode may look at that episode: the simulated ones."""

    def bind_cloud(self, progress: Any) -> CloudMind:
        """Returns the model for one episode."""
        ...


class CloudMind(Model, Protocol):
    """A cloud model bound to one episode, with state that is copied when the episode is.

    Attributes:
        hide: Set before each request: replaces values by the placeholders that crossed; None if nothing was hidden.
    """

    hide: Callable[[str], str] | None

    def fork(self, progress: Any) -> CloudMind:
        """Returns an independent copy that works in a copy of the episode."""
        ...


class EdgeMind(Model, Probing, Protocol):
    """An edge model bound to one episode, with state that is copied when the episode is."""

    def fork(self, progress: Any) -> EdgeMind:
        """Returns an independent copy that works in a copy of the episode."""
        ...


def bound_edge(model: Model | None, progress: Any, cloud: Model | None) -> Model | EdgeMind | None:
    """Returns an edge model's side for one episode: itself, or what it binds."""
    if model is not None and implements(type(model), BindableEdge):
        return cast(BindableEdge, model).bind_edge(progress, cloud)
    return model


def bound_cloud(model: Model, progress: Any) -> CloudMind | None:
    """Returns what a cloud model binds to one episode; None if it needs no binding."""
    return cast(BindableCloud, model).bind_cloud(progress) if implements(type(model), BindableCloud) else None
