"""Lays a report out: for a terminal, as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Sequence

from ec2_env.bench.compare import Comparison
from ec2_env.bench.report import Report, as_data
from ec2_env.bench.statistics import Estimate, Summary

WIDTH = 120
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
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
    """Returns a table of at most `WIDTH` columns, if the names of the strategies allow it."""
    bold, dim, plain = (BOLD, DIM, PLAIN) if color else ("", "", "")
    head = ["strategy", *(heading for _, heading, _ in COLUMNS)]
    sections = [(heading, [_cells(summary) for summary in rows]) for heading, rows in report.sections]
    widths = _widths([head, *(row for _, rows in sections for row in rows)])
    lines = [*_wrapped(report.title, bold, plain), *_wrapped(report.models, "", ""), ""]
    lines += [f"{bold}{_over(widths)}{plain}", f"{bold}{_line(head, widths)}{plain}"]
    for heading, rows in sections:
        lines += [f"{dim}-- {heading} {'-' * max(0, sum(widths) + 2 * len(widths) - len(heading) - 6)}{plain}"]
        lines += [_line(row, widths) for row in rows]
    lines += ["", *(line for note in report.notes for line in _wrapped(note, dim, plain))]
    if compared is not None:
        lines += ["", *_compared_lines(compared, bold, dim, plain)]
    return "\n".join([*lines, "", f"Reproduce: {report.command}"]) + "\n"


def _over(widths: Sequence[int]) -> str:
    """Returns the line above the headings: it says of which side the tokens, the money and the operations are."""
    left = sum(widths[:4]) + 2 * 4
    cloud, edge = sum(widths[4:8]) + 2 * 3, widths[8]
    return " " * left + " cloud, per episode ".center(cloud, "-") + f"  {'edge':>{edge}}"


def _compared_lines(compared: Comparison, bold: str, dim: str, plain: str) -> list[str]:
    rows = [[row[0], *row[1:]] for _, found in compared.sections for row in found]
    widths = _widths([list(compared.head), *rows])
    lines = [*_wrapped(compared.title, bold, plain), "", f"{bold}{_line(compared.head, widths)}{plain}"]
    for heading, found in compared.sections:
        lines += [f"{dim}-- {heading} {'-' * max(0, sum(widths) + 2 * len(widths) - len(heading) - 6)}{plain}"]
        lines += [_line(row, widths) for row in found]
    return [*lines, "", *(line for note in compared.notes for line in _wrapped(note, dim, plain))]


def _cells(summary: Summary) -> list[str]:
    return [summary.cell.strategy, *(form(summary.figures[name]) for name, _, form in COLUMNS)]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    return "  ".join(
        [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True))]
    ).rstrip()


def _wrapped(text: str, before: str, after: str) -> list[str]:
    return [f"{before}{line}{after}" for line in textwrap.wrap(text, WIDTH)]


def as_markdown(report: Report, compared: Comparison | None) -> str:
    """Returns the same table for a page."""
    head = ["strategy", *(heading for _, heading, _ in COLUMNS)]
    lines = [f"**{report.title}**", "", report.models, ""]
    for heading, rows in report.sections:
        lines += [f"*{heading}*", "", *_markdown(head, [_cells(summary) for summary in rows]), ""]
    lines += [*(f"{note}  " for note in report.notes), "", f"Reproduce: `{report.command}`", ""]
    if compared is not None:
        lines += [f"**{compared.title}**", ""]
        for heading, found in compared.sections:
            lines += [f"*{heading}*", "", *_markdown(compared.head, found), ""]
        lines += [*(f"{note}  " for note in compared.notes), ""]
    return "\n".join(lines)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in table]


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
    return out.getvalue()


def _plain(estimate: Estimate) -> list[str]:
    return ["" if value is None else repr(round(value, 9)) for value in (estimate.mean, estimate.low, estimate.high)]


def as_json(report: Report, compared: Comparison | None) -> str:
    """Returns the whole report."""
    return json.dumps(as_data(report, compared.data if compared else None), indent=2, ensure_ascii=False) + "\n"
