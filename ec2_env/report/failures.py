"""Failures, ranked: rows that fall behind on a task, hard tasks, checks that fail, forbidden acts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from ec2_env.report.markup import Content, Markup, Viewer, joined, table, tag
from ec2_env.report.naming import Naming
from ec2_env.report.run import Run
from ec2_env.strategy import Measured

LINES = 15
"""Most lines of a table."""
BEHIND = 0.05
"""A row falls behind if its completion is lower by this than the mean of the others."""
Means = Sequence[Mapping[tuple[str, str], Measured]]


def failures(run: Run, naming: Naming, viewer: Viewer) -> Markup:
    """Returns the tables."""
    means: Means = [run.totals.measured(summary.cell) for summary in run.summaries]
    return joined(
        _behind(run, naming, viewer, means),
        _hardest(run, naming, viewer, means),
        _checks(run, naming, viewer),
        _forbidden(run, naming, viewer),
    )


def _behind(run: Run, naming: Naming, viewer: Viewer, means: Means) -> Markup:
    """Returns where a row completes less of a task than the others do on the same task."""
    found, rivals = [], _rivals(run)
    for n, pair in enumerate(run.totals.grid.pairs):
        played = {row: mean[pair] for row, mean in enumerate(means) if pair in mean}
        for row, one in played.items():
            others = [other.completion for place, other in played.items() if place in rivals[row]]
            if others and one.completion - fmean(others) <= -BEHIND:
                found.append((one.completion - fmean(others), pair, row, n))
    if not found:
        return tag("p", "No row falls behind the others on any task.")
    rows: list[Sequence[Content] | str] = []
    for gap, pair, row, n in sorted(found)[:LINES]:
        one = means[row][pair]
        rows.append(
            [
                f"{pair[0]} ({pair[1]})",
                naming.row(run.summaries[row].cell),
                f"{100 * one.completion:.0f}",
                f"{100 * (one.completion - gap):.0f}",
                f"{100 * gap:.0f}",
                f"{one.runs:,}",
                viewer.link(run.tally.first_failed.get((n, row))),
            ]
        )
    caption = (
        "Where a row completes less of a task than the mean of the others with the same edge model or none: "
        f"the largest {len(rows)} of {len(found)} gaps"
    )
    head = ["task", "row", "completion, %", "others, %", "gap", "episodes", "first failure"]
    return joined(tag("h3", "Rows that fall behind"), table(caption, head, rows, words=2))


def _rivals(run: Run) -> list[set[int]]:
    """Returns, for each row, those with the same edge model or none; for one without, all others."""
    edges = [summary.cell.edge for summary in run.summaries]
    return [
        {place for place, other in enumerate(edges) if place != row and (edge is None or other is None or other == edge)}
        for row, edge in enumerate(edges)
    ]


def _hardest(run: Run, naming: Naming, viewer: Viewer, means: Means) -> Markup:
    found = []
    for n, pair in enumerate(run.totals.grid.pairs):
        played = {row: mean[pair].completion for row, mean in enumerate(means) if pair in mean}
        if played:
            found.append((fmean(played.values()), pair, n, played))
    rows: list[Sequence[Content] | str] = []
    for mean, pair, n, played in sorted(found, key=lambda one: one[:2])[:LINES]:
        best = max(played, key=lambda row: (played[row], -row))
        worst = min(played, key=lambda row: (played[row], row))
        rows.append(
            [
                f"{pair[0]} ({pair[1]})",
                f"{100 * mean:.0f}",
                f"{100 * played[best]:.0f}, {naming.row(run.summaries[best].cell)}",
                f"{100 * played[worst]:.0f}, {naming.row(run.summaries[worst].cell)}",
                viewer.link(run.tally.first_failed.get((n, worst))),
            ]
        )
    caption = f"Tasks by mean completion over all rows, in percent: the lowest {len(rows)} of {len(found)}"
    head = ["task", "mean", "best row", "worst row", "its first failure"]
    return joined(tag("h3", "Hardest tasks"), table(caption, head, rows))


def _checks(run: Run, naming: Naming, viewer: Viewer) -> Markup:
    seen, failed = _summed(run.tally.seen), _summed(run.tally.failed)
    if not failed:
        return tag("p", "No check failed, or the records do not name checks.")
    ordered = sorted(failed, key=lambda key: (-failed[key] / seen[key], -failed[key], key))[:LINES]
    rows: list[Sequence[Content] | str] = []
    for task, check in ordered:
        worst = max(
            range(len(run.summaries)), key=lambda row: (_share(run.tally.failed, run.tally.seen, (task, check, row)), -row)
        )
        rows.append(
            [
                task,
                check.replace("_", " "),
                f"{failed[task, check]:,} of {seen[task, check]:,}",
                f"{100 * failed[task, check] / seen[task, check]:.0f}",
                f"{100 * _share(run.tally.failed, run.tally.seen, (task, check, worst)):.0f}, "
                f"{naming.row(run.summaries[worst].cell)}",
                viewer.link(run.tally.first_check.get((task, check, worst))),
            ]
        )
    caption = f"Checks by the share of episodes that did not fully pass them: the first {len(rows)} of {len(failed)}"
    head = ["task", "check", "failed", "%", "row that fails it most, %", "its first failure"]
    return joined(tag("h3", "Checks that fail"), table(caption, head, rows, words=2))


def _forbidden(run: Run, naming: Naming, viewer: Viewer) -> Markup:
    acts = _summed(run.tally.forbidden)
    if not acts:
        return tag("p", "No forbidden act was done.")
    rows: list[Sequence[Content] | str] = []
    for task, act in sorted(acts, key=lambda key: (-acts[key], key))[:LINES]:
        counts = {row: number for (name, one, row), number in run.tally.forbidden.items() if (name, one) == (task, act)}
        worst = max(counts, key=lambda row: (counts[row], -row))
        most = f"{counts[worst]}, {naming.row(run.summaries[worst].cell)}"
        place = run.tally.first_check.get((task, act, worst))
        rows.append([task, act.replace("_", " "), f"{acts[task, act]:,}", most, viewer.link(place)])
    head = ["task", "act", "episodes", "most often in", "its first failure"]
    caption = f"Acts that make an episode worth nothing: the first {len(rows)} of {len(acts)}"
    return joined(tag("h3", "Forbidden acts"), table(caption, head, rows, words=2))


def _summed(counts: Counter[tuple[str, str, int]]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for (task, name, _), number in counts.items():
        if number:
            found[task, name] += number
    return found


def _share(part: Counter[tuple[str, str, int]], whole: Counter[tuple[str, str, int]], key: tuple[str, str, int]) -> float:
    return part[key] / whole[key] if whole[key] else 0.0
