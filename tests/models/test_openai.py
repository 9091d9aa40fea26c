"""Endpoints: what is sent, how answers are read, and what happens when they fail."""

from __future__ import annotations

import json
import math
import pickle
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

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
        {"id": ANY, "type": "function", "function": {"name": "search_mail", "arguments": '{"query": "价"}'}}
    ]
    assert sent["messages"][2]["tool_call_id"] == sent["messages"][1]["tool_calls"][0]["id"]


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
    assert model.waits == [7.0, 1.5, pytest.approx(2.0, rel=0.25)]


def test_server_errors_end_in_an_error_that_names_address_status_and_attempts(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(500, b"<html>boom</html>"))
    model = endpoint(retries=2)
    with pytest.raises(EndpointError) as raised:
        model.complete(USER)
    for part in (server.address, "HTTP 500", "boom", "3 attempt"):
        assert part in str(raised.value)
    assert model.waits == [pytest.approx(0.5, rel=0.25), pytest.approx(1.0, rel=0.25)]


def test_a_refused_request_is_not_repeated(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(400, {"error": {"message": "context too long"}}))
    with pytest.raises(EndpointError, match=r"HTTP 400.*context too long"):
        endpoint().complete(USER)
    assert len(server.requests) == 1


def test_a_slow_answer_is_a_timeout(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(200, completion({"content": "late"}), delay_s=5.0), completion({"content": "in time"}))
    model = endpoint(timeout_s=0.2)
    assert model.complete(USER).text == "in time"
    assert model.waits == [pytest.approx(0.5, rel=0.25)]


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
    reply = endpoint(tools="text").complete(USER, [SEARCH])
    assert reply.calls == ({"name": "search_mail", "arguments": {"query": "x"}},)
    assert "tools" not in server.requests[0]
    assert "search_mail(query: string): Find mails." in server.requests[0]["messages"][0]["content"]


def test_no_body_comes_in_drops_for_ever(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    model = endpoint(retries=1)
    times = iter(range(0, 1_000, 40))
    model._clock = lambda: float(next(times))  # every look at the clock is 40 s after the last
    server.will_answer(answer(200, completion({"content": "x" * 500_000})))
    with pytest.raises(EndpointError, match="no answer within 60 s"):
        model.complete(USER)


def test_waits_are_the_same_for_the_same_request_and_differ_between_requests(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(500, b""))
    waits = []
    for content in ("a", "a", "b"):
        model = endpoint(retries=3)
        with pytest.raises(EndpointError):
            model.complete([{"role": "user", "content": content}])
        waits.append(model.waits)
    assert waits[0] == waits[1] != waits[2]


def test_no_attempt_begins_after_the_deadline(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    server.will_answer(answer(429, b"", {"retry-after": "3600"}))
    model = endpoint(deadline_s=100, retries=50)
    time_s = [0.0]
    model._clock = lambda: time_s[0]

    def sleep(wait_s: float) -> None:
        time_s[0] += wait_s

    model._sleep = sleep
    with pytest.raises(EndpointError, match=r"2 attempt\(s\) within 100 s"):
        model.complete(USER)
    assert len(server.requests) == 2 and time_s[0] == 60.0


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (401, {"error": {"message": "bad key"}}, "read from SOME_KEY, and it is not set"),
        (403, {"error": {"message": "no access"}}, "Check the key"),
        (404, {"error": {"message": "no model"}}, "usually ends in /v1"),
        (400, {"error": {"message": "This model's maximum context length is 4096 tokens"}}, "Set max_context_tokens"),
        (429, {"error": {"code": "insufficient_quota"}}, "insufficient_quota"),
        (402, {"error": {"message": "Insufficient Balance"}}, "Insufficient Balance"),
    ],
)
def test_a_refusal_is_not_repeated_and_says_what_to_change(
    server: Any, endpoint: Callable[..., Any], answer: Any, status: int, body: Any, hint: str
) -> None:
    server.will_answer(answer(status, body))
    with pytest.raises(EndpointError, match=hint):
        endpoint(key_env="SOME_KEY").complete(USER)
    assert len(server.requests) == 1


def test_a_connection_that_breaks_in_the_middle_of_an_answer_is_tried_again(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(200, b'{"choices"', {"content-length": "5000"}), completion({"content": "whole"}))
    assert endpoint(timeout_s=2).complete(USER).text == "whole"


def test_an_answer_without_end_is_cut_and_reported(
    server: Any, endpoint: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ec2_env.models.openai.MAX_BODY_BYTES", 10_000)
    server.will_answer(answer(200, completion({"content": "x" * 200_000})))
    with pytest.raises(EndpointError, match="HTTP 200, not JSON"):
        endpoint(retries=0).complete(USER)


def test_the_newer_name_of_the_token_limit_is_learned_once(server: Any, endpoint: Callable[..., Any], answer: Any) -> None:
    refusal = {"error": {"message": "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}
    server.will_answer(answer(400, refusal), completion({"content": "a"}))
    model = endpoint(max_tokens=9)
    model.complete(USER)
    model.complete(USER)
    assert [request.get("max_tokens") for request in server.requests] == [9, None, None]
    assert [request.get("max_completion_tokens") for request in server.requests] == [None, 9, 9]


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
    assert [record.message for record in caplog.records if "first-token entropy" in record.message] == [
        f"small-model at {server.address} does not tell its first-token entropy (HTTP 400: "
        '{"error": {"message": "logprobs are not supported"}}); step-routing escalates each such step'
    ]


def test_the_entropy_of_a_token_that_was_held_back_is_unknown(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "\ufffd"}))  # llama.cpp, at the first byte of a Chinese character
    assert endpoint().probe(USER, [], 20).entropy is None
    assert len(server.requests) == 1


def test_missing_logprobs_are_noted_once(server: Any, endpoint: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    server.will_answer(completion({"content": "a"}))
    model = endpoint()
    for _ in range(3):
        model.probe(USER, [SEARCH], 20)
    assert len(caplog.records) == 1


def test_made_up_names_and_long_ids_become_what_strict_endpoints_accept(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    chat = [*USER]
    for number, name in enumerate(["搜索 mail!", "x" * 100, ""]):
        chat.append({"role": "assistant", "content": "", "tool_calls": [call(name, "{}") | {"id": f"call_{number}"}]})
        chat.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "no such tool"})
    endpoint().complete(chat, [SEARCH])
    sent = server.requests[0]["messages"]
    for said, heard in zip(sent[1::2], sent[2::2], strict=True):
        made = said["tool_calls"][0]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", made["function"]["name"])
        assert re.fullmatch(r"[a-zA-Z0-9]{9}", made["id"]) and heard["tool_call_id"] == made["id"]


def test_parallel_calls_can_be_forbidden_or_left_open(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint(parallel_tool_calls=False).complete(USER, [SEARCH])
    endpoint(parallel_tool_calls=False).complete(USER)
    endpoint().complete(USER, [SEARCH])
    assert [request.get("parallel_tool_calls") for request in server.requests] == [False, None, None]


LONG = [
    {"role": "system", "content": "Work."},
    {"role": "user", "content": "把所有发票转给会计，不要漏掉任何一张。"},
    *(
        message
        for number in range(12)
        for message in (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [call("search_mail", '{"query": "发票"}') | {"id": f"call_{number}"}],
            },
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"第{number}封：" + "合同金额与付款日期，" * 60},
        )
    ),
]


@pytest.mark.parametrize("tools", ["native", "text"])
@pytest.mark.parametrize("window", [600, 1_000, 2_000, 4_000, 8_000])
def test_no_request_is_larger_than_the_window(server: Any, endpoint: Callable[..., Any], window: int, tools: str) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint(max_context_tokens=window, max_tokens=100, tools=tools).complete(LONG, [SEARCH])
    sent = server.requests[0]
    texts = json.dumps([sent["messages"], sent.get("tools")], ensure_ascii=False)
    assert len(texts.encode()) / 3 + sent["max_tokens"] <= window * 1.05  # the estimate leaves out the JSON around the texts
    asked = {made["id"] for message in sent["messages"] for made in message.get("tool_calls", ())}
    answered = [message["tool_call_id"] for message in sent["messages"] if message["role"] == "tool"]
    assert sorted(asked) == sorted(answered)
    assert "不要漏掉" in texts


def test_a_call_with_long_arguments_fits_a_small_window(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    said = call("search_mail", json.dumps({"query": "长" * 9_000}))
    chat = [
        *USER,
        {"role": "assistant", "content": "", "tool_calls": [said]},
        {"role": "tool", "tool_call_id": "c", "content": "!"},
    ]
    endpoint(max_context_tokens=800, max_tokens=100).complete(chat, [SEARCH])
    assert len(json.dumps(server.requests[0])) < 2_100
    assert json.loads(server.requests[0]["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {}


def test_a_window_smaller_than_the_tools_is_an_error_that_says_so(server: Any, endpoint: Callable[..., Any]) -> None:
    many = [{"name": f"tool_{i}", "description": "d" * 300, "parameters": {"type": "object"}} for i in range(20)]
    with pytest.raises(EndpointError, match="no room for a chat beside"):
        endpoint(max_context_tokens=2_000).complete(USER, many)
    assert server.requests == []


def test_a_chat_that_the_endpoint_counts_as_too_long_is_cut_further(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    over = {"error": {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}}
    server.will_answer(answer(400, over), answer(400, over), completion({"content": "fits"}))
    model = endpoint(max_context_tokens=3_000)
    assert model.complete(LONG, [SEARCH]).text == "fits"
    sizes = [len(json.dumps(request)) for request in server.requests]
    assert sizes[0] > sizes[1] > sizes[2]
    assert model.waits == []


def test_an_endpoint_that_finds_every_chat_too_long_ends_in_an_error(
    server: Any, endpoint: Callable[..., Any], answer: Any
) -> None:
    server.will_answer(answer(400, {"error": {"message": "prompt is too long"}}))
    with pytest.raises(EndpointError, match="prompt is too long"):
        endpoint(max_context_tokens=3_000).complete(LONG, [SEARCH])
    assert len(server.requests) < 10


def test_no_more_requests_run_at_once_than_allowed(
    server: Any, endpoint: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server.will_answer(answer(200, completion({"content": "a"}), delay_s=0.05))
    lock, running, most = threading.Lock(), [0], [0]

    def ask() -> None:
        model = endpoint(concurrency=2)
        attempt = model._attempt

        def counted(*arguments: Any) -> Any:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            try:
                return attempt(*arguments)
            finally:
                with lock:
                    running[0] -= 1

        model._attempt, model._slots._sleep = counted, lambda _: threading.Event().wait(0.01)
        model.complete(USER)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 6 and most[0] == 2


def test_a_model_with_open_connections_can_be_pickled(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    model = EndpointModel("small-model", EndpointOptions(base_url=server.address))
    model.complete(USER)
    other = pickle.loads(pickle.dumps(model))
    assert other.complete(USER).text == "a"
    for one in (model, other):
        one.close()


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


WRONG = [
    "openai:",
    "openai:m@base_url=ftp://x",
    "openai:m@timeout_s=0",
    "openai:m@retries=-1",
    "openai:m@concurrency=0",
    "openai:m@deadline_s=0",
    "openai:m@max_context_tokens=0",
    "openai:m@tools=xml",
]


@pytest.mark.parametrize("spec", WRONG)
def test_wrong_settings_are_refused_when_the_model_is_loaded(spec: str) -> None:
    with pytest.raises(ConfigurationError):
        load_model(spec)
