"""Random decisions: the lower reference."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, flags


@dataclass(frozen=True, slots=True)
class Random:
    """Takes each of the six decisions with equal chance, fixed by the episode's noise."""

    name: str = "random"
    uses_edge: bool = True

    def decide(self, view: View) -> Decision:
        """Returns any decision."""
        return Decision(int(view.draw("random") * len(Decision)))


def make(options: str) -> Strategy:
    """Takes no options."""
    flags(options)
    return Random()


STRATEGY = StrategyMaker(make=make, about="each of the six decisions with equal chance: the lower reference")
