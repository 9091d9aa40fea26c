"""Step-routing: the cloud takes a step when the edge model's first token is too uncertain."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, flags, options

THRESHOLDS = {"qwen3.5-27b": 1.3, "qwen3.5-9b": 1.7}
"""Entropy in nats above which a step escalates, by edge model: the study's defaults. Other models get `DEFAULT`."""
DEFAULT = 1.7


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRouting:
    """Escalates single steps.

    Attributes:
        threshold: Entropy in nats; None takes the edge model's own from `THRESHOLDS`.
        redacted: Whether the transcript crosses with placeholders.
    """

    threshold: float | None = None
    redacted: bool = False
    uses_edge: bool = True

    @property
    def name(self) -> str:
        if self.redacted:
            return "step_routing:redacted"
        return "step_routing" if self.threshold is None else f"step_routing:threshold={self.threshold:g}"

    def decide(self, view: View) -> Decision:
        """Returns ACT above the threshold or where the edge model does not tell its entropy, EDGE below."""
        threshold = THRESHOLDS.get(view.edge, DEFAULT) if self.threshold is None else self.threshold
        entropy = view.signals().entropy
        if entropy is not None and entropy <= threshold:
            return Decision.EDGE
        return Decision.ACT_REDACTED if self.redacted else Decision.ACT


def make(text: str) -> Strategy:
    """Takes `threshold=NATS`, or `redacted`."""
    if text == "redacted":
        return StepRouting(redacted=True)
    if text and "=" not in text:
        flags(text, "redacted")
    return StepRouting(threshold=options(text, threshold=DEFAULT)["threshold"] if text else None)


STRATEGY = StrategyMaker(make=make, about="the cloud takes a step when the edge's first-token entropy is above a threshold")
