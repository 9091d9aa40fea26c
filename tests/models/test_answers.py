"""Answers as vendors and servers really give them: usage, thoughts, calls left in the text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.models.answers import Unusable, read_answer, read_usage
from ec2_env.models.base import Reply, Usage
from ec2_env.models.window import estimated_tokens

TOOL = {"type": "function", "function": {"name": "finish", "parameters": {"type": "object"}}}


def said(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message}], **more}


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 64}}, Usage(raw=36, cached=64, output=7)),
        ({"prompt_tokens_details": None, "completion_tokens_details": None}, Usage(raw=100, output=7)),
        ({"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}, Usage(raw=40, cached=60, output=7)),
        ({"cached_tokens": 50}, Usage(raw=50, cached=50, output=7)),
        ({"cache_read_input_tokens": 1_000}, Usage(raw=0, cached=100, output=7)),
        ({"completion_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 107}, Usage(raw=100, output=7, reasoning=5)),
        ({"completion_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 112}, Usage(raw=100, output=12, reasoning=5)),
        ({"prompt_tokens_details": {"cached_tokens": "x"}, "total_tokens": True}, Usage(raw=100, output=7)),
    ],
)
def test_usage_is_read_from_every_vendors_fields(fields: dict[str, Any], usage: Usage) -> None:
    assert read_usage({"usage": {"prompt_tokens": 100, "completion_tokens": 7, **fields}}) == usage


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": None}, {"prompt_tokens": 10**30}, {"prompt_tokens": 1.5}])
def test_usage_that_cannot_be_read_is_unknown(usage: Any) -> None:
    assert read_usage({"usage": usage}) is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_a_field_of_thoughts_stays_out_of_the_text_and_is_counted(field: str) -> None:
    reply = read_answer(said({"content": "done", field: "let me see"}), (), "native")
    assert (reply.text, reply.reasoning, reply.thinking_tokens) == ("done", "let me see", estimated_tokens("let me see"))
    usage = {"prompt_tokens": 5, "completion_tokens": 9}
    assert read_answer(said({"content": "done", field: "let me see"}, usage=usage), (), "native").thinking_tokens == 0


def test_thoughts_in_the_text_stay_out_of_it_too() -> None:
    reply = read_answer(said({"content": "<think>let me see</think>\n\ndone"}), (), "native")
    assert (reply.text, reply.reasoning) == ("done", "let me see")


def test_a_call_that_the_endpoint_left_in_the_text_is_read_if_its_format_is_known() -> None:
    tagged = said({"content": '<tool_call>{"name": "finish", "arguments": {}}</tool_call>', "tool_calls": []})
    bare = said({"content": 'I would write {"name": "finish", "arguments": {}}'})
    assert read_answer(tagged, [TOOL], "native").calls == ({"name": "finish", "arguments": {}},)
    assert read_answer(tagged, [], "native").calls == ()
    assert read_answer(bare, [TOOL], "native").calls == ()
    assert read_answer(bare, [TOOL], "text").calls == ({"name": "finish", "arguments": {}},)


def test_the_protocols_first_form_of_a_call_is_read() -> None:
    message = {"content": None, "function_call": {"name": "finish", "arguments": "{}"}}
    assert read_answer(said(message), [TOOL], "native").calls == ({"name": "finish", "arguments": "{}"},)


def test_content_in_parts_is_joined_and_a_refusal_is_text() -> None:
    parts = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "do"}, {"type": "text", "text": "ne"}]
    assert read_answer(said({"content": parts}), (), "native").text == "done"
    assert read_answer(said({"content": None, "refusal": "I cannot"}), (), "native").text == "I cannot"


_FIELDS = (
    "choices message content tool_calls function name arguments usage prompt_tokens completion_tokens logprobs top_logprobs "
    "logprob reasoning type text"
).split()
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=4),
    max_leaves=20,
)


@given(_JSON, _JSON, _JSON)
def test_no_answer_makes_the_reader_fail(whole: Any, message: Any, logprobs: Any) -> None:
    choice = {"message": message, "logprobs": {"content": [{"top_logprobs": logprobs}]}}
    for answer in (whole, {"choices": [choice], "usage": whole}):
        for protocol in ("native", "text"):
            try:
                reply = read_answer(answer, [TOOL], protocol)  # type: ignore[arg-type]  # both are protocols
            except Unusable:
                continue
            assert isinstance(reply, Reply) and isinstance(reply.text, str)
