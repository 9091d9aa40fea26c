"""Finding 1: does collaboration give a better balance than either side alone, and than tossing a coin between them?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ec2_env.bench.findings_plan import COLLABORATIONS, STRONG, WEAK, Played
from ec2_env.bench.findings_rules import (
    AXIS,
    COMPLETION,
    COST,
    EXPOSURE,
    PRIVACY,
    ROUNDING,
    Array,
    Exhibit,
    Finding,
    Hypothesis,
    Key,
    Tested,
    decided,
    lead,
    returns,
    shown,
)
from ec2_env.bench.pareto import hypervolume, pareto_front, segment_hypervolume

CLAIM = (
    "Collaboration gives a better balance of task performance, resource usage and privacy exposure than edge-only and "
    "cloud-only execution."
)
LEAST_VOLUME = 0.01
"""Further points never take volume away; so the gain must be more than a hundredth of the cube."""


def hypotheses(edge: str, first: int) -> tuple[Hypothesis, ...]:
    """Returns what is claimed with one edge model; numbered from `first`."""
    claims = (
        (
            "collaborations add volume to the two extremes",
            "hypervolume with them less that of the extremes",
            LEAST_VOLUME,
            True,
        ),
        (
            "they reach more than random mixtures of the extremes do",
            "hypervolume of strategies and extremes, less that of all mixtures of the extremes",
            0.0,
            True,
        ),
        (
            "some collaboration beats a mixture on all three axes",
            "completion less that of the mixture that costs and exposes at least as much; the best strategy",
            0.0,
            True,
        ),
        (
            "over all weights a collaboration leads",
            "its return less that of the better extreme, mean over the weights",
            0.0,
            True,
        ),
        ("a collaboration leads at most weights", "share of the weights at which it leads the better extreme", 0.5, False),
    )
    return tuple(
        Hypothesis(name=f"1.{first + number}", text=f"{edge}: {text}", statistic=statistic, above=above, peaked=peaked)
        for number, (text, statistic, above, peaked) in enumerate(claims)
    )


def balance(played: Played) -> Finding:
    """Tests the finding with both edge models of the study."""
    results: list[Tested] = []
    exhibits = []
    for number, edge in enumerate((WEAK, STRONG)):
        statistics = measured(played, f"sim:{edge}")
        results += map(decided, hypotheses(edge, 5 * number + 1), statistics)
        exhibits.append(exhibit(played, edge))
    return Finding(
        number=1,
        claim=CLAIM,
        setup=(
            f"Edge models {WEAK} and {STRONG}, cloud gpt-5.4. Axes of the volume: completion, 1 - cost (1: as cloud-only, cut at "
            "0) and privacy, each 0 to 1. A mixture does an episode cloud-only with some chance, else edge-only. Weights: "
            f"completion 1, cost and exposure each {AXIS[0]:g} to {AXIS[-1]:g} in {len(AXIS)} steps; a mixture's return never "
            "exceeds that of the better extreme."
        ),
        tested=results,
        exhibits=exhibits,
    )


def keys(edge: str) -> tuple[tuple[Key, Key], tuple[Key, ...]]:
    """Returns the extremes and the collaborations of an edge model."""
    return (("edge_only", edge), ("cloud_only", None)), tuple((name, edge) for name in COLLABORATIONS)


def measured(played: Played, edge: str) -> tuple[Array, ...]:
    """Returns the statistics of the hypotheses, each of shape (1 + draws,)."""
    found = played.parts["balance"]
    extremes, ours = keys(edge)
    alone, cloud = (axes(found[key]) for key in extremes)
    points = [axes(found[key]) for key in ours]
    all_of_them = volumes([alone, cloud, *points])
    mixed = np.array([segment_hypervolume(one, other) for one, other in zip(alone.tolist(), cloud.tolist(), strict=True)])
    beyond = np.max([over_mixture(found[key], found[extremes[0]], found[extremes[1]]) for key in ours], axis=0)
    leads = lead(found, ours, extremes)
    return (
        all_of_them - volumes([alone, cloud]),
        all_of_them - mixed,
        beyond,
        leads.mean(axis=(1, 2)),
        (leads > ROUNDING).mean(axis=(1, 2)),
    )


def axes(figures: Array) -> Array:
    """Returns completion, 1 - cost and privacy, cut to 0 to 1, shape (1 + draws, 3)."""
    found: Array = np.stack([figures[:, COMPLETION], 1 - figures[:, COST], figures[:, PRIVACY]], axis=1)
    return found.clip(0, 1)


def volumes(points: Sequence[Array]) -> Array:
    """Returns the hypervolume of points over the origin, draw by draw."""
    stacked = np.stack(points, axis=1).tolist()
    return np.array([hypervolume([row[n] for n in pareto_front(row)]) for row in stacked])


def over_mixture(figures: Array, alone: Array, cloud: Array, axes_of_loss: Sequence[int] = (COST, PRIVACY)) -> Array:
    """Returns by how much a strategy completes more than the mixture of the extremes that loses at least as much on some axes.

    A strategy that loses more than cloud-only is held against the line beyond it.

    Args:
        figures: Of the strategy.
        alone: Of edge-only.
        cloud: Of cloud-only.
        axes_of_loss: Places of the figures on which the mixture must not be better.
    """
    shares = []
    for axis in axes_of_loss:
        span = cloud[:, axis] - alone[:, axis]
        safe = np.where(np.abs(span) > 1e-9, span, 1.0)
        shares.append(np.where(np.abs(span) > 1e-9, (figures[:, axis] - alone[:, axis]) / safe, 0.0))
    share = np.maximum(np.max(shares, axis=0), 0.0)
    bar = alone[:, COMPLETION] + share * (cloud[:, COMPLETION] - alone[:, COMPLETION])
    found: Array = figures[:, COMPLETION] - bar
    return found


def exhibit(played: Played, edge: str) -> Exhibit:
    """Returns the strategies with one edge model, and how they stand to mixtures."""
    found = played.parts["balance"]
    extremes, ours = keys(f"sim:{edge}")
    everyone = (*extremes, *ours)
    front = pareto_front([axes(found[key])[0].tolist() for key in everyone])
    rows = []
    for number, key in enumerate(everyone):
        figures = found[key]
        mean = figures[0]
        against = (
            [shown(over_mixture(figures, found[extremes[0]], found[extremes[1]], [axis])) for axis in (COST, PRIVACY)]
            if key in ours
            else ["-", "-"]
        )
        numbers = [f"{mean[axis]:.3f}" for axis in (COMPLETION, COST, PRIVACY, EXPOSURE)]
        rows.append([key[0], *numbers, f"{returns(figures)[0]:.3f}", "yes" if number in front else "no", *against])
    head = (
        "strategy",
        "completion",
        "cost",
        "privacy",
        "exposure",
        "return",
        "on front",
        "completion over the mixture of equal cost",
        "of equal privacy",
    )
    return Exhibit(f"Edge {edge}; the front is that of the six", head, rows)
