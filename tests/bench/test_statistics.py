"""Figures of a run, against cases worked out by hand."""

from __future__ import annotations

import dataclasses
import gc
import random
import tracemalloc
from collections.abc import Callable
from itertools import product

import msgspec
import pytest

from ec2_env.bench.grid import Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.statistics import Summary, Totals, pass_hat_k
from ec2_env.errors import ConfigurationError

RecordMaker = Callable[..., EpisodeRecord]


@pytest.mark.parametrize(
    ("successes", "trials", "k", "expected"),
    [(3, 3, 3, 1.0), (2, 3, 3, 0.0), (3, 4, 3, 1 / 4), (4, 5, 3, 4 / 10), (2, 5, 1, 2 / 5), (0, 1, 1, 0.0)],
)
def test_pass_hat_k_agrees_with_cases_worked_out_by_hand(successes: int, trials: int, k: int, expected: float) -> None:
    assert pass_hat_k(successes, trials, k) == pytest.approx(expected)


def test_pass_hat_k_is_the_share_of_all_draws_of_k_trials_that_succeed() -> None:
    for trials, k in ((4, 2), (6, 3)):
        for successes in range(trials + 1):
            drawn = [set(draw) for draw in product(range(trials), repeat=k) if len(set(draw)) == k]
            share = sum(max(draw) < successes for draw in drawn) / len(drawn)
            assert pass_hat_k(successes, trials, k) == pytest.approx(share)


@pytest.mark.parametrize(("successes", "trials", "k"), [(2, 2, 3), (4, 3, 3), (-1, 3, 3), (1, 3, 0)])
def test_pass_hat_k_refuses_impossible_counts(successes: int, trials: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass_hat_k"):
        pass_hat_k(successes, trials, k)


def summary_of(grid: Grid, records: list[EpisodeRecord]) -> Summary:
    totals = Totals(grid)
    for one in records:
        totals.add(one)
    return totals.summaries()[0]


def test_means_and_pass_hat_agree_with_a_case_worked_out_by_hand(grid: Grid, record: RecordMaker) -> None:
    # Instances in order: ask/en 0 and 1, ask/zh 0 and 1, tell/en 0 and 1; three trials each.
    completions = [1, 1, 1, 1, 1, 0.5, 0.7, 0.8, 0.9, 0, 0, 0, 0.69, 1, 1, 1, 1, 1]
    found = summary_of(grid, [record(n, value, privacy=value / 2, cloud_usd=0.1 * n) for n, value in enumerate(completions)])
    assert found.episodes == 18 and found.missing == found.errors == found.invalid == 0
    assert found.figures["completion"].mean == pytest.approx(sum(completions) / 18)
    assert found.figures["privacy"].mean == pytest.approx(sum(completions) / 36)
    assert found.figures["cloud_usd"].mean == pytest.approx(0.1 * sum(range(18)) / 18)
    assert found.figures["passed"].mean == pytest.approx(13 / 18)
    assert found.figures["pass_hat_3"].mean == pytest.approx(3 / 6)


def test_interval_of_two_opposite_tasks_reaches_from_one_to_the_other(grid: Grid, record: RecordMaker) -> None:
    found = summary_of(grid, [record(n, 1.0 if n < 12 else 0.0) for n in range(18)]).figures["completion"]
    assert (found.mean, found.low, found.high) == pytest.approx((12 / 18, 0.0, 1.0))


def test_interval_has_no_width_where_all_episodes_agree_and_is_none_for_one_task(grid: Grid, record: RecordMaker) -> None:
    alike = summary_of(grid, [record(n, 0.4) for n in range(18)]).figures["completion"]
    assert alike.low == pytest.approx(0.4) and alike.high == pytest.approx(0.4)
    single = summary_of(grid, [record(n, 0.4) for n in range(12)]).figures["completion"]
    assert single.mean == pytest.approx(0.4) and single.low is None and single.high is None


def test_figures_do_not_depend_on_the_order_of_records(grid: Grid, record: RecordMaker) -> None:
    rng = random.Random(7)
    records = [record(n, rng.random(), cloud_usd=rng.random(), edge_flops=rng.random() * 1e15) for n in range(len(grid))]
    expected = summary_of(grid, records)
    for _ in range(20):
        rng.shuffle(records)
        assert summary_of(grid, records) == expected


def test_infrastructure_error_enters_no_mean_and_gives_way_to_a_later_result(grid: Grid, record: RecordMaker) -> None:
    totals = Totals(grid)
    totals.add(record(0, 1.0))
    totals.add(record(1, 0.0, status="error", cloud_usd=0.25))
    before = totals.summaries()[0]
    assert before.errors == 1 and before.episodes == 1 and before.figures["completion"].mean == 1.0
    assert totals.spent.usd == 0.25
    assert not totals.has(1, or_error=False) and totals.has(1, or_error=True)
    totals.add(record(1, 0.5))
    after = totals.summaries()[0]
    assert after.errors == 0 and after.episodes == 2 and after.figures["completion"].mean == 0.75


def test_invalid_episode_is_counted_apart_and_in_the_means(grid: Grid, record: RecordMaker) -> None:
    found = summary_of(grid, [record(0, 1.0), record(1, 0.0, status="invalid")])
    assert found.invalid == 1 and found.episodes == 2 and found.figures["completion"].mean == 0.5


def test_privacy_when_called_looks_only_at_episodes_that_called(grid: Grid, record: RecordMaker) -> None:
    found = summary_of(grid, [record(0, 1.0), record(1, 1.0, cloud_calls=2, privacy=0.2)])
    assert found.figures["privacy"].mean == pytest.approx(0.6)
    assert found.figures["privacy_when_called"].mean == pytest.approx(0.2)
    assert summary_of(grid, [record(0, 1.0)]).figures["privacy_when_called"].mean is None


def test_episodes_without_sensitive_values_say_nothing_about_privacy(grid: Grid, record: RecordMaker) -> None:
    found = summary_of(grid, [record(0, 1.0, units=0, cloud_calls=1), record(1, 1.0, cloud_calls=2, privacy=0.2)])
    assert found.episodes == 2
    assert found.figures["privacy"].mean == pytest.approx(0.2)
    assert found.figures["privacy_when_called"].mean == pytest.approx(0.2)
    assert summary_of(grid, [record(0, 1.0, units=0)]).figures["privacy"].mean is None


def test_leaks_and_needless_exposure_are_averaged_over_the_episodes_with_sensitive_values(
    grid: Grid, record: RecordMaker
) -> None:
    leaking = record(0, 1.0, any_leak=True, necessary_exposure=0.5, excess_exposure=0.2, privacy_all=0.6)
    found = summary_of(grid, [leaking, record(1, 1.0), record(2, 1.0, units=0)]).figures
    means = [found[name].mean for name in ("any_leak", "necessary_exposure", "excess_exposure", "privacy_all")]
    assert means == pytest.approx([0.5, 0.25, 0.1, 0.8])


def test_pass_hat_needs_three_trials_of_an_instance(grid: Grid, record: RecordMaker) -> None:
    assert summary_of(grid, [record(0), record(1)]).figures["pass_hat_3"].mean is None
    assert summary_of(grid, [record(n) for n in range(4)]).figures["pass_hat_3"].mean == 1.0


def test_doubled_and_foreign_records_are_refused(grid: Grid, record: RecordMaker) -> None:
    totals = Totals(grid)
    totals.add(record(3))
    with pytest.raises(ConfigurationError, match="recorded twice"):
        totals.add(record(3))
    other = Grid(grid.cells, (*grid.pairs, ("shout", "en")), "test", 2, 3)
    foreign = Totals(Grid(grid.cells, grid.pairs[:1], "test", 2, 3))
    with pytest.raises(ConfigurationError, match="not part of this run"):
        foreign.add(record(17))
    assert other.number(*grid.episode(17)) == 17


def test_numbers_and_episodes_of_a_grid_belong_together(grid: Grid) -> None:
    assert [grid.number(*grid.episode(number)) for number in range(len(grid))] == list(range(len(grid)))
    chunks = list(grid.chunks(iter(range(len(grid))), 4))
    assert sum(len(keys) for _, keys in chunks) == len(grid)
    assert all(len(keys) <= 4 and len({(key.task, key.language) for key in keys}) == 1 for _, keys in chunks)


def test_memory_does_not_grow_with_the_records(record: RecordMaker, grid: Grid) -> None:
    large = Grid(grid.cells, grid.pairs, "test", 100, 3)
    totals, one = Totals(large), record(0, 0.5, checks={f"check {n}": 1.0 for n in range(50)})
    halfway = 0
    tracemalloc.start()
    for number in range(len(large)):
        cell, key = large.episode(number)
        totals.add(msgspec.structs.replace(one, **cell._asdict(), **dataclasses.asdict(key)))
        if number == len(large) // 2:
            gc.collect()  # else the interpreter's store of freed tuples counts, too
            halfway = tracemalloc.get_traced_memory()[0]
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - halfway
    tracemalloc.stop()
    assert totals.done == 1_800
    assert grown < 5_000
