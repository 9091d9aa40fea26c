"""Plays a task's own solution in an episode, so that a strategy can be asked where it would have used the cloud on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ec2_env.actions import Finish, dump_action
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message, Model, ModelCard, Reply, Signals
from ec2_env.models.mind import Mind
from ec2_env.models.sim import SimulatedModel
from ec2_env.prompts import Writing
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Strategy
from ec2_env.trace import Trajectory


def play_solution(env: DecisionEnv, strategy: Strategy, key: EpisodeKey) -> Trajectory:
    """Plays an episode in which every step of the edge is the right one, and the strategy decides about the cloud as ever.

    The strategy sees the doubts of the edge model as it is. What the cloud does when it acts is its own, right or wrong; the
    solution goes on from there.

    Args:
        env: Where to play; its edge model must be simulated.
        strategy: Decides before every step; must use an edge model.
        key: Which episode.

    Raises:
        ConfigurationError: if the edge model is real, or the strategy uses none.
    """
    edge = env.edge
    if not isinstance(edge, SimulatedModel) or not strategy.uses_edge:
        raise ConfigurationError("a solution is demonstrated in the place of a simulated edge model")
    env.edge = Demonstrator(edge)
    try:
        return play(env, strategy, key)
    finally:
        env.edge = edge


class Demonstrator:
    """Stands in for a simulated edge model: shows the doubts that this would have, and does what is right.

    Args:
        model: The model.
    """

    def __init__(self, model: SimulatedModel) -> None:
        self.model = model

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Raises, as there is no solution without an episode.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError("a demonstrator works in an episode only")

    def bind_edge(self, progress: Any, cloud: Model | None) -> DemonstratingMind:
        """Returns the stand-in for one episode."""
        return DemonstratingMind(self.model.bind_edge(progress, cloud))


class DemonstratingMind:
    """A demonstrator in one episode. A copy of the episode has the model itself, so that who looks ahead sees how it would go.

    Args:
        mind: The model in this episode.
    """

    def __init__(self, mind: Mind) -> None:
        self.mind = mind

    @property
    def card(self) -> ModelCard:
        return self.mind.card

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the next call of the solution."""
        mind = self.mind
        mind.complete(messages, tools)  # so that it reads the advice; what it would have done is not done
        mind.walker, mind.queue, mind.awaiting, mind.astray, mind.attempts = mind.tracker.walker.fork(), (), "advance", False, 0
        mind.advised = max(0, mind.advised - 1)
        step = mind.tracker.walker.step
        return Reply(calls=(dump_action(step.action if step is not None else Finish()),))

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the signals of the model."""
        return self.mind.probe(messages, tools, logprobs)

    def wishes(self) -> bool:
        """Says whether the model would call for advice now."""
        return self.mind.wishes()

    def write(self, purpose: Writing, messages: Sequence[Message]) -> Reply:
        """Returns what the model writes to the cloud."""
        return self.mind.write(purpose, messages)

    def fork(self, progress: Any) -> Mind:
        """Returns a copy of the model for a copy of the episode."""
        return self.mind.fork(progress)
