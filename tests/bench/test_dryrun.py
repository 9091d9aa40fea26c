"""What a run is said to use before it starts is what it then uses, as far as a sample can tell; nothing is sent or written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ec2_env import cli
from ec2_env.bench.dryrun import as_json, as_text, dry_run, in_a_line, stand_in
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.runner import Outcome
from ec2_env.models.endpoint import CONCURRENCY

REAL = "openai:m@base_url=http://127.0.0.1:1/v1,price=gpt-5.4-mini"


def test_a_sample_of_everything_gives_the_sums_of_the_run(config: BenchConfig, play: Callable[..., Outcome]) -> None:
    found, totals = dry_run(config, sample=1_000), play().totals
    for summary, row in zip(totals.summaries(), found.rows[-3:], strict=True):
        cell = summary.cell
        assert (row.name, row.episodes, row.sampled, row.usd_error) == (cell.strategy, 24, 24, 0.0)
        for figure in ("cloud_calls", "tokens_raw", "tokens_cached", "tokens_out", "cloud_usd", "edge_pflops"):
            mean = summary.figures[figure].mean
            assert mean is not None and row.totals[figure] == pytest.approx(24 * mean, rel=1e-6), figure


def test_scoring_for_offline_routers_is_reckoned_with(config: BenchConfig) -> None:
    found = dry_run(config, sample=2)
    assert [row.name for row in found.rows[:2]] == ["scoring: cloud_only", "scoring: edge_only"]
    assert found.all.episodes == len(config.grid()) + len(config.calibration())
    without = dry_run(replace(config, strategies=("edge_only",)), sample=2)
    assert len(without.rows) == 1 and without.all.totals["cloud_usd"] == 0.0


def test_a_sample_has_an_interval_around_what_the_whole_costs(config: BenchConfig) -> None:
    part, whole = dry_run(config, sample=6).rows[2], dry_run(config, sample=1_000).rows[2]
    assert part.usd_error > 0
    assert abs(part.totals["cloud_usd"] - whole.totals["cloud_usd"]) < 4 * part.usd_error


def test_real_models_are_stood_in_for_at_their_own_price_and_size(config: BenchConfig) -> None:
    edge = f"{REAL},parameters=1e9"
    real = dry_run(replace(config, strategies=("step_routing",), edges=(edge,), cloud=REAL), sample=2)
    sim = dry_run(replace(config, strategies=("step_routing",)), sample=2)
    tokens = real.all.totals
    assert tokens["tokens_raw"] == sim.all.totals["tokens_raw"]
    usd = (0.75 * tokens["tokens_raw"] + 0.075 * tokens["tokens_cached"] + 4.5 * tokens["tokens_out"]) / 1e6
    assert tokens["cloud_usd"] == pytest.approx(usd)
    assert tokens["edge_pflops"] == pytest.approx(2e9 * (tokens["edge_in"] + tokens["edge_out"]) / 1e15)
    assert tokens["edge_out"] > sim.all.totals["edge_out"] + 15 * 24, "probes of real models go on until the tool is known"
    text = as_text(real)
    assert "sim:qwen3.5-9b stands in for m" in text and "$4.50 output" in text
    assert stand_in(f"{REAL},parameters=70e9", edge=True) == "sim:qwen3.5-27b"


def test_table_json_and_line_say_the_same(config: BenchConfig) -> None:
    found = dry_run(config, sample=2)
    lines = as_text(found).splitlines()
    assert max(map(len, lines)) <= 130
    assert [line.split()[0] for line in lines if line.startswith(("cloud_only", "step_routing", "all"))] == [
        "cloud_only",
        "step_routing",
        "all",
    ]
    data = json.loads(as_json(found))
    assert [row["name"] for row in data["rows"]][-1] == "all"
    assert data["rows"][-1]["totals"]["cloud_usd"] == pytest.approx(found.all.totals["cloud_usd"])
    assert "\n" not in in_a_line(found) and f"{found.all.episodes} episodes" in in_a_line(found)


def bench(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = cli.main(["bench", "--suite", "email-smoke", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_the_command_ends_with_0_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = bench(capsys, "--dry-run", "--edge", f"{REAL},record=kept.jsonl", "--cloud", REAL)
    assert status == 0 and "dry run, suite email-smoke: 1 task, 3 episodes" in out
    assert list(tmp_path.iterdir()) == []
    assert json.loads(bench(capsys, "--dry-run", "--format", "json")[1])["assumptions"]


def test_a_run_that_will_be_paid_for_says_so_first_and_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai", reason="the extra 'llm' is not installed")
    monkeypatch.chdir(tmp_path)
    words: tuple[Any, ...] = ("--strategy", "cloud_only", "--cloud", f"{REAL},retries=0")
    status, _, err = bench(capsys, *words)
    assert status == 1  # nothing listens there: the episode is an infrastructure error
    assert err.startswith("ec2-env: expected of the whole run: 1 episode, ")
    assert "expected of the whole run" not in bench(capsys, "--strategy", "cloud_only")[2]
    assert "expected of the whole run" not in bench(capsys, *words, "--quiet")[2]


def test_the_limit_of_concurrency_reaches_endpoints_that_set_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ec2_env.models.loading import load_model

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CONCURRENCY, "9")  # so that the test leaves the variable as it was
    assert bench(capsys, "--dry-run", "--concurrency", "3")[0] == 0
    assert load_model(f"{REAL},seed=1").__dict__["_slots"].count == 3
    assert load_model(f"{REAL},seed=1,concurrency=2").__dict__["_slots"].count == 2
    status, _, err = bench(capsys, "--concurrency", "0")
    assert status == 2 and "--concurrency is 0" in err
