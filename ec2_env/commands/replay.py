"""`ec2-env replay`: replays stored episodes and says where a replay is not what was recorded."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

if TYPE_CHECKING:
    from ec2_env.trace import Trajectory

FIRST = 5
"""Differences of an episode that are shown."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "A kept trajectory is replayed call by call on a fresh workspace, and its end is graded again. With simulated models\n"
        "the whole episode is played again, too, from its key, and has to give the same bytes; that needs no kept trajectory.\n"
        "exit status: 0, or 1 if anything differs"
    )
    parser.add_argument("run", metavar="RUN|FILE", type=Path, help="run folder, or a file of trajectories, one a line")
    parser.add_argument(
        "--episode",
        action="append",
        type=int,
        metavar="N",
        help="only this line of the file, from 1; repeatable; shows it step by step",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="only so many episodes, drawn at random")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="fixes the draw (default: 0)")
    parser.add_argument("--calls-only", action="store_true", help="do not play episodes again as a whole")
    parser.add_argument("--check", action="store_true", help="print only what differs, and a summary")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.replaying import replay

    if arguments.sample is not None and arguments.sample < 1:
        raise ConfigurationError(f"--sample is {arguments.sample}, expected a whole number above 0")
    counts, code = {"equal": 0, "different": 0, "not checked": 0}, ""
    wanted = arguments.episode or ()
    for one in replay(arguments.run, wanted, sample=arguments.sample, seed=arguments.seed, again=not arguments.calls_only):
        code = one.code if one.differences else code
        counts["different" if one.differences else "equal" if one.checked else "not checked"] += 1
        if wanted and one.trajectory is not None and not arguments.check:
            _show(one.trajectory)
        if one.differences or not arguments.check:
            print(one)
        for difference in one.differences[1:FIRST]:
            print(f"    also {difference}")
    print(", ".join(f"{number:,} {what}" for what, number in counts.items() if number or what != "not checked"))
    if code:
        print(f"Episodes that differ were {code}.")
    if counts["not checked"] and not counts["equal"] and not counts["different"]:
        raise ConfigurationError(f"{arguments.run} kept no trajectories, and its models are real: there is nothing to replay")
    return 1 if counts["different"] else 0


def _show(trajectory: Trajectory) -> None:
    from ec2_env.commands.run import show
    from ec2_env.render import ansi_lines, inert

    lines = [*map(inert, trajectory.instruction.splitlines()), ""]
    show("\n".join([*lines, *(line for event in trajectory.events for line in ansi_lines(event, 110)), ""]))


COMMAND = Command(help="Replay stored episodes and say what differs", add_arguments=_add_arguments, run=_run)
