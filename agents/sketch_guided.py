"""Sketch-guided: the cloud sees the instruction once, before the work, and sends a short plan; the edge does the rest."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, flags


@dataclass(frozen=True, slots=True)
class SketchGuided:
    """Plans at the first step only."""

    name: str = "sketch_guided"
    uses_edge: bool = True

    def decide(self, view: View) -> Decision:
        """Returns PLAN at the first step, EDGE afterwards."""
        return Decision.PLAN if view.step == 0 else Decision.EDGE


def make(options: str) -> Strategy:
    """Takes no options."""
    flags(options)
    return SketchGuided()


STRATEGY = StrategyMaker(make=make, about="one plan from the instruction before the work; the edge executes")
