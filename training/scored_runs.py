"""Runs of single models, and their table: what a router is fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ec2_env.errors import ConfigurationError
from ec2_env.strategy import Measured
from ec2_env.training.estimators import Floats
from ec2_env.training.task_features import Pair


class Run(NamedTuple):
    """One run of one model, alone. `model` is the name on its card; `score` its completion, 0 to 1."""

    task: str
    language: str
    model: str
    seed: int
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Runs as a table.

    Attributes:
        pairs: Tasks in their languages, sorted; the rows.
        models: Names of models; the columns.
        mean: Mean score, 0 where there is no run.
        runs: Number of runs.
    """

    pairs: tuple[Pair, ...]
    models: tuple[str, ...]
    mean: Floats
    runs: Floats

    @classmethod
    def of(cls, runs: Iterable[Run], value: Callable[[float], float] = float) -> Scores:
        """Returns the table of runs, with the mean of `value(score)` in each place.

        Raises:
            ConfigurationError: if there are no runs.
        """
        runs = list(runs)
        if not runs:
            raise ConfigurationError("a router needs runs of the edge and of the cloud model alone; there is none")
        pairs = sorted({(run.task, run.language) for run in runs})
        models = sorted({run.model for run in runs})
        row, column = {pair: n for n, pair in enumerate(pairs)}, {model: n for n, model in enumerate(models)}
        total, count = np.zeros((len(pairs), len(models))), np.zeros((len(pairs), len(models)))
        for run in runs:
            place = row[run.task, run.language], column[run.model]
            total[place] += value(run.score)
            count[place] += 1
        return cls(tuple(pairs), tuple(models), total / np.maximum(count, 1), count)

    @classmethod
    def measured(cls, models: Mapping[str, Mapping[Pair, Measured]]) -> Scores:
        """Returns the table of means that have been taken before, by model."""
        pairs = sorted({pair for means in models.values() for pair in means})
        cells = [[means.get(pair, Measured(0.0, 0)) for means in models.values()] for pair in pairs]
        table = np.array(cells, dtype=np.float64).reshape(len(pairs), len(models), 2)
        return cls(tuple(pairs), tuple(models), table[..., 0], table[..., 1])

    def rows(self, kept: Sequence[int]) -> Scores:
        """Returns the table of some of the pairs."""
        return Scores(tuple(self.pairs[n] for n in kept), self.models, self.mean[kept], self.runs[kept])
