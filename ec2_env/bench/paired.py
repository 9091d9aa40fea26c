"""Two strategies on the same episodes: difference, interval, sign-flip test by tasks, effect size, correction for many tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.run_data import Row
from ec2_env.bench.statistics import SCALE, SEED, Estimate, estimate

FLIPS = 20_000
"""Random sign flips where there are too many tasks to try all; the smallest p is then 1 / 20,001."""
EXACT_TASKS = 14
"""Up to so many tasks that differ at all, every assignment of signs is tried."""
TIE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row less its reference.

    Attributes:
        episodes: Episodes that both have, and that the figure is averaged over in both.
        tasks: Their tasks.
        difference: Mean over those episodes with a 95% interval by a bootstrap over tasks.
        p: Two-sided p of the sign-flip test over tasks.
        effect: Cohen's d_z over the tasks' mean differences; None if they are all alike.
        better: Tasks in which the row's mean is higher.
        worse: Tasks in which it is lower.
    """

    episodes: int
    tasks: int
    difference: Estimate
    p: float | None
    effect: float | None
    better: int
    worse: int


def paired(row: Row, reference: Row, figure: str, tasks: int) -> Difference:
    """Compares two rows on the episodes that both have: the same task, language, seed and trial.

    Args:
        row: What is compared.
        reference: What it is compared with.
        figure: Name of a figure.
        tasks: Number of tasks of the run.
    """
    theirs = {key: place for place, key in enumerate(reference.keys)}
    places = [(mine, theirs[key]) for mine, key in enumerate(row.keys) if key in theirs]
    mine, other = np.array(places, dtype=np.int64).reshape(len(places), 2).T
    both = row.counted(figure)[mine] & reference.counted(figure)[other]
    mine, other = mine[both], other[both]
    gaps = (row.values[figure][mine] - reference.values[figure][other]) / SCALE
    counts = np.bincount(row.task[mine], minlength=tasks)
    sums: NDArray[np.float64] = np.bincount(row.task[mine], weights=gaps, minlength=tasks).astype(np.float64)
    played = counts > 0
    means = sums[played] / counts[played]
    return Difference(
        episodes=len(gaps),
        tasks=int(played.sum()),
        difference=estimate(sums, counts, fsum(gaps) / len(gaps)) if len(gaps) else Estimate(None),
        p=sign_flip_p(sums[played]) if played.sum() > 1 else None,
        effect=cohens_dz(means),
        better=int((means > TIE).sum()),
        worse=int((means < -TIE).sum()),
    )


def sign_flip_p(sums: NDArray[np.float64]) -> float:
    """Returns the two-sided p of a paired permutation test in which whole tasks change sides.

    If the two rows are alike, the difference of a task might as well have had the other sign. The p is the share of sign
    assignments whose sum is at least as far from 0; with random assignments, the observed one counts as one more (Phipson and
    Smyth 2010, arXiv 1603.05766).

    Args:
        sums: Sum of the differences of each task, shape (tasks,).
    """
    differing = sums[np.abs(sums) > TIE]
    if not len(differing):
        return 1.0
    exact = len(differing) <= EXACT_TASKS
    signs = _all_signs(len(differing)) if exact else _random_signs(len(differing))
    extreme = int((np.abs(signs @ differing) >= abs(differing.sum()) - TIE * len(differing)).sum())
    return extreme / len(signs) if exact else (extreme + 1) / (len(signs) + 1)


@lru_cache(maxsize=4)
def _all_signs(tasks: int) -> NDArray[np.float64]:
    """Returns all assignments of signs, shape (2 ** tasks, tasks)."""
    bits = np.arange(2**tasks)[:, None] >> np.arange(tasks) & 1
    return np.where(bits, 1.0, -1.0)


@lru_cache(maxsize=4)
def _random_signs(tasks: int) -> NDArray[np.float64]:
    """Returns random assignments of signs, shape (FLIPS, tasks)."""
    return np.where(np.random.default_rng(SEED).integers(2, size=(FLIPS, tasks)), 1.0, -1.0)


def cohens_dz(differences: NDArray[np.float64]) -> float | None:
    """Returns the mean of paired differences in units of their standard deviation (Cohen 1988).

    Args:
        differences: Mean difference of each task, shape (tasks,).
    """
    if len(differences) < 2:
        return None
    spread = float(differences.std(ddof=1))
    return float(differences.mean()) / spread if spread > TIE else None


def holm(ps: Sequence[float]) -> list[float]:
    """Returns p values corrected for their number, so that the chance of one false finding among them stays below the level.

    Step-down method of Holm (1979): the i-th smallest of m is multiplied by m - i + 1, and none is below a smaller one's.
    """
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = highest
    return corrected
