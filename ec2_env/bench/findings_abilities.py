"""Finding 4: which abilities of the edge are worth most in collaboration?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ec2_env.bench.findings_plan import STEP, THRESHOLDS, WEAK, Played, other_skills, raised, readier_edges
from ec2_env.bench.findings_rules import (
    CALLS,
    COMPLETION,
    Array,
    Exhibit,
    Finding,
    Hypothesis,
    Key,
    decided,
    returns,
    shown,
)

CLAIM = (
    "Cloud-invocation decision-making and instruction following are the edge abilities that matter most for effective "
    "collaboration."
)
STRATEGIES = ("step_routing", "adaptive_assistance")
"""Strategies whose decisions rest on what the edge shows: its entropy, and its wish for help."""
INVOCATION, INSTRUCTION = "invocation decisions", "instruction following"
HYPOTHESES = (
    Hypothesis(name="4.1", text="better invocation decisions help", statistic="gain in return from raising them"),
    Hypothesis(
        name="4.2", text="and more than the other skills do", statistic="that gain, less the mean gain of the other skills"
    ),
    Hypothesis(name="4.3", text="better instruction following helps", statistic="gain in return from raising it"),
    Hypothesis(
        name="4.4", text="and more than the other skills do", statistic="that gain, less the mean gain of the other skills"
    ),
    Hypothesis(
        name="4.5",
        text="the two matter most",
        statistic="mean of their gains, less the largest gain of another skill",
        peaked=True,
    ),
    Hypothesis(
        name="4.6",
        text="perfect invocation decisions would help",
        statistic="return of the oracle decision less the mean of the two strategies, on its tasks",
    ),
    Hypothesis(
        name="4.7",
        text="and more than any other skill does",
        statistic="that gain, less the largest gain of another skill on these tasks",
        peaked=True,
    ),
    Hypothesis(
        name="4.8",
        text="as 4.5, in completion",
        statistic="the same, completion in place of the return",
        peaked=True,
        counts=False,
    ),
    Hypothesis(
        name="4.9",
        text="as 4.5, of what collaboration adds",
        statistic="the same, the gain of the edge alone taken off each gain",
        peaked=True,
        counts=False,
    ),
    Hypothesis(
        name="4.10",
        text="as 4.1, at an equal number of calls",
        statistic="gain over the edge as it is, with threshold or readiness set so that it calls as often (interpolated)",
        counts=False,
    ),
    Hypothesis(
        name="4.11",
        text="as 4.6, over the best strategy",
        statistic="return of the oracle decision less the best of the two strategies and edge-only, on its tasks",
        peaked=True,
        counts=False,
    ),
)
Figure = Callable[[Array], Array]


def completion(figures: Array) -> Array:
    """Returns the mean completion, shape (1 + draws,)."""
    found: Array = figures[:, COMPLETION]
    return found


def gain(found: Mapping[Key, Array], what: str, strategies: Sequence[str] = STRATEGIES, figure: Figure = returns) -> Array:
    """Returns what raising one thing brings, mean over strategies, shape (1 + draws,)."""
    edges = raised()
    gains = [figure(found[name, edges[what]]) - figure(found[name, edges["nothing"]]) for name in strategies]
    mean: Array = np.mean(gains, axis=0)
    return mean


def beyond_alone(found: Mapping[Key, Array], what: str) -> Array:
    """Returns what raising one thing brings in collaboration beyond what it brings to the edge alone."""
    return gain(found, what) - gain(found, what, ("edge_only",))


def at_equal_calls(found: Mapping[Key, Array]) -> Array:
    """Returns what clearer signals bring over the edge as it is, had that been made to call as often, mean over strategies.

    Its return at that number of calls lies on the line between two of three settings of the strategy's threshold, or of the
    edge's readiness to ask; beyond them it is that of the nearest.
    """
    edges, readier = raised(), readier_edges()
    settings: Mapping[str, Sequence[Key]] = {
        "step_routing": [(f"step_routing:threshold={one:g}", readier[0]) for one in THRESHOLDS],
        "adaptive_assistance": [("adaptive_assistance", edge) for edge in readier],
    }
    gains = []
    for name, (more, less) in settings.items():
        line = [found[key] for key in (less, (name, edges["nothing"]), more)]
        clear = found[name, edges[INVOCATION]]
        bars = [
            np.interp(calls, x, y)
            for calls, x, y in zip(
                clear[:, CALLS],
                np.stack([one[:, CALLS] for one in line], axis=1),
                np.stack([returns(one) for one in line], axis=1),
                strict=True,
            )
        ]
        gains.append(returns(clear) - np.array(bars))
    mean: Array = np.mean(gains, axis=0)
    return mean


def oracle_lead(played: Played) -> Array:
    """Returns by how much the oracle decision's return exceeds the mean of the two strategies, on its tasks."""
    lead: Array = _oracle(played) - np.mean(_on_its_tasks(played, STRATEGIES), axis=0)
    return lead


def _oracle(played: Played) -> Array:
    return returns(played.few[f"oracle_decision:draws={played.plan.oracle_draws}", raised()["nothing"]])


def _on_its_tasks(played: Played, strategies: Sequence[str]) -> list[Array]:
    return [returns(played.few[name, raised()["nothing"]]) for name in strategies]


def largest(gains: Mapping[str, Array]) -> Array:
    """Returns the largest gain of a skill that the finding does not name, draw by draw."""
    found: Array = np.max([gains[name] for name in other_skills()], axis=0)
    return found


def marginal(played: Played) -> Finding:
    """Tests the finding with the 9B edge model."""
    found = played.parts["abilities"]
    names = [name for name in raised() if name != "nothing"]
    gains = {name: gain(found, name) for name in names}
    done = {name: gain(found, name, figure=completion) for name in names}
    added = {name: beyond_alone(found, name) for name in names}
    rest = np.mean([gains[name] for name in other_skills()], axis=0)
    oracle = oracle_lead(played)
    statistics = (
        gains[INVOCATION],
        gains[INVOCATION] - rest,
        gains[INSTRUCTION],
        gains[INSTRUCTION] - rest,
        _both(gains) - largest(gains),
        oracle,
        oracle - largest({name: gain(played.few, name) for name in other_skills()}),
        _both(done) - largest(done),
        _both(added) - largest(added),
        at_equal_calls(found),
        _oracle(played) - np.max(_on_its_tasks(played, (*STRATEGIES, "edge_only")), axis=0),
    )
    return Finding(
        number=4,
        claim=CLAIM,
        setup=(
            f"Edge model {WEAK}; gains are means over {' and '.join(STRATEGIES)} at the default weights. One thing at a time is "
            f"raised: a skill by {STEP:g} logits of ability; following advice by as much in its log odds; instruction following "
            "is that and the skill of the same name; for invocation decisions the ratio of doubt and noise in entropy and in the "
            f"wish for help is doubled. Other skills: {', '.join(other_skills())}. The oracle decision plays "
            f"{played.plan.oracle_tasks} tasks once (rollouts for each decision and continuation: {played.plan.oracle_draws}); "
            "it uses the simulator, and shows what deciding well is worth, as far as so few rollouts can tell."
        ),
        tested=[decided(one, values) for one, values in zip(HYPOTHESES, statistics, strict=True)],
        exhibits=[_gains(found, names, gains, done, added)],
    )


def _both(gains: Mapping[str, Array]) -> Array:
    mean: Array = (gains[INVOCATION] + gains[INSTRUCTION]) / 2
    return mean


def _gains(
    found: Mapping[Key, Array],
    names: Sequence[str],
    gains: Mapping[str, Array],
    done: Mapping[str, Array],
    added: Mapping[str, Array],
) -> Exhibit:
    rows = []
    for name in sorted(names, key=lambda one: -gains[one][0]):
        each = [shown(gain(found, name, (strategy,))) for strategy in STRATEGIES]
        calls = [f"{gain(found, name, (strategy,), _calls)[0]:+.2f}" for strategy in STRATEGIES]
        rows.append([name, shown(gains[name]), *each, shown(done[name]), shown(added[name]), " ".join(calls)])
    head = ("raised", "return", *STRATEGIES, "completion", "return beyond the edge alone", "cloud calls")
    return Exhibit("Gains of raising one thing, largest first; cloud calls an episode, by strategy", head, rows)


def _calls(figures: Array) -> Array:
    found: Array = figures[:, CALLS]
    return found
