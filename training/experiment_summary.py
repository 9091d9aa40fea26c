"""What several training seeds say together: means, the spread between seeds, intervals, differences and hypervolumes.

Two kinds of chance stand apart. Seeds differ because training is luck: the standard deviation between seeds and Student's
interval over seeds say how much, on the test episodes that all of them play. Episodes differ, too: the other interval is over
episodes, of the mean over seeds, and says how far other episodes of the same tasks might lie.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any

import numpy as np

from ec2_env.bench.suites import STRATEGIES
from ec2_env.training.evaluation import Score, half_width
from ec2_env.training.feature_evaluation import Front, front
from ec2_env.training.lagrangian import Budget

STEP_ROUTING = "step_routing"
SWEPT = re.compile(r"cost=[\d.e+-]+,privacy=[\d.e+-]+")
"""Names of scores of the policy under one preference."""
T_TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t by degrees of freedom, two-sided, 95%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverSeeds:
    """One figure of several seeds.

    Attributes:
        values: Of the seeds, in their order.
        over_episodes: Half the width of the 95% interval over episodes, of the mean over seeds; None where it has none.
    """

    values: tuple[float, ...]
    over_episodes: float | None = None

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation between seeds."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def over_seeds(self) -> float | None:
        """Half the width of Student's 95% interval of the mean over seeds."""
        return None if self.spread is None else student(len(self.values) - 1) * self.spread / math.sqrt(len(self.values))

    def told(self) -> dict[str, Any]:
        """Returns all of it as plain data."""
        return {
            "mean": self.mean,
            "sd_between_seeds": self.spread,
            "half_width_over_seeds": self.over_seeds,
            "half_width_over_episodes": self.over_episodes,
            "by_seed": list(self.values),
        }


def student(freedom: int) -> float:
    """Returns the two-sided 95% point of Student's t; beyond the table by Cornish and Fisher's expansion."""
    if freedom in T_TABLE:
        return T_TABLE[freedom]
    z = NormalDist().inv_cdf(0.975)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def summary(runs: Mapping[int, Sequence[Score]], budget: Budget | None = None) -> dict[str, Any]:
    """Returns the figures of several seeds, as plain data.

    Args:
        runs: What each seed's training returned; the last score is that of its policy.
        budget: What it was trained to keep, if so.
    """
    mine = [scores[-1] for scores in runs.values()]
    fixed = [
        {score.name: score for score in scores if score.name in STRATEGIES and score.name != "random"} for scores in runs.values()
    ]
    found: dict[str, Any] = {"policy": mine[0].name, "seeds": list(runs), "episodes": len(mine[0].returns)}
    found["return"] = _returns([score.returns for score in mine]).told()
    for term in ("task", "cost", "exposure"):
        values = tuple(fmean(getattr(part, term) for part in score.parts) for score in mine)
        found[term] = OverSeeds(values=values).told()
    over = {}
    for spec in dict.fromkeys([*filter(None, [best_fixed(fixed)]), STEP_ROUTING]):
        if all(spec in one for one in fixed):
            gaps = [_minus(score.returns, one[spec].returns) for score, one in zip(mine, fixed, strict=True)]
            over[spec] = {"return": fmean(fixed[0][spec].returns), **_returns(gaps).told()}
    found["best_fixed"], found["over"] = best_fixed(fixed), over
    if budget is not None:
        kept = OverSeeds(values=tuple(budget.kept(score.parts, seed=seed) for seed, score in zip(runs, mine, strict=True)))
        found["batches_within_budget"] = kept.told()
    fronts = [_front(scores, list(one.values())) for scores, one in zip(runs.values(), fixed, strict=True)]
    if all(fronts):
        gains = OverSeeds(values=tuple(one.gain for one in fronts if one))
        found["hypervolume"] = {
            "learned": fmean(one.learned for one in fronts if one),
            "fixed": fronts[0].fixed if fronts[0] else None,
            "gain": {**gains.told(), "intervals_over_episodes": [[one.low, one.high] for one in fronts if one]},
        }
    return found


def best_fixed(fixed: Sequence[Mapping[str, Score]]) -> str | None:
    """Returns the fixed strategy of the highest mean return on the test episodes; None if none was played."""
    common = set.intersection(*(set(one) for one in fixed))
    return max(sorted(common), key=lambda spec: fmean(one[spec].mean for one in fixed), default=None)


def _front(scores: Sequence[Score], fixed: Sequence[Score]) -> Front | None:
    swept = [score for score in scores if SWEPT.fullmatch(score.name)]
    return front(swept, fixed) if swept and fixed else None


def _minus(mine: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    return tuple(one - other for one, other in zip(mine, theirs, strict=True))


def _returns(by_seed: Sequence[Sequence[float]]) -> OverSeeds:
    """Returns what returns (or their differences) of the same episodes say, shape (seeds, episodes)."""
    table = np.array(by_seed)
    return OverSeeds(values=tuple(table.mean(axis=1).tolist()), over_episodes=half_width(table.mean(axis=0).tolist()))


def lines(found: Mapping[str, Any]) -> list[str]:
    """Says the figures in words, a line each."""
    told = [f"return of {found['policy']}: {_words(found['return'])}"]
    for spec, one in found["over"].items():
        best = ", the best fixed strategy on these episodes" if spec == found["best_fixed"] else ""
        told.append(f"minus {spec} ({one['return']:.3f}{best}): {_words(one, sign='+')}")
    if "batches_within_budget" in found:
        told.append(f"share of the test batches within the budget: {_words(found['batches_within_budget'])}")
    if "hypervolume" in found:
        told.append(f"hypervolume over that of the fixed strategies: {_words(found['hypervolume']['gain'], sign='+')}")
    return told


def _words(one: Mapping[str, Any], sign: str = "") -> str:
    text = f"{one['mean']:{sign}.3f}"
    if one["half_width_over_episodes"] is not None:
        text += f" ± {one['half_width_over_episodes']:.3f} over episodes"
    if one["half_width_over_seeds"] is not None:
        seeds = len(one["by_seed"])
        text += f", ± {one['half_width_over_seeds']:.3f} over {seeds} seeds (standard deviation {one['sd_between_seeds']:.3f})"
    return text


def markdown(found: Mapping[str, Any], command: str) -> str:
    """Returns the figures as a page."""
    rows = [("return", found["return"]), *((term, found[term]) for term in ("task", "cost", "exposure"))]
    rows += [(f"return minus {spec}", one) for spec, one in found["over"].items()]
    if "batches_within_budget" in found:
        rows.append(("share of test batches within the budget", found["batches_within_budget"]))
    if "hypervolume" in found:
        rows.append(("hypervolume, gain over the fixed strategies", found["hypervolume"]["gain"]))
    table = [
        "| figure | mean | 95% over episodes | standard deviation between seeds | 95% over seeds | by seed |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {one['mean']:.3f} | {_half(one['half_width_over_episodes'])} | {_plain(one['sd_between_seeds'])} | "
            f"{_half(one['half_width_over_seeds'])} | {' '.join(f'{value:.3f}' for value in one['by_seed'])} |"
            for name, one in rows
        ),
    ]
    return "\n".join(
        [
            f"# {found['policy']}, seeds {', '.join(map(str, found['seeds']))}",
            "",
            f"Made by `{command}`; {found['episodes']} test episodes, the same for all seeds. Models are simulated unless the",
            "settings say otherwise. The best fixed strategy is the best on these episodes, so luck is on its side.",
            "",
            *table,
            "",
        ]
    )


def _half(value: float | None) -> str:
    return "" if value is None else f"± {value:.3f}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
