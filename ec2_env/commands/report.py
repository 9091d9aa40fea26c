"""`ec2-env report`: writes one HTML page about a run, and its plots."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ec2_env.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env report runs/0123456789                     writes runs/0123456789/report/index.html\n"
        "  ec2-env report runs/0123456789 --viewer episodes   links to what `ec2-env view` wrote into episodes"
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder of `ec2-env bench`, or folder of `ec2-env reproduce`")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the page and its plots (default: RUN/report)")
    parser.add_argument(
        "--viewer", metavar="DIR", help="folder, or address, of the pages of episodes, to link to (default: no links)"
    )


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.report.writing import write_report

    written = write_report(arguments.run, arguments.out, arguments.viewer)
    print(written.page)
    print(f"ec2-env: {written.size / 1000:,.0f} kB, and {len(written.pictures)} files of plots beside it", file=sys.stderr)
    for remark in written.remarks:
        print(f"ec2-env: {remark}", file=sys.stderr)
    return 0


COMMAND = Command(help="Write one HTML page about a run, and its plots", add_arguments=_add_arguments, run=_run)
