"""The tables of figures: all rows, by category, by language, and how episodes ended."""

from __future__ import annotations

from collections.abc import Sequence

from ec2_env.bench.statistics import Summary
from ec2_env.bench.table import COLUMNS
from ec2_env.report.figures import short
from ec2_env.report.markup import Content, Markup, Viewer, joined, table, tag
from ec2_env.report.naming import Naming
from ec2_env.report.run import Run

UNITS = {
    "tokens_raw": "raw input tokens",
    "tokens_cached": "cached tokens",
    "tokens_out": "output tokens",
    "edge_pflops": "edge PFLOP",
}
"""Headings that stand without the line above them that a terminal has."""


def main_table(naming: Naming) -> Markup:
    """Returns the table of a run, with the columns of `ec2-env bench`."""
    head = ["strategy", *(UNITS.get(name, heading) for name, heading, _ in COLUMNS)]
    rows: list[Sequence[Content] | str] = []
    for heading, summaries in naming.sections():
        rows.append(heading)
        rows += [[s.cell.strategy, *(form(s.figures[name]) for name, _, form in COLUMNS)] for s in summaries]
    caption = (
        "Completion, Pass^3 and privacy in percent with 95% intervals; tokens, USD and PFLOP are the cloud's and the edge's "
        "means per episode. Privacy 100: nothing sensitive reached the cloud."
    )
    return table(caption, head, rows)


def category_table(run: Run, naming: Naming, figure: str, about: str) -> Markup:
    """Returns the values of a heat map, with intervals."""
    head = ["strategy", *(category for category, _ in run.by_category)]
    columns = [{summary.cell: summary for summary in summaries} for _, summaries in run.by_category]
    rows: list[Sequence[Content] | str] = []
    for heading, summaries in naming.sections():
        rows.append(heading)
        rows += [[s.cell.strategy, *(short(column[s.cell].figures[figure]) for column in columns)] for s in summaries]
    return tag("details", tag("summary", f"{about}: all values with intervals"), table(f"{about}, %", head, rows))


def language_table(run: Run, naming: Naming) -> Markup:
    """Returns completion, privacy and bill by language."""
    if len(run.by_language) < 2:
        return tag("p", f"All episodes are in one language: {run.by_language[0][0]}.")
    shown = ("completion", "privacy", "cloud_usd")
    head = ["strategy", *(f"{name}, {language}" for name in ("completion", "privacy", "USD") for language, _ in run.by_language)]
    columns = [{summary.cell: summary for summary in summaries} for _, summaries in run.by_language]

    def cells(row: Summary) -> list[Content]:
        found = [column[row.cell].figures[figure] for figure in shown[:2] for column in columns]
        bills = [column[row.cell].figures["cloud_usd"].mean for column in columns]
        return [row.cell.strategy, *map(short, found), *("-" if bill is None else f"{bill:.4f}" for bill in bills)]

    rows: list[Sequence[Content] | str] = []
    for heading, summaries in naming.sections():
        rows += [heading, *map(cells, summaries)]
    tasks = [{task for task, language in run.settings.pairs() if language == name} for name, _ in run.by_language]
    both = set.intersection(*tasks)
    same = all(found == both for found in tasks)
    note = "The tasks are the same in each language." if same else "The tasks differ: a difference is not one of languages alone."
    sizes = ", ".join(f"{name}: {len(found)}" for (name, _), found in zip(run.by_language, tasks, strict=True))
    return joined(tag("p", f"Tasks: {sizes}. {note}"), table("Completion and privacy in percent, bill per episode", head, rows))


def endings_table(run: Run, naming: Naming, viewer: Viewer) -> Markup:
    """Returns how episodes ended; errors and invalid ones stand apart."""
    head = ["strategy", "episodes", "pass", "fail", "invalid", "strays", "errors", "missing", "first error"]
    places = {summary.cell: n for n, summary in enumerate(run.summaries)}
    rows: list[Sequence[Content] | str] = []
    for heading, summaries in naming.sections():
        rows.append(heading)
        for row in summaries:
            n = places[row.cell]
            counts = [run.tally.statuses[n, status] for status in ("pass", "fail", "invalid")]
            broken = min((place for (_, one), place in run.tally.first_error.items() if one == n), default=None)
            figures = [row.episodes, *counts, run.tally.strays[n], row.errors, row.missing]
            rows.append([row.cell.strategy, *(f"{value:,}" for value in figures), viewer.link(broken)])
    return joined(
        tag(
            "p",
            "Pass: completion of at least 0.7. Invalid: no call of the model could be used; such episodes are in all means. "
            "Errors: an endpoint broke; such episodes are in no mean. Strays: something was changed that nobody asked for.",
        ),
        table("Numbers of episodes", head, rows),
    )
