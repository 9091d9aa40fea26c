"""`ec2-env tasks`: which tasks there are."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import UnknownName

if TYPE_CHECKING:
    from ec2_env.bench.catalog import Described


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--domain", metavar="NAME", help="only the tasks of this folder")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything about each task, as JSON")
    form.add_argument("--markdown", action="store_true", help="figures, tables and an example of each task, as Markdown")


def _run(arguments: argparse.Namespace) -> int:
    import msgspec

    from ec2_env.bench.catalog import catalog, described
    from ec2_env.task import task_domains

    domains = task_domains()
    if arguments.domain is not None and arguments.domain not in domains:
        raise UnknownName("domain", arguments.domain, domains)
    chosen = {arguments.domain: domains[arguments.domain]} if arguments.domain else domains
    found = [described(name) for names in chosen.values() for name in names]
    if arguments.json:
        print(json.dumps([msgspec.to_builtins(one) for one in found], indent=2, ensure_ascii=False))
    else:
        print(catalog(found).rstrip() if arguments.markdown else _listed(found))
    return 0


def _listed(found: Sequence[Described]) -> str:
    head = ("task", "title", "category", "languages", "steps", "sensitive values")
    rows = [
        (
            one.name,
            one.title,
            one.category,
            " ".join(one.languages),
            f"{one.solution_steps:.1f}",
            f"{one.sensitive_values:>2}: {' '.join(one.sensitive_kinds)}",
        )
        for one in found
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
    domains = ", ".join(dict.fromkeys(one.domain for one in found))
    ending = (
        f"Tasks: {len(found)}. Domains: {domains}. Steps: mean length of the task's own solution.\n"
        f"Play one: ec2-env run {found[0].name}"
    )
    return "\n".join([*lines, "", ending])


COMMAND = Command(help="List the tasks", add_arguments=_add_arguments, run=_run)
