"""`ec2-env tasks`: which tasks there are."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ec2_env.command import Command
from ec2_env.errors import UnknownName


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--domain", metavar="NAME", help="only the tasks of this folder")
    parser.add_argument("--json", action="store_true", help="everything about each task, as JSON")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.task import task_domains

    domains = task_domains()
    if arguments.domain is not None and arguments.domain not in domains:
        raise UnknownName("domain", arguments.domain, domains)
    chosen = {arguments.domain: domains[arguments.domain]} if arguments.domain else domains
    found = [_described(name) for names in chosen.values() for name in names]
    print(json.dumps(found, indent=2, ensure_ascii=False) if arguments.json else _listed(found))
    return 0


def _described(name: str) -> dict[str, Any]:
    """Returns what is known of a task; length and values are those of test seed 0 in the task's first language."""
    from ec2_env.task import build_episode, tasks
    from ec2_env.testing import play

    task = tasks.get(name)
    episode = build_episode(name, 0, split="test")
    return {
        "name": name,
        "title": task.title,
        "category": task.category,
        "domain": task.domain,
        "languages": list(task.languages),
        "apps": list(task.apps),
        "patterns": list(task.patterns),
        "sensitive_kinds": sorted({unit.kind for unit in episode.units}),
        "sensitive_values": len(episode.units),
        "solution_steps": len(play(episode).actions),
        "max_steps": task.max_steps,
    }


def _listed(found: list[dict[str, Any]]) -> str:
    head = ("task", "title", "category", "languages", "steps", "sensitive values")
    rows = [
        (
            one["name"],
            one["title"],
            one["category"],
            " ".join(one["languages"]),
            str(one["solution_steps"]),
            f"{one['sensitive_values']:>2}: {' '.join(one['sensitive_kinds'])}",
        )
        for one in found
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
    domains = ", ".join(dict.fromkeys(one["domain"] for one in found))
    ending = (
        f"Tasks: {len(found)}. Domains: {domains}. Steps: length of the task's own solution.\n"
        f"Play one: ec2-env run {found[0]['name']}"
    )
    return "\n".join([*lines, "", ending])


COMMAND = Command(help="List the tasks", add_arguments=_add_arguments, run=_run)
