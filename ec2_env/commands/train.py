"""`ec2-env train`: trains a small language model to decide about the cloud."""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

QUICK_MINUTES = 15.0
"""What the quick plan is sized for, on two idle CPU cores."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="SmolLM2 on the mail tasks, with simulated models, on two CPU cores")
    parser.add_argument(
        "--out", type=Path, default=Path("out/quick"), metavar="FOLDER", help="where the adapter goes (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="fixes labels, training and their order (%(default)s)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=QUICK_MINUTES,
        help="scales the amount of training; the clock itself decides nothing (%(default)s)",
    )


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.quick:
        raise ConfigurationError("the only recipe is --quick; write: ec2-env train --quick")
    if not 1 <= arguments.minutes <= 600:
        raise ConfigurationError(f"--minutes is {arguments.minutes:g}, expected 1 to 600")
    if not 0 <= arguments.seed < 10**6:
        raise ConfigurationError(f"--seed is {arguments.seed}, expected 0 to 999999")
    from ec2_env.training.quick import Plan, scaled, train

    train(arguments.out, arguments.seed, scaled(Plan(), arguments.minutes / QUICK_MINUTES))
    return 0


COMMAND = Command(help="Train a small language model to decide about the cloud", add_arguments=_add_arguments, run=_run)
