"""The top of the page: what was run, with which models, how to run it again, and what stands out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.pareto import pareto_front
from ec2_env.bench.report import count
from ec2_env.bench.statistics import Estimate, Summary
from ec2_env.bench.suites import load_suite
from ec2_env.errors import EC2Error
from ec2_env.report.figures import interval, short
from ec2_env.report.markup import Content, Markup, joined, tag
from ec2_env.report.naming import Naming
from ec2_env.report.run import Run, Settings


def header(run: Run) -> Markup:
    """Returns the title, whether the models are real, and the settings."""
    settings = run.settings
    models = {spec: card for spec, card in run.cards.items() if any(spec in (s.cell.edge, s.cell.cloud) for s in run.summaries)}
    simulated = [card.name for card in models.values() if card.simulated]
    real = [card.name for card in models.values() if not card.simulated]
    kind = "simulated models" if not real else "real models" if not simulated else "simulated and real models"
    words = f"Simulated: {', '.join(simulated)}. These figures are no measurements of the real models." if simulated else ""
    words += f"{' ' if words else ''}Real: {', '.join(real)}." if real else ""
    return tag(
        "header",
        tag("h1", f"Report of {run.name}, suite {settings.suite}"),
        tag("p", tag("span", kind, class_="kind simulated" if simulated else "kind"), " ", words),
        *(tag("p", note, class_="warn") for note in _warnings(run)),
        tag("dl", *(part for term, found in _facts(run) for part in (tag("dt", term), tag("dd", found)))),
    )


def _warnings(run: Run) -> list[str]:
    missing = sum(summary.missing for summary in run.summaries)
    partial = f"Partial: {missing:,} of {len(run.totals.grid):,} episodes are not there; rows cannot be compared."
    return [*([partial] if missing else []), *run.notes]


def _facts(run: Run) -> list[tuple[str, Content]]:
    settings = run.settings
    tasks, languages = run.totals.grid.tasks, sorted({language for _, language in settings.pairs()})
    weights = settings.weights
    facts: list[tuple[str, Content]] = [
        (
            "Episodes",
            f"{run.totals.done:,}: {count(len(run.summaries), 'row')} x {count(len(tasks), 'task')} ({', '.join(languages)}), "
            f"{settings.split} split, {count(settings.seeds, 'seed')}, {count(settings.trials, 'trial')}",
        ),
        (
            "Return",
            f"{weights.get('task', 0):g} x completion - {weights.get('cost', 0):g} x cost (1: as cloud-only) - "
            f"{weights.get('privacy', 0):g} x exposure (1: everything)",
        ),
        ("Suite digest", tag("code", settings.suite_digest)),
        ("Made with", f"EC2-Env {settings.version}, code {settings.code[:12]}"),
    ]
    if settings.prices:
        facts.append(("Prices", f"{settings.prices.get('entry', '')} as of {settings.prices.get('as_of', '')}"))
    command = None if len(run.folders) > 1 else command_of(settings)
    facts.append(("Command", tag("code", command) if command else "not one that can be derived from the folder"))
    return facts


def command_of(settings: Settings) -> str | None:
    """Returns the shortest command that runs the same; None if the suite is not there or holds other tasks now."""
    try:
        suite = load_suite(settings.suite)
        for languages in (suite.languages, tuple(dict.fromkeys(language for _, language in settings.pairs()))):
            changed = msgspec.structs.replace(
                suite,
                languages=languages,
                seeds=settings.seeds,
                trials=settings.trials,
            )
            if changed.pairs() == settings.pairs() and changed.split == settings.split:
                return BenchConfig(
                    name=settings.suite,
                    suite=changed,
                    strategies=settings.strategies,
                    edges=settings.edges,
                    cloud=settings.cloud,
                ).command()
    except EC2Error:
        return None
    return None


def findings(run: Run, naming: Naming) -> Markup:
    """Returns what stands out, as a list: the best rows on each axis and those that no other beats on all."""
    calling = [row for row in run.summaries if row.figures["cloud_calls"].mean]
    lines = [
        _best("Highest return", run.summaries, "return", naming, lambda one: interval(one, lambda value: f"{value:.2f}")),
        _best("Highest completion", run.summaries, "completion", naming, lambda one: f"{short(one)} %"),
        _best("Highest privacy of rows that call the cloud", calling, "privacy", naming, lambda one: f"{short(one)} %"),
        _front(run, naming),
    ]
    return joined(
        tag("ul", *(tag("li", one) for one in lines if one)),
        tag(
            "p",
            "In brackets: 95% intervals by a bootstrap over tasks. Where they overlap, compare the rows task by task before "
            "calling one better.",
            class_="soft",
        ),
    )


def _best(words: str, rows: Sequence[Summary], figure: str, naming: Naming, form: Callable[[Estimate], str]) -> Content:
    """Returns a line on the row, or the rows, with the highest mean; nothing if none has any."""
    means = {row.cell: row.figures[figure].mean for row in rows}
    highest = max((mean for mean in means.values() if mean is not None), default=None)
    best = [row for row in rows if highest is not None and means[row.cell] == highest]
    if not best:
        return ""
    names = ", ".join(naming.row(row.cell) for row in best)
    return joined(f"{words}: ", tag("strong", names), f" {form(best[0].figures[figure])}.")


def _front(run: Run, naming: Naming) -> Content:
    """Returns a line on the rows that no other beats on completion, privacy and bill together."""
    rows = [row for row in run.summaries if row.figures["privacy"].mean is not None]
    points = [
        (row.figures["completion"].mean or 0.0, row.figures["privacy"].mean or 0.0, -(row.figures["cloud_usd"].mean or 0.0))
        for row in rows
    ]
    front = [rows[n] for n in pareto_front(points)]
    if len(rows) < 2:
        return ""
    names = ", ".join(naming.row(row.cell) for row in front)
    beaten = len(rows) - len(front)
    return f"Rows that no other beats on completion, privacy and bill together, by their means: {names}. Beaten rows: {beaten}."
