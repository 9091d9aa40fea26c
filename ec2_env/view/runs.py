"""A run folder that is only read: its settings, its episodes by number, and the line of each trajectory."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.store import read_manifest
from ec2_env.bench.stored_runs import StoredRun, records_in
from ec2_env.errors import ConfigurationError
from ec2_env.trace import Trajectory, from_json
from ec2_env.view.replay import PlayedAgain


class Source(Protocol):
    """Where the trajectories of a run come from."""

    def line(self, number: int, record: EpisodeRecord) -> bytes:
        """Returns the trajectory of an episode as one line of JSON.

        Args:
            number: Line of the episode in `results.jsonl`, counted from 1.
            record: What that line holds.

        Raises:
            EC2Error: if there is none.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that can be looked at.

    Attributes:
        name: What the run is called on the page: the name of its folder.
        settings: Its manifest.
        records: Its episodes by number: the line in `results.jsonl`, counted from 1. Of an episode that was played again after an
            error, only the last line is there.
    """

    name: str
    settings: Mapping[str, Any]
    records: Mapping[int, EpisodeRecord]
    source: Source

    def trajectory(self, number: int) -> Trajectory:
        """Returns the trajectory of an episode.

        Raises:
            EC2Error: if it cannot be had, or is damaged.
        """
        line = self.source.line(number, self.records[number])
        try:
            return from_json(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"line {number} of the run's trajectories is damaged ({error})") from error


class Kept:
    """Trajectories that the run kept, read where they stand.

    Args:
        file: `trajectories.jsonl` of the run.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._starts = [0]
        with file.open("rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    self._starts.append(self._starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def line(self, number: int, record: EpisodeRecord) -> bytes:
        """Returns the line of an episode; see `Source`."""
        if not 1 <= number <= len(self):
            raise ConfigurationError(f"{self.file} has no line {number}; it is shorter than the run's results.jsonl")
        start, end = self._starts[number - 1 : number + 1]
        with self.file.open("rb") as stream:
            stream.seek(start)
            return stream.read(end - start)


def open_run(path: Path, *, replay: bool = False, tasks: Collection[str] = (), strategies: Collection[str] = ()) -> Run:
    """Opens a run folder. Nothing in it is changed, and it may still be growing: what is there now is read.

    Args:
        path: The folder.
        replay: Whether to play the episodes again instead of reading their trajectories.
        tasks: Only episodes of these tasks; of all if empty.
        strategies: Only episodes of these strategies; of all if empty.

    Raises:
        ConfigurationError: if it is no run folder, has no trajectories, or holds no such episode.
    """
    manifest, results, kept = (path / name for name in ("manifest.json", "results.jsonl", "trajectories.jsonl"))
    if not manifest.is_file() or not results.is_file():
        raise ConfigurationError(f"{path} is not a run folder: it lacks manifest.json or results.jsonl; see ec2-env bench --out")
    settings = read_manifest(manifest)
    if not replay and not kept.is_file():
        raise ConfigurationError(
            f"{path} kept no trajectories; run ec2-env bench with --trajectories, or, for simulated models, add --replay here to "
            "play its episodes again"
        )
    stored = StoredRun(path=path, settings=settings, results=results, kept=kept if kept.is_file() else None)
    source = PlayedAgain(stored) if replay else Kept(kept)
    there = len(source) if isinstance(source, Kept) else sys.maxsize
    wanted = {
        number: record
        for number, record in records_in(results)
        if number <= there and (not tasks or record.task in tasks) and (not strategies or record.strategy in strategies)
    }
    last = {(record.cell, record.key): number for number, record in wanted.items()}
    records = {number: wanted[number] for number in sorted(last.values())}
    if not records:
        raise ConfigurationError(f"{path} holds no such episode" if tasks or strategies else f"{path} holds no episode yet")
    return Run(name=path.resolve().name, settings=settings, records=records, source=source)
