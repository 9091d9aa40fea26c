"""Paired comparisons: against cases worked out by hand, and against scipy and statsmodels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ec2_env.bench.grid import Grid
from ec2_env.bench.paired import cohens_dz, holm, paired, sign_flip_p
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.run_data import RunData, load_run
from ec2_env.bench.statistics import draws, estimate
from ec2_env.errors import ConfigurationError

RecordMaker = Callable[..., EpisodeRecord]
FolderMaker = Callable[..., Path]


def test_difference_is_taken_over_episodes_that_both_rows_have(grid: Grid, record: RecordMaker, run_folder: FolderMaker) -> None:
    # Row "left" lacks its last episode; in ask it is 0.5 ahead, in tell 0.25 behind.
    left = [record(n, 0.75 if n < 12 else 0.5) for n in range(17)]
    right = [record(18 + n, 0.25 if n < 12 else 0.75) for n in range(18)]
    run = load_run(run_folder(grid, [*left, *right]))
    right_row, left_row = run.rows
    found = paired(left_row, right_row, "completion", run.tasks)
    assert (found.episodes, found.tasks, found.better, found.worse) == (17, 2, 1, 1)
    assert found.difference.mean == pytest.approx((12 * 0.5 - 5 * 0.25) / 17)
    assert found.effect == pytest.approx(0.125 / np.std([0.5, -0.25], ddof=1))
    assert found.p == 1.0  # of four assignments of signs, two are as far from 0, and two nearer: 6 + 1.25 > 6 - 1.25


def test_a_row_compared_with_itself_differs_in_nothing(grid: Grid, record: RecordMaker, run_folder: FolderMaker) -> None:
    row = load_run(run_folder(grid, [record(n, n / 18) for n in range(18)])).rows[0]
    found = paired(row, row, "completion", 2)
    assert (found.difference.mean, found.p, found.effect) == (0.0, 1.0, None)


def test_privacy_is_compared_only_where_both_rows_have_sensitive_values(
    grid: Grid, record: RecordMaker, run_folder: FolderMaker
) -> None:
    left = [record(n, 1.0, privacy=0.5, units=0 if n < 6 else 5) for n in range(18)]
    right = [record(18 + n, 1.0, privacy=1.0, units=0 if n >= 15 else 5) for n in range(18)]
    run = load_run(run_folder(grid, [*left, *right]))
    found = paired(run.rows[1], run.rows[0], "privacy", run.tasks)
    assert found.episodes == 9 and found.difference.mean == pytest.approx(-0.5)


@pytest.mark.parametrize("seed", range(4))
def test_sign_flip_p_is_that_of_scipy(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    sums = np.random.default_rng(seed).normal(0.4, 1.0, size=9)
    theirs = stats.permutation_test(
        (sums, np.zeros(9)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip_p(sums) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_random_sign_flips_come_near_the_exact_p() -> None:
    stats = pytest.importorskip("scipy.stats")
    sums = np.random.default_rng(3).normal(0.35, 1.0, size=40)
    theirs = stats.ttest_1samp(sums, 0.0).pvalue  # for normal differences, both tests ask the same
    assert 0.001 < theirs < 0.5
    assert sign_flip_p(sums) == pytest.approx(theirs, rel=0.15)


def test_sign_flip_p_is_uniform_where_there_is_no_difference() -> None:
    rng = np.random.default_rng(5)
    found = np.array([sign_flip_p(rng.normal(size=10)) for _ in range(600)])
    assert [(found <= level).mean() for level in (0.05, 0.25, 0.5)] == pytest.approx([0.05, 0.25, 0.5], abs=0.045)


@pytest.mark.parametrize("ps", [[0.01, 0.04, 0.03, 0.005], [0.5], [0.2, 0.2, 0.9], [0.001] * 4, []])
def test_holm_is_that_of_statsmodels(ps: list[float]) -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    if ps:
        multitest = pytest.importorskip("statsmodels.stats.multitest")
        assert holm(ps) == pytest.approx(multitest.multipletests(ps, method="holm")[1])
    else:
        assert holm(ps) == []


def test_effect_size_is_in_standard_deviations_of_the_differences() -> None:
    assert cohens_dz(np.array([1.0, 2.0, 3.0])) == pytest.approx(2.0)
    assert cohens_dz(np.array([1.0])) is None and cohens_dz(np.array([1.0, 1.0])) is None


def test_bootstrap_interval_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(2)
    values = rng.beta(2, 1.5, size=60)
    found = estimate(values, np.ones(60))
    theirs = stats.bootstrap((values,), np.mean, n_resamples=4_000, method="percentile", random_state=1).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_interval_by_tasks_holds_the_true_mean_as_often_as_it_says() -> None:
    # 300 made-up benchmarks of 40 tasks with 5 episodes each; half of the variance is between tasks. True mean: 0.
    rng = np.random.default_rng(11)
    inside, too_narrow = 0, 0
    for _ in range(300):
        episodes = rng.normal(0, 1, size=(40, 1)) + rng.normal(0, 1, size=(40, 5))
        found = estimate(episodes.sum(axis=1), np.full(40, 5))
        assert found.low is not None and found.high is not None
        inside += found.low <= 0 <= found.high
        half = 1.96 * episodes.std(ddof=1) / np.sqrt(200)
        too_narrow += abs(episodes.mean()) > half
    assert 0.90 <= inside / 300 <= 0.98
    assert too_narrow / 300 > 0.2  # what an interval over single episodes would miss


def test_every_draw_takes_as_many_tasks_as_there_are() -> None:
    found = draws(7)
    assert found.shape == (2_000, 7) and (found.sum(axis=1) == 7).all()


def test_run_without_one_whole_episode_or_with_strange_records_is_refused(
    grid: Grid, record: RecordMaker, run_folder: FolderMaker, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="not a run folder"):
        load_run(tmp_path / "nowhere")
    (run_folder(grid, [], "old") / "manifest.json").write_text('{"settings": {"suite": "s"}}')
    with pytest.raises(ConfigurationError, match="lacks 'tasks'"):
        load_run(tmp_path / "old")
    with pytest.raises(ConfigurationError, match="nothing to analyze"):
        load_run(run_folder(grid, [record(0, status="error")]))
    with pytest.raises(ConfigurationError, match="line 2 repeats line 1"):
        load_run(run_folder(grid, [record(0), record(0)]))
    with pytest.raises(ConfigurationError, match="not part of this run"):
        load_run(run_folder(grid, [msgspec.structs.replace(record(0), seed=9)]))
    with pytest.raises(ConfigurationError, match="not part of this run"):
        load_run(run_folder(grid, [msgspec.structs.replace(record(0), strategy="other")]))


def test_reading_a_run_keeps_errors_apart_and_changes_nothing(grid: Grid, record: RecordMaker, run_folder: FolderMaker) -> None:
    path = run_folder(grid, [record(0, 0.0, status="error"), record(1, 0.0, status="invalid"), record(2), record(0, 0.5)])
    with (path / "results.jsonl").open("ab") as stream:
        stream.write(b'{"cut off')
    before = (path / "results.jsonl").read_bytes()
    run: RunData = load_run(path)
    assert (path / "results.jsonl").read_bytes() == before
    (row,) = run.rows
    assert (row.lines, row.errors, row.invalid, row.missing) == ((4, 2, 3), 0, 1, 15)
    assert run.notes[0].startswith("Line 5 of results.jsonl is cut off")
    assert any(note.startswith("Episodes without one valid call") for note in run.notes)
    again = load_run(run_folder(grid, [record(0, 0.0, status="error"), record(1)], "other")).rows[0]
    assert (again.errors, again.lines) == (1, (2,))
