"""A small run that kept its trajectories, and runs made of it by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.progress import Quiet
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.runner import run
from ec2_env.bench.suites import Suite
from ec2_env.trace import Trajectory, from_json, to_json
from ec2_env.view.runs import Run, open_run

Change = Callable[[EpisodeRecord, Trajectory], tuple[EpisodeRecord, Trajectory]]


def play(folder: Path, **changes: Any) -> None:
    """Plays a mail and a config task with three strategies: fourteen sensitive values, redaction, files that change."""
    suite = Suite(
        about="for tests",
        tasks=("config_drift", "forward_invoice"),
        languages=("en", "zh"),
        seeds=1,
        trials=1,
        calibration_seeds=1,
    )
    strategies = ("cloud_only", "task_routing", "step_routing:redacted")
    settings: dict[str, Any] = {"strategies": strategies, "trajectories": True, **changes}
    config = BenchConfig(name="small", suite=suite, edges=("sim:qwen3.5-9b",), cloud="sim:gpt-5.4", **settings)
    run(config, folder, workers=1, watch=Quiet(silent=True))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run that kept its trajectories. Not to be changed."""
    path = tmp_path_factory.mktemp("runs") / "kept"
    play(path)
    return path


@pytest.fixture(scope="session")
def small(folder: Path) -> Run:
    """Returns that run."""
    return open_run(folder)


@pytest.fixture
def changed(folder: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Returns a function that copies the run with its first episode changed, and returns the new folder."""

    def copied(change: Change, name: str = "changed") -> Path:
        path = tmp_path / name
        shutil.copytree(folder, path)
        records = (path / "results.jsonl").read_bytes().splitlines()
        lines = (path / "trajectories.jsonl").read_bytes().splitlines()
        record, trajectory = change(msgspec.json.decode(records[0], type=EpisodeRecord), from_json(lines[0]))
        records[0], lines[0] = msgspec.json.encode(record), to_json(trajectory)
        (path / "results.jsonl").write_bytes(b"".join(line + b"\n" for line in records))
        (path / "trajectories.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return copied
