"""Task-routing: an offline score decides, before the work, whether the cloud does the whole task or none of it.

The score of a task is how much more the cloud alone is expected to complete than the edge alone. It comes from runs of the two on
the train split: by default through a trained estimator, `ec2_env.training.router`, or as it was measured. The share `ratio` of
tasks with the highest scores goes to the cloud; where that share ends is fixed on the train split. The test split is never looked
at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

from ec2_env.errors import ConfigurationError
from ec2_env.strategy import Decision, Measured, Strategy, StrategyMaker, View
from ec2_env.training.router import fitted_gaps, load_router
from ec2_env.training.scored_runs import Scores

Source = Literal["irt", "mf", "logistic", "measured"]
Means = Mapping[tuple[str, str], Measured]
RATIO = 0.25
"""The study's share of tasks for the cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRouting:
    """Routes whole tasks by their scores.

    Attributes:
        ratio: Share of (task, language) pairs that go to the cloud, 0 to 1.
        scores: The estimator that makes scores of what was measured; "measured" takes the differences as they are.
        routed: The pairs that do; empty until prepared.
    """

    ratio: float = RATIO
    scores: Source = "irt"
    routed: frozenset[tuple[str, str]] | None = None
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return _named("" if self.scores == "irt" else f"scores={self.scores}", self.ratio)

    def estimate(self, edge: Means, cloud: Means) -> Mapping[tuple[str, str], float]:
        """Returns the scores of tasks, from what the two models alone completed of them.

        No other model's runs are pooled with theirs: a row of a table must not depend on which other rows the table has.
        """
        if self.scores == "measured":
            return {pair: cloud[pair].completion - one.completion for pair, one in edge.items()}
        return fitted_gaps(Scores.measured({"edge": edge, "cloud": cloud}), "edge", "cloud", self.scores)

    def prepare(self, gaps: Mapping[tuple[str, str], float]) -> Strategy:
        """Fixes which tasks go to the cloud: those with the highest scores, ties by name."""
        ranked = sorted(gaps, key=lambda pair: (-gaps[pair], pair))
        return replace(self, routed=frozenset(ranked[: round(self.ratio * len(ranked))]))

    def decide(self, view: View) -> Decision:
        """Returns ACT in a routed task, EDGE in any other.

        Raises:
            ConfigurationError: if the router has not been prepared.
        """
        if self.routed is None:
            raise ConfigurationError(
                "task_routing needs its offline scores: call prepare(gaps) first, as `ec2-env bench` does, or name a router "
                "with router=FILE"
            )
        return Decision.ACT if (view.task, view.language) in self.routed else Decision.EDGE


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRouting:
    """Routes whole tasks by a router from a file, also those that it has never seen run.

    Attributes:
        path: The file, made by `ec2-env route`.
        ratio: Share of the train split's tasks that would go to the cloud, 0 to 1.
    """

    path: str
    ratio: float = RATIO
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return _named(f"router={Path(self.path).name}", self.ratio)

    def decide(self, view: View) -> Decision:
        """Returns ACT in a routed task, EDGE in any other.

        Raises:
            UnknownName: if the router was not fitted with this edge model.
        """
        return Decision.ACT if _routes(self.path, view.edge, (view.task, view.language), self.ratio) else Decision.EDGE


@lru_cache(maxsize=4096)
def _routes(path: str, edge: str, pair: tuple[str, str], ratio: float) -> bool:
    return load_router(path).routes(edge, pair, ratio)


def _named(source: str, ratio: float) -> str:
    words = ",".join(filter(None, (source, "" if ratio == RATIO else f"ratio={ratio:g}")))
    return f"task_routing:{words}" if words else "task_routing"


def make(text: str) -> Strategy:
    """Takes the options `ratio=SHARE` (0.25, the study's) and `scores=irt|mf|logistic|measured` or `router=FILE`."""
    given: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in ("ratio", "scores", "router") or name in given:
            raise ConfigurationError(
                f"task_routing: {part!r} is no option; expected ratio=SHARE, scores=NAME or router=FILE, each once"
            )
        given[name] = value
    ratio = _ratio(given.get("ratio", str(RATIO)))
    if "router" in given:
        if "scores" in given:
            raise ConfigurationError("task_routing takes scores=NAME or router=FILE, not both")
        load_router(given["router"])
        return FittedRouting(path=given["router"], ratio=ratio)
    wanted = given.get("scores", "irt")
    for source in get_args(Source):
        if source == wanted:
            return TaskRouting(ratio=ratio, scores=source)
    raise ConfigurationError(f"task_routing scores is {wanted!r}, expected one of {', '.join(get_args(Source))}")


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        raise ConfigurationError(f"option ratio is {text!r}, expected a number") from None
    if not 0 <= ratio <= 1:
        raise ConfigurationError(f"task_routing ratio is {ratio:g}, expected a share between 0 and 1")
    return ratio


STRATEGY = StrategyMaker(make=make, about="an offline score sends a quarter of the tasks to the cloud, whole")
