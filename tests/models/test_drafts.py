"""The tool of a call is known as soon as its name is there, in every format that replies are read in, and never before."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.cloud.tokens import count
from ec2_env.models.calltext import read_call
from ec2_env.models.drafts import PROBE_TOKENS, called, drafted_tool
from ec2_env.models.jsoncalls import completed, parse
from ec2_env.task import tasks, toolbox

TOOLS = [{"type": "function", "function": {"name": "send_mail"}}]

KNOWN = [
    '{"name": "send_mail"',
    '{"name": "send_mail", "argu',
    'Sure:\n```json\n{\n  "name": "send_mail",',
    '<tool_call>\n{"name": "send_mail", "arguments": {"to": "it\'s {\\"',
    "{'name': 'send_mail', 'args': {'n': 1",
    "{name: send_mail, ",
    '{"type": "function", "function": {"name": "send_mail", "arguments"',
    '{"tool_calls": [{"name": "send_mail", ',
    '{"arguments": {"name": "Bob"}, "name": "send_mail"',
    "<function=send_mail>\n<parameter=to>",
    '<invoke name="send_mail">',
    "<tool_call>send_mail\n<arg_key>to",
    "[TOOL_CALLS]send_mail[ARGS]{",
    "<|channel|>commentary to=functions.send_mail <|constrain|>json<|message|>{",
    "[send_mail(to='a",
    '<think>\n{"name": "other"}\n</think>\n\n{"name": "send_mail"',
    'First {"a": 1}, don\'t. {"name": "send_mail", ',
]


@pytest.mark.parametrize("text", KNOWN)
def test_the_tool_of_an_unfinished_call_is_read(text: str) -> None:
    assert drafted_tool(text, TOOLS) == "send_mail"


UNKNOWN = [
    "",
    "I will send a mail to",
    '{"name": "send_ma',
    "{name: send_ma",
    '{"arguments": {"name": "Bob"}, ',
    "<function=send_ma",
    '<think>{"name": "send_mail", ',
    "print(to='a",
    '{"na',
    "}{",
    "{]",
    '"{',
    "\\",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_no_tool_is_named_before_its_name_is_whole(text: str) -> None:
    assert drafted_tool(text, TOOLS) is None


@pytest.mark.parametrize("family", ["o200k", "qwen3.5"])
@pytest.mark.parametrize(
    "begun", ['{"name": "%s"', '<tool_call>\n{"name": "%s"', "<tool_call>\n<function=%s>", '```json\n{\n  "name": "%s"']
)
def test_a_probe_is_long_enough_to_name_every_tool(begun: str, family: str) -> None:
    apps = {app for name in tasks.names() for app in tasks.get(name).apps}
    for name in ("finish", *(tool for app in sorted(apps) for tool in toolbox((app,)).tools)):
        assert drafted_tool(begun % name, TOOLS) == name
        assert count(begun % name, family) <= PROBE_TOKENS


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(
    arguments=st.dictionaries(st.text(), _VALUES, max_size=3),
    ascii_only=st.booleans(),
    before=st.sampled_from(["", "Ok: ", "[", "```\n"]),
)
def test_once_known_a_tool_stays_known_to_the_end_of_the_call(
    arguments: dict[str, object], ascii_only: bool, before: str
) -> None:
    text = before + json.dumps({"name": "no_such", "arguments": arguments}, ensure_ascii=ascii_only)
    name_ends = text.index("no_such") + len('no_such"')
    seen = [drafted_tool(text[:end], TOOLS) for end in range(len(text) + 1)]
    assert seen == [None] * name_ends + ["no_such"] * (len(text) + 1 - name_ends)


@given(st.text(alphabet="{}[]\",:'\\na me\n") | st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    tool = drafted_tool(text, TOOLS)
    assert tool is None or 0 < len(tool) <= 120
    assert (called(read_call(text, TOOLS) or {}) is None) or completed(text).startswith(text[:1])


def test_deep_and_long_texts_are_read_in_bounded_work() -> None:
    for text in ("{" * 100_000, '{"a":' * 50_000, '{"name": "' + "x" * 1_000_000, "[" * 100_000, '{"a": "' * 100_000):
        assert drafted_tool(text, TOOLS) is None


@pytest.mark.parametrize(
    "text", ['{"a": 1', '{"a": ', '{"a"', '{"a": [1, {"b": "c', '{"a": tr', '{"a": {"b": 1}, "c', '{"a": 1}', "{"]
)
def test_a_completed_object_can_be_parsed(text: str) -> None:
    assert isinstance(parse(completed(text)), dict)
