"""Budgeted envs: caps by default, in units that mean the same in every task, seen by the agent, and never passed."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.reference import reference_usd
from ec2_env.registration import BUDGET, KINDS, env_ids
from ec2_env.reward import terms
from ec2_env.testing import play as solve
from ec2_env.trace import CloudCall

ASK = {"name": "invoke_cloud", "arguments": {"request": "What next?", "mode": "advise", "share": "transcript"}}
BUDGET_IDS = [f"EC2/{name}{ending}-v0" for name in env_ids() for ending in KINDS if ending.endswith("Budget")]


def calls(env: Any) -> list[CloudCall]:
    """Returns the requests of the env's episode."""
    return [event for event in env.unwrapped.session.events if isinstance(event, CloudCall)]


def exposed(env: Any) -> float:
    """Returns the weighted share of the units that has crossed, from the record alone."""
    return terms(env.unwrapped.session.events, {}, env.unwrapped.episode.units, 1.0).exposure


def test_every_env_has_a_budgeted_twin() -> None:
    registered = {spec for spec in gym.registry if spec.startswith("EC2/")}
    plain = {spec.removesuffix("-v0") for spec in registered} - {spec.removesuffix("-v0") for spec in BUDGET_IDS}
    assert {f"{name}Budget-v0" for name in plain} == set(BUDGET_IDS) <= registered
    assert len(registered) == 4 * len(env_ids())


@pytest.mark.parametrize("env_id", BUDGET_IDS[:: len(BUDGET_IDS) // 12])
def test_gymnasium_finds_nothing_to_say_about_a_budgeted_env(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id).unwrapped)


@pytest.mark.parametrize("env_id", ["EC2/EmailBudget-v0", "EC2/EmailDecisionBudget-v0"])
def test_a_budgeted_env_pays_the_completion_alone_under_caps_that_can_be_set(env_id: str) -> None:
    env = gym.make(env_id, max_exposure=0.1)
    _, info = env.reset(seed=1)
    inner: Any = env.unwrapped
    action: Any = 4 if "Decision" in env_id else solve(inner.episode).actions[0]
    _, reward, _, _, info = env.step(action)
    reference = reference_usd(inner.episode.name, inner.episode.language, inner.cloud.card)
    assert reward == 0.0
    assert info["limits"] == {
        "usd": pytest.approx(BUDGET["max_cost"] * reference),
        "cost": pytest.approx(BUDGET["max_cost"]),
        "exposure": 0.1,
    }
    assert set(info["costs"]) == set(info["limits"])
    free = gym.make(env_id, max_exposure=None, max_cost=None, reward="vector")
    free.reset(seed=1)
    assert np.shape(free.step(action)[1]) == (3,)
    assert free.unwrapped.session.gateway.settings.max_usd is None  # type: ignore[attr-defined]


def test_the_cap_on_the_cost_follows_the_task_and_the_lower_cap_holds() -> None:
    env = DecisionEnv(max_cost=0.5, max_cloud_usd=0.06)
    caps = {}
    for task in ("forward_invoice", "workflow_export"):
        env.begin(task, "en", "train", 0)
        assert env.session is not None and env.session.gateway is not None
        caps[task] = env.session.gateway.settings.max_usd
        assert caps[task] == min(0.06, 0.5 * reference_usd(task, "en", env.cloud.card))
    assert caps["forward_invoice"] < 0.06
    assert len(set(caps.values())) == 2
    assert env.settings.max_usd == 0.06, "the env's own setting stays what it was"


@pytest.mark.parametrize("value", [-0.1, True, "0.5", float("nan"), float("inf")])
def test_a_cap_on_the_cost_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_cost"):
        DecisionEnv(max_cost=value)


@pytest.mark.parametrize("seed", range(4))
def test_a_budgeted_episode_keeps_its_caps_whatever_is_decided(seed: int) -> None:
    env = gym.make("EC2/WorkspaceDecisionBudget-v0")
    env.reset(seed=seed)
    sums, over, step = {"usd": 0.0, "cost": 0.0, "exposure": 0.0}, False, seed
    while not over:
        _, _, terminated, truncated, info = env.step((4, 2, 4, 5, 4, 3)[step % 6])
        sums = {name: total + info["costs"][name] for name, total in sums.items()}
        over, step = terminated or truncated, step + 1
    assert all(sums[name] <= limit + 1e-9 for name, limit in info["limits"].items())
    assert sums["cost"] > 0
    assert any(call.status == "refused" for call in calls(env))


# -- what the agent sees of its budgets


def test_the_observation_tells_what_is_left_of_both_budgets() -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", max_cloud_usd=1.0, max_exposure=1.0)
    observation, _ = env.reset(seed=0)
    assert (observation["budget_left"], observation["exposure_left"]) == (1.0, 1.0)
    for action in solve(env.episode).actions[:4]:
        env.step(action)
    observation, _, _, _, info = env.step(ASK)
    assert observation["exposure_left"] == pytest.approx(1 - exposed(env))
    assert observation["budget_left"] == pytest.approx(1 - info["cloud_usd"])
    assert 0 < observation["exposure_left"] < 1 and 0 < observation["budget_left"] < 1


def test_features_tell_what_is_left_and_a_cap_of_nothing_leaves_nothing() -> None:
    free, none = DecisionEnv(task="forward_invoice"), DecisionEnv(task="forward_invoice", max_cost=0, max_exposure=0)
    for env, left in ((free, 1.0), (none, 0.0)):
        env.reset(seed=0)
        found = dict(zip(NAMES, env.features(), strict=True))
        assert (found["budget_left"], found["exposure_left"]) == (left, left)


def test_the_prompt_speaks_of_the_exposure_budget_only_if_there_is_one() -> None:
    prompts = {}
    for cap in (None, 0.0, 0.3, 1.0):
        env = DecisionEnv(task="forward_invoice", language="en", max_exposure=cap)
        prompts[cap] = env.reset(seed=0)[1]["prompt"]
    assert "xposure" not in prompts[None]
    assert "exposure budget used up" in prompts[0.0]
    assert "exposure budget whole" in prompts[0.3] == prompts[1.0]
    assert prompts[0.3].replace(", exposure budget whole", "") == prompts[None]


# -- hard caps


NOTHING: list[dict[str, Any]] = [
    {"max_cloud_usd": 0},
    {"max_cost": 0.0},
    {"cloud_settings": {"max_calls": 0}},
    {"cloud_settings": {"max_tokens": 0}},
]


@pytest.mark.parametrize("caps", NOTHING)
def test_a_budget_of_exactly_nothing_refuses_every_request_and_sends_nothing(caps: dict[str, Any]) -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", **caps)
    env.reset(seed=0)
    for _ in range(5):
        observation, _, _, _, info = env.step(ASK)
        assert "budget" in observation["result"]
        assert (info["cloud_usd"], info["cloud_calls"], info["exposures"]) == (0.0, 0, [])
    assert [call.status for call in calls(env)] == ["refused"] * 5
    assert all((call.sent, call.usd, call.texts) == ((), "0", 0) for call in calls(env))
    assert env.session is not None and env.session.gateway is not None and env.session.gateway.calls == 0


def test_an_exposure_budget_of_exactly_nothing_lets_harmless_requests_through_after_any_number_of_refusals() -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", max_exposure=0)
    env.reset(seed=0)
    for action in solve(env.episode).actions[:4]:
        env.step(action)
    statuses = []
    for share in ("transcript", "transcript", "transcript", "request", "transcript"):
        ask = {"name": "invoke_cloud", "arguments": {"request": "What next?", "mode": "advise", "share": share}}
        observation = env.step(ask)[0]
        statuses.append(calls(env)[-1].status)
        assert observation["exposure_left"] == 0.0
    assert statuses == ["refused", "refused", "refused", "ok", "refused"]
    assert exposed(env) == 0.0 and env.session is not None and env.session.levels == {}


def test_refused_requests_use_up_no_budget() -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", max_exposure=0, cloud_settings={"max_calls": 2})
    env.reset(seed=0)
    for action in solve(env.episode).actions[:4]:
        env.step(action)
    for _ in range(4):
        env.step(ASK)
    harmless = {"name": "invoke_cloud", "arguments": {"request": "What next?", "mode": "advise", "share": "request"}}
    for _ in range(3):
        env.step(harmless)
    assert [call.status for call in calls(env)] == ["refused"] * 4 + ["ok", "ok", "refused"]


def test_what_an_outage_lost_counts_against_the_exposure_budget() -> None:
    whole = DecisionEnv(task="forward_invoice", language="en", edge=None, cloud_settings={"outage_rate": 1.0})
    whole.begin("forward_invoice", "en", "train", 0)
    assert whole.session is not None
    for action in solve(whole.session.episode).actions[:4]:
        whole.session.call(action, "edge")
    whole.take(4)
    used = exposed(whole)
    assert used > 0
    capped = DecisionEnv(task="forward_invoice", language="en", edge=None, max_exposure=used, cloud_settings={"outage_rate": 1.0})
    capped.begin("forward_invoice", "en", "train", 0)
    assert capped.session is not None
    for action in solve(capped.session.episode).actions[:4]:
        capped.session.call(action, "edge")
    capped.take(4)
    for action in solve(capped.session.episode).actions[4:6]:
        capped.session.call(action, "edge")
    capped.take(4)
    assert [call.status for call in calls(capped)] == ["failed", "refused"]
    assert exposed(capped) == pytest.approx(used)


@pytest.mark.parametrize("env_id", ["EC2/EmailBudget-v0", "EC2/EmailDecisionBudget-v0"])
def test_budgeted_envs_run_side_by_side(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=3)
    observations, _ = envs.reset(seed=2)
    action = np.array([4, 2, 0]) if "Decision" in env_id else ('{"name":"list_mail"}',) * 3
    _, rewards, _, _, infos = envs.step(action)
    assert rewards.tolist() == [0.0, 0.0, 0.0]
    assert infos["limits"]["exposure"].tolist() == [0.2] * 3
    envs.close()
    assert len(next(iter(observations.values()))) == 3
