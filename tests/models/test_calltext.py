"""The formats in which models write tool calls into their text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.models.calltext import MAX_CALLS, read_call, read_calls, split_thoughts

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"anyOf": [{"type": "array"}]}},
            },
        },
    },
    {"name": "g", "parameters": {"type": "object", "properties": {}}},
]
CALL = {"name": "f", "arguments": {"a": 1, "b": "2"}}
FORMATS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"a": 1, "b": "2"}}\n</tool_call>',
    "hermes cut": '<tool_call>\n{"name": "f", "arguments": {"a": 1, "b": "2"}}',
    "llama 3.1 json": '<|python_tag|>{"name": "f", "parameters": {"a": 1, "b": "2"}}<|eom_id|>',
    "llama 3.1 function": '<function=f>{"a": 1, "b": "2"}</function>',
    "llama 4": '[f(a=1, b="2")]',
    "llama 4 marks": '<|python_start|>[f(a=1, b="2")]<|python_end|>',
    "qwen 3.5": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n"
    "<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n"
    "<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
    "deepseek v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
    '{"a": 1, "b": "2"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek v3.1": '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1, "b": "2"}<｜tool▁call▁end｜>',
    "deepseek v3.2": '<｜DSML｜function_calls><｜DSML｜invoke name="f">'
    '<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>'
    '<｜DSML｜parameter name="b" string="true">2</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>',
    "minimax": '<invoke name="f">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>\n</invoke>',
    "mistral": '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1, "b": "2"}}]',
    "mistral args": '[TOOL_CALLS]f[ARGS]{"a": 1, "b": "2"}',
    "kimi": '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1, "b": "2"}<|tool_call_end|>',
    "gpt-oss": '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1, "b": "2"}<|call|>',
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "before", ["", "I will look.\n", "<think>maybe <function=g></function>?</think>\n", "a thought\n</think>"]
)
def test_every_known_format_is_read(name: str, before: str) -> None:
    if before.startswith("I will") and name.startswith("llama 4"):
        before = ""  # Python-like calls are only read where nothing stands before them
    assert read_calls(before + FORMATS[name], TOOLS) == (CALL,)


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.startswith("llama 4")])
def test_known_formats_count_as_tagged_and_bare_json_does_not(name: str) -> None:
    assert read_calls(FORMATS[name], TOOLS, tagged=True) == (CALL,)
    assert read_calls('Like {"name": "f", "arguments": {}}?', TOOLS, tagged=True) == ()


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "f"}, {"name": "g"}]',
        '{"name": "f"}\n{"name": "g"}',
        '{"name": "f"}; {"name": "g"}',
        '<tool_call>{"name": "f"}</tool_call>\n<tool_call>{"name": "g"}</tool_call>',
        "<function=f></function><function=g></function>",
        "[f(), g()]",
    ],
)
def test_calls_beside_each_other_are_all_read(text: str) -> None:
    assert [call["name"] for call in read_calls(text, TOOLS)] == ["f", "g"]
    assert read_call(text, TOOLS) == {"name": "f", "arguments": {}}


def test_calls_after_an_imagined_result_are_not_believed() -> None:
    text = '{"name": "f", "arguments": {}}\nResult of f:\n{"ok": true}\n{"name": "g", "arguments": {}}'
    assert [call["name"] for call in read_calls(text, TOOLS)] == ["f"]
    assert [call["name"] for call in read_calls('{"name": "f"} {"ok": 1} {"name": "g"}', TOOLS)] == ["f"]


def test_a_quoted_format_inside_an_argument_makes_no_call() -> None:
    quoted = "<function=g></function> <think> </think>"
    assert read_calls('{"name": "f", "arguments": {"b": "' + quoted + '"}}', TOOLS) == (
        {"name": "f", "arguments": {"b": quoted}},
    )
    written = f"<function=f>\n<parameter=b>\n{quoted}\n</parameter>\n</function>"
    assert read_calls(written, TOOLS) == ({"name": "f", "arguments": {"b": quoted}},)


def test_values_without_types_are_read_by_the_schema() -> None:
    text = "<function=f><parameter=a>07x</parameter><parameter=b>12</parameter><parameter=c>[1, 2]</parameter></function>"
    assert read_calls(text, TOOLS) == ({"name": "f", "arguments": {"a": "07x", "b": "12", "c": [1, 2]}},)
    assert read_calls("<function=other><parameter=a>1</parameter></function>", TOOLS)[0]["arguments"] == {"a": "1"}


def test_broken_arguments_stay_visible_as_text() -> None:
    assert read_calls('[TOOL_CALLS]f[ARGS]{"a": [1', TOOLS) == ({"name": "f", "arguments": '{"a": [1'},)


def test_no_reply_has_more_calls_than_are_read() -> None:
    assert len(read_calls('{"name": "f"}' * 100, TOOLS)) == MAX_CALLS
    assert len(read_calls("<function=f></function>" * 100, TOOLS)) == MAX_CALLS


@pytest.mark.parametrize(
    ("text", "thoughts", "said"),
    [
        ("<think>a</think>b", "a", "b"),
        ("a</think>b", "a", "b"),
        ("<think>a", "a", ""),
        ("b<think>a", "a", "b"),
        ("<think>a</think>b<think>c</think>d", "a\nc", "bd"),
        ("[THINK]a[/THINK]b", "a", "b"),
        ("b", "", "b"),
    ],
)
def test_thoughts_are_kept_apart(text: str, thoughts: str, said: str) -> None:
    assert split_thoughts(text) == (thoughts, said)


def test_a_call_in_an_unfinished_thought_is_none() -> None:
    assert read_calls('<think>{"name": "f", "arguments": {}}', TOOLS) == ()


MARKS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "<function=f>",
    "<function=f><parameter=a>",
    "<arg_key>a</arg_key><arg_value>",
    '<invoke name="f">',
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{",
    "[TOOL_CALLS]f[ARGS]{",
    "to=functions.f <|message|>{",
    "[f(",
    "f(a=-",
    "```json",
    '{"name": "f"},',
]


@pytest.mark.parametrize("mark", MARKS)
def test_long_hostile_marks_are_read_in_linear_time(mark: str) -> None:
    text = mark * (150_000 // len(mark))  # quadratic work on these would take minutes
    assert len(read_calls(text, TOOLS)) <= MAX_CALLS


@given(st.lists(st.sampled_from([*MARKS, *FORMATS.values(), " ", '"', "}", "x"]) | st.text(max_size=5), max_size=12))
def test_no_mixture_of_marks_makes_the_reader_fail(parts: list[str]) -> None:
    for tagged in (False, True):
        for call in read_calls("".join(parts), TOOLS, tagged=tagged):
            assert isinstance(call["name"], str) and isinstance(call["arguments"], dict | str)


def test_prose_with_brackets_is_no_python_like_call() -> None:
    unknown: Any = ["find(it)", "f(1)", "f(a=open('x'))", "g(" + "(" * 300]
    assert [read_calls(text, TOOLS) for text in unknown] == [()] * 4
