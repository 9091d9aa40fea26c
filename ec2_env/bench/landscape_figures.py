"""From what was played to figures and verdicts: leads, shares of best decisions, and what a tree recovers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.landscape import DomainLandscape, decision_values
from ec2_env.bench.landscape_episodes import DEFAULT, FIXED, GRID, HEAVY, NONE, RANDOM
from ec2_env.bench.landscape_rollouts import TIE, weighing
from ec2_env.reward import RewardWeights
from ec2_env.strategy import Decision

LEAD, SHARE, RECOVERED = 0.15, 0.03, 0.5
"""Targets: the oracle's lead over the best fixed strategy as a share of the range from random to oracle; the share of states in
which each decision is the best; the share of the lead that a tree recovers."""
MATTERS = 0.05
"""The choice matters where the best decision is worth this much more than the mean of the six."""


class Mean(msgspec.Struct, frozen=True):
    """A mean over episodes and half the width of its 95% interval (normal approximation)."""

    mean: float
    half: float

    @property
    def settled(self) -> bool:
        """Says whether the interval leaves out 0."""
        return abs(self.mean) > self.half


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Who stands where at given weights.

    Attributes:
        cost: Weight of cost.
        privacy: Weight of exposure.
        returns: Mean return of each fixed strategy and of random decisions.
        best: Fixed strategy of highest mean.
        margin: Its return less that of the next, on the same episodes.
        oracle: Return of the oracle decision: that of the best fixed strategy on all episodes, and the lead.
        lead: Return of the oracle decision less that of the best fixed strategy: the tree's lead on all episodes, and what the
            oracle decision returns more than the tree on those that it played. Both play the same episodes with mostly the same
            decisions, so this is known better than a difference on few episodes would be.
        lead_share: The lead as a share of the range from random to oracle; None if there is no such range.
        beyond: The lead less `LEAD` of that range: what the target asks to be at least 0.
        tree: Mean return of the tree.
        tree_lead: Its return less that of the best fixed strategy, on the same episodes.
        recovered: `tree_lead` as a share of `lead`; None where there is no lead.
    """

    cost: float
    privacy: float
    returns: dict[str, Mean]
    best: str
    margin: Mean
    oracle: float
    lead: Mean
    lead_share: float | None
    beyond: Mean
    tree: Mean
    tree_lead: Mean
    recovered: float | None


class DecisionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How one decision does at the default weights.

    Attributes:
        best: Share of valued states in which it is the best; where several are, each gets its part.
        lead: By how much it beats the next best under lucks that did not choose it, in states where the others chose it; None if
            they never did.
        oracle: Share of the oracle decision's decisions.
        tree: Share of the tree's.
    """

    best: float
    lead: Mean | None
    oracle: float
    tree: float


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a target is reached.

    Attributes:
        reached: By the means.
        settled: Whether the 95% interval leaves no other verdict. For shares of best decisions: whether each decision is better
            than the next best also under other lucks.
        text: The figure in words.
    """

    reached: bool
    settled: bool
    text: str


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a domain, or of all of them.

    Attributes:
        episodes: Episodes of strategies and trees.
        oracle_episodes: Episodes of the oracle decision at the default weights.
        standings: One for each weights of the grid.
        decisions: By name.
        shares: Shares of best decisions at each weights, in the order of the decisions.
        matters: Share of states in which the choice matters at the default weights, see `MATTERS`.
        verdicts: By target.
    """

    name: str
    episodes: int
    oracle_episodes: int
    states: int
    standings: list[Standing]
    decisions: dict[str, DecisionFigures]
    shares: list[list[float]]
    matters: float
    verdicts: dict[str, Verdict]

    @property
    def default(self) -> Standing:
        return self.standings[DEFAULT]


def mean(values: NDArray[np.float64]) -> Mean:
    """Returns the mean and half its 95% interval; 0 if there is a single value."""
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Mean(float(values.mean()), half)


def figures(part: DomainLandscape) -> Figures:
    """Returns the figures of a domain."""
    standings = [standing(part, number) for number in range(len(GRID))]
    decisions = decision_figures(part)
    shares = [best_shares(decision_values(part.outcomes, weights)).tolist() for weights in GRID]
    values = decision_values(part.outcomes, GRID[DEFAULT])
    return Figures(
        name=part.name,
        episodes=len(part.keys),
        oracle_episodes=len(part.places),
        states=len(part.outcomes),
        standings=standings,
        decisions=decisions,
        shares=shares,
        matters=float((values.max(axis=1) - values.mean(axis=1) >= MATTERS).mean()),
        verdicts=verdicts(standings, decisions),
    )


def standing(part: DomainLandscape, number: int) -> Standing:
    """Returns who stands where at one weights of the grid.

    Args:
        part: What was played.
        number: Place of the weights in the grid.
    """
    column = weighing([GRID[number]])[:, 0]
    returns = {spec: vectors @ column for spec, vectors in part.vectors.items()}
    ranked = sorted(FIXED, key=lambda spec: (-returns[spec].mean(), FIXED.index(spec)))
    best = returns[ranked[0]]
    ahead, places = (part.oracle, part.places) if number == DEFAULT else (part.oracle_grid[:, number], part.grid_places)
    rows = list(places)
    tree, random = part.trees[number] @ column, returns[RANDOM]
    over, more = mean(tree - best), mean(ahead @ column - tree[rows])
    lead = Mean(over.mean + more.mean, math.hypot(over.half, more.half))
    oracle = float(best.mean()) + lead.mean
    span = oracle - float(random.mean())
    above = mean((1 - LEAD) * tree - best + LEAD * random)
    return Standing(
        cost=GRID[number].cost,
        privacy=GRID[number].privacy,
        returns={spec: mean(values) for spec, values in returns.items()},
        best=ranked[0],
        margin=mean(best - returns[ranked[1]]),
        oracle=oracle,
        lead=lead,
        lead_share=lead.mean / span if span > TIE else None,
        beyond=Mean(lead.mean - LEAD * span, math.hypot(above.half, (1 - LEAD) * more.half)),
        tree=mean(tree),
        tree_lead=over,
        recovered=over.mean / lead.mean if lead.mean > TIE else None,
    )


def best_shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns how often each decision is the best, shape (6,); decisions that differ by less than `TIE` share a state."""
    tops = values >= values.max(axis=1, keepdims=True) - TIE
    shares: NDArray[np.float64] = (tops / tops.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def held_out_leads(outcomes: NDArray[np.float64], weights: RewardWeights) -> list[NDArray[np.float64]]:
    """Returns, for each decision, its leads over the next best one under lucks that chose neither of the two.

    A mean of few rollouts is the highest of six partly by luck. So each luck in turn is left out, the others choose the best and
    the next best decision with their continuations, and the one left out says by how much the best one is better.
    """
    values = outcomes @ weighing([weights])[:, 0]
    states, _, _, draws = values.shape
    leads: list[list[float]] = [[] for _ in Decision]
    for out in range(draws):
        others = np.delete(values, out, axis=3).mean(axis=3)
        after, tops = others.argmax(axis=2), others.max(axis=2)
        order = np.argsort(-tops, axis=1, kind="stable")
        for state in range(states):
            one, two = (int(decision) for decision in order[state, :2])
            if tops[state, one] - tops[state, two] >= TIE:
                fresh = values[state, :, :, out]
                leads[one].append(float(fresh[one, after[state, one]] - fresh[two, after[state, two]]))
    return [np.array(found) for found in leads]


def decision_figures(part: DomainLandscape) -> dict[str, DecisionFigures]:
    """Returns how each decision does at the default weights."""
    shares = best_shares(decision_values(part.outcomes, GRID[DEFAULT]))
    leads = held_out_leads(part.outcomes, GRID[DEFAULT])
    oracle = part.oracle_decisions / part.oracle_decisions.sum()
    tree = part.tree_decisions[DEFAULT] / part.tree_decisions[DEFAULT].sum()
    return {
        decision.name: DecisionFigures(
            best=float(shares[decision]),
            lead=mean(leads[decision]) if len(leads[decision]) else None,
            oracle=float(oracle[decision]),
            tree=float(tree[decision]),
        )
        for decision in Decision
    }


def verdicts(standings: Sequence[Standing], decisions: dict[str, DecisionFigures]) -> dict[str, Verdict]:
    """Returns what is said to each target."""
    here, free, dear = standings[DEFAULT], standings[NONE], standings[HEAVY]
    rare = {name: one.best for name, one in decisions.items() if one.best < SHARE}
    recovering = Mean(
        here.tree_lead.mean - RECOVERED * here.lead.mean, math.hypot(here.tree_lead.half, RECOVERED * here.lead.half)
    )
    share = "none" if here.lead_share is None else f"{here.lead_share:.0%}"
    recovered = "no lead" if here.recovered is None else f"{here.recovered:.0%}"
    return {
        "lead": Verdict(
            reached=here.beyond.mean >= 0,
            settled=here.beyond.settled,
            text=f"oracle leads {here.best} by {shown(here.lead)}, {share} of the range from random",
        ),
        "shares": Verdict(
            reached=not rare,
            settled=all(one.lead is not None and one.lead.mean > one.lead.half for one in decisions.values()),
            text="every decision is the best somewhere"
            if not rare
            else "rarely the best: " + ", ".join(f"{name} {value:.1%}" for name, value in rare.items()),
        ),
        "tree": Verdict(
            reached=here.recovered is not None and here.recovered >= RECOVERED,
            settled=recovering.settled if here.recovered is not None else False,
            text=f"the tree leads {here.best} by {shown(here.tree_lead)}, {recovered} of the oracle's lead",
        ),
        "free": _leader(free, "cloud_only", "without weight on cost and privacy"),
        "dear": _leader(dear, "edge_only", "with a heavy one"),
    }


def _leader(at: Standing, wanted: str, when: str) -> Verdict:
    """Says whether a strategy leads the fixed ones."""
    gap = f", {shown(at.margin)} before the next" if at.best == wanted else f" ({at.returns[at.best].mean:.3f}, {wanted} "
    rest = "" if at.best == wanted else f"{at.returns[wanted].mean:.3f})"
    return Verdict(reached=at.best == wanted, settled=at.margin.settled, text=f"{when} {at.best} leads{gap}{rest}")


def shown(value: Mean) -> str:
    """Returns a difference with its interval."""
    return f"{value.mean:+.3f} ± {value.half:.3f}"


def as_json(found: Sequence[Figures], settings: dict[str, Any], trees: Sequence[str]) -> bytes:
    """Returns everything as JSON."""
    whole = {"settings": settings, "trees": list(trees), "landscapes": list(found)}
    return msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=2) + b"\n"
