"""Reads run folders without playing anything: manifests, records and trajectories, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from ec2_env.bench.grid import BenchConfig, Cell, Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.store import read_manifest
from ec2_env.bench.suites import Suite, checked, load_suite
from ec2_env.errors import ConfigurationError, EC2Error
from ec2_env.models.base import ModelCard
from ec2_env.reward import reward_weights
from ec2_env.trace import Trajectory
from ec2_env.workspace.world import Language

LineT = TypeVar("LineT", EpisodeRecord, Trajectory)
AnyT = TypeVar("AnyT")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run folder that is only read.

    Attributes:
        path: The folder.
        settings: Its manifest.
        results: Its records.
        kept: Its trajectories, in the order of the records; None if it kept none.
    """

    path: Path
    settings: Mapping[str, Any]
    results: Path
    kept: Path | None

    def pairs(self) -> tuple[tuple[str, Language], ...]:
        """Returns the (task, language) pairs."""
        return tuple(cast("tuple[str, Language]", tuple(pair.rsplit("/", 1))) for pair in self.settings["tasks"])

    def grid(self, cells: tuple[Cell, ...]) -> Grid:
        """Returns the episodes of some rows."""
        settings = self.settings
        return Grid(cells, self.pairs(), settings["split"], settings["seeds"], settings["trials"])

    def calibration(self) -> Grid:
        """Returns the episodes that the run scored its offline routers on."""
        cloud = self.settings["cloud"]
        cells = (Cell("cloud_only", None, cloud), *(Cell("edge_only", edge, cloud) for edge in self.settings["edges"]))
        return Grid(cells, self.pairs(), "train", self.settings["calibration_seeds"], 1)

    def card(self, spec: str) -> ModelCard:
        """Returns what the manifest says of a model; the model is not loaded."""
        return msgspec.convert(self.settings["models"][spec], ModelCard)

    def simulated(self, cell: Cell) -> bool:
        """Says whether all models of a row are simulated."""
        return all(self.card(spec).simulated for spec in (cell.cloud, cell.edge) if spec is not None)

    def ordered(self, cells: set[Cell]) -> tuple[Cell, ...]:
        """Returns rows in the order of the table: those without an edge model first, then by edge model.

        Raises:
            ConfigurationError: if a row is not part of the run.
        """
        strategies, edges = list(self.settings["strategies"]), [None, *self.settings["edges"]]
        for cell in cells:
            if cell.strategy not in strategies or cell.edge not in edges or cell.cloud != self.settings["cloud"]:
                raise ConfigurationError(
                    f"{cell.strategy} on {cell.edge} is not part of {self.path}; its records must not be here"
                )
        return tuple(sorted(cells, key=lambda cell: (edges.index(cell.edge), strategies.index(cell.strategy))))


def open_run(path: Path, doing: str) -> StoredRun:
    """Opens a run folder of this package.

    Args:
        path: The folder.
        doing: What is to be done with it, for the error ("replayed").

    Raises:
        ConfigurationError: if it is no run folder, or holds imported or rescored records.
    """
    results, kept = path / "results.jsonl", path / "trajectories.jsonl"
    if not (path / "manifest.json").is_file() or not results.is_file():
        raise ConfigurationError(f"{path} is not a run folder; name one that `ec2-env bench --out` has filled")
    settings = read_manifest(path / "manifest.json")
    if "source" in settings:
        raise ConfigurationError(f"the records in {path} are {settings['source']}, not played by this package: cannot be {doing}")
    return StoredRun(path=path, settings=settings, results=results, kept=kept if kept.is_file() else None)


def decoded(line: bytes, kind: type[LineT], file: Path, number: int) -> LineT:
    """Returns what a line of a file holds.

    Raises:
        ConfigurationError: if it holds something else.
    """
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{file}: line {number} is no {kind.__name__} ({error})") from error


def lines_in(file: Path, kind: type[AnyT]) -> Iterator[tuple[int, AnyT]]:
    """Yields line numbers, from 1, and what the lines of a file hold, up to a line that was cut off or is still being written.

    Args:
        file: `results.jsonl`, `calibration.jsonl` or `trajectories.jsonl` of a run folder.
        kind: What a line is, or the part of it that is read.

    Raises:
        ConfigurationError: if a line is damaged.
    """
    decoder = msgspec.json.Decoder(kind)
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return
            try:
                found = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ConfigurationError(f"{file}: line {number} is damaged ({error})") from error
            yield number, found


def records_in(file: Path) -> Iterator[tuple[int, EpisodeRecord]]:
    """Yields line numbers and records of a file; see `lines_in`."""
    return lines_in(file, EpisodeRecord)


@dataclass(frozen=True, kw_only=True)
class StoredConfig(BenchConfig):
    """The settings of a stored run, for its table.

    Attributes:
        shown: The command that gives the table.
    """

    shown: str = ""

    def command(self) -> str:
        """Returns the command that gives the table."""
        return self.shown


def config_of(run: StoredRun, command: str) -> StoredConfig:
    """Returns the settings that a run was made with; its strategies and models are not loaded.

    Raises:
        ConfigurationError: if its tasks are not those of this version.
    """
    settings = run.settings
    numbers = {name: settings[name] for name in ("split", "seeds", "trials", "max_steps")}
    languages = tuple(dict.fromkeys(language for _, language in run.pairs()))
    plain = Suite(about="", tasks=tuple(dict.fromkeys(task for task, _ in run.pairs())), languages=languages, **numbers)
    suites = [plain, msgspec.structs.replace(plain, primary=True)]
    with suppress(EC2Error):  # the file of a suite may be elsewhere; its tasks are in the manifest
        suites.insert(0, msgspec.structs.replace(load_suite(settings["suite"]), languages=languages, **numbers))
    suite = next((checked(one) for one in suites if one.pairs() == run.pairs()), None)
    if suite is None:
        raise ConfigurationError(f"{run.path} was run with other tasks than this version has")
    return StoredConfig(
        name=settings["suite"],
        suite=suite,
        strategies=tuple(settings["strategies"]),
        edges=tuple(settings["edges"]),
        cloud=settings["cloud"],
        weights=reward_weights(settings["weights"]),
        trajectories=run.kept is not None,
        shown=command,
    )
