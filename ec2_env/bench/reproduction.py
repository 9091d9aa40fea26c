"""The study's main table, played with simulated models and set beside what was published, row by row.

Rows of single models were fitted (completion and Pass^3, see `ec2_env.bench.calibration`); rows of two models are predictions.
Absolute amounts of tokens and money depend on how long the tasks are, so they are compared as shares: of the cloud alone, or, for
the edge model's operations, of the edge alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ec2_env.bench.compare import published
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.runner import Outcome, Watching, run
from ec2_env.bench.statistics import Estimate, Summary
from ec2_env.bench.suites import DEFAULT_SUITE, load_suite
from ec2_env.models.loading import load_model

CLOUD = "gpt-5.4"
"""The cloud model of all rows with two models, and the unit of tokens and money."""
EVERY_UNIT = 0.34
"""Share of the study's 100 annotated tasks whose privacy counts every sensitive value. That of the others counts those of records
that were opened, which comes nearest to our values that were seen."""
TARGETS: Mapping[str, float] = {"completion": 4.0, "pass_hat_3": 7.0, "privacy": 8.0, "usd": 30.0}
"""How near a prediction should come: points, and for money percent of the published share."""
FIGURES = ("completion", "pass_hat_3", "privacy", "usd", "tokens_raw", "tokens_cached", "tokens_out", "edge_flops")
"""What is compared, all in percent."""


class Pair(NamedTuple):
    """One figure, ours and published, in percent; the ends of our 95% interval where there are any."""

    ours: float | None
    published: float
    low: float | None = None
    high: float | None = None

    @property
    def error(self) -> float | None:
        """Ours less the published one, in points."""
        return None if self.ours is None else self.ours - self.published


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table.

    Attributes:
        edge: Profile of the edge model; None if there is none.
        cloud: Profile of the cloud model; None if it is never used.
        fitted: Whether completion and Pass^3 of this row were fitted.
        figures: What is compared, by the names of `FIGURES`.
    """

    strategy: str
    edge: str | None
    cloud: str | None
    fitted: bool
    figures: Mapping[str, Pair]

    def within(self, figure: str) -> bool | None:
        """Says whether a figure comes as near as it should; None if nothing is asked of it."""
        pair = self.figures[figure]
        if figure not in TARGETS or pair.error is None:
            return None
        limit = TARGETS[figure] * (pair.published / 100 if figure == "usd" else 1.0)
        return abs(pair.error) <= limit


def configs(edges: Mapping[str, str] | None = None, cloud: str | None = None) -> dict[str, BenchConfig]:
    """Returns the runs that make up the table, by cloud model.

    Args:
        edges: Specification that stands for an edge model, by profile name; the profile itself if left out.
        cloud: Specification that stands for `CLOUD`; the profile itself if left out.
    """
    rows = published()["rows"]
    suite = load_suite(DEFAULT_SUITE)
    names = tuple(dict.fromkeys(row["edge"] for row in rows if row["edge"]))
    stand_ins = tuple((edges or {}).get(name, f"sim:{name}") for name in names)
    strategies = tuple(dict.fromkeys(row["strategy"] for row in rows))
    found = {}
    for name in dict.fromkeys(row["cloud"] for row in rows if row["cloud"]):
        found[name] = BenchConfig(
            name=DEFAULT_SUITE,
            suite=suite,
            strategies=strategies if name == CLOUD else ("cloud_only",),
            edges=stand_ins,
            cloud=cloud if cloud and name == CLOUD else f"sim:{name}",
        )
    return found


def play(path: Path, *, workers: int, watch: Watching, runs: Mapping[str, BenchConfig] | None = None) -> dict[str, Outcome]:
    """Plays what is missing of the table, a run folder for each cloud model; returns their outcomes.

    Args:
        path: Folder of the run folders.
        workers: Number of processes.
        watch: Is told how it goes.
        runs: What to play; `configs()` if left out.
    """
    outcomes = {}
    for name, config in (runs or configs()).items():
        outcomes[name] = run(config, path / name, workers=workers, watch=watch)
        if outcomes[name].interrupted:
            break
    return outcomes


def rows(outcomes: Mapping[str, Outcome]) -> tuple[Row, ...]:
    """Returns the rows of the table that have been played, in the published order."""
    ours: dict[tuple[str | None, str | None, str], Summary] = {}
    for outcome in outcomes.values():
        for summary in outcome.totals.summaries():
            edge, cloud = summary.cell.edge, _profile(summary.cell.cloud)
            ours[
                _profile(edge) if edge else None, None if summary.cell.strategy == "edge_only" else cloud, summary.cell.strategy
            ] = summary
    theirs = {(row["edge"], row["cloud"], row["strategy"]): row for row in published()["rows"]}
    return tuple(_row(key, ours, theirs) for key in theirs if key in ours)


def _profile(spec: str) -> str:
    return load_model(spec).card.name.partition("@")[0]


def _row(
    key: tuple[str | None, str | None, str],
    ours: Mapping[tuple[str | None, str | None, str], Summary],
    theirs: Mapping[tuple[str | None, str | None, str], Mapping[str, Any]],
) -> Row:
    edge, cloud, strategy = key
    mine, row = ours[key], theirs[key]
    alone, unit = (edge, None, "edge_only"), (None, CLOUD, "cloud_only")
    figures = {
        "completion": _percent(mine.figures["completion"], row["completion"]),
        "pass_hat_3": _percent(mine.figures["pass_hat_3"], row["pass3"]),
        "privacy": _percent(study_privacy(mine), row["privacy"]),
        "usd": _share(mine, ours.get(unit), "cloud_usd", row["usd"], theirs[unit]["usd"]),
        "edge_flops": _share(
            mine, ours.get(alone), "edge_pflops_without_probes", row["edge_pflops"], theirs[alone]["edge_pflops"] if edge else 0
        ),
    }
    for number, name in enumerate(("tokens_raw", "tokens_cached", "tokens_out")):
        figures[name] = _share(mine, ours.get(unit), name, row["tokens"][number], theirs[unit]["tokens"][number])
    single = edge is None or cloud is None
    return Row(strategy=strategy, edge=edge, cloud=cloud, fitted=single, figures=figures)


def study_privacy(summary: Summary) -> Estimate:
    """Returns privacy as the study counts it: `EVERY_UNIT` of its tasks over all units, the others over those that were seen."""
    seen, every = summary.figures["privacy"], summary.figures["privacy_all"]
    ends = zip((seen.mean, seen.low, seen.high), (every.mean, every.low, every.high), strict=True)
    return Estimate(*(None if a is None or b is None else (1 - EVERY_UNIT) * a + EVERY_UNIT * b for a, b in ends))


def _percent(ours: Estimate, theirs: float) -> Pair:
    mean, low, high = (None if value is None else 100 * value for value in (ours.mean, ours.low, ours.high))
    return Pair(mean, theirs, low, high)


def _share(ours: Summary, unit: Summary | None, figure: str, theirs: float, their_unit: float) -> Pair:
    mean, whole = ours.figures[figure].mean, unit.figures[figure].mean if unit is not None else None
    return Pair(100 * mean / whole if mean is not None and whole else None, 100 * theirs / their_unit if their_unit else 0.0)


def predicted(found: Sequence[Row]) -> tuple[Row, ...]:
    """Returns the rows with two models."""
    return tuple(row for row in found if not row.fitted)


def rank_correlation(found: Sequence[Row], figure: str) -> float | None:
    """Returns Spearman's rank correlation of ours and published over the rows; None if one side does not vary."""
    pairs = [row.figures[figure] for row in found if row.figures[figure].ours is not None]
    if len(pairs) < 2:
        return None
    ours, theirs = ranks([float(pair.ours or 0.0) for pair in pairs]), ranks([pair.published for pair in pairs])
    if np.ptp(ours) == 0 or np.ptp(theirs) == 0:
        return None
    return float(np.corrcoef(ours, theirs)[0, 1])


def ranks(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns ranks from 1; equal values share the mean of theirs."""
    array = np.asarray(values, dtype=np.float64)
    below = (array[:, None] > array[None, :]).sum(axis=1)
    equal = (array[:, None] == array[None, :]).sum(axis=1)
    return np.asarray(below + (equal + 1) / 2, dtype=np.float64)
