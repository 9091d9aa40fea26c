"""Minimisation: what is linked to the request stays, the rest becomes a stub, and nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.actions import InvokeCloud
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.payload import Transcript, build_payload, message_text
from ec2_env.cloud.relevance import MAX_CHARS, TURNS, relevant
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import Message
from ec2_env.models.loading import load_model
from ec2_env.prompts import LEFT_OUT
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import Session
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode
from ec2_env.testing import play as solve
from ec2_env.trace import CloudCall, Decided, ToolRan, from_json, to_json

KEY = EpisodeKey(task="forward_invoice", language="en", split="train", seed=0, trial=0)


def turn(number: int, name: str, arguments: dict[str, Any], result: object) -> list[Message]:
    """Returns a call and its result."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


def transcript(instruction: str, *results: object, last: str = "list_files") -> list[Message]:
    """Returns an instruction, earlier results, and `TURNS` more that are about nothing."""
    messages: list[Message] = [{"role": "user", "content": instruction}]
    for number, result in enumerate([*results, *["[]"] * TURNS]):
        messages += turn(number, "list_mail" if number < len(results) else last, {}, result)
    return messages


ROWS = [
    {"id": "mail-1001", "subject": "Invoice of Redfern", "phone": "555-0101"},
    {"id": "mail-1002", "subject": "Canteen menu", "phone": "555-0102"},
    {"id": "mail-1003", "subject": "Parking", "phone": "555-0103"},
]


def test_rows_that_are_linked_stay_and_the_others_are_counted() -> None:
    kept = relevant(transcript("Forward the mail from Redfern.", ROWS))
    assert json.loads(kept[2]["content"]) == [ROWS[0], f"[2 of 3 rows {LEFT_OUT}"]


def test_chinese_rows_are_linked_by_neighboring_characters() -> None:
    rows = [{"id": "mail-1001", "主题": "松月科技的发票"}, {"id": "mail-1002", "主题": "食堂菜单"}]
    kept = relevant(transcript("请转发松月科技有限公司的来信。", rows))
    assert json.loads(kept[2]["content"]) == [rows[0], f"[1 of 2 rows {LEFT_OUT}"]


def test_a_result_without_a_link_becomes_a_stub_with_its_size() -> None:
    kept = relevant(transcript("Water the plants.", ROWS, {"name": "Alma Dunmore", "phone": "555-0199"}))
    assert kept[2]["content"] == f"[result of list_mail: 3 rows, {LEFT_OUT}"
    assert kept[4]["content"] == f"[result of list_mail: 43 characters, {LEFT_OUT}".replace(
        "43", str(len('{"name": "Alma Dunmore", "phone": "555-0199"}'))
    )


def test_the_words_of_the_request_link_too() -> None:
    messages = transcript("Water the plants.", ROWS)
    assert "Canteen" not in str(relevant(messages))
    assert "Canteen" in str(relevant(messages, "What does the canteen mail say?"))


def test_the_arguments_of_the_last_calls_link_and_their_results_cross_in_full() -> None:
    messages = transcript("Water the plants.", ROWS)
    messages += turn(9, "read_mail", {"mail_id": "mail-1003"}, {"id": "mail-1003", "body": "No more parking. " * 10})
    kept = relevant(messages)
    assert json.loads(kept[2]["content"])[0] == ROWS[2]
    assert kept[-1] is messages[-1]


def test_long_texts_are_kept_by_paragraphs_and_tables_with_their_heading() -> None:
    body = "\n\n".join(["Dear all, " + "greetings " * 40, "The Redfern invoice is due on Friday.", "The canteen is shut. " * 20])
    table = {"sheet_id": "sheet-1", "values": [["Firm", "Due"], ["Redfern", "17"], ["Umber", "28"], ["Kestrel", "39"]]}
    kept = relevant(transcript("Forward the mail from Redfern.", {"id": "mail-7", "body": body}, table))
    assert json.loads(kept[2]["content"])["body"].startswith("The Redfern invoice")
    assert "canteen" not in kept[2]["content"] and "2 of 3 paragraphs" in kept[2]["content"]
    assert json.loads(kept[4]["content"])["values"] == [["Firm", "Due"], ["Redfern", "17"], f"[2 of 4 rows {LEFT_OUT}"]


def test_a_word_that_stands_everywhere_links_nothing() -> None:
    rows = [{"id": f"mail-{n}", "subject": "Invoice", "from": f"{chr(97 + n) * 5}@firm.example"} for n in range(20)]
    kept = relevant(transcript("Find the invoice of ddddd@firm.example.", rows))
    assert json.loads(kept[2]["content"]) == [rows[3], f"[19 of 20 rows {LEFT_OUT}"]


def test_rows_whose_numbers_were_redacted_away_are_still_told_apart() -> None:
    text = '[{"firm":"Redfern","total":[AMOUNT_001]},{"firm":"Umber","total":[AMOUNT_002]}]'
    kept = relevant(transcript("Forward the mail from Redfern.", text))
    assert kept[2]["content"] == '[{"firm":"Redfern","total":[AMOUNT_001]},[1 of 2 paragraphs left out]'


def test_what_is_kept_of_earlier_results_has_an_upper_bound_and_the_oldest_goes_first() -> None:
    big = [{"id": f"mail-{n}", "about": f"invoice 821{n} " + chr(97 + n) * 7_000} for n in range(4)]
    kept = relevant(transcript("Pay 8210, 8211, 8212 and 8213.", *big))
    earlier = [message["content"] for message in kept if message["role"] == "tool"][:-TURNS]
    assert sum(map(len, earlier)) <= MAX_CHARS + 200
    assert LEFT_OUT in earlier[0] and LEFT_OUT not in earlier[-1]


def test_a_short_transcript_crosses_as_it_is() -> None:
    messages = transcript("Water the plants.")
    assert relevant(messages) == messages


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=700),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(JSON.map(lambda value: json.dumps(value, ensure_ascii=False)) | st.text(max_size=900), max_size=6),
    st.text(max_size=80),
)
@settings(max_examples=150, deadline=None)
def test_any_transcript_is_reduced_to_messages_of_the_same_roles_and_nothing_is_added(results: list[str], asked: str) -> None:
    messages = transcript("Forward 松月科技 invoice 8211 to Redfern.", *results)
    kept = relevant(messages, asked)
    assert kept == relevant(messages, asked)
    assert [(m["role"], m.get("tool_call_id"), m.get("tool_calls")) for m in kept] == [
        (m["role"], m.get("tool_call_id"), m.get("tool_calls")) for m in messages
    ]
    for new, old in zip(kept, messages, strict=True):
        assert (
            new["content"] == old["content"]
            or LEFT_OUT in new["content"]
            or json.loads(new["content"]) == json.loads(old["content"])
        )


# -- at the boundary


def session(task: str = "forward_invoice", language: str = "en", **conditions: Any) -> Session:
    """Returns an episode one call before its end, without an edge model."""
    episode = build_episode(task, 0, language, "train")  # type: ignore[arg-type]  # "en" or "zh"
    found = Session(episode, cloud=load_model("sim:gpt-5.4"), settings=CloudSettings(**conditions))
    for action in solve(episode).actions[:-1]:
        found.call(action, "edge")
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("redact", [False, True])
def test_what_crosses_is_part_of_the_transcript_and_texts_fit_messages(language: str, redact: bool) -> None:
    one = session(language=language)
    assert one.gateway is not None
    hide = one.gateway.redactor.redact if redact else None
    whole = Transcript(hide)
    whole.catch_up(one.messages)
    payload = build_payload(InvokeCloud(mode="advise", share="relevant", redact=redact), whole, ())
    full = build_payload(InvokeCloud(mode="advise", share="transcript", redact=redact), whole, ())
    assert payload.texts == tuple(map(message_text, payload.messages))
    assert len(payload.texts) == len(full.texts)
    assert sum(map(len, payload.texts)) < sum(map(len, full.texts))


def test_a_relevant_request_exposes_no_more_than_the_transcript() -> None:
    total = [0.0, 0.0]
    for task, language in (("forward_invoice", "en"), ("forward_invoice", "zh"), ("data_request", "en"), ("data_request", "zh")):
        levels = []
        for share in ("relevant", "transcript"):
            one = session(task, language)
            one.invoke(InvokeCloud(mode="advise", share=share))  # type: ignore[arg-type]  # one of the shares
            levels.append(one.levels)
        assert all(levels[1].get(unit, 0.0) >= level for unit, level in levels[0].items())
        total = [before + sum(found.values()) for before, found in zip(total, levels, strict=True)]
    assert 0 < total[0] < total[1]


@pytest.mark.parametrize("base", ["cloud_only", "step_routing", "adaptive_assistance"])
@pytest.mark.parametrize("options", ["relevant", "relevant,redacted"])
def test_strategies_share_what_is_relevant_on_request(base: str, options: str) -> None:
    strategy = load_strategy(f"{base}:{options}")
    assert strategy.name == f"{base}:{options}"
    done = play(DecisionEnv(), strategy, KEY)
    calls = [event for event in done.events if isinstance(event, CloudCall)]
    assert all((call.share, call.redact) == ("relevant", "redacted" in options) for call in calls)
    asked = [event.request for event in done.events if isinstance(event, Decided) and event.request]
    assert len(asked) == len(calls)
    assert from_json(to_json(done)) == done


def test_the_options_of_step_routing_go_together() -> None:
    assert load_strategy("step_routing:threshold=1.5,redacted,relevant").name == "step_routing:relevant,redacted,threshold=1.5"
    assert load_strategy("step_routing:redacted").name == "step_routing:redacted"


def test_an_env_can_share_what_is_relevant_with_every_decision() -> None:
    env = DecisionEnv(task="forward_invoice", share="relevant")
    env.reset(seed=0)
    for decision in (1, 2, 3, 4, 5):
        env.step(decision)
    assert env.session is not None
    shares = [event.share for event in env.session.events if isinstance(event, CloudCall)]
    assert shares == ["instruction", "relevant", "relevant", "relevant", "relevant"]


def test_the_simulated_cloud_utters_no_figure_that_was_left_out() -> None:
    for seed in range(6):
        env = DecisionEnv(edge=None)
        key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=seed, trial=0)
        done = play(env, load_strategy("cloud_only:relevant"), key)
        seen: set[str] = set()
        for event in done.events:
            if isinstance(event, CloudCall):
                seen |= {text for _, text in event.sent}
            elif isinstance(event, ToolRan):
                named = [str(v) for v in event.arguments.values() if isinstance(v, str) and v.startswith("mail-")]
                assert all(any(one in text for text in seen) for one in named)


def test_the_simulated_cloud_looks_again_at_what_was_left_out() -> None:
    again = 0
    for seed in range(12):
        done = play(DecisionEnv(), load_strategy("cloud_only:relevant"), EpisodeKey(**{**KEY_FIELDS, "seed": seed}))
        calls = [(event.name, json.dumps(event.arguments)) for event in done.events if isinstance(event, ToolRan)]
        again += len(calls) - len(set(calls))
    assert again > 0


KEY_FIELDS: dict[str, Any] = {"task": "data_request", "language": "en", "split": "train", "trial": 0}
