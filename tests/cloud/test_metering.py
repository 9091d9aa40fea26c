from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.cloud.metering import CachePolicy, LatencyProfile, Meter, PromptCache, edge_flops, latency_s
from ec2_env.cloud.tokens import count
from ec2_env.models.base import Usage

WORD = "invoice "
TINY = CachePolicy(block=4, minimum=8)

texts = st.lists(st.text("ab \n的", max_size=30), max_size=5)
sessions = st.lists(texts, min_size=1, max_size=6)


def _tokens(prompt: list[str]) -> int:
    return sum(count(text, "o200k") for text in prompt)


@settings(max_examples=150)
@given(requests=sessions)
def test_raw_and_cached_tokens_add_up_to_the_prompt(requests: list[list[str]]) -> None:
    cache = PromptCache(TINY)
    for prompt in requests:
        raw, cached = cache.split(prompt, "o200k")
        assert raw >= 0
        assert cached % TINY.block == 0
        assert raw + cached == _tokens(prompt)


@settings(max_examples=80)
@given(left=sessions, right=sessions)
def test_sessions_do_not_depend_on_the_order_in_which_they_run(left: list[list[str]], right: list[list[str]]) -> None:
    first, second = PromptCache(TINY), PromptCache(TINY)
    alone = [first.split(prompt, "o200k") for prompt in left], [second.split(prompt, "o200k") for prompt in right]
    first, second = PromptCache(TINY), PromptCache(TINY)
    mixed: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for index in range(max(len(left), len(right))):
        if index < len(right):
            mixed[1].append(second.split(right[index], "o200k"))
        if index < len(left):
            mixed[0].append(first.split(left[index], "o200k"))
    assert mixed == alone


@settings(max_examples=80)
@given(requests=sessions, extra=texts)
def test_a_fork_leaves_the_original_as_it_was(requests: list[list[str]], extra: list[str]) -> None:
    forked, straight = PromptCache(TINY), PromptCache(TINY)
    for prompt in requests:
        forked.fork().split(extra, "o200k")
        assert forked.split(prompt, "o200k") == straight.split(prompt, "o200k")


@settings(max_examples=80)
@given(requests=sessions)
def test_a_repeated_request_is_cached_up_to_the_last_block(requests: list[list[str]]) -> None:
    cache = PromptCache(TINY)
    for prompt in requests:
        cache.split(prompt, "o200k")
        total = _tokens(prompt)
        assert cache.split(prompt, "o200k")[1] == (total // 4 * 4 if total >= 8 else 0)


def test_nothing_below_the_minimum_is_cached() -> None:
    cache = PromptCache()
    short = [WORD * 1000]
    assert count(short[0], "o200k") < 1024
    cache.split(short, "o200k")
    assert cache.split(short, "o200k")[1] == 0


def test_the_shared_prefix_is_cached_in_whole_blocks() -> None:
    cache = PromptCache()
    head = [WORD * 700, WORD * 700]
    assert cache.split([*head, "first question"], "o200k")[1] == 0
    raw, cached = cache.split([*head, "a second and longer question"], "o200k")
    assert cached == _tokens(head) // 128 * 128
    assert raw == _tokens([*head, "a second and longer question"]) - cached


def test_a_prefix_is_shared_inside_a_text_that_differs() -> None:
    cache = PromptCache()
    cache.split([WORD * 3000 + "alpha"], "o200k")
    assert cache.split([WORD * 3000 + "beta"], "o200k")[1] >= 2816


def test_any_earlier_request_counts_and_not_only_the_last() -> None:
    cache = PromptCache()
    long = [WORD * 2000]
    cache.split(long, "o200k")
    cache.split(["something else"], "o200k")
    assert cache.split([*long, "more"], "o200k")[1] == 1920


def test_an_equal_text_in_another_place_is_not_cached() -> None:
    cache = PromptCache()
    cache.split(["one", WORD * 2000], "o200k")
    assert cache.split(["two", WORD * 2000], "o200k")[1] == 0


def of(*runs: tuple[str, int]) -> str:
    """Returns a text of exactly so many tokens: in o200k each of these words, with the space before it, is one."""
    return "".join(f" {word}" * number for word, number in runs)


@pytest.mark.parametrize(
    ("first", "second", "raw", "cached"),
    [
        ([of(("a", 1023))], [of(("a", 1023))], 1023, 0),  # one token below the minimum
        ([of(("a", 1024))], [of(("a", 1024))], 0, 1024),  # the minimum itself, 8 blocks of 128
        ([of(("a", 1151))], [of(("a", 1151))], 127, 1024),  # the ninth block lacks one token
        ([of(("a", 1152))], [of(("a", 1152))], 0, 1152),
        ([of(("a", 1024))], [of(("a", 5000))], 3976, 1024),  # the earlier request is a prefix of this one
        ([of(("a", 5000))], [of(("a", 1024))], 0, 1024),  # and the reverse
        ([of(("a", 1500), ("b", 500))], [of(("a", 1500), ("c", 500))], 592, 1408),  # 1,500 shared: 11 blocks
        ([of(("a", 1023), ("b", 500))], [of(("a", 1023)) + "!" + of(("c", 499))], 1523, 0),  # part one token before the minimum
        ([of(("b", 1), ("a", 1500))], [of(("c", 1), ("a", 1500))], 1501, 0),  # the first token differs
        ([of(("a", 600)), of(("a", 600))], [of(("a", 600)), of(("a", 600)), of(("b", 80))], 128, 1152),  # 1,200 in two texts
        ([of(("a", 600)), of(("b", 600))], [of(("a", 600)), of(("b", 500), ("c", 9))], 85, 1024),  # 1,100, across a border
        (
            [of(("a", 600)), of(("b", 600))],
            [of(("a", 600)), of(("b", 423)) + "!" + of(("c", 8))],
            1032,
            0,
        ),  # 1,023, across a border
    ],
)
def test_caching_by_hand(first: list[str], second: list[str], raw: int, cached: int) -> None:
    cache = PromptCache()
    assert cache.split(first, "o200k") == (_tokens(first), 0), "nothing is cached yet"
    assert cache.split(second, "o200k") == (raw, cached)


def test_a_token_that_two_requests_begin_alike_counts_as_shared() -> None:
    cache = PromptCache()
    cache.split([of(("a", 1023), ("b", 9))], "o200k")
    assert cache.split([of(("a", 1023), ("c", 9))], "o200k") == (8, 1024), "1,023 words and the space before the next"


def test_lines_of_requests_that_take_turns_are_both_cached() -> None:
    cache = PromptCache()
    left, right = [of(("a", 1300))], [of(("b", 1500))]
    split = [cache.split(prompt, "o200k") for prompt in (left, right, [*left, " c"], [*right, " c"], left)]
    assert split == [(1300, 0), (1500, 0), (1301 - 1280, 1280), (1501 - 1408, 1408), (1300 - 1280, 1280)]


def test_sessions_share_no_cache_though_their_requests_are_equal() -> None:
    prompt = [of(("a", 2048))]
    first, second = PromptCache(), PromptCache()
    assert [cache.split(prompt, "o200k") for cache in (first, second, first, second)] == [(2048, 0)] * 2 + [(0, 2048)] * 2


def test_a_prefix_is_forgotten_only_after_as_many_other_requests_as_are_remembered() -> None:
    policy = CachePolicy(remembered=3)
    for others, cached in ((2, 1280), (3, 0)):
        cache = PromptCache(policy)
        cache.split([of(("a", 1300))], "o200k")
        for number in range(others):
            cache.split([f"{number}"], "o200k")
        assert cache.split([of(("a", 1300))], "o200k")[1] == cached


def test_requests_of_different_vocabularies_share_nothing() -> None:
    cache = PromptCache()
    cache.split([WORD * 2000], "o200k")
    assert cache.split([WORD * 2000], "qwen3.5")[1] == 0


def test_edge_flops_are_twice_the_parameters_for_each_token() -> None:
    assert edge_flops(9e9, 1_000) == 1.8e13


def test_latency_adds_round_trip_reading_and_writing() -> None:
    profile = LatencyProfile(round_trip_s=0.5, prefill_tokens_per_s=1_000, decode_tokens_per_s=50)
    assert latency_s(100, 2_000, profile=profile) == 0.5 + 2.0 + 2.0


def test_a_meter_adds_up_and_its_fork_stands_alone() -> None:
    meter = Meter()
    meter.add_cloud(Usage(raw=10, cached=20, output=5), Decimal("0.01"), 1.5)
    copy = meter.fork()
    copy.add_edge(100, 10, 1e9, 0.5)
    copy.add_cloud(Usage(raw=1, cached=0, output=1), Decimal("0.02"), 1.0)
    assert (meter.tokens_raw, meter.tokens_cached, meter.tokens_out, meter.cloud_calls) == (10, 20, 5, 1)
    assert (meter.cloud_usd, meter.edge_flops, meter.latency_s) == (Decimal("0.01"), 0.0, 1.5)
    assert (copy.cloud_usd, copy.cloud_calls, copy.edge_tokens_in, copy.edge_tokens_out) == (Decimal("0.03"), 2, 100, 10)
    assert copy.edge_flops == 2e9 * 110
    assert copy.latency_s == 3.0


def test_a_meter_keeps_probes_and_reported_usage_apart() -> None:
    meter = Meter()
    meter.add_edge(100, 1, 1e9, 0.5, probe=True)
    meter.add_edge(0, 20, 1e9, 0.5)
    assert (meter.edge_flops, meter.edge_flops_without_probes) == (2e9 * 121, 2e9 * 20)
    copy = meter.fork()
    copy.add_gap(5, -3, 1, Decimal("0.01"))
    copy.add_gap(-7, 0, 1, Decimal("-0.03"))
    assert (copy.gap_raw, copy.gap_cached, copy.gap_out, copy.gap_usd) == (-2, -3, 2, Decimal("-0.02"))
    assert (meter.gap_raw, meter.gap_usd) == (0, 0)
