"""Probes of endpoints: entropy, the tool of the next call, and what telling them takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ec2_env.errors import EndpointError
from ec2_env.models.base import Signals

USER = [{"role": "user", "content": "find the invoice"}]
SEARCH = {
    "type": "function",
    "function": {
        "name": "search_mail",
        "description": "Find mails.\n\nDetails.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}, **more.pop("choice", {})}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "small-model", "choices": [choice], **more}


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_probe_asks_for_one_token(server: Any, endpoint: Callable[..., Any]) -> None:
    top = [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -1.0}]
    server.will_answer(completion({"content": "a"}, choice={"logprobs": {"content": [{"token": "a", "top_logprobs": top}]}}))
    assert endpoint(probe_tokens=1).probe(USER, [SEARCH], 2).entropy == pytest.approx(math.log(2))
    assert endpoint().probe(USER, [], 2) == Signals(entropy=pytest.approx(math.log(2)), tokens=1)
    assert [request["max_tokens"] for request in server.requests] == [1, 1]


CUT = [
    {"content": None, "tool_calls": [call("search_mail", '{"que')]},
    {"content": '<tool_call>\n{"name": "search_mail", "argu'},
    {"content": "<think>\nmails\n</think>\n{'name': 'search_mail', 'arguments': {'query': 'in"},
    {"content": "", "reasoning_content": "mails", "function_call": {"name": "search_mail", "arguments": ""}},
]


@pytest.mark.parametrize("message", CUT)
def test_the_next_tool_is_read_from_a_call_that_was_cut_short(
    message: dict[str, Any], server: Any, endpoint: Callable[..., Any]
) -> None:
    server.will_answer(completion(message, usage={"prompt_tokens": 90, "completion_tokens": 11}))
    assert endpoint(probe_tokens=20).probe(USER, [SEARCH], 2) == Signals(tool="search_mail", tokens=11)
    assert server.requests[0]["max_tokens"] == 20


def test_a_probe_of_an_endpoint_that_counts_nothing_is_taken_to_have_written_all_it_might(
    server: Any, endpoint: Callable[..., Any]
) -> None:
    server.will_answer(completion({"content": "I will look for"}))
    assert endpoint(probe_tokens=20, max_tokens=8).probe(USER, [SEARCH], 2) == Signals(tokens=8)


def test_an_endpoint_that_fails_at_calls_cut_short_is_from_then_on_asked_for_one_token(
    server: Any, endpoint: Callable[..., Any], answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    failure = {"error": {"code": 500, "message": "Failed to parse tool call arguments as JSON"}}
    server.will_answer(answer(500, failure), completion({"content": "a"}))
    model = endpoint(probe_tokens=20)
    assert [model.probe(USER, [SEARCH], 0) for _ in range(2)] == [Signals(tokens=1)] * 2
    assert [request["max_tokens"] for request in server.requests] == [20, 1, 1]
    assert model.waits == []
    assert len([record for record in caplog.records if "is probed with one" in record.message]) == 1


def test_an_endpoint_without_logprobs_still_names_the_next_tool(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    refusal = answer(400, {"error": {"message": "logprobs are not supported"}})
    server.will_answer(refusal, completion({"content": None, "tool_calls": [call("finish", "")]}))
    model = endpoint(probe_tokens=6)
    assert [model.probe(USER, [SEARCH], 20) for _ in range(2)] == [Signals(tool="finish", tokens=6)] * 2


def test_a_made_up_name_is_told_as_it_is(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": None, "tool_calls": [call("no_such\ud800" + "x" * 999, "")]}))
    tool = endpoint().probe(USER, [SEARCH], 0).tool
    assert tool is not None and tool.startswith("no_such?x") and len(tool) <= 120


def test_a_probe_is_asked_at_temperature_zero_unless_the_endpoint_refuses(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(400, {"error": {"message": "Unsupported value: 'temperature'"}}), completion({"content": "a"}))
    model = endpoint()
    model.probe(USER, [], 20)
    assert [request.get("temperature") for request in server.requests] == [0.0, None]
    assert server.requests[1]["top_logprobs"] == 20
    server.will_answer(answer(400, {"error": {"message": "Unsupported value: 'temperature'"}}))
    with pytest.raises(EndpointError, match="temperature"):
        endpoint(temperature=0.5).complete(USER)


def test_an_endpoint_that_refuses_logprobs_is_asked_once_and_noted_once(
    server: Any, endpoint: Callable[..., Any], answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.will_answer(answer(400, {"error": {"message": "logprobs are not supported"}}), completion({"content": "a"}))
    model = endpoint()
    assert [model.probe(USER, [], 20).entropy for _ in range(3)] == [None] * 3
    assert len(server.requests) == 2
    assert model.probe(USER, [], 20).tokens == 0
    assert [record.message for record in caplog.records if "first-token entropy" in record.message] == [
        f"small-model at {server.address} does not tell its first-token entropy (HTTP 400: "
        '{"error": {"message": "logprobs are not supported"}}); step-routing escalates each such step'
    ]


def test_the_entropy_of_a_token_that_was_held_back_is_unknown(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "\ufffd"}))  # llama.cpp, at the first byte of a Chinese character
    assert endpoint().probe(USER, [], 20).entropy is None
    assert len(server.requests) == 1
    for byte, known in ((165, False), (142, False), (230, True), (65, True)):
        top = [{"token": "\ufffd", "bytes": [byte], "logprob": -0.2}, {"token": "\ufffd", "bytes": [142], "logprob": -2.4}]
        part = {"token": "春", "bytes": [230, 152, 165], "logprob": -0.2, "top_logprobs": top}
        server.will_answer(completion({"content": "春天"}, choice={"logprobs": {"content": [part]}}))
        assert (endpoint().probe(USER, [SEARCH], 20).entropy is not None) == known


def test_missing_logprobs_are_noted_once(server: Any, endpoint: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    server.will_answer(completion({"content": "a"}))
    model = endpoint()
    for _ in range(3):
        model.probe(USER, [SEARCH], 20)
    assert len(caplog.records) == 1
