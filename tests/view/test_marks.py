"""What is marked in a text, and that the text stays what it was."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.cloud.matching import matcher_for
from ec2_env.sensitive import SensitiveUnit
from ec2_env.trace import CloudCall, Exposed, ToolRan, Trajectory
from ec2_env.view.marks import Mark, hidden_values, pieces, placeholder_marks, value_marks

PHONE = SensitiveUnit(
    id="phone-1", kind="phone", value="+1 555-0100", owner="Ann", weight=1, necessity="none", dimension="personal"
)
RANGES = st.lists(st.tuples(st.integers(-3, 40), st.integers(-3, 40)), max_size=6)


def whole(found: list[object]) -> str:
    return "".join(piece["t"] if isinstance(piece, dict) else str(piece) for piece in found)


def call(text: str, *, redact: bool = True, exposures: tuple[Exposed, ...] = ()) -> CloudCall:
    plain = {"step": 0, "mode": "act", "share": "transcript", "status": "ok", "texts": 1, "reply": "", "usd": "0"}
    counts = {"tokens_raw": 0, "tokens_cached": 0, "tokens_out": 0, "latency_s": 0.0}
    return CloudCall(**plain, **counts, redact=redact, sent=((0, text),), exposures=exposures)  # type: ignore[arg-type]


def trajectory(instruction: str, *events: ToolRan | CloudCall) -> Trajectory:
    names = dict.fromkeys(("task", "language", "split", "strategy", "version"), "")
    return Trajectory(**names, seed=0, trial=0, edge=None, cloud=None, instruction=instruction, events=events, result={})


@given(st.text(max_size=30), RANGES)
def test_pieces_are_the_text_whatever_is_marked(text: str, ranges: list[tuple[int, int]]) -> None:
    assert whole(pieces(text, [Mark(start, end, {}) for start, end in ranges])) == text


def test_piece_bears_every_mark_that_holds_it() -> None:
    found = pieces("abcdef", [Mark(1, 5, {"unit": "x"}), Mark(3, 6, {"unit": "y"})])
    assert found == [
        "a",
        {"t": "bc", "m": [{"unit": "x"}]},
        {"t": "de", "m": [{"unit": "x"}, {"unit": "y"}]},
        {"t": "f", "m": [{"unit": "y"}]},
    ]


def test_value_is_new_in_the_call_that_exposes_it_and_known_in_later_ones() -> None:
    text, matcher = "😀 call +1 555-0100 or +1 555-0100", matcher_for((PHONE,))
    line = Exposed("phone-1", 1.0, "verbatim", 0, 7, 18)
    first = list(value_marks(text, 0, (line,), matcher))
    assert [text[mark.start : mark.end] for mark in first] == ["+1 555-0100", "1 555-0100"]
    assert all(mark.about["new"] and mark.about["level"] == 1.0 for mark in first)
    assert [mark.about["new"] for mark in value_marks(text, 0, (), matcher)] == [False, False]


def test_placeholder_is_shown_with_what_it_hid() -> None:
    result = '{"to":"ann@firm.example","total":1250.5}'
    redacted = '{"to":"[EMAIL_001]","total":"[AMOUNT_001]"}'
    ran = ToolRan(0, "edge", "read", {"id": "7"}, True, result)
    hidden = hidden_values(trajectory("Write to Ann.", ran, call("Write to [NAME_001]."), call(redacted)))
    assert hidden == {"[NAME_001]": "Ann", "[EMAIL_001]": "ann@firm.example", "[AMOUNT_001]": "1250.5"}
    (mark,) = placeholder_marks("[NAME_001] and [NAME_2]", hidden)
    assert mark == Mark(0, 10, {"placeholder": "[NAME_001]", "hid": "Ann"})


def test_nothing_is_said_of_a_placeholder_that_may_have_hidden_two_values() -> None:
    results = [ToolRan(0, "edge", "read", {}, True, f"name: {name}") for name in ("Ann", "Bob")]
    assert hidden_values(trajectory("", *results, call("name: [NAME_001]"))) == {}
    assert hidden_values(trajectory("Ask Ann Bo.", call("Ask [NAME_001][NAME_002]."))) == {}
    assert hidden_values(trajectory("Ask Ann.", call("Ask [NAME_001].", redact=False))) == {}


@given(st.text('[]NAME_01"a ', max_size=40), st.text('[]NAME_01"a ', max_size=40))
def test_no_text_breaks_the_search_for_hidden_values(instruction: str, sent: str) -> None:
    found = hidden_values(trajectory(instruction, call(sent)))
    assert all(value in instruction for value in found.values())
    assert msgspec.json.encode(found)
