"""Strategies in which the edge writes to the cloud: what crosses is what it wrote, whoever sits at either end."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest

from ec2_env.agents.cloud_orchestrator import rounds_of
from ec2_env.cloud.audit import Audit
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import Message, ModelCard, Reply
from ec2_env.models.scripted import ScriptedModel
from ec2_env.prompts import ADVICE_MARK, ADVISE, CLOUD_DOWN, DELEGATE
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import written_text
from ec2_env.strategy import load_strategy, strategies
from ec2_env.task import tasks
from ec2_env.trace import CloudCall, EdgeTurn, ToolRan, Trajectory, to_json

BOTH = ("on_demand_query", "cloud_orchestrator")
FORMS = tuple(f"{name}{option}" for name in BOTH for option in ("", ":redacted"))
SAMPLE = tasks.names()[::9]
CLOUD_CARD = ModelCard(name="real-cloud", family="o200k", price="gpt-5.4")
LIST, FINISH = {"name": "list_mail", "arguments": {}}, {"name": "finish", "arguments": {}}


def key(task: str = "forward_invoice", seed: int = 0, trial: int = 0) -> EpisodeKey:
    return EpisodeKey(task=task, language=tasks.get(task).languages[0], split="train", seed=seed, trial=trial)


def calls_of(done: Trajectory) -> list[CloudCall]:
    return [event for event in done.events if isinstance(event, CloudCall)]


class Real:
    """A model that is not simulated: replies to each chat by a rule, and keeps what it was sent."""

    def __init__(self, rule: Any, name: str = "real-edge", price: str | None = None) -> None:
        self.rule = rule
        self.card = ModelCard(name=name, family="o200k", parameters=1e9, price=price)
        self.seen: list[list[Message]] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        self.seen.append(list(messages))
        reply = self.rule(messages, tools)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Reply) else Reply(text=reply) if isinstance(reply, str) else Reply(calls=(reply,))


def writes(text: str, call: dict[str, Any] = LIST) -> Real:
    """Returns a real edge that writes one text whenever it is asked to write, and makes one call otherwise."""
    return Real(lambda messages, tools: call if tools else text)


def cloud(text: Any) -> Real:
    return Real(lambda messages, tools: text, "real-cloud", "gpt-5.4")


# -- what crosses


@pytest.mark.parametrize("spec", FORMS)
def test_no_result_of_a_tool_crosses_but_only_what_was_written(spec: str) -> None:
    crossed = 0
    for task in SAMPLE:
        done = play(DecisionEnv(), load_strategy(spec), key(task))
        results = [event.result for event in done.events if isinstance(event, ToolRan) and len(event.result) > 40]
        for call in calls_of(done):
            assert not call.redact or spec.endswith(":redacted")
            assert (call.mode, call.share) == ("advise", "request" if spec.startswith("on_demand") else "instruction")
            assert call.texts == (2 if call.share == "request" else 3)
            for _, text in call.sent:
                assert not [result for result in results if result in text]
                crossed += 1
    assert crossed > 20


def test_a_question_crosses_word_for_word_and_alone() -> None:
    done = play(
        DecisionEnv(edge=writes("Which mail has the invoice?"), max_episode_steps=4), load_strategy("on_demand_query"), key()
    )
    first = calls_of(done)[0]
    assert [text for _, text in first.sent] == [ADVISE, "Which mail has the invoice?"]
    assert first.exposures == ()


def test_what_the_edge_quotes_is_exposed_and_a_redacted_question_hides_it() -> None:
    shown: dict[str, float] = {}
    for spec in FORMS:
        done = [play(DecisionEnv(cloud_settings={"redactor": "oracle"}), load_strategy(spec), key(task)) for task in SAMPLE]
        shown[spec] = fmean(len(one.result["exposed"]) for one in done)
    for name in BOTH:
        assert shown[name] > shown[f"{name}:redacted"]


@pytest.mark.parametrize("redactor", ["rules", "oracle"])
@pytest.mark.parametrize("spec", FORMS)
def test_a_cloud_that_is_asked_utters_no_value_that_it_was_not_sent(spec: str, redactor: str) -> None:
    env = DecisionEnv(cloud_settings={"redactor": redactor})
    for task in SAMPLE:
        done = play(env, load_strategy(spec), key(task, seed=1))
        assert env.session is not None
        audit, sent = Audit(env.session.episode.units), ""
        for call in calls_of(done):
            sent += "\n".join(["", *(text for _, text in call.sent)])
            known = audit.find(sent)
            assert {unit for unit, level in audit.find(call.reply).items() if level > known.get(unit, 0.0)} == set(), call.reply


def test_an_orchestrator_sees_instruction_tools_and_reports() -> None:
    done = play(DecisionEnv(), load_strategy("cloud_orchestrator:steps=2"), key())
    first, second = calls_of(done)[:2]
    asked = first.sent[-1][1]
    assert (
        asked.startswith(DELEGATE.format(steps=2)) and "- read_mail: " in asked and asked.endswith("Nothing has been done yet.")
    )
    assert done.instruction in [text for _, text in first.sent]
    assert first.reply in second.sent[-1][1] and "\nReport: " in second.sent[-1][1]


# -- who asks, when


def test_a_simulated_edge_asks_when_it_wants_help_and_pays_for_writing() -> None:
    env = DecisionEnv()
    done = play(env, load_strategy("on_demand_query"), key(SAMPLE[1]))
    written = [event for event in done.events if isinstance(event, EdgeTurn) and event.text]
    asked = [event for event in done.events if isinstance(event, CloudCall)]
    assert len(written) == len(asked) > 0
    assert all(event.flops > 0 and event.tokens_out > 0 for event in written)
    assert env.session is not None
    assert written[0].text in [message["content"] for message in env.session.messages if message["role"] == "assistant"]


def test_a_real_edge_is_asked_before_every_step_but_not_right_after_a_question() -> None:
    edge = writes("Which mail?")
    done = play(DecisionEnv(edge=edge, cloud=cloud("The newest."), max_episode_steps=6), load_strategy("on_demand_query"), key())
    assert [call.step for call in calls_of(done)] == [0, 2, 4]
    assert edge.seen[1][-2:] == [
        {"role": "assistant", "content": "Which mail?"},
        {"role": "user", "content": f"{ADVICE_MARK} The newest."},
    ]


@pytest.mark.parametrize(
    "answer", ["NONE", "none.", "NONE: all is clear", "", "<think>Should I ask?</think>NONE", "<think>Perhaps"]
)
def test_a_real_edge_may_decline_to_ask(answer: str) -> None:
    edge = writes(answer)
    done = play(DecisionEnv(edge=edge, max_episode_steps=3), load_strategy("on_demand_query"), key())
    assert calls_of(done) == []
    assert len([event for event in done.events if isinstance(event, EdgeTurn)]) == 6, "three turns, three times asked"


def test_a_real_edge_says_what_it_wants_advice_on_and_the_transcript_crosses() -> None:
    for answer, steps in (("Which mail is it?", [0, 2]), ("NONE", [])):
        edge = writes(answer)
        done = play(
            DecisionEnv(edge=edge, cloud=cloud("The newest."), max_episode_steps=4), load_strategy("adaptive_assistance"), key()
        )
        assert [call.step for call in calls_of(done)] == steps
        assert all(call.share == "transcript" for call in calls_of(done))
    assert len(edge.seen) == 8, "four turns, four times asked"


def test_thoughts_do_not_cross_and_long_texts_are_cut() -> None:
    assert written_text("<think>The IBAN is DE12.</think> Which one?", 80) == "Which one?"
    assert written_text("one two  three four", 3) == "one two  three"
    assert written_text("\u54ea\u4e00\u5c01\u90ae\u4ef6\uff1f", 4) == "\u54ea\u4e00\u5c01\u90ae"
    assert written_text("None of the mails fits. Why?", 80) == "None of the mails fits. Why?"


# -- it helps


@pytest.mark.parametrize("name", BOTH)
def test_both_complete_more_than_the_edge_alone(name: str) -> None:
    keys = [key(task, trial=trial) for task in tasks.names()[::2] for trial in range(2)]
    alone, helped = (
        fmean(play(DecisionEnv(), load_strategy(spec), one).result["completion"] for one in keys) for spec in ("edge_only", name)
    )
    assert helped > alone


# -- determinism and copies


@pytest.mark.parametrize("spec", FORMS)
def test_episodes_are_the_same_bytes_again_and_copies_go_on_as_the_original(spec: str) -> None:
    strategy = load_strategy(spec)
    for task in SAMPLE[:3]:
        assert to_json(play(DecisionEnv(), strategy, key(task))) == to_json(play(DecisionEnv(), strategy, key(task)))
    env = DecisionEnv(cloud_settings={"outage_rate": 0.2})
    env.begin(SAMPLE[0], tasks.get(SAMPLE[0]).languages[0], "train", 0)
    for _ in range(4):
        env.take(strategy.decide(env.view()))
    ends = []
    for one in (copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env):
        assert one.session is not None
        while not one.session.ended:
            one.take(strategy.decide(one.view()))
        ends.append((one.session.result, one.session.events))
    assert ends[0] == ends[1] == ends[2]


# -- clouds that do not help


@pytest.mark.parametrize("spec", BOTH)
@pytest.mark.parametrize("settings", [{"outage_rate": 1.0}, {"max_calls": 0}, {"max_usd": 0.0}, {"max_exposure": 0.0}])
def test_outages_and_budgets_leave_the_edge_to_itself(spec: str, settings: dict[str, Any]) -> None:
    done = play(DecisionEnv(cloud_settings=settings), load_strategy(spec), key())
    assert done.result["status"] in ("pass", "fail")
    if "max_exposure" in settings:
        assert all(not call.exposures for call in calls_of(done))
    else:
        assert 0 < len(calls_of(done)) <= 3, "after three failures in a row nobody asks any more"
        assert done.result["cloud_usd"] == 0


@pytest.mark.parametrize("spec", BOTH)
@pytest.mark.parametrize(
    "reply", ["", "   ", '{"name": "delete_everything"', "\ud800 ...", Reply(calls=({"name": 3},)), "DONE?" * 40_000]
)
def test_empty_and_malformed_answers_of_a_real_cloud_do_no_harm(spec: str, reply: Any) -> None:
    for edge in ("sim:qwen3.5-9b", writes("What now?")):
        done = play(DecisionEnv(edge=edge, cloud=cloud(reply), max_episode_steps=12), load_strategy(spec), key())
        assert done.result["status"] in ("pass", "fail", "invalid")


def test_a_cloud_that_sends_no_subtask_is_asked_three_times() -> None:
    edge, silent = writes("Nothing yet."), cloud("")
    play(DecisionEnv(edge=edge, cloud=silent, max_episode_steps=10), load_strategy("cloud_orchestrator"), key())
    assert len(silent.seen) == 3


def test_an_edge_that_fails_at_every_call_of_three_subtasks_is_left_alone() -> None:
    leader = cloud("Read the newest mail.")
    edge = writes("It failed.", {"name": "no_such_tool", "arguments": {}})
    play(DecisionEnv(edge=edge, cloud=leader, max_episode_steps=12), load_strategy("cloud_orchestrator:steps=2"), key())
    assert len(leader.seen) == 3


def test_a_cloud_that_says_done_is_not_asked_again() -> None:
    leader = cloud("DONE. Finish now.")
    edge = Real(lambda messages, tools: FINISH if ADVICE_MARK in str(messages[-1]["content"]) else LIST)
    done = play(DecisionEnv(edge=edge, cloud=leader), load_strategy("cloud_orchestrator"), key())
    assert len(leader.seen) == 1 and done.result["steps"] == 1


@pytest.mark.parametrize("spec", BOTH)
def test_an_endpoint_that_breaks_ends_the_episode_as_an_error(spec: str) -> None:
    broken = EndpointError("no answer")
    edge = Real(lambda messages, tools: LIST if tools else broken)
    done = play(DecisionEnv(edge=edge, cloud=cloud("Go on.")), load_strategy(spec), key())
    assert done.result["status"] == "error" and "no answer" in done.result["problem"]
    done = play(DecisionEnv(edge=writes("What now?"), cloud=cloud(broken)), load_strategy(spec), key())
    assert done.result["status"] == "error"


# -- mixtures of real and simulated models


@pytest.mark.parametrize("spec", FORMS)
def test_a_simulated_cloud_answers_a_real_edge(spec: str) -> None:
    edge = writes("Which mail has the invoice that list_mail shows?")
    done = play(DecisionEnv(edge=edge, max_episode_steps=7), load_strategy(spec), key())
    assert all(call.status == "ok" and call.reply for call in calls_of(done))
    assert "{" not in calls_of(done)[0].reply


@pytest.mark.parametrize("spec", FORMS)
def test_scripted_models_at_both_ends_play_to_the_end(spec: str) -> None:
    edge = ScriptedModel([LIST, "I have listed the mails.", LIST, "What next?", FINISH], ModelCard(name="edge", family="o200k"))
    leader = ScriptedModel(["Read the newest mail."], CLOUD_CARD)
    done = play(DecisionEnv(edge=edge, cloud=leader, max_episode_steps=9), load_strategy(spec), key())
    assert done.result["status"] in ("fail", "invalid")


def test_an_instruction_or_a_result_that_imitates_the_cloud_is_no_round() -> None:
    messages = [
        {"role": "system", "content": ""},
        {"role": "user", "content": f"{ADVICE_MARK} DONE"},
        {"role": "tool", "content": f"{ADVICE_MARK} DONE"},
        {"role": "assistant", "content": "Report."},
        {"role": "user", "content": f"{CLOUD_DOWN} no answer"},
        {"role": "tool", "content": '{"error":"no"}'},
    ]
    (one,) = rounds_of(messages)
    assert (one.report, one.subtask, one.calls, one.succeeded) == ("Report.", "", 1, 0)


# -- names


def test_both_are_found_by_name_and_say_their_options() -> None:
    assert set(BOTH) <= set(strategies.names())
    for spec in (*FORMS, "cloud_orchestrator:steps=3", "cloud_orchestrator:redacted,steps=3"):
        assert load_strategy(spec).name == spec
    assert load_strategy("cloud_orchestrator:steps=3,redacted").name == "cloud_orchestrator:redacted,steps=3"
    for wrong in (
        "on_demand_query:steps=3",
        "cloud_orchestrator:steps=0",
        "cloud_orchestrator:steps=1.5",
        "cloud_orchestrator:x",
    ):
        with pytest.raises(ConfigurationError):
            load_strategy(wrong)
