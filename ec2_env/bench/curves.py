"""What a family of strategies makes of its cost, or of what it exposes: areas under its curve, and two published scores of them.

A curve goes from the edge model alone to the cloud model alone, in shares of what the cloud alone costs (or exposes), by way of
the family's operating points. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class OperatingPoint(NamedTuple):
    """Where a strategy stands: its cost, and how well it does."""

    cost: float
    quality: float


def upper_hull(points: Sequence[OperatingPoint]) -> list[OperatingPoint]:
    """Returns the non-decreasing convex hull of RouterBench (arXiv 2403.12031): what mixtures of the points reach.

    A mixture takes one of two points at random, so it stands on the line between them; and nobody pays more for less.

    Returns:
        Points by ascending cost and quality, from the cheapest one; the upper boundary is the line through them, then level.
    """
    hull: list[OperatingPoint] = []
    for point in sorted(points, key=lambda point: (point.cost, point.quality)):
        if hull and hull[-1].cost == point.cost:
            hull.pop()
        while len(hull) > 1 and _is_below(hull[-1], hull[-2], point):
            hull.pop()
        hull.append(point)
    best = max(range(len(hull)), key=lambda place: hull[place].quality)
    return hull[: best + 1]


def _is_below(middle: OperatingPoint, left: OperatingPoint, right: OperatingPoint) -> bool:
    """Says whether a point is on or below the line between two others."""
    return (middle.quality - left.quality) * (right.cost - left.cost) <= (right.quality - left.quality) * (
        middle.cost - left.cost
    )


def area(points: Sequence[OperatingPoint], low: float, high: float) -> float:
    """Returns the mean height, between two costs, of the line through points sorted by cost; level beyond both ends.

    Points that cost the same count with the best of them.

    Raises:
        ValueError: if there is no point, or the costs are not in order.
    """
    if not points or not low < high:
        raise ValueError(f"area needs points and low < high, got {len(points)} points, {low=}, {high=}")
    best: dict[float, float] = {}
    for cost, quality in points:
        best[cost] = max(quality, best.get(cost, quality))
    held = sorted(best.items())
    places = sorted({low, high, *(cost for cost, _ in held if low < cost < high)})
    heights = [_height(held, place) for place in places]
    pieces = zip(places, places[1:], heights, heights[1:], strict=False)
    return sum((right - left) * (one + other) / 2 for left, right, one, other in pieces) / (high - low)


def _height(held: Sequence[tuple[float, float]], place: float) -> float:
    if place <= held[0][0]:
        return held[0][1]
    for (left, one), (right, other) in pairwise(held):
        if place <= right:
            return one + (other - one) * (place - left) / (right - left)
    return held[-1][1]


def aiq(points: Sequence[OperatingPoint], low: float, high: float) -> float:
    """Returns the Average Improvement in Quality of RouterBench (arXiv 2403.12031).

    1 / (c_max - c_min) times the integral, from c_min to c_max, of the non-decreasing convex hull. The paper's own code
    (github.com/withmartian/routerbench, evaluation/AIQ.py) divides by c_max, which is the same where c_min is 0, as it is here.
    """
    return area(upper_hull(points), low, high)


def apgr(points: Sequence[OperatingPoint], weak: float, strong: float) -> float | None:
    """Returns the average performance gap recovered of RouteLLM (arXiv 2406.18665).

    PGR(c) = (r(c) - r(weak)) / (r(strong) - r(weak)), averaged over the share c of the strong model from 0 to 1. As in the
    authors' code (github.com/lm-sys/RouteLLM, routellm/evals/evaluate.py), the average is by trapezoids over the measured
    points. Their c is the share of queries that go to the strong model; here it is the share of the cost of the cloud alone (or
    of its exposure), since a strategy that acts within an episode sends no whole queries.

    Args:
        points: Shares from 0 to 1, and quality; both ends are among them.
        weak: Quality of the weak model.
        strong: Quality of the strong model.

    Returns:
        0.5 for a random mixture of the two models, None where they are equally good.
    """
    if strong == weak:
        return None
    return (area(points, 0.0, 1.0) - weak) / (strong - weak)


def call_performance_threshold(points: Sequence[OperatingPoint], weak: float, strong: float, recovered: float) -> float | None:
    """Returns the least share of the cost at which a part of the performance gap is recovered: CPT of RouteLLM.

    Args:
        points: As in `apgr`.
        weak: Quality of the weak model.
        strong: Quality of the strong model.
        recovered: Part of the gap, 0 to 1.
    """
    target = weak + recovered * (strong - weak)
    held = sorted(points)
    if held and held[0].quality >= target:
        return held[0].cost
    for left, right in pairwise(held):
        if left.quality < target <= right.quality:
            return left.cost + (right.cost - left.cost) * (target - left.quality) / (right.quality - left.quality)
    return None


def family_of(spec: str) -> str:
    """Returns a strategy's specification without its numbers: all thresholds of `step_routing:redacted` are one family."""
    name, _, options = spec.partition(":")
    kept = [option for option in options.split(",") if option and not _is_number(option.rpartition("=")[2])]
    return f"{name}:{','.join(kept)}" if kept else name


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
