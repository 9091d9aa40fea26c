"""What happens to the second and later calls of one reply: they wait, and the next steps make them without asking again.

The env takes one call a step. A real model may answer with several. At the edge they are made in order, one a step, as long as
nothing comes between: when a call fails, or the cloud acts, plans or advises, the rest is dropped and the model is asked anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from ec2_env.models.base import Message, ModelCard, Reply, Signals, Usage
from ec2_env.models.drafts import called


class ProbedModel(Protocol):
    """A model that can be asked for a turn and for its signals."""

    @property
    def card(self) -> ModelCard: ...

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply: ...

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals: ...


class QueuedEdge:
    """A real edge model in one episode.

    A queued call comes with a usage of nothing: its tokens were counted with the reply that made it. Steps still count.

    Args:
        model: The model, shared between episodes.
        progress: The episode.
    """

    def __init__(self, model: ProbedModel, progress: Any) -> None:
        self.model = model
        self._progress = progress
        self._waiting: tuple[dict[str, Any], ...] = ()
        self._seen = (0, 0)
        """Messages and records when the last call was handed out."""

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the next queued call, or asks the model; the reply has one call at most."""
        if self._waiting and self._undisturbed(messages):
            reply = Reply(calls=self._waiting, usage=Usage())
        else:
            reply = self.model.complete(messages, tools, logprobs)
        self._waiting = reply.calls[1:]
        self._seen = len(messages), len(self._progress.records)
        return replace(reply, calls=reply.calls[:1])

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the model's signals. It is asked even where a call waits; the next tool is then that of the call."""
        signals = self.model.probe(messages, tools, logprobs)
        if not self._waiting or not self._undisturbed(messages):
            return signals
        return replace(signals, tool=called(self._waiting[0]))

    def fork(self, progress: Any) -> QueuedEdge:
        """Returns an independent copy that works in a copy of the episode."""
        other = QueuedEdge(self.model, progress)
        other._waiting, other._seen = self._waiting, self._seen
        return other

    def _undisturbed(self, messages: Sequence[Message]) -> bool:
        """Says whether exactly one call, the edge's own, was made since, and succeeded."""
        records, (length, made) = self._progress.records, self._seen
        return len(records) == made + 1 and records[-1].ok and records[-1].by == "edge" and len(messages) == length + 2
