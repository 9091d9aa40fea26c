"""Agents that do not do the work, on the episodes of a suite: what a completion is worth is seen beside theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ec2_env.bench.statistics import Estimate, estimate
from ec2_env.bench.suites import Suite
from ec2_env.session import PASS_THRESHOLD
from ec2_env.task import build_episode
from ec2_env.testing.agents import AGENTS

SHOWN = {"nothing": "do nothing", "dump": "dump everything", "random": "random calls"}
"""Agents of `ec2_env.testing.agents` that are shown, with what the rows are called."""
MOST_INSTANCES = 1_024
"""In a larger suite, only so many instances are played, the first seeds of every task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrivialRow:
    """What an agent without a model completes; nothing leaves the workspace, and nothing is paid.

    Attributes:
        name: Name of the agent.
        label: What it does.
        instances: Episodes; there is one trial of each, as nothing is random between trials.
        completion: Mean completion with its interval over tasks.
        passed: Share of episodes that pass.
    """

    name: str
    label: str
    instances: int
    completion: Estimate
    passed: Estimate


@lru_cache(maxsize=8)
def trivial_rows(suite: Suite) -> tuple[TrivialRow, ...]:
    """Plays the trivial agents. Costs about half a second for 128 episodes; a limit on steps does not bind them."""
    pairs = suite.pairs()
    seeds = max(1, min(suite.seeds, MOST_INSTANCES // len(pairs)))
    tasks = tuple(dict.fromkeys(task for task, _ in pairs))
    found: dict[str, list[float]] = {name: [] for name in SHOWN}
    of_task = []
    for task, language in pairs:
        for seed in range(seeds):
            episode = build_episode(task, seed, language, suite.split)
            of_task.append(tasks.index(task))
            for name, values in found.items():
                values.append(AGENTS[name](episode))
    return tuple(_row(name, label, found[name], of_task, len(tasks)) for name, label in SHOWN.items())


def _row(name: str, label: str, values: Sequence[float], of_task: Sequence[int], tasks: int) -> TrivialRow:
    counts = np.bincount(of_task, minlength=tasks)
    passed = [float(value >= PASS_THRESHOLD) for value in values]
    return TrivialRow(
        name=name,
        label=label,
        instances=len(values),
        completion=estimate(np.bincount(of_task, weights=values, minlength=tasks), counts),
        passed=estimate(np.bincount(of_task, weights=passed, minlength=tasks), counts),
    )
