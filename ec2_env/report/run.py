"""Reads a run folder, line by line, into the figures that a page shows. Writes nothing, loads no model or strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from ec2_env.bench.grid import Cell, Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.statistics import Estimate, Summary, Totals
from ec2_env.bench.store import read_manifest
from ec2_env.bench.stored_runs import lines_in
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.report.crossings import Crossings, read_crossings
from ec2_env.report.tally import Place, Tally
from ec2_env.task import tasks

MOST_EPISODES = 20_000_000
"""A manifest that speaks of more is damaged: some bytes are held for each episode."""
UNKNOWN = "other"
"""Category of tasks that are not installed here."""
T = TypeVar("T")


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest says of a model."""

    name: str
    simulated: bool
    parameters: float | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says of how a run was made: a part of its manifest, under the same names."""

    version: str
    code: str
    suite: str
    suite_digest: str
    tasks: tuple[str, ...]
    split: str
    seeds: int
    trials: int
    strategies: tuple[str, ...]
    edges: tuple[str, ...]
    cloud: str
    models: dict[str, Card]
    weights: dict[str, float]
    prices: dict[str, str] | None = None
    max_steps: int | None = None
    not_measured: tuple[str, ...] = ()

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Returns the (task, language) pairs in the order of the run."""
        return tuple((task, language) for task, _, language in (name.rpartition("/") for name in self.tasks))


class _Head(msgspec.Struct):
    strategy: str
    edge: str | None
    cloud: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that is shown of a run.

    Attributes:
        name: Name of its folder.
        folders: Names of the run folders inside it; one empty name if it is a run folder itself.
        cards: Models by specification.
        totals: Sums over all episodes.
        summaries: Rows of the table.
        by_category: Category and rows, in the order of size.
        by_language: Language and rows.
        tally: Checks, leaks, ends of episodes.
        crossings: How values crossed; None without trajectories.
        notes: What a reader has to know about the folder.
    """

    name: str
    folders: tuple[str, ...]
    settings: Settings
    cards: Mapping[str, Card]
    totals: Totals
    summaries: tuple[Summary, ...]
    by_category: tuple[tuple[str, tuple[Summary, ...]], ...]
    by_language: tuple[tuple[str, tuple[Summary, ...]], ...]
    tally: Tally
    crossings: Crossings | None
    notes: tuple[str, ...]


def read_run(path: Path) -> Run:
    """Reads a run folder, or a folder of run folders that share suite, split, seeds and trials.

    Needs about four bytes for each episode, whatever the records hold.

    Raises:
        ConfigurationError: if it is none, or a file in it is damaged.
    """
    folders = _folders(path)
    manifests = {folder.name: _settings(folder / "manifest.json") for folder in folders}
    first = next(iter(manifests.values()))
    _check_alike(path, manifests)
    cells, notes = _cells(folders, list(manifests.values()))
    grid = Grid(cells, first.pairs(), first.split, first.seeds, first.trials)  # type: ignore[arg-type]  # any language will do
    if len(grid) > MOST_EPISODES:
        raise ConfigurationError(f"{path}: the manifest speaks of {len(grid):,} episodes; it seems to be damaged")
    categories = _grouped(grid, {task: _category(task) for task in grid.tasks})
    languages = {
        language: [pair for pair in grid.pairs if pair[1] == language]
        for language in sorted({language for _, language in grid.pairs})
    }
    totals, tally = Totals(grid), Tally(grid)
    parts = [_parts(grid, categories.values()), _parts(grid, languages.values())]
    for number, folder in enumerate(folders):
        for line, record in _lines(folder, EpisodeRecord):
            try:
                totals.add(record)
                tally.add(record, Place(number, line))
                for part in parts:
                    part[record.task, record.language].add(record)
            except ConfigurationError:
                raise
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigurationError(
                    f"{folder / 'results.jsonl'}: line {line} is of another form than this version writes ({error!r})"
                ) from error
    unknown = sorted({name for settings in manifests.values() for name in settings.not_measured})
    if unknown:
        notes.append(f"Not measured where these runs were made, and left blank: {', '.join(unknown)}.")
    crossings = read_crossings([folder / "trajectories.jsonl" for folder in folders])
    return Run(
        name=path.resolve().name,
        folders=("",) if folders == [path] else tuple(folder.name for folder in folders),
        settings=first,
        cards={spec: card for settings in manifests.values() for spec, card in settings.models.items()},
        totals=totals,
        summaries=_blanked(totals.summaries(), unknown),
        by_category=tuple((name, _blanked(parts[0][pairs[0]].summaries(), unknown)) for name, pairs in categories.items()),
        by_language=tuple((name, _blanked(parts[1][pairs[0]].summaries(), unknown)) for name, pairs in languages.items()),
        tally=tally,
        crossings=crossings,
        notes=tuple(notes),
    )


def _blanked(summaries: Sequence[Summary], unknown: Sequence[str]) -> tuple[Summary, ...]:
    """Returns the rows with nothing where a figure was not measured: an imported record holds a number there all the same."""
    blank = dict.fromkeys(unknown, Estimate(None))
    return tuple(replace(row, figures={**row.figures, **blank}) for row in summaries)


def _folders(path: Path) -> list[Path]:
    if (path / "manifest.json").is_file():
        return [path]
    found = sorted(file.parent for file in path.glob("*/manifest.json")) if path.is_dir() else []
    if not found:
        raise ConfigurationError(f"{path} is no run folder: it has no manifest.json; name the folder that `ec2-env bench` wrote")
    return found


def _settings(file: Path) -> Settings:
    try:
        settings = msgspec.convert(read_manifest(file), Settings)
    except (msgspec.ValidationError, OSError) as error:
        raise ConfigurationError(f"{file} is not a manifest that a report can be made of: {error}") from error
    if settings.seeds < 1 or settings.trials < 1 or not settings.tasks:
        raise ConfigurationError(f"{file} is not a manifest that a report can be made of: it has no episodes")
    missing = [spec for spec in (*settings.edges, settings.cloud) if spec not in settings.models]
    if missing:
        raise ConfigurationError(f"{file} says nothing of the model {missing[0]!r}")
    return settings


def _check_alike(path: Path, manifests: Mapping[str, Settings]) -> None:
    seen: dict[object, str] = {}
    for name, settings in manifests.items():
        seen.setdefault((settings.suite_digest, settings.tasks, settings.split, settings.seeds, settings.trials), name)
    if len(seen) > 1:
        one, other = list(seen.values())[:2]
        raise ConfigurationError(f"{path} holds runs of different episodes ({one} and {other}); name one of the run folders")


def _cells(folders: Sequence[Path], manifests: Sequence[Settings]) -> tuple[tuple[Cell, ...], list[str]]:
    """Returns the rows that records name, in the order of `BenchConfig.cells`, and what is not there yet."""
    cells, notes = list[Cell](), list[str]()
    for folder, settings in zip(folders, manifests, strict=True):
        found = dict.fromkeys(Cell(head.strategy, head.edge, head.cloud) for _, head in _lines(folder, _Head))
        alone = {cell.strategy for cell in found if cell.edge is None}
        played = {cell.strategy for cell in found}
        cells += [Cell(name, None, settings.cloud) for name in settings.strategies if name in alone]
        cells += [
            Cell(name, edge, settings.cloud) for edge in settings.edges for name in settings.strategies if name in played - alone
        ]
        waiting = [name for name in settings.strategies if name not in played]
        if waiting:
            notes.append(f"Not played yet, and in no table: {', '.join(waiting)}.")
    if not cells:
        raise ConfigurationError(f"{folders[0]} holds no episodes yet; run `ec2-env bench` first")
    return tuple(dict.fromkeys(cells)), notes


def _lines(folder: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    file = folder / "results.jsonl"
    return lines_in(file, kind) if file.exists() else iter(())


def _category(task: str) -> str:
    try:
        return tasks.get(task).category
    except UnknownName:
        return UNKNOWN


def _grouped(grid: Grid, groups: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Returns the pairs of each category, the largest category first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for pair in grid.pairs:
        found.setdefault(groups[pair[0]], []).append(pair)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _parts(grid: Grid, groups: Iterable[Sequence[tuple[str, str]]]) -> dict[tuple[str, str], Totals]:
    """Returns, for each pair, the sums over its group."""
    found: dict[tuple[str, str], Totals] = {}
    for pairs in groups:
        part = Totals(Grid(grid.cells, tuple(pairs), grid.split, grid.seeds, grid.trials))  # type: ignore[arg-type]
        found.update(dict.fromkeys(pairs, part))
    return found
