"""One episode in progress: what it records, what the edge costs, and how it ends."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ec2_env.actions import Finish, InvokeCloud, Malformed, ToolCall, parse_action
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.tokens import count
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import ModelCard, Reply, Usage
from ec2_env.models.loading import load_model
from ec2_env.models.scripted import ScriptedModel
from ec2_env.session import PASS_THRESHOLD, Session
from ec2_env.task import build_episode
from ec2_env.testing import play
from ec2_env.trace import EdgeTurn, Ended, ToolRan


def session(**settings: Any) -> Session:
    return Session(build_episode("forward_invoice", 0, "en"), cloud=None, settings=CloudSettings(), **settings)


def test_every_call_is_written_to_transcript_records_and_events() -> None:
    running = session()
    running.call(ToolCall("list_mail"), "agent")
    running.call(ToolCall("no_such", {"a": 1}), "agent")
    assert [record.ok for record in running.records] == [True, False]
    assert [event.name for event in running.events if isinstance(event, ToolRan)] == ["list_mail", "no_such"]
    assert [message["role"] for message in running.messages] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert running.messages[3]["content"] == running.events[0].result  # type: ignore[union-attr]  # a ToolRan


def test_the_edge_pays_for_what_is_new_to_it() -> None:
    card = ModelCard(name="edge", family="o200k", parameters=1e9)
    running = session(edge=ScriptedModel([{"name": "list_mail", "arguments": {}}], card))
    running.edge_turn()
    running.edge_turn()
    first, second = (event for event in running.events if isinstance(event, EdgeTurn))
    schemas = running.tools.schema_tokens("o200k", count)
    start = sum(count(str(message["content"]), "o200k") for message in running.messages[:2])
    assert first.tokens_in == schemas + start
    assert second.tokens_in == count(str(running.messages[3]["content"]), "o200k")
    assert first.flops == pytest.approx(2e9 * (first.tokens_in + first.tokens_out))
    assert running.meter.edge_flops == pytest.approx(first.flops + second.flops)


def test_reported_usage_of_the_edge_is_believed() -> None:
    edge = ScriptedModel([Reply(calls=({"name": "list_mail", "arguments": {}},), usage=Usage(output=77))])
    running = session(edge=edge)
    running.edge_turn()
    assert next(event for event in running.events if isinstance(event, EdgeTurn)).tokens_out == 77


def test_a_reply_without_a_call_is_an_invalid_step() -> None:
    running = session(edge=ScriptedModel(["I will think about it."]))
    result = running.edge_turn()
    assert not result.ok
    assert "no tool call" in result.text
    assert running.invalid == 1


def test_signals_are_asked_once_a_step_and_paid_for() -> None:
    running = Session(
        build_episode("forward_invoice", 0),
        cloud=load_model("sim:gpt-5.4"),
        settings=CloudSettings(),
        edge=load_model("sim:qwen3.5-9b"),
    )
    assert running.signals() is running.signals()
    probes = [event for event in running.events if isinstance(event, EdgeTurn) and event.probe]
    assert len(probes) == 1
    assert probes[0].tokens_out == 1
    running.edge_turn()
    running.signals()
    assert len([event for event in running.events if isinstance(event, EdgeTurn) and event.probe]) == 2


def test_models_without_signals_tell_none() -> None:
    running = session(edge=ScriptedModel(["x"]))
    assert running.signals().entropy is None
    assert running.events == []


def test_without_an_edge_there_is_no_edge_turn_and_without_a_cloud_no_question() -> None:
    running = session()
    with pytest.raises(RuntimeError, match="no edge model"):
        running.edge_turn()
    assert running.invoke(InvokeCloud()) is None
    assert running.levels == {}
    assert not running.call(InvokeCloud(), "agent").ok


@pytest.mark.parametrize(("completion", "status"), [(1.0, "pass"), (0.0, "fail")])
def test_the_status_follows_the_completion(completion: float, status: str) -> None:
    running = session()
    for action in play(running.episode).actions if completion else (ToolCall("list_mail"), Finish()):
        running.call(action, "agent")
    running.next_step()
    assert running.result is not None
    assert (running.result["status"], running.result["completion"]) == (status, completion)
    assert 0 < PASS_THRESHOLD < 1


def test_the_end_names_what_was_touched() -> None:
    running = session()
    assert running.touched() == ()
    for action in play(running.episode).actions:
        running.call(action, "agent")
    running.next_step()
    end = running.events[-1]
    assert isinstance(end, Ended)
    assert 0 < len(end.touched) < len(running.episode.units)
    shown = "\n".join(str(message["content"]) for message in running.messages)
    assert set(end.touched) == {unit.id for unit in running.episode.units if unit.value in shown}


def test_refused_arguments_are_kept_short() -> None:
    running = session()
    running.call(parse_action({"name": "no_such", "arguments": {"a": "x" * 50_000}}), "agent")
    assert len(str(running.messages)) < 5_000
    running.call(Malformed("x" * 5_000), "agent")
    assert running.invalid == 2


def test_a_faulty_service_does_nothing_says_so_and_does_it_when_asked_again() -> None:
    running = session(fault_rate=0.5)
    results = [running.call(ToolCall("write_file", {"path": f"a/{number}.txt", "content": "x"}), "agent") for number in range(40)]
    refused = [result.text for result in results if not result.ok]
    assert 8 < len(refused) < 32
    assert all("try again" in text and ("429" in text or "504" in text) for text in refused)
    assert len({text[:30] for text in refused}) == 2, "both kinds of failure occur"
    assert len(running.workspace.diff()) == 40 - len(refused)
    again = session(fault_rate=0.5)
    repeated = [again.call(ToolCall("write_file", {"path": f"a/{number}.txt", "content": "x"}), "agent") for number in range(40)]
    assert repeated == results
    assert not session(fault_rate=0.5).call(ToolCall("no_such"), "agent").ok


def test_a_simulated_edge_recovers_from_faults() -> None:
    env = DecisionEnv(task="forward_invoice", fault_rate=0.2)
    done = []
    for seed in range(20):
        env.reset(seed=seed)
        over = False
        while not over:
            *_, over, cut, info = env.step(4)
            over = over or cut
        done.append(info["result"]["completion"])
    assert sum(done) > 6


def test_a_fork_shares_nothing_that_changes() -> None:
    env = DecisionEnv(task="forward_invoice")
    env.begin("forward_invoice", "en", "train", 0)
    for decision in (0, 3, 4):
        env.take(decision)
    kept = env.session
    assert kept is not None
    before = (len(kept.messages), len(kept.events), kept.meter.cloud_usd, dict(kept.levels), len(kept.workspace.journal))
    branch = copy.deepcopy(env)
    for decision in (5, 2):
        branch.take(decision)
    assert before == (len(kept.messages), len(kept.events), kept.meter.cloud_usd, dict(kept.levels), len(kept.workspace.journal))
    assert branch.session is not None
    assert branch.session.gateway is not None
    assert branch.session.gateway is not kept.gateway
    assert len(branch.session.events) > len(kept.events)
