"""Features: what a policy sees is known beside the data, bounded, and follows what happens."""

from __future__ import annotations

import numpy as np
import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.features import NAMES, amounts, commits, preferring
from ec2_env.reward import RewardWeights
from ec2_env.task import tasks


def seen(env: DecisionEnv) -> dict[str, float]:
    return dict(zip(NAMES, env.features(), strict=True))


@pytest.mark.parametrize("name", tasks.names())
def test_features_stay_in_their_box_through_whole_episodes(name: str) -> None:
    env = DecisionEnv(task=name, max_cloud_usd=0.1)
    observation, info = env.reset(seed=0)
    over, step = False, 0
    while not over:
        assert observation in env.observation_space
        assert np.isfinite(observation["features"]).all()
        assert len(info["prompt"]) < 1_200
        observation, _, terminated, truncated, info = env.step((0, 4, 3, 1, 5, 2)[step % 6])
        over, step = terminated or truncated, step + 1
    assert observation in env.observation_space


def test_features_follow_what_happens() -> None:
    env = DecisionEnv(task="forward_invoice", language="en", max_cloud_usd=1.0)
    env.reset(seed=0, options={"seed": 0})
    start = seen(env)
    assert (start["step"], start["planned"], start["advised"], start["cloud_acts"], start["transcript_sent"]) == (0, 0, 0, 0, 0)
    assert start["budget_left"] == 1.0
    env.step(1)
    env.step(2)
    env.step(4)
    later = seen(env)
    assert later["planned"] == 1
    assert later["advised"] == pytest.approx(1 / 3)
    assert later["cloud_acts"] == pytest.approx(1 / 10)
    assert later["transcript_tokens"] > start["transcript_tokens"]
    assert 0 < later["transcript_sent"] <= 1
    assert later["budget_left"] < 1
    assert later["step"] > start["step"]
    assert later["steps_since_cloud"] == 0
    env.step(0)
    assert seen(env)["steps_since_cloud"] == pytest.approx(0.1)


def test_redacted_questions_do_not_count_as_sent() -> None:
    env = DecisionEnv(task="forward_invoice")
    env.reset(seed=0)
    for decision in (0, 3, 5):
        env.step(decision)
    assert seen(env)["transcript_sent"] == 0


def test_repeated_calls_are_noticed() -> None:
    from ec2_env.models.scripted import ScriptedModel

    env = DecisionEnv(task="forward_invoice", edge=ScriptedModel([{"name": "list_mail", "arguments": {}}]))
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    found = seen(env)
    assert found["repeated_calls"] == pytest.approx(2 / 3)
    assert (found["entropy"], found["wants_help"]) == (-1, -1)


def test_weights_are_part_of_what_is_seen() -> None:
    env = DecisionEnv(task="forward_invoice", language="zh", weights={"cost": 0.7, "privacy": 0.1})
    env.reset(seed=0)
    found = seen(env)
    assert (found["cost_weight"], found["privacy_weight"], found["chinese"]) == (0.7, 0.1, 1.0)


def test_a_prompt_told_another_preference_is_that_of_an_env_with_it() -> None:
    usual, dear = RewardWeights(), RewardWeights(cost=1.5, privacy=0.0)
    envs = [DecisionEnv(task="forward_invoice", language="en", weights=weights) for weights in (usual, dear)]
    one, other = (env.reset(seed=0)[1]["prompt"] for env in envs)
    assert "Cost matters most, privacy not." in other
    assert preferring(one, dear) == other
    assert preferring(other, usual) == one


def test_looking_costs_no_more_than_one_probe() -> None:
    env = DecisionEnv(task="forward_invoice")
    env.reset(seed=0)
    assert env.session is not None
    before = env.session.meter.edge_flops
    env.features()
    env.view().prompt()
    env.view().signals()
    assert env.session.meter.edge_flops == before


def test_what_the_edge_is_about_to_do_is_seen_as_changing_looking_or_unknown() -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    env.reset(seed=0)
    assert env.session is not None
    tools = env.session.tools.tools
    writing = next(name for name, tool in tools.items() if tool.write)
    reading = next(name for name, tool in tools.items() if not tool.write)
    found = [commits(env.session, name) for name in (writing, "finish", reading, "no_such_tool", None)]
    assert found == [1.0, 1.0, 0.0, 0.0, -1.0]


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), ("Total: $1,240.50", 2), ("12.50 and 3,000", 2), ("合计 120 元", 1), ("version 1.2.3, room 12, 2026-01-05", 0)],
)
def test_amounts_of_money_are_counted_by_their_marks(text: str, number: int) -> None:
    assert amounts(text) == number


def test_amounts_of_results_count_and_those_of_the_instruction_do_not() -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    env.reset(seed=0)
    assert seen(env)["amounts"] == 0
    for _ in range(6):
        env.step(4)
    assert seen(env)["amounts"] > 0
