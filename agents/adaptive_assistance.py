"""Adaptive assistance: the edge model asks for advice when it wants it, and goes on itself."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import SHARING, Choice, Decision, Strategy, StrategyMaker, View, flags, full_name, sharing


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAssistance:
    """Asks on the edge model's own wish.

    Attributes:
        chosen: Options of sharing, see `ec2_env.strategy.SHARING`.
    """

    chosen: frozenset[str] = frozenset()
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return full_name("adaptive_assistance", self.chosen)

    def decide(self, view: View) -> Choice:
        """Asks for advice when the edge model wants help; returns EDGE otherwise."""
        return sharing("advise", self.chosen) if view.signals().wants_help else Decision.EDGE


def make(options: str) -> Strategy:
    """Takes the options `redacted` and `relevant`."""
    return AdaptiveAssistance(chosen=flags(options, *SHARING))


STRATEGY = StrategyMaker(make=make, about="the edge asks for advice on its transcript when it wants to")
