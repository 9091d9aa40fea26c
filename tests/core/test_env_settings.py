"""What an environment can be told: settings, options of an episode, and decisions; what it refuses, it refuses in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from ec2_env.cloud.gateway import CloudSettings
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.task import build_episode

KINDS = pytest.mark.parametrize("kind", ["workspace", "decision"])


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


@pytest.mark.parametrize("given", [None, {"max_usd": 5, "max_calls": 2}, CloudSettings(max_usd=5, max_calls=2)])
def test_a_cap_of_the_env_goes_before_one_of_the_settings(given: Any) -> None:
    settings = WorkspaceEnv(task="forward_invoice", cloud_settings=given, max_cloud_usd=0.25).settings
    assert settings.max_usd == 0.25
    assert settings.max_calls == (2 if given else None)
