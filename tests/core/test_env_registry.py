"""Every registered environment passes Gymnasium's checks, starts and steps, alone and in vector envs."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.registration import KINDS as ENDINGS
from ec2_env.registration import env_ids
from ec2_env.task import tasks

IDS = sorted(spec for spec in gym.registry if spec.startswith("EC2/"))


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
