"""The episodes behind one figure of a table, with the lines that they are recorded on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ec2_env.bench.layout import Table
from ec2_env.bench.run_data import Row, RunData, name_of
from ec2_env.bench.statistics import FIGURES, PASS_K, exact_mean, mean_of, pass_hat_k
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.rollout import EpisodeKey

PASS_FIGURE = f"pass_hat_{PASS_K}"
TRACEABLE = (*FIGURES, PASS_FIGURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One summand of a mean.

    Attributes:
        lines: Lines of `results.jsonl`, from 1: that of the episode, or those of the trials of an instance.
        episode: The episode in words.
        value: What it adds to the mean.
    """

    lines: tuple[int, ...]
    episode: str
    value: float


def parts_of(row: Row, figure: str) -> tuple[tuple[Part, ...], float | None]:
    """Returns what a figure is the mean of, and that mean, to the last digit the one of the table.

    Raises:
        UnknownName: if there is no such figure.
    """
    if figure == PASS_FIGURE:
        parts = tuple(_instances(row))
        return parts, mean_of(part.value for part in parts)
    if figure not in FIGURES:
        raise UnknownName("figure", figure, TRACEABLE)
    counted = row.counted(figure)
    exact = [int(value) for value, is_in in zip(row.values[figure], counted, strict=True) if is_in]
    values = [float(value) for value, is_in in zip(row.figure(figure), counted, strict=True) if is_in]
    places = [place for place, is_in in enumerate(counted) if is_in]
    parts = tuple(
        Part(lines=(row.lines[place],), episode=f"{_instance(row.keys[place])}, trial {row.keys[place].trial}", value=value)
        for place, value in zip(places, values, strict=True)
    )
    return parts, exact_mean(sum(exact), len(exact)) if exact else None


def _instances(row: Row) -> list[Part]:
    trials: dict[str, list[int]] = {}
    for place, key in enumerate(row.keys):
        trials.setdefault(_instance(key), []).append(place)
    passed = row.figure("passed")
    return [
        Part(
            lines=tuple(row.lines[place] for place in places),
            episode=name,
            value=pass_hat_k(int(sum(passed[place] for place in places)), len(places), PASS_K),
        )
        for name, places in trials.items()
        if len(places) >= PASS_K
    ]


def _instance(key: EpisodeKey) -> str:
    return f"{key.task}/{key.language}/{key.split}/{key.seed}"


def row_of(run: RunData, strategy: str, edge: str | None) -> Row:
    """Returns the one row of a strategy, on an edge model if the run has it on several.

    Raises:
        UnknownName: if the run has no such strategy.
        ConfigurationError: if the edge model has to be named, or is not one of the run's.
    """
    rows = [row for row in run.rows if row.cell.strategy == strategy]
    if not rows:
        raise UnknownName("strategy of this run", strategy, {row.cell.strategy for row in run.rows})
    fitting = [row for row in rows if edge is None or row.cell.edge in (None, edge)]
    if len(fitting) == 1:
        return fitting[0]
    edges = ", ".join(str(row.cell.edge) for row in rows)
    raise ConfigurationError(f"{strategy} was run on {edges}; name one with --edge")


def trace_table(run: RunData, row: Row, figure: str) -> Table:
    """Returns the episodes behind a figure as a table."""
    parts, mean = parts_of(row, figure)
    unit = "instances of three trials or more" if figure == PASS_FIGURE else "episodes"
    total = "there is nothing to take a mean of" if mean is None else f"their mean is {mean!r}"
    about: list[Mapping[str, object]] = [
        {"figure": figure, "strategy": row.cell.strategy, "edge": row.cell.edge, "lines": part.lines, "episode": part.episode}
        | {"value": part.value}
        for part in parts
    ]
    return Table(
        name="trace",
        title=f"{figure} of {name_of(row.cell)} in {run.path.name}: {len(parts):,} {unit}; {total}",
        head=("episode", "value", "line of results.jsonl"),
        sections=[
            ("", [(part.episode, f"{part.value:.9g}", " ".join(map(str, part.lines))) for part in parts]),
        ],
        notes=run.notes,
        data=about,
    )
