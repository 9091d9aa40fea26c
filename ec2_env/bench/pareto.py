"""Fronts and volumes of points of which every coordinate is better when larger: pure functions.

Hypervolume: Zitzler and Thiele, "Multiobjective optimization using evolutionary algorithms" (PPSN 1998): the volume of all that
is at least as good as a reference point and no better than some point.
"""

from __future__ import annotations

from collections.abc import Sequence

Point = Sequence[float]


def dominates(one: Point, other: Point) -> bool:
    """Says whether a point is at least as good in every coordinate, and better in one."""
    pairs = list(zip(one, other, strict=True))
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


def pareto_front(points: Sequence[Point]) -> tuple[int, ...]:
    """Returns the places of the points that no other dominates, ascending; equal points are all in or all out."""
    return tuple(n for n, point in enumerate(points) if not any(dominates(other, point) for other in points))


def hypervolume(points: Sequence[Point], reference: Point | None = None) -> float:
    """Returns the volume that points dominate.

    Exact, by slices along the last coordinate: the work grows with the number of points to the power of the dimension less one.

    Args:
        points: Coordinates; more is better. What lies below the reference in any of them dominates nothing.
        reference: The worst point that counts; zeros if left out.

    Raises:
        ValueError: if points and reference differ in their number of coordinates.
    """
    if not points:
        return 0.0
    low = [0.0] * len(points[0]) if reference is None else [float(value) for value in reference]
    inside = [[float(a) - b for a, b in zip(point, low, strict=True)] for point in points]
    return _volume([point for point in inside if all(value > 0 for value in point)])


def _volume(points: list[list[float]]) -> float:
    """Returns the volume between the origin and points, all of whose coordinates are positive."""
    if not points:
        return 0.0
    if len(points) == 1:
        volume = 1.0
        for value in points[0]:
            volume *= value
        return volume
    if len(points[0]) == 1:
        return max(point[0] for point in points)
    heights = sorted({point[-1] for point in points})
    total, floor = 0.0, 0.0
    for height in heights:
        total += (height - floor) * _volume([point[:-1] for point in points if point[-1] >= height])
        floor = height
    return total


def segment_hypervolume(one: Point, other: Point) -> float:
    """Returns the volume that all mixtures of two points dominate, over the origin in three coordinates.

    A mixture takes one of two ways at random, so its means lie on the line between theirs. Where a single coordinate rises along
    the line, the volume is the box of the line's start plus the integral, over that coordinate, of the product of the others.

    Args:
        one: Three coordinates of at least 0; more is better.
        other: The same.

    Raises:
        ValueError: if a point has other than three coordinates or a negative one.
    """
    start, end = [float(value) for value in one], [float(value) for value in other]
    if len(start) != 3 or len(end) != 3 or min(*start, *end) < 0:
        raise ValueError(f"expected two points of three coordinates of at least 0, got {one!r} and {other!r}")
    rising = [n for n in range(3) if end[n] > start[n]]
    if len(rising) > 1:
        start, end = end, start
        rising = [n for n in range(3) if end[n] > start[n]]
    box = start[0] * start[1] * start[2]
    if not rising:
        return box
    x = rising[0]
    y, z = (n for n in range(3) if n != x)
    dy, dz = end[y] - start[y], end[z] - start[z]
    area = start[y] * start[z] + (start[y] * dz + start[z] * dy) / 2 + dy * dz / 3
    return box + (end[x] - start[x]) * area
