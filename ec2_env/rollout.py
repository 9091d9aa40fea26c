"""Plays an episode: a strategy, models and an env make a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import ec2_env
from ec2_env.envs import DecisionEnv
from ec2_env.errors import EndpointError
from ec2_env.session import Session
from ec2_env.strategy import Strategy
from ec2_env.trace import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeKey:
    """Which episode to play: a task, its language and split, the seed of the instance, and the number of the trial."""

    task: str
    language: str
    split: str
    seed: int
    trial: int


def play(env: DecisionEnv, strategy: Strategy, key: EpisodeKey) -> Trajectory:
    """Plays one episode to its end. The same arguments give the same trajectory, byte for byte, with simulated models.

    An endpoint that stays broken ends the episode with status "error"; its work so far is kept.

    Args:
        env: Where to play; its edge model is left out if the strategy uses none.
        strategy: Decides before every step.
        key: Which episode.
    """
    edge = env.edge
    if not strategy.uses_edge:
        env.edge = None
    try:
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
    finally:
        env.edge = edge
    session = env.session
    assert session is not None
    while not session.ended:
        try:
            env.take(strategy.decide(env.view()))
        except EndpointError as error:
            session.broken = str(error)
            session.end()
    return record(session, strategy.name)


def record(session: Session, strategy: str) -> Trajectory:
    """Returns the trajectory of an episode that has ended."""
    assert session.result is not None
    episode = session.episode
    return Trajectory(
        task=episode.name,
        seed=episode.seed,
        language=episode.language,
        split=episode.split,
        trial=session.trial,
        strategy=strategy,
        edge=session.edge.card.name if session.edge is not None else None,
        cloud=session.gateway.card.name if session.gateway is not None else None,
        version=ec2_env.__version__,
        instruction=episode.instruction,
        events=tuple(session.events),
        result=session.result,
    )
