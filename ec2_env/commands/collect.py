"""`ec2-env collect`: writes datasets for TRL."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

if TYPE_CHECKING:
    from ec2_env.bench.suites import Suite

KINDS = ("sft", "decisions", "preference", "kto")
OFTEN = 100
"""Episodes after which progress is said."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env collect --kind sft --domain email --seeds 4 --out data/sft\n"
        "  ec2-env collect --kind decisions --task forward_invoice --seeds 8 --out data/decisions\n"
        "  ec2-env collect --kind preference --suite ec2-128 --seeds 2 --workers 8 --out data/preference\n"
        "  ec2-env collect --kind sft --trajectories RUN --out data/mine\n"
        "docs/data.md describes the columns. Needs pip install 'ec2-env[parquet]' (or [train])."
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        required=True,
        help="sft: conversations with tool calls; decisions: prompt and decision; preference: for DPO; kto: for KTO",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder to make: data/*.parquet, README.md")
    what = parser.add_argument_group("which episodes")
    one = what.add_mutually_exclusive_group(required=True)
    one.add_argument("--task", metavar="NAME", help="one task")
    one.add_argument("--domain", metavar="NAME", help="the tasks of a folder")
    one.add_argument("--suite", metavar="NAME", help="the tasks of a suite, or FILE.toml:NAME; its split and seeds are not taken")
    one.add_argument("--trajectories", type=Path, metavar="RUN", help="run folder with trajectories; only for sft")
    what.add_argument("--language", choices=("en", "zh"), help="only this language")
    what.add_argument("--split", choices=("train", "test"), default="train", help="(default: %(default)s)")
    what.add_argument("--allow-test", action="store_true", help="collect from the test split, which spoils it for evaluation")
    what.add_argument("--seeds", type=int, default=4, metavar="N", help="instances of each task and language (%(default)s)")
    what.add_argument("--trials", type=int, default=1, metavar="N", help="times that each instance is played (%(default)s)")
    how = parser.add_argument_group("how they are played")
    how.add_argument("--strategy", action="append", metavar="SPEC", help="strategy; repeatable (default: see docs/data.md)")
    how.add_argument("--edge", default="sim:qwen3.5-9b", metavar="MODEL", help="edge model (%(default)s)")
    how.add_argument("--cloud", default="sim:gpt-5.4", metavar="MODEL", help="cloud model (%(default)s)")
    how.add_argument("--workers", type=int, default=1, metavar="N", help="processes (%(default)s)")
    rows = parser.add_argument_group("which rows")
    rows.add_argument("--threshold", type=float, default=0.7, metavar="SHARE", help="sft: least completion (%(default)s)")
    rows.add_argument(
        "--margin", type=float, default=0.02, metavar="RETURN", help="preference, kto: least difference of values (%(default)s)"
    )
    rows.add_argument("--draws", type=int, default=4, metavar="N", help="rollouts behind each value (%(default)s)")
    rows.add_argument("--chat", action="store_true", help="prompts and answers as chats of one message; not for sft")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.training.collect import collect, collect_stored
    from ec2_env.training.collect_folder import described
    from ec2_env.training.collect_plan import STRATEGIES, Plan

    watch = None if arguments.quiet else _say
    if arguments.workers < 1:
        raise ConfigurationError(f"--workers is {arguments.workers}, expected a whole number above 0")
    if arguments.trajectories is not None:
        if arguments.kind != "sft" or arguments.strategy:
            raise ConfigurationError("--trajectories goes with --kind sft, and without --strategy: the run has its own")
        done = collect_stored(arguments.trajectories, arguments.out, arguments.threshold, arguments.allow_test, watch)
    else:
        if arguments.split == "test" and not arguments.allow_test:
            raise ConfigurationError("training on the test split spoils it; say --allow-test if you mean it")
        if arguments.chat and arguments.kind == "sft":
            raise ConfigurationError("--chat is for decisions; sft rows are chats anyway")
        chosen, suite = _suite(arguments)
        plan = Plan(
            kind=arguments.kind,
            suite=suite,
            chosen=chosen,
            strategies=tuple(dict.fromkeys(arguments.strategy or (STRATEGIES if arguments.kind == "sft" else ()))),
            edge=arguments.edge,
            cloud=arguments.cloud,
            threshold=arguments.threshold,
            margin=arguments.margin,
            draws=arguments.draws,
            chat=arguments.chat,
        )
        done = collect(plan, arguments.out, arguments.workers, watch)
    first, *rest = described(done)
    print(f"{first} in {arguments.out}")
    for line in rest:
        print(f"ec2-env: {line}", file=sys.stderr)
    return 0


def _say(episodes: int, rows: int) -> None:
    if episodes % OFTEN == 0:
        print(f"ec2-env: {episodes:,} episodes, {rows:,} rows", file=sys.stderr)


def _suite(arguments: argparse.Namespace) -> tuple[tuple[str, ...], Suite]:
    """Returns the flags that choose the tasks, and the tasks as a suite with the split, seeds and trials asked for."""
    import msgspec

    from ec2_env.bench.suites import Suite, load_suite

    name = next(flag for flag in ("task", "domain", "suite") if getattr(arguments, flag) is not None)
    value = getattr(arguments, name)
    match name:
        case "suite":
            suite = load_suite(value)
        case "domain":
            suite = Suite(about="", domains=(value,))
        case _:
            suite = Suite(about="", tasks=(value,))
    changed = {setting: getattr(arguments, setting) for setting in ("split", "seeds", "trials")}
    chosen: tuple[str, ...] = (f"--{name}", value)
    if arguments.language is not None:
        changed["languages"] = (arguments.language,)
        chosen += ("--language", arguments.language)
    return chosen, msgspec.structs.replace(suite, **changed)


COMMAND = Command(help="Write datasets for TRL", add_arguments=_add_arguments, run=_run)
