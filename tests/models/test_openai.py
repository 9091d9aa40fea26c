"""Endpoints: what is sent, how answers are read, and what happens when they fail."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import Usage
from ec2_env.models.loading import load_model
from ec2_env.models.openai import EndpointModel, EndpointOptions

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


def test_parallel_tool_calls_are_all_kept(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": None, "tool_calls": [call("search_mail", '{"query": "a"}'), call("finish", "{}")]}))
    reply = endpoint().complete(USER, [SEARCH])
    assert [one["name"] for one in reply.calls] == ["search_mail", "finish"]
    assert reply.calls[0]["arguments"] == '{"query": "a"}'
    assert reply.text == ""
    assert server.requests[0]["tools"] == [SEARCH]


def test_bare_schemas_and_object_arguments_are_sent_in_the_form_endpoints_accept(
    server: Any, endpoint: Callable[..., Any]
) -> None:
    server.will_answer(completion({"content": "ok"}))
    said = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "search_mail", "arguments": {"query": "价"}}}],
    }
    endpoint().complete([*USER, said, {"role": "tool", "tool_call_id": "call_0", "content": "none"}], [SEARCH["function"]])
    sent = server.requests[0]
    assert sent["tools"] == [SEARCH]
    assert sent["messages"][1]["tool_calls"] == [
        {"id": "call_0", "type": "function", "function": {"name": "search_mail", "arguments": '{"query": "价"}'}}
    ]


def test_entropy_is_that_of_the_renormalized_first_token(server: Any, endpoint: Callable[..., Any]) -> None:
    top = [{"token": "a", "logprob": math.log(0.3)}, {"token": "b", "logprob": math.log(0.1)}]
    content = [
        {"token": "a", "logprob": top[0]["logprob"], "top_logprobs": top},
        {"token": "z", "logprob": 0.0, "top_logprobs": []},
    ]
    server.will_answer(completion({"content": "a"}, choice={"logprobs": {"content": content}}))
    reply = endpoint().complete(USER, logprobs=2)
    assert reply.entropy == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert (server.requests[0]["logprobs"], server.requests[0]["top_logprobs"]) == (True, 2)


def test_a_probe_asks_for_one_token(server: Any, endpoint: Callable[..., Any]) -> None:
    top = [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -1.0}]
    server.will_answer(completion({"content": "a"}, choice={"logprobs": {"content": [{"token": "a", "top_logprobs": top}]}}))
    assert endpoint(max_tokens=50).probe(USER, [SEARCH], 2).entropy == pytest.approx(math.log(2))
    assert server.requests[0]["max_tokens"] == 1


def test_entropy_is_unknown_without_logprobs(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}, choice={"logprobs": None}))
    assert endpoint().complete(USER, logprobs=5).entropy is None


def test_cached_and_raw_tokens_are_disjoint(server: Any, endpoint: Callable[..., Any]) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, "prompt_tokens_details": {"cached_tokens": 64}}
    server.will_answer(completion({"content": "a"}, usage=usage))
    assert endpoint().complete(USER).usage == Usage(raw=36, cached=64, output=7)


def test_missing_usage_is_reported_as_unknown_and_not_as_zero(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    assert endpoint().complete(USER).usage is None


def test_overload_is_waited_out_as_long_as_the_endpoint_asks(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(
        answer(429, {"error": "slow down"}, {"retry-after": "7"}),
        answer(429, {"error": "slow down"}, {"retry-after-ms": "1500"}),
        answer(503, b"", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        completion({"content": "done"}),
    )
    model = endpoint()
    assert model.complete(USER).text == "done"
    assert model.waits == [7.0, 1.5, 2.0]


def test_server_errors_end_in_an_error_that_names_address_status_and_attempts(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(500, b"<html>boom</html>"))
    model = endpoint(retries=2)
    with pytest.raises(EndpointError) as raised:
        model.complete(USER)
    for part in (server.address, "HTTP 500", "boom", "3 attempt"):
        assert part in str(raised.value)
    assert model.waits == [0.5, 1.0]


def test_a_refused_request_is_not_repeated(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(400, {"error": {"message": "context too long"}}))
    with pytest.raises(EndpointError, match=r"HTTP 400.*context too long"):
        endpoint().complete(USER)
    assert len(server.requests) == 1


def test_a_slow_answer_is_a_timeout(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(200, completion({"content": "late"}), delay_s=5.0), completion({"content": "in time"}))
    model = endpoint(timeout_s=0.2)
    assert model.complete(USER).text == "in time"
    assert model.waits == [0.5]


BROKEN = [
    b"",
    b"not json",
    b'{"choices": [',
    b"[]",
    b"null",
    b'{"choices": []}',
    b'{"choices": null}',
    b'{"choices": [{}]}',
    b'{"choices": [{"message": null}]}',
    b"[" * 100_000,
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_body_is_tried_again(body: bytes, server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(200, body), completion({"content": "fine"}))
    assert endpoint().complete(USER).text == "fine"
    assert len(server.requests) == 2


ODD = [
    {"content": ["not", "text"]},
    {"content": None, "tool_calls": "none"},
    {"content": "", "tool_calls": [None, 3, {}, {"function": None}, {"function": {"name": 5}}]},
    {"content": "", "tool_calls": [{"function": {"name": "finish", "arguments": 7}}]},
]


@pytest.mark.parametrize("message", ODD)
def test_odd_messages_are_read_without_an_error(message: dict[str, Any], server: Any, endpoint: Callable[..., Any]) -> None:
    choice = {"logprobs": {"content": [{"top_logprobs": [None, {"logprob": "x"}]}]}}
    server.will_answer(completion(message, choice=choice, usage={"prompt_tokens": "many"}))
    reply = endpoint().complete(USER, [SEARCH], logprobs=3)
    assert (reply.text, reply.usage, reply.entropy) == ("", None, None)


def test_no_server_is_an_endpoint_error() -> None:
    pytest.importorskip("openai", reason="the extra 'llm' is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://name:secret@127.0.0.1:{free.getsockname()[1]}/v1"
    model = EndpointModel("m", EndpointOptions(base_url=address, retries=1), sleep=lambda _: None)
    with pytest.raises(EndpointError, match=r"no connection.*") as raised:
        model.complete(USER)
    assert "secret" not in str(raised.value)
    model.close()


def test_lone_surrogates_are_replaced_before_sending(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint().complete([{"role": "user", "content": "broken \ud800 text"}])
    assert server.requests[0]["messages"][0]["content"] == "broken ? text"


def test_the_key_comes_from_the_named_variable(
    server: Any, endpoint: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.will_answer(completion({"content": "a"}))
    monkeypatch.setenv("SOME_KEY", "s3cret")
    endpoint(key_env="SOME_KEY").complete(USER)
    monkeypatch.delenv("SOME_KEY")
    endpoint(key_env="SOME_KEY").complete(USER)
    assert server.keys == ["Bearer s3cret", "Bearer none"]


def test_the_json_protocol_needs_no_tool_support_of_the_endpoint(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": 'Sure:\n```json\n{"name": "search_mail", "arguments": {"query": "x"}}\n```'}))
    reply = endpoint(protocol="json").complete(USER, [SEARCH])
    assert reply.calls == ({"name": "search_mail", "arguments": {"query": "x"}},)
    assert "tools" not in server.requests[0]
    assert "search_mail(query: string): Find mails." in server.requests[0]["messages"][0]["content"]


def test_long_chats_are_cut_to_the_stated_window(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint(max_context_tokens=1000).complete([*USER, {"role": "user", "content": "word " * 10_000}])
    assert len(str(server.requests[0])) < 3_500


def test_a_run_can_be_recorded_and_replayed(server: Any, tmp_path: Path) -> None:
    server.will_answer(completion({"content": "first"}), completion({"content": "second"}))
    recording = load_model(f"openai:small-model@base_url={server.address},record={tmp_path / 'run.jsonl'},price=gpt-5.4")
    said = [recording.complete(USER, [SEARCH]).text, recording.complete(USER).text]
    replay = load_model(f"replay:{tmp_path / 'run.jsonl'}")
    assert [replay.complete(USER, [SEARCH]).text, replay.complete(USER).text] == said == ["first", "second"]
    assert replay.card.price == "gpt-5.4"
    recording.inner.close()  # type: ignore[attr-defined]  # a RecordingModel


def test_fields_that_endpoints_do_not_know_stay_here(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint().complete([{"role": "user", "content": "x", "step": 3, "tool_calls": []}, {"role": "assistant", "content": None}])
    assert server.requests[0]["messages"] == [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]


def test_options_are_sent_only_when_set(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint().complete(USER)
    endpoint(temperature=0.0, seed=3, max_tokens=9).complete(USER)
    assert set(server.requests[0]) == {"model", "messages"}
    assert {"temperature": 0.0, "seed": 3, "max_tokens": 9}.items() <= server.requests[1].items()


def test_a_specification_sets_address_and_card() -> None:
    model = load_model("openai:qwen3:8b@base_url=http://127.0.0.1:1/v1,price=gpt-5.4,family=o200k,parameters=8e9,timeout_s=5")
    assert isinstance(model, EndpointModel)
    assert (model.card.name, model.card.price, model.card.parameters) == ("qwen3:8b", "gpt-5.4", 8e9)
    assert (model.options.base_url, model.options.timeout_s) == ("http://127.0.0.1:1/v1", 5.0)


WRONG = ["openai:", "openai:m@base_url=ftp://x", "openai:m@timeout_s=0", "openai:m@retries=-1", "openai:m@protocol=xml"]


@pytest.mark.parametrize("spec", WRONG)
def test_wrong_settings_are_refused_when_the_model_is_loaded(spec: str) -> None:
    with pytest.raises(ConfigurationError):
        load_model(spec)
