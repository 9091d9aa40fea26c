"""`ec2-env view`: browse the episodes of a run, step by step, or two runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN_DIR", type=Path, nargs="+", help="run folder made with bench --trajectories; two to compare them"
    )
    parser.add_argument("--static", metavar="DIR", type=Path, help="write the page into this folder instead of serving it")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: any that is free)")
    parser.add_argument("--task", action="append", default=[], metavar="NAME", help="only this task; repeatable")
    parser.add_argument("--strategy", action="append", default=[], metavar="SPEC", help="only this strategy; repeatable")
    parser.add_argument(
        "--replay",
        action="store_true",
        help="for a run that kept no trajectories: play its episodes again (simulated models only)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.view.runs import open_run
    from ec2_env.view.server import Server
    from ec2_env.view.site import INDEX, Site

    if len(arguments.run) > 2:
        raise ConfigurationError(f"{len(arguments.run)} runs; one is shown, or two are compared")
    if not 0 <= arguments.port <= 65_535:
        raise ConfigurationError(f"--port is {arguments.port}, expected 0 to 65535")
    site = Site(
        tuple(
            open_run(path, replay=arguments.replay, tasks=arguments.task, strategies=arguments.strategy) for path in arguments.run
        )
    )
    if arguments.static is not None:
        count = site.write(arguments.static)
        print(f"{arguments.static / INDEX} shows {count:,} episodes")
        return 0
    with Server(site, arguments.port) as server:
        print(f"{server.address} shows {len(site.names()):,} episodes; Ctrl-C ends", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


COMMAND = Command(
    help="Browse the episodes of a run in a browser, or two runs side by side", add_arguments=_add_arguments, run=_run
)
