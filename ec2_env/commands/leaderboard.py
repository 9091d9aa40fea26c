"""`ec2-env leaderboard`: checks a folder of submissions and prints their table."""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "exit status: 0, or 1 if a submission was refused"
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of submissions, one folder each")
    parser.add_argument("--sort", default="return", metavar="FIGURE", help="figure to sort by (default: return)")
    parser.add_argument(
        "--replay", type=int, default=0, metavar="N", help="play N episodes of each submission again (simulated models)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="fixes which episodes (default: 0)")
    parser.add_argument("--format", choices=("table", "markdown", "json"), default="table")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.leaderboard import as_json, as_markdown, as_terminal, leaderboard

    if arguments.replay < 0:
        raise ConfigurationError(f"--replay is {arguments.replay}, expected a whole number of at least 0")
    if not arguments.folder.is_dir():
        raise ConfigurationError(f"there is no folder {arguments.folder}")
    board = leaderboard(arguments.folder, figure=arguments.sort, replay=arguments.replay, seed=arguments.seed)
    print({"markdown": as_markdown, "json": as_json}.get(arguments.format, as_terminal)(board), end="")
    return 1 if board.refused else 0


COMMAND = Command(help="Check a folder of submissions and print their table", add_arguments=_add_arguments, run=_run)
