"""Task-routing: an offline score decides, before the work, whether the cloud does the whole task or none of it.

The score of a task is how much more the cloud alone completes than the edge alone, measured on the train split; the share `ratio`
of tasks with the highest scores goes to the cloud. The test split is never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ec2_env.errors import ConfigurationError
from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, options


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRouting:
    """Routes whole tasks.

    Attributes:
        ratio: Share of (task, language) pairs that go to the cloud, 0 to 1.
        routed: The pairs that do; empty until prepared.
    """

    ratio: float = 0.25
    routed: frozenset[tuple[str, str]] | None = None
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return "task_routing" if self.ratio == 0.25 else f"task_routing:ratio={self.ratio:g}"

    def prepare(self, gaps: Mapping[tuple[str, str], float]) -> Strategy:
        """Fixes which tasks go to the cloud: those with the largest gaps, ties by name."""
        ranked = sorted(gaps, key=lambda pair: (-gaps[pair], pair))
        return replace(self, routed=frozenset(ranked[: round(self.ratio * len(ranked))]))

    def decide(self, view: View) -> Decision:
        """Returns ACT in a routed task, EDGE in any other.

        Raises:
            ConfigurationError: if the router has not been prepared.
        """
        if self.routed is None:
            raise ConfigurationError("task_routing needs its offline scores: call prepare(gaps) first, as `ec2-env bench` does")
        return Decision.ACT if (view.task, view.language) in self.routed else Decision.EDGE


def make(text: str) -> Strategy:
    """Takes the option `ratio=SHARE`; default 0.25, the study's."""
    ratio = options(text, ratio=0.25)["ratio"]
    if not 0 <= ratio <= 1:
        raise ConfigurationError(f"task_routing ratio is {ratio:g}, expected a share between 0 and 1")
    return TaskRouting(ratio=ratio)


STRATEGY = StrategyMaker(make=make, about="an offline score sends a quarter of the tasks to the cloud, whole")
