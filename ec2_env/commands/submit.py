"""`ec2-env submit`: writes a run as the plain files of a submission, after the checks of the leaderboard."""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_DIR", type=Path, help="folder of a whole run of a suite that ships")
    parser.add_argument("--name", required=True, metavar="TEXT", help="what to call the submission, at most 80 characters")
    parser.add_argument("--contact", default="", metavar="TEXT", help="how to reach you; is published")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the submission")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.submission import submit

    found = submit(arguments.run, arguments.out, arguments.name, arguments.contact)
    size = sum(file.stat().st_size for file in arguments.out.iterdir())
    episodes = sum(row.episodes for row in found.rows)
    print(f"{arguments.out}: {found.name}, {len(found.rows)} rows, {episodes:,} episodes, {size:,} bytes; passes the checks")
    return 0


COMMAND = Command(help="Write a run as a submission to a leaderboard", add_arguments=_add_arguments, run=_run)
