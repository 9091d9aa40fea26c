"""How precise a run will be, said before it starts."""

from __future__ import annotations

from math import ceil

from ec2_env.bench.suites import Suite
from ec2_env.bench.variance import Components
from ec2_env.errors import ConfigurationError

PRIOR = Components(task=0.019, instance=0.063, trial=0.085)
"""Variance of completion (0 to 1) of a row: mean over the seven rows of
`ec2-env bench --strategy edge_only --strategy cloud_only --strategy step_routing --strategy adaptive_assistance:redacted
--seeds 2`, suite ec2-128 with simulated models; `ec2-env analyze` gives the components of a run of your own. Other models and
tasks differ."""
PAIRED_PRIOR = Components(task=0.003, instance=0.045, trial=0.130)
"""The same for the difference of two rows on the same episodes: mean over the twelve pairs of rows that share an edge model."""
SOURCE = "variance of simulated models on ec2-128"


def _size(suite: Suite) -> tuple[int, float]:
    """Returns the number of tasks, and of instances of each."""
    pairs = suite.pairs()
    tasks = len({task for task, _ in pairs})
    return tasks, len(pairs) * suite.seeds / tasks


def _counted(number: float, noun: str) -> str:
    shown = f"{number:,.0f}" if number == round(number) else f"{number:,.1f}"
    return f"{shown} {noun}{'' if number == 1 else 's'}"


def expected(suite: Suite) -> str:
    """Returns the line that says what margin of completion to expect."""
    tasks, instances = _size(suite)
    row, gap = (100 * prior.margin(tasks, instances, suite.trials) for prior in (PRIOR, PAIRED_PRIOR))
    least = 100 * PRIOR.margin(tasks, instances, None)
    if tasks == 1:
        return f"one task: no margin for others like it can be expected; trials: {suite.trials}"
    return (
        f"expected margin at 95% with {_counted(tasks, 'task')} x {_counted(instances, 'instance')} x "
        f"{_counted(suite.trials, 'trial')}: +-{row:.1f} points of completion for a row, +-{gap:.1f} for the difference of "
        f"two ({SOURCE}); more trials alone get a row no nearer than +-{least:.1f}"
    )


def trials_for(points: float, suite: Suite) -> int:
    """Returns the trials that a margin takes, for a row.

    Args:
        points: Half-width of the 95% interval of a row's completion, in percentage points.
        suite: Its tasks and seeds are kept.

    Raises:
        ConfigurationError: if no number of trials reaches it; says what does.
    """
    if not 0 < points < 100:
        raise ConfigurationError(f"--trials-for is {points:g}, expected percentage points above 0 and below 100")
    tasks, instances = _size(suite)
    needed = PRIOR.trials_for(points / 100, tasks, instances)
    if needed is not None:
        return needed
    least = 100 * PRIOR.margin(tasks, instances, None)
    more = ceil(tasks * (least / points) ** 2)
    raise ConfigurationError(
        f"no number of trials reaches +-{points:g} points with {_counted(tasks, 'task')} x {_counted(instances, 'instance')}: "
        f"tasks differ, and trials do not change that. The least is +-{least:.1f} ({SOURCE}); take more --seeds, or about "
        f"{more} tasks"
    )
