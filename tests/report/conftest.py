"""A small run that was really played, and run folders written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env.bench.grid import BenchConfig, Cell
from ec2_env.bench.progress import Quiet
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.runner import run
from ec2_env.bench.store import write_json
from ec2_env.bench.suites import Suite
from ec2_env.rollout import EpisodeKey

CELLS = (Cell("cloud_only", None, "sim:big"), Cell("edge_only", "sim:small", "sim:big"), Cell("random", "sim:small", "sim:big"))
PAIRS = (("forward_invoice", "en"), ("forward_invoice", "zh"), ("config_drift", "en"))
Made = Callable[..., Path]
RecordMaker = Callable[..., EpisodeRecord]
Result = Mapping[str, Any]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run of two tasks that kept its trajectories. Not to be changed."""
    path = tmp_path_factory.mktemp("runs") / "kept"
    suite = Suite(about="for tests", tasks=("config_drift", "forward_invoice"), languages=("en", "zh"), seeds=1, trials=1)
    config = BenchConfig(
        name="small",
        suite=suite,
        strategies=("edge_only", "cloud_only", "step_routing:redacted"),
        edges=("sim:qwen3.5-9b",),
        cloud="sim:gpt-5.4",
        trajectories=True,
    )
    run(config, path, workers=1, watch=Quiet(silent=True))
    return path


def settings(cells: Sequence[Cell] = CELLS, **changes: Any) -> dict[str, Any]:
    """Returns the settings of a manifest with made-up models."""
    edges = list(dict.fromkeys(cell.edge for cell in cells if cell.edge is not None))
    models = {spec: {"name": spec.partition(":")[2], "simulated": True, "parameters": None} for spec in (*edges, cells[0].cloud)}
    return {
        "version": "0.1.0",
        "code": "c" * 64,
        "suite": "made-up",
        "suite_digest": "d" * 64,
        "tasks": [f"{task}/{language}" for task, language in PAIRS],
        "split": "test",
        "seeds": 1,
        "trials": 2,
        "strategies": list(dict.fromkeys(cell.strategy for cell in cells)),
        "edges": edges,
        "cloud": cells[0].cloud,
        "models": models,
        "weights": {"task": 1.0, "cost": 0.15, "privacy": 0.25},
        **changes,
    }


def detailed(
    plain: RecordMaker, cell: Cell, pair: tuple[str, str], trial: int, completion: float, changes: Result
) -> EpisodeRecord:
    """Returns a record of a run with one seed, with what a result holds beside its figures; `changes` go into the result."""
    result = {
        "checks": {"sent": completion, "reported": 1.0},
        "forbidden": [],
        "strays": 0,
        "exposed": [],
        "touched": ["iban-1", "phone-1"],
        "units": 3,
        **changes,
    }
    key = EpisodeKey(task=pair[0], language=pair[1], split="test", seed=0, trial=trial)
    return plain(cell, key, completion, **result)


def completion_of(cell: Cell, pair: tuple[str, str]) -> float:
    """Returns what a made-up row completes of a task: the cloud everything, the edge nothing of one task."""
    return {"cloud_only": 1.0, "edge_only": 0.0 if pair[0] == "config_drift" else 0.8}.get(cell.strategy, 0.5)


@pytest.fixture
def made(tmp_path: Path, plain_record: RecordMaker) -> Made:
    """Returns a function that writes a run folder of two trials of each pair in each row.

    `changes` go into the results of the rows whose strategy they are given for, `manifest` into the settings.
    """

    def write(
        name: str = "made",
        cells: Sequence[Cell] = CELLS,
        changes: Mapping[str, Mapping[str, Any]] | None = None,
        manifest: Mapping[str, Any] | None = None,
    ) -> Path:
        path = tmp_path / name
        path.mkdir(parents=True)
        write_json(path / "manifest.json", {"settings": settings(cells, **(manifest or {})), "about": {}})
        records = [
            detailed(plain_record, cell, pair, trial, completion_of(cell, pair), (changes or {}).get(cell.strategy, {}))
            for cell in cells
            for pair in PAIRS
            for trial in range(2)
        ]
        (path / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(one, order="sorted") + b"\n" for one in records))
        return path

    return write
