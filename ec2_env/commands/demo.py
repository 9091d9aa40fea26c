"""`ec2-env demo`: the idea in ten seconds."""

from __future__ import annotations

import argparse

from ec2_env.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Takes no flags."""


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.demo import demo_lines, find_episode
    from ec2_env.commands.run import show

    show("\n".join(demo_lines(find_episode())))
    return 0


COMMAND = Command(help="Show the idea in ten seconds: one episode, three strategies", add_arguments=_add_arguments, run=_run)
