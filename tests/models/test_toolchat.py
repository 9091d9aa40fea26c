"""Tool calls as text: what is rendered, and what is read out of anything a model may write."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.actions import MAX_DEPTH, Malformed, parse_action
from ec2_env.models.calltext import read_call
from ec2_env.models.entropy import top_entropy
from ec2_env.models.toolchat import chat_turns, render_tools, without_no_calls
from ec2_env.models.window import CUT, estimated_tokens, fit

SEARCH = {
    "name": "search_mail",
    "description": "Find mails.\n\nDetails that stay out.",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "folder": {"enum": ["inbox", "sent"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["query"],
    },
}
CALL = {"name": "f", "arguments": {"a": 1}}


def test_a_tool_is_one_line() -> None:
    line = '- search_mail(query: string, limit?: integer|null, folder?: "inbox"|"sent", tags?: list of string): Find mails.'
    assert render_tools([SEARCH]) == line
    assert render_tools([{"type": "function", "function": {"name": "finish"}}]) == "- finish()"


def test_calls_and_results_become_alternating_turns() -> None:
    said = {"id": "7", "function": {"name": "search_mail", "arguments": '{"query": "x"}'}}
    messages = [
        {"role": "system", "content": "Work."},
        {"role": "user", "content": "Find x."},
        {"role": "assistant", "content": "I look.", "tool_calls": [said]},
        {"role": "tool", "tool_call_id": "7", "content": "nothing"},
        {"role": "user", "content": "Go on."},
    ]
    turns = chat_turns(messages, [SEARCH])
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert turns[0]["content"].startswith("Work.\n\nYou work by calling tools.")
    assert read_call(turns[2]["content"]) == {"name": "search_mail", "arguments": {"query": "x"}}
    assert turns[3]["content"] == "Result of search_mail:\nnothing\n\nGo on."


def test_a_reply_without_a_call_is_not_shown_as_a_call_of_a_tool_that_does_not_exist() -> None:
    noted = {"id": "7", "function": {"name": "invalid", "arguments": '{"text": "no tool call"}'}}
    messages = [
        {"role": "user", "content": "Find x."},
        {"role": "assistant", "content": "", "tool_calls": [noted]},
        {"role": "tool", "tool_call_id": "7", "content": '{"error": "no tool call"}'},
    ]
    shown = without_no_calls(messages, [SEARCH])
    assert shown == [messages[0], {"role": "user", "content": '{"error": "no tool call"}'}]
    assert without_no_calls(messages, [{"name": "invalid"}]) == messages


def test_a_chat_without_tools_stays_a_chat() -> None:
    assert chat_turns([{"role": "user", "content": "hi"}]) == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "f", "arguments": {"a": 1}}',
        'Sure! ```json\n{"name": "f", "arguments": {"a": 1}}\n``` and {"name": "g"}',
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        "{'name': 'f', 'arguments': {'a': 1,},}",
        "{name: f, arguments: {a: 1}}",
        '{"function": {"name": "f", "arguments": {"a": 1}}}',
        '{"tool": "f", "parameters": {"a": 1}}',
        '{{ { {"name": "f", "arguments": {"a": 1}}',
        '{"thought": "use } here"} then {"name": "f", "arguments": {"a": 1}}',
        '{I would call {"name": "f", "arguments": {"a": 1}} now}',
        '<think>{"name": "g", "arguments": {}}</think>{"name": "f", "arguments": {"a": 1}}',
        'an " open quote {"name": "f", "arguments": {"a": 1}}',
    ],
)
def test_a_call_is_found_however_it_is_wrapped(text: str) -> None:
    assert read_call(text) == CALL


def test_values_keep_their_meaning() -> None:
    inner = "'a': True, 'b': None, 'c': -1.5, 'd': 'it\\'s \"so\"', 'e': [1, 'x',], 'f': NaN, 'g': 1e999"
    text = "{'name': 'f', 'arguments': {" + inner + "}}"
    call = read_call(text)
    assert call is not None
    assert call["arguments"] == {"a": True, "b": None, "c": -1.5, "d": 'it\'s "so"', "e": [1, "x"], "f": "NaN", "g": None}


def test_line_breaks_inside_texts_are_accepted() -> None:
    assert read_call('{"name": "f", "arguments": {"body": "one\ntwo"}}') == {"name": "f", "arguments": {"body": "one\ntwo"}}


@pytest.mark.parametrize("text", ["", "no call", "{}", "{", '{"a": 1}', '{"name": 3}', '{"name": ""}', "[1]", "{'name'}", "{,}"])
def test_what_is_no_call_is_none(text: str) -> None:
    assert read_call(text) is None


HOSTILE = [
    '{"',
    '{"\\"',
    "{'",
    "{'\\'",
    "{",
    "}",
    "{}",
    '{"a":',
    '{"name":[',
    "{[",
    '"',
    "{\\",
    '{"a":{}',
    "{a,",
    "'}{'",
    '{"x":1e',
    "{9",
]


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("closing", ["", "}", "{'}"])
def test_long_hostile_texts_are_read_in_linear_time(unit: str, closing: str) -> None:
    text = unit * (100_000 // len(unit)) + closing * 50_000  # quadratic work on these would take minutes
    assert read_call(text) is None


def test_deep_nesting_is_no_call_and_no_error() -> None:
    for opened, closed in (('{"a":', "}"), ("[", "]")):
        for depth in (MAX_DEPTH + 2, 5_000):
            text = '{"name": "f", "arguments": {"x": ' + opened * depth + "1" + closed * depth + "}}"
            assert read_call(text) is None


@given(st.text() | st.text(alphabet="{}[]\"':,\\ na1.e-", max_size=200))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    call = read_call(text)
    assert call is None or (isinstance(call["name"], str) and isinstance(call["arguments"], dict | str))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_PROSE = st.text(alphabet=st.characters(exclude_characters='{}"'), max_size=40)


@given(_PROSE, st.text(min_size=1), st.dictionaries(st.text(), _JSON, max_size=4), _PROSE, st.booleans())
def test_any_call_is_read_out_of_any_prose(
    before: str, name: str, arguments: dict[str, Any], after: str, ascii_only: bool
) -> None:
    call = {"name": name, "arguments": arguments}
    assert read_call(before + json.dumps(call, ensure_ascii=ascii_only) + after) == call


@given(st.text(alphabet="{}[]\"':,\\ namefargumts1", max_size=120))
def test_what_is_read_is_an_action_or_a_described_mistake(text: str) -> None:
    call = read_call('{"name": "f", "arguments": ' + text + "}")
    assert call is None or isinstance(parse_action(call), Malformed) or call["name"]


def chat(*results: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s" * 30}, {"role": "user", "content": "u" * 30}]
    for position, result in enumerate(results):
        call = {"id": str(position), "function": {"name": "f", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(position), "content": result})
    return messages


def test_a_chat_that_fits_is_left_alone() -> None:
    messages = chat("a", "b")
    assert fit(messages, 10_000) == messages


def test_the_oldest_results_are_cut_first_and_only_as_many_as_needed() -> None:
    messages = chat("a" * 3_000, "b" * 3_000, "c" * 3_000)
    kept = fit(messages, 2_500)
    assert [message["content"][:1] for message in kept if message["role"] == "tool"] == ["[", "b", "c"]
    assert messages[3]["content"] == "a" * 3_000


def test_then_old_exchanges_go_and_the_instruction_and_the_newest_stay() -> None:
    kept = fit(chat(*["r" * 300] * 40), 250)
    assert [message["content"][:1] for message in kept] == ["s", "u", "", "r"]
    assert kept[-1]["tool_call_id"] == "39"


def test_at_last_the_longest_text_loses_its_middle() -> None:
    kept = fit([{"role": "user", "content": "begin " + "x" * 90_000 + " end"}], 500)
    content = kept[0]["content"]
    assert content.startswith("begin") and content.endswith("end") and CUT in content


@given(st.lists(st.text(max_size=600), max_size=8), st.integers(200, 2_000))
def test_every_chat_of_few_turns_is_made_to_fit(results: list[str], limit: int) -> None:
    kept = fit(chat(*results), limit)
    assert sum(estimated_tokens(message["content"]) + 16 for message in kept) <= limit


@pytest.mark.parametrize("limit", [-5, 0, 1])
def test_an_impossible_window_ends_too(limit: int) -> None:
    assert len(fit(chat("a" * 500, "b" * 500), limit)) == 4


@given(st.lists(st.floats(-1e3, 0) | st.just(-math.inf) | st.just(math.nan), max_size=20))
def test_entropy_lies_between_zero_and_the_logarithm_of_k(logprobs: list[float]) -> None:
    entropy = top_entropy(logprobs)
    finite = [value for value in logprobs if math.isfinite(value)]
    assert entropy is None if not finite else entropy is not None and 0 <= entropy <= math.log(len(finite)) + 1e-9


def test_a_probability_at_the_edge_of_what_numbers_can_hold_counts_as_none() -> None:
    assert top_entropy([0.0, 0.0, 0.0, -744.8]) == pytest.approx(math.log(3))


def test_entropy_of_equals_is_the_logarithm_of_their_number() -> None:
    assert top_entropy([-3.0] * 5) == pytest.approx(math.log(5))
