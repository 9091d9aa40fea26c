"""A trained router: from runs of single models on the train split to an estimate of what the cloud would add to each task.

It is fitted on (task, language, model, score) and on what is known of tasks before the work. A task that was run is ranked by its
estimate among the tasks that were run. One that never was has features only; such estimates vary less, so it is ranked among
cross-validated ones, made for each train task without that task's runs. Both quantiles are fixed on the train split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
import numpy as np

from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.training.estimators import ESTIMATORS, EstimatorName, Factors, Floats
from ec2_env.training.scored_runs import Scores
from ec2_env.training.task_features import NUMBERS, SIZE, Pair, features

FORMAT = 1
"""Goes up when a file of an earlier version would mean something else."""
FOLDS = 8
DIGITS = 6
"""Estimates are rounded, so that no platform's last bits decide which of two tasks is routed."""


class Router(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, eq=False):
    """A fitted router, as it is in its file.

    Attributes:
        estimator: How it was fitted.
        models: Names of the models.
        cloud: Which of them is the cloud's.
        pairs: Tasks that were run.
        center: Means of the features that are plain numbers.
        scale: What they are divided by.
        factors: The estimator.
        unseen: Estimates of the tasks that were run, each made without their runs, shape (pairs, models).
        format: Version of the file's form.
    """

    estimator: EstimatorName
    models: list[str]
    cloud: str
    pairs: list[Pair]
    center: list[float]
    scale: list[float]
    factors: Factors
    unseen: list[list[float]]
    format: int = FORMAT

    def estimates(self, pairs: Sequence[Pair]) -> Floats:
        """Returns the share that each model is expected to complete of each task, shape (pairs, models).

        Raises:
            UnknownName: if there is no such task.
            ConfigurationError: if a task does not exist in that language.
        """
        nothing = [0.0] * len(self.factors.offset)
        own = np.array([self.factors.own[self._places[pair]] if pair in self._places else nothing for pair in pairs])
        found = self.factors.estimate(_encoded(pairs, self.center, self.scale), own.reshape(len(pairs), -1))
        rounded: Floats = found.round(DIGITS)
        return rounded

    def gaps(self, edge: str, pairs: Sequence[Pair]) -> list[float]:
        """Returns how much more the cloud alone is expected to complete of each task than an edge model alone.

        Raises:
            UnknownName: if the router was not fitted with that model, or there is no such task.
        """
        return self._differences(edge, self.estimates(pairs))

    def routes(self, edge: str, pair: Pair, ratio: float) -> bool:
        """Says whether a task is among the share `ratio`, 0 to 1, for which the cloud is expected to add most.

        Raises:
            UnknownName: if the router was not fitted with that edge model, or there is no such task.
        """
        known = self.gaps(edge, self.pairs) if pair in self._places else self._differences(edge, np.array(self.unseen))
        ranked = sorted(known, reverse=True)[: round(ratio * len(known))]
        return bool(ranked) and self.gaps(edge, [pair])[0] >= ranked[-1]

    def save(self, path: Path) -> None:
        """Writes the router as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(self, order="sorted") + b"\n")

    @cached_property
    def _places(self) -> Mapping[Pair, int]:
        return {pair: place for place, pair in enumerate(self.pairs)}

    def _differences(self, edge: str, estimates: Floats) -> list[float]:
        if edge not in self.models:
            raise UnknownName("model in the router", edge, self.models)
        found = estimates[:, self.models.index(self.cloud)] - estimates[:, self.models.index(edge)]
        return [float(gap) for gap in found.round(DIGITS)]

    def fits_together(self) -> bool:
        """Says whether all its parts have shapes that belong together."""
        factors, k, models = self.factors, len(self.factors.offset), len(self.models)
        wanted = (
            (self.center, (len(NUMBERS),)),
            (self.scale, (len(NUMBERS),)),
            (self.unseen, (len(self.pairs), models)),
            (factors.weights, (SIZE, k)),
            (factors.own, (len(self.pairs), k)),
            (factors.loadings, (k, models)),
            (factors.bias, (models,)),
        )
        try:
            return self.cloud in self.models and all(np.array(part).shape == shape for part, shape in wanted)
        except ValueError:
            return False


def fit_router(scores: Scores, cloud: str, estimator: EstimatorName = "irt") -> Router:
    """Fits a router; the same runs give the same router.

    Args:
        scores: Runs of single models on the train split.
        cloud: Which model is the cloud's.
        estimator: One of `ESTIMATORS`.

    Raises:
        UnknownName: if the cloud model has no runs.
    """
    if cloud not in scores.models:
        raise UnknownName("model with runs", cloud, scores.models)
    center, scale, factors = _fitted(scores, estimator)
    return Router(
        estimator=estimator,
        models=list(scores.models),
        cloud=cloud,
        pairs=list(scores.pairs),
        center=center,
        scale=scale,
        factors=factors,
        unseen=cross_estimates(scores, estimator).round(DIGITS).tolist(),
    )


def fitted_gaps(scores: Scores, edge: str, cloud: str, estimator: EstimatorName) -> dict[Pair, float]:
    """Returns, for each task that was run, how much more the cloud alone is expected to complete than the edge alone."""
    center, scale, factors = _fitted(scores, estimator)
    found = factors.estimate(_encoded(scores.pairs, center, scale), np.array(factors.own)).round(DIGITS)
    gaps = found[:, scores.models.index(cloud)] - found[:, scores.models.index(edge)]
    return {pair: round(float(gap), DIGITS) for pair, gap in zip(scores.pairs, gaps, strict=True)}


def cross_estimates(scores: Scores, estimator: EstimatorName) -> Floats:
    """Returns the estimates of all tasks, each from the runs of the tasks of other folds only, shape (pairs, models)."""
    found = np.zeros_like(scores.mean)
    for fold in folds(scores.pairs):
        others = [n for n in range(len(scores.pairs)) if n not in fold] or fold
        center, scale, factors = _fitted(scores.rows(others), estimator)
        found[fold] = factors.estimate(_encoded([scores.pairs[n] for n in fold], center, scale))
    return found


def folds(pairs: Sequence[Pair]) -> list[list[int]]:
    """Deals the tasks out to `FOLDS` folds by a digest of their names; the languages of a task stay together."""
    names = sorted({name for name, _ in pairs}, key=lambda name: hashlib.blake2b(name.encode(), digest_size=8).digest())
    fold_of = {name: place % FOLDS for place, name in enumerate(names)}
    dealt = [[n for n, (name, _) in enumerate(pairs) if fold_of[name] == fold] for fold in range(FOLDS)]
    return [fold for fold in dealt if fold]


@lru_cache(maxsize=8)
def load_router(path: str) -> Router:
    """Returns the router of a file that `Router.save` wrote; read once in a process.

    Raises:
        ConfigurationError: if it cannot be read or is no router.
    """
    try:
        router = msgspec.json.decode(Path(path).expanduser().read_bytes(), type=Router)
    except OSError as error:
        raise ConfigurationError(f"router {path} cannot be read: {error}") from error
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{path} is not a router ({error}); make one with ec2-env route --out {path}") from error
    if router.format != FORMAT or not router.fits_together():
        raise ConfigurationError(f"{path} is not a router of this version; make one with ec2-env route --out {path}")
    return router


def _fitted(scores: Scores, estimator: EstimatorName) -> tuple[list[float], list[float], Factors]:
    """Returns means and scales of the plain numbers among the features, and the estimator."""
    numbers = features(scores.pairs)[:, : len(NUMBERS)]
    center = numbers.mean(axis=0).tolist()
    # Together the numbers weigh as much as each of the hashed parts, which have unit length.
    scale = (np.maximum(numbers.std(axis=0), 1e-3) * np.sqrt(len(NUMBERS))).tolist()
    return center, scale, ESTIMATORS[estimator](_encoded(scores.pairs, center, scale), scores.mean, scores.runs)


def _encoded(pairs: Sequence[Pair], center: Sequence[float], scale: Sequence[float]) -> Floats:
    x = features(pairs)
    x[:, : len(NUMBERS)] = (x[:, : len(NUMBERS)] - np.array(center)) / np.array(scale)
    return x
