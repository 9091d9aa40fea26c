"""A redaction engine may fail at any point: nothing crosses unredacted, and no exception reaches the episode."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest

from ec2_env.actions import InvokeCloud
from ec2_env.cloud.engine import Engine, engines
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.mapping import restored, restored_call
from ec2_env.cloud.redaction import NoRedactor, RuleRedactor
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import Message, ModelCard, Reply
from ec2_env.session import Session
from ec2_env.task import build_episode

REQUEST = InvokeCloud(mode="act", share="transcript", redact=True)
ERRORS = [ValueError("bad"), MemoryError(), RecursionError(), KeyError(1), AttributeError("gone")]


class Recorder:
    """A cloud model that keeps what it is sent."""

    card = ModelCard(name="recorder", family="o200k", price="gpt-5.4")

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.seen: list[Sequence[Message]] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        self.seen.append(list(messages))
        return self.reply


class Failing(RuleRedactor):
    """The rules, but for one method that raises or returns no text."""

    def __init__(self, method: str, error: Any) -> None:
        super().__init__()
        self.method, self.error = method, error

    def _fail(self, method: str) -> bool:
        if self.method == method and isinstance(self.error, Exception):
            raise self.error
        return self.method == method

    def redact(self, text: str) -> str:
        return self.error if self._fail("redact") else super().redact(text)

    def restore(self, text: str) -> str:
        return self.error if self._fail("restore") else super().restore(text)

    def hide(self, text: str) -> str:
        return self.error if self._fail("hide") else super().hide(text)

    def fork(self) -> RuleRedactor:
        return self.error if self._fail("fork") else super().fork()

    def take_work(self) -> Any:
        return self.error if self._fail("take_work") else None


def session(redactor: Any, reply: Reply = Reply(text="ok")) -> tuple[Session, Recorder]:  # noqa: B008  # frozen
    cloud = Recorder(reply)
    running = Session(build_episode("forward_invoice", 0, "en"), cloud=cloud, settings=CloudSettings())
    assert running.gateway is not None
    running.gateway._redactor = redactor
    return running, cloud


def test_a_redactor_that_cannot_be_made_refuses_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(surroundings: Any, rest: str) -> NoRedactor:
        raise RuntimeError("no memory for it")

    monkeypatch.setitem(engines.added, "unmakeable", Engine(make=make))
    env = DecisionEnv(task="forward_invoice", language="en", cloud_settings={"redactor": "unmakeable"})
    env.reset(seed=0)
    _, _, terminated, _, info = env.step(5)
    assert not terminated
    assert env.session is not None
    assert (env.session.levels, info["cloud_calls"]) == ({}, 0)
    copy.deepcopy(env).step(5)
    assert env.session.fork().invoke(REQUEST).event.status == "refused"  # type: ignore[union-attr]  # there is a cloud


@pytest.mark.parametrize("error", [*ERRORS, None, 7, b"raw"], ids=repr)
def test_placeholders_are_left_as_they_are_if_they_cannot_be_mapped_back(error: Any) -> None:
    call = {"name": "finish", "arguments": {"answer": "[EMAIL_001]"}}
    running, _ = session(Failing("restore", error), Reply(text="write to [EMAIL_001]", calls=(call,)))
    answer = running.invoke(REQUEST)
    assert answer is not None
    assert answer.ok
    assert answer.text.startswith("write to [EMAIL_001]\n[placeholders could not be mapped back")
    assert answer.call == call
    assert "left as they are" in answer.event.problem


@pytest.mark.parametrize("error", [*ERRORS, None, 7], ids=repr)
def test_an_engine_whose_copy_fails_sends_nothing_from_the_copy(error: Any) -> None:
    running, cloud = session(Failing("fork", error))
    assert running.invoke(REQUEST).ok  # type: ignore[union-attr]  # there is a cloud
    answer = running.fork().invoke(REQUEST)
    assert answer is not None
    assert (answer.event.status, answer.event.sent, len(cloud.seen)) == ("refused", (), 1)


@pytest.mark.parametrize("method", ["take_work", "hide"])
@pytest.mark.parametrize("error", [*ERRORS, 7], ids=repr)
def test_an_engine_that_fails_to_report_or_to_hide_stops_nothing(method: str, error: Any) -> None:
    env = DecisionEnv(task="forward_invoice", language="en")
    env.reset(seed=0)
    assert env.session is not None and env.session.gateway is not None
    env.session.gateway._redactor = Failing(method, error)
    for action in (5, 3, 5):
        env.step(action)
    assert env.session.meter.cloud_calls == 3


def test_a_number_of_json_crosses_as_a_string_and_comes_back_as_a_number() -> None:
    redactor = RuleRedactor()
    text = '{"amount":1436.5,"note":"1436.5 to pay","list":[1436.5, 2]}'
    redacted = redactor.redact(text)
    assert json.loads(redacted) == {"amount": "[AMOUNT_001]", "note": "[AMOUNT_002] to pay", "list": ["[AMOUNT_001]", 2]}
    assert redactor.restore(redacted) == text
    assert redactor.restore('pay({"amount": "[amount_001]"}) or [AMOUNT_001]') == 'pay({"amount": 1436.5}) or 1436.5'


@pytest.mark.parametrize(
    ("parameter", "said", "expected"),
    [
        ("number", "[AMOUNT_001]", 1436.5),
        ("integer", "[AMOUNT_002]", 5000),
        ("string", "[AMOUNT_001]", "$1,436.50"),
        ("number", "12", "12"),
        ("number", "about [AMOUNT_001]", "about $1,436.50"),
    ],
)
def test_a_placeholder_in_place_of_a_number_becomes_what_the_tool_asks_for(parameter: str, said: str, expected: Any) -> None:
    redactor = RuleRedactor()
    redactor.redact("$1,436.50 and $5,000")
    schema = {
        "function": {"name": "pay", "parameters": {"properties": {"amount": {"type": parameter}, "to": {"type": "string"}}}}
    }
    call = {"name": "pay", "arguments": {"amount": said, "to": "x"}}
    assert restored_call(call, [schema], redactor.restore) == {"name": "pay", "arguments": {"amount": expected, "to": "x"}}


def test_keys_and_nested_values_are_mapped_back_and_the_rest_is_left() -> None:
    redactor = RuleRedactor()
    redactor.redact("a@b.example")
    assert restored({"[EMAIL_001]": [("[EMAIL_001]", 1, None)], 2: True}, redactor.restore) == {
        "a@b.example": [["a@b.example", 1, None]],
        2: True,
    }
    assert restored_call({"name": 3, "arguments": "[EMAIL_001]"}, [], redactor.restore)["arguments"] == "a@b.example"
