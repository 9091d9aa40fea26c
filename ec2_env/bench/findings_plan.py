"""What is played to test the four published findings: how much, with which models, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np

from ec2_env.bench.findings_rules import Array, Key
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.statistics import DRAWS
from ec2_env.bench.suites import DEFAULT_SUITE, Suite, load_suite
from ec2_env.errors import ConfigurationError
from ec2_env.models.chances import logistic
from ec2_env.models.profile import Profile, load_profile

CLOUD = "sim:gpt-5.4"
WEAK, STRONG = "qwen3.5-9b", "qwen3.5-27b"
"""The study's edge models."""
EXTREMES = ("edge_only", "cloud_only")
COLLABORATIONS = ("sketch_guided", "task_routing", "step_routing", "adaptive_assistance")
"""The study's strategies of two models."""
CONTROLLED = ("adaptive_assistance", "on_demand_query")
"""Strategies in which the edge model decides when the cloud is asked."""
EXTERNAL = ("sketch_guided", "task_routing", "step_routing", "cloud_only")
"""Strategies in which a rule outside of it does, and the cloud alone."""
STEP = 0.5
"""By so many logits of ability one thing at a time is raised; times the discrimination, the log odds of doing it right."""
HELP_RANGE = (0.3, 1.5)
"""Where help rates may reasonably lie, see docs/simulator.md."""
SIGNALS, NOISES = ("entropy_doubt", "entropy_fail"), ("entropy_sd", "entropy_task_sd", "entropy_opening", "help_spread")
"""What an edge shows of its doubt, and what blurs that."""
THRESHOLDS = (1.3, 2.1)
"""Thresholds of step-routing beside the default of 1.7: it calls more often, and less."""
READINESS = (1.6, 0.6)
"""Factors of the readiness to ask: adaptive assistance calls more often, and less."""
ORACLE_TASKS = 24
PARTS: Mapping[int, tuple[str, ...]] = {
    1: ("balance",),
    2: ("sweep",),
    3: ("sweep", "help"),
    4: ("abilities", "calling", "oracle"),
}
"""Which runs a finding needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsPlan:
    """How much is played.

    Attributes:
        findings: Numbers of the findings to test.
        tasks: How many tasks of the suite, evenly spaced in the order of their names.
        trials: Times that each is played.
        oracle_tasks: How many of these the oracle decision plays, once each.
        oracle_draws: Its rollouts for each decision and continuation.
        draws: Size of the bootstrap.
    """

    findings: tuple[int, ...] = (1, 2, 3, 4)
    tasks: int = 128
    trials: int = 2
    oracle_tasks: int = ORACLE_TASKS
    oracle_draws: int = 2
    draws: int = DRAWS

    def __post_init__(self) -> None:
        whole = len(load_suite(DEFAULT_SUITE).tasks)
        if not 2 <= self.oracle_tasks <= self.tasks <= whole:
            raise ConfigurationError(
                f"{self.tasks} tasks, {self.oracle_tasks} of them with the oracle decision: expected 2 <= oracle tasks <= tasks "
                f"<= {whole}"
            )
        for name in ("trials", "oracle_draws"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} is {getattr(self, name)}, expected a whole number above 0")
        if unknown := sorted(set(self.findings) - set(PARTS)):
            raise ConfigurationError(f"there is no finding {unknown[0]}; expected numbers from 1 to {len(PARTS)}")

    def task_names(self) -> tuple[str, ...]:
        """Returns the tasks, sorted."""
        return evenly(load_suite(DEFAULT_SUITE).tasks, self.tasks)

    def oracle_names(self) -> tuple[str, ...]:
        """Returns the tasks that the oracle decision plays, sorted."""
        return evenly(self.task_names(), self.oracle_tasks)


def evenly(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Returns `count` names, evenly spaced in their sorted order."""
    ranked = sorted(names)
    return tuple(ranked[number * len(ranked) // count] for number in range(count))


# -- what is swept and what is raised


def abilities() -> tuple[float, ...]:
    """Returns the edge abilities of the sweep, in logits: five of equal distance, the second and fourth those of 9B and 27B."""
    weak, strong = load_profile(WEAK).ability, load_profile(STRONG).ability
    half = (strong - weak) / 2
    return tuple(round(weak + number * half, 3) for number in range(-1, 4))


def edge_at(ability: float) -> str:
    """Returns the edge model of an ability: nothing else about it changes, its readiness to ask for help neither."""
    return f"sim:edge@ability={ability:g}"


def asking_edge_at(ability: float) -> str:
    """Returns the same with the readiness to ask that lies on the line through the profiles of 9B and 27B."""
    weak, strong = load_profile(WEAK), load_profile(STRONG)
    along = (ability - weak.ability) / (strong.ability - weak.ability)
    rate = min(max(weak.help_rate + along * (strong.help_rate - weak.help_rate), HELP_RANGE[0]), HELP_RANGE[1])
    return f"{edge_at(ability)},help_rate={rate:.3g}"


@cache
def raised() -> dict[str, str]:
    """Returns what is raised one at a time in the 9B edge, by name: specifications; "nothing" is the edge as it is.

    Comparable by this: whatever is done right with some chance is done right with log odds higher by discrimination * `STEP`; in
    what an edge shows of its doubt, the ratio of signal and noise is doubled, half of it by more signal, half by less noise, so
    that it asks about as often.
    """
    own = load_profile(WEAK)
    base = f"sim:{WEAK}"
    found = {"nothing": base}
    found |= {name: f"{base}@skills.{name}={value + STEP:g}" for name, value in own.skills.items()}
    follow = ",".join(f"{name}={raised_chance(getattr(own, name), own):.3g}" for name in ("follow", "follow_asked"))
    found["following advice"] = f"{base}@{follow}"
    found["instruction following"] = f"{base}@{follow},skills.instruction={own.skills['instruction'] + STEP:g}"
    clearer = {name: getattr(own, name) * 2**0.5 for name in SIGNALS} | {name: getattr(own, name) / 2**0.5 for name in NOISES}
    found["invocation decisions"] = f"{base}@{','.join(f'{name}={value:.3g}' for name, value in clearer.items())}"
    found["all skills"] = f"{base}@ability={own.ability + STEP:g}"
    return found


def readier_edges() -> tuple[str, ...]:
    """Returns the 9B edge with each readiness to ask of `READINESS`. Step-routing does not look at it."""
    return tuple(f"sim:{WEAK}@help_rate={load_profile(WEAK).help_rate * factor:.3g}" for factor in READINESS)


def raised_chance(chance: float, profile: Profile) -> float:
    """Returns a chance whose log odds are higher by discrimination * `STEP`."""
    return logistic(float(np.log(chance / (1 - chance))) + profile.discrimination * STEP)


def other_skills() -> tuple[str, ...]:
    """Returns the skills that the finding does not name."""
    return tuple(name for name in load_profile(WEAK).skills if name != "instruction")


# -- runs


def configs(plan: FindingsPlan) -> dict[str, BenchConfig]:
    """Returns the runs that the plan's findings need, by name."""
    suite = msgspec.structs.replace(load_suite(DEFAULT_SUITE), tasks=plan.task_names(), trials=plan.trials)
    sweep = tuple(map(edge_at, abilities()))
    asking = tuple(map(asking_edge_at, abilities()))
    few = msgspec.structs.replace(suite, tasks=plan.oracle_names(), trials=1)
    found = {
        "balance": _config(suite, (*EXTREMES, *COLLABORATIONS), (f"sim:{WEAK}", f"sim:{STRONG}")),
        "sweep": _config(suite, (*EXTREMES, *COLLABORATIONS, "on_demand_query"), sweep),
        "help": _config(suite, CONTROLLED, asking),
        "abilities": _config(suite, ("edge_only", "step_routing", "adaptive_assistance"), tuple(raised().values())),
        "calling": _config(
            suite, (*(f"step_routing:threshold={one:g}" for one in THRESHOLDS), "adaptive_assistance"), readier_edges()
        ),
        "oracle": _config(few, (f"oracle_decision:draws={plan.oracle_draws}",), (f"sim:{WEAK}",)),
    }
    wanted = {part for number in plan.findings for part in PARTS[number]}
    return {name: config for name, config in found.items() if name in wanted}


def _config(suite: Suite, strategies: tuple[str, ...], edges: tuple[str, ...]) -> BenchConfig:
    return BenchConfig(name=DEFAULT_SUITE, suite=suite, strategies=strategies, edges=edges, cloud=CLOUD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Mean figures of what was played, by part; see `ec2_env.bench.findings_rules.means`.

    Attributes:
        parts: Over the plan's tasks. Part "help" holds those of the sweep, too, and part "abilities" those of "calling".
        few: Over the oracle decision's tasks and the first trial: its own, and those of part "abilities".
    """

    plan: FindingsPlan
    parts: Mapping[str, Mapping[Key, Array]]
    few: Mapping[Key, Array]
