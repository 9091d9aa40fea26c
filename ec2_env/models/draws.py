"""Random draws that depend on what they are for, not on the order in which they are made.

Two episodes that differ in one decision share every other draw, so that comparing them compares the decision.
"""

from __future__ import annotations

from hashlib import blake2b
from statistics import NormalDist

_STANDARD = NormalDist()


def uniform(*purpose: object) -> float:
    """Returns a number in (0, 1) that is fixed by its purpose, on every platform."""
    text = "\x1f".join(map(str, purpose))
    number = int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big")
    return (number + 0.5) / 2**56


def normal(*purpose: object) -> float:
    """Returns a standard normal number that is fixed by its purpose."""
    return _STANDARD.inv_cdf(uniform(*purpose))


def percentile(value: float) -> float:
    """Returns the probability that a standard normal number is below a value."""
    return _STANDARD.cdf(value)
