"""From records to figures: exact streaming sums, Pass^3, and 95% intervals by a bootstrap over tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import comb, fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.grid import Cell, Grid
from ec2_env.bench.records import EpisodeRecord
from ec2_env.errors import ConfigurationError
from ec2_env.session import PASS_THRESHOLD
from ec2_env.strategy import Measured

DRAWS = 2_000
SEED = 20_260_601
PASS_K = 3
SCALE = 10**9
"""Figures are summed as whole multiples of 1e-9, so that no sum depends on the order of the episodes."""


def _annotated(record: EpisodeRecord) -> bool:
    """Says whether an episode has sensitive values at all: one without says nothing about privacy."""
    return bool(record.result["units"])


FIGURES: Mapping[str, Callable[[EpisodeRecord], float]] = {
    "completion": lambda record: record.result["completion"],
    "passed": lambda record: float(record.result["completion"] >= PASS_THRESHOLD),
    "annotated": lambda record: float(_annotated(record)),
    "privacy": lambda record: record.result["privacy"] if _annotated(record) else 0.0,
    "called": lambda record: float(record.result["cloud_calls"] > 0),
    "called_annotated": lambda record: float(_annotated(record) and record.result["cloud_calls"] > 0),
    "privacy_when_called": lambda record: (
        record.result["privacy"] if _annotated(record) and record.result["cloud_calls"] > 0 else 0.0
    ),
    "privacy_all": lambda record: record.result["privacy_all"] if _annotated(record) else 0.0,
    "any_leak": lambda record: float(record.result["any_leak"]) if _annotated(record) else 0.0,
    "necessary_exposure": lambda record: record.result["necessary_exposure"] if _annotated(record) else 0.0,
    "excess_exposure": lambda record: record.result["excess_exposure"] if _annotated(record) else 0.0,
    "cloud_calls": lambda record: record.result["cloud_calls"],
    "tokens_raw": lambda record: record.result["tokens_raw"],
    "tokens_cached": lambda record: record.result["tokens_cached"],
    "tokens_out": lambda record: record.result["tokens_out"],
    "cloud_usd": lambda record: record.result["cloud_usd"],
    "usage_gap_tokens": lambda record: sum(record.result["usage_gap"][kind] for kind in ("raw", "cached", "out")),
    "usage_gap_usd": lambda record: record.result["usage_gap"]["usd"],
    "edge_pflops": lambda record: record.result["edge_flops"] / 1e15,
    "edge_pflops_without_probes": lambda record: record.result["edge_flops_without_probes"] / 1e15,
    "latency_s": lambda record: record.result["latency_s"],
    "steps": lambda record: record.result["steps"],
    "cost": lambda record: record.reward["cost"],
    "exposure": lambda record: record.reward["exposure"],
    "return": lambda record: record.total,
}
"""What is averaged over the episodes of a cell. Shares are 0 to 1; tokens, calls, USD, PFLOPs and seconds are per episode.
Usage gaps are what providers reported less the package's own count."""
AVERAGED_OVER = {
    "privacy": "annotated",
    "privacy_when_called": "called_annotated",
    "privacy_all": "annotated",
    "any_leak": "annotated",
    "necessary_exposure": "annotated",
    "excess_exposure": "annotated",
}
"""Figures that are averaged only over the episodes that another figure counts."""


def scaled(value: float) -> int:
    """Returns a figure of one episode as a whole multiple of 1e-9."""
    return round(value * SCALE)


def exact_mean(total: int, count: int) -> float:
    """Returns the mean of figures from the sum of `scaled`: the same for any order, so that it can be checked to the last
    digit."""
    return total / (SCALE * count)


def pass_hat_k(successes: int, trials: int, k: int) -> float:
    """Returns the probability that k fresh trials of a task all succeed.

    Unbiased estimator C(c, k) / C(n, k) of tau-bench (arXiv 2406.12045, eq. 1); with n = k = 3 it is EC2-Bench's Pass^3.

    Raises:
        ValueError: if k is larger than `trials`.
    """
    if not 1 <= k <= trials or not 0 <= successes <= trials:
        raise ValueError(f"pass_hat_k needs 1 <= k <= trials and 0 <= successes <= trials, got {successes=}, {trials=}, {k=}")
    return comb(successes, k) / comb(trials, k)


def pass_at_k(successes: int, trials: int, k: int) -> float:
    """Returns the probability that at least one of k fresh trials of a task succeeds.

    Unbiased estimator 1 - C(n - c, k) / C(n, k) of Chen et al. (arXiv 2107.03374, eq. 1).

    Raises:
        ValueError: if k is larger than `trials`.
    """
    if not 1 <= k <= trials or not 0 <= successes <= trials:
        raise ValueError(f"pass_at_k needs 1 <= k <= trials and 0 <= successes <= trials, got {successes=}, {trials=}, {k=}")
    return 1 - comb(trials - successes, k) / comb(trials, k)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with the ends of its 95% interval; None where there is nothing to take it from."""

    mean: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one cell.

    Attributes:
        episodes: Episodes in the means.
        errors: Episodes that ended in an infrastructure error; in no mean.
        invalid: Episodes in which no call of the model was valid; they are in the means.
        missing: Episodes that have not been played.
        figures: Means by the names of `FIGURES`, and `pass_hat_3`.
    """

    cell: Cell
    episodes: int
    errors: int
    invalid: int
    missing: int
    figures: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class Spent:
    """What episodes used of the cloud: US dollars, tokens of all kinds, calls that were answered."""

    usd: float = 0.0
    tokens: int = 0
    calls: int = 0

    @classmethod
    def of(cls, record: EpisodeRecord) -> Spent:
        """Returns what one episode used."""
        result = record.result
        tokens = result["tokens_raw"] + result["tokens_cached"] + result["tokens_out"]
        return cls(result["cloud_usd"], tokens, result["cloud_calls"])

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.usd + other.usd, self.tokens + other.tokens, self.calls + other.calls)


_MISSING, _ERROR, _DONE = 0, 1, 2


class Totals:
    """Running sums over the records of a grid. Needs a few bytes for each episode of the grid, whatever the records hold.

    Args:
        grid: Which episodes there are.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.spent = Spent()
        """All that was used of the cloud, errors included."""
        self._task_of = np.array([grid.tasks.index(task) for task, _ in grid.pairs])
        shape = (len(grid.cells), len(grid.pairs))
        self._sums = [[[0] * len(FIGURES) for _ in range(shape[1])] for _ in range(shape[0])]
        self._counts = np.zeros(shape, np.int64)
        self._invalid = np.zeros(shape[0], np.int64)
        self._state = bytearray(len(grid))
        instances = len(grid.pairs) * grid.seeds
        self._ended = np.zeros((shape[0], instances), np.int32)
        self._passed = np.zeros((shape[0], instances), np.int32)

    def add(self, record: EpisodeRecord) -> None:
        """Counts a record. A later record of an episode takes the place of an error; nothing takes the place of a result.

        Raises:
            ConfigurationError: if the record is not part of the grid, or its episode has a result already.
        """
        number = self.grid.number(record.cell, record.key)
        if number is None:
            raise ConfigurationError(f"{record.strategy} on {record.key} is not part of this run; its record must not be here")
        if self._state[number] == _DONE:
            raise ConfigurationError(f"{record.strategy} on {record.key} is recorded twice; remove one of the two lines")
        self.spent += Spent.of(record)
        if record.result["status"] == "error":
            self._state[number] = _ERROR
            return
        self._state[number] = _DONE
        row, instance = number // self.grid.row, number % self.grid.row // self.grid.trials
        pair = instance // self.grid.seeds
        values = [scaled(figure(record)) for figure in FIGURES.values()]
        self._sums[row][pair] = [old + new for old, new in zip(self._sums[row][pair], values, strict=True)]
        self._counts[row, pair] += 1
        self._invalid[row] += record.result["status"] == "invalid"
        self._ended[row, instance] += 1
        self._passed[row, instance] += record.result["completion"] >= PASS_THRESHOLD

    def has(self, number: int, *, or_error: bool) -> bool:
        """Says whether an episode has a result, or, if asked, an error."""
        return self._state[number] >= (_ERROR if or_error else _DONE)

    @property
    def done(self) -> int:
        """Number of episodes with a result."""
        return self._state.count(_DONE)

    @property
    def errors(self) -> int:
        """Number of episodes whose last try ended in an infrastructure error."""
        return self._state.count(_ERROR)

    def summaries(self) -> tuple[Summary, ...]:
        """Returns the figures of all cells, with intervals from the same draws of tasks, so that cells can be compared."""
        return tuple(self._summary(row) for row in range(len(self.grid.cells)))

    def _summary(self, row: int) -> Summary:
        counts = self._by_task(self._counts[row])
        totals = dict(zip(FIGURES, (sum(column) for column in zip(*self._sums[row], strict=True)), strict=True))
        columns = {
            name: self._by_task(np.array([pair[column] for pair in self._sums[row]], dtype=np.float64)) / SCALE
            for column, name in enumerate(FIGURES)
        }
        figures = {}
        for name, column in columns.items():
            over = AVERAGED_OVER.get(name)
            number = totals[over] // SCALE if over else int(counts.sum())
            mean = exact_mean(totals[name], number) if number else None
            figures[name] = estimate(column, columns[over] if over else counts, mean)
        passes = self._passes(row)
        figures[f"pass_hat_{PASS_K}"] = estimate(*self._pass_hat(passes), mean_of([value for _, value in passes]))
        state = self._state[row * self.grid.row : (row + 1) * self.grid.row]
        return Summary(
            cell=self.grid.cells[row],
            episodes=int(counts.sum()),
            errors=state.count(_ERROR),
            invalid=int(self._invalid[row]),
            missing=state.count(_MISSING),
            figures=figures,
        )

    def _by_task(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Adds up what is given for each (task, language) pair over languages."""
        sums = np.zeros(len(self.grid.tasks))
        np.add.at(sums, self._task_of, values)
        return sums

    def _passes(self, row: int) -> list[tuple[int, float]]:
        """Returns the task and the Pass^3 of each instance with enough trials."""
        return [
            (int(self._task_of[number // self.grid.seeds]), pass_hat_k(int(self._passed[row, number]), int(trials), PASS_K))
            for number, trials in enumerate(self._ended[row])
            if trials >= PASS_K
        ]

    def _pass_hat(self, passes: list[tuple[int, float]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns, for each task, the sum of Pass^3 over its instances, and their number."""
        found, counted = np.zeros(len(self.grid.tasks)), np.zeros(len(self.grid.tasks))
        for task, value in passes:
            found[task] += value
            counted[task] += 1
        return found, counted

    def measured(self, cell: Cell) -> dict[tuple[str, str], Measured]:
        """Returns the mean completion in a cell by (task, language), for those that have been played."""
        row, column = self.grid.cells.index(cell), list(FIGURES).index("completion")
        counts = [int(count) for count in self._counts[row]]
        return {
            pair: Measured(self._sums[row][number][column] / SCALE / counts[number], counts[number])
            for number, pair in enumerate(self.grid.pairs)
            if counts[number]
        }


def mean_of(values: Iterable[float]) -> float | None:
    """Returns the mean, correctly rounded whatever the order; None of nothing."""
    held = list(values)
    return fsum(held) / len(held) if held else None


@lru_cache(maxsize=64)
def draws(tasks: int) -> NDArray[np.int64]:
    """Returns how often each task is drawn in each of the bootstrap's samples, shape (DRAWS, tasks).

    Every figure of a set of tasks is taken from the same draws, so that rows can be compared.
    """
    picks = np.random.default_rng(SEED).integers(tasks, size=(DRAWS, tasks))
    places = picks + tasks * np.arange(DRAWS)[:, None]
    return np.bincount(places.ravel(), minlength=DRAWS * tasks).reshape(DRAWS, tasks)


def estimate(sums: NDArray[Any], counts: NDArray[Any], mean: float | None = None) -> Estimate:
    """Returns the mean over all episodes, and percentiles 2.5 and 97.5 of the same over drawn tasks.

    Whole tasks are drawn, with all their episodes: episodes of one task are alike, so that drawing episodes would give intervals
    that are too narrow. Percentile bootstrap of Efron and Tibshirani (1993, chapter 13).

    Args:
        sums: Sum over the episodes of each task.
        counts: Number of those episodes.
        mean: The mean, if it is known more exactly.
    """
    if not counts.sum():
        return Estimate(None)
    mean = float(sums.sum() / counts.sum()) if mean is None else mean
    if np.count_nonzero(counts) < 2:
        return Estimate(mean)
    drawn = draws(len(counts)) @ counts
    values = (draws(len(counts)) @ sums)[drawn > 0] / drawn[drawn > 0]
    low, high = np.percentile(values, [2.5, 97.5])
    return Estimate(mean, float(low), float(high))
