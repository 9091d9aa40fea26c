"""`ec2-env generalize`: trains on one part of the world and tests on another: domains, languages, models, a real executor."""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError
from ec2_env.training.methods import METHODS


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env generalize --over domains --folds 5 --out out/domains\n"
        "  ec2-env generalize --over languages --method ppo --seeds 3\n"
        "  ec2-env generalize --over models --target-edge sim:qwen3.5-27b --target-cloud sim:deepseek-v4-pro\n"
        "  ec2-env generalize --over models --target-edge smollm2@max_new_tokens=32 --episodes 8 --max-steps 12\n\n"
        "A run that was stopped goes on when the same command is given again."
    )
    parser.add_argument(
        "--over",
        choices=("domains", "languages", "models"),
        default="domains",
        help="what differs between training and test (%(default)s)",
    )
    parser.add_argument(
        "--method",
        choices=[name for name, one in METHODS.items() if one.decides],
        default="bandit",
        help="what is trained (%(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where policies and figures go (out/generalize_OVER)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="training seeds (%(default)s)")
    parser.add_argument("--minutes", type=float, help="scales the amount of each training (what the method is made for)")
    parser.add_argument("--test-seeds", type=int, default=2, metavar="N", help="test instances of each task (%(default)s)")
    parser.add_argument("--episodes", type=int, metavar="N", help="play only so many test episodes of a target")
    parser.add_argument(
        "--max-steps", type=int, metavar="N", help="steps after which an episode is cut off (the task's own limit)"
    )
    parser.add_argument(
        "--folds", type=int, default=5, metavar="K", help="with domains: parts that are held out in turn (%(default)s)"
    )
    parser.add_argument("--domain", metavar="NAME", help="with languages and models: task folder (all)")
    parser.add_argument("--edge", default="sim:qwen3.5-9b", metavar="MODEL", help="edge model of training (%(default)s)")
    parser.add_argument("--cloud", default="sim:gpt-5.4", metavar="MODEL", help="cloud model of training (%(default)s)")
    parser.add_argument(
        "--target-edge", default="sim:qwen3.5-27b", metavar="MODEL", help="with models: edge model of the test (%(default)s)"
    )
    parser.add_argument(
        "--target-cloud",
        default="sim:deepseek-v4-pro",
        metavar="MODEL",
        help="with models: cloud model of the test (%(default)s)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.training.experiment import Experiment, checked
    from ec2_env.training.generalization import over_domains, over_languages, over_models, run

    for name, most in (("test_seeds", 1000), ("seeds", 100), ("episodes", 10**6), ("max_steps", 1000)):
        value = getattr(arguments, name)
        if value is not None and not 1 <= value <= most:
            raise ConfigurationError(f"--{name.replace('_', '-')} is {value}, expected 1 to {most}")
    if arguments.over == "domains" and arguments.domain is not None:
        raise ConfigurationError("--over domains holds every domain out in turn; leave --domain out")
    experiment = checked(
        Experiment(
            method=arguments.method,
            seeds=arguments.seeds,
            minutes=arguments.minutes,
            plan={"test_seeds": arguments.test_seeds},
        )
    )
    settings: dict[str, str | int] = {"edge": arguments.edge, "cloud": arguments.cloud}
    if arguments.domain is not None:
        settings["domain"] = arguments.domain
    if arguments.max_steps is not None:
        settings["max_episode_steps"] = arguments.max_steps
    match arguments.over:
        case "domains":
            transfers = over_domains(arguments.folds, settings)
        case "languages":
            transfers = over_languages(settings)
        case _:
            transfers = over_models(arguments.target_edge, arguments.target_cloud, settings)
    out = arguments.out or Path("out") / f"generalize_{arguments.over}"
    run(transfers, experiment, arguments.episodes, out)
    print(f"figures are in {out / 'generalization.md'}", flush=True)
    return 0


COMMAND = Command(help="Train on one part of the world and test on another", add_arguments=_add_arguments, run=_run)
