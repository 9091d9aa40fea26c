"""Tables of where the spread of completion comes from, and of the trials that a margin takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from typing import Any

import numpy as np

from ec2_env.bench.layout import Table
from ec2_env.bench.run_data import Row, RunData
from ec2_env.bench.variance import Components, Crossed, crossed_components, nested_components

ALONE = ("edge_only", "cloud_only")


def variance_tables(run: RunData, margin: float) -> list[Table]:
    """Returns the split of each row's variance, and that over models where a strategy was run on several.

    Args:
        run: What was played.
        margin: Half-width of an interval, in points of completion.
    """
    return [_nested(run, margin), *_crossed(run)]


def _nested(run: RunData, margin: float) -> Table:
    instances = len(run.grid.pairs) * run.grid.seeds / run.tasks
    sections: dict[str, list[list[str]]] = {}
    data: list[Mapping[str, Any]] = []
    for row in run.rows:
        found = nested_components(
            row.figure("completion"), [key.task for key in row.keys], [(key.language, key.seed) for key in row.keys]
        )
        if found is None:
            continue
        heading = f"edge {row.cell.edge}" if row.cell.edge else "no edge model"
        now, least = (100 * found.margin(run.tasks, instances, trials) for trials in (run.grid.trials, None))
        needed = found.trials_for(margin / 100, run.tasks, instances) if found.trial is not None else None
        cells = [row.cell.strategy, *_spread(found), f"{now:.1f}", f"{least:.1f}" if found.trial is not None else "-"]
        sections.setdefault(heading, []).append([*cells, "-" if found.trial is None else str(needed or "none")])
        data.append({**row.cell._asdict(), **asdict(found), "margin": now / 100, "least": least / 100, "trials": needed})
    notes = [
        "Standard deviations of completion, in points, and shares of the variance of one episode. Nested analysis of "
        "variance, method of moments. Margin: half of a 95% interval for this run, tasks being a sample of many like them; "
        f"least: with any number of trials. Trials: the number per instance that gives +-{margin:g} points; none: no number "
        "does, for tasks differ.",
    ]
    if instances == 1:
        notes.append("One instance a task: what differs between instances is part of 'task'.")
    head = ("strategy", "task", "instance", "trial", "task %", "inst. %", "trial %", "margin", "least", f"trials for {margin:g}")
    title = f"Where the spread of completion comes from, run {run.path.name}"
    return Table(name="variance", title=title, head=head, sections=list(sections.items()), notes=notes, data=data)


def _spread(found: Components) -> list[str]:
    parts = (found.task, found.instance, found.trial)
    total = sum(part or 0.0 for part in parts)
    deviations = ["-" if part is None else f"{100 * sqrt(part):.1f}" for part in parts]
    return deviations + ["-" if part is None or not total else f"{100 * part / total:.0f}" for part in parts]


def _crossed(run: RunData) -> list[Table]:
    """Returns the split over models: of the models alone, and of each strategy that was run on several edge models."""
    groups: dict[str, list[Row]] = {"models alone": [row for row in run.rows if row.cell.strategy in ALONE]}
    for row in run.rows:
        if row.cell.edge and row.cell.strategy not in ALONE:
            groups.setdefault(row.cell.strategy, []).append(row)
    rows, data = [], list[Mapping[str, Any]]()
    for name, members in groups.items():
        if (found := _of_models(members)) is not None:
            rows.append([name, str(len(members)), *_crossed_cells(found)])
            data.append({"rows": name, "models": len(members), **asdict(found)})
    if not rows:
        return []
    notes = [
        "The same tasks done with several models (for a strategy: edge models). Standard deviations in points, and shares. "
        "model: how much better one model is than another; task x model: what one finds hard and another does not; trial: "
        "within a task and a model, instances included. Two-way random effects, method of moments. From two or three models, "
        "'model' is a rough figure.",
    ]
    head = ("rows", "models", "task", "model", "task x model", "trial", "task %", "model %", "t x m %", "trial %")
    title = f"Spread of completion over tasks, models and trials, run {run.path.name}"
    return [Table(name="models", title=title, head=head, sections=[("", rows)], notes=notes, data=data)]


def _of_models(members: Sequence[Row]) -> Crossed | None:
    common = [task for task in dict.fromkeys(members[0].task.tolist()) if all((row.task == task).any() for row in members)]
    values = [[row.figure("completion")[np.flatnonzero(row.task == task)] for task in common] for row in members]
    return crossed_components(values)


def _crossed_cells(found: Crossed) -> list[str]:
    parts = (found.task, found.model, found.both, found.trial)
    total = sum(part or 0.0 for part in parts)
    return ["-" if part is None else f"{100 * sqrt(part):.1f}" for part in parts] + [
        "-" if part is None or not total else f"{100 * part / total:.0f}" for part in parts
    ]
