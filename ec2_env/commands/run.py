"""`ec2-env run`: plays one episode and shows it step by step, with what crossed to the cloud."""

from __future__ import annotations

import argparse
import os
import re
import sys

from ec2_env.command import Command

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="name of a task; `ec2-env tasks` lists them")
    parser.add_argument("--strategy", default="step_routing", metavar="SPEC", help="who decides (default: step_routing)")
    parser.add_argument("--edge", default="sim:qwen3.5-9b", metavar="MODEL", help="edge model (default: sim:qwen3.5-9b)")
    parser.add_argument("--cloud", default="sim:gpt-5.4", metavar="MODEL", help="cloud model (default: sim:gpt-5.4)")
    parser.add_argument("--language", choices=("en", "zh"), help="language (default: the task's first)")
    parser.add_argument("--split", choices=("train", "test"), default="test", help="split (default: test)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the instance (default: 0)")
    parser.add_argument("--trial", type=int, default=0, metavar="N", help="number of the trial (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the trajectory as one line of JSON instead")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.single import play_one
    from ec2_env.rollout import EpisodeKey
    from ec2_env.task import tasks
    from ec2_env.trace import to_json

    language = arguments.language or tasks.get(arguments.task).languages[0]
    key = EpisodeKey(task=arguments.task, language=language, split=arguments.split, seed=arguments.seed, trial=arguments.trial)
    played = play_one(arguments.strategy, arguments.edge, arguments.cloud, key)
    if arguments.json:
        print(to_json(played.trajectory).decode())
    else:
        show("\n".join(played.lines()))
    return 1 if played.trajectory.result["status"] == "error" else 0


def show(text: str) -> None:
    """Prints text, in color only on a terminal that wants it."""
    colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(text if colored else _COLOR.sub("", text))


COMMAND = Command(help="Play one episode and show it step by step", add_arguments=_add_arguments, run=_run)
