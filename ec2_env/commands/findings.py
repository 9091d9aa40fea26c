"""`ec2-env findings`: tests the study's four findings as hypotheses on runs with simulated models."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError, MissingExtra

QUICK = {"tasks": 16, "trials": 1, "oracle_tasks": 2, "oracle_draws": 1}
"""What --quick changes: half a minute, enough to see that everything works, too few episodes to judge."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env findings                       all four, on the whole suite\n"
        "  ec2-env findings --finding 3 --quick   one of them, on few tasks: shows that it works\n"
        "exit status: 0 whatever the verdicts are; a finding that is not reproduced is a result"
    )
    parser.add_argument(
        "--finding", action="append", type=int, metavar="N", help="number of a finding, 1 to 4; repeatable (default: all)"
    )
    parser.add_argument("--tasks", type=int, metavar="N", help="tasks of the suite, evenly spaced (default: all 128)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials of each (default: 2)")
    parser.add_argument("--oracle-tasks", type=int, metavar="N", help="tasks on which the oracle looks ahead (default: 24)")
    parser.add_argument("--oracle-draws", type=int, metavar="N", help="its rollouts for each decision (default: 2)")
    parser.add_argument("--quick", action="store_true", help="few tasks: shows that it works, not how things stand")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all processors)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of run folders, plots and report (default: runs/findings-DIGEST); goes on where it stopped",
    )
    parser.add_argument("--format", choices=("table", "markdown", "json"), default="table")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench import findings, findings_table
    from ec2_env.bench.findings_plan import ORACLE_TASKS, FindingsPlan, configs
    from ec2_env.bench.manifest import digest, manifest
    from ec2_env.bench.progress import Bar, Quiet

    if arguments.workers is not None and arguments.workers < 1:
        raise ConfigurationError(f"--workers is {arguments.workers}, expected a whole number above 0")
    changed: dict[str, Any] = dict(QUICK) if arguments.quick else {}
    for name in ("tasks", "trials", "oracle_tasks", "oracle_draws"):
        if getattr(arguments, name) is not None:
            changed[name] = getattr(arguments, name)
    if arguments.tasks is not None:
        changed.setdefault("oracle_tasks", min(ORACLE_TASKS, arguments.tasks))
    plan = FindingsPlan(findings=tuple(sorted(set(arguments.finding or (1, 2, 3, 4)))), **changed)
    runs = configs(plan)
    path = arguments.out or Path("runs") / f"findings-{digest({name: manifest(config) for name, config in runs.items()})}"
    bar = sys.stderr.isatty() and not arguments.quiet
    with Bar(simulated=True) if bar else Quiet(silent=arguments.quiet) as watch:
        outcomes = findings.play(plan, path, workers=arguments.workers or os.cpu_count() or 1, watch=watch)
    if len(outcomes) < len(runs) or any(outcome.left for outcome in outcomes.values()):
        print("ec2-env: stopped before the end; run the same command again to go on", file=sys.stderr)
        return 130
    played = findings.read(plan, path)
    found = findings.judge(played)
    shown = {"markdown": findings_table.as_markdown, "json": findings_table.as_json}
    print(shown.get(arguments.format, findings_table.as_terminal)(found, plan), end="")
    (path / "findings.json").write_text(findings_table.as_json(found, plan), encoding="utf-8")
    drawn = _draw(played, path)
    if not arguments.quiet:
        print(f"ec2-env: records and findings.json are in {path}; {drawn}", file=sys.stderr)
    return 0


def _draw(played: Any, path: Path) -> str:
    """Draws the plots, if matplotlib is there; returns what came of it."""
    from ec2_env.bench import findings_plots

    try:
        return "plots: " + ", ".join(file.name for file in findings_plots.draw(played, path))
    except MissingExtra as error:
        return f"no plots, as {error}"


COMMAND = Command(help="Test the study's four findings as hypotheses on our own runs", add_arguments=_add_arguments, run=_run)
