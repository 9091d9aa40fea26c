"""Parts of a suite: by category, language, app, pattern, and length of the task's own solution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.grid import Grid
from ec2_env.bench.run_data import Row
from ec2_env.task import build_episode, tasks
from ec2_env.testing import play
from ec2_env.workspace.world import Split

LENGTH_SEEDS = 3
"""Instances of a task and language whose solutions give its length."""
LEAST_TASKS = 5
"""A pattern of fewer tasks says little and is left out."""
Pair = tuple[str, str]
"""A task and a language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of the pairs of a run.

    Attributes:
        dimension: What it is cut by, such as "category".
        value: Such as "office".
        pairs: Tasks with their languages.
    """

    dimension: str
    value: str
    pairs: frozenset[Pair]

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len({task for task, _ in self.pairs})

    def of(self, row: Row) -> NDArray[np.bool_]:
        """Says which episodes of a row are in it, shape (episodes,)."""
        return np.array([(key.task, key.language) in self.pairs for key in row.keys], dtype=bool)


def slices_of(grid: Grid) -> tuple[Slice, ...]:
    """Returns the parts of a run's tasks; a task is in one category, language and length, but in several apps and patterns.

    Raises:
        UnknownName: if a task of the run is not installed.
    """
    found: dict[tuple[str, str], set[Pair]] = {}
    for name, language in grid.pairs:
        for dimension, value in _labels(name, language):
            found.setdefault((dimension, value), set()).add((name, language))
    parts = [Slice(dimension=d, value=v, pairs=frozenset(pairs)) for (d, v), pairs in sorted(found.items())]
    order = ("category", "language", "app", "pattern")
    kept = [part for part in parts if part.dimension != "pattern" or part.tasks >= LEAST_TASKS]
    return (*sorted(kept, key=lambda part: (order.index(part.dimension), -part.tasks, part.value)), *_lengths(grid))


def _labels(name: str, language: str) -> Iterator[tuple[str, str]]:
    yield "language", language
    if name not in tasks.names():  # a task of an imported run: nothing is known of it
        return
    task = tasks.get(name)
    yield "category", task.category
    yield from (("app", app) for app in task.apps)
    yield from (("pattern", pattern) for pattern in dict.fromkeys(task.patterns))


def _lengths(grid: Grid) -> Iterator[Slice]:
    """Cuts the pairs into three by the mean number of calls of their own solutions; equal lengths stay together."""
    split = cast(Split, grid.split)
    known = set(tasks.names())
    lengths: dict[Pair, float] = {
        (name, language): np.mean(
            [len(play(build_episode(name, seed, language, split)).actions) for seed in range(min(grid.seeds, LENGTH_SEEDS))]
        ).item()
        for name, language in grid.pairs
        if name in known
    }
    yield from thirds(lengths)


def thirds(lengths: dict[Pair, float]) -> Iterator[Slice]:
    """Yields up to three parts of about equal size by ascending length; pairs of one length are not torn apart.

    Args:
        lengths: Calls of the solution of each pair.
    """
    counts = sorted(Counter(lengths.values()).items())
    total, seen = len(lengths), 0
    parts: list[list[float]] = [[], [], []]
    for length, number in counts:
        middle = seen + number / 2
        parts[min(2, int(3 * middle / total))].append(length)
        seen += number
    for part in parts:
        if part:
            pairs = frozenset(pair for pair, length in lengths.items() if length in part)
            yield Slice(dimension="solution length", value=_range(part), pairs=pairs)


def _range(lengths: Sequence[float]) -> str:
    low, high = f"{min(lengths):.3g}", f"{max(lengths):.3g}"
    return f"{low} calls" if low == high else f"{low} to {high} calls"
