"""`ec2-env landscape`: measures whether there is anything to learn about the decision, and where."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

QUICK = {"episodes": 12, "oracle_episodes": 2, "grid_episodes": 1, "train_episodes": 2, "states": 12}
"""What --quick changes: a minute or two for all domains, enough to see that everything works, too few episodes to judge."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env landscape --quick --domain email\n"
        "  ec2-env landscape --domain email --oracle-episodes 48   more looking ahead, a narrower interval\n"
        "exit status: 0, or 1 if a target is missed over all domains together"
    )
    parser.add_argument("--domain", action="append", metavar="NAME", help="task folder; repeatable (default: all)")
    parser.add_argument("--edge", default="sim:qwen3.5-9b", metavar="MODEL", help="edge model (default: sim:qwen3.5-9b)")
    parser.add_argument("--cloud", default="sim:gpt-5.4", metavar="MODEL", help="cloud model (default: sim:gpt-5.4)")
    parser.add_argument("--episodes", type=int, metavar="N", help="test episodes a domain (default: 48)")
    parser.add_argument("--oracle-episodes", type=int, metavar="N", help="how many of them look ahead (default: 6)")
    parser.add_argument("--grid-episodes", type=int, metavar="N", help="how many of these do at all weights (default: 1)")
    parser.add_argument("--train-episodes", type=int, metavar="N", help="train episodes a domain to try trees on (default: 12)")
    parser.add_argument("--states", type=int, metavar="N", help="train states a domain whose decisions are valued (default: 32)")
    parser.add_argument("--draws", type=int, metavar="N", help="lucks under which they are valued (default: 4)")
    parser.add_argument("--quick", action="store_true", help="few episodes: shows that it works, not how things stand")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="chooses the episodes (default: 0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one a core)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures there, as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not say what is being played")


def _run(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from ec2_env.bench.landscape import LandscapePlan, all_domains, explore
    from ec2_env.bench.landscape_episodes import DEFAULT
    from ec2_env.bench.landscape_figures import as_json, figures
    from ec2_env.bench.landscape_table import report
    from ec2_env.bench.landscape_tree import described
    from ec2_env.task import task_domains

    changed: dict[str, Any] = dict(QUICK) if arguments.quick else {}
    for name in ("episodes", "oracle_episodes", "grid_episodes", "train_episodes", "states", "draws"):
        if getattr(arguments, name) is not None:
            changed[name] = getattr(arguments, name)
    plan = LandscapePlan(
        domains=tuple(dict.fromkeys(arguments.domain or task_domains())),
        edge=arguments.edge,
        cloud=arguments.cloud,
        seed=arguments.seed,
        workers=arguments.workers,
        **changed,
    )
    if arguments.out is not None and not arguments.out.parent.is_dir():
        raise ConfigurationError(f"there is no folder {arguments.out.parent} to write {arguments.out.name} into")
    parts, trees = explore(plan, _silent if arguments.quiet else _say)
    found = [*map(figures, parts), figures(all_domains(parts))]
    words = [described(tree) for tree in trees]
    if arguments.out is not None:
        settings = {name: value for name, value in asdict(plan).items() if name != "workers"}
        arguments.out.write_bytes(as_json(found, settings, words))
    print(report(found, words[DEFAULT]))
    return 0 if all(verdict.reached for verdict in found[-1].verdicts.values()) else 1


def _say(text: str) -> None:
    print(f"ec2-env: {text}", file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    """Says nothing."""


COMMAND = Command(help="Measure whether there is anything to learn about the decision", add_arguments=_add_arguments, run=_run)
