"""Shows how a run goes, on standard error: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from ec2_env.bench.statistics import Totals


class Quiet:
    """Says only what has to be said; for pipes, logs and tests.

    Args:
        silent: Whether it does not even say what begins.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing is held."""

    def stage(self, name: str, done: int, total: int) -> None:
        """Says what begins."""
        if not self.silent:
            self.say(f"{name}: {total:,} episodes" + (f", {done:,} of them recorded before" if done else ""))

    def advance(self, episodes: int, totals: Totals) -> None:
        """Says nothing."""

    def say(self, text: str) -> None:
        """Prints a line on standard error."""
        print(f"ec2-env: {text}", file=sys.stderr)


class Bar(Quiet):
    """A progress bar with the money spent and the time left.

    Args:
        simulated: Whether the cloud model is, so that nobody is billed.
    """

    def __init__(self, *, simulated: bool) -> None:
        super().__init__()
        self._kind = " simulated" if simulated else ""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns: list[Any] = [
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[money]}"),
            TimeRemainingColumn(),
        ]
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task: Any = None

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def stage(self, name: str, done: int, total: int) -> None:
        """Starts a new bar."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=total, completed=done, money="")

    def advance(self, episodes: int, totals: Totals) -> None:
        """Moves the bar."""
        errors = f", {totals.errors} errors" if totals.errors else ""
        self._bar.update(self._task, advance=episodes, money=f"${totals.spent.usd:.2f}{self._kind}{errors}")

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._bar.console.print(f"ec2-env: {text}", highlight=False, markup=False)
