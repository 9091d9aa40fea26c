"""Tools: documented, validated, and never the reason for an exception."""

from __future__ import annotations

import pickle
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.actions import ToolCall
from ec2_env.errors import ToolError
from ec2_env.task import build_episode, task_domains, toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import (
    CLOUD_SCHEMA,
    FINISH_SCHEMA,
    MAX_RESULT_CHARS,
    Tool,
    Toolbox,
    apps,
    json_type,
    oversized,
    success,
    tidy,
    tool,
)

EVERY = toolbox(apps.names())
TOOLS = pytest.mark.parametrize("name", list(EVERY.tools))
FULL = {names[0]: build_episode(names[0], 0).workspace for names in task_domains().values()}
"""One filled workspace of each domain."""
MAILS = build_episode("forward_invoice", 0).workspace
ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "x" * 20_000,
    "中" * 300,
    "../x",
    "9999-12-31",
    "9999-12-31 23:59",
    "0001-01-01",
    "a@b.c",
    "²",
    "[PHONE_001]",
)


@TOOLS
def test_every_argument_is_described_and_every_schema_is_plain(name: str) -> None:
    found = EVERY.tools[name]
    description, arguments = found.documentation
    assert len(description.split()) >= 3
    assert set(arguments) == set(found.parameters), "the docstring and the signature name different arguments"
    assert all(len(text.split()) >= 2 for text in arguments.values()), arguments
    body = found.schema["function"]["parameters"]
    assert body["additionalProperties"] is False
    assert set(body["required"]) <= set(body["properties"]) == set(found.parameters)


@TOOLS
def test_reading_tools_read_and_what_lists_can_be_opened(name: str) -> None:
    found = EVERY.tools[name]
    if found.opens is not None:
        assert EVERY.tools[found.opens].write is False
        assert not found.write
    if found.write:
        return
    for workspace in list(FULL.values())[:3]:
        before = workspace.fork()
        for text in ("a", "mail-1000", "2026-01-01"):
            EVERY.run(before, ToolCall(name, {p: arguments_for(found, p, text) for p in found.parameters}))
        assert before.journal == workspace.journal


def arguments_for(found: Tool, name: str, text: str) -> Any:
    """Returns a value of the right type for a parameter, made of a text where it can be."""
    hint = found.hints[name]
    options = [o for o in get_args(hint) if o is not type(None)]
    if hint in (int, float):
        return 1
    if hint is bool:
        return True
    if options and isinstance(options[0], str):
        return options[0]
    return [text] if "list" in str(hint) else text


@TOOLS
@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: ascii(text)[:12])
def test_odd_but_valid_arguments_never_raise_and_failures_leave_no_trace(name: str, text: str) -> None:
    found = EVERY.tools[name]
    for origin in list(FULL.values())[:2]:
        for ids in ([], ["mail", "event", "file", "contact"]):
            workspace = origin.fork()
            arguments = {p: arguments_for(found, p, text) for p in found.parameters}
            for table in ids:
                first = next(iter(workspace.rows(table)), None)
                key = next((p for p in found.parameters if p in (f"{table}_id", "path")), None)
                if first is not None and key is not None:
                    arguments[key] = first
            result = EVERY.run(workspace, ToolCall(name, arguments))
            assert len(result.text) < MAX_RESULT_CHARS + 200
            if not result.ok:
                assert workspace.journal == ()
                assert len(result.value["error"]) > 10


@given(name=st.sampled_from(sorted(EVERY.tools)), page=st.integers(-(2**62), 2**62), text=st.text(max_size=30))
def test_drawn_arguments_get_a_result_or_an_explanation(name: str, page: int, text: str) -> None:
    found = EVERY.tools[name]
    arguments = {p: page if found.hints[p] is int else arguments_for(found, p, text) for p in found.parameters}
    result = EVERY.run(MAILS.fork(), ToolCall(name, arguments))
    assert result.ok or len(result.value["error"]) > 10


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("sendmail"), "did you mean send_mail"),
        (ToolCall("zzzz"), "the tools are"),
        (ToolCall("read_mail"), "mail_id"),
        (ToolCall("read_mail", {"mail_id": 3}), "expected read_mail(mail_id: string)"),
        (ToolCall("read_mail", {"mail_id": "x", "y": 1}), "unknown field"),
        (ToolCall("list_mail", {"folder": "spam"}), "inbox|sent|drafts|trash"),
        (ToolCall("read_mail", {"mail_id": "mail-0"}), "there is no mail"),
        (ToolCall("send_mail", {"to": ["x"] * 300, "subject": "", "body": ""}), "at most 200"),
        (ToolCall("send_mail", {"to": ["a@b.cd"], "subject": "", "body": "x" * 30_000}), "at most 20000"),
        (ToolCall("send_mail", {"to": [], "subject": "", "body": ""}), "at least one address"),
        (ToolCall("send_mail", {"to": ["nobody"], "subject": "", "body": ""}), "name@host"),
        (ToolCall("search_mail", {"query": "  "}), "at least one word"),
        (ToolCall("list_mail", {"page": 0}), "page must be 1"),
        (ToolCall("read_file", {"path": "../x"}), "leads out"),
        (ToolCall("list_events", {"start_date": "today", "end_date": "x"}), "YYYY-MM-DD"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_refusal_says_what_would_be_right(call: ToolCall, expected: str) -> None:
    result = EVERY.run(MAILS.fork(), call)
    assert not result.ok
    assert expected in result.text


def test_of_two_wrong_arguments_the_same_one_is_named_whatever_their_order() -> None:
    workspace = build_episode("forward_invoice", 0).workspace
    wrong: dict[str, Any] = {"query": 5, "folder": 7}
    first, second = (
        EVERY.run(workspace.fork(), ToolCall("search_mail", dict(items))) for items in (wrong.items(), reversed(wrong.items()))
    )
    assert not first.ok
    assert first == second


def test_long_results_are_cut_and_say_so() -> None:
    result = success(["x" * 1_000] * 20)
    assert len(result.text) < MAX_RESULT_CHARS + 200
    assert "more characters" in result.text
    assert success("short").text == '"short"'


def test_a_tool_that_fails_halfway_leaves_nothing_behind() -> None:
    @tool(write=True)
    def half(workspace: Workspace) -> None:
        """Does half of something."""
        workspace.remove("mail", next(iter(workspace.rows("mail"))))
        raise ToolError("half done")

    box = Toolbox(("mail",))
    box.tools["half"] = half
    workspace = MAILS.fork()
    assert not box.run(workspace, ToolCall("half")).ok
    assert workspace.diff() == ()


def test_a_parameter_of_an_odd_type_is_a_mistake_of_the_programmer() -> None:
    assert json_type(list[str]) == {"type": "array", "items": {"type": "string"}}
    assert json_type(Literal["a", "b"]) == {"type": "string", "enum": ["a", "b"]}
    assert json_type(int | None) == {"type": "integer"}
    with pytest.raises(TypeError, match="use str, int"):
        json_type(dict[str, int])


def test_a_toolbox_pickles_by_its_apps() -> None:
    again = pickle.loads(pickle.dumps(EVERY))
    assert again.schemas == EVERY.schemas
    assert EVERY.schema_tokens("o200k", lambda text, family: len(text)) == EVERY.schema_tokens("o200k", lambda text, family: 0)


def test_what_every_env_offers_has_a_schema() -> None:
    assert {schema["function"]["name"] for schema in (CLOUD_SCHEMA, FINISH_SCHEMA)} == {"invoke_cloud", "finish"}
    assert [s["function"]["name"] for s in EVERY.schemas] == list(EVERY.tools)


def test_tidy_and_oversized_say_what_they_mean() -> None:
    assert tidy({"a\ud800": ("x\udc00", 1)}) == {"a?": ["x?", 1]}
    assert oversized({"a": "x"}) is None
    assert oversized({"a": ["x" * 30_000]}) is not None
