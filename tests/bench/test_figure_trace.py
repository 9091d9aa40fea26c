"""Any figure of a table, back to its episodes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ec2_env.bench.figure_trace import TRACEABLE, parts_of, row_of, trace_table
from ec2_env.bench.grid import Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.run_data import load_run
from ec2_env.bench.statistics import Totals
from ec2_env.errors import ConfigurationError, UnknownName

RecordMaker = Callable[..., EpisodeRecord]
FolderMaker = Callable[..., Path]


@pytest.fixture
def records(grid: Grid, record: RecordMaker) -> list[EpisodeRecord]:
    """Returns records with crooked figures, some without sensitive values, one error, in no order."""
    rng = random.Random(3)
    found = []
    for number in range(len(grid)):
        figures = {
            name: rng.random() for name in ("privacy", "privacy_all", "necessary_exposure", "excess_exposure", "cloud_usd")
        }
        counts = {"cloud_calls": rng.randrange(3), "tokens_raw": rng.randrange(10_000), "units": rng.choice([0, 4])}
        found.append(record(number, rng.choice([0.0, 1.0, rng.random()]), **figures, **counts, edge_flops=rng.random() * 1e15))
    found[7] = record(7, 0.0, status="error")
    rng.shuffle(found)
    return found


@pytest.mark.parametrize("figure", TRACEABLE)
def test_the_mean_of_the_listed_episodes_is_the_figure_of_the_table_to_the_last_digit(
    figure: str, grid: Grid, records: list[EpisodeRecord], run_folder: FolderMaker
) -> None:
    totals = Totals(grid)
    for one in records:
        totals.add(one)
    run = load_run(run_folder(grid, records))
    lines = (run.path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    for summary in totals.summaries():
        parts, mean = parts_of(row_of(run, summary.cell.strategy, None), figure)
        assert mean == summary.figures[figure].mean
        assert mean == pytest.approx(sum(part.value for part in parts) / len(parts), abs=1e-12)
        for part in parts:
            held = [json.loads(lines[line - 1]) for line in part.lines]
            assert {one["strategy"] for one in held} == {summary.cell.strategy}
            assert all(part.episode.startswith(f"{one['task']}/{one['language']}/test/{one['seed']}") for one in held)


def test_the_listed_value_is_that_of_the_line(grid: Grid, records: list[EpisodeRecord], run_folder: FolderMaker) -> None:
    run = load_run(run_folder(grid, records))
    lines = (run.path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    parts, _ = parts_of(run.rows[0], "completion")
    assert [part.value for part in parts] == pytest.approx(
        [json.loads(lines[part.lines[0] - 1])["result"]["completion"] for part in parts], abs=1e-9
    )


def test_the_trace_says_its_mean_and_leaves_out_what_is_not_counted(
    grid: Grid, record: RecordMaker, run_folder: FolderMaker
) -> None:
    run = load_run(run_folder(grid, [record(0, privacy=0.25), record(1, units=0), record(2, status="error")]))
    table = trace_table(run, run.rows[0], "privacy")
    assert table.title.endswith("1 episodes; their mean is 0.25")
    assert list(table.sections[0][1]) == [("ask/en/test/0, trial 0", "0.25", "1")]
    assert "1 in left (edge)" in table.notes[1]
    assert "nothing to take a mean of" in trace_table(run, run.rows[0], "pass_hat_3").title


def test_an_unclear_row_or_unknown_figure_is_an_error_that_helps(
    grid: Grid, record: RecordMaker, run_folder: FolderMaker
) -> None:
    twice = Grid((grid.cells[0], grid.cells[0]._replace(edge="other")), grid.pairs, "test", 2, 3)
    path = run_folder(twice, [record(0), record(0).__class__(**{**_fields(record(0)), "edge": "other"})])
    run = load_run(path)
    with pytest.raises(ConfigurationError, match=r"left was run on edge, other; name one with --edge"):
        row_of(run, "left", None)
    assert row_of(run, "left", "other").cell.edge == "other"
    with pytest.raises(UnknownName, match="Did you mean 'left'"):
        row_of(run, "lef", None)
    with pytest.raises(UnknownName, match="completion"):
        parts_of(run.rows[0], "completions")


def _fields(record: EpisodeRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
