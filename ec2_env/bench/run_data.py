"""Reads a run folder for analysis: every episode's figures, and the line of `results.jsonl` that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.grid import Cell, Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.statistics import AVERAGED_OVER, FIGURES, SCALE, Estimate, estimate, exact_mean, scaled
from ec2_env.bench.store import read_manifest
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import EpisodeKey
from ec2_env.workspace.world import Language

SETTINGS = ("suite", "tasks", "split", "seeds", "trials", "strategies", "edges", "models")
"""What is read of a manifest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """The episodes of one strategy with its models, in the order of the grid.

    Attributes:
        lines: Line of `results.jsonl` of each episode, from 1.
        keys: Which episode it is.
        task: Position of its task in the tasks of the grid, shape (episodes,).
        values: Its figures by the names of `FIGURES`, as whole multiples of 1e-9, shape (episodes,) each.
        errors: Episodes that ended in an infrastructure error; in nothing else here.
        invalid: Episodes without one valid call; they are among the others.
        missing: Episodes that have not been played.
    """

    cell: Cell
    lines: tuple[int, ...]
    keys: tuple[EpisodeKey, ...]
    task: NDArray[np.int64]
    values: Mapping[str, NDArray[np.int64]]
    errors: int
    invalid: int
    missing: int

    def counted(self, figure: str) -> NDArray[np.bool_]:
        """Says which episodes a figure is averaged over, shape (episodes,)."""
        over = AVERAGED_OVER.get(figure)
        return self.values[over] > 0 if over else np.ones(len(self.keys), dtype=bool)

    def figure(self, name: str) -> NDArray[np.float64]:
        """Returns a figure of every episode, shape (episodes,)."""
        return self.values[name] / SCALE

    def estimate(self, name: str, tasks: int, only: NDArray[np.bool_] | None = None) -> Estimate:
        """Returns a mean and its interval, over some of the episodes if asked.

        Args:
            name: Name of a figure.
            tasks: Number of tasks of the grid.
            only: Which episodes, shape (episodes,).
        """
        chosen = self.counted(name) if only is None else self.counted(name) & only
        held = self.values[name][chosen]
        if not len(held):
            return Estimate(None)
        mean = exact_mean(sum(held.tolist()), len(held))
        counts = np.bincount(self.task[chosen], minlength=tasks)
        sums = np.bincount(self.task[chosen], weights=held / SCALE, minlength=tasks)
        played = np.flatnonzero(np.bincount(self.task if only is None else self.task[only], minlength=tasks))
        return estimate(sums[played], counts[played], mean) if only is not None else estimate(sums, counts, mean)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunData:
    """A run folder.

    Attributes:
        settings: What the run's manifest holds.
        grid: Which episodes there are; its cells are the rows that were begun.
        rows: Rows in the order of the table.
        notes: What a reader must know: damage, missing episodes, errors, invalid episodes.
    """

    path: Path
    settings: Mapping[str, Any]
    grid: Grid
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.grid.tasks)

    def edges(self) -> tuple[str | None, ...]:
        """Returns the edge models, or None alone if no row has one."""
        found = tuple(dict.fromkeys(row.cell.edge for row in self.rows if row.cell.edge is not None))
        return found or (None,)

    def section(self, edge: str | None) -> tuple[Row, ...]:
        """Returns the rows that are compared with each other: those without an edge model and those with the given one."""
        return tuple(row for row in self.rows if row.cell.edge in (None, edge))


def load_run(path: Path) -> RunData:
    """Reads a run folder, and changes nothing in it; a run may still go on.

    Raises:
        ConfigurationError: if the folder is not a run, holds no result, or a line is damaged.
    """
    file = path / "results.jsonl"
    if not (path / "manifest.json").exists() or not file.exists():
        raise ConfigurationError(f"{path} is not a run folder; name one that `ec2-env bench --out` has filled")
    settings = read_manifest(path / "manifest.json")
    if missing := [name for name in SETTINGS if name not in settings]:
        raise ConfigurationError(f"{path / 'manifest.json'} lacks {missing[0]!r}; it is no manifest of this version")
    found, notes = _records(file)
    cells = _ordered({cell for cell, _ in found}, settings)
    pairs = tuple(cast("tuple[str, Language]", tuple(pair.rsplit("/", 1))) for pair in settings["tasks"])
    grid = Grid(cells, pairs, settings["split"], settings["seeds"], settings["trials"])
    rows = tuple(_row(cell, found, grid) for cell in cells)
    if not any(row.keys for row in rows):
        raise ConfigurationError(
            f"{file} holds no episode that ended without an infrastructure error; there is nothing to analyze"
        )
    return RunData(path=path, settings=settings, grid=grid, rows=rows, notes=(*notes, *_problems(rows)))


_Line = tuple[int, str, tuple[int, ...]]
"""Line number, status, and figures as multiples of 1e-9."""


def _records(file: Path) -> tuple[dict[tuple[Cell, EpisodeKey], _Line], list[str]]:
    """Returns the last word on each episode; a result takes the place of an error."""
    found: dict[tuple[Cell, EpisodeKey], _Line] = {}
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return found, [f"Line {number} of results.jsonl is cut off and left out."]
            try:
                record = msgspec.json.decode(line, type=EpisodeRecord)
                values = tuple(scaled(figure(record)) for figure in FIGURES.values())
            except (msgspec.DecodeError, KeyError, TypeError) as error:
                raise ConfigurationError(f"{file}: line {number} is no record of this version ({error!r})") from error
            place = record.cell, record.key
            if place in found and found[place][1] != "error":
                raise ConfigurationError(f"{file}: line {number} repeats line {found[place][0]}; remove one of the two lines")
            found[place] = number, str(record.result["status"]), values
    return found, []


def _ordered(cells: set[Cell], settings: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Returns the rows in the order of the table: those without an edge model first, then by edge model."""
    strategies, edges = list(settings["strategies"]), [None, *settings["edges"]]
    for cell in cells:
        if cell.strategy not in strategies or cell.edge not in edges:
            raise ConfigurationError(f"{cell.strategy} on {cell.edge} is not part of this run; its records must not be here")
    return tuple(sorted(cells, key=lambda cell: (edges.index(cell.edge), strategies.index(cell.strategy))))


def _row(cell: Cell, found: Mapping[tuple[Cell, EpisodeKey], _Line], grid: Grid) -> Row:
    numbered = []
    for (other, key), line in found.items():
        if other == cell:
            if (number := grid.number(cell, key)) is None:
                raise ConfigurationError(f"{cell.strategy} on {key} is not part of this run; its record must not be here")
            numbered.append((number, key, line))
    numbered.sort(key=lambda one: one[0])
    ended = [(key, line) for _, key, line in numbered if line[1] != "error"]
    places = {task: place for place, task in enumerate(grid.tasks)}
    columns = np.array([line[2] for _, line in ended], dtype=np.int64).reshape(len(ended), len(FIGURES))
    return Row(
        cell=cell,
        lines=tuple(line[0] for _, line in ended),
        keys=tuple(key for key, _ in ended),
        task=np.array([places[key.task] for key, _ in ended], dtype=np.int64),
        values={name: columns[:, column] for column, name in enumerate(FIGURES)},
        errors=len(numbered) - len(ended),
        invalid=sum(line[1] == "invalid" for _, line in ended),
        missing=grid.row - len(numbered),
    )


def _problems(rows: tuple[Row, ...]) -> list[str]:
    meanings = {
        "missing": "not played yet",
        "errors": "that ended in an infrastructure error, in no figure",
        "invalid": "without one valid call, counted as failures",
    }
    notes = []
    for kind, meaning in meanings.items():
        named = [f"{getattr(row, kind)} in {name_of(row.cell)}" for row in rows if getattr(row, kind)]
        notes += [f"Episodes {meaning}: {', '.join(named)}."] if named else []
    return notes


def name_of(cell: Cell) -> str:
    """Returns the strategy, with its edge model in parentheses."""
    return cell.strategy + (f" ({cell.edge})" if cell.edge else "")
