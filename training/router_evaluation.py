"""How good a router is: on tasks that it has seen run, and on tasks that it has not.

Both are judged on the same runs of the test split, which no estimator has seen. "Unseen" estimates come from cross-validation
over tasks: each task is estimated from the train runs of the other folds alone, and ranked among the tasks of its own fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ec2_env.errors import ConfigurationError
from ec2_env.session import PASS_THRESHOLD
from ec2_env.training.estimators import ESTIMATORS, Floats
from ec2_env.training.evaluation import half_width
from ec2_env.training.router import cross_estimates, fit_router, folds
from ec2_env.training.scored_runs import Run, Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """What one ranking of the tasks does for one edge model.

    Attributes:
        correlation: Spearman's, between predicted and true gap; the mean over folds for unseen tasks.
        completion: Mean completion when the share `ratio` with the highest predicted gaps goes to the cloud, 0 to 1.
        gain: The same less what the share costs no thought to get: that of tasks picked at random.
        width: Half the width of the gain's 95% interval over tasks.
    """

    correlation: float
    completion: float
    gain: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One ranking.

    Attributes:
        name: In words.
        seen: Whether it uses train runs of the tasks that it ranks.
        auc: Area under the curve for the passes of single test runs; None for rankings that predict none.
        brier: Mean square error of the chance of a pass.
        routed: By edge model.
    """

    name: str
    seen: bool
    auc: float | None
    brier: float | None
    routed: dict[str, Routed]


def evaluate(train: Sequence[Run], test: Sequence[Run], cloud: str, ratio: float = 0.25) -> list[Row]:
    """Fits every estimator on the train runs, twice: on completions for the gaps, on passes for the chances.

    Args:
        train: Runs of single models on the train split.
        test: The same on the test split, of the same tasks and models.
        cloud: Name of the cloud model.
        ratio: Share of tasks for the cloud.

    Raises:
        ConfigurationError: if the two do not hold the same tasks and models, or a model lacks runs of a task.
    """
    fitted, true = Scores.of(train), Scores.of(test)
    if (fitted.pairs, fitted.models) != (true.pairs, true.models) or not (fitted.runs.all() and true.runs.all()):
        raise ConfigurationError("the runs of the two splits are not of the same tasks and models; play both with one suite")
    judge = _Judge(test, true, cloud, ratio)
    passes = Scores.of(train, _passed)
    rows = [
        judge.row("the true gap", True, None, true.mean),
        judge.random(),
        judge.row("measured gap", True, passes.mean, fitted.mean),
        judge.row("mean of the model", False, np.tile(passes.mean.mean(axis=0), (len(true.pairs), 1)), None),
    ]
    for name in ESTIMATORS:
        chances, shares = (fit_router(scores, cloud, name).estimates(scores.pairs) for scores in (passes, fitted))
        rows.append(judge.row(name, True, chances, shares))
        rows.append(judge.row(name, False, cross_estimates(passes, name), cross_estimates(fitted, name)))
    return rows


class _Judge:
    """Holds predictions against the runs of the test split."""

    def __init__(self, test: Sequence[Run], true: Scores, cloud: str, ratio: float) -> None:
        row, column = {pair: n for n, pair in enumerate(true.pairs)}, {model: n for n, model in enumerate(true.models)}
        self.places = tuple(np.array([(row[run.task, run.language], column[run.model]) for run in test]).T)
        self.passed = np.array([_passed(run.score) for run in test])
        self.true, self.cloud, self.ratio = true, column[cloud], ratio
        self.edges = {model: place for model, place in column.items() if model != cloud}

    def row(self, name: str, seen: bool, chances: Floats | None, shares: Floats | None) -> Row:
        """Judges chances of a pass and expected completions, both of shape (pairs, models)."""
        told = chances[self.places] if chances is not None else None
        return Row(
            name=name,
            seen=seen,
            auc=auc(told, self.passed) if told is not None else None,
            brier=float(np.mean((told - self.passed) ** 2)) if told is not None else None,
            routed={edge: self._routed(place, shares, seen) for edge, place in self.edges.items()} if shares is not None else {},
        )

    def random(self) -> Row:
        """Returns what tasks picked at random are expected to come to."""
        mean = self.true.mean.mean(axis=0)
        routed = {
            name: Routed(
                correlation=0.0, completion=float(mean[n] + self.ratio * (mean[self.cloud] - mean[n])), gain=0.0, width=0.0
            )
            for name, n in self.edges.items()
        }
        return Row(name="random", seen=False, auc=None, brier=None, routed=routed)

    def _routed(self, edge: int, shares: Floats, seen: bool) -> Routed:
        gap = self.true.mean[:, self.cloud] - self.true.mean[:, edge]
        guess = (shares[:, self.cloud] - shares[:, edge]).round(6)
        groups = [list(range(len(gap)))] if seen else folds(self.true.pairs)
        chosen = np.zeros(len(gap))
        for group in groups:
            ranked = sorted(group, key=lambda n: (-guess[n], n))
            chosen[ranked[: round(self.ratio * len(group))]] = 1.0
        gains = (chosen - chosen.mean()) * gap
        return Routed(
            correlation=float(np.mean([spearman(guess[group], gap[group]) for group in groups])),
            completion=float(np.mean(self.true.mean[:, edge] + chosen * gap)),
            gain=float(gains.mean()),
            width=half_width(gains.tolist()),
        )


def auc(told: Floats, passed: Floats) -> float:
    """Returns the chance that a run that passed was told a higher chance than one that did not; a tie counts half."""
    failed = np.sort(told[passed == 0])
    above = np.searchsorted(failed, told[passed == 1], "left") + np.searchsorted(failed, told[passed == 1], "right")
    return float(above.mean() / 2 / len(failed)) if len(failed) and passed.any() else 0.5


def spearman(left: Floats, right: Floats) -> float:
    """Returns Spearman's rank correlation; 0 if one side is constant. Ties share their mean rank."""
    a, b = _ranks(left), _ranks(right)
    size = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean()) / size if size else 0.0


def _ranks(values: Floats) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _passed(score: float) -> float:
    return float(score >= PASS_THRESHOLD)


def table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table: rankings that have seen runs of the tasks first, then the others."""
    edges = list(dict.fromkeys(edge for row in rows for edge in row.routed))
    head = ["tasks", "ranked by", "AUC", "Brier"]
    head += [f"{edge}: {part}" for edge in edges for part in ("correlation", "completion", "over random")]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in sorted(rows, key=lambda row: not row.seen):
        cells = ["seen" if row.seen else "unseen", row.name]
        cells += ["" if value is None else f"{value:.3f}" for value in (row.auc, row.brier)]
        cells += [cell for edge in edges for cell in _cells(row.routed.get(edge))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(routed: Routed | None) -> tuple[str, str, str]:
    if routed is None:
        return "", "", ""
    gain = f"{100 * routed.gain:+.1f} ± {100 * routed.width:.1f}" if routed.width else ""
    return f"{routed.correlation:.2f}" if gain else "", f"{100 * routed.completion:.1f}", gain
