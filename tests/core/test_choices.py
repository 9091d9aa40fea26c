"""Strategies may choose one of the six decisions, or write a request of their own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ec2_env.actions import InvokeCloud
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.render import ansi_lines, html_part
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import REQUESTS, Always, Choice, Decision, View, decision_of
from ec2_env.trace import CloudCall, Decided, EdgeTurn, ToolRan, from_json, to_json
from ec2_env.training.evaluation import by_strategy, evaluate
from ec2_env.training.states import go_to, observed

KEY = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)
OWN = InvokeCloud(request="Which mail has the invoice?", mode="advise", share="instruction", redact=True)


@dataclass(frozen=True)
class Asks:
    """Asks in its own words at the second step, quoting the last message, and lets the edge work otherwise."""

    name: str = "asks"
    uses_edge: bool = True

    def decide(self, view: View) -> Choice:
        if view.step != 1:
            return Decision.EDGE
        return InvokeCloud(request=f"What now? {str(view.messages[-1]['content'])[:200]}", mode="advise", share="request")


def test_a_request_in_own_words_crosses_and_is_recorded() -> None:
    done = play(DecisionEnv(), Asks(), KEY)
    asked = [event for event in done.events if isinstance(event, Decided) and event.request is not None]
    assert [event.step for event in asked] == [1]
    assert asked[0].request is not None and asked[0].request["request"].startswith("What now?")
    assert asked[0].decision == Decision.ADVISE
    (call,) = [event for event in done.events if isinstance(event, CloudCall)]
    assert asked[0].request["request"] in [text for _, text in call.sent]
    assert (call.mode, call.share, call.redact) == ("advise", "request", False)
    assert from_json(to_json(done)) == done
    assert ansi_lines(asked[0]) and html_part(asked[0])


def test_a_plain_decision_is_recorded_as_before() -> None:
    done = play(DecisionEnv(), Always(name="edge", decision=Decision.EDGE), KEY)
    assert b'{"decision":0,"step":0,"type":"decision"}' in to_json(done)


@pytest.mark.parametrize("decision", list(REQUESTS))
def test_a_request_equal_to_a_decision_does_the_same(decision: Decision) -> None:
    plain = play(DecisionEnv(), Always(name="same", decision=decision), KEY)
    own = play(DecisionEnv(), Always(name="same", decision=REQUESTS[decision]), KEY)
    assert own.result == plain.result
    assert decision_of(REQUESTS[decision]) is decision


def test_after_advice_the_edge_takes_the_step_and_after_an_act_the_cloud_has() -> None:
    env = DecisionEnv()
    for request, by in ((OWN, "edge"), (InvokeCloud(mode="act", share="transcript"), "cloud")):
        env.begin("forward_invoice", "en", "test", 0)
        env.take(request)
        assert env.session is not None
        assert [event.by for event in env.session.events if isinstance(event, ToolRan)] == [by]
        assert any(isinstance(event, EdgeTurn) for event in env.session.events) is (by == "edge")


@pytest.mark.parametrize(
    "wrong",
    [InvokeCloud(mode="guess"), InvokeCloud(share="all"), InvokeCloud(request=3), 6, -1, "0", None, 1.5],  # type: ignore[arg-type]  # on purpose
)
def test_what_is_no_choice_is_refused_before_anything_happens(wrong: object) -> None:
    env = DecisionEnv()
    env.begin("forward_invoice", "en", "test", 0)
    with pytest.raises(ConfigurationError):
        env.take(wrong)
    assert env.session is not None and env.session.events == [] and env.decisions == ()


def test_a_state_behind_an_own_request_can_be_reached_again_and_scored() -> None:
    env = DecisionEnv()
    env.begin(KEY.task, KEY.language, KEY.split, KEY.seed, KEY.trial)
    env.view().signals()
    env.take(OWN)
    state = observed(env, KEY)
    other = DecisionEnv()
    go_to(other, state)
    assert observed(other, KEY) == state
    score = evaluate("asks", by_strategy(Asks()), {}, [KEY])
    assert score.decisions[Decision.ADVISE] == 1
    assert dict(score.decisions) == {0: sum(score.decisions.values()) - 1, 1: 0, 2: 1, 3: 0, 4: 0, 5: 0}
