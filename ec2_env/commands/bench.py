"""`ec2-env bench`: plays a suite and prints its table."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

if TYPE_CHECKING:
    from ec2_env.bench.grid import BenchConfig
    from ec2_env.bench.report import Report
    from ec2_env.bench.runner import Outcome
    from ec2_env.bench.stopping import Caps

QUICK_SAMPLE = 4
"""Episodes of each row that the estimate before a paid run is taken from."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env bench                                          the default table, simulated models, under a minute\n"
        "  ec2-env bench --strategy edge_only --strategy step_routing:threshold=1.5\n"
        "  ec2-env bench --suite email-smoke --edge smollm2       a small real edge model\n"
        "  ec2-env bench --edge openai:MODEL@base_url=http://127.0.0.1:8000/v1 --dry-run\n"
        "  ec2-env bench --edge openai:MODEL@base_url=http://127.0.0.1:8000/v1 --max-usd 5\n"
        "exit status: 0, or 1 if episodes are missing or ended in an infrastructure error"
    )
    what = parser.add_argument_group("what is compared")
    what.add_argument("--suite", default="ec2-128", metavar="NAME", help="suite, or FILE.toml:NAME (default: ec2-128)")
    what.add_argument("--strategy", action="append", metavar="SPEC", help="strategy; repeatable (default: the suite's)")
    what.add_argument("--edge", action="append", metavar="MODEL", help="edge model; repeatable (default: the suite's)")
    what.add_argument("--cloud", metavar="MODEL", help="cloud model (default: the suite's)")
    what.add_argument("--language", action="append", choices=("en", "zh"), help="only this language; repeatable")
    what.add_argument("--trials", type=int, metavar="N", help="times that each instance is played")
    what.add_argument(
        "--trials-for", type=float, metavar="POINTS", help="as many trials as a margin of so many points of completion takes"
    )
    what.add_argument("--seeds", type=int, metavar="N", help="instances of each task and language")
    how = parser.add_argument_group("how it is run")
    how.add_argument(
        "--workers", type=int, metavar="N", help="processes (default: all processors; 1 if a model or strategy is real)"
    )
    how.add_argument("--executor", choices=("processes", "ray", "dask"), default="processes", help="who plays: see docs/scale.md")
    how.add_argument("--address", metavar="ADDRESS", help="cluster of --executor ray or dask (default: one is started here)")
    how.add_argument(
        "--outage-s",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="longest time to wait for an endpoint that is down, before the run stops (default: %(default)g)",
    )
    how.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="run folder (default: runs/DIGEST OF THE SETTINGS); a run goes on where it stopped",
    )
    how.add_argument("--resume", action="store_true", help="insist that the run folder exists")
    how.add_argument("--keep-errors", action="store_true", help="do not play again what ended in an infrastructure error")
    how.add_argument(
        "--max-usd",
        type=float,
        metavar="USD",
        help="stop when the run's cloud bill has reached this; episodes under way, one a worker, are finished",
    )
    how.add_argument("--max-tokens", type=int, metavar="N", help="the same for cloud tokens, input and output")
    how.add_argument("--max-calls", type=int, metavar="N", help="the same for cloud calls")
    how.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="most requests at once to each real endpoint that sets no limit itself, over all workers",
    )
    how.add_argument(
        "--dry-run",
        action="store_true",
        help="say what the run would use of calls, tokens, US dollars and edge operations, and end; sends and writes nothing",
    )
    how.add_argument("--trajectories", action="store_true", help="keep whole trajectories, about 50 kB an episode")
    shown = parser.add_argument_group("what is shown")
    shown.add_argument(
        "--format",
        choices=("table", "markdown", "latex", "csv", "json", "study", "study-latex"),
        default="table",
        help="study: totals of the suite, laid out as the study's main table",
    )
    shown.add_argument("--compare", action="store_true", help="add the study's published figures, in a table of their own")
    shown.add_argument("--quiet", action="store_true", help="no progress")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.executors import opened
    from ec2_env.bench.manifest import digest, manifest
    from ec2_env.bench.progress import Bar, Quiet
    from ec2_env.bench.runner import asks_endpoints, check, is_heavy, run
    from ec2_env.bench.stopping import Patience
    from ec2_env.models.loading import load_model

    _limit_concurrency(arguments.concurrency)
    config = _config(arguments)
    check(config)
    if arguments.dry_run:
        _say_margin(arguments, config)
        return _dry_run(arguments, config)
    if arguments.workers is not None and arguments.workers < 1:
        raise ConfigurationError(f"--workers is {arguments.workers}, expected a whole number above 0")
    caps = _caps(arguments)
    path = arguments.out or Path("runs") / digest(manifest(config))
    if arguments.resume and not (path / "manifest.json").exists():
        raise ConfigurationError(f"there is no run to resume in {path}; leave --resume out to start one")
    _announce(arguments, config)
    _say_margin(arguments, config)
    bar = sys.stderr.isatty() and not arguments.quiet
    simulated = load_model(config.cloud).card.simulated
    patience = Patience(longest_s=arguments.outage_s) if asks_endpoints(config) else None
    heavy = is_heavy(config)
    with (
        opened(arguments.executor, arguments.workers, arguments.address, again=not heavy) as executor,
        Bar(simulated=simulated) if bar else Quiet(silent=arguments.quiet) as watch,
    ):
        slots = executor.slots if executor else os.cpu_count() or 1
        workers = arguments.workers or (1 if heavy else slots)
        outcome = run(
            config,
            path,
            workers=workers,
            watch=watch,
            caps=caps,
            keep_errors=arguments.keep_errors,
            executor=executor,
            patience=patience,
        )
    return _finish(arguments, config, outcome, path)


def _say_margin(arguments: argparse.Namespace, config: BenchConfig) -> None:
    """Says how precise the run will be."""
    from ec2_env.bench.planning import expected

    if not arguments.quiet:
        print(f"ec2-env: {expected(config.suite)}", file=sys.stderr)


def _limit_concurrency(limit: int | None) -> None:
    """Sets the limit for this process and the workers that it starts."""
    from ec2_env.models.endpoint import CONCURRENCY

    if limit is None:
        return
    if limit < 1:
        raise ConfigurationError(f"--concurrency is {limit}, expected a whole number above 0")
    os.environ[CONCURRENCY] = str(limit)


def _dry_run(arguments: argparse.Namespace, config: BenchConfig) -> int:
    from ec2_env.bench.dryrun import as_json, as_text, dry_run

    found = dry_run(config)
    print(as_json(found) if arguments.format == "json" else as_text(found), end="")
    return 0


def _announce(arguments: argparse.Namespace, config: BenchConfig) -> None:
    """Says what a run will cost that is about to be paid for."""
    from ec2_env.bench.dryrun import dry_run, in_a_line
    from ec2_env.models.loading import load_model

    paid = not load_model(config.cloud).card.simulated and not config.cloud.startswith("replay:")
    if paid and not arguments.quiet:
        print(f"ec2-env: {in_a_line(dry_run(config, QUICK_SAMPLE))}", file=sys.stderr)


def _caps(arguments: argparse.Namespace) -> Caps:
    from ec2_env.bench.stopping import Caps

    for name in ("max_usd", "max_tokens", "max_calls"):
        value = getattr(arguments, name)
        if value is not None and not value > 0:
            raise ConfigurationError(f"--{name.replace('_', '-')} is {value:g}, expected an amount above 0")
    return Caps(usd=arguments.max_usd, tokens=arguments.max_tokens, calls=arguments.max_calls)


def _config(arguments: argparse.Namespace) -> BenchConfig:
    import msgspec

    from ec2_env.bench.grid import BenchConfig
    from ec2_env.bench.planning import trials_for
    from ec2_env.bench.suites import checked, load_suite

    if arguments.trials_for is not None and arguments.trials is not None:
        raise ConfigurationError("--trials-for computes the number of trials; leave --trials out")
    suite = load_suite(arguments.suite)
    changed = {name: getattr(arguments, name) for name in ("seeds", "trials") if getattr(arguments, name) is not None}
    if arguments.language:
        changed["languages"] = tuple(dict.fromkeys(arguments.language))
    suite = checked(msgspec.structs.replace(suite, **changed))
    if arguments.trials_for is not None:
        suite = checked(msgspec.structs.replace(suite, trials=trials_for(arguments.trials_for, suite)))
    return BenchConfig(
        name=arguments.suite,
        suite=suite,
        strategies=tuple(dict.fromkeys(arguments.strategy or suite.strategies)),
        edges=tuple(dict.fromkeys(arguments.edge or suite.edges)),
        cloud=arguments.cloud or suite.cloud,
        trajectories=arguments.trajectories,
    )


def _finish(arguments: argparse.Namespace, config: BenchConfig, outcome: Outcome, path: Path) -> int:
    from ec2_env.bench.report import make_report

    if outcome.stopped:
        more = f" with a higher {outcome.cap}" if outcome.cap and not outcome.interrupted else ""
        print(
            f"ec2-env: stopped: {outcome.stopped}. Episodes recorded in {path}: {outcome.totals.done:,}; left: {outcome.left:,}. "
            f"Run the same command again{more} to go on",
            file=sys.stderr,
        )
        if outcome.interrupted or not outcome.totals.done:
            return 130 if outcome.interrupted else 1
    report = make_report(config, outcome)
    text = _laid_out(arguments, report)
    print(text, end="")
    if not arguments.quiet:
        print(f"ec2-env: records are in {path / 'results.jsonl'}", file=sys.stderr)
    return 1 if outcome.left or outcome.totals.errors else 0


def _laid_out(arguments: argparse.Namespace, report: Report) -> str:
    from ec2_env.bench.compare import compare
    from ec2_env.bench.layout import latex_lines, terminal_lines
    from ec2_env.bench.study import study_table
    from ec2_env.bench.table import as_csv, as_json, as_latex, as_markdown, as_terminal

    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    compared = compare(report) if arguments.compare else None
    match arguments.format:
        case "markdown":
            return as_markdown(report, compared)
        case "latex":
            return as_latex(report, compared)
        case "csv":
            return as_csv(report)
        case "json":
            return as_json(report, compared)
        case "study":
            return "\n".join(terminal_lines(study_table(report), color=color)) + "\n"
        case "study-latex":
            return "\n".join(latex_lines(study_table(report))) + "\n"
    return as_terminal(report, compared, color=color)


COMMAND = Command(help="Play a suite of episodes and print its table", add_arguments=_add_arguments, run=_run)
