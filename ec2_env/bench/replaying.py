"""Replays stored episodes: their calls on a fresh workspace, and, with simulated models, the whole episode to the last byte."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

import ec2_env
from ec2_env.bench.grid import Cell, strategy_of
from ec2_env.bench.manifest import code_digest
from ec2_env.bench.records import Broken, EpisodeRecord, Job, Played, frozen, play_job
from ec2_env.bench.repeating import repeat
from ec2_env.bench.rescoring import result_of
from ec2_env.bench.runner import Means, gaps_for, offline_scores
from ec2_env.bench.statistics import Totals
from ec2_env.bench.stored_runs import StoredRun, decoded, open_run, records_in
from ec2_env.errors import ConfigurationError
from ec2_env.reward import reward_weights
from ec2_env.strategy import Prepared
from ec2_env.trace import Ended, ToolRan, Trajectory, from_json, to_json

SHOWN = 160
"""Characters of a value that a difference shows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where a replay is not what was recorded.

    Attributes:
        where: The place, such as "event 12 (tool read_mail).result".
        recorded: What was recorded there, shortened around the first character that differs.
        replayed: What the replay brought.
    """

    where: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"{self.where}: recorded {self.recorded}, replayed {self.replayed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of one episode.

    Attributes:
        number: Its line in the file, from 1.
        name: Strategy and key, in words.
        calls: Calls that were made again on a fresh workspace; 0 if no trajectory was kept.
        again: Whether the whole episode was played again as well.
        differences: Everything that differs; nothing if the replay is exact.
        trajectory: The record, if one was kept.
        code: Says that other code played the episode than is installed; empty if not.
    """

    number: int
    name: str
    calls: int
    again: bool
    differences: tuple[Difference, ...]
    trajectory: Trajectory | None = None
    code: str = ""

    @property
    def checked(self) -> bool:
        """Says whether anything could be compared."""
        return self.again or self.trajectory is not None

    def __str__(self) -> str:
        done = ([f"{self.calls} calls"] if self.trajectory is not None else []) + (["the whole episode"] if self.again else [])
        if not done:
            return f"episode {self.number}  {self.name}: not checked, no trajectory was kept and a model is real"
        state = "equal" if not self.differences else f"DIFFERENT, first in {self.differences[0]}"
        return f"episode {self.number}  {self.name}: {' and '.join(done)} {state}"


# -- calls on a fresh workspace


def replay_calls(trajectory: Trajectory) -> tuple[Difference, ...]:
    """Makes every recorded call again on a fresh workspace, grades the end, and returns what differs, in order.

    Neither a strategy nor a model takes part, so trajectories of real models can be checked, too; see `ec2_env.bench.repeating`.
    """
    now = repeat(trajectory)
    found = _unequal("instruction", trajectory.instruction, now.episode.instruction)
    for index, event in enumerate(trajectory.events):
        if isinstance(event, ToolRan):
            found += _unequal(f"event {index} (tool {event.name[:60]}).result", event.result, now.texts[index])
        elif isinstance(event, Ended):
            found += _fields(f"event {index} (end)", msgspec.to_builtins(event), msgspec.to_builtins(now.ended[index]))
    found += _fields("result", trajectory.result, result_of(trajectory, now.episode.units))
    return tuple(found)


# -- what differs


def differences(recorded: Trajectory, replayed: Trajectory) -> tuple[Difference, ...]:
    """Returns where two trajectories differ: in their first unequal event, in their keys and in their results."""
    old, new = msgspec.to_builtins(recorded), msgspec.to_builtins(replayed)
    before, after = old.pop("events"), new.pop("events")
    result = old.pop("result"), new.pop("result")
    found = _fields("trajectory", old, new)
    for index, (left, right) in enumerate(zip_longest(before, after)):
        if left != right:
            kind = (left or right)["type"]
            found += _fields(f"event {index} ({kind})", left, right)
            break
    if len(before) != len(after):
        found.append(Difference("events", f"{len(before)} of them", f"{len(after)} of them"))
    return (*found, *_fields("result", *result))


def _fields(where: str, old: Any, new: Any) -> list[Difference]:
    """Returns the fields of two objects that differ; the values themselves if they are no objects."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return _unequal(where, old, new)
    missing = object()
    return [
        one
        for name in dict.fromkeys((*old, *new))
        for one in _unequal(f"{where}.{name}", old.get(name, missing), new.get(name, missing), missing)
    ]


def _unequal(where: str, old: Any, new: Any, missing: object = None) -> list[Difference]:
    old, new = (list(one) if isinstance(one, tuple) else one for one in (old, new))
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return _fields(where, old, new)
    left, right = (
        "nothing" if one is missing or one is None else one if isinstance(one, str) else repr(one) for one in (old, new)
    )
    start = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    begin = max(0, start - SHOWN // 4)
    return [Difference(where, _cut(left, begin), _cut(right, begin))]


def _cut(text: str, begin: int) -> str:
    shown = ("..." if begin else "") + text[begin : begin + SHOWN] + ("..." if len(text) > begin + SHOWN else "")
    return repr(shown)


# -- whole episodes


class PlayAgain:
    """Plays episodes of a run again, from key, strategy and models alone.

    Args:
        run: The run; its `calibration.jsonl` is only read for strategies that have to be scored offline.
    """

    def __init__(self, run: StoredRun) -> None:
        self.run = run

    def play(self, record: EpisodeRecord) -> Played:
        """Returns the record and the trajectory that the episode has now.

        Raises:
            ConfigurationError: if it cannot be played.
        """
        played = self.attempt(record)
        if not isinstance(played, Played):
            raise ConfigurationError(f"{played.episode}: {played.message.splitlines()[-1]}")
        return played

    def attempt(self, record: EpisodeRecord) -> Played | Broken:
        """Returns what the episode is now, or why it cannot be played. On the train split, no strategy is prepared.

        Raises:
            ConfigurationError: if its strategy cannot be prepared.
        """
        gaps = frozen(self._gaps(record.cell) if record.split == self.run.settings["split"] else {})
        weights = reward_weights(self.run.settings["weights"])
        (played,) = play_job(Job(record.cell, (record.key,), gaps, self.run.settings["max_steps"], weights, True))
        return played

    def differences(self, record: EpisodeRecord, stored: Trajectory | None = None) -> tuple[Difference, ...]:
        """Plays an episode again and returns where it is not the recorded one; nothing if its bytes are equal."""
        played = self.play(record)
        line = played.trajectory or b""
        found: tuple[Difference, ...] = ()
        if stored is not None and to_json(stored) != line:
            found = differences(stored, from_json(line))
        return found or tuple(_fields("record", json.loads(msgspec.json.encode(record)), json.loads(played.record)))

    def _gaps(self, cell: Cell) -> Mapping[tuple[str, str], float]:
        strategy = strategy_of(cell.strategy)
        if cell.edge is None or not isinstance(strategy, Prepared):
            return {}
        return gaps_for(strategy, self._scores[cell.edge], self._scores[None])

    def measured(self) -> Iterator[EpisodeRecord]:
        """Yields the records of the run's calibration.

        Raises:
            ConfigurationError: if there are none.
        """
        file = self.run.path / "calibration.jsonl"
        if not file.is_file():
            raise ConfigurationError(f"{file} is missing; strategies that are scored offline cannot be played again")
        yield from (record for _, record in records_in(file))

    @cached_property
    def _scores(self) -> dict[str | None, Means]:
        totals = Totals(self.run.calibration())
        for record in self.measured():
            totals.add(record)
        return offline_scores(totals)


# -- runs


def replay(
    path: Path, wanted: Collection[int] = (), *, sample: int | None = None, seed: int = 0, again: bool = True
) -> Iterator[Replayed]:
    """Replays the episodes of a run folder, or of one file of trajectories, and yields what came of each.

    Args:
        path: The folder or file; nothing in it is changed.
        wanted: Lines to replay, from 1; all if empty.
        sample: Replay so many of them, drawn with `seed`; None for all.
        seed: Fixes the draw.
        again: Whether to play episodes of simulated models again as a whole.

    Raises:
        ConfigurationError: if there is nothing to replay, or a line is damaged.
    """
    if not path.exists():
        raise ConfigurationError(f"there is no {path}; name a run folder or a file of trajectories")
    run = open_run(path, "replayed") if path.is_dir() else None
    results, kept = (run.results, run.kept) if run is not None else (None, path)
    numbers = _chosen(results or path, wanted, sample, seed)
    player = PlayAgain(run) if run is not None and again else None
    with ExitStack() as stack:
        for number, (line, other) in enumerate(zip_longest(_lines(stack, results), _lines(stack, kept)), 1):
            if number in numbers:
                record = decoded(line, EpisodeRecord, results, number) if line and results else None
                stored = decoded(other, Trajectory, kept, number) if other and kept else None
                digest = hashlib.sha256(other.rstrip(b"\n")).hexdigest() if other else ""
                yield _replayed(number, record, stored, digest, player)


def _chosen(file: Path, wanted: Collection[int], sample: int | None, seed: int) -> frozenset[int]:
    with file.open("rb") as stream:
        there = sum(line.endswith(b"\n") for line in stream)
    missing = sorted(number for number in wanted if not 1 <= number <= there)
    if missing or not there:
        raise ConfigurationError(f"{file} has {there} episodes" + (f", no episode {missing[0]}" if missing else ""))
    numbers = sorted(set(wanted)) or range(1, there + 1)
    return frozenset(numbers if sample is None else random.Random(seed).sample(numbers, min(sample, len(numbers))))


def _lines(stack: ExitStack, file: Path | None) -> Iterator[bytes]:
    return (line for line in stack.enter_context(file.open("rb")) if line.endswith(b"\n")) if file is not None else iter(())


def _replayed(
    number: int, record: EpisodeRecord | None, stored: Trajectory | None, digest: str, player: PlayAgain | None
) -> Replayed:
    found: list[Difference] = []
    if stored is not None:
        found += _unequal("sha256", record.sha256, digest) if record is not None else []
        found += replay_calls(stored)
    again = record is not None and player is not None and player.run.simulated(record.cell)
    if again and record is not None and player is not None:
        found += player.differences(record, stored)
    return Replayed(
        number=number,
        name=_name(record or stored),
        calls=sum(isinstance(event, ToolRan) for event in stored.events) if stored is not None else 0,
        again=again,
        differences=tuple(found),
        trajectory=stored,
        code=_other_code(stored, player),
    )


def _other_code(stored: Trajectory | None, player: PlayAgain | None) -> str:
    """Says that an episode was played by another version, or another state of the code, than is installed; else ""."""
    if stored is not None and stored.version != ec2_env.__version__:
        return f"played by version {stored.version}; this is {ec2_env.__version__}, which may play otherwise"
    if player is not None and player.run.settings["code"] != code_digest():
        return "played by another state of the code than is installed, which may play otherwise"
    return ""


def _name(one: EpisodeRecord | Trajectory | None) -> str:
    assert one is not None
    edge = f" ({one.edge})" if one.edge else ""
    return f"{one.strategy}{edge} {one.task}/{one.language}/{one.split}/{one.seed}, trial {one.trial}"
