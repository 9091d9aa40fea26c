"""Figures of a run as they come: always into `metrics.jsonl`, and into TensorBoard, Trackio or wandb only if the user asked.

A line holds the stage, the step in it, and numbers. Nothing is sent anywhere unless `log_to` named something that sends.

    with Metrics(out) as metrics:
        metrics.log("grpo", step, reward=0.4, entropy=1.1)
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, get_args

from ec2_env.errors import ConfigurationError, MissingExtra
from ec2_env.training.stages import write_whole

Tracker = Literal["tensorboard", "trackio", "wandb"]
TRACKERS: tuple[Tracker, ...] = get_args(Tracker)
FILE = "metrics.jsonl"
PROJECT = "ec2-env"

_chosen: list[str] = []


class Sink(Protocol):
    """Where figures also go."""

    def log(self, stage: str, step: int, values: dict[str, float]) -> None:
        """Takes figures of one step of a stage."""
        ...

    def close(self) -> None:
        """Writes what is left."""
        ...


def log_to(tracker: str | None) -> None:
    """Chooses for this process what the metrics of all runs also go to; None for the file alone.

    Raises:
        ConfigurationError: if there is no such tracker.
        MissingExtra: if it is not installed.
    """
    _chosen.clear()
    if tracker is None:
        return
    if tracker not in TRACKERS:
        raise ConfigurationError(f"metrics go to {tracker!r}, expected {', '.join(TRACKERS)}, or nothing for the file alone")
    _module(tracker)
    _chosen.append(tracker)


class Metrics:
    """The figures of one run.

    Args:
        out: Folder of the run. A file that is there is written on.
    """

    def __init__(self, out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.path = out / FILE
        self._sinks = [SINKS[tracker](out) for tracker in _chosen]

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def log(self, stage: str, step: int, **values: float) -> None:
        """Takes down figures.

        Args:
            stage: Of the run, such as "ppo".
            step: In the stage, rising.
            values: Figures by name; what is not finite is left out of the line.
        """
        numbers = {name: float(value) for name, value in values.items() if abs(float(value)) < float("inf")}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"stage": stage, "step": int(step), **numbers}) + "\n")
        for sink in self._sinks:
            sink.log(stage, int(step), numbers)

    def rewind(self, stage: str, step: int) -> None:
        """Forgets in the file what was taken down of a stage after a step, because it is done again from there."""
        if self.path.exists():
            lines = [line for line in self.path.read_text(encoding="utf-8").splitlines() if _stands(line, stage, step)]
            write_whole(self.path, "".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Closes what figures also went to."""
        for sink in self._sinks:
            sink.close()
        self._sinks = []


def _stands(line: str, stage: str, step: int) -> bool:
    try:
        found = json.loads(line)
    except ValueError:  # torn off when the process was killed
        return False
    return bool(found["stage"] != stage or found["step"] <= step)


def _module(tracker: str) -> Any:
    """Imports what a tracker is made with."""
    module = "torch.utils.tensorboard" if tracker == "tensorboard" else tracker
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = "torch tensorboard" if tracker == "tensorboard" else tracker
        raise MissingExtra(f"metrics are to go to {tracker}, which is not installed; run: pip install {package}") from error


class _TensorBoard:
    """Event files in the folder `tensorboard` of the run."""

    def __init__(self, out: Path) -> None:
        self._writer = _module("tensorboard").SummaryWriter(log_dir=str(out / "tensorboard"))

    def log(self, stage: str, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{stage}/{name}", value, step)

    def close(self) -> None:
        self._writer.close()


class _Dashboard:
    """Trackio or wandb, which have the same functions; a run is named by its folder."""

    def __init__(self, tracker: str, out: Path) -> None:
        self._run = _module(tracker).init(project=PROJECT, name=out.as_posix().strip("/").replace("/", "-"))

    def log(self, stage: str, step: int, values: dict[str, float]) -> None:
        named = {f"{stage}/{name}": value for name, value in values.items()}
        self._run.log({**named, f"{stage}/step": step})  # as a figure: each stage counts from 0, and wandb's own steps only rise

    def close(self) -> None:
        self._run.finish()


SINKS: dict[str, Callable[[Path], Sink]] = {
    "tensorboard": _TensorBoard,
    "trackio": lambda out: _Dashboard("trackio", out),
    "wandb": lambda out: _Dashboard("wandb", out),
}
