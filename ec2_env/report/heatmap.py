"""A grid of shares: rows of the table against groups, darker where a share is higher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from ec2_env.report.palette import SCALE, shade
from ec2_env.report.svg import drawing, element, hint, text, width_of

CELL_WIDTH, CELL_HEIGHT = 84.0, 24.0
LINE = 14.0
FONT = 12


@dataclass(frozen=True, slots=True)
class Tile:
    """One value, 0 to 1, or None, and what is shown when the pointer rests on it."""

    value: float | None
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A whole grid.

    Attributes:
        columns: Headings; a second line stands after "\\n".
        sections: Heading of some rows, and their names and tiles.
        unit: What a value is.
    """

    columns: Sequence[str]
    sections: Sequence[tuple[str, Sequence[tuple[str, Sequence[Tile]]]]]
    unit: str


def heatmap(name: str, title: str, heat: Heat) -> str:
    """Returns the grid as a plot."""
    names = [words for _, rows in heat.sections for words, _ in rows]
    left = max((width_of(words, FONT) for words in names), default=0.0) + 16
    width = left + CELL_WIDTH * len(heat.columns) + 8
    low, high = _range(heat)
    y = LINE * max((words.count("\n") for words in heat.columns), default=0) + 24
    parts = [_heading(words, left + CELL_WIDTH * (n + 0.5), y) for n, words in enumerate(heat.columns)]
    for heading, rows in heat.sections:
        if heading:
            parts.append(text(4, y + 16, heading, font_weight="bold"))
            y += CELL_HEIGHT
        for words, tiles in rows:
            parts.append(text(left - 8, y + 16, words, text_anchor="end"))
            parts += [_tile(tile, left + CELL_WIDTH * n, y, low, high) for n, tile in enumerate(tiles)]
            y += CELL_HEIGHT
    legend, bottom = _legend(heat.unit, left, y + 18, low, high)
    return drawing(
        name, title, _in_words(heat), max(width, left + width_of(heat.unit, FONT) + 260), bottom, "".join(parts) + legend
    )


def _range(heat: Heat) -> tuple[float, float]:
    """Returns the ends of the scale: tenths around all values."""
    values = [tile.value for _, rows in heat.sections for _, tiles in rows for tile in tiles if tile.value is not None]
    low, high = floor(min(values, default=0.0) * 10 + 1e-9) / 10, ceil(max(values, default=1.0) * 10 - 1e-9) / 10
    return (low, high) if high > low else (max(low - 0.1, 0.0), max(low - 0.1, 0.0) + 0.1)


def _heading(words: str, x: float, bottom: float) -> str:
    lines = words.split("\n")
    return "".join(
        text(x, bottom - 8 - LINE * (len(lines) - 1 - n), part, text_anchor="middle", font_size=12 if n == 0 else 11)
        for n, part in enumerate(lines)
    )


def _tile(tile: Tile, x: float, y: float, low: float, high: float) -> str:
    box = {"x": x + 1, "y": y + 1, "width": CELL_WIDTH - 2, "height": CELL_HEIGHT - 2, "rx": 3}
    if tile.value is None:
        return element("g", {}, hint(tile.about), element("rect", {**box, "fill": "var(--band)"})) + text(
            x + CELL_WIDTH / 2, y + 16, "-", text_anchor="middle"
        )
    color, ink = shade((tile.value - low) / (high - low))
    words = text(x + CELL_WIDTH / 2, y + 16, f"{100 * tile.value:.0f}", text_anchor="middle", fill=ink)
    return element("g", {}, hint(tile.about), element("rect", {**box, "fill": color}), words)


def _legend(unit: str, x: float, y: float, low: float, high: float) -> tuple[str, float]:
    step = 14.0
    parts = [text(x, y + 11, f"{100 * low:.0f}")]
    x += width_of("100", FONT) + 6
    for color in SCALE:
        parts.append(element("rect", {"x": x, "y": y, "width": step, "height": 14, "fill": color}))
        x += step
    parts.append(text(x + 6, y + 11, f"{100 * high:.0f}"))
    parts.append(text(x + 42, y + 11, unit, fill="var(--soft)"))
    return "".join(parts), y + 26


def _in_words(heat: Heat) -> str:
    """Returns the grid for those who do not see it."""
    tiles = [
        (tile.value, words, heading, column.replace("\n", " "))
        for heading, rows in heat.sections
        for words, row in rows
        for column, tile in zip(heat.columns, row, strict=True)
        if tile.value is not None
    ]
    if not tiles:
        return "No values."
    (low, *where_low), (high, *where_high) = min(tiles, key=lambda one: one[0]), max(tiles, key=lambda one: one[0])
    return (
        f"{heat.unit}. Lowest: {100 * low:.0f} for {', '.join(filter(None, where_low))}; highest: {100 * high:.0f} for "
        f"{', '.join(filter(None, where_high))}. The table below the plot has all values."
    )
