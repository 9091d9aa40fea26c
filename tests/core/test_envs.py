"""Episodes of both environments: seeds, copies, pickles, and the info that outsiders build on."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.features import NAMES
from ec2_env.task import build_episode, tasks
from ec2_env.testing import play

RESULT_KEYS = {
    "status",
    "completion",
    "checks",
    "privacy",
    "privacy_unweighted",
    "privacy_all",
    "privacy_all_unweighted",
    "any_leak",
    "necessary_exposure",
    "excess_exposure",
    "called",
    "exposed",
    "touched",
    "cloud_calls",
    "tokens_raw",
    "tokens_cached",
    "tokens_out",
    "cloud_usd",
    "edge_flops",
    "latency_s",
    "steps",
}
ASK = {"name": "invoke_cloud", "arguments": {"request": "What next?", "mode": "advise", "share": "transcript", "redact": False}}


def workspace_actions(env: Any, count: int, seed: int) -> list[Any]:
    """Returns actions that mix the task's own solution, random valid calls and questions to the cloud."""
    rng = random.Random(seed)
    env.action_space.seed(seed)
    right = list(play(env.unwrapped.episode).actions)
    return [rng.choice((right[i % (len(right) - 1)], env.action_space.sample(), ASK)) for i in range(count)]


def steps_of(env: Any, actions: list[Any]) -> list[Any]:
    """Returns all that a list of actions brings, up to the end of the episode, in comparable form."""
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((repr(observation), repr(reward), terminated, truncated, repr(info)))
        if terminated or truncated:
            break
    return seen


def made(kind: str, seed: int, **settings: Any) -> tuple[Any, list[Any]]:
    """Returns an env of either kind in its first step, and actions for it."""
    if kind == "decision":
        env: Any = gym.make("EC2/EmailDecision-v0", disable_env_checker=True, **settings)
        env.reset(seed=seed)
        rng = random.Random(seed)
        return env, [rng.choice((0, 0, 1, 2, 3, 4, 5)) for _ in range(12)]
    env = gym.make("EC2/Email-v0", disable_env_checker=True, **settings)
    env.reset(seed=seed)
    return env, workspace_actions(env, 12, seed)


KINDS = pytest.mark.parametrize("kind", ["workspace", "decision"])


# -- seeds


@KINDS
def test_the_same_seed_gives_the_same_episode(kind: str) -> None:
    first, actions = made(kind, 7)
    second, same_actions = made(kind, 7)
    assert actions == same_actions
    assert steps_of(first, actions) == steps_of(second, actions)


@KINDS
def test_resetting_without_a_seed_goes_on_from_the_last_one(kind: str) -> None:
    env, _ = made(kind, 7)
    following = [env.reset()[1]["seed"] for _ in range(3)]
    env.reset(seed=7)
    assert [env.reset()[1]["seed"] for _ in range(3)] == following
    assert len(set(following)) == 3


def test_other_seeds_give_other_episodes() -> None:
    env, _ = made("workspace", 0)
    assert len({env.reset(seed=seed)[1]["seed"] for seed in range(30)}) == 30


# -- copies


@KINDS
@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_copy_and_its_original_go_on_like_an_uncopied_one(kind: str, at: int) -> None:
    for seed in range(3):
        untouched, actions = made(kind, seed)
        expected = steps_of(untouched, actions)
        env, _ = made(kind, seed)
        assert steps_of(env, actions[:at]) == expected[:at]
        if at >= len(expected):
            continue
        branch = copy.deepcopy(env)
        other = copy.deepcopy(env)
        steps_of(other, list(reversed(actions)))
        assert steps_of(env, actions[at:]) == expected[at:]
        assert steps_of(branch, actions[at:]) == expected[at:]


@KINDS
@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_pickled_env_goes_on_as_if_nothing_had_happened(kind: str, at: int) -> None:
    for seed in range(3):
        untouched, actions = made(kind, seed)
        expected = steps_of(untouched, actions)
        env, _ = made(kind, seed)
        steps_of(env, actions[:at])
        if at >= len(expected):
            continue
        assert steps_of(pickle.loads(pickle.dumps(env)), actions[at:]) == expected[at:]


@pytest.mark.parametrize("redactor", ["rules", "oracle", "none"])
def test_redaction_goes_on_in_copies_and_pickles(redactor: str) -> None:
    def start() -> DecisionEnv:
        env = DecisionEnv(task="forward_invoice", language="en", cloud_settings={"redactor": redactor})
        env.reset(seed=4)
        return env

    actions = [5, 3, 0, 5, 3, 5, 5]
    expected = steps_of(start(), actions)
    env = start()
    steps_of(env, actions[:3])
    for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert steps_of(again, actions[3:]) == expected[3:]


def test_an_env_pickles_before_and_after_its_episodes() -> None:
    env = DecisionEnv(domain="email", max_episode_steps=2)
    assert pickle.loads(pickle.dumps(env)).reset(seed=1)[1]["seed"] == env.reset(seed=1)[1]["seed"]
    steps_of(env, [0, 0])
    again = pickle.loads(pickle.dumps(env))
    assert again.session.result == env.session.result  # type: ignore[union-attr]  # the episode has ended
    assert again.reset()[1]["seed"] == env.reset()[1]["seed"]


def test_other_people_still_react_after_a_pickle() -> None:
    for name in tasks.names():
        episode = build_episode(name, 0)
        if episode.workspace._reactions:
            break
    else:
        pytest.skip("no task has reactions")
    env = WorkspaceEnv(task=name, language=episode.language)
    env.reset(options={"seed": 0}, seed=0)
    env = pickle.loads(pickle.dumps(env))
    total = 0.0
    for action in play(episode).actions:
        _, _, terminated, _, info = env.step(action)
        total = info["result"]["completion"] if terminated else 0.0
    assert total == 1.0


# -- the info contract


@KINDS
def test_info_keeps_its_contract(kind: str) -> None:
    for seed in range(4):
        env, actions = made(kind, seed, max_episode_steps=6)
        _, start = env.reset(seed=seed)
        assert {"task", "seed", "language", "date", "messages", "tools"} <= set(start)
        assert [m["role"] for m in start["messages"]] == ["system", "user"]
        assert {"invoke_cloud", "finish"} <= {tool["function"]["name"] for tool in start["tools"]}
        ended = False
        for action in actions:
            _, _, terminated, truncated, info = env.step(action)
            assert set(info["reward_terms"]) == {"task", "cost", "exposure"}
            assert {"cost", "cloud_usd", "cloud_calls", "exposures", "messages"} <= set(info)
            assert ("result" in info) == (terminated or truncated)
            if terminated or truncated:
                assert set(info["result"]) >= RESULT_KEYS
                assert info["result"]["status"] in ("pass", "fail", "invalid", "error")
                ended = True
                break
        assert ended


def test_the_transcript_is_one_that_chat_models_accept() -> None:
    for kind in ("workspace", "decision"):
        env, actions = made(kind, 11)
        for action in actions:
            _, _, terminated, truncated, info = env.step(action)
            open_calls: list[str] = []
            for message in info["messages"]:
                if message["role"] == "tool":
                    assert message["tool_call_id"] in open_calls
                    open_calls.remove(message["tool_call_id"])
                else:
                    assert not open_calls, "a call stays without its result"
                    open_calls = [call["id"] for call in message.get("tool_calls") or ()]
            if terminated or truncated:
                break


def test_the_decision_prompt_and_features_say_the_same_size_of_things() -> None:
    env = DecisionEnv(domain="email")
    observation, info = env.reset(seed=0)
    assert observation["features"].shape == (len(NAMES),)
    assert len(info["prompt"].split()) < 160
    assert env.episode.instruction not in info["prompt"]
    for unit in env.episode.units:
        assert unit.value not in info["prompt"]


def test_the_step_limit_truncates_and_finishing_terminates() -> None:
    env = WorkspaceEnv(task="forward_invoice", max_episode_steps=2)
    env.reset(seed=0)
    env.step({"name": "list_mail"})
    _, _, terminated, truncated, info = env.step({"name": "list_mail"})
    assert (terminated, truncated) == (False, True)
    assert info["result"]["status"] == "fail"
    env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step({"name": "finish"})
    assert (terminated, truncated) == (True, False)


@pytest.mark.parametrize("reward", ["scalar", "vector"])
def test_an_outer_time_limit_grades_what_it_cuts_off(reward: str) -> None:
    settings: dict[str, Any] = {"reward": reward, "language": "en"}
    whole = gym.make("EC2/ForwardInvoice-v0", **settings)
    whole.reset(seed=3)
    *work, _report = play(whole.unwrapped.episode).actions  # type: ignore[attr-defined]  # the env below has one
    cut = gym.make("EC2/ForwardInvoice-v0", max_episode_steps=len(work), **settings)
    cut.reset(seed=3)
    for action in work:
        _, got, _, truncated, info = cut.step(action)
    assert truncated
    assert 0 < info["result"]["completion"] < 1
    assert info["reward_terms"]["task"] == info["result"]["completion"] == np.sum(got)


def test_nothing_but_malformed_calls_is_invalid_and_not_failed() -> None:
    env = WorkspaceEnv(task="forward_invoice", max_episode_steps=3)
    env.reset(seed=0)
    for action in ("rubbish", {"name": "no_such_tool"}, b"\xff"):
        _, _, _, _, info = env.step(action)
    assert info["result"]["status"] == "invalid"


def test_edge_only_keeps_the_probe_of_an_ended_episode_off_the_bill() -> None:
    env = DecisionEnv(domain="email")
    env.reset(seed=2)
    for _ in range(60):
        _, _, terminated, truncated, info = env.step(0)
        if terminated or truncated:
            break
    session = env.session
    assert session is not None
    assert type(session.events[-1]).__name__ == "Ended"
    assert session.meter.edge_flops == info["result"]["edge_flops"]


def test_rendering_needs_a_mode() -> None:
    env = WorkspaceEnv(domain="email")
    env.reset(seed=0)
    assert env.render() is None
