"""Runs: the same with any number of processes, and after any interruption."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env.bench import records
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.report import make_report
from ec2_env.bench.runner import Outcome, RunBroken, check, is_heavy
from ec2_env.bench.statistics import Spent, Totals
from ec2_env.bench.stopping import Caps
from ec2_env.bench.table import as_json, as_terminal
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, EndpointError, UnknownName

Runner = Callable[..., Outcome]

TINY = """
[tiny]
about = "for tests"
tasks = {tasks}
seeds = 2
trials = 3
calibration_seeds = 1
strategies = ["cloud_only", "step_routing", "step_routing:redacted"]
"""


def lines(path: Path) -> list[str]:
    return sorted(path.read_text(encoding="utf-8").splitlines())


def table(config: BenchConfig, outcome: Outcome) -> str:
    report = make_report(config, outcome)
    return as_terminal(report, None, color=False) + as_json(report, None)


def test_one_and_two_processes_give_the_same_bytes(play: Runner, config: BenchConfig, tmp_path: Path) -> None:
    one, two = play("one", workers=1), play("two", workers=2)
    for name in ("results.jsonl", "calibration.jsonl", "gaps.json", "manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert table(config, one) == table(config, two)
    assert one.left == 0 and one.totals.done == len(config.grid())


def test_finished_run_is_read_and_not_played_again(
    play: Runner, config: BenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = play()
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    monkeypatch.setattr(records, "play", lambda *_: pytest.fail("an episode was played again"))
    assert table(config, play()) == table(config, first)
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == before


def test_offline_scores_come_from_the_train_split_and_are_kept(play: Runner, config: BenchConfig, tmp_path: Path) -> None:
    play()
    scored = [json.loads(line) for line in (tmp_path / "run" / "calibration.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["split"] for one in scored} == {"train"}
    assert {one["strategy"] for one in scored} == {"cloud_only", "edge_only"}
    gaps = json.loads((tmp_path / "run" / "gaps.json").read_text(encoding="utf-8"))
    pairs = config.suite.pairs()
    assert set(gaps) == {"sim:qwen3.5-9b"} and len(gaps["sim:qwen3.5-9b"]) == len(pairs)
    means: dict[tuple[str, str], float] = {(o["strategy"], f"{o['task']}/{o['language']}"): o["reward"]["task"] for o in scored}
    for pair, gap in gaps["sim:qwen3.5-9b"].items():
        assert gap == pytest.approx(means["cloud_only", pair] - means["edge_only", pair], abs=1e-6)


def test_kept_trajectories_are_those_of_the_records(play: Runner, config: BenchConfig, tmp_path: Path) -> None:
    small = dataclasses.replace(config, strategies=("edge_only",), trajectories=True)
    play(changed=small)
    kept = (tmp_path / "run" / "trajectories.jsonl").read_bytes().splitlines()
    digests = [json.loads(line)["sha256"] for line in (tmp_path / "run" / "results.jsonl").read_bytes().splitlines()]
    assert [hashlib.sha256(line).hexdigest() for line in kept] == digests
    assert len(digests) == len(small.grid())


def outage(monkeypatch: pytest.MonkeyPatch, trial: int) -> None:
    """Lets every second step of one trial meet a dead endpoint."""
    take = DecisionEnv.take

    def broken(env: DecisionEnv, action: Any) -> None:
        assert env.session is not None
        if env.session.trial == trial and env.session.step == 1 and env.session.episode.split == "test":
            raise EndpointError("no answer from the endpoint after 3 tries")
        take(env, action)

    monkeypatch.setattr(DecisionEnv, "take", broken)


def test_infrastructure_errors_are_left_out_counted_and_played_again(
    play: Runner, config: BenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = play("whole")
    with monkeypatch.context() as patch:
        outage(patch, trial=1)
        partly = play()
        size = len(config.grid()) // 3
        assert partly.totals.errors == size and partly.totals.done == 2 * size and partly.left == 0
        assert "ended in an infrastructure error" in table(config, partly)
        assert all(summary.figures["pass_hat_3"].mean is None for summary in partly.totals.summaries())
        before = (tmp_path / "run" / "results.jsonl").read_bytes()
        assert play(keep_errors=True).totals.errors == size
        assert (tmp_path / "run" / "results.jsonl").read_bytes() == before
    mended = play()
    assert mended.totals.errors == 0
    assert table(config, mended) == table(config, whole)


def test_offline_router_that_cannot_be_scored_stops_the_run(play: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(env: DecisionEnv, action: Any) -> None:
        raise EndpointError("no answer")

    monkeypatch.setattr(DecisionEnv, "take", broken)
    with pytest.raises(RunBroken, match=r"cannot be scored.*calibration.jsonl"):
        play()


def recorded(folder: Path) -> list[EpisodeRecord]:
    """Returns the records of a run, those that offline scores come from first, each part in the order of its grid."""
    files = [folder / "calibration.jsonl", folder / "results.jsonl"]
    lines = [line for file in files if file.exists() for line in file.read_bytes().splitlines()]
    return [msgspec.json.decode(line, type=EpisodeRecord) for line in lines]


CAPS = {"usd": 0.5, "tokens": 400_000, "calls": 60}


@pytest.mark.parametrize(("kind", "workers"), [("usd", 1), ("usd", 2), ("tokens", 2), ("calls", 2)])
def test_budget_stops_the_run_and_a_higher_one_finishes_it(
    play: Runner, config: BenchConfig, tmp_path: Path, kind: str, workers: int
) -> None:
    whole = play("whole")
    everything = [getattr(Spent.of(one), kind) for one in recorded(tmp_path / "whole")]
    cap = CAPS[kind]
    assert cap < sum(everything)
    stopped = play(caps=Caps(**{kind: cap}), workers=workers)
    assert stopped.cap == f"--max-{kind}" and stopped.cap in stopped.stopped and not stopped.interrupted
    assert 0 < stopped.left == len(config.grid()) - stopped.totals.done
    assert "PARTIAL" in table(config, stopped)
    used = [getattr(Spent.of(one), kind) for one in recorded(tmp_path / "run")]
    assert used == everything[: len(used)], "a cap changes how many episodes are played, and in no way what happens in them"
    assert cap <= sum(used) < cap + workers * max(everything)
    assert sum(used[:-workers]) < cap, "more episodes were begun after the cap was reached"
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    again = play(caps=Caps(**{kind: cap}), workers=workers)
    assert (again.left, again.cap) == (stopped.left, stopped.cap)
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == before, "a budget that is used up begins nothing"
    assert table(config, play(caps=Caps(**{kind: 10**9}))) == table(config, whole)


def test_the_first_of_several_budgets_stops_the_run(play: Runner) -> None:
    assert play(caps=Caps(usd=1e6, tokens=10**9, calls=40)).cap == "--max-calls"


def test_budget_that_offline_scores_use_up_leaves_everything_else(play: Runner, config: BenchConfig) -> None:
    stopped = play(caps=Caps(usd=0.01))
    assert stopped.totals.done == 0 and stopped.left == len(config.grid()) and stopped.stopped


def test_defect_in_an_episode_names_it_and_keeps_what_was_finished(
    play: Runner, config: BenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = records.play

    def faulty(env: Any, strategy: Any, key: Any) -> Any:
        if key.split == "test" and key.trial == 2:
            raise ZeroDivisionError("by zero")
        return original(env, strategy, key)

    monkeypatch.setattr(records, "play", faulty)
    with pytest.raises(RunBroken, match=r"cloud_only on \w+/en/test/0, trial 2: a defect(.|\n)*ZeroDivisionError"):
        play()
    assert len(lines(tmp_path / "run" / "results.jsonl")) == 2


def test_usage_that_an_endpoint_reports_is_told_apart_from_the_own_count(
    config: BenchConfig, plain_record: Callable[..., EpisodeRecord]
) -> None:
    def note(**gap: float) -> list[str]:
        totals = Totals(config.grid())
        for number in range(len(config.grid())):
            usage_gap = {"raw": 0, "cached": 0, "out": 0, "usd": 0.0, **gap}
            totals.add(plain_record(*config.grid().episode(number), 1.0, cloud_usd=0.02, usage_gap=usage_gap))
        outcome = Outcome(totals=totals, stopped="", interrupted=False, left=0, settings={"suite_digest": "0" * 12})
        return [note for note in make_report(config, outcome).notes if "endpoint reports" in note]

    assert note() == []
    (told,) = note(raw=-30, cached=40, out=2, usd=-0.005)
    episodes = len(config.grid())
    assert f"{12 * episodes:+,} tokens and {-0.005 * episodes:+.4f} USD (-20.0%)" in told


def test_wrong_names_are_found_before_anything_is_played(config: BenchConfig) -> None:
    with pytest.raises(UnknownName, match="step_routing"):
        check(dataclasses.replace(config, strategies=("edge_only", "step_routng")))
    with pytest.raises(UnknownName, match=r"qwen3\.5-9b"):
        check(dataclasses.replace(config, edges=("sim:qwen3.5-9",)))
    with pytest.raises(ConfigurationError, match="no price"):
        check(dataclasses.replace(config, cloud="sim:qwen3.5-9b"))
    with pytest.raises(ConfigurationError, match="nothing to compare"):
        check(dataclasses.replace(config, strategies=()))


@pytest.fixture
def command(config: BenchConfig, tmp_path: Path) -> list[str]:
    """Returns the command that runs a suite of 72 episodes, without its folder."""
    file = tmp_path / "suites.toml"
    file.write_text(TINY.format(tasks=json.dumps(config.suite.tasks)), encoding="utf-8")
    return [sys.executable, "-m", "ec2_env", "bench", "--suite", f"{file}:tiny", "--edge", "sim:qwen3.5-9b"]


def wait_for_lines(file: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until a file has so many lines, or the process has ended."""
    while process.poll() is None and not (file.exists() and file.read_bytes().count(b"\n") >= number):
        time.sleep(0.002)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_run_goes_on_and_ends_like_one_that_was_not(command: list[str], tmp_path: Path) -> None:
    whole = subprocess.run([*command, "--out", str(tmp_path / "whole"), "--workers", "1"], capture_output=True, check=True)
    out = tmp_path / "killed"
    for number, workers in ((7, "2"), (40, "1")):
        process = subprocess.Popen(
            [*command, "--out", str(out), "--workers", workers], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for_lines(out / "results.jsonl", number, process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    with (out / "results.jsonl").open("ab") as stream:
        stream.write(b'{"cloud":"sim:gpt-')
    last = subprocess.run([*command, "--out", str(out), "--resume", "--workers", "1"], capture_output=True, check=True)
    assert b"was cut off" in last.stderr
    assert lines(out / "results.jsonl") == lines(tmp_path / "whole" / "results.jsonl")
    assert last.stdout == whole.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_interrupted_run_says_how_to_go_on(command: list[str], tmp_path: Path, workers: str) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        [*command, "--out", str(out), "--workers", workers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_for_lines(out / "results.jsonl", 1, process)
    os.killpg(process.pid, signal.SIGINT)
    shown, said = process.communicate(timeout=60)
    assert process.returncode == 130 and shown == b""
    assert b"run the same command again" in said.lower() and b"Traceback" not in said
    recorded = len(lines(out / "results.jsonl"))
    assert f"recorded in {out}: {recorded}".encode() in said
    again = subprocess.run([*command, "--out", str(out), "--workers", "1"], capture_output=True, check=True)
    assert len(lines(out / "results.jsonl")) == 72
    assert b"PARTIAL" not in again.stdout


def test_workers_end_with_a_parent_that_was_killed(command: list[str], tmp_path: Path) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("looks at /proc")
    out = tmp_path / "run"
    process = subprocess.Popen(
        [*command, "--out", str(out), "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for_lines(out / "results.jsonl", 1, process)
    process.kill()
    process.wait()

    def members() -> list[str]:
        return [stat.parent.name for stat in Path("/proc").glob("[0-9]*/stat") if group_of(stat) == process.pid]

    deadline = time.monotonic() + 20
    while members() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members() == []


def group_of(stat: Path) -> int | None:
    """Returns the process group in a /proc/PID/stat file; None for a process that is gone or waits to be collected."""
    try:
        state, _, group = stat.read_text().rpartition(") ")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return None if state == "Z" else int(group)


def test_dead_endpoint_of_a_real_edge_model_is_an_infrastructure_error(play: Runner, config: BenchConfig) -> None:
    pytest.importorskip("openai")
    suite = msgspec.structs.replace(config.suite, tasks=config.suite.tasks[:1], languages=("en",), seeds=1)
    edge = "openai:small@base_url=http://127.0.0.1:9/v1,retries=0"
    real = dataclasses.replace(config, suite=suite, strategies=("cloud_only", "edge_only"), edges=(edge,))
    assert is_heavy(real) and not is_heavy(config)
    outcome = play(changed=real)
    assert (outcome.totals.done, outcome.totals.errors, outcome.left) == (3, 3, 0)
    shown = table(real, outcome)
    assert "Real models: small." in shown and "3 in edge_only (small)" in shown
