"""Adaptive assistance: the edge model asks for advice when it wants it, and goes on itself."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, flags


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAssistance:
    """Asks on the edge model's own wish.

    Attributes:
        redacted: Whether the transcript crosses with placeholders.
    """

    redacted: bool = False
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return "adaptive_assistance" + (":redacted" if self.redacted else "")

    def decide(self, view: View) -> Decision:
        """Returns ADVISE when the edge model wants help, EDGE otherwise."""
        if not view.signals().wants_help:
            return Decision.EDGE
        return Decision.ADVISE_REDACTED if self.redacted else Decision.ADVISE


def make(options: str) -> Strategy:
    """Takes the option `redacted`."""
    return AdaptiveAssistance(redacted="redacted" in flags(options, "redacted"))


STRATEGY = StrategyMaker(make=make, about="the edge asks for advice on its transcript when it wants to")
