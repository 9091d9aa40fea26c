"""Where the spread of a figure comes from, and how many trials a given margin takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""97.5% quantile of the standard normal distribution."""
MOST_TRIALS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Variances of one figure, in its squared unit.

    Attributes:
        task: Between tasks. Where a task has one instance, this holds what differs between instances, too.
        instance: Between the seeds and languages of one task; None where it cannot be told from `task`.
        trial: Between trials of one instance; None where there is one trial only. It is then in what is above it.
    """

    task: float
    instance: float | None
    trial: float | None

    def margin(self, tasks: int, instances: float, trials: int | None) -> float:
        """Returns the half-width of a 95% interval for the mean of a row, tasks being drawn from many like them.

        1.96 * sqrt(task / T + instance / (T * S) + trial / (T * S * R)), the variance of a mean of a nested design
        (Searle, Casella and McCulloch, Variance Components, 1992).

        Args:
            tasks: T, number of tasks.
            instances: S, instances of each task.
            trials: R, trials of each instance; None for any number, the least that trials can reach.
        """
        found = self.task / tasks + (self.instance or 0.0) / (tasks * instances)
        found += (self.trial or 0.0) / (tasks * instances * trials) if trials else 0.0
        return Z * sqrt(found)

    def trials_for(self, margin: float, tasks: int, instances: float) -> int | None:
        """Returns the least number of trials whose margin is at most the given one; None if no number reaches it."""
        left = (margin / Z) ** 2 - (self.task / tasks + (self.instance or 0.0) / (tasks * instances))
        if left <= 0:
            return None
        needed = max(1, ceil((self.trial or 0.0) / (tasks * instances * left) - 1e-9))
        return needed if needed <= MOST_TRIALS else None


def nested_components(values: NDArray[np.float64], task: Sequence[object], instance: Sequence[object]) -> Components | None:
    """Splits the variance of episodes into tasks, instances within tasks, and trials within instances.

    Method of moments: mean squares of the nested analysis of variance are set equal to their expectations, with the
    coefficients for unequal numbers (Searle, Casella and McCulloch, Variance Components, 1992). An estimate below 0 is
    given as 0.

    Args:
        values: Figure of each episode, shape (episodes,).
        task: Its task.
        instance: Its instance, unique over all tasks.

    Returns:
        None with fewer than two tasks.
    """
    if not len(values) or len(set(task)) < 2:
        return None
    tasks, of_task = np.unique(np.array([str(one) for one in task]), return_inverse=True)
    instances, first, of_instance = np.unique(
        np.array([f"{one}\n{other}" for one, other in zip(task, instance, strict=True)]), return_index=True, return_inverse=True
    )
    owner, total = of_task[first], len(values)
    in_task, in_instance = np.bincount(of_task), np.bincount(of_instance)
    task_means = np.bincount(of_task, weights=values) / in_task
    instance_means = np.bincount(of_instance, weights=values) / in_instance
    squares = np.bincount(owner, weights=in_instance**2.0)
    free = (len(tasks) - 1, len(instances) - len(tasks), total - len(instances))
    between = float((in_task * (task_means - values.mean()) ** 2).sum()) / free[0]
    middle = float((in_instance * (instance_means - task_means[owner]) ** 2).sum())
    within = float(((values - instance_means[of_instance]) ** 2).sum())
    trial = within / free[2] if free[2] else None
    per_task = (total - float((in_task**2.0).sum()) / total) / free[0]
    if not free[1]:
        return Components(task=max(0.0, (between - (trial or 0.0)) / per_task), instance=None, trial=trial)
    per_instance = (total - float((squares / in_task).sum())) / free[1]
    inst = max(0.0, (middle / free[1] - (trial or 0.0)) / per_instance)
    mixed = (float((squares / in_task).sum()) - float((in_instance**2.0).sum()) / total) / free[0]
    return Components(
        task=max(0.0, (between - (trial or 0.0) - mixed * inst) / per_task),
        instance=inst,
        trial=trial,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """Variances of a figure over several models that did the same tasks.

    Attributes:
        task: What all models find hard.
        model: How much better one model is than another.
        both: What one model finds hard and another does not.
        trial: Within a task and a model: trials, and instances if a task has several; None if there is one episode of each.
    """

    task: float
    model: float
    both: float
    trial: float | None


def crossed_components(cells: Sequence[Sequence[NDArray[np.float64]]]) -> Crossed | None:
    """Splits variance into tasks, models, their interaction, and what is left.

    Two-way random-effects analysis of unweighted cell means, with the harmonic mean of the cell sizes (Searle, Casella and
    McCulloch 1992, section 4.3; method of moments, estimates below 0 are given as 0). A variance between few models is a rough
    figure.

    Args:
        cells: For each model, the figures of its episodes in each task: cells[model][task] has shape (episodes,), none empty.

    Returns:
        None with fewer than two tasks or two models.
    """
    models, tasks = len(cells), len(cells[0]) if cells else 0
    if models < 2 or tasks < 2:
        return None
    means = np.array([[cell.mean() for cell in row] for row in cells])
    sizes = np.array([[len(cell) for cell in row] for row in cells])
    free = int((sizes - 1).sum())
    squares = sum(float(((cell - cell.mean()) ** 2).sum()) for row in cells for cell in row)
    trial = squares / free if free else None
    noise = (trial or 0.0) * float((1 / sizes).mean())
    by_task, by_model, overall = means.mean(axis=0), means.mean(axis=1), means.mean()
    task_square = models * float(((by_task - overall) ** 2).sum()) / (tasks - 1)
    model_square = tasks * float(((by_model - overall) ** 2).sum()) / (models - 1)
    rest = means - by_task[None, :] - by_model[:, None] + overall
    both_square = float((rest**2).sum()) / ((tasks - 1) * (models - 1))
    return Crossed(
        task=max(0.0, (task_square - both_square) / models),
        model=max(0.0, (model_square - both_square) / tasks),
        both=max(0.0, both_square - noise),
        trial=trial,
    )
