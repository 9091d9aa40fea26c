"""What is counted of each record beside the means: how episodes ended, which checks failed, which units crossed."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from ec2_env.bench.grid import Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.errors import ConfigurationError
from ec2_env.sensitive import KINDS

TENTHS = 10
"""Levels are summed as whole tenths, so that no sum depends on the order of the episodes."""
FULL = 1.0
ELSE = "other"


class Place(NamedTuple):
    """Where an episode is recorded: number of the run folder, and line of its `results.jsonl`, from 1."""

    folder: int
    line: int


class _Unit(msgspec.Struct):
    unit: str
    level: float


class _Seen(msgspec.Struct):
    """What is read of `info["result"]`."""

    status: str
    completion: float
    exposed: list[_Unit] = []
    touched: list[str] = []
    checks: dict[str, float] = {}
    forbidden: list[str] = []
    strays: int = 0


def kind_of(unit: str) -> str:
    """Returns the kind of a unit, which its id begins with ("iban-1")."""
    kind = unit.rpartition("-")[0] or unit
    return kind if kind in KINDS else ELSE


class Tally:
    """Counts over the records of a grid. Its size depends on the tasks and the rows, not on the number of episodes.

    Attributes:
        statuses: By (row, status); an error counts with every try.
        seen, failed: Checks by (task, check, row): how often made, and how often not fully passed.
        forbidden: Forbidden acts by (task, act, row).
        strays: Episodes by row with a change that nobody asked for.
        crossed: By (kind, row): tenths of levels of units that crossed.
        touched: By (kind, row): units that were seen or crossed.
        full: By (kind, row): units that crossed in full.
        by_pair: By (pair, row): tenths of levels of what crossed.
        touched_by_pair: By (pair, row): units that were seen or crossed.
        units: By (pair, unit): episodes in which it crossed.
        first_failed, first_leak, first_error: First episode of a (pair, row) that did not pass, exposed anything, or broke.
        first_check: First episode in which a (task, check, row) failed.
    """

    def __init__(self, grid: Grid) -> None:
        self._rows = {cell: row for row, cell in enumerate(grid.cells)}
        self._pairs: dict[tuple[str, str], int] = {pair: number for number, pair in enumerate(grid.pairs)}
        self.statuses: Counter[tuple[int, str]] = Counter()
        self.seen: Counter[tuple[str, str, int]] = Counter()
        self.failed: Counter[tuple[str, str, int]] = Counter()
        self.forbidden: Counter[tuple[str, str, int]] = Counter()
        self.strays: Counter[int] = Counter()
        self.crossed: Counter[tuple[str, int]] = Counter()
        self.touched: Counter[tuple[str, int]] = Counter()
        self.full: Counter[tuple[str, int]] = Counter()
        self.by_pair: Counter[tuple[int, int]] = Counter()
        self.touched_by_pair: Counter[tuple[int, int]] = Counter()
        self.units: Counter[tuple[int, str]] = Counter()
        self.first_failed: dict[tuple[int, int], Place] = {}
        self.first_leak: dict[tuple[int, int], Place] = {}
        self.first_error: dict[tuple[int, int], Place] = {}
        self.first_check: dict[tuple[str, str, int], Place] = {}

    def add(self, record: EpisodeRecord, place: Place) -> None:
        """Counts a record that `Totals.add` has taken.

        Raises:
            ConfigurationError: if a part of its result has another form than the package writes.
        """
        try:
            seen = msgspec.convert(record.result, _Seen)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"line {place.line} of results.jsonl holds a result of another form: {error}") from error
        row, pair = self._rows[record.cell], self._pairs[record.task, record.language]
        self.statuses[row, seen.status] += 1
        if seen.status == "error":
            self.first_error.setdefault((pair, row), place)
            return
        if seen.status != "pass":
            self.first_failed.setdefault((pair, row), place)
        self._graded(record.task, seen, row, place)
        self._exposed(seen, pair, row, place)

    def _graded(self, task: str, seen: _Seen, row: int, place: Place) -> None:
        for check, score in seen.checks.items():
            self.seen[task, check, row] += 1
            if score < 1:
                self.failed[task, check, row] += 1
                self.first_check.setdefault((task, check, row), place)
        for act in seen.forbidden:
            self.forbidden[task, act, row] += 1
            self.first_check.setdefault((task, act, row), place)
        self.strays[row] += seen.strays > 0

    def _exposed(self, seen: _Seen, pair: int, row: int, place: Place) -> None:
        for unit in dict.fromkeys((*seen.touched, *(one.unit for one in seen.exposed))):
            self.touched[kind_of(unit), row] += 1
            self.touched_by_pair[pair, row] += 1
        for one in seen.exposed:
            tenths = round(one.level * TENTHS)
            self.crossed[kind_of(one.unit), row] += tenths
            self.full[kind_of(one.unit), row] += one.level >= FULL
            self.by_pair[pair, row] += tenths
            self.units[pair, one.unit] += 1
            self.first_leak.setdefault((pair, row), place)
