"""Which mark stands for which strategy: a color and a shape for each kind, filled or hollow by its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ec2_env.report.palette import COLORS
from ec2_env.report.svg import element, number

_POLYGONS = {
    "triangle": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    "diamond": ((0, -1.3), (1.1, 0), (0, 1.3), (-1.1, 0)),
    "wedge": ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "hexagon": ((0, -1.1), (1, -0.55), (1, 0.55), (0, 1.1), (-1, 0.55), (-1, -0.55)),
    "plus": (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
        (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
    "star": (
        (0, -1.4), (0.38, -0.5), (1.3, -0.42), (0.6, 0.2), (0.82, 1.1),
        (0, 0.62), (-0.82, 1.1), (-0.6, 0.2), (-1.3, -0.42), (-0.38, -0.5),
    ),
}  # fmt: skip
SHAPES = ("circle", "square", "triangle", "diamond", "wedge", "hexagon", "plus", "star")


class Mark(NamedTuple):
    """How a strategy looks: number of its color, shape, and whether it is filled."""

    color: int
    shape: str
    filled: bool

    def draw(self, x: float, y: float, radius: float, *content: str) -> str:
        """Returns the mark at a place."""
        ink = f"var(--s{self.color})"
        look = {"fill": ink if self.filled else "none", "stroke": ink, "stroke_width": 2}
        if self.shape == "circle":
            return element("circle", {"cx": float(x), "cy": float(y), "r": float(radius), **look}, *content)
        points = " ".join(f"{number(x + dx * radius)},{number(y + dy * radius)}" for dx, dy in _POLYGONS[self.shape])
        return element("polygon", {"points": points, "stroke_linejoin": "round", **look}, *content)


def marks(strategies: Sequence[str]) -> dict[str, Mark]:
    """Returns a mark for each strategy: variants of one kind share the color, and differ in filling, then in shape."""
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in strategies))
    seen: dict[str, int] = {}
    found = {}
    for name in dict.fromkeys(strategies):
        kind = name.partition(":")[0]
        place, variant = kinds.index(kind), seen.get(kind, 0)
        seen[kind] = variant + 1
        found[name] = Mark(place % COLORS, SHAPES[(place + variant // 2) % len(SHAPES)], variant % 2 == 0)
    return found
