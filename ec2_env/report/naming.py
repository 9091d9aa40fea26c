"""What rows of the table are called: strategies with their models by the names of their cards."""

from __future__ import annotations

from collections.abc import Sequence

from ec2_env.bench.grid import Cell
from ec2_env.bench.statistics import Summary
from ec2_env.report.run import Run

NO_EDGE, SMALLEST, LARGEST = 4.5, 6.0, 9.0
"""Radii of marks: without an edge model, and of the edge models with the fewest and the most parameters."""


class Naming:
    """Names the rows of a run.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        cells = [summary.cell for summary in run.summaries]
        self._many_clouds = len({cell.cloud for cell in cells}) > 1
        self._edges = list(dict.fromkeys(cell.edge for cell in cells if cell.edge is not None))

    def model(self, spec: str) -> str:
        """Returns the name on a model's card."""
        return self.run.cards[spec].name

    def strategy(self, cell: Cell) -> str:
        """Returns a row's strategy, with its cloud model where there are several."""
        return f"{cell.strategy}, {self.model(cell.cloud)}" if self._many_clouds and cell.edge is None else cell.strategy

    def row(self, cell: Cell) -> str:
        """Returns a row's strategy and models, as far as they tell it from others."""
        if cell.edge is None or len(self._edges) < 2:
            return self.strategy(cell)
        return f"{cell.strategy} ({self.model(cell.edge)})"

    def sections(self) -> list[tuple[str, list[Summary]]]:
        """Returns the rows under the models that they have in common: first those without an edge model."""
        found: dict[str, list[Summary]] = {}
        for summary in self.run.summaries:
            edge, cloud = summary.cell.edge, self.model(summary.cell.cloud)
            heading = f"edge {self.model(edge)}, cloud {cloud}" if edge is not None else f"no edge model, cloud {cloud}"
            found.setdefault(heading, []).append(summary)
        return list(found.items())

    def radius(self, cell: Cell) -> float:
        """Returns the size of a row's mark."""
        return NO_EDGE if cell.edge is None else dict(self._radii())[cell.edge]

    def sizes(self) -> list[tuple[str, float]]:
        """Returns what the sizes of marks mean."""
        alone = any(summary.cell.edge is None for summary in self.run.summaries)
        edges = [(f"edge {self.model(spec)}", radius) for spec, radius in self._radii()]
        return [("no edge model", NO_EDGE), *edges] if alone else edges

    def _radii(self) -> list[tuple[str, float]]:
        """Returns the radius of each edge model, in the order of their parameters; those without a known number come first."""
        ordered: Sequence[str] = sorted(self._edges, key=lambda spec: (self.run.cards[spec].parameters or 0.0, spec))
        step = (LARGEST - SMALLEST) / max(len(ordered) - 1, 1)
        return [(spec, SMALLEST + step * n) for n, spec in enumerate(ordered)]
