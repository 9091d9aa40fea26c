"""Which episodes a run consists of, in a fixed order, each with a number."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from ec2_env.bench.suites import DEFAULT_SUITE, Suite, load_suite
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Prepared, Strategy, load_strategy
from ec2_env.workspace.world import Language


@lru_cache(maxsize=256)
def strategy_of(spec: str) -> Strategy:
    """Returns the strategy of a specification, loaded once in a process: a trained one may be large.

    Raises:
        UnknownName: if there is none of that name.
        ConfigurationError: if its options are wrong.
    """
    return load_strategy(spec)


class Cell(NamedTuple):
    """One row of the table: a strategy with its models, as specifications. `edge` is None if the strategy runs no edge model."""

    strategy: str
    edge: str | None
    cloud: str


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """All that fixes the results of a run.

    Attributes:
        name: The suite as it was named.
        suite: The suite, with the numbers that the command changed.
        strategies: Specifications, in the order of the table.
        edges: Specifications of edge models.
        cloud: Specification of the cloud model.
        weights: Weights of the return.
        trajectories: Whether whole trajectories are kept.
    """

    name: str
    suite: Suite
    strategies: tuple[str, ...]
    edges: tuple[str, ...]
    cloud: str
    weights: RewardWeights = field(default_factory=RewardWeights)
    trajectories: bool = False

    def cells(self) -> tuple[Cell, ...]:
        """Returns the rows: strategies without an edge model first, then the others by edge model."""
        without = [name for name in self.strategies if not strategy_of(name).uses_edge]
        cells = [Cell(name, None, self.cloud) for name in without]
        cells += [Cell(name, edge, self.cloud) for edge in self.edges for name in self.strategies if name not in without]
        return tuple(dict.fromkeys(cells))

    def prepared(self) -> bool:
        """Says whether a strategy has to be scored offline first."""
        return any(isinstance(strategy_of(name), Prepared) for name in self.strategies)

    def grid(self) -> Grid:
        """Returns the episodes of the table."""
        suite = self.suite
        return Grid(self.cells(), suite.pairs(), suite.split, suite.seeds, suite.trials)

    def calibration(self) -> Grid:
        """Returns the episodes that offline routers are scored on: edge-only and cloud-only, on the train split."""
        edges = dict.fromkeys(self.edges)
        cells = (Cell("cloud_only", None, self.cloud), *(Cell("edge_only", edge, self.cloud) for edge in edges))
        return Grid(cells, self.suite.pairs(), "train", self.suite.calibration_seeds, 1)

    def command(self) -> str:
        """Returns the shortest command that gives the same table."""
        default = load_suite(self.name)
        words = ["ec2-env", "bench", *([] if self.name == DEFAULT_SUITE else ["--suite", self.name])]
        words += [] if self.strategies == default.strategies else [w for s in self.strategies for w in ("--strategy", s)]
        words += [] if self.edges == default.edges else [word for edge in self.edges for word in ("--edge", edge)]
        words += [] if self.cloud == default.cloud else ["--cloud", self.cloud]
        for flag in ("seeds", "trials"):
            value = getattr(self.suite, flag)
            words += [] if value == getattr(default, flag) else [f"--{flag}", str(value)]
        if self.suite.languages != default.languages:
            words += [word for language in self.suite.languages for word in ("--language", language)]
        return shlex.join(words)


@dataclass(frozen=True)
class Grid:
    """Cells x (task, language) x seeds x trials, numbered in that order.

    Attributes:
        cells: Rows of the table.
        pairs: Tasks in their languages.
        split: Split that all episodes are of.
        seeds: Number of instances of each pair.
        trials: Number of trials of each instance.
    """

    cells: tuple[Cell, ...]
    pairs: tuple[tuple[str, Language], ...]
    split: str
    seeds: int
    trials: int

    @property
    def row(self) -> int:
        """Episodes in one cell."""
        return len(self.pairs) * self.seeds * self.trials

    def __len__(self) -> int:
        return len(self.cells) * self.row

    @cached_property
    def _cell_numbers(self) -> dict[Cell, int]:
        return {cell: number for number, cell in enumerate(self.cells)}

    @cached_property
    def _pair_numbers(self) -> dict[tuple[str, str], int]:
        return {pair: number for number, pair in enumerate(self.pairs)}

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, sorted."""
        return tuple(dict.fromkeys(task for task, _ in self.pairs))

    def number(self, cell: Cell, key: EpisodeKey) -> int | None:
        """Returns the number of an episode, or None if it is not part of the grid."""
        row, pair = self._cell_numbers.get(cell), self._pair_numbers.get((key.task, key.language))
        inside = key.split == self.split and 0 <= key.seed < self.seeds and 0 <= key.trial < self.trials
        if row is None or pair is None or not inside:
            return None
        return ((row * len(self.pairs) + pair) * self.seeds + key.seed) * self.trials + key.trial

    def episode(self, number: int) -> tuple[Cell, EpisodeKey]:
        """Returns the cell and the key of an episode."""
        rest, trial = divmod(number, self.trials)
        rest, seed = divmod(rest, self.seeds)
        row, pair = divmod(rest, len(self.pairs))
        task, language = self.pairs[pair]
        return self.cells[row], EpisodeKey(task=task, language=language, split=self.split, seed=seed, trial=trial)

    def chunks(self, missing: Iterator[int], size: int) -> Iterator[tuple[Cell, tuple[EpisodeKey, ...]]]:
        """Groups episodes that follow each other and share cell, task and language.

        Args:
            missing: Numbers of episodes, ascending.
            size: Most episodes in a group.
        """
        block, held, place = self.seeds * self.trials, list[int](), -1
        for number in missing:
            if held and (number // block != place or len(held) >= size):
                yield self._chunk(held)
                held = []
            held, place = [*held, number], number // block
        if held:
            yield self._chunk(held)

    def _chunk(self, numbers: list[int]) -> tuple[Cell, tuple[EpisodeKey, ...]]:
        episodes = [self.episode(number) for number in numbers]
        return episodes[0][0], tuple(key for _, key in episodes)
