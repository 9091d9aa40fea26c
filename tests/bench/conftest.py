"""Small suites, and records made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env.bench.grid import BenchConfig, Cell, Grid
from ec2_env.bench.progress import Quiet
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.runner import Outcome, run
from ec2_env.bench.suites import Suite
from ec2_env.task import task_domains

RecordMaker = Callable[..., EpisodeRecord]
Runner = Callable[..., Outcome]


@pytest.fixture
def config() -> BenchConfig:
    """Returns 72 episodes of two tasks; one of its strategies has to be scored offline."""
    names = task_domains()["email"][:2]
    suite = Suite(about="for tests", tasks=names, seeds=2, trials=3, calibration_seeds=1)
    strategies = ("cloud_only", "task_routing", "step_routing")
    return BenchConfig(name="email", suite=suite, strategies=strategies, edges=("sim:qwen3.5-9b",), cloud="sim:gpt-5.4")


@pytest.fixture
def play(config: BenchConfig, tmp_path: Path) -> Runner:
    """Returns a function that runs the small suite; keyword arguments go to `run`."""

    def played(folder: str = "run", *, changed: BenchConfig | None = None, **settings: Any) -> Outcome:
        return run(changed or config, tmp_path / folder, **{"workers": 1, "watch": Quiet(silent=True), **settings})

    return played


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run folder with trajectories that no test may change: 14 episodes, one strategy prepared offline."""
    suite = Suite(about="for tests", tasks=("data_request", "forward_invoice"), languages=("en",), seeds=1, trials=1)
    kinds = (
        "cloud_only",
        "cloud_only:redacted",
        "task_routing",
        "step_routing",
        "step_routing:redacted",
        "random",
        "sketch_guided",
    )
    made = BenchConfig(
        name="email",
        suite=msgspec.structs.replace(suite, calibration_seeds=1),
        strategies=kinds,
        edges=("sim:qwen3.5-9b",),
        cloud="sim:gpt-5.4",
        trajectories=True,
    )
    path = tmp_path_factory.mktemp("stored") / "run"
    run(made, path, workers=1, watch=Quiet(silent=True))
    return path


@pytest.fixture
def grid() -> Grid:
    """Returns two strategies on two made-up tasks, one of them in two languages; two instances, three trials."""
    cells = (Cell("left", "edge", "cloud"), Cell("right", None, "cloud"))
    return Grid(cells, (("ask", "en"), ("ask", "zh"), ("tell", "en")), "test", 2, 3)


@pytest.fixture
def record(grid: Grid, plain_record: RecordMaker) -> RecordMaker:
    """Returns a function that makes the record of the numbered episode of `grid`."""

    def made(number: int, completion: float = 1.0, **changes: Any) -> EpisodeRecord:
        cell, key = grid.episode(number)
        return plain_record(cell, key, completion, **changes)

    return made


@pytest.fixture
def run_folder(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function that writes records as a run folder."""

    def made(grid: Grid, records: Sequence[EpisodeRecord], name: str = "run") -> Path:
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        settings = {
            "suite": "made up",
            "tasks": [f"{task}/{language}" for task, language in grid.pairs],
            "split": grid.split,
            "seeds": grid.seeds,
            "trials": grid.trials,
            "strategies": list(dict.fromkeys(cell.strategy for cell in grid.cells)),
            "edges": list(dict.fromkeys(cell.edge for cell in grid.cells if cell.edge)),
            "models": {"cloud": {"simulated": True}},
        }
        (path / "manifest.json").write_bytes(msgspec.json.encode({"settings": settings}))
        (path / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in records))
        return path

    return made
