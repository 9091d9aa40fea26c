"""`ec2-env bench` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ec2_env import cli

Bench = Callable[..., tuple[int, str, str]]
FAST = ("--suite", "email-smoke", "--workers", "1")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Returns a function that runs the command in an empty folder and returns status, output and messages."""
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[int, str, str]:
        status = cli.main(["bench", *words])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return ran


def test_table_names_suite_models_rows_and_the_command(bench: Bench) -> None:
    status, out, err = bench(*FAST)
    assert status == 0
    assert "suite email-smoke" in out and "Simulated models: qwen3.5-9b, gpt-5.4" in out
    assert out.rstrip().endswith("Reproduce: ec2-env bench --suite email-smoke")
    for strategy in ("edge_only", "cloud_only", "step_routing"):
        assert sum(line.startswith(f"{strategy} ") for line in out.splitlines()) == 1, strategy
    assert "\x1b" not in out and max(map(len, out.splitlines())) <= 120
    assert "records are in runs" in err


def test_same_command_gives_the_same_bytes_wherever_it_runs(bench: Bench) -> None:
    first = bench(*FAST)
    assert bench(*FAST)[1] == first[1]
    assert bench(*FAST, "--out", "elsewhere")[1] == first[1]
    assert bench("--suite", "email-smoke", "--workers", "2", "--out", "third")[1] == first[1]


def test_command_under_the_table_gives_the_same_table(bench: Bench) -> None:
    flags = ("--strategy", "edge_only", "--strategy", "step_routing:threshold=1.2", "--trials", "3", "--seeds", "2")
    _, out, _ = bench(*FAST, *flags)
    _, _, command = out.rstrip().rpartition("Reproduce: ec2-env bench ")
    assert bench(*command.split(), "--out", "again")[1] == out


def test_csv_has_a_line_for_each_row_with_figures_and_intervals(bench: Bench) -> None:
    _, out, _ = bench(*FAST, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["strategy"] for row in rows][:2] == ["cloud_only", "edge_only"]
    assert {row["simulated"] for row in rows} == {"true"}
    assert rows[0]["edge"] == "" and rows[0]["errors"] == "0"
    assert 0 <= float(rows[0]["completion"]) <= 1 and float(rows[1]["cloud_usd"]) == 0.0


def test_json_and_markdown_hold_the_same_rows(bench: Bench) -> None:
    data = json.loads(bench(*FAST, "--format", "json")[1])
    assert data["models"]["sim:gpt-5.4"] == {"name": "gpt-5.4", "simulated": True}
    assert "published" not in data
    page = bench(*FAST, "--format", "markdown")[1]
    for row in data["rows"]:
        completion = row["figures"]["completion"]["mean"]
        assert f"| {row['strategy']} | {completion * 100:.1f} |" in page


def test_published_figures_stand_apart_and_are_marked(bench: Bench) -> None:
    plain, compared = bench(*FAST)[1], bench(*FAST, "--compare")[1]
    assert "published" not in plain
    table, _, beside = compared.partition("Ours (simulated models")
    assert "published" not in table and "40.1" in beside and "Published" not in table
    data = json.loads(bench(*FAST, "--compare", "--format", "json")[1])
    assert "published" in data and all("published" not in row for row in data["rows"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--suite", "emial"), "No suite named 'emial'. Did you mean 'email'"),
        (("--strategy", "edge-only"), "Did you mean 'edge_only'"),
        (("--edge", "sim:qwen"), "No simulated model named 'qwen'"),
        (("--edge", "smollm"), "Did you mean 'smollm2'?"),
        (("--seeds", "0"), "seeds is 0"),
        (("--workers", "0"), "--workers is 0"),
        (("--max-usd", "-1"), "--max-usd is -1"),
        (("--max-tokens", "0"), "--max-tokens is 0"),
        (("--max-calls", "-3"), "--max-calls is -3"),
        (("--resume",), "no run to resume"),
        (("--suite", "nowhere.toml:mine"), "suite file nowhere.toml cannot be read"),
    ],
)
def test_wrong_word_ends_with_2_and_leaves_no_folder(bench: Bench, words: tuple[str, ...], message: str) -> None:
    status, out, err = bench(*words)
    assert status == 2 and out == ""
    assert message in err and err.count("\n") == 1
    assert not Path("runs").exists()


def test_folder_of_another_run_is_refused(bench: Bench) -> None:
    bench(*FAST, "--out", "mine", "--seeds", "1")
    status, _, err = bench(*FAST, "--out", "mine", "--seeds", "2")
    assert status == 2 and "seeds is 1 there and 2 here" in err


def test_budget_ends_with_1_and_says_what_is_left(bench: Bench) -> None:
    status, out, err = bench(*FAST, "--max-usd", "0.0001", "--out", "mine")
    assert status == 1 and "PARTIAL" in out
    done, left = (int(re.findall(rf"{what}: (\d+)", err)[0]) for what in ("recorded in mine", "left"))
    assert "higher --max-usd" in err
    assert min(done, left) > 0
    assert f"playing: {done + left} episodes" in err
    status, out, _ = bench(*FAST, "--out", "mine", "--resume")
    assert status == 0 and "PARTIAL" not in out


@pytest.mark.parametrize(("flag", "cap"), [("--max-tokens", "1000"), ("--max-calls", "1")])
def test_budgets_of_tokens_and_calls_hold_with_two_workers(bench: Bench, flag: str, cap: str) -> None:
    status, out, err = bench(*FAST[:2], "--trials", "3", "--workers", "2", flag, cap, "--out", "mine")
    assert status == 1 and "PARTIAL" in out
    assert f"{flag} {int(cap):,} are" in err and f"higher {flag}" in err
    assert bench(*FAST, "--trials", "3", "--out", "mine", "--resume")[1] == bench(*FAST, "--trials", "3", "--out", "whole")[1]


def test_work_without_probes_stands_only_beside_the_published_figures(bench: Bench) -> None:
    plain, compared = bench(*FAST)[1], bench(*FAST, "--compare")[1]
    assert "FLOP %" not in plain and "FLOP %" in compared
    assert max(map(len, compared.splitlines())) <= 120
    rows = {row["strategy"]: row["figures"] for row in json.loads(bench(*FAST, "--format", "json")[1])["rows"]}
    for name, probes in (("edge_only", False), ("step_routing", True)):
        whole, without = (rows[name][figure]["mean"] for figure in ("edge_pflops", "edge_pflops_without_probes"))
        assert (without < whole) is probes, name


def test_suite_of_a_file_is_played(bench: Bench) -> None:
    Path("mine.toml").write_text(
        '[short]\nabout = "mine"\ntasks = ["forward_invoice"]\nlanguages = ["zh"]\nseeds = 1\ntrials = 1\n'
        'strategies = ["edge_only"]\n'
    )
    status, out, _ = bench("--suite", "mine.toml:short", "--workers", "1")
    assert status == 0 and "1 task (zh)" in out and "1 episode a row" in out
    Path("mine.toml").write_text('[short]\nabout = "mine"\ntask = ["forward_invoice"]\n')
    status, _, err = bench("--suite", "mine.toml:short")
    assert status == 2 and "unknown field `task`" in err


def test_quiet_run_says_nothing_but_the_table(bench: Bench) -> None:
    assert bench(*FAST, "--quiet")[2] == ""
