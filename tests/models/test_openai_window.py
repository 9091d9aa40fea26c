"""Chats that are longer than an endpoint's window."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ec2_env.errors import EndpointError

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


def test_long_chats_are_cut_to_the_stated_window(server: Any, endpoint: Callable[..., Any]) -> None:
    server.will_answer(completion({"content": "a"}))
    endpoint(max_context_tokens=1000).complete([*USER, {"role": "user", "content": "word " * 10_000}])
    assert len(str(server.requests[0])) < 3_500
