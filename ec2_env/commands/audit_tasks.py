"""`ec2-env audit-tasks`: attacks the graders of tasks, and shows what every attack earns."""

from __future__ import annotations

import argparse
import json
import os

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError, UnknownName


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="which tasks; all if none is named")
    parser.add_argument("--domain", metavar="NAME", help="the tasks of this folder")
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each task and language (default: 10)")
    parser.add_argument("--mutant-seeds", type=int, default=2, help="seeds in which wrong solutions are played too (default: 2)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--json", action="store_true", help="everything that was found, as JSON")


def _run(arguments: argparse.Namespace) -> int:
    import msgspec

    from ec2_env.testing.audit import HEAD, audit_tasks, row, summary

    for setting in ("seeds", "mutant_seeds", "workers"):
        if getattr(arguments, setting) < 1:
            option = f"--{setting.replace('_', '-')}"
            raise ConfigurationError(f"{option} is {getattr(arguments, setting)}, expected a whole number above 0")
    names = _chosen(arguments)
    audits = []
    if not arguments.json:
        print(HEAD)
    for audit in audit_tasks(names, arguments.seeds, arguments.mutant_seeds, arguments.workers):
        audits.append(audit)
        if not arguments.json:
            print(row(audit), flush=True)
    lines, kept = summary(audits)
    if arguments.json:
        print(json.dumps({"tasks": msgspec.to_builtins(audits), "summary": lines, "kept": kept}, indent=2, ensure_ascii=False))
    else:
        print("", *lines, "", "Every limit is kept." if kept else "Not every limit is kept: see above.", sep="\n")
    return 0 if kept else 1


def _chosen(arguments: argparse.Namespace) -> tuple[str, ...]:
    from ec2_env.task import task_domains, tasks

    domains = task_domains()
    if arguments.domain is not None and arguments.domain not in domains:
        raise UnknownName("domain", arguments.domain, domains)
    for name in arguments.tasks:
        if name not in tasks.names():
            raise UnknownName("task", name, tasks.names())
    of_domain = domains[arguments.domain] if arguments.domain else ()
    return tuple(dict.fromkeys((*arguments.tasks, *of_domain))) or tasks.names()


COMMAND = Command(help="Attack the graders of tasks", add_arguments=_add_arguments, run=_run)
