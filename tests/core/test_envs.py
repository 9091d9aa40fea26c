"""Both environments as Gymnasium sees them: checks, seeds, vector envs, copies, pickles, and the info that outsiders build on."""

from __future__ import annotations

import copy
import math
import pickle
import random
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.features import NAMES
from ec2_env.registration import KINDS as ENDINGS
from ec2_env.registration import env_ids
from ec2_env.task import build_episode, tasks
from ec2_env.testing import play

IDS = sorted(spec for spec in gym.registry if spec.startswith("EC2/"))
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


@pytest.mark.parametrize("env_id", ["EC2/Workspace-v0", "EC2/WorkspaceDecision-v0", "EC2/ForwardInvoiceDecision-v0"])
def test_gymnasium_finds_nothing_to_say_about_an_env(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id).unwrapped)


@pytest.mark.parametrize("env_id", ["EC2/Email-v0", "EC2/EmailDecision-v0"])
@pytest.mark.parametrize("render_mode", ["ansi", "html"])
def test_rendered_envs_pass_the_check_too(env_id: str, render_mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_every_registered_env_starts_and_steps(env_id: str) -> None:
    env = gym.make(env_id)
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert info["task"] in tasks.names()
    env.action_space.seed(1)
    observation, reward, _, _, _ = env.step(env.action_space.sample())
    assert observation in env.observation_space
    assert math.isfinite(float(reward))  # type: ignore[arg-type]  # scalar by default


def test_every_task_and_domain_has_every_kind_of_env() -> None:
    assert {f"EC2/{name}{ending}-v0" for name in env_ids() for ending in ENDINGS} == set(IDS)
    assert len(IDS) == len(env_ids()) * len(ENDINGS)


def test_an_env_is_made_without_importing_the_package_first() -> None:
    code = "import gymnasium as g; e = g.make('ec2_env:EC2/Email-v0'); print(e.reset(seed=3)[1]['task'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    env = gym.make("EC2/Email-v0")
    assert done.stdout.strip() == env.reset(seed=3)[1]["task"]


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


def test_options_choose_the_episode() -> None:
    env = WorkspaceEnv(domain="email")
    _, info = env.reset(seed=0, options={"task": "forward_invoice", "language": "zh", "split": "test", "seed": 12})
    assert (info["task"], info["language"], info["seed"]) == ("forward_invoice", "zh", 12)
    assert env.episode.split == "test"
    assert env.episode.instruction == build_episode("forward_invoice", 12, "zh", "test").instruction


@pytest.mark.parametrize(
    "options",
    [{"seeds": 1}, {"seed": "1"}, {"seed": True}, {"task": "no_such"}, {"language": "xx"}, {"split": "dev"}, {"trial": "a"}],
)
def test_options_that_cannot_be_used_are_refused_in_words(options: dict[str, Any]) -> None:
    with pytest.raises((ConfigurationError, UnknownName)):
        WorkspaceEnv(task="forward_invoice").reset(seed=0, options=options)


@pytest.mark.parametrize(
    "settings",
    [
        {"task": "no_such"},
        {"domain": "no_such"},
        {"language": "xx"},
        {"split": "dev"},
        {"reward": "none"},
        {"render_mode": "rgb"},
        {"max_episode_steps": 0},
        {"max_episode_steps": 1.5},
        {"cloud": "no:such"},
        {"weights": {"tasks": 1}},
        {"weights": {"task": -1}},
        {"cloud_settings": {"budget": 1}},
        {"cloud_settings": {"outage_rate": 2}},
        {"fault_rate": 1.0},
        {"fault_rate": "often"},
        {"cloud_settings": {"redactor": "magic"}},
        {"max_cloud_usd": -1},
        {"max_cloud_usd": float("nan")},
        {"max_cloud_usd": "1"},
        {"cloud_settings": {"max_calls": "two"}},
        {"cloud_settings": {"outage_rate": "often"}},
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_refused_in_words(settings: dict[str, Any]) -> None:
    with pytest.raises((ConfigurationError, UnknownName)):
        WorkspaceEnv(**settings)


@KINDS
def test_acting_before_the_start_or_after_the_end_says_reset(kind: str) -> None:
    env: Any = WorkspaceEnv(domain="email") if kind == "workspace" else DecisionEnv(domain="email")
    with pytest.raises(ResetNeeded):
        env.step(0)
    with pytest.raises(ResetNeeded):
        _ = env.episode
    env = type(env)(domain="email", max_episode_steps=1)
    env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step(0)
    assert terminated or truncated
    with pytest.raises(ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("decision", [-1, 6, "x", None, 2.7, [1, 2], float("nan")])
def test_a_decision_outside_the_space_is_refused_in_words(decision: Any) -> None:
    env = DecisionEnv(domain="email")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="whole number from 0 to 5"):
        env.step(decision)
    assert env.session is not None and env.session.step == 0


def test_decisions_come_in_numpy_forms() -> None:
    env = DecisionEnv(domain="email")
    env.reset(seed=0)
    env.step(np.int64(0))
    env.step(np.array(0))
    assert env.session is not None and env.session.step == 2


# -- vector envs


@pytest.mark.parametrize("env_id", ["EC2/Email-v0", "EC2/EmailDecision-v0"])
def test_sync_vector_envs_step_and_start_again(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync", max_episode_steps=4)
    observation, _ = envs.reset(seed=5)
    assert observation in envs.observation_space
    results = 0
    for _ in range(12):
        actions = envs.action_space.sample() if "Decision" in env_id else ('{"name":"list_mail"}',) * 3
        observation, rewards, terminated, truncated, _ = envs.step(actions)
        assert observation in envs.observation_space
        assert rewards.shape == (3,)
        results += int((terminated | truncated).sum())
    assert results >= 6
    envs.close()


def test_a_sync_vector_env_shows_what_its_parts_show() -> None:
    envs = gym.make_vec("EC2/Email-v0", num_envs=2, vectorization_mode="sync")
    observation, info = envs.reset(seed=[3, 4])
    for index, seed in enumerate((3, 4)):
        alone = gym.make("EC2/Email-v0")
        expected, expected_info = alone.reset(seed=seed)
        assert observation["instruction"][index] == expected["instruction"]
        assert info["seed"][index] == expected_info["seed"]
    envs.close()


@pytest.mark.parametrize("env_id", ["EC2/Email-v0", "EC2/EmailDecision-v0"])
def test_async_vector_envs_agree_with_sync_ones(env_id: str) -> None:
    actions = np.array([0, 0]) if "Decision" in env_id else ('{"name":"list_mail"}', '{"name":"no_such"}')
    seen = []
    for settings in ({"vectorization_mode": "sync"}, {"vectorization_mode": "async", "vector_kwargs": {"shared_memory": False}}):
        envs = gym.make_vec(env_id, num_envs=2, **settings)  # type: ignore[arg-type]  # two forms of one call
        first, _ = envs.reset(seed=9)
        second, rewards, *_ = envs.step(actions)
        seen.append((repr(first), repr(second), rewards.tolist()))
        envs.close()
    assert seen[0] == seen[1]


def test_shared_memory_is_refused_rather_than_mixing_up_texts() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.make_vec("EC2/Email-v0", num_envs=2, vectorization_mode="async")


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


@pytest.mark.parametrize("given", [None, {"max_usd": 5, "max_calls": 2}, CloudSettings(max_usd=5, max_calls=2)])
def test_a_cap_of_the_env_goes_before_one_of_the_settings(given: Any) -> None:
    settings = WorkspaceEnv(task="forward_invoice", cloud_settings=given, max_cloud_usd=0.25).settings
    assert settings.max_usd == 0.25
    assert settings.max_calls == (2 if given else None)
