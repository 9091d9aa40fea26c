"""`ec2-env export`: writes a run as partitioned Parquet."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ec2_env.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env export RUN --parquet DIR\n"
        "  duckdb -c \"select strategy, avg(total) from read_parquet('DIR/**/*.parquet') group by all\"\n"
        "The columns are in docs/scale.md. Needs pip install 'ec2-env[parquet]'."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder that `ec2-env bench --out` has filled")
    parser.add_argument("--parquet", type=Path, metavar="DIR", required=True, help="folder to make, one folder in it a row")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.parquet import export

    done = export(arguments.run, arguments.parquet)
    print(f"{done.rows:,} episodes in {done.files:,} files in {arguments.parquet}")
    if done.superseded:
        print(f"ec2-env: left out {done.superseded:,} infrastructure errors whose episodes were played again", file=sys.stderr)
    if done.cut_off:
        print("ec2-env: the last line of results.jsonl is incomplete and left out; the run may still go on", file=sys.stderr)
    return 0


COMMAND = Command(help="Write a run as partitioned Parquet", add_arguments=_add_arguments, run=_run)
