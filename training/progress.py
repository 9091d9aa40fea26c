"""What a run says as it goes: lines on the screen, figures in `metrics.jsonl`, and where the time went."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ec2_env.training.metrics import Metrics

A = TypeVar("A")
T = TypeVar("T")


class Progress:
    """The progress of one run.

    Args:
        out: Folder of the run.
    """

    def __init__(self, out: Path) -> None:
        self.start = time.perf_counter()
        self.metrics = Metrics(out)
        self.seconds = defaultdict[str, float](float)
        self._inner = [0.0]

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.metrics.close()

    def say(self, text: str) -> None:
        """Prints what is being done, and how many seconds after the start."""
        print(f"[{time.perf_counter() - self.start:5.0f} s] {text}", flush=True)

    def figure(self, stage: str, step: int, name: str, value: float) -> None:
        """Takes down a figure and prints it."""
        self.metrics.log(stage, step, **{name.replace(" ", "_"): value})
        self.say(f"  {stage}, step {step}: {name} {value:.4f}")

    @contextlib.contextmanager
    def on(self, purpose: str) -> Iterator[None]:
        """Measures what happens in the context. What is measured within something else counts for the inner purpose only."""
        began = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            whole = time.perf_counter() - began
            self.seconds[purpose] += whole - self._inner.pop()
            self._inner[-1] += whole

    def timed(self, purpose: str, function: Callable[[A], T]) -> Callable[[A], T]:
        """Returns the function, measured."""

        def measured(argument: A) -> T:
            with self.on(purpose):
                return function(argument)

        return measured

    def times(self, read: int, model: Sequence[str]) -> str:
        """Says where the time of this process went; a run that goes on from finished stages has spent it elsewhere.

        Args:
            read: Tokens that the model has read.
            model: Purposes for which it reads.
        """
        whole = time.perf_counter() - self.start
        shares = ", ".join(f"{purpose} {100 * spent / whole:.0f}%" for purpose, spent in sorted(self.seconds.items()))
        reading = max(1e-9, sum(self.seconds[purpose] for purpose in model))
        return f"of {whole:.0f} seconds: {shares}; the model read {read:,} tokens, {read / reading:,.0f} a second of its time"
