"""Lays a report out: for a terminal, as Markdown, LaTeX, CSV or JSON, and as the study's main table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from ec2_env.bench.compare import Comparison
from ec2_env.bench.layout import (
    BOLD,
    DIM,
    PLAIN,
    Table,
    latex_lines,
    line,
    markdown_lines,
    markdown_rows,
    rule,
    terminal_lines,
    widths_of,
    wrapped,
)
from ec2_env.bench.report import Report, as_data
from ec2_env.bench.statistics import Estimate, Summary
from ec2_env.bench.trivial import TrivialRow

NONE = "-"


def _percent(estimate: Estimate) -> str:
    if estimate.mean is None:
        return NONE
    mean = f"{estimate.mean * 100:.1f}"
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return mean
    return f"{mean} [{estimate.low * 100:.0f},{estimate.high * 100:.0f}]"


def _thousands(estimate: Estimate) -> str:
    return NONE if estimate.mean is None else f"{estimate.mean / 1000:.1f}k" if estimate.mean else "0"


def _number(digits: int) -> Callable[[Estimate], str]:
    return lambda estimate: NONE if estimate.mean is None else f"{estimate.mean:.{digits}f}" if estimate.mean else "0"


def _operations(estimate: Estimate) -> str:
    """Returns PFLOPs; a small model needs thousandths of one."""
    if not estimate.mean:
        return NONE if estimate.mean is None else "0"
    return f"{estimate.mean:.2f}" if estimate.mean >= 0.01 else f"{estimate.mean:.1g}"


COLUMNS: Sequence[tuple[str, str, Callable[[Estimate], str]]] = (
    ("completion", "completion", _percent),
    ("pass_hat_3", "Pass^3", _percent),
    ("privacy", "privacy", _percent),
    ("tokens_raw", "raw in", _thousands),
    ("tokens_cached", "cached", _thousands),
    ("tokens_out", "out", _thousands),
    ("cloud_usd", "USD", _number(4)),
    ("edge_pflops", "PFLOP", _operations),
    ("return", "return", _number(2)),
)
"""Figure, heading and form of each column after the first."""


def as_terminal(report: Report, compared: Comparison | None, *, color: bool) -> str:
    """Returns a table of at most `layout.WIDTH` columns, if the names of the strategies allow it."""
    bold, dim, plain = (BOLD, DIM, PLAIN) if color else ("", "", "")
    head = ["strategy", *(heading for _, heading, _ in COLUMNS)]
    sections = _sections(report)
    widths = widths_of([head, *(row for _, rows in sections for row in rows)])
    lines = [*wrapped(report.title, bold, plain), *wrapped(report.models, "", ""), ""]
    lines += [f"{bold}{_over(widths)}{plain}", f"{bold}{line(head, widths)}{plain}"]
    for heading, rows in sections:
        lines += [f"{dim}{rule(heading, widths)}{plain}"]
        lines += [line(row, widths) for row in rows]
    lines += ["", *(found for note in report.notes for found in wrapped(note, dim, plain))]
    if compared is not None:
        lines += ["", *terminal_lines(compared, color=color)]
    return "\n".join([*lines, "", f"Reproduce: {report.command}"]) + "\n"


def _over(widths: Sequence[int]) -> str:
    """Returns the line above the headings: it says of which side the tokens, the money and the operations are."""
    left = sum(widths[:4]) + 2 * 4
    cloud, edge = sum(widths[4:8]) + 2 * 3, widths[8]
    return " " * left + " cloud, per episode ".center(cloud, "-") + f"  {'edge':>{edge}}"


def _sections(report: Report) -> list[tuple[str, list[list[str]]]]:
    """Returns the rows as text, those of agents without a model last."""
    sections = [(heading, [_cells(summary) for summary in rows]) for heading, rows in report.sections]
    if report.trivial:
        weight = report.config.weights.task
        sections.append(("trivial agents, no model", [_trivial_cells(row, weight) for row in report.trivial]))
    return sections


def _trivial_cells(row: TrivialRow, weight: float) -> list[str]:
    shown = {
        "completion": _percent(row.completion),
        "pass_hat_3": _percent(row.passed),
        "return": f"{weight * (row.completion.mean or 0.0):.2f}",
    }
    return [row.label, *(shown.get(name, NONE) for name, _, _ in COLUMNS)]


def _cells(summary: Summary) -> list[str]:
    return [summary.cell.strategy, *(form(summary.figures[name]) for name, _, form in COLUMNS)]


def as_markdown(report: Report, compared: Comparison | None) -> str:
    """Returns the same table for a page."""
    head = ["strategy", *(heading for _, heading, _ in COLUMNS)]
    lines = [f"**{report.title}**", "", report.models, ""]
    for heading, rows in _sections(report):
        lines += [f"*{heading}*", "", *markdown_rows(head, rows), ""]
    lines += [*(f"{note}  " for note in report.notes), "", f"Reproduce: `{report.command}`", ""]
    return "\n".join([*lines, *(markdown_lines(compared) if compared is not None else [])])


def as_latex(report: Report, compared: Comparison | None) -> str:
    """Returns the same table as a `table` environment, and the published figures in another."""
    table = Table(
        name="bench",
        title=report.title,
        head=["strategy", *(heading for _, heading, _ in COLUMNS)],
        sections=_sections(report),
        notes=[report.models, *report.notes],
    )
    lines = [f"% Reproduce: {report.command}", *latex_lines(table)]
    return "\n".join([*lines, *(["", *latex_lines(compared)] if compared is not None else [])]) + "\n"


def as_csv(report: Report) -> str:
    """Returns one line for each row, with every figure and both ends of its interval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    summaries = [summary for _, rows in report.sections for summary in rows]
    names = sorted(summaries[0].figures)
    ends = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    writer.writerow(["strategy", "edge", "cloud", "simulated", "episodes", "errors", "invalid", "missing", *ends])
    data = as_data(report, None)
    for summary in summaries:
        cell = summary.cell
        simulated = all(data["models"][spec]["simulated"] for spec in (cell.edge, cell.cloud) if spec)
        values = [value for name in names for value in _plain(summary.figures[name])]
        counts = (summary.episodes, summary.errors, summary.invalid, summary.missing)
        writer.writerow([cell.strategy, cell.edge or "", cell.cloud, str(simulated).lower(), *counts, *values])
    for row in report.trivial:
        found = {"completion": row.completion, "passed": row.passed}
        values = [value for name in names for value in _plain(found.get(name, Estimate(None)))]
        writer.writerow([f"trivial:{row.name}", "", "", "", row.instances, 0, 0, 0, *values])
    return out.getvalue()


def _plain(estimate: Estimate) -> list[str]:
    return ["" if value is None else repr(round(value, 9)) for value in (estimate.mean, estimate.low, estimate.high)]


def as_json(report: Report, compared: Comparison | None) -> str:
    """Returns the whole report."""
    return json.dumps(as_data(report, compared.data if compared else None), indent=2, ensure_ascii=False) + "\n"
