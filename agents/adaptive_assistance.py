"""Adaptive assistance: the edge model asks for advice when it wants it, and goes on itself."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import SHARING, Choice, Decision, Strategy, StrategyMaker, View, flags, full_name, sharing


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAssistance:
    """Asks on the edge model's own wish.

    Calling for advice is a turn of the edge model. One that does not tell its wish is asked for it before every step but the one
    after advice, and may decline: one more completion each time.

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
        wants_help = view.wish()
        if wants_help is None:
            wants_help = not view.decisions or view.decisions[-1] is Decision.EDGE
        called = wants_help and bool(view.write("wish"))
        return sharing("advise", self.chosen) if called else Decision.EDGE


def make(options: str) -> Strategy:
    """Takes the options `redacted` and `relevant`."""
    return AdaptiveAssistance(chosen=flags(options, *SHARING))


STRATEGY = StrategyMaker(make=make, about="the edge asks for advice on its transcript when it wants to")
