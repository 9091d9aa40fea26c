"""Rows for supervised training of the agent: solutions with the cloud used on the way, and episodes that went well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ec2_env.envs import DecisionEnv
from ec2_env.models.base import Message, ModelCard
from ec2_env.models.sim import SimulatedModel
from ec2_env.reference import reference_usd
from ec2_env.reward import RewardWeights, terms
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Strategy
from ec2_env.task import recent_episode, toolbox
from ec2_env.trace import ToolRan, Trajectory
from ec2_env.training.collect_conversations import conversation
from ec2_env.training.collect_solution import play_solution
from ec2_env.workspace.tools import CLOUD_SCHEMA

SOLUTION, EPISODE = "solution", "episode"
"""Where a conversation comes from: the task's own solution, or a strategy's episode."""
BROKEN = "episodes: a model's endpoint broke"
INCOMPLETE = "episodes: too little was completed"
REPEATED = "episodes: the same conversation as another one of the same instance"


def conversation_rows(
    env: DecisionEnv, strategies: Sequence[Strategy], key: EpisodeKey, threshold: float, left_out: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Yields, for each strategy, the solution with its use of the cloud, and its own episode; each conversation once.

    Args:
        env: Where to play. With a real edge model, and for strategies without one, there are no solutions.
        strategies: Decide about the cloud.
        key: Which episode.
        threshold: Completion from which a conversation is taken, 0 to 1.
        left_out: Counts what is not taken, by the reason.
    """
    seen: list[list[dict[str, Any]]] = []
    for strategy in strategies:
        for source in (SOLUTION, EPISODE):
            if source == SOLUTION and not (strategy.uses_edge and isinstance(env.edge, SimulatedModel)):
                continue
            played = (play_solution if source == SOLUTION else play)(env, strategy, key)
            reason = unusable(played, threshold)
            if reason:
                left_out[reason] += 1
                continue
            assert env.session is not None
            row = conversation_row(played, env.session.messages, source, env.cloud.card)
            if row["messages"] in seen:
                left_out[REPEATED] += 1
                continue
            seen.append(row["messages"])
            yield row


def unusable(played: Trajectory, threshold: float) -> str:
    """Returns why nothing is to be learned from an episode; empty if something is."""
    if played.result["status"] == "error":
        return BROKEN
    return INCOMPLETE if played.result["completion"] < threshold else ""


def conversation_row(played: Trajectory, messages: Sequence[Message], source: str, cloud: ModelCard) -> dict[str, Any]:
    """Returns the row of one episode.

    Args:
        played: The episode.
        messages: Its transcript.
        source: Where it comes from.
        cloud: The cloud model, whose price is the unit of cost.
    """
    episode = recent_episode(played.task, played.seed, played.language, played.split)  # type: ignore[arg-type]  # both checked
    found = terms(played.events, {}, episode.units, reference_usd(played.task, episode.language, cloud))
    calls = [event for event in played.events if isinstance(event, ToolRan)]
    return {
        "messages": conversation(played.instruction, played.language, messages, played.events),
        "tools": [*toolbox(episode.task.apps).schemas_with_finish, CLOUD_SCHEMA],
        "task": played.task,
        "language": played.language,
        "split": played.split,
        "seed": played.seed,
        "trial": played.trial,
        "strategy": played.strategy,
        "edge": played.edge,
        "cloud": played.cloud,
        "source": source,
        "task_completion": found.task,
        "episode_return": found.scalar(RewardWeights()),
        "cost": found.cost,
        "exposure": found.exposure,
        "steps": played.result["steps"],
        "cloud_calls": played.result["cloud_calls"],
        "failed_calls": sum(not call.ok for call in calls),
    }
