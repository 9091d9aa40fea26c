"""The Pareto plots: one point for each row of the table, with intervals, names and the front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

from ec2_env.bench.pareto import pareto_front
from ec2_env.bench.statistics import Estimate
from ec2_env.report.marks import Mark
from ec2_env.report.placement import Box, Spot, place
from ec2_env.report.svg import drawing, element, hint, line, number, text, width_of

WIDTH, HEIGHT = 840.0, 440.0
FRAME = Box(62.0, 30.0, WIDTH - 190, HEIGHT - 50)
"""Where the points are; to its right is room for labels, since private strategies crowd at that edge."""
FONT = 12
LEGEND_LINE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One point.

    Attributes:
        strategy: Names the mark.
        words: Label.
        radius: Of the mark.
        about: Shown when the pointer rests on it.
    """

    strategy: str
    words: str
    radius: float
    x: Estimate
    y: Estimate
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """How a figure is shown along an axis.

    Attributes:
        title: With the unit, and which way is better.
        form: Writes a value at a tick.
        more_is_better: Which end is good.
        least, most: The axis never goes beyond these.
    """

    title: str
    form: Callable[[float], str]
    more_is_better: bool
    least: float = 0.0
    most: float | None = None


class Range(NamedTuple):
    """The part of an axis that is shown: its ends, and round values between them."""

    low: float
    high: float
    ticks: list[float]


def scatter(
    name: str,
    title: str,
    dots: Sequence[Dot],
    axes: tuple[Axis, Axis],
    marks: Mapping[str, Mark],
    sizes: Sequence[tuple[str, float]],
) -> str:
    """Returns a plot of points that have a mean on both axes.

    Args:
        name: Unique in the page.
        title: What it shows.
        dots: Points.
        axes: Of x and y.
        marks: By strategy.
        sizes: What the sizes of marks mean, with radii.
    """
    shown = [dot for dot in dots if dot.x.mean is not None and dot.y.mean is not None]
    ranges = _range([dot.x for dot in shown], axes[0]), _range([dot.y for dot in shown], axes[1])
    x, y = _scale(ranges[0], FRAME.left, FRAME.right), _scale(ranges[1], FRAME.bottom, FRAME.top)
    spots = [Spot(x(dot.x.mean or 0.0), y(dot.y.mean or 0.0), dot.radius, dot.words) for dot in shown]
    front = _front(shown, axes)
    note = "dashed: front of rows that no other beats on both axes"
    noted = Box(FRAME.left, 0.0, FRAME.left + width_of(note, 11), FRAME.top - 6)
    labels = place(spots, Box(FRAME.left + 2, FRAME.top, WIDTH - 2, FRAME.bottom - 2), FONT, [noted])
    legend, height = _legend(shown, marks, sizes)
    body = [
        *_grid(axes, ranges, x, y),
        text(FRAME.left, FRAME.top - 12, note, font_size=11, fill="var(--soft)") if len(front) > 1 else "",
        _staircase([spots[n] for n in front], axes),
        *(_whiskers(dot, spot, x, y) for dot, spot in zip(shown, spots, strict=True)),
        *(marks[dot.strategy].draw(spot.x, spot.y, spot.radius, hint(dot.about)) for dot, spot in _big_first(shown, spots)),
        *(_label(spot, box) for spot, box in zip(spots, labels, strict=True) if box is not None),
        legend,
    ]
    return drawing(name, title, _in_words(shown, front, axes), WIDTH, height, "".join(body))


def _big_first(shown: Sequence[Dot], spots: Sequence[Spot]) -> list[tuple[Dot, Spot]]:
    """Returns points in the order of drawing: small marks lie on large ones."""
    return sorted(zip(shown, spots, strict=True), key=lambda pair: -pair[0].radius)


def _front(dots: Sequence[Dot], axes: tuple[Axis, Axis]) -> list[int]:
    """Returns the places of the points that no other beats, from left to right."""
    signs = [1.0 if axis.more_is_better else -1.0 for axis in axes]
    points = [(signs[0] * (dot.x.mean or 0.0), signs[1] * (dot.y.mean or 0.0)) for dot in dots]
    return sorted(pareto_front(points), key=lambda n: (dots[n].x.mean, dots[n].y.mean))


def _staircase(spots: Sequence[Spot], axes: tuple[Axis, Axis]) -> str:
    """Returns the front as steps: between two of its points, nothing better than the worse of each is reached."""
    if len(spots) < 2:
        return ""
    parts = [f"M{number(spots[0].x)} {number(spots[0].y)}"]
    for after in spots[1:]:
        parts.append(
            f"V{number(after.y)}H{number(after.x)}" if axes[0].more_is_better else f"H{number(after.x)}V{number(after.y)}"
        )
    return element(
        "path", {"d": "".join(parts), "fill": "none", "stroke": "var(--soft)", "stroke_dasharray": "5 4", "stroke_width": 1.2}
    )


def _range(values: Sequence[Estimate], axis: Axis) -> Range:
    """Returns a range with some room around all means and intervals."""
    ends = [end for value in values for end in (value.mean, value.low, value.high) if end is not None]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    span = max(high - low, abs(high) * 0.05, 1e-9)
    low, high = max(low - 0.04 * span, axis.least), high + 0.06 * span
    if axis.most is not None:
        high = min(high, axis.most)
    rough = max(high - low, 1e-9) / 7
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    return Range(low, high, [n * step for n in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)])


def _scale(shown: Range, start: float, end: float) -> Callable[[float], float]:
    span = shown.high - shown.low
    return lambda value: start + (value - shown.low) / span * (end - start)


def _grid(
    axes: tuple[Axis, Axis], ranges: tuple[Range, Range], x: Callable[[float], float], y: Callable[[float], float]
) -> list[str]:
    corners = {"x": FRAME.left, "y": FRAME.top, "width": FRAME.right - FRAME.left, "height": FRAME.bottom - FRAME.top}
    parts = [element("rect", {**corners, "fill": "none", "stroke": "var(--rule)"})]
    for value in ranges[0].ticks:
        parts.append(line(x(value), FRAME.top, x(value), FRAME.bottom))
        parts.append(text(x(value), FRAME.bottom + 17, axes[0].form(value), text_anchor="middle"))
    for value in ranges[1].ticks:
        parts.append(line(FRAME.left, y(value), FRAME.right, y(value)))
        parts.append(text(FRAME.left - 7, y(value) + 4, axes[1].form(value), text_anchor="end"))
    middle = (FRAME.top + FRAME.bottom) / 2
    parts.append(text((FRAME.left + FRAME.right) / 2, FRAME.bottom + 38, axes[0].title, text_anchor="middle", font_size=13))
    turned = {"text_anchor": "middle", "font_size": 13, "transform": f"rotate(-90 16 {number(middle)})"}
    parts.append(text(16, middle, axes[1].title, **turned))
    return parts


def _whiskers(dot: Dot, spot: Spot, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    look = {"stroke_width": 1, "opacity": "0.5"}
    parts = []
    if dot.x.low is not None and dot.x.high is not None:
        parts.append(line(x(dot.x.low), spot.y, x(dot.x.high), spot.y, "var(--soft)", **look))
    if dot.y.low is not None and dot.y.high is not None:
        parts.append(line(spot.x, y(dot.y.low), spot.x, y(dot.y.high), "var(--soft)", **look))
    return "".join(parts)


def _label(spot: Spot, box: Box) -> str:
    """Returns a label and, if it stands apart from its point, a line between the two."""
    near_x, near_y = min(max(spot.x, box.left), box.right), min(max(spot.y, box.top), box.bottom)
    gap = ((near_x - spot.x) ** 2 + (near_y - spot.y) ** 2) ** 0.5
    leader = ""
    if gap > spot.radius + 10:
        share = spot.radius / gap
        start = spot.x + (near_x - spot.x) * share, spot.y + (near_y - spot.y) * share
        leader = line(*start, near_x, near_y, "var(--soft)", stroke_width=0.8)
    halo = {"stroke": "var(--paper)", "stroke_width": 3, "paint_order": "stroke", "stroke_linejoin": "round"}
    return leader + text((box.left + box.right) / 2, box.bottom - 3, spot.words, font_size=FONT, text_anchor="middle", **halo)


def _legend(dots: Sequence[Dot], marks: Mapping[str, Mark], sizes: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """Returns what marks and sizes mean, in lines below the plot, and the height of plot and legend."""
    names = list(dict.fromkeys(dot.strategy for dot in dots))
    entries = [(marks[name].draw, 5.5, name) for name in names]
    lines, x, y = [], FRAME.left, HEIGHT + 8
    for draw, radius, name in entries:
        wide = width_of(name, FONT) + 30
        if x + wide > WIDTH and x > FRAME.left:
            x, y = FRAME.left, y + LEGEND_LINE
        lines.append(draw(x + 6, y, radius) + text(x + 17, y + 4, name))
        x += wide
    if len(sizes) > 1:
        x, y = FRAME.left, y + LEGEND_LINE + 4
        for words, radius in sizes:
            circle = {"cx": x + 8, "cy": y, "r": radius, "fill": "none", "stroke": "var(--soft)", "stroke_width": 1.5}
            lines.append(element("circle", circle) + text(x + 22, y + 4, words))
            x += width_of(words, FONT) + 38
    return "".join(lines), y + 18


def _in_words(dots: Sequence[Dot], front: Sequence[int], axes: tuple[Axis, Axis]) -> str:
    """Returns the plot for those who do not see it."""

    def value(dot: Dot) -> str:
        return f"{dot.words} ({axes[0].form(dot.x.mean or 0.0)}, {axes[1].form(dot.y.mean or 0.0)})"

    best = ", ".join(value(dots[n]) for n in front)
    return (
        f"{len(dots)} rows; x: {axes[0].title}; y: {axes[1].title}. On the front, as (x, y): {best}. The table has all figures."
    )
