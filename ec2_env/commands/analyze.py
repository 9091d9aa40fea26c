"""`ec2-env analyze`: compares the rows of a run, and shows the episodes behind a figure."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command

if TYPE_CHECKING:
    from ec2_env.bench.layout import Table
    from ec2_env.bench.run_data import RunData


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env bench --out runs/first\n"
        "  ec2-env analyze runs/first\n"
        "  ec2-env analyze runs/first --only paired --against random --figure completion --figure cloud_usd\n"
        "  ec2-env analyze runs/first --trace step_routing completion --edge sim:qwen3.5-9b"
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder of `ec2-env bench`")
    parser.add_argument(
        "--only", action="append", metavar="TABLE", help="paired, pass, slices, variance, curves or fronts; repeatable"
    )
    parser.add_argument("--edge", metavar="SPEC", help="rows with this edge model, as it was given to bench")
    parser.add_argument(
        "--against", metavar="STRATEGY", help="what to compare with (default: the best of edge_only and cloud_only)"
    )
    parser.add_argument("--figure", action="append", metavar="NAME", help="figure to compare (default: completion and return)")
    parser.add_argument(
        "--margin", type=float, default=5.0, metavar="POINTS", help="margin of completion to compute trials for (default: 5)"
    )
    parser.add_argument(
        "--trace",
        nargs=2,
        metavar=("STRATEGY", "FIGURE"),
        help="list the episodes behind a figure, with their lines of results.jsonl: their mean is the figure",
    )
    parser.add_argument("--format", choices=("table", "markdown", "latex", "csv", "json"), default="table")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.analysis import Options, about, analyze
    from ec2_env.bench.figure_trace import row_of, trace_table
    from ec2_env.bench.run_data import load_run

    run = load_run(arguments.run)
    if arguments.trace is not None:
        strategy, figure = arguments.trace
        tables = [trace_table(run, row_of(run, strategy, arguments.edge), figure)]
    else:
        run = _narrowed(run, arguments.edge)
        figures = tuple(dict.fromkeys(arguments.figure or Options().figures))
        options = Options(against=arguments.against, figures=figures, margin=arguments.margin)
        tables = analyze(run, options, arguments.only or ())
    print(_shown(tables, arguments.format, [about(run), *run.notes]), end="")
    return 0


def _narrowed(run: RunData, edge: str | None) -> RunData:
    """Returns the run with one edge model only."""
    from dataclasses import replace

    from ec2_env.errors import UnknownName

    if edge is None:
        return run
    if edge not in run.edges():
        raise UnknownName("edge model of this run", edge, [one for one in run.edges() if one])
    return replace(run, rows=run.section(edge))


def _shown(tables: Sequence[Table], form: str, head: Sequence[str]) -> str:
    import json

    from ec2_env.bench.layout import csv_text, latex_lines, markdown_lines, terminal_lines, wrapped

    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    match form:
        case "json":
            found = [{"table": table.name, "title": table.title, "rows": table.data, "notes": table.notes} for table in tables]
            return json.dumps({"format": 1, "about": head, "tables": found}, indent=2, ensure_ascii=False) + "\n"
        case "csv":
            return "\n".join(f"# {table.title}\n{csv_text(table.data)}" for table in tables)
        case "markdown":
            return "\n".join([*(f"{line}\n" for line in head), *(line for table in tables for line in markdown_lines(table))])
        case "latex":
            return "\n".join([*(f"% {line}" for line in head), *(line for one in tables for line in latex_lines(one))]) + "\n"
    lines = [line for text in head for line in wrapped(text)]
    return "\n".join([*lines, *(line for table in tables for line in ("", *terminal_lines(table, color=color)))]) + "\n"


COMMAND = Command(help="Compare the rows of a run, and trace its figures", add_arguments=_add_arguments, run=_run)
