"""The list of a run's episodes: what the page filters and sorts, a row an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ec2_env
from ec2_env.bench.manifest import code_digest
from ec2_env.bench.records import EpisodeRecord
from ec2_env.errors import EC2Error
from ec2_env.task import tasks
from ec2_env.view.runs import Run
from ec2_env.view.steps import weights_of

COLUMNS = (
    "id",
    "task",
    "language",
    "seed",
    "trial",
    "strategy",
    "edge",
    "cloud",
    "status",
    "completion",
    "privacy",
    "exposed",
    "units",
    "calls",
    "usd",
    "steps",
    "reward",
)
"""What a row holds, in this order. Completion and privacy are shares, `exposed` counts values that crossed."""


def episode_id(index: int, number: int) -> str:
    """Returns what names an episode in the page's address: its number, with a B before it if it is of the second run."""
    return f"{'B' if index else ''}{number}"


def listing(runs: tuple[Run, ...]) -> dict[str, Any]:
    """Returns the runs and their episodes as plain data. Episodes that are the same but for the strategy follow each other."""
    rows = [(index, number, record) for index, run in enumerate(runs) for number, record in run.records.items()]
    rows.sort(key=lambda row: (row[2].task, row[2].language, row[2].seed, row[2].trial, row[0], row[1]))
    return {
        "columns": COLUMNS,
        "rows": [_row(episode_id(index, number), record) for index, number, record in rows],
        "runs": [_about(run) for run in runs],
        "titles": {name: _title(name) for name in sorted({record.task for _, _, record in rows})},
        "version": ec2_env.__version__,
    }


def _row(name: str, record: EpisodeRecord) -> list[Any]:
    result: Mapping[str, Any] = record.result
    return [
        name,
        record.task,
        record.language,
        record.seed,
        record.trial,
        record.strategy,
        record.edge,
        record.cloud,
        str(result.get("status")),
        result.get("completion", 0.0),
        result.get("privacy", 1.0),
        len(result.get("exposed") or ()),
        result.get("units", 0),
        result.get("cloud_calls", 0),
        result.get("cloud_usd", 0.0),
        result.get("steps", 0),
        record.total,
    ]


def _about(run: Run) -> dict[str, Any]:
    weights = weights_of(run.settings)
    models = run.settings.get("models")
    simulated = isinstance(models, dict) and all(isinstance(card, dict) and card.get("simulated") for card in models.values())
    return {
        "name": run.name,
        "suite": str(run.settings.get("suite")),
        "simulated": simulated,
        "same_code": run.settings.get("code") == code_digest(),
        "weights": {"task": weights.task, "cost": weights.cost, "privacy": weights.privacy},
    }


def _title(name: str) -> str:
    try:
        return tasks.get(name).title
    except EC2Error:
        return name
