"""`ec2-env train`: trains policies to decide about the cloud, by any method, with one seed or several, from flags or a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError
from ec2_env.training.methods import METHODS, method

TRACKERS = ("tensorboard", "trackio", "wandb")
SETTINGS = ("domain", "task", "language", "edge", "cloud")
"""Arguments of the env that have a flag."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env train --quick --out out/quick\n"
        "  ec2-env train --method ppo --out out/ppo\n"
        "  ec2-env train --method ppo --seeds 5 --workers 2 --out out/ppo5\n"
        "  ec2-env train --method bandit --budget-cost 0.2 --budget-exposure 0.1 --out out/budget\n"
        "  ec2-env train --config out/ppo5/experiment.toml --out out/again\n\n"
        "A run that was stopped goes on when the same command is given again.\n\n"
        "methods:\n"
        + "\n".join(f"  {name:<8} {one.about} ({one.minutes:g} minutes; {_needs(one.extras)})" for name, one in METHODS.items())
    )
    parser.add_argument("--quick", action="store_true", help="the same as --method quick")
    parser.add_argument("--method", choices=tuple(METHODS), help="what is trained, see below")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of an experiment; flags go before what it says")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the policy goes (out/METHOD)")
    parser.add_argument("--seed", type=int, metavar="N", help="first seed; fixes data, training and their order (0)")
    parser.add_argument("--seeds", type=int, metavar="N", help="train with so many seeds (1)")
    parser.add_argument("--workers", type=int, metavar="N", help="seeds trained at a time (1)")
    parser.add_argument(
        "--minutes",
        type=float,
        help="scales the amount of training; the clock itself decides nothing (what the method is made for)",
    )
    parser.add_argument("--log-to", choices=TRACKERS, help="where metrics go beside metrics.jsonl (nowhere)")
    env = parser.add_argument_group("environment")
    env.add_argument("--domain", metavar="NAME", help="task folder (all)")
    env.add_argument("--task", metavar="NAME", help="a single task")
    env.add_argument("--language", choices=("en", "zh"), help="a single language")
    env.add_argument("--edge", metavar="MODEL", help="edge model (sim:qwen3.5-9b)")
    env.add_argument("--cloud", metavar="MODEL", help="cloud model (sim:gpt-5.4)")
    env.add_argument("--test-seeds", type=int, metavar="N", help="test instances of each task (2)")
    budgets = parser.add_argument_group("budgets (policies on features)")
    budgets.add_argument("--budget-cost", type=float, metavar="B", help="train to a mean cost of at most B, cloud-only being 1")
    budgets.add_argument("--budget-exposure", type=float, metavar="E", help="train to a mean exposure of at most E, 0 to 1")


def _needs(extras: tuple[str, ...]) -> str:
    return f"ec2-env[{','.join(extras)}]" if extras else "no extra"


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.training.experiment_run import folder_of, run

    experiment = _with_flags(_chosen(arguments), arguments)
    out = arguments.out or Path("out") / experiment.method
    run(experiment, out)
    seeds = experiment.all_seeds()
    print(f"saved in {out}, figures in {out / 'summary.md'}", flush=True)
    if method(experiment.method).decides:
        print(f"try: ec2-env bench --strategy learned:{folder_of(out, seeds[0], seeds)}", flush=True)
    return 0


def _chosen(arguments: argparse.Namespace) -> Any:
    """Returns the experiment of the file, or one of the method alone."""
    from ec2_env.training.experiment import Experiment, checked, read

    named = "quick" if arguments.quick else arguments.method
    if arguments.quick and arguments.method not in (None, "quick"):
        raise ConfigurationError(f"--quick is --method quick; leave it out with --method {arguments.method}")
    if arguments.config is None:
        if named is None:
            raise ConfigurationError(f"say what to train: --quick, --config FILE, or --method {', '.join(METHODS)}")
        return checked(Experiment(method=named))
    experiment = read(arguments.config)
    if named not in (None, experiment.method):
        raise ConfigurationError(f"{arguments.config} is an experiment with {experiment.method}; leave --method {named} out")
    return experiment


def _with_flags(experiment: Any, arguments: argparse.Namespace) -> Any:
    """Returns an experiment with what flags say in place of what it says."""
    from ec2_env.training.experiment import checked

    said = {name: getattr(arguments, name) for name in ("minutes", "workers", "log_to") if getattr(arguments, name) is not None}
    if arguments.seed is not None or arguments.seeds is not None:
        first, count = arguments.seed or 0, 1 if arguments.seeds is None else arguments.seeds
        if not 0 <= first < 10**6:
            raise ConfigurationError(f"--seed is {first}, expected 0 to 999999")
        if not 1 <= count <= 100:
            raise ConfigurationError(f"--seeds is {count}, expected 1 to 100")
        said["seeds"] = tuple(range(first, first + count))
    settings = {name: getattr(arguments, name) for name in SETTINGS if getattr(arguments, name) is not None}
    return checked(
        msgspec.structs.replace(
            experiment,
            settings={**experiment.settings, **settings},
            plan={**experiment.plan, **dict(_plan_flags(experiment, arguments))},
            **said,
        )
    )


def _plan_flags(experiment: Any, arguments: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Yields fields of the plan that have a flag."""
    if arguments.test_seeds is not None:
        if not 1 <= arguments.test_seeds <= 1000:
            raise ConfigurationError(f"--test-seeds is {arguments.test_seeds}, expected 1 to 1000")
        yield "test_seeds", arguments.test_seeds
    limits = {"cost": arguments.budget_cost, "exposure": arguments.budget_exposure}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if given:
        if "budget" not in {one.name for one in fields(method(experiment.method).load().Plan)}:
            raise ConfigurationError(
                f"{experiment.method} cannot be trained to a budget; policies on features can: --method bandit"
            )
        yield "budget", given


COMMAND = Command(help="Train a policy to decide about the cloud", add_arguments=_add_arguments, run=_run)
