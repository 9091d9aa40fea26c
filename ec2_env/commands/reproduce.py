"""`ec2-env reproduce`: plays the study's main table with simulated models and sets it beside what was published."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all processors)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the run folders (default: runs/reproduce-DIGEST); goes on where it stopped",
    )
    parser.add_argument(
        "--ablate",
        action="store_true",
        help="instead, move each prior to the ends of its range; and fit them to all rows but one",
    )
    parser.add_argument("--format", choices=("table", "markdown", "json"), default="table")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench import reproduction, reproduction_table
    from ec2_env.bench.manifest import digest, manifest
    from ec2_env.bench.progress import Bar, Quiet

    if arguments.workers is not None and arguments.workers < 1:
        raise ConfigurationError(f"--workers is {arguments.workers}, expected a whole number above 0")
    if arguments.ablate:
        return _ablate(arguments)
    runs = reproduction.configs()
    path = arguments.out or Path("runs") / f"reproduce-{digest(manifest(runs[reproduction.CLOUD]))}"
    bar = sys.stderr.isatty() and not arguments.quiet
    with Bar(simulated=True) if bar else Quiet(silent=arguments.quiet) as watch:
        outcomes = reproduction.play(path, workers=arguments.workers or os.cpu_count() or 1, watch=watch, runs=runs)
    left = sum(outcome.left for outcome in outcomes.values())
    if left:
        print(f"ec2-env: stopped with {left:,} episodes left; run the same command again to go on", file=sys.stderr)
        return 130
    shown = {"markdown": reproduction_table.as_markdown, "json": reproduction_table.as_json}
    print(shown.get(arguments.format, reproduction_table.as_terminal)(reproduction.rows(outcomes)), end="")
    if not arguments.quiet:
        print(f"ec2-env: records are in {path}", file=sys.stderr)
    return 0


def _ablate(arguments: argparse.Namespace) -> int:
    from ec2_env.bench import ablation, ablation_table
    from ec2_env.bench.manifest import digest, manifest
    from ec2_env.bench.progress import Quiet

    path = arguments.out or Path("runs") / f"ablation-{digest(manifest(ablation.config(None)))}"
    played = ablation.play(path, workers=arguments.workers or os.cpu_count() or 1, watch=Quiet(silent=arguments.quiet))
    if played is None:
        print("ec2-env: stopped; run the same command again to go on", file=sys.stderr)
        return 130
    base, effects = played
    print(ablation_table.as_terminal(base, effects, ablation_table.defaults(base)), end="")
    return 0


COMMAND = Command(
    help="Play the study's main table with simulated models and set it beside the published one",
    add_arguments=_add_arguments,
    run=_run,
)
