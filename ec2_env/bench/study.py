"""The main table of the EC2-Bench study in its own layout: suite totals, grouped by who works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ec2_env.bench.layout import Table
from ec2_env.bench.report import Report
from ec2_env.bench.statistics import Summary
from ec2_env.models.loading import load_model

GROUPS = ("edge-only", "cloud-only", "collaboration")
HEAD = ("strategy", "edge", "cloud", "completion", "Pass^3", "raw M", "cached M", "out M", "USD", "edge PFLOPs", "privacy")
MILLION = 1e6


def study_table(report: Report) -> Table:
    """Returns completion, Pass^3, cloud tokens, USD, edge operations and privacy as the study's main table has them.

    Tokens (millions), USD and PFLOPs are for playing every instance of the suite once: means per episode times instances.
    """
    suite = report.config.suite
    instances = len(suite.pairs()) * suite.seeds
    found: dict[str, list[tuple[Summary, dict[str, Any]]]] = {group: [] for group in GROUPS}
    for _, rows in report.sections:
        for summary in rows:
            found[group_of(summary)].append((summary, _figures(summary, instances)))
    data = [{"group": group, **figures} for group, rows in found.items() for _, figures in rows]
    if report.trivial:
        data += [{"group": "trivial", "strategy": row.name, "completion": row.completion.mean} for row in report.trivial]
    sections = [(group, [_cells(figures) for _, figures in rows]) for group, rows in found.items() if rows]
    if report.trivial:
        trivial = [[row.label, "-", "-", f"{100 * (row.completion.mean or 0.0):.2f}", *["-"] * 7] for row in report.trivial]
        sections.append(("trivial agents, no model", trivial))
    notes = [
        report.models,
        "Completion, Pass^3 and privacy in percent (privacy 100: nothing sensitive reached the cloud). Cloud tokens in "
        f"millions, USD and edge PFLOPs: every one of the {instances:,} instances played once, as the mean over "
        f"{suite.trials} trials.",
        *(note for note in report.notes if note.startswith(("PARTIAL", "Episodes", "Prices"))),
        f"Reproduce: {report.command}",
    ]
    return Table(name="study", title=report.title, head=HEAD, sections=sections, notes=notes, data=data)


def group_of(summary: Summary) -> str:
    """Says to which of the study's groups a row belongs."""
    match summary.cell.strategy.partition(":")[0]:
        case "edge_only":
            return GROUPS[0]
        case "cloud_only":
            return GROUPS[1]
    return GROUPS[2]


def _figures(summary: Summary, instances: int) -> dict[str, Any]:
    means = {name: estimate.mean for name, estimate in summary.figures.items()}
    edge = load_model(summary.cell.edge).card.name if summary.cell.edge else None
    used = group_of(summary) != GROUPS[0]

    def total(name: str, unit: float = 1.0) -> float | None:
        mean = means[name]
        return None if mean is None else mean * instances / unit

    return {
        "strategy": summary.cell.strategy,
        "edge": edge,
        "cloud": load_model(summary.cell.cloud).card.name if used else None,
        "completion": means["completion"],
        "pass_hat_3": means["pass_hat_3"],
        **{name: total(name, MILLION) for name in ("tokens_raw", "tokens_cached", "tokens_out")},
        "cloud_usd": total("cloud_usd"),
        "edge_pflops": total("edge_pflops"),
        "privacy": means["privacy"],
    }


def _cells(figures: Mapping[str, Any]) -> list[str]:
    def shown(name: str, scale: float = 1.0, digits: int = 2) -> str:
        value = figures[name]
        return "-" if value is None else f"{scale * value:.{digits}f}" if value else "0"

    return [
        figures["strategy"],
        figures["edge"] or "-",
        figures["cloud"] or "-",
        shown("completion", 100),
        shown("pass_hat_3", 100, 1),
        *(shown(name) for name in ("tokens_raw", "tokens_cached", "tokens_out", "cloud_usd", "edge_pflops")),
        shown("privacy", 100),
    ]
