"""Places labels beside points so that no label lies on another, on a point or outside the plot."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import NamedTuple

from ec2_env.report.svg import width_of

DISTANCES = (4.0, 14.0, 26.0, 40.0, 58.0, 80.0, 106.0, 136.0)
"""Gaps between point and label that are tried, in units of the plot."""
ANGLES = tuple(n * pi / 8 for n in (0, 8, 15, 1, 14, 2, 4, 12, 7, 9, 6, 10, 3, 5, 13, 11))
"""Directions that are tried: right and left first, which are the easiest to read."""


class Box(NamedTuple):
    """A rectangle: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Says whether two rectangles have an area in common."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def inside(self, other: Box) -> bool:
        """Says whether it lies within another rectangle."""
        return self.left >= other.left and self.top >= other.top and self.right <= other.right and self.bottom <= other.bottom


class Spot(NamedTuple):
    """A point with a label: center, radius of its mark, words."""

    x: float
    y: float
    radius: float
    words: str


def place(spots: Sequence[Spot], frame: Box, size: float, avoid: Sequence[Box] = ()) -> list[Box | None]:
    """Returns where each label goes; None where there is no room, so that a legend has to do.

    The most crowded points choose first, each the nearest free place.

    Args:
        spots: Points.
        frame: Labels stay within it.
        size: Size of the font.
        avoid: Further rectangles that no label may touch.
    """
    marks = [Box(s.x - s.radius, s.y - s.radius, s.x + s.radius, s.y + s.radius) for s in spots]
    taken = [*marks, *avoid]
    found: list[Box | None] = [None] * len(spots)
    for n in sorted(range(len(spots)), key=lambda n: (-_crowd(spots, n), n)):
        box = next((box for box in _candidates(spots[n], size) if box.inside(frame) and not any(map(box.meets, taken))), None)
        if box is not None:
            found[n] = box
            taken.append(box)
    return found


def _crowd(spots: Sequence[Spot], n: int) -> int:
    return sum(abs(other.x - spots[n].x) < 120 and abs(other.y - spots[n].y) < 40 for other in spots)


def _candidates(spot: Spot, size: float) -> list[Box]:
    wide, high = width_of(spot.words, size), size * 1.15
    boxes = []
    for distance in DISTANCES:
        for angle in ANGLES:
            x, y = cos(angle), sin(angle)
            reach = spot.radius + distance
            left = spot.x + x * reach - (wide / 2) * (1 - x)
            top = spot.y + y * reach - (high / 2) * (1 - y)
            boxes.append(Box(left, top, left + wide, top + high))
    return boxes
