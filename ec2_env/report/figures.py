"""The plots of a run: two Pareto plots, and heat maps by category and by kind of sensitive value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ec2_env.bench.statistics import Estimate, Summary
from ec2_env.report.heatmap import Heat, Tile, heatmap
from ec2_env.report.marks import marks
from ec2_env.report.naming import Naming
from ec2_env.report.run import Run
from ec2_env.report.scatter import Axis, Dot, scatter
from ec2_env.report.tally import ELSE, TENTHS
from ec2_env.sensitive import KINDS


class Plot(NamedTuple):
    """A plot of the page. `name` is the name of its files and its place in the page."""

    name: str
    title: str
    svg: str


def _percent(value: float) -> str:
    return f"{100 * value:.4g}"


def _dollars(value: float) -> str:
    return f"{value:.4g}"


COMPLETION = Axis(title="completion, % (up is better)", form=_percent, more_is_better=True, most=1.0)
PRIVACY = Axis(title="privacy, % (right is better)", form=_percent, more_is_better=True, most=1.0)
COST = Axis(title="cloud bill, USD per episode (left is better)", form=_dollars, more_is_better=False)
DIMENSIONS = tuple(dict.fromkeys(dimension for dimension, _ in KINDS.values()))


def plots(run: Run, naming: Naming) -> list[Plot]:
    """Returns every plot that there are figures for."""
    found = [_pareto(run, naming, "utility-privacy", "Completion against privacy", "privacy", PRIVACY)] if _private(run) else []
    found.append(_pareto(run, naming, "utility-cost", "Completion against cost", "cloud_usd", COST))
    found.append(_by_category(run, naming, "category-completion", "Completion by category", "completion"))
    if _private(run):
        found.append(_by_category(run, naming, "category-privacy", "Privacy by category", "privacy"))
        found.append(_leaks(run, naming))
    return found


def _private(run: Run) -> bool:
    """Says whether any episode holds sensitive values."""
    return any(summary.figures["privacy"].mean is not None for summary in run.summaries)


def _pareto(run: Run, naming: Naming, name: str, title: str, figure: str, axis: Axis) -> Plot:
    dots = [
        Dot(
            strategy=summary.cell.strategy,
            words=naming.strategy(summary.cell),
            radius=naming.radius(summary.cell),
            x=summary.figures[figure],
            y=summary.figures["completion"],
            about=_about(naming.row(summary.cell), axis, summary.figures[figure], summary.figures["completion"]),
        )
        for summary in run.summaries
    ]
    looks = marks([summary.cell.strategy for summary in run.summaries])
    return Plot(name, title, scatter(name, title, dots, (axis, COMPLETION), looks, naming.sizes()))


def _about(row: str, axis: Axis, x: Estimate, y: Estimate) -> str:
    return f"{row}: {axis.title.partition(' (')[0]} {interval(x, axis.form)}; completion, % {interval(y, _percent)}"


def interval(estimate: Estimate, form: Callable[[float], str] = _percent) -> str:
    """Returns a mean and its 95% interval."""
    if estimate.mean is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return form(estimate.mean)
    return f"{form(estimate.mean)} [{form(estimate.low)}, {form(estimate.high)}]"


def short(estimate: Estimate) -> str:
    """Returns a share in percent with its interval in whole percent."""
    if estimate.mean is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.mean:.1f}"
    return f"{100 * estimate.mean:.1f} [{100 * estimate.low:.0f},{100 * estimate.high:.0f}]"


def _by_category(run: Run, naming: Naming, name: str, title: str, figure: str) -> Plot:
    columns, found = [], list[Mapping[object, Summary]]()
    for category, summaries in run.by_category:
        pairs = sum(summary.episodes for summary in summaries)
        columns.append(f"{category}\n{pairs // max(len(summaries), 1)} episodes")
        found.append({summary.cell: summary for summary in summaries})

    def tile(row: Summary, column: int) -> Tile:
        estimate = found[column][row.cell].figures[figure]
        return Tile(estimate.mean, f"{naming.row(row.cell)}, {columns[column]}: {short(estimate)}".replace("\n", ", "))

    unit = f"{figure}, mean in %"
    return Plot(name, title, heatmap(name, title, Heat(columns=columns, sections=_rows(naming, len(columns), tile), unit=unit)))


def _leaks(run: Run, naming: Naming) -> Plot:
    title = "What crossed, by kind of value"
    kinds = {dimension: [kind for kind, (family, _) in KINDS.items() if family == dimension] for dimension in DIMENSIONS}
    seen = {dimension for dimension, names in kinds.items() if any(kind in names for kind, _ in run.tally.touched)}
    columns = [dimension for dimension in DIMENSIONS if dimension in seen]
    kinds[ELSE] = [ELSE]
    columns += [ELSE] if any(kind == ELSE for kind, _ in run.tally.touched) else []
    places = {summary.cell: n for n, summary in enumerate(run.summaries)}

    def tile(row: Summary, column: int) -> Tile:
        n = places[row.cell]
        touched = sum(run.tally.touched[kind, n] for kind in kinds[columns[column]])
        crossed = sum(run.tally.crossed[kind, n] for kind in kinds[columns[column]]) / TENTHS
        share = crossed / touched if touched else None
        return Tile(share, f"{naming.row(row.cell)}, {columns[column]}: {crossed:.1f} of {touched:,} values that were seen")

    unit = "share of the values seen that crossed, %"
    heat = Heat(columns=columns, sections=_rows(naming, len(columns), tile), unit=unit)
    return Plot("leaks-kind", title, heatmap("leaks-kind", title, heat))


def _rows(
    naming: Naming, columns: int, tile: Callable[[Summary, int], Tile]
) -> list[tuple[str, Sequence[tuple[str, Sequence[Tile]]]]]:
    return [
        (heading, [(row.cell.strategy, [tile(row, column) for column in range(columns)]) for row in rows])
        for heading, rows in naming.sections()
    ]
