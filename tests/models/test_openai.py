"""Endpoints: what is sent, and how answers are read."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from ec2_env.errors import ConfigurationError
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


def test_a_model_with_open_connections_can_be_pickled(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    model = EndpointModel("small-model", EndpointOptions(base_url=server.address))
    model.complete(USER)
    other = pickle.loads(pickle.dumps(model))
    assert other.complete(USER).text == "a"
    for one in (model, other):
        one.close()


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
    "openai:m@probe_tokens=0",
    "openai:m@tools=xml",
]


@pytest.mark.parametrize("spec", WRONG)
def test_wrong_settings_are_refused_when_the_model_is_loaded(spec: str) -> None:
    with pytest.raises(ConfigurationError):
        load_model(spec)
