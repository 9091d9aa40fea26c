"""Hostile input: no action, and nothing a cloud model says, makes an episode raise, hang or show what its space does not hold."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ec2_env.actions import Finish, Malformed, parse_action
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.envs import WorkspaceEnv
from ec2_env.models.base import ModelCard, Reply
from ec2_env.models.scripted import ScriptedModel
from ec2_env.rollout import record
from ec2_env.session import Session
from ec2_env.task import build_episode, grade, tasks
from ec2_env.trace import from_json, to_json

CARD = ModelCard(name="scripted", family="o200k", price="gpt-5.4")
SAVED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def hostile() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "hostile.py"
    spec = importlib.util.spec_from_file_location("hostile", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def env() -> gym.Env[Any, Any]:
    return gym.make("EC2/ForwardInvoice-v0", disable_env_checker=True)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_actions_are_observations(hostile: ModuleType, seed: int) -> None:
    found = hostile.attack(gym.make("EC2/Workspace-v0", disable_env_checker=True), 600, seed)
    assert found["steps"] == 600
    assert found["accepted"] > 20, "the attack never gets past the door, so it tests nothing behind it"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=SAVED | st.binary(max_size=60) | st.text(max_size=200))
def test_no_json_value_makes_parsing_raise(raw: Any) -> None:
    parsed = parse_action(raw)
    if not isinstance(parsed, Malformed):
        assert parse_action(json.dumps({"name": "finish", "arguments": {}})) == Finish()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(("search_mail", "send_mail", "write_file", "read_file", "finish", "invoke_cloud")), arguments=SAVED)
def test_any_arguments_leave_the_observation_in_its_space(env: gym.Env[Any, Any], name: str, arguments: Any) -> None:
    env.reset(seed=0)
    observation, _, _, _, _ = env.step({"name": name, "arguments": arguments})
    assert observation in env.observation_space


def test_structures_that_unfold_without_end_are_refused_at_once(hostile: ModuleType) -> None:
    for structure in (hostile.bomb(), hostile.endless(10), hostile.ring(), hostile.deep(50_000)):
        found = parse_action({"name": "finish", "arguments": {"answer": "x", "data": {"a": structure}}})
        assert isinstance(found, Malformed)


@pytest.mark.parametrize("data", [{"a": 10**400}, {"a": float("nan")}, {"a": float("inf")}, {1: 2}, {"a": object()}])
def test_values_that_json_cannot_hold_are_malformed(data: Any) -> None:
    assert isinstance(parse_action(Finish(answer="", data=data)), Malformed)


def test_lone_surrogates_never_reach_transcript_or_trace() -> None:
    session = Session(build_episode("forward_invoice", 0), cloud=ScriptedModel(["ok"], CARD), settings=CloudSettings())
    for action in (
        {"name": "x\ud800", "arguments": {"\udc00": "\ud800"}},
        {"name": "search_mail", "arguments": {"query": "\ud800"}},
        {"name": "finish", "arguments": {"answer": "\ud800", "data": {"\ud800": "\udfff"}}},
    ):
        session.call(parse_action(action), "agent")
    session.next_step()
    line = to_json(record(session, "test"))
    assert b"\\ud8" not in line
    assert to_json(from_json(line)) == line


def hostile_data(keys: list[str]) -> list[dict[str, Any]]:
    """Returns reports with every kind of wrong value in every slot."""
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        2**63 - 1,
        1e308,
        "",
        " ",
        "x" * 5_000,
        "9" * 300,
        "²",
        "１２３",
        "1e5",
        "-",
        "$",
        "元",
        [],
        {},
        [[]],
        [None],
        [{}],
        [{"a": [1, {"b": None}]}],
        {"": ""},
        {"a": {"b": {"c": []}}},
        [True, 1, "1", 1.0],
        ["a"] * 2_000,
        [[1, 2], [3]],
        {"1": 1},
    ]
    return [dict.fromkeys(keys, value) for value in odd]


@pytest.mark.parametrize("name", tasks.names())
def test_no_report_makes_grading_raise(name: str) -> None:
    for language in tasks.get(name).languages:
        episode = build_episode(name, 1, language)
        for data in hostile_data([slot.key for slot in episode.report] or ["x"]):
            graded = grade(episode, episode.workspace.fork(), Finish(answer="x", data=data))
            assert 0 <= graded.completion <= 0.5, (data, graded)


@settings(max_examples=40)
@given(values=st.lists(SAVED, min_size=1, max_size=3))
def test_any_saved_value_can_be_graded(values: list[Any]) -> None:
    for name in tasks.names()[:4]:
        episode = build_episode(name, 2)
        data = {slot.key: values[i % len(values)] for i, slot in enumerate(episode.report)}
        assert grade(episode, episode.workspace.fork(), Finish(data=data)).completion < 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(),
        Reply(text="\ud800\x00" * 100),
        Reply(text="x" * 300_000),
        Reply(calls=({"name": None, "arguments": None},)),
        Reply(calls=({"name": "finish", "arguments": "{" * 9_000},)),
        Reply(calls=({},)),
        Reply(calls=({"name": "no_such_tool", "arguments": {"a": [[[["b"]]]]}},)),
        Reply(calls=({"name": "invoke_cloud", "arguments": {"request": "again", "mode": "act"}},)),
        Reply(calls=({"name": "send_mail", "arguments": {"to": "\ud800", "subject": 1, "body": None}},)),
        Reply(calls=({"name": "finish", "arguments": {"answer": "x", "data": {"a": float("nan")}}},)),
    ],
    ids=lambda reply: repr(reply)[:40],
)
@pytest.mark.parametrize("mode", ["plan", "advise", "act"])
def test_whatever_the_cloud_says_is_an_observation(reply: Reply, mode: str) -> None:
    env = WorkspaceEnv(task="forward_invoice", cloud=ScriptedModel([reply], CARD), max_episode_steps=3)
    env.reset(seed=0)
    for redact in (False, True, False):
        action = {"name": "invoke_cloud", "arguments": {"request": "help", "mode": mode, "share": "transcript", "redact": redact}}
        observation, _, terminated, truncated, _ = env.step(action)
        assert observation in env.observation_space
        if terminated or truncated:
            break
    session = env.session
    assert session is not None
    session.end()
    assert from_json(to_json(record(session, "test"))).task == "forward_invoice"


def test_a_cloud_that_calls_itself_gains_nothing() -> None:
    reply = Reply(calls=({"name": "invoke_cloud", "arguments": {"request": "again", "mode": "act", "share": "transcript"}},))
    env = WorkspaceEnv(task="forward_invoice", cloud=ScriptedModel([reply], CARD))
    env.reset(seed=0)
    _, _, _, _, info = env.step({"name": "invoke_cloud", "arguments": {"request": "", "mode": "act", "share": "request"}})
    assert info["cloud_calls"] == 1


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b", "..\\x", "C:\\x", "~/x", "a\x00b", "a/./../..", "．．/x"])
@pytest.mark.parametrize("tool", ["read_file", "write_file", "delete_file"])
def test_paths_cannot_leave_the_workspace(path: str, tool: str) -> None:
    session = Session(build_episode("forward_invoice", 0), cloud=None, settings=CloudSettings())
    before = dict(session.workspace.rows("file"))
    arguments = {"path": path, **({"content": "x"} if tool == "write_file" else {})}
    session.call(parse_action({"name": tool, "arguments": arguments}), "agent")
    added = set(session.workspace.rows("file")) - set(before)
    assert all(".." not in name and not name.startswith(("/", "~")) and "\\" not in name for name in added), added
