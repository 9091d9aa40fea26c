"""Rollouts: every strategy plays every kind of episode to its end, and the record says all of it."""

from __future__ import annotations

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import EC2Error
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Prepared, Strategy, load_strategy, strategies
from ec2_env.task import task_domains, tasks
from ec2_env.trace import CloudCall, Decided, EdgeTurn, Ended, from_json, to_json


def key(name: str = "forward_invoice", seed: int = 0, trial: int = 0) -> EpisodeKey:
    return EpisodeKey(task=name, language=tasks.get(name).languages[0], split="test", seed=seed, trial=trial)


def ready(spec: str) -> Strategy:
    """Returns a strategy, prepared if it has to be; skips those that need files."""
    try:
        strategy = load_strategy(spec)
    except EC2Error as error:
        pytest.skip(f"{spec} needs options: {error}")
    if isinstance(strategy, Prepared):
        return strategy.prepare({(name, language): 0.5 for name in tasks.names() for language in ("en", "zh")})
    return strategy


SLOW = {"learned", "oracle_decision"}
"""Strategies that load a model or play every branch: they have tests of their own."""


@pytest.mark.parametrize("spec", [name for name in strategies.names() if name not in SLOW])
def test_every_strategy_plays_to_the_end(spec: str) -> None:
    strategy = ready(spec)
    for name in task_domains()["email"][:3]:
        done = play(DecisionEnv(), strategy, key(name))
        assert isinstance(done.events[-1], Ended)
        assert done.strategy == strategy.name
        assert done.result["status"] in ("pass", "fail", "invalid")
        decided = [event for event in done.events if isinstance(event, Decided)]
        assert len(decided) == done.result["steps"]
        assert to_json(from_json(to_json(done))) == to_json(done)


def test_cloud_only_runs_no_edge_and_edge_only_no_cloud() -> None:
    cloud = play(DecisionEnv(), load_strategy("cloud_only"), key())
    assert cloud.edge is None
    assert not any(isinstance(event, EdgeTurn) for event in cloud.events)
    assert cloud.result["edge_flops"] == 0
    edge = play(DecisionEnv(), load_strategy("edge_only"), key())
    assert not any(isinstance(event, CloudCall) for event in edge.events)
    assert (edge.result["cloud_calls"], edge.result["cloud_usd"], edge.result["privacy"]) == (0, 0.0, 1.0)


def test_the_env_keeps_its_edge_model_after_a_rollout_without_one() -> None:
    env = DecisionEnv()
    edge = env.edge
    play(env, load_strategy("cloud_only"), key())
    assert env.edge is edge


def test_stepping_an_env_and_playing_a_rollout_do_the_same_work() -> None:
    strategy = load_strategy("cloud_only:redacted")
    done = play(DecisionEnv(), strategy, key())
    env = DecisionEnv(edge=None)
    env.reset(options={"task": "forward_invoice", "language": "en", "split": "test", "seed": 0})
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(5)
        over = terminated or truncated
    assert info["result"] == done.result


def test_trials_differ_and_repeat() -> None:
    lines = [to_json(play(DecisionEnv(), load_strategy("random"), key(seed=1, trial=trial))) for trial in (0, 0, 1)]
    assert lines[0] == lines[1] != lines[2]
