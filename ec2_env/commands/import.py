"""`ec2-env import`: reads result folders of the study's own harness into a run folder, and prints their table."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from ec2_env.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "Form of the folders, and what the figures mean: docs/interchange.md."
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, nargs="+", help="output folder of the harness; several make one table"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="RUN_DIR", help="run folder to write")
    parser.add_argument("--price", metavar="ENTRY", help="entry of the price book (default: the cloud model's own name)")
    parser.add_argument(
        "--as-harness", action="store_true", help="count runs without a score as 0, and failed privacy judges as a total leak"
    )
    parser.add_argument("--format", choices=("table", "markdown"), default="table")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.interchange import imported, report, write
    from ec2_env.bench.table import as_markdown, as_terminal

    found = imported(arguments.folder, entry=arguments.price, as_harness=arguments.as_harness)
    write(found, arguments.out)
    words = ["ec2-env", "import", *map(str, arguments.folder), "--out", str(arguments.out)]
    words += ["--price", arguments.price] if arguments.price else []
    words += ["--as-harness"] if arguments.as_harness else []
    shown = report(found, shlex.join(words))
    colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(as_markdown(shown, None) if arguments.format == "markdown" else as_terminal(shown, None, color=colored), end="")
    print(f"ec2-env: records are in {arguments.out / 'results.jsonl'}", file=sys.stderr)
    return 0


COMMAND = Command(help="Read results of the study's own harness into a run folder", add_arguments=_add_arguments, run=_run)
