"""Step-routing: the cloud takes a step when the edge model's first token is too uncertain."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.strategy import SHARING, Choice, Decision, Strategy, StrategyMaker, View, flags, full_name, options, sharing

THRESHOLDS = {"qwen3.5-27b": 1.3, "qwen3.5-9b": 1.7}
"""Entropy in nats above which a step escalates, by edge model: the study's defaults. Other models get `DEFAULT`."""
DEFAULT = 1.7


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRouting:
    """Escalates single steps.

    Attributes:
        threshold: Entropy in nats; None takes the edge model's own from `THRESHOLDS`.
        chosen: Options of sharing, see `ec2_env.strategy.SHARING`.
    """

    threshold: float | None = None
    chosen: frozenset[str] = frozenset()
    uses_edge: bool = True

    @property
    def name(self) -> str:
        shared = full_name("step_routing", self.chosen)
        if self.threshold is None:
            return shared
        return f"{shared}{',' if self.chosen else ':'}threshold={self.threshold:g}"

    def decide(self, view: View) -> Choice:
        """Lets the cloud act above the threshold or where the edge model does not tell its entropy; returns EDGE below."""
        threshold = THRESHOLDS.get(view.edge.partition("@")[0], DEFAULT) if self.threshold is None else self.threshold
        entropy = view.signals().entropy
        if entropy is not None and entropy <= threshold:
            return Decision.EDGE
        return sharing("act", self.chosen)


def make(text: str) -> Strategy:
    """Takes `threshold=NATS`, `redacted` and `relevant`, in any order."""
    parts = [part for part in text.split(",") if part]
    numbers = ",".join(part for part in parts if "=" in part)
    chosen = flags(",".join(part for part in parts if "=" not in part), *SHARING)
    return StepRouting(threshold=options(numbers, threshold=DEFAULT)["threshold"] if numbers else None, chosen=chosen)


STRATEGY = StrategyMaker(make=make, about="the cloud takes a step when the edge's first-token entropy is above a threshold")
