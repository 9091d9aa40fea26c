"""The constrained form: the reward is the completion, costs stand apart, and caps on them are kept by the boundary."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import pytest

from ec2_env.actions import InvokeCloud
from ec2_env.cloud.gateway import cloud_settings
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.episode_env import make_settings
from ec2_env.errors import ConfigurationError
from ec2_env.reward import terms
from ec2_env.session import Session
from ec2_env.task import build_episode
from ec2_env.testing import play as solve
from ec2_env.trace import CloudCall

CALLS = (4, 2, 5, 3, 1, 0)


def played(seed: int, **settings: Any) -> tuple[DecisionEnv, list[float], list[dict[str, Any]]]:
    """Returns an env after an episode of drawn decisions, its rewards and its infos."""
    env = DecisionEnv(reward="constraint", **settings)
    env.reset(seed=seed)
    rng, rewards, infos, over = random.Random(seed), [], [], False
    while not over:
        _, reward, terminated, truncated, info = env.step(rng.choice(CALLS))
        rewards.append(reward)
        infos.append(info)
        over = terminated or truncated
    return env, rewards, infos


def share(env: DecisionEnv) -> float:
    """Returns the weighted share of the units that has crossed, from the record alone."""
    assert env.session is not None
    return terms(env.session.events, {}, env.session.episode.units, 1.0).exposure


@pytest.mark.parametrize("seed", range(4))
def test_the_reward_is_the_completion_and_the_costs_add_up_to_the_result(seed: int) -> None:
    env, rewards, infos = played(seed, max_cloud_usd=1.0)
    result = infos[-1]["result"]
    assert rewards[:-1] == [0.0] * (len(rewards) - 1)
    assert rewards[-1] == result["completion"]
    assert all(set(info["costs"]) == {"usd", "cost", "exposure"} for info in infos)
    assert all(min(info["costs"].values()) >= 0 for info in infos)
    assert sum(info["costs"]["usd"] for info in infos) == pytest.approx(result["cloud_usd"])
    assert sum(info["costs"]["exposure"] for info in infos) == pytest.approx(share(env))
    assert all((info["limits"]["usd"], info["limits"]["exposure"]) == (1.0, None) for info in infos)
    assert sum(info["costs"]["cost"] for info in infos) / infos[0]["limits"]["cost"] == pytest.approx(result["cloud_usd"])
    assert all(info["costs"][name] == info["cost"][name] for info in infos for name in ("cost", "exposure"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cap", [0.0, 0.1, 0.4])
def test_the_exposure_cap_is_never_passed_and_refused_calls_expose_nothing(seed: int, cap: float) -> None:
    env, _, infos = played(seed, max_exposure=cap)
    assert env.session is not None
    assert share(env) <= cap + 1e-9
    calls = [event for event in env.session.events if isinstance(event, CloudCall)]
    refused = [call for call in calls if call.status == "refused"]
    assert all((call.sent, call.exposures, call.usd) == ((), (), "0") for call in refused)
    assert all("exposure budget" in call.problem for call in refused)
    assert infos[-1]["limits"]["exposure"] == cap


def test_the_exposure_cap_stops_what_would_pass_it_and_lets_the_rest_through() -> None:
    free, _, _ = played(3)
    assert share(free) > 0.1, "this seed exposes something without a cap"
    capped, _, _ = played(3, max_exposure=0.0)
    assert capped.session is not None
    statuses = {event.status for event in capped.session.events if isinstance(event, CloudCall)}
    assert statuses == {"ok", "refused"}
    whole, _, _ = played(3, max_exposure=1.0)
    assert whole.session is not None and free.session is not None
    assert whole.session.events == free.session.events, "a cap of everything changes nothing"


def test_a_refusal_does_not_say_which_value_would_have_crossed() -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", max_exposure=0.0)
    env.reset(seed=0)
    unit = env.episode.units[0]
    ask = {"name": "invoke_cloud", "arguments": {"request": unit.value, "mode": "advise", "share": "request"}}
    observation, _, _, _, info = env.step(ask)
    assert "exposure budget of 0" in observation["result"]
    assert unit.value not in observation["result"] and unit.id not in observation["result"]
    assert info["exposures"] == [] and info["cloud_calls"] == 0


def test_a_value_sent_in_two_halves_counts_against_the_cap_as_a_whole() -> None:
    episode = build_episode("forward_invoice", 0, "en")
    unit = max(episode.units, key=lambda unit: len(unit.value))
    whole = sum(one.weight for one in episode.units)
    cap = 0.75 * unit.weight / whole  # a fragment fits, the value does not
    session = Session(episode, cloud=DecisionEnv().cloud, settings=cloud_settings({"max_exposure": cap}))
    half = len(unit.value) // 2
    answers = [
        session.invoke(InvokeCloud(request=part, mode="advise", share="request"))
        for part in (unit.value[:half], unit.value[half:])
    ]
    assert [answer.event.status for answer in answers if answer] == ["ok", "refused"]
    assert session.levels.get(unit.id, 0.0) < 1.0


@pytest.mark.parametrize("name", ["Email", "ForwardInvoice", "Workspace", "EmailDecision", "WorkspaceDecision"])
def test_every_env_has_a_budgeted_form(name: str) -> None:
    env = gym.make(f"EC2/{name}-v0", reward="constraint", max_cloud_usd=0.05, max_exposure=0.2)
    _, info = env.reset(seed=1)
    assert "task" in info
    action: Any = 4 if name.endswith("Decision") else solve(env.unwrapped.episode).actions[0]  # type: ignore[attr-defined]
    _, reward, _, _, info = env.step(action)
    assert reward == 0.0
    assert (info["limits"]["usd"], info["limits"]["exposure"]) == (0.05, 0.2)
    assert set(info["costs"]) == set(info["limits"]) == {"usd", "cost", "exposure"}


def test_an_episode_that_is_cut_off_pays_the_completion_in_this_form_too() -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", reward="constraint")
    env.reset(seed=0)
    actions = solve(env.episode).actions
    for action in actions[:-1]:
        _, reward, _, _, info = env.step(action)
    last = env.cut_off(reward, info)
    assert last == info["result"]["completion"] > 0


@pytest.mark.parametrize("form", ["scalar", "vector"])
def test_the_other_forms_have_no_costs_beside_the_terms(form: str) -> None:
    env = DecisionEnv(task="forward_invoice", reward=form)
    env.reset(seed=0)
    info = env.step(4)[4]
    assert "costs" not in info and "limits" not in info


@pytest.mark.parametrize("value", [-0.1, 1.1, True, "0.5", float("nan")])
def test_an_exposure_cap_that_is_no_share_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_exposure"):
        DecisionEnv(max_exposure=value)


def test_caps_named_apart_go_before_those_in_the_settings() -> None:
    settings = make_settings({"max_usd": 1.0, "max_exposure": 0.5, "max_calls": 3}, None, 0.1)
    assert (settings.max_usd, settings.max_exposure, settings.max_calls) == (1.0, 0.1, 3)
