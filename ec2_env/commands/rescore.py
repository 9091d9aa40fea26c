"""`ec2-env rescore`: scores the stored trajectories of a run again, without playing anything."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

if TYPE_CHECKING:
    from ec2_env.reward import RewardWeights


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_DIR", type=Path, help="folder of a run that kept its trajectories; it is not changed")
    parser.add_argument("--weights", metavar="TASK,COST,PRIVACY", help="weights of the return, for example 1,0.15,0.25")
    parser.add_argument("--unweighted", action="store_true", help="count all sensitive values alike")
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="price book in TOML; its entries add to or replace the package's"
    )
    parser.add_argument("--audit", action="store_true", help="audit the recorded texts anew with the installed audit")
    parser.add_argument("--grade", action="store_true", help="make the calls again on a fresh workspace and grade its end anew")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write the records into this run folder")
    parser.add_argument("--format", choices=("table", "markdown", "csv", "json"), default="table")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.rescoring import Rescoring, rescore, write
    from ec2_env.bench.stored_runs import open_run
    from ec2_env.bench.table import as_csv, as_json, as_markdown, as_terminal
    from ec2_env.cloud.prices import load_prices

    if arguments.out is not None and arguments.out.resolve() == arguments.run.resolve():
        raise ConfigurationError("--out is the run itself, which is never changed; name another folder")
    how = Rescoring(
        weights=_weights(arguments.weights) if arguments.weights is not None else None,
        unweighted=arguments.unweighted,
        prices=load_prices(arguments.prices) if arguments.prices is not None else None,
        audit=arguments.audit,
        grade=arguments.grade,
    )
    found = rescore(open_run(arguments.run, "scored again"), how, _command(arguments))
    if arguments.out is not None:
        write(found, arguments.out)
        print(f"ec2-env: records are in {arguments.out / 'results.jsonl'}", file=sys.stderr)
    match arguments.format:
        case "markdown":
            text = as_markdown(found.report, None)
        case "csv":
            text = as_csv(found.report)
        case "json":
            text = as_json(found.report, None)
        case _:
            text = as_terminal(found.report, None, color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    print(text, end="")
    return 0


def _weights(text: str) -> RewardWeights:
    from ec2_env.reward import reward_weights

    try:
        task, cost, privacy = map(float, text.split(","))
    except ValueError:
        raise ConfigurationError(f"--weights is {text!r}, expected three numbers TASK,COST,PRIVACY") from None
    return reward_weights({"task": task, "cost": cost, "privacy": privacy})


def _command(arguments: argparse.Namespace) -> str:
    words = ["ec2-env", "rescore", str(arguments.run)]
    words += [word for flag in ("weights", "prices") if (value := getattr(arguments, flag)) for word in (f"--{flag}", str(value))]
    words += [f"--{flag}" for flag in ("unweighted", "audit", "grade") if getattr(arguments, flag)]
    return shlex.join(words)


COMMAND = Command(help="Score the stored trajectories of a run again, without a new run", add_arguments=_add_arguments, run=_run)
