"""Findings 2 and 3: what becomes of the strategies, and of the choice among them, as the edge gets stronger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ec2_env.bench.findings_plan import (
    COLLABORATIONS,
    CONTROLLED,
    EXTERNAL,
    STRONG,
    WEAK,
    Played,
    abilities,
    asking_edge_at,
    edge_at,
)
from ec2_env.bench.findings_rules import (
    COMPLETION,
    PRIVACY,
    ROUNDING,
    Array,
    Exhibit,
    Finding,
    Hypothesis,
    Key,
    change,
    decided,
    lead,
    returns,
    shown,
    spread,
)

CONVERGENCE = (
    "As the edge model gets stronger, collaboration approaches cloud-only performance and the strategies' performance "
    "differences shrink, while privacy exposure stays strongly strategy-dependent."
)
PREFERENCE = (
    "A stronger edge shifts the preferred collaboration from externally controlled cloud participation and direct cloud "
    "execution toward edge-controlled collaboration."
)
STRONGLY = 0.2
"""Privacy depends strongly on the strategy if strategies differ by more than this; in the study, by 0.42 and 0.41."""
CONVERGING = (
    Hypothesis(
        name="2.1",
        text="the gap to cloud-only shrinks",
        statistic="cloud-only's completion less the collaborations' mean: fall over the sweep",
    ),
    Hypothesis(
        name="2.2",
        text="collaboration approaches cloud-only",
        statistic="half of that gap at the weakest edge, less the gap at the strongest",
    ),
    Hypothesis(
        name="2.3",
        text="the strategies' differences in completion shrink (range)",
        statistic="highest less lowest completion of the collaborations: fall over the sweep",
        peaked=True,
    ),
    Hypothesis(
        name="2.4",
        text="the same by standard deviation",
        statistic="standard deviation of the collaborations' completions: fall over the sweep",
        peaked=True,
    ),
    Hypothesis(
        name="2.5",
        text="privacy depends strongly on the strategy at the strongest edge",
        statistic="highest less lowest privacy of the collaborations there",
        above=STRONGLY,
        peaked=True,
    ),
    Hypothesis(
        name="2.6",
        text="and not much less than at the weakest edge",
        statistic="that range of privacy, less half of it at the weakest edge",
        peaked=True,
    ),
    Hypothesis(
        name="2.7",
        text="differences shrink also with edge-only and cloud-only among the strategies",
        statistic="highest less lowest completion of all six: fall over the sweep",
        peaked=True,
        counts=False,
    ),
)
SHIFTING = (
    Hypothesis(
        name="3.1",
        text="at the default weights the advantage of edge-controlled strategies grows",
        statistic="return of the best edge-controlled less the best external strategy: rise over the sweep",
        peaked=True,
    ),
    Hypothesis(
        name="3.2",
        text="they are preferred at more weights",
        statistic="share of the weights at which an edge-controlled strategy has the highest return: rise over the sweep",
    ),
    Hypothesis(
        name="3.3",
        text="at the default weights the strongest edge prefers one",
        statistic="return of the best edge-controlled less the best external strategy, at the strongest edge",
        peaked=True,
    ),
    Hypothesis(
        name="3.4",
        text="as 3.1, if stronger edges also ask less",
        statistic="that of 3.1, with the readiness to ask on the line through the two profiles",
        peaked=True,
        counts=False,
    ),
    Hypothesis(name="3.5", text="as 3.2, if stronger edges also ask less", statistic="that of 3.2, likewise", counts=False),
    Hypothesis(
        name="3.6",
        text="as 3.1, without plans among the external strategies",
        statistic="that of 3.1, sketch_guided left out",
        peaked=True,
        counts=False,
    ),
    Hypothesis(
        name="3.7",
        text="as 3.1, adaptive assistance alone",
        statistic="that of 3.1, on_demand_query, which the study lacks, left out",
        peaked=True,
        counts=False,
    ),
)
Naming = Callable[[float], str]


def column(ability: float, figure: int, found: Mapping[Key, Array], names: Sequence[str]) -> list[Array]:
    """Returns a figure of strategies at one ability, each of shape (1 + draws,)."""
    return [found[key_at(name, ability)][:, figure] for name in names]


def key_at(strategy: str, ability: float, named: Naming = edge_at) -> Key:
    """Returns the key of a strategy at one ability."""
    return (strategy, None if strategy == "cloud_only" else named(ability))


# -- finding 2


def gap(found: Mapping[Key, Array], ability: float) -> Array:
    """Returns by how much cloud-only completes more than the collaborations on average."""
    ours = np.mean(column(ability, COMPLETION, found, COLLABORATIONS), axis=0)
    difference: Array = found["cloud_only", None][:, COMPLETION] - ours
    return difference


def convergence(played: Played) -> Finding:
    """Tests finding 2."""
    found, at = played.parts["sweep"], abilities()
    gaps = [gap(found, ability) for ability in at]
    completions = [column(ability, COMPLETION, found, COLLABORATIONS) for ability in at]
    private = [spread(column(ability, PRIVACY, found, COLLABORATIONS)) for ability in at]
    six = [column(ability, COMPLETION, found, ("edge_only", "cloud_only", *COLLABORATIONS)) for ability in at]
    statistics = (
        -change(at, gaps),
        gaps[0] / 2 - gaps[-1],
        -change(at, [spread(values) for values in completions]),
        -change(at, [np.std(values, axis=0) for values in completions]),
        private[-1],
        private[-1] - private[0] / 2,
        -change(at, [spread(values) for values in six]),
    )
    return Finding(
        number=2,
        claim=CONVERGENCE,
        setup=(
            f"sim:edge at abilities {', '.join(f'{ability:g}' for ability in at)} logits (the second and fourth are those of "
            f"{WEAK} and {STRONG}); nothing else about it changes. Collaborations: {', '.join(COLLABORATIONS)}. A fall or rise "
            "is that of the line of least squares from the weakest to the strongest edge."
        ),
        tested=[decided(one, values) for one, values in zip(CONVERGING, statistics, strict=True)],
        exhibits=[_convergence_table(found, at)],
    )


def _convergence_table(found: Mapping[Key, Array], at: Sequence[float]) -> Exhibit:
    names = ("edge_only", *COLLABORATIONS, "cloud_only")
    rows = []
    for ability in at:
        done, kept = column(ability, COMPLETION, found, names), column(ability, PRIVACY, found, names)
        pairs = [f"{100 * a[0]:.1f} / {100 * b[0]:.0f}" for a, b in zip(done, kept, strict=True)]
        ranges = [shown(100 * spread(values[1:-1]), 1) for values in (done, kept)]
        rows.append([f"{ability:g}", *pairs, *ranges])
    head = ("ability", *names, "range of completion", "range of privacy")
    return Exhibit("Completion / privacy in percent, by ability of the edge; ranges are over the collaborations", head, rows)


# -- finding 3


def advantage(
    found: Mapping[Key, Array],
    ability: float,
    named: Naming = edge_at,
    ours: Sequence[str] = CONTROLLED,
    others: Sequence[str] = EXTERNAL,
) -> Array:
    """Returns by how much the best edge-controlled strategy leads the best external one at the default weights."""
    best = [
        np.max([returns(found[key_at(name, ability, naming)]) for name in names], axis=0)
        for names, naming in ((ours, named), (others, edge_at))
    ]
    difference: Array = best[0] - best[1]
    return difference


def preferred(found: Mapping[Key, Array], ability: float, named: Naming = edge_at) -> Array:
    """Returns at which share of the weights an edge-controlled strategy leads the external ones, shape (1 + draws,)."""
    ours = [key_at(name, ability, named) for name in CONTROLLED]
    others = [key_at(name, ability) for name in EXTERNAL]
    share: Array = (lead(found, ours, others) > ROUNDING).mean(axis=(1, 2))
    return share


def preference(played: Played) -> Finding:
    """Tests finding 3."""
    found, at = played.parts["help"], abilities()
    plain = [advantage(found, ability) for ability in at]
    without_plans = [advantage(found, ability, others=[name for name in EXTERNAL if name != "sketch_guided"]) for ability in at]
    statistics = (
        change(at, plain),
        change(at, [preferred(found, ability) for ability in at]),
        plain[-1],
        change(at, [advantage(found, ability, asking_edge_at) for ability in at]),
        change(at, [preferred(found, ability, asking_edge_at) for ability in at]),
        change(at, without_plans),
        change(at, [advantage(found, ability, ours=("adaptive_assistance",)) for ability in at]),
    )
    rates = ", ".join(asking_edge_at(ability).rpartition("=")[2] for ability in at)
    return Finding(
        number=3,
        claim=PREFERENCE,
        setup=(
            f"The sweep of finding 2. Edge-controlled: {', '.join(CONTROLLED)}. External: {', '.join(EXTERNAL)}. Edge-only is "
            "neither. The readiness to ask (help_rate) is the same at all abilities, so that nothing is put in by hand; a "
            "stronger edge asks less only as it is in doubt less. In 3.4 and 3.5 it also falls, as the two profiles have it: "
            f"{rates}."
        ),
        tested=[decided(one, values) for one, values in zip(SHIFTING, statistics, strict=True)],
        exhibits=[_preference_table(found, at)],
    )


def _preference_table(found: Mapping[Key, Array], at: Sequence[float]) -> Exhibit:
    names = ("edge_only", *EXTERNAL, *CONTROLLED)
    rows = []
    for ability in at:
        value = {name: float(returns(found[key_at(name, ability)])[0]) for name in names}
        best = max((name for name in names if name != "edge_only"), key=lambda name: value[name])
        numbers = [f"{value[name]:.3f}" for name in names]
        rows.append(
            [
                f"{ability:g}",
                *numbers,
                best,
                shown(advantage(found, ability)),
                f"{preferred(found, ability)[0]:.0%}",
                f"{preferred(found, ability, asking_edge_at)[0]:.0%}",
            ]
        )
    head = ("ability", *names, "preferred", "edge-controlled less external", "share of weights", "if it asks less")
    return Exhibit("Return at the default weights, by ability of the edge; preferred among all but edge-only", head, rows)
