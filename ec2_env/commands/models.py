"""`ec2-env models`: which models there are, and the download of the one that can be downloaded."""

from __future__ import annotations

import argparse

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="{list,pull}")
    actions.add_parser("list", help="list the kinds of models and how each is written", allow_abbrev=False)
    pull = actions.add_parser("pull", help="download and convert a small real model (98 MB)", allow_abbrev=False)
    pull.add_argument("name", choices=["smollm2"])
    pull.add_argument("--force", action="store_true", help="download and convert again")


def _run(arguments: argparse.Namespace) -> int:
    return _pull(force=arguments.force) if arguments.action == "pull" else _list()


def _list() -> int:
    from ec2_env.models import smollm2
    from ec2_env.models.loading import loader, prefixes

    for prefix in prefixes():
        kind = loader(prefix)
        print(f"{prefix:<10}{kind.form or prefix}")
        for name in kind.names():
            print(f"{'':<10}  {prefix}:{name}")
    try:
        print(f"\nsmollm2 is in {smollm2.folder()}")
    except ConfigurationError as error:
        print(f"\n{error}")
    return 0


def _pull(*, force: bool) -> int:
    from ec2_env.models import smollm2

    print(smollm2.pull(force=force))
    return 0


COMMAND = Command(help="List models, or pull a small real one", add_arguments=_add_arguments, run=_run)
