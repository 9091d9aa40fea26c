"""`ec2-env analyze`, and the layouts of tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ec2_env.bench.analysis import TABLES, Options, analyze
from ec2_env.bench.grid import BenchConfig, Cell, Grid
from ec2_env.bench.layout import Table, csv_text, latex, latex_lines, markdown_lines, terminal_lines
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.report import make_report
from ec2_env.bench.run_data import RunData, load_run
from ec2_env.bench.runner import Outcome
from ec2_env.bench.slices import slices_of, thirds
from ec2_env.bench.statistics import Totals, pass_at_k, pass_hat_k
from ec2_env.bench.study import study_table
from ec2_env.bench.suites import Suite
from ec2_env.bench.table import as_csv, as_json, as_latex, as_terminal
from ec2_env.bench.trivial import trivial_rows
from ec2_env.cli import main
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.task import task_domains

RecordMaker = Callable[..., EpisodeRecord]
FolderMaker = Callable[..., Path]
EDGE, CLOUD = "sim:qwen3.5-9b", "sim:gpt-5.4"
PLACES = {
    "cloud_only": (0.9, 0.1, 1.0),
    "edge_only": (0.3, 0.0, 1.0),
    "step_routing": (0.8, 0.04, 0.5),
    "random": (0.5, 0.09, 0.2),
}
"""Completion, USD and (less is worse) privacy of made-up rows."""


@pytest.fixture
def suite() -> Suite:
    return Suite(about="for tests", tasks=task_domains()["email"][:6], languages=("en",), seeds=1, trials=3)


@pytest.fixture
def real_grid(suite: Suite) -> Grid:
    cells = tuple(Cell(name, None if name == "cloud_only" else EDGE, CLOUD) for name in PLACES)
    return Grid(cells, suite.pairs(), "test", suite.seeds, suite.trials)


@pytest.fixture
def records(real_grid: Grid, plain_record: RecordMaker) -> list[EpisodeRecord]:
    rng = np.random.default_rng(1)
    found = []
    for number in range(len(real_grid)):
        cell, key = real_grid.episode(number)
        chance, usd, privacy = PLACES[cell.strategy]
        share = 0.0 if cell.strategy == "cloud_only" else privacy
        found.append(plain_record(cell, key, float(rng.random() < chance), cloud_usd=usd, privacy=share, tokens_raw=1_000))
    return found


@pytest.fixture
def run(real_grid: Grid, records: list[EpisodeRecord], run_folder: FolderMaker) -> RunData:
    return load_run(run_folder(real_grid, records))


@pytest.mark.parametrize(
    ("successes", "trials", "k", "expected"), [(1, 3, 1, 1 / 3), (1, 3, 2, 2 / 3), (1, 3, 3, 1.0), (0, 3, 2, 0.0)]
)
def test_pass_at_k_agrees_with_cases_worked_out_by_hand(successes: int, trials: int, k: int, expected: float) -> None:
    assert pass_at_k(successes, trials, k) == pytest.approx(expected)


def test_estimators_of_passes_are_unbiased() -> None:
    rng = np.random.default_rng(4)
    for chance in (0.2, 0.7):
        passed = rng.binomial(5, chance, size=20_000)
        at = np.mean([pass_at_k(int(c), 5, 3) for c in passed])
        hat = np.mean([pass_hat_k(int(c), 5, 3) for c in passed])
        assert (at, hat) == pytest.approx((1 - (1 - chance) ** 3, chance**3), abs=0.01)
    with pytest.raises(ValueError, match="pass_at_k"):
        pass_at_k(1, 2, 3)


def test_every_table_is_made_and_can_be_laid_out_in_every_form(run: RunData) -> None:
    tables = analyze(run, Options())
    assert {table.name for table in tables} == {*TABLES, "models"}
    for table in tables:
        rows = [row for _, found in table.sections for row in found]
        assert rows and table.data and all(len(row) == len(table.head) for row in rows)
        assert len(terminal_lines(table, color=False)) > len(rows) and json.dumps(table.data)
        assert sum(line.startswith("|") for line in markdown_lines(table)) == len(rows) + 2 * len(table.sections)
        assert sum(line.endswith("\\\\") and "multicolumn" not in line for line in latex_lines(table)) == len(rows) + 1
        assert len(list(csv.DictReader(io.StringIO(csv_text(table.data))))) == len(table.data)


def test_rows_are_compared_with_the_best_fixed_strategy_or_the_one_that_is_named(run: RunData) -> None:
    (table,) = analyze(run, Options(figures=("completion",)), ["paired"])
    assert {row["against"] for row in table.data} == {"cloud_only"}
    assert [row["strategy"] for row in table.data] == ["edge_only", "step_routing", "random"]
    assert all(row["p_holm"] >= row["p"] for row in table.data)
    (table,) = analyze(run, Options(figures=("cloud_usd",)), ["paired"])
    assert {row["against"] for row in table.data} == {"edge_only"}  # less is better
    (table,) = analyze(run, Options(against="random"), ["paired"])
    assert {row["against"] for row in table.data} == {"random"} and len(table.data) == 6
    with pytest.raises(UnknownName, match="Did you mean 'random'"):
        analyze(run, Options(against="randon"), ["paired"])
    with pytest.raises(UnknownName, match="figure"):
        analyze(run, Options(figures=("speed",)))
    with pytest.raises(UnknownName, match="table"):
        analyze(run, Options(), ["pairs"])
    with pytest.raises(ConfigurationError, match="--margin"):
        analyze(run, Options(margin=0))


def test_curves_lead_from_the_edge_alone_to_the_cloud_alone(run: RunData) -> None:
    (table,) = analyze(run, Options(), ["curves"])
    found = {(row["family"], row["axis"]): row for row in table.data}
    assert found["(mixture of the two ends)", "cost"]["apgr"] == pytest.approx(0.5)
    means = {row.cell.strategy: row.estimate("completion", run.tasks).mean or 0.0 for row in run.rows}
    edge, cloud, routed = (means[name] for name in ("edge_only", "cloud_only", "step_routing"))
    expected = 0.4 * (edge + routed) / 2 + 0.6 * (routed + cloud) / 2
    assert found["step_routing", "cost"]["area"] == pytest.approx(expected)
    assert found["step_routing", "exposure"]["area"] == pytest.approx(0.5 * (edge + routed) / 2 + 0.5 * (routed + cloud) / 2)


def test_front_leaves_out_what_another_row_beats_in_everything(run: RunData) -> None:
    (table,) = analyze(run, Options(), ["fronts"])
    on = {row["strategy"]: row["front"] for row in table.data}
    assert on["edge_only"] and on["step_routing"] and not on["random"]
    assert all(row["adds"] >= 0 for row in table.data)


def test_slices_cover_every_task_once_by_category_language_and_length(run: RunData) -> None:
    parts = slices_of(run.grid)
    for dimension in ("category", "language", "solution length"):
        held = [pair for part in parts if part.dimension == dimension for pair in part.pairs]
        assert sorted(held) == sorted(run.grid.pairs), dimension
    assert {part.value for part in parts if part.dimension == "app"} >= {"mail"}


def test_thirds_are_of_about_equal_size_and_keep_equal_lengths_together() -> None:
    found = list(thirds({(f"t{n}", "en"): float(length) for n, length in enumerate([3, 4, 5, 6, 7, 8, 9, 9, 9])}))
    assert [len(part.pairs) for part in found] == [3, 3, 3] and found[0].value == "3 to 5 calls"
    assert [part.value for part in thirds({("a", "en"): 4.0, ("b", "en"): 4.0})] == ["4 calls"]


def test_latex_shows_special_letters_as_they_are() -> None:
    assert latex("a_b 5% Pass^3 $1 {x} <y> c\\d") == (
        r"a\_b 5\% Pass\^{}3 \$1 \{x\} \textless{}y\textgreater{} c\textbackslash{}d"
    )
    table = Table(name="t", title="T", head=("a", "b"), sections=[("", [("x", "1")])], notes=())
    assert latex_lines(table)[-4:] == ["x & 1 \\\\", "\\bottomrule", "\\end{tabular}", "\\end{table}"]


@pytest.fixture
def outcome(real_grid: Grid, records: list[EpisodeRecord]) -> Outcome:
    totals = Totals(real_grid)
    for one in records:
        totals.add(one)
    return Outcome(totals=totals, stopped="", interrupted=False, left=0, settings={"suite_digest": "0" * 64})


@pytest.fixture
def config(suite: Suite) -> BenchConfig:
    return BenchConfig(name="email", suite=suite, strategies=tuple(PLACES), edges=(EDGE,), cloud=CLOUD)


def test_study_layout_groups_rows_and_adds_up_over_the_suite(config: BenchConfig, outcome: Outcome) -> None:
    table = study_table(make_report(config, outcome))
    assert [heading for heading, _ in table.sections][:3] == ["edge-only", "cloud-only", "collaboration"]
    cloud = next(row for row in table.data if row["strategy"] == "cloud_only")
    assert cloud["cloud_usd"] == pytest.approx(6 * 0.1) and cloud["tokens_raw"] == pytest.approx(6 * 1_000 / 1e6)
    assert (cloud["edge"], cloud["cloud"]) == (None, "gpt-5.4")
    assert table.sections[0][1][0][:3] == ["edge_only", "qwen3.5-9b", "-"]


def test_trivial_agents_stand_below_a_table_that_has_random_decisions(config: BenchConfig, outcome: Outcome) -> None:
    report = make_report(config, outcome)
    assert "-- trivial agents, no model" in as_terminal(report, None, color=False)
    assert "\nrandom calls" in as_terminal(report, None, color=False) and "trivial:dump" in as_csv(report)
    assert [row["name"] for row in json.loads(as_json(report, None))["trivial"]] == ["nothing", "dump", "random"]
    assert "do nothing &" in as_latex(report, None)
    rows = trivial_rows(config.suite)
    assert all(row.instances == 6 and (row.completion.mean or 0.0) < 0.2 for row in rows)
    without = make_report(BenchConfig(**{**config.__dict__, "strategies": ("edge_only", "cloud_only")}), outcome)
    assert without.trivial == () and "trivial" not in as_terminal(without, None, color=False)


def test_command_prints_tables_and_traces_a_figure(run: RunData, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(run.path)
    assert main(["analyze", path, "--only", "paired", "--only", "pass"]) == 0
    shown = capsys.readouterr().out
    assert "Simulated models: cloud." in shown and "Holm" in shown and "pass^3" in shown and "Hypervolume" not in shown
    assert main(["analyze", path, "--trace", "step_routing", "completion", "--edge", EDGE, "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    mean = run.rows[2].estimate("completion", run.tasks).mean
    assert run.rows[2].cell.strategy == "step_routing" and f"their mean is {mean!r}" in table["title"]
    assert len(table["rows"]) == 18
    for form in ("markdown", "latex", "csv"):
        assert main(["analyze", path, "--only", "fronts", "--format", form]) == 0
        assert "step" in capsys.readouterr().out


def test_command_says_what_it_misses(run: RunData, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run.path), "--trace", "random", "speed"]) != 0
    assert "No figure named 'speed'" in capsys.readouterr().err
    assert main(["analyze", str(run.path), "--edge", "sim:qwen3.5-9"]) != 0
    assert f"Did you mean '{EDGE}'" in capsys.readouterr().err
    assert main(["analyze", str(run.path / "nowhere")]) != 0
    assert "not a run folder" in capsys.readouterr().err


def test_tasks_that_are_not_ours_have_a_language_and_nothing_else() -> None:
    from ec2_env.bench.slices import _labels

    assert list(_labels("task_017_foreign", "en")) == [("language", "en")]
