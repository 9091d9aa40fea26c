"""Several calls in one reply at the edge: made in order, one a step, dropped when something comes between."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import EndpointError
from ec2_env.features import NAMES
from ec2_env.models.drafts import PROBE_TOKENS
from ec2_env.models.openai import EndpointModel, EndpointOptions
from ec2_env.models.replay import RecordingModel, ReplayModel
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision, load_strategy
from ec2_env.trace import EdgeTurn, ToolRan

KEY = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)


def answer_with(*calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    made = [{"id": f"x{i}", "function": {"name": name, "arguments": json.dumps(given)}} for i, (name, given) in enumerate(calls)]
    return {"choices": [{"message": {"content": None, "tool_calls": made}}], **more}


@pytest.fixture
def env(endpoint: Callable[..., EndpointModel]) -> DecisionEnv:
    """Returns an env whose edge is the fake server; the episode has begun."""
    env = DecisionEnv(task="forward_invoice", edge=endpoint(retries=0), cloud="sim:gpt-5.4")
    env.begin("forward_invoice", "en", "test", 0, 0)
    return env


def made(env: DecisionEnv) -> list[tuple[str, str, bool]]:
    assert env.session is not None
    return [(event.name, event.by, event.ok) for event in env.session.events if isinstance(event, ToolRan)]


SEARCH = ("search_mail", {"query": "invoice"})
THREE = (SEARCH, ("search_mail", {"query": "total"}), ("search_contacts", {"query": "a"}))


def test_waiting_calls_are_made_in_order_without_asking_again(server: Any, env: DecisionEnv) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 30}
    server.will_answer(answer_with(*THREE[:2], usage=usage), answer_with(("finish", {"answer": "x"})))
    for _ in range(3):
        env.take(Decision.EDGE)
    assert made(env) == [("search_mail", "edge", True), ("search_mail", "edge", True), ("finish", "edge", True)]
    assert len(server.requests) == 2
    assert env.session is not None
    turns = [event for event in env.session.events if isinstance(event, EdgeTurn)]
    assert [turn.tokens_out for turn in turns][:2] == [30, 0]


def test_the_transcript_that_goes_back_answers_every_call(server: Any, env: DecisionEnv) -> None:
    server.will_answer(answer_with(*THREE), answer_with(("finish", {"answer": "x"})))
    for _ in range(4):
        env.take(Decision.EDGE)
    sent = server.requests[-1]["messages"]
    asked = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == asked
    assert len(set(asked)) == len(asked) >= 2
    assert all(len(message.get("tool_calls", ())) <= 1 for message in sent)


def test_a_failed_call_drops_the_rest(server: Any, env: DecisionEnv) -> None:
    server.will_answer(answer_with(("read_mail", {"mail_id": "none"}), SEARCH), answer_with(("finish", {})))
    env.take(Decision.EDGE)
    env.take(Decision.EDGE)
    assert [name for name, _, _ in made(env)] == ["read_mail", "finish"]


@pytest.mark.parametrize("decision", [Decision.ACT, Decision.PLAN, Decision.ADVISE])
def test_the_cloud_between_drops_the_rest(server: Any, env: DecisionEnv, decision: Decision) -> None:
    server.will_answer(answer_with(*THREE), answer_with(("finish", {})))
    env.take(Decision.EDGE)
    env.take(decision)
    assert env.session is not None
    if not env.session.ended:
        env.take(Decision.EDGE)
    assert [name for name, by, _ in made(env) if by == "edge"] == ["search_mail", "finish"]


def test_copies_of_an_episode_have_queues_of_their_own(server: Any, env: DecisionEnv) -> None:
    server.will_answer(answer_with(*THREE[:2]), answer_with(("finish", {})))
    env.take(Decision.EDGE)
    other = copy.deepcopy(env)
    other.take(Decision.ACT)
    other.take(Decision.EDGE)
    env.take(Decision.EDGE)
    assert [name for name, _, _ in made(env)] == ["search_mail", "search_mail"]
    assert [name for name, by, _ in made(other) if by == "edge"] == ["search_mail", "finish"]
    assert pickle.loads(pickle.dumps(env.session)).step == 2


def test_the_probe_is_counted_apart_and_with_what_it_drafts(server: Any, env: DecisionEnv) -> None:
    top = [{"token": t, "logprob": -3.0} for t in "abcdefghijklmnopqrst"]
    unsure = answer_with(SEARCH, usage={"prompt_tokens": 900, "completion_tokens": 9})
    unsure["choices"][0]["logprobs"] = {"content": [{"token": "a", "top_logprobs": top}]}
    server.will_answer(unsure)
    strategy = load_strategy("step_routing")
    assert strategy.decide(env.view()) is Decision.ACT  # log 20 = 3.0 nats
    assert env.session is not None
    (probe,) = [event for event in env.session.events if isinstance(event, EdgeTurn)]
    sent = server.requests[0]
    assert (sent["max_tokens"], sent["temperature"], sent["top_logprobs"]) == (PROBE_TOKENS, 0.0, 20)
    assert probe.probe and probe.tokens_out == 9 and probe.tokens_in > 500
    meter = env.session.meter
    assert meter.edge_tokens_in == probe.tokens_in and meter.edge_flops_without_probes == 0.0
    env.take(Decision.EDGE)
    turns = [event for event in env.session.events if isinstance(event, EdgeTurn)]
    assert turns[-1].tokens_in == 0  # the probe has read the prompt already


def test_the_next_tool_is_known_to_a_policy(server: Any, env: DecisionEnv) -> None:
    assert env.session is not None
    for number, (name, seen) in enumerate((("search_mail", 0.0), ("send_mail", 1.0), ("finish", 1.0), ("no_such", 0.0))):
        server.will_answer(answer_with((name, {})))
        env.begin("forward_invoice", "en", "test", number, 0)
        assert env.session.signals().tool == name
        assert env.view().features()[NAMES.index("commits")] == seen


def test_the_next_tool_is_that_of_a_call_that_waits(server: Any, env: DecisionEnv) -> None:
    server.will_answer(answer_with(*THREE), answer_with(("finish", {})))
    env.take(Decision.EDGE)
    env.take(Decision.EDGE)
    assert env.session is not None and env.session.signals().tool == "search_contacts"
    other = copy.deepcopy(env)
    other.take(Decision.ACT)
    assert other.session is not None and other.session.signals().tool == "finish"


def test_an_endpoint_that_is_not_asked_costs_nothing(server: Any, endpoint: Callable[..., EndpointModel], answer: Any) -> None:
    server.will_answer(answer(400, {"error": {"message": "logprobs are not supported"}}), answer_with(SEARCH))
    env = DecisionEnv(task="forward_invoice", edge=endpoint(probe_tokens=1), cloud="sim:gpt-5.4")
    for asked in (True, False):
        env.begin("forward_invoice", "en", "test", 0, 0)
        assert env.session is not None
        env.session.signals()
        assert bool(env.session.events) == asked


def test_an_episode_with_several_calls_and_a_broken_endpoint_is_replayed_exactly(
    server: Any, answer: Any, tmp_path: Path
) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 30}
    server.will_answer(answer_with(*THREE[:2], usage=usage), answer_with(SEARCH), answer(500, b"down"))
    model = EndpointModel("m", EndpointOptions(base_url=server.address, retries=0, parameters=1e9))
    file = tmp_path / "run.jsonl"
    trajectories = []
    for edge in (RecordingModel(model, file), None):
        env = DecisionEnv(task="forward_invoice", edge=edge or ReplayModel(file), cloud="sim:gpt-5.4")
        trajectories.append(play(env, load_strategy("edge_only"), KEY))
    model.close()
    assert trajectories[0] == trajectories[1]
    assert trajectories[0].result["status"] == "error" and "HTTP 500: down" in trajectories[0].result["problem"]
    with pytest.raises(EndpointError, match="HTTP 500"):
        replayed = ReplayModel(file)
        assert env.session is not None
        replayed.complete(env.session.messages, env.session.tools.schemas_with_finish)
