"""What `ec2-env analyze` shows of a run, as tables: comparisons, passes, parts; and the list of all its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ec2_env.bench.analysis_curves import curve_tables, front_tables
from ec2_env.bench.analysis_variance import variance_tables
from ec2_env.bench.layout import Table
from ec2_env.bench.paired import FLIPS, Difference, holm, paired
from ec2_env.bench.run_data import Row, RunData
from ec2_env.bench.slices import LEAST_TASKS, slices_of
from ec2_env.bench.statistics import DRAWS, FIGURES, Estimate, estimate, mean_of, pass_at_k, pass_hat_k
from ec2_env.errors import ConfigurationError, UnknownName

SHARES = (
    *("completion", "passed", "called", "privacy", "privacy_when_called", "privacy_all"),
    *("any_leak", "necessary_exposure", "excess_exposure"),
)
"""Figures that are shown in percentage points."""
HIGHER_IS_BETTER = ("completion", "passed", "privacy", "privacy_when_called", "privacy_all", "return")
FIXED = ("edge_only", "cloud_only")
"""Strategies that never choose."""
MOST_PASSES = 5
"""Largest k of pass@k and pass^k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is analyzed.

    Attributes:
        against: Strategy that the others are compared with; the best fixed one in each figure if None.
        figures: Figures that are compared.
        margin: Half-width of an interval, in points, that trials are computed for.
    """

    against: str | None = None
    figures: tuple[str, ...] = ("completion", "return")
    margin: float = 5.0

    def checked(self) -> Options:
        """Returns itself if its settings can be used.

        Raises:
            UnknownName: for a figure that does not exist.
            ConfigurationError: if the margin is out of range.
        """
        for figure in self.figures:
            if figure not in FIGURES:
                raise UnknownName("figure", figure, FIGURES)
        if not 0 < self.margin < 100:
            raise ConfigurationError(f"--margin is {self.margin:g}, expected percentage points above 0 and below 100")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    figure: str
    edge: str | None
    row: Row
    reference: Row
    difference: Difference

    @property
    def heading(self) -> str:
        on = f", edge {self.edge}" if self.edge else ""
        return f"{self.figure}{on}, against {self.reference.cell.strategy}"


def paired_tables(run: RunData, options: Options) -> list[Table]:
    """Returns every row against its reference, with p values corrected for all comparisons shown."""
    found = list(_compared(run, options))
    tested = [place for place, one in enumerate(found) if one.difference.p is not None]
    corrected = dict(zip(tested, holm([found[place].difference.p or 0.0 for place in tested]), strict=True))
    sections: dict[str, list[list[str]]] = {}
    for place, one in enumerate(found):
        sections.setdefault(one.heading, []).append(_paired_cells(one, corrected.get(place)))
    notes = [
        "Row less reference, on episodes that both have (same task, language, seed and trial); shares in points. In "
        f"brackets: 95% interval by a bootstrap over tasks ({DRAWS:,} draws). p: two-sided sign-flip test over tasks (all "
        f"assignments of signs, or {FLIPS:,} random ones); Holm: corrected for the {len(tested)} comparisons shown. d_z: "
        "Cohen's effect size over tasks. better, worse, same: tasks.",
    ]
    if not options.against:
        notes.append("Reference: of edge_only and cloud_only, redacted or not, the one that does best in the figure.")
    return [
        Table(
            name="paired",
            title=f"Paired comparisons, run {run.path.name}",
            head=("strategy", "difference", "p", "Holm", "d_z", "better", "worse", "same", "episodes"),
            sections=list(sections.items()),
            notes=notes,
            data=[_paired_data(one, corrected.get(place)) for place, one in enumerate(found)],
        )
    ]


def _compared(run: RunData, options: Options) -> Iterator[_Compared]:
    """Yields the comparisons; one that two edge models share only once."""
    seen: set[tuple[str, Row, Row]] = set()
    for figure in options.figures:
        for edge in run.edges():
            rows = [row for row in run.section(edge) if row.keys]
            reference = _reference(run, rows, figure, options.against)
            for row in rows:
                if row is reference or (figure, row, reference) in seen:
                    continue
                seen.add((figure, row, reference))
                found = paired(row, reference, figure, run.tasks)
                yield _Compared(figure=figure, edge=edge, row=row, reference=reference, difference=found)


def _paired_data(one: _Compared, corrected: float | None) -> dict[str, Any]:
    found = one.difference
    return {
        "figure": one.figure,
        **one.row.cell._asdict(),
        "against": one.reference.cell.strategy,
        **asdict(found.difference),
        "p": found.p,
        "p_holm": corrected,
        "effect": found.effect,
        **{name: getattr(found, name) for name in ("tasks", "episodes", "better", "worse")},
    }


def _reference(run: RunData, rows: Sequence[Row], figure: str, against: str | None) -> Row:
    if against is not None:
        found = [row for row in rows if row.cell.strategy == against]
        if not found:
            raise UnknownName("strategy of this run", against, {row.cell.strategy for row in run.rows})
        return found[0]
    fixed = [row for row in rows if row.cell.strategy.partition(":")[0] in FIXED] or rows[:1]
    sign = 1 if figure in HIGHER_IS_BETTER else -1
    return max(fixed, key=lambda row: sign * (row.estimate(figure, run.tasks).mean or 0.0))


def _paired_cells(compared: _Compared, corrected: float | None) -> list[str]:
    one, is_share = compared.difference, compared.figure in SHARES
    return [
        compared.row.cell.strategy,
        signed(one.difference, 100.0 if is_share else 1.0, 1 if is_share else 3),
        _p(one.p),
        _p(corrected),
        "-" if one.effect is None else f"{one.effect:+.2f}",
        *(str(number) for number in (one.better, one.worse, one.tasks - one.better - one.worse)),
        f"{one.episodes:,}",
    ]


def signed(found: Estimate, unit: float, digits: int) -> str:
    """Returns a difference with its sign, and its interval."""
    if found.mean is None:
        return "-"
    shown = f"{found.mean * unit:+.{digits}f}"
    if found.low is None or found.high is None:
        return shown
    return f"{shown} [{found.low * unit:+.{digits}f},{found.high * unit:+.{digits}f}]"


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def pass_tables(run: RunData, options: Options) -> list[Table]:
    """Returns pass@k and pass^k for every k up to the number of trials."""
    most = min(run.grid.trials, MOST_PASSES)
    names = [("pass@1 = pass^1", pass_at_k, 1)]
    names += [(f"pass@{k}", pass_at_k, k) for k in range(2, most + 1)] + [
        (f"pass^{k}", pass_hat_k, k) for k in range(2, most + 1)
    ]
    sections, data = [], list[Mapping[str, Any]]()
    for edge in dict.fromkeys(row.cell.edge for row in run.rows):
        rows = [row for row in run.rows if row.cell.edge == edge]
        shown = []
        for row in rows:
            found = {name: _passes(row, estimator, k, run.tasks) for name, estimator, k in names}
            shown.append([row.cell.strategy, *(_percent(one) for one in found.values())])
            data.append({**row.cell._asdict(), **{f"{name}{end}": v for name, one in found.items() for end, v in _ends(one)}})
        sections.append((f"edge {edge}" if edge else "no edge model", shown))
    notes = [
        "Percent, with 95% intervals by a bootstrap over tasks. pass@k: at least one of k fresh trials of an instance passes "
        "(completion of 70 or more), 1 - C(n-c,k)/C(n,k); pass^k: all k do, C(c,k)/C(n,k); both unbiased. Instances with "
        "fewer than k trials that ended are left out.",
    ]
    title = f"Passes in k trials, run {run.path.name}"
    return [
        Table(name="pass", title=title, head=("strategy", *(n for n, _, _ in names)), sections=sections, notes=notes, data=data)
    ]


def _passes(row: Row, estimator: Callable[[int, int, int], float], k: int, tasks: int) -> Estimate:
    """Returns the mean of an estimator of passes over the instances with enough trials."""
    trials: dict[tuple[int, str, int], list[int]] = {}
    for key, task, passed in zip(row.keys, row.task.tolist(), row.values["passed"].tolist(), strict=True):
        trials.setdefault((task, key.language, key.seed), []).append(int(passed > 0))
    found = [(place[0], estimator(sum(one), len(one), k)) for place, one in trials.items() if len(one) >= k]
    places, values = [task for task, _ in found], [value for _, value in found]
    sums = np.bincount(np.array(places, dtype=np.int64), weights=np.array(values), minlength=tasks)
    return estimate(sums, np.bincount(np.array(places, dtype=np.int64), minlength=tasks), mean_of(values))


def _percent(found: Estimate) -> str:
    if found.mean is None:
        return "-"
    shown = f"{found.mean * 100:.1f}"
    if found.low is None or found.high is None or found.low == found.high:
        return shown
    return f"{shown} [{found.low * 100:.0f},{found.high * 100:.0f}]"


def _ends(one: Estimate) -> tuple[tuple[str, float | None], ...]:
    return (("", one.mean), ("_low", one.low), ("_high", one.high))


def slice_tables(run: RunData, options: Options) -> list[Table]:
    """Returns the completion of every row in every part of the suite."""
    parts = slices_of(run.grid)
    tables = []
    for edge in run.edges():
        rows = run.section(edge)
        sections: dict[str, list[list[str]]] = {}
        data: list[Mapping[str, Any]] = []
        for part in parts:
            found = [row.estimate("completion", run.tasks, part.of(row)) for row in rows]
            widths = [(one.high - one.low) / 2 for one in found if one.low is not None and one.high is not None]
            episodes = max(int(part.of(row).sum()) for row in rows)
            cells = [
                part.value,
                str(part.tasks),
                str(episodes),
                *("-" if e.mean is None else f"{e.mean * 100:.0f}" for e in found),
            ]
            sections.setdefault(part.dimension, []).append([*cells, f"{max(widths) * 100:.0f}" if widths else "-"])
            data += [
                {"dimension": part.dimension, "value": part.value, "tasks": part.tasks, **row.cell._asdict(), **asdict(one)}
                for row, one in zip(rows, found, strict=True)
            ]
        legend = ", ".join(f"{number} {row.cell.strategy}" for number, row in enumerate(rows, 1))
        notes = [
            f"Completion in percent. {legend}.",
            "+-: half the widest 95% interval in the line, by a bootstrap over the tasks of the part; with few tasks it is "
            f"itself rough. A task is in several apps and patterns; patterns of fewer than {LEAST_TASKS} tasks are left out. "
            "Solution length: calls of the task's own solution. These are descriptions: no part was tested against another.",
        ]
        head = ("part", "tasks", "episodes", *(str(number) for number in range(1, len(rows) + 1)), "+-")
        title = f"Completion by part of the suite, run {run.path.name}{f', edge {edge}' if edge else ''}"
        tables.append(Table(name="slices", title=title, head=head, sections=list(sections.items()), notes=notes, data=data))
    return tables


TABLES: Mapping[str, Callable[[RunData, Options], list[Table]]] = {
    "paired": paired_tables,
    "pass": pass_tables,
    "slices": slice_tables,
    "variance": lambda run, options: variance_tables(run, options.margin),
    "curves": lambda run, options: curve_tables(run),
    "fronts": lambda run, options: front_tables(run),
}
"""What can be shown, in the order in which it is."""


def analyze(run: RunData, options: Options, only: Sequence[str] = ()) -> list[Table]:
    """Returns the tables of a run.

    Args:
        run: What was played.
        options: What is compared.
        only: Names of the tables that are wanted; all if empty.

    Raises:
        UnknownName: for a table, strategy or figure that does not exist.
    """
    options.checked()
    for name in only:
        if name not in TABLES:
            raise UnknownName("table", name, TABLES)
    return [table for name, make in TABLES.items() if not only or name in only for table in make(run, options)]


def about(run: RunData) -> str:
    """Returns one line that says what was played."""
    grid, settings = run.grid, run.settings
    simulated = [spec for spec, card in sorted(settings["models"].items()) if card["simulated"]]
    models = f" Simulated models: {', '.join(simulated)}." if simulated else ""
    return (
        f"Run {run.path.name}: suite {settings['suite']}, {len(grid.tasks)} tasks, {grid.split} split, seeds {grid.seeds}, "
        f"trials {grid.trials}; {len(run.rows)} rows of {grid.row:,} episodes.{models}"
    )
