"""Actions: text, mappings and objects become actions, and what is wrong is said in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.actions import (
    MAX_ACTION_CHARS,
    MODES,
    SHARES,
    Finish,
    InvokeCloud,
    Malformed,
    ToolCall,
    action_text,
    clean,
    dump_action,
    parse_action,
    plain,
    shallow,
)

CALL = ToolCall("send_mail", {"to": ["a@b.example"], "subject": "x", "body": "中文"})
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "raw",
    [
        CALL,
        dump_action(CALL),
        json.dumps(dump_action(CALL)),
        json.dumps(dump_action(CALL)).encode(),
        bytearray(action_text(CALL).encode()),
        {"function": dump_action(CALL)},
        {"name": CALL.name, "arguments": json.dumps(CALL.arguments)},
    ],
    ids=["object", "dict", "text", "bytes", "bytearray", "wrapped", "arguments as text"],
)
def test_every_form_of_a_call_is_the_same_call(raw: object) -> None:
    assert parse_action(raw) == CALL


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("redact", [True, False])
def test_questions_to_the_cloud_survive_a_round_trip(mode: Any, share: Any, redact: bool) -> None:
    action = InvokeCloud(request="why?", mode=mode, share=share, redact=redact)
    assert parse_action(dump_action(action)) == parse_action(action_text(action)) == parse_action(action) == action


@given(answer=st.text(max_size=50), data=st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_reports_survive_a_round_trip(answer: str, data: dict[str, Any]) -> None:
    parsed = parse_action(Finish(answer=answer, data=data))
    assert isinstance(parsed, Finish)
    assert parse_action(action_text(parsed)) == parsed


@given(value=JSON)
def test_plain_copies_json_values_and_keeps_them_equal(value: Any) -> None:
    assert plain(value) == value
    assert shallow(value)


def test_a_report_may_come_as_text() -> None:
    assert parse_action({"name": "finish", "arguments": {"answer": "a", "data": '{"x": 1}'}}) == Finish(answer="a", data={"x": 1})
    assert parse_action({"name": "finish", "arguments": {"data": " "}}) == Finish()
    assert parse_action({"name": "finish"}) == Finish()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, "got nothing"),
        (3, "got a number"),
        ([], "got a list"),
        ("hello", "not valid JSON"),
        ("{" * 100_000, "not valid JSON"),
        ("x" * (MAX_ACTION_CHARS + 1), "at most"),
        ({}, "no tool name"),
        ({"name": ""}, "no tool name"),
        ({"name": 5}, "no tool name"),
        ({"name": "x", "arguments": []}, "must be an object"),
        ({"name": "x", "arguments": "[1"}, "not valid JSON"),
        ({"name": "x", "arguments": {1: 2}}, "text keys"),
        ({"name": "x", "arguments": {"a": object()}}, "not a JSON value"),
        ({"name": "x", "arguments": {"a": float("nan")}}, "not finite"),
        ({"name": "x", "arguments": {"a": 2**70}}, "out of range"),
        ({"name": "x", "arguments": {"a": "y" * (MAX_ACTION_CHARS + 1)}}, "too long"),
        ({"name": "invoke_cloud", "arguments": {"mode": "think"}}, "plan, advise, act"),
        ({"name": "invoke_cloud", "arguments": {"share": "all"}}, "request, instruction, transcript"),
        ({"name": "invoke_cloud", "arguments": {"redact": "yes"}}, "true or false"),
        ({"name": "invoke_cloud", "arguments": {"request": 1}}, "must be text"),
        ({"name": "invoke_cloud", "arguments": {"text": "x"}}, "no argument 'text'"),
        ({"name": "finish", "arguments": {"result": 1}}, "no argument 'result'"),
        ({"name": "finish", "arguments": {"answer": 1}}, "must be text"),
        ({"name": "finish", "arguments": {"data": [1]}}, "must be an object"),
        (InvokeCloud(mode="think"), "plan, advise, act"),  # type: ignore[arg-type]  # on purpose
        (Finish(answer=5), "must be text"),  # type: ignore[arg-type]  # on purpose
        (ToolCall("x", [1]), "must be an object"),  # type: ignore[arg-type]  # on purpose
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_is_said_in_words(raw: object, expected: str) -> None:
    found = parse_action(raw)
    assert isinstance(found, Malformed)
    assert expected in found.problem
    assert len(found.problem) < 1_000


def test_equal_calls_have_equal_texts_whatever_the_order_of_their_arguments() -> None:
    assert action_text(ToolCall("x", {"a": 1, "b": 2})) == action_text(ToolCall("x", {"b": 2, "a": 1}))
    assert "9" in action_text(ToolCall("x", {"a": {9}}))


def test_depth_is_limited() -> None:
    value: Any = 1
    for _ in range(20):
        value = [value]
    assert shallow(value)
    assert not shallow([value])


def test_lone_surrogates_are_replaced() -> None:
    assert clean("a\ud800b") == "a?b"
    assert clean("中") == "中"
