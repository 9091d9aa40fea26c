"""The generator that worlds draw from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice(random.Random):
    """Python's generator with quicker `choice` and `randrange`: building an episode makes hundreds of small draws.

    A draw among n values scales one float of 53 bits; the bias is below n / 2**53.
    """

    def choice(self, seq: Sequence[T]) -> T:  # type: ignore[override]  # the stub's protocol is narrower than Sequence
        """Returns one item of a sequence that is not empty."""
        return seq[int(self.random() * len(seq))]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Returns one number of `range(start, stop, step)`, or of `range(start)`.

        Raises:
            ValueError: if the range is empty.
        """
        first, last = (0, start) if stop is None else (start, stop)
        width = (last - first + step - 1) // step
        if width <= 0:
            raise ValueError(f"empty range for randrange({first}, {last}, {step})")
        return first + step * int(self.random() * width)
