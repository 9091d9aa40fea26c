"""Spaces: what is sampled is valid, what is valid is contained, and seeds fix the samples."""

from __future__ import annotations

import copy
import json
import pickle

import gymnasium as gym
import pytest
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import batch_space, create_shared_memory

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.actions import ToolCall
from ec2_env.spaces import ToolCallSpace, UnicodeText
from ec2_env.task import build_episode, toolbox
from ec2_env.workspace.tools import Toolbox, apps

ALL_APPS = apps.names()


@pytest.fixture
def space() -> ToolCallSpace:
    return ToolCallSpace(toolbox(ALL_APPS), seed=3)


def test_every_sample_is_contained_and_every_tool_is_drawn(space: ToolCallSpace) -> None:
    drawn = [space.sample() for _ in range(3_000)]
    assert all(call in space for call in drawn)
    assert {json.loads(call)["name"] for call in drawn} == {*space.toolbox.tools, "invoke_cloud", "finish"}


def test_samples_are_fixed_by_the_seed(space: ToolCallSpace) -> None:
    space.seed(11)
    first = [space.sample() for _ in range(20)]
    space.seed(11)
    assert [space.sample() for _ in range(20)] == first
    space.seed(12)
    assert [space.sample() for _ in range(20)] != first


def test_no_sample_fails_for_its_form(space: ToolCallSpace) -> None:
    episode = build_episode("forward_invoice", 0)
    own = ToolCallSpace(toolbox(episode.task.apps), seed=0)
    for _ in range(300):
        call = json.loads(own.sample())
        if call["name"] in own.toolbox.tools:
            result = own.toolbox.run(episode.workspace.fork(), ToolCall(call["name"], call["arguments"]))
            assert result.ok or "expected" not in result.text or "expected name@host" in result.text or "YYYY" in result.text, (
                result.text
            )


@pytest.mark.parametrize(
    "raw",
    [
        5,
        None,
        "",
        "text",
        "[]",
        '{"name":"no_such"}',
        '{"name":"list_mail","arguments":{"folder":"no"}}',
        '{"name":"read_mail"}',
        '{"name":"read_mail","arguments":{"mail_id":3}}',
        '{"name":"list_mail","arguments":{"page":1,"x":2}}',
        b'{"name":"list_mail"}',
        '{"name":"finish","arguments":{"answer":1}}',
        '{"name":"invoke_cloud","arguments":{"mode":"x"}}',
        "x" * 200_000,
    ],
    ids=lambda raw: str(raw)[:40],
)
def test_what_is_no_valid_call_is_not_contained(space: ToolCallSpace, raw: object) -> None:
    assert raw not in space


def test_any_text_up_to_the_limit_is_a_text() -> None:
    text = UnicodeText(5)
    assert "中文 \x00" in text
    assert "123456" not in text
    assert 1 not in text
    assert all(sample in UnicodeText(20) for sample in (UnicodeText(20).sample() for _ in range(50)))


def test_spaces_compare_by_what_they_accept(space: ToolCallSpace) -> None:
    assert space == ToolCallSpace(Toolbox(ALL_APPS))
    assert space != ToolCallSpace(Toolbox(ALL_APPS[:1]))
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6)
    assert UnicodeText() != space
    assert "tools" in repr(space)
    assert "5" in repr(UnicodeText(5))


def test_spaces_copy_and_pickle_with_their_generators(space: ToolCallSpace) -> None:
    expected = _samples(space)
    for again in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert again == space
        assert [again.sample() for _ in range(5)] == expected


def _samples(space: ToolCallSpace) -> list[str]:
    fresh = copy.deepcopy(space)
    return [fresh.sample() for _ in range(5)]


def test_batches_hold_one_text_an_env(space: ToolCallSpace) -> None:
    batch = batch_space(spaces.Dict({"a": UnicodeText(), "b": space}), 3)
    assert batch.sample() in batch


def test_shared_memory_is_refused_for_texts(space: ToolCallSpace) -> None:
    for text in (UnicodeText(), space):
        with pytest.raises(CustomSpaceError, match="shared_memory"):
            create_shared_memory(text, n=2)


def test_the_action_space_of_an_env_covers_its_tasks() -> None:
    env = gym.make("EC2/Workspace-v0")
    tools = env.action_space.toolbox.tools  # type: ignore[attr-defined]  # a ToolCallSpace
    for seed in range(10):
        _, info = env.reset(seed=seed)
        assert {t["function"]["name"] for t in info["tools"]} <= {*tools, "invoke_cloud", "finish"}
