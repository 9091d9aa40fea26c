"""The episodes of a landscape, and what worker processes make of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.grid import strategy_of
from ec2_env.bench.landscape_rollouts import CONTINUATIONS, Race, outcomes, play_oracle, weighing
from ec2_env.bench.landscape_tree import Node, TreePolicy
from ec2_env.bench.suites import STRATEGIES
from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision, Prepared
from ec2_env.task import task_domains, tasks
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.states import EXPLORE, State, advance, go_to

RANDOM = "random"
FIXED = tuple(spec for spec in STRATEGIES if spec != RANDOM)
"""Strategies with a rule of their own that nobody trained."""
GRID: tuple[RewardWeights, ...] = (
    RewardWeights(cost=0, privacy=0),
    RewardWeights(privacy=0),
    RewardWeights(cost=0),
    RewardWeights(),
    RewardWeights(cost=5, privacy=5),
)
"""No weight on cost and privacy, the default weight on one of them, on both, and so heavy a weight that even a plan, at 3%
of the price of doing all of it in the cloud, costs more than the completion that it brings."""
NONE, DEFAULT, HEAVY = 0, 3, 4
"""Places in the grid."""
PER_EPISODE = 4
"""States of one episode whose decisions are valued: neighbors are much alike."""
Vector = tuple[float, float, float]
"""Completion, cost and exposure."""


def episode_keys(domain: str, split: str, count: int, seed: int) -> list[EpisodeKey]:
    """Returns episodes of a domain: every task in every language once, in a random order that the seed fixes, then again."""
    pairs = [(name, language) for name in task_domains()[domain] for language in tasks.get(name).languages]
    pairs.sort(key=lambda pair: uniform("landscape", split, seed, *pair))
    return [
        EpisodeKey(task=name, language=language, split=split, seed=1_000 * seed + n // len(pairs), trial=0)
        for n in range(count)
        for name, language in (pairs[n % len(pairs)],)
    ]


def scored_keys(domain: str, seeds: int) -> list[EpisodeKey]:
    """Returns the train episodes that offline routers are scored on."""
    pairs = [(name, language) for name in task_domains()[domain] for language in tasks.get(name).languages]
    return [EpisodeKey(task=n, language=lang, split="train", seed=s, trial=0) for n, lang in pairs for s in range(seeds)]


@lru_cache(maxsize=4)
def _env(models: tuple[str, str]) -> DecisionEnv:
    """Returns an env at the default weights. No strategy here asks for them."""
    return DecisionEnv(edge=models[0], cloud=models[1])


def _total(env: DecisionEnv) -> Vector:
    found = episode_terms(env)
    return found.task, found.cost, found.exposure


def play_all(
    models: tuple[str, str], specs: tuple[str, ...], gaps: tuple[tuple[tuple[str, str], float], ...], key: EpisodeKey
) -> list[Vector]:
    """Plays one episode with each of several strategies."""
    found = []
    for spec in specs:
        strategy = strategy_of(spec)
        ready = strategy.prepare(dict(gaps)) if isinstance(strategy, Prepared) else strategy
        play(_env(models), ready, key)
        found.append(_total(_env(models)))
    return found


def play_trees(models: tuple[str, str], trees: tuple[Node, ...], key: EpisodeKey) -> list[tuple[Vector, list[int]]]:
    """Plays one episode with the tree of each weights; equal trees play once."""
    found: dict[Node, tuple[Vector, list[int]]] = {}
    env = _env(models)
    for tree in trees:
        if tree not in found:
            play(env, TreePolicy(tree=tree), key)
            found[tree] = (_total(env), counted(env.decisions))
    return [found[tree] for tree in trees]


def counted(decisions: Sequence[int]) -> list[int]:
    """Returns how often each decision was taken."""
    return [sum(int(one) == decision for one in decisions) for decision in Decision]


def look_ahead(
    models: tuple[str, str], race: Race, trees: tuple[Node, ...], job: tuple[EpisodeKey, bool]
) -> list[tuple[Vector, tuple[int, ...]]]:
    """Plays one episode with the oracle decision, at all weights of the grid or at the default ones only."""
    key, whole = job
    chosen = slice(None) if whole else slice(DEFAULT, DEFAULT + 1)
    return play_oracle(_env(models), key, weighing(GRID[chosen]), trees[chosen], race)


def valued_states(models: tuple[str, str], draws: int, key: EpisodeKey) -> list[tuple[tuple[float, ...], NDArray[np.float64]]]:
    """Plays one episode with one of the continuations and some random decisions, and values all decisions in a few of its states.

    Returns:
        Features of each state, and `outcomes` in it.
    """
    env = _env(models)
    drawn = partial(uniform, "landscape states", key.task, key.language, key.seed)
    rule = CONTINUATIONS[int(drawn("rule") * len(CONTINUATIONS))]
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    while env.session is not None and not env.session.ended:
        step = env.session.step
        by_rule = rule.decide(env.view())
        advance(env, Decision(int(drawn(step, "which") * len(Decision))) if drawn(step, "explore") < EXPLORE else by_rule)
    taken = env.choices
    chosen = sorted(sorted(range(len(taken)), key=lambda step: drawn(step, "chosen"))[:PER_EPISODE])
    return [valued(env, State(key=key, choices=taken[:step], prompt="", features=()), draws) for step in chosen]


def valued(env: DecisionEnv, state: State, draws: int) -> tuple[tuple[float, ...], NDArray[np.float64]]:
    """Returns the features of a state, and `outcomes` in it."""
    go_to(env, state)
    return env.view().features(), outcomes(env, draws)
