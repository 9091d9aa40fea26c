"""Lays the reproduced table out: for a terminal, as Markdown, or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import ec2_env
from ec2_env.bench.compare import published
from ec2_env.bench.reproduction import FIGURES, TARGETS, Pair, Row, predicted, rank_correlation

WIDTH = 120
HEADINGS: Mapping[str, str] = {
    "completion": "completion",
    "pass_hat_3": "Pass^3",
    "privacy": "privacy",
    "usd": "USD %",
    "tokens_raw": "raw in %",
    "tokens_cached": "cached %",
    "tokens_out": "out %",
    "edge_flops": "edge FLOP %",
}
UNITS: Mapping[str, str] = {
    "completion": "points",
    "pass_hat_3": "points",
    "privacy": "points",
    "usd": "% of the published share",
}
FITTED, PREDICTED = "fitted", "predicted"


def head() -> list[str]:
    """Returns the headings: each figure of ours has the published one to its right."""
    return ["strategy", "rows are", *(text for name in FIGURES for text in (HEADINGS[name], "publ."))]


def cells(row: Row) -> list[str]:
    """Returns a row as text; a star marks a prediction that is further off than it should be."""
    name = row.strategy if row.edge is not None else f"{row.strategy} {row.cloud}"
    return [name, FITTED if row.fitted else PREDICTED, *(text for name in FIGURES for text in _pair(row, name))]


def _pair(row: Row, name: str) -> tuple[str, str]:
    pair = row.figures[name]
    if name == "edge_flops" and row.edge is None:
        return "-", "-"
    if pair.ours is None:
        return "-", f"{pair.published:.1f}"
    missed = "*" if not row.fitted and row.within(name) is False else ""
    return f"{pair.ours:.1f}{missed}", f"{pair.published:.1f}"


def sections(found: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Returns the rows under headings: clouds alone, then by edge model."""
    edges = tuple(dict.fromkeys(row.edge for row in found))
    names = {edge: f"edge {edge}" if edge else "no edge model" for edge in edges}
    return [(names[edge], [row for row in found if row.edge == edge]) for edge in edges]


def intervals(found: Sequence[Row]) -> list[list[str]]:
    """Returns error and 95% interval of each prediction."""
    lines = []
    for row in predicted(found):
        texts = []
        for name in TARGETS:
            pair = row.figures[name]
            error = "-" if pair.error is None else f"{pair.error:+.1f}"
            inside = "" if pair.low is None or pair.high is None else f" [{pair.low:.0f},{pair.high:.0f}]"
            texts.append(error + inside)
        lines.append([f"{row.edge} {row.strategy}", *texts])
    return lines


def verdicts(found: Sequence[Row]) -> list[str]:
    """Returns a line for each figure that something is asked of: how many rows are near enough, mean error, rank correlation."""
    rows = predicted(found)
    lines = []
    for name, limit in TARGETS.items():
        errors = [_asked(row.figures[name], name) for row in rows if row.figures[name].error is not None]
        near = sum(row.within(name) is True for row in rows)
        rank = rank_correlation(rows, name)
        lines.append(
            f"{HEADINGS[name]}: {near} of {len(rows)} predicted rows within {limit:g} {UNITS[name]}; mean absolute error "
            f"{np.mean(np.abs(errors)) if errors else float('nan'):.1f}; Spearman {'-' if rank is None else f'{rank:.2f}'}"
        )
    return lines


def _asked(pair: Pair, name: str) -> float:
    """Returns an error in the unit of its target."""
    assert pair.error is not None
    return 100 * pair.error / pair.published if name == "usd" else pair.error


def notes() -> list[str]:
    """Returns what has to be known to read the table."""
    return [
        f"{published()['source']}. Ours: simulated models on other tasks; EC2-Env {ec2_env.__version__}.",
        "Rows of single models were fitted to completion and Pass^3, and to nothing else; other figures, and all rows with two "
        "models, are predictions. A star: further off than 4 (completion), 7 (Pass^3), 8 points (privacy) or 30% (USD).",
        "Privacy as the study counts it: for 34 of 100 tasks over all sensitive values, else over those that were seen. USD and "
        "cloud tokens in percent of gpt-5.4 alone; operations of the edge model in percent of the edge alone, probes left out.",
    ]


def as_terminal(found: Sequence[Row]) -> str:
    """Returns the table, the predictions' errors with intervals, and the verdicts."""
    first = [head(), *(cells(row) for row in found)]
    second = [["error, and interval of ours", *(HEADINGS[name] for name in TARGETS)], *intervals(found)]
    lines = []
    for heading, rows in [("", []), *sections(found)]:
        lines += [f"-- {heading}"] if heading else [_line(first[0], first)]
        lines += [_line(cells(row), first) for row in rows]
    if len(second) > 1:
        lines += ["", *(_line(row, second) for row in second)]
    lines += ["", *verdicts(found), "", *(line for note in notes() for line in textwrap.wrap(note, WIDTH))]
    return "\n".join(lines) + "\n"


def _line(row: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in table) for column in range(len(row))]
    padded = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *padded]).rstrip()


def as_markdown(found: Sequence[Row]) -> str:
    """Returns the same for a page."""
    lines = []
    for heading, rows in sections(found):
        lines += [f"*{heading}*", "", *_markdown(head(), [cells(row) for row in rows]), ""]
    lines += [*_markdown(["error, and interval of ours", *(HEADINGS[name] for name in TARGETS)], intervals(found)), ""]
    return "\n".join([*lines, *(f"- {line}" for line in verdicts(found)), "", *(f"{note}  " for note in notes())]) + "\n"


def _markdown(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (heading, ["---", *("---:" for _ in heading[1:])], *rows)]


def as_json(found: Sequence[Row]) -> str:
    """Returns every figure, its interval and its error."""
    data: list[dict[str, Any]] = [
        {
            "strategy": row.strategy,
            "edge": row.edge,
            "cloud": row.cloud,
            "fitted": row.fitted,
            "figures": {
                name: {**pair._asdict(), "error": pair.error, "within": row.within(name)} for name, pair in row.figures.items()
            },
        }
        for row in found
    ]
    ranks = {name: rank_correlation(predicted(found), name) for name in TARGETS}
    return json.dumps({"version": ec2_env.__version__, "notes": notes(), "rows": data, "spearman": ranks}, indent=2) + "\n"
