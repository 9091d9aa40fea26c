"""`ec2-env route`: fits a router of whole tasks, and says how good it is."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

if TYPE_CHECKING:
    from ec2_env.bench.progress import Quiet
    from ec2_env.training.router_runs import Source


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env route --out router.json                        fit on the default suite, simulated models\n"
        "  ec2-env bench --strategy task_routing:router=router.json\n"
        "  ec2-env route --evaluate                               every estimator, on tasks it has seen and has not\n"
        "A router is fitted on the train split only; --evaluate judges on the test split."
    )
    parser.add_argument(
        "--fit",
        default="ec2-128",
        metavar="RUN_OR_SUITE",
        help="folder of a bench run that holds the edge and the cloud alone on the train split, or a suite to play (%(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the router to this file")
    parser.add_argument("--estimator", choices=("irt", "mf", "logistic"), default="irt", help="(default: %(default)s)")
    parser.add_argument(
        "--evaluate",
        nargs="?",
        const="",
        metavar="RUN",
        help="print a table of all estimators, judged on the test runs of this folder; without one they are played",
    )
    parser.add_argument(
        "--ratio", type=float, default=0.25, metavar="SHARE", help="share for the cloud in the table (%(default)s)"
    )
    parser.add_argument(
        "--seeds", type=int, default=8, metavar="N", help="test instances of each task that are played (%(default)s)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all processors)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.out is None and arguments.evaluate is None:
        raise ConfigurationError("nothing to do: name a file with --out, or ask for --evaluate")
    for name, value in (("--seeds", arguments.seeds), ("--workers", arguments.workers or 1)):
        if value < 1:
            raise ConfigurationError(f"{name} is {value}, expected a whole number above 0")
    if not 0 < arguments.ratio < 1:
        raise ConfigurationError(f"--ratio is {arguments.ratio:g}, expected a share between 0 and 1")
    from ec2_env.bench.progress import Bar, Quiet

    bar = sys.stderr.isatty() and not arguments.quiet
    with Bar(simulated=True) if bar else Quiet(silent=arguments.quiet) as watch:
        train = _train(arguments, watch)
        test = _test(arguments, train, watch) if arguments.evaluate is not None else None
    if arguments.out is not None:
        _fit(arguments, train)
    if test is not None:
        _evaluate(arguments, train, test)
    return 0


def _train(arguments: argparse.Namespace, watch: Quiet) -> Source:
    from ec2_env.training.router_runs import play_runs, read_runs

    folder = Path(arguments.fit)
    if (folder / "manifest.json").exists():
        return read_runs(folder, "train")
    if folder.is_dir():
        raise ConfigurationError(f"{folder} is not a run folder; name one that ec2-env bench made, or a suite")
    return play_runs(arguments.fit, "train", None, workers=_workers(arguments), watch=watch)


def _test(arguments: argparse.Namespace, train: Source, watch: Quiet) -> Source:
    from ec2_env.training.router_runs import play_runs, read_runs

    if arguments.evaluate:
        return read_runs(Path(arguments.evaluate), "test")
    if not train.simulated:
        raise ConfigurationError("the test split is played unasked only with simulated models; name a run folder: --evaluate RUN")
    return play_runs(
        train.suite,
        "test",
        arguments.seeds,
        workers=_workers(arguments),
        watch=watch,
        edges=train.edges,
        cloud=train.cloud_spec,
    )


def _workers(arguments: argparse.Namespace) -> int:
    workers: int = arguments.workers or os.cpu_count() or 1
    return workers


def _fit(arguments: argparse.Namespace, train: Source) -> None:
    from ec2_env.training.router import fit_router
    from ec2_env.training.scored_runs import Scores

    router = fit_router(Scores.of(train.runs), train.cloud, arguments.estimator)
    router.save(arguments.out)
    edges = ", ".join(model for model in router.models if model != router.cloud)
    print(
        f"{arguments.out}: {router.estimator}, {len(train.runs):,} train runs of {len(router.pairs)} tasks, "
        f"cloud {router.cloud}, edge {edges}\nuse it: ec2-env bench --strategy task_routing:router={arguments.out}"
    )


def _evaluate(arguments: argparse.Namespace, train: Source, test: Source) -> None:
    from ec2_env.training.router_evaluation import evaluate, table

    print(table(evaluate(train.runs, test.runs, train.cloud, arguments.ratio)))
    kind = "simulated" if train.simulated and test.simulated else "not all simulated"
    print(
        f"\nFitted on {len(train.runs):,} train runs, judged on {len(test.runs):,} test runs; share for the cloud "
        f"{arguments.ratio:g}; models {kind}. Intervals: 95% over tasks."
    )


COMMAND = Command(help="Fit a router of whole tasks on runs of the train split", add_arguments=_add_arguments, run=_run)
