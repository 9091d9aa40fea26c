"""`ec2-env doctor`: says of a stranger's task folder what is wrong with it, why, and what to do."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a task file, or a folder of them; each defines TASK")
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each task, language and split (default: 10)")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.task import tasks
    from ec2_env.testing import check_task

    if arguments.seeds < 1:
        raise ConfigurationError(f"--seeds is {arguments.seeds}, expected a whole number above 0")
    sick = 0
    for path in _files(Path(arguments.path)):
        try:
            tasks.add(path.stem, _task_in(path))
            problems = check_task(path.stem, range(arguments.seeds))
        except Exception as error:  # a stranger's file may raise anything: that is a finding, not a crash
            problems = [
                f"{path.stem}: {type(error).__name__}: {error}; mend the file, or see examples/custom_task.py for a whole one"
            ]
        sick += bool(problems)
        print(f"{path.name}: {'sound' if not problems else f'{len(problems)} problems'}")
        for problem in problems[:20]:
            print(f"  {problem}")
        if len(problems) > 20:
            print(f"  and {len(problems) - 20} more")
    return 1 if sick else 0


def _files(path: Path) -> list[Path]:
    """Returns the task files at a path.

    Raises:
        ConfigurationError: if there are none.
    """
    found = [path] if path.is_file() else sorted(p for p in path.rglob("*.py") if not p.name.startswith("_"))
    if not found:
        raise ConfigurationError(f"there is no task file at {path}; give a .py file that defines TASK, or a folder of them")
    return found


def _task_in(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"ec2_env_doctor_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} is not a Python file; give a .py file that defines TASK")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "TASK"):
        raise ConfigurationError(f"{path} does not define TASK; end it with TASK = Task(...)")
    return module.TASK


COMMAND = Command(help="Check task files of your own", add_arguments=_add_arguments, run=_run)
