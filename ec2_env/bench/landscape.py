"""Measures what there is to learn about the decision: the returns of fixed strategies, of looking ahead, and of a small tree.

Episodes of the test split are played once with every fixed strategy and with random decisions; their terms are weighed with every
weights of a grid. On some of them the oracle decision looks ahead, for all weights together. Values of decisions are measured in
states of the train split; from these come the shares of best decisions and the trees.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.landscape_episodes import (
    DEFAULT,
    FIXED,
    GRID,
    PER_EPISODE,
    RANDOM,
    counted,
    episode_keys,
    look_ahead,
    play_all,
    play_trees,
    scored_keys,
    valued_states,
)
from ec2_env.bench.landscape_rollouts import Race, weighing
from ec2_env.bench.landscape_tree import Node, grow, simple_trees
from ec2_env.bench.records import frozen, start_worker
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.loading import load_model
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey
from ec2_env.task import task_domains

T = TypeVar("T")
R = TypeVar("R")
LEAST = 10
"""States without which a leaf says nothing: values are noisy."""
TRYING = 500
"""Added to the seed for the episodes on which trees are tried: others than those with valued states."""
Mapped: TypeAlias = Callable[[Callable[..., Any], Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LandscapePlan:
    """How much is played in each domain.

    Attributes:
        domains: Names of task folders.
        edge: Specification of the edge model.
        cloud: The same for the cloud model.
        episodes: Episodes of the test split for strategies and trees.
        oracle_episodes: How many of them the oracle decision plays at the default weights.
        grid_episodes: How many of these it plays at all weights.
        train_episodes: Episodes of the train split on which small trees are tried.
        states: States of the train split in which all decisions are valued.
        draws: Lucks under which they are valued, at least 2.
        race: How the oracle decision looks ahead.
        depth: Of the tree.
        leaf: Fewest states in a leaf, as a share of all; never fewer than `LEAST`.
        calibration_seeds: Train seeds that an offline router is scored on.
        seed: Chooses the episodes.
        workers: Processes.
    """

    domains: tuple[str, ...]
    edge: str = "sim:qwen3.5-9b"
    cloud: str = "sim:gpt-5.4"
    episodes: int = 48
    oracle_episodes: int = 6
    grid_episodes: int = 1
    train_episodes: int = 12
    states: int = 32
    draws: int = 4
    race: Race = field(default_factory=Race)
    depth: int = 4
    leaf: float = 0.03
    calibration_seeds: int = 5
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLandscape:
    """What was played in one domain; vectors are completion, cost, exposure.

    Attributes:
        name: Of the domain.
        keys: The episodes of the test split.
        vectors: Of each fixed strategy and of random decisions, shape (episodes, 3), in the order of `keys`.
        trees: Of the tree of each weights, shape (weights, episodes, 3).
        tree_decisions: How often the tree of each weights took each decision, shape (weights, 6).
        oracle: Of the oracle decision at the default weights, shape (oracle episodes, 3).
        oracle_grid: The same at all weights, shape (grid episodes, weights, 3).
        places: Which of the episodes `oracle` is about.
        grid_places: The same for `oracle_grid`.
        oracle_decisions: How often it took each decision at the default weights, shape (6,).
        features: Of the valued states, shape (states, features).
        outcomes: Of decisions followed by continuations under lucks, shape (states, 6, continuations, draws, 3).
    """

    name: str
    keys: tuple[EpisodeKey, ...]
    vectors: Mapping[str, NDArray[np.float64]]
    trees: NDArray[np.float64]
    tree_decisions: NDArray[np.int64]
    oracle: NDArray[np.float64]
    oracle_grid: NDArray[np.float64]
    places: tuple[int, ...]
    grid_places: tuple[int, ...]
    oracle_decisions: NDArray[np.int64]
    features: NDArray[np.float64]
    outcomes: NDArray[np.float64]


def check_plan(plan: LandscapePlan) -> None:
    """Looks at a plan before anything is played.

    Raises:
        UnknownName: if a domain or model does not exist.
        ConfigurationError: if a number is out of range, or a model is real: looking ahead takes simulated ones.
    """
    for domain in plan.domains:
        if domain not in task_domains():
            raise UnknownName("domain", domain, task_domains())
    least = {
        "episodes": 2,
        "oracle_episodes": 2,
        "grid_episodes": 1,
        "train_episodes": 1,
        "states": 2,
        "draws": 2,
        "workers": 1,
        "seed": 0,
    }
    for name, low in least.items():
        if getattr(plan, name) < low:
            raise ConfigurationError(f"{name} is {getattr(plan, name)}, expected at least {low}")
    if not plan.grid_episodes <= plan.oracle_episodes <= plan.episodes:
        raise ConfigurationError("expected grid episodes <= oracle episodes <= episodes")
    for spec in (plan.edge, plan.cloud):
        if not load_model(spec).card.simulated:
            raise ConfigurationError(
                f"{spec} is no simulated model; looking ahead plays copies of episodes, which takes simulated ones"
            )


def explore(plan: LandscapePlan, say: Callable[[str], None] = lambda text: None) -> tuple[list[DomainLandscape], list[Node]]:
    """Plays everything. The same plan gives the same results with any number of workers.

    Args:
        plan: What to play.
        say: Is told which part begins.

    Returns:
        The domains, and the tree of each weights of the grid, one for all domains of the plan.
    """
    check_plan(plan)
    models = (plan.edge, plan.cloud)
    tested = {domain: episode_keys(domain, "test", plan.episodes, plan.seed) for domain in plan.domains}
    pool = ProcessPoolExecutor(plan.workers, mp_context=multiprocessing.get_context("spawn"), initializer=start_worker)
    with pool:
        mapped: Mapped = partial(_mapped, pool if plan.workers > 1 else None)
        say("playing fixed strategies and random decisions")
        vectors = _played(plan, tested, mapped)
        say("valuing all decisions in states of the train split")
        states = _valued(plan, mapped)
        say("trying small trees on the train split")
        trees = _found_trees(
            plan, grown(plan, *(np.concatenate([one[part] for one in states.values()]) for part in (0, 1))), mapped
        )
        say("playing the trees")
        walked = mapped(partial(play_trees, models, tuple(trees)), [key for keys in tested.values() for key in keys])
        say("looking ahead")
        ahead = [(key, n < plan.grid_episodes) for keys in tested.values() for n, key in enumerate(keys[: plan.oracle_episodes])]
        looked = mapped(partial(look_ahead, models, plan.race, tuple(trees)), ahead)
    found = []
    for number, (domain, keys) in enumerate(tested.items()):
        mine = walked[number * plan.episodes : (number + 1) * plan.episodes]
        seen = looked[number * plan.oracle_episodes : (number + 1) * plan.oracle_episodes]
        usual = [row[DEFAULT if len(row) > 1 else 0] for row in seen]
        found.append(
            DomainLandscape(
                name=domain,
                keys=tuple(keys),
                vectors=vectors[domain],
                trees=np.array([[total for total, _ in row] for row in mine]).transpose(1, 0, 2),
                tree_decisions=np.array([[counts for _, counts in row] for row in mine]).sum(axis=0),
                oracle=np.array([total for total, _ in usual]),
                oracle_grid=np.array([[total for total, _ in row] for row in seen[: plan.grid_episodes]]),
                places=tuple(range(plan.oracle_episodes)),
                grid_places=tuple(range(plan.grid_episodes)),
                oracle_decisions=np.array([counted(decisions) for _, decisions in usual]).sum(axis=0),
                features=states[domain][0],
                outcomes=states[domain][1],
            )
        )
    return found, trees


def _mapped(pool: ProcessPoolExecutor | None, job: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Returns what a job makes of every item, in their order."""
    return list(map(job, items)) if pool is None else list(pool.map(job, items))


def _played(
    plan: LandscapePlan, tested: Mapping[str, Sequence[EpisodeKey]], mapped: Mapped
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Plays all fixed strategies and random decisions; offline routers are scored on the train split of the same domain."""
    models = (plan.edge, plan.cloud)
    scored = {domain: scored_keys(domain, plan.calibration_seeds) for domain in plan.domains}
    rows = iter(mapped(partial(play_all, models, ("edge_only", "cloud_only"), ()), [k for keys in scored.values() for k in keys]))
    gaps: dict[str, dict[tuple[str, str], float]] = {}
    for domain, keys in scored.items():
        gaps[domain] = {(key.task, key.language): 0.0 for key in keys}
        for key in keys:
            edge, cloud = next(rows)
            gaps[domain][key.task, key.language] += (cloud[0] - edge[0]) / plan.calibration_seeds
    specs = (*FIXED, RANDOM)
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for domain, chosen in tested.items():
        vectors = np.array(mapped(partial(play_all, models, specs, frozen(gaps[domain])), chosen))
        found[domain] = {spec: vectors[:, place] for place, spec in enumerate(specs)}
    return found


def _valued(plan: LandscapePlan, mapped: Mapped) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Values decisions in states of the train split; returns features of states and outcomes in them, by domain."""
    count = -(-plan.states // PER_EPISODE)
    keys = [key for domain in plan.domains for key in episode_keys(domain, "train", count, plan.seed)]
    rows = mapped(partial(valued_states, (plan.edge, plan.cloud), plan.draws), keys)
    found = {}
    for number, domain in enumerate(plan.domains):
        some = [state for row in rows[number * count : (number + 1) * count] for state in row][: plan.states]
        found[domain] = (np.array([features for features, _ in some]), np.array([outcomes for _, outcomes in some]))
    return found


def _found_trees(plan: LandscapePlan, trees: Sequence[Node], mapped: Mapped) -> list[Node]:
    """Returns the tree of highest mean return on the train split for each weights, among grown ones and `simple_trees`."""
    tried = tuple(dict.fromkeys([*simple_trees(), *trees]))
    keys = [key for domain in plan.domains for key in episode_keys(domain, "train", plan.train_episodes, plan.seed + TRYING)]
    rows = mapped(partial(play_trees, (plan.edge, plan.cloud), tried), keys)
    returns = np.array([[total for total, _ in row] for row in rows]).mean(axis=0) @ weighing(GRID)
    return [tried[int(place)] for place in returns.argmax(axis=0)]


def decision_values(found: NDArray[np.float64], weights: RewardWeights) -> NDArray[np.float64]:
    """Returns the value of each decision under its best continuation, shape (states, 6).

    Args:
        found: Of `outcomes`, for each state.
        weights: What the terms are weighed with.
    """
    values: NDArray[np.float64] = (found @ weighing([weights])[:, 0]).mean(axis=3).max(axis=2)
    return values


def grown(plan: LandscapePlan, features: NDArray[np.float64], found: NDArray[np.float64]) -> list[Node]:
    """Returns a tree for each weights of the grid."""
    leaf = max(LEAST, round(plan.leaf * len(features)))
    trees = []
    for weights in GRID:
        values = decision_values(found, weights)
        trees.append(grow(features, values - values.mean(axis=1, keepdims=True), plan.depth, leaf))
    return trees


def all_domains(parts: Sequence[DomainLandscape]) -> DomainLandscape:
    """Returns the domains as one."""
    starts = [sum(len(part.keys) for part in parts[:n]) for n in range(len(parts))]
    return DomainLandscape(
        name="all",
        keys=tuple(key for part in parts for key in part.keys),
        vectors={spec: np.concatenate([part.vectors[spec] for part in parts]) for spec in parts[0].vectors},
        trees=np.concatenate([part.trees for part in parts], axis=1),
        tree_decisions=np.sum([part.tree_decisions for part in parts], axis=0),
        oracle=np.concatenate([part.oracle for part in parts]),
        oracle_grid=np.concatenate([part.oracle_grid for part in parts]),
        places=tuple(start + n for start, part in zip(starts, parts, strict=True) for n in part.places),
        grid_places=tuple(start + n for start, part in zip(starts, parts, strict=True) for n in part.grid_places),
        oracle_decisions=np.sum([part.oracle_decisions for part in parts], axis=0),
        features=np.concatenate([part.features for part in parts]),
        outcomes=np.concatenate([part.outcomes for part in parts]),
    )
