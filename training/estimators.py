"""Three estimators of how much of a task a model completes, from a few runs and from what is known of the task before the work.

All have one form. A task has k item parameters, in part explained by its features and, once it has been run, in part its own:
`z = x W + c + e`. A model has k loadings and a bias. The estimate is `link(z A + b)`; for a task that was never run, e is 0.
Numpy only, every draw is seeded, and the number of steps is fixed. The default settings were chosen on further seeds of the train
split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EstimatorName = Literal["irt", "mf", "logistic"]
FREE = 100.0
"""Prior variance of a parameter that is all but free."""


class Factors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted estimator, in lists that JSON can hold.

    Attributes:
        weights: W, shape (features, k).
        offset: c, shape (k,).
        own: e of each task that was run, shape (tasks, k).
        loadings: A, shape (k, models).
        bias: b, shape (models,).
        logistic: Whether the link is the logistic function; otherwise estimates are cut to 0..1.
    """

    weights: list[list[float]]
    offset: list[float]
    own: list[list[float]]
    loadings: list[list[float]]
    bias: list[float]
    logistic: bool

    def estimate(self, x: Floats, own: Floats | None = None) -> Floats:
        """Returns the share that each model is expected to complete of each task, shape (tasks, models).

        Args:
            x: Features, shape (tasks, features).
            own: What the tasks have of their own, shape (tasks, k); nothing for tasks that were never run.
        """
        z = x @ np.array(self.weights) + np.array(self.offset)
        raw = (z if own is None else z + own) @ np.array(self.loadings) + np.array(self.bias)
        return _share(raw) if self.logistic else np.clip(raw, 0.0, 1.0)


def fit_logistic(x: Floats, y: Floats, runs: Floats, *, common: float = 3.0, apart: float = 3.0) -> Factors:
    """Fits logit = b_m + x (w + w_m) by Newton's method. The baseline: a task has nothing of its own.

    Solved for one number for each (task, model) instead of one for each feature and model, of which there are more.

    Args:
        x: Features, shape (tasks, features).
        y: Mean scores, 0 to 1, shape (tasks, models); of no effect where there are no runs.
        runs: Number of runs behind each mean, same shape.
        common: Ridge on w.
        apart: Ridge on each w_m.
    """
    tasks, models = y.shape
    alike, same = x @ x.T, np.eye(models)
    kernel = np.kron(np.ones((models, models)), alike / common) + np.kron(same, alike / apart + FREE)
    target, counts = y.T.ravel(), runs.T.ravel()
    dual = np.zeros(len(target))
    for _ in range(25):
        share = _share(kernel @ dual)
        curve = np.maximum(counts * share * (1 - share), 1e-9)
        working = kernel @ dual + counts * (target - share) / curve
        dual = np.linalg.solve(kernel + np.diag(1 / curve), working)
    by_model = dual.reshape(models, tasks)
    weights = by_model.sum(axis=0) @ x / common + by_model @ x / apart
    return Factors(
        weights=weights.T.tolist(),
        offset=[0.0] * models,
        own=np.zeros((tasks, models)).tolist(),
        loadings=same.tolist(),
        bias=(FREE * by_model.sum(axis=1)).tolist(),
        logistic=True,
    )


def fit_mf(
    x: Floats, y: Floats, runs: Floats, *, rank: int = 3, own: float = 3.0, features: float = 10.0, rounds: int = 30
) -> Factors:
    """Factorizes the table of scores, y = b_m + z a_m with z near what the features say, by alternating least squares.

    Args:
        x: Features, shape (tasks, features).
        y: Mean scores, shape (tasks, models).
        runs: Number of runs behind each mean, same shape.
        rank: Number k of factors.
        own: Ridge on e, in runs.
        features: Ridge on W.
        rounds: Alternations.
    """
    tasks, models = y.shape
    bias = (y * runs).sum(axis=0) / np.maximum(runs.sum(axis=0), 1)
    prior = np.zeros((rank, models))
    prior[0] = 1.0  # the first factor is what all models have in common
    loadings = prior + np.random.default_rng(0).normal(0, 0.1, prior.shape)
    z, mean = np.zeros((tasks, rank)), np.zeros((tasks, rank))
    weights, offset = np.zeros((x.shape[1], rank)), np.zeros(rank)
    for _ in range(rounds):
        for task in range(tasks):
            z[task] = _ridge(loadings.T, y[task] - bias, runs[task], np.full(rank, own), mean[task])
        weights, offset, mean = _explained(x, z, features)
        with_one = np.column_stack([z, np.ones(tasks)])
        for model in range(models):
            solved = _ridge(
                with_one, y[:, model], runs[:, model], np.append(np.ones(rank), 1 / FREE), np.append(prior[:, model], bias[model])
            )
            loadings[:, model], bias[model] = solved[:-1], solved[-1]
    return Factors(
        weights=weights.tolist(),
        offset=offset.tolist(),
        own=(z - mean).tolist(),
        loadings=loadings.tolist(),
        bias=bias.tolist(),
        logistic=False,
    )


def fit_irt(
    x: Floats,
    y: Floats,
    runs: Floats,
    *,
    dimensions: int = 2,
    discrimination_sd: float = 0.5,
    difficulty_sd: float = 1.5,
    features: float = 10.0,
    rounds: int = 10,
) -> Factors:
    """Fits logit = a_t theta_m - d_t, a 2PL item response model in several dimensions, by ascent to the posterior's mode.

    Between spells of gradient ascent, the means of a_t and d_t are set to their ridge regression on the features, which is also
    all that is known of a task that was never run. Abilities start at each model's level, held near it by a unit normal prior.

    Args:
        x: Features, shape (tasks, features).
        y: Mean scores, shape (tasks, models).
        runs: Number of runs behind each mean, same shape.
        dimensions: Length of a_t and theta_m.
        discrimination_sd: Of a_t around its regression.
        difficulty_sd: Of d_t around its regression, in logits.
        features: Ridge on the regression.
        rounds: Spells of ascent, 60 steps each.
    """
    tasks, models = y.shape
    level = np.clip((y * runs).sum(axis=0) / np.maximum(runs.sum(axis=0), 1), 0.02, 0.98)
    prior = np.random.default_rng(0).normal(0, 0.3, (dimensions, models))
    prior[0] += np.log(level / (1 - level))
    theta = prior.copy()
    offset = np.eye(dimensions + 1)[0]
    mean = np.tile(offset, (tasks, 1))
    z, weights = mean.copy(), np.zeros((x.shape[1], dimensions + 1))
    sd = np.array([discrimination_sd] * dimensions + [difficulty_sd])
    move_items, move_abilities = _Ascent(z), _Ascent(theta)
    for _ in range(rounds):
        for _ in range(60):
            missed = runs * (y - _share(z[:, :-1] @ theta - z[:, -1:]))
            for_items = np.column_stack([missed @ theta.T, -missed.sum(axis=1)]) - (z - mean) / sd**2
            for_abilities = z[:, :-1].T @ missed - (theta - prior)
            move_items(for_items)
            move_abilities(for_abilities)
        weights, offset, mean = _explained(x, z, features)
    return Factors(
        weights=weights.tolist(),
        offset=offset.tolist(),
        own=(z - mean).tolist(),
        loadings=[*theta.tolist(), [-1.0] * models],
        bias=[0.0] * models,
        logistic=True,
    )


class _Ascent:
    """Adam (arXiv 1412.6980) on one array, in place."""

    def __init__(self, value: Floats, rate: float = 0.05) -> None:
        self.value, self.rate, self.steps = value, rate, 0
        self.first, self.second = np.zeros_like(value), np.zeros_like(value)

    def __call__(self, gradient: Floats) -> None:
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.99 * self.second + 0.01 * gradient**2
        size = np.sqrt(self.second / (1 - 0.99**self.steps)) + 1e-9
        self.value += self.rate * self.first / (1 - 0.9**self.steps) / size


def _explained(x: Floats, z: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
    """Returns weights and offset of the ridge regression of z on x, and what they say of each task."""
    offset = z.mean(axis=0)
    weights = x.T @ np.linalg.solve(x @ x.T + ridge * np.eye(len(x)), z - offset)
    return weights, offset, x @ weights + offset


def _ridge(rows: Floats, target: Floats, counts: Floats, pull: Floats, towards: Floats) -> Floats:
    """Returns weighted least squares coefficients, each pulled towards a value with its own strength."""
    weighted = rows * counts[:, None]
    solved: Floats = np.linalg.solve(weighted.T @ rows + np.diag(pull), weighted.T @ target + pull * towards)
    return solved


def _share(logits: Floats) -> Floats:
    """Returns the logistic function, of logits from -30 to 30."""
    share: Floats = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
    return share


ESTIMATORS: Mapping[EstimatorName, Callable[[Floats, Floats, Floats], Factors]] = {
    "irt": fit_irt,
    "mf": fit_mf,
    "logistic": fit_logistic,
}
