"""States to learn from: where an episode can stand before a decision, what a policy reads there, and what the teacher thinks."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Choice, Decision, Strategy
from ec2_env.task import tasks
from ec2_env.training.teacher import BASES, Teacher

EXPLORE = 0.25
"""Share of decisions drawn at random while states are collected, so that they include those that follow mistakes."""
LABELLED = 0.5
"""Share of visited states that are labelled: neighbors in one episode are much alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state before a decision.

    Attributes:
        key: The episode.
        choices: What was chosen so far; with the key it rebuilds the state.
        prompt: What a language-model policy reads.
        features: What a classical policy reads, see `ec2_env.features.NAMES`.
        values: The teacher's estimate of the return of each decision; empty if it was not asked.
    """

    key: EpisodeKey
    choices: tuple[Choice, ...]
    prompt: str
    features: tuple[float, ...]
    values: tuple[float, ...] = ()


def go_to(env: DecisionEnv, state: State) -> None:
    """Brings the env into a state, by making its choices again."""
    key = state.key
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    for choice in state.choices:
        advance(env, choice)


def advance(env: DecisionEnv, choice: Choice) -> None:
    """Makes a choice as the env's `step` does, with the edge model probed first: a probe is part of every observation."""
    env.view().signals()
    env.take(choice)


def episode_keys(env: DecisionEnv, split: str, seeds: Sequence[int]) -> Iterator[EpisodeKey]:
    """Yields every task of the env in every language that it has, for each seed in turn."""
    for seed in seeds:
        for name in env.names:
            for language in tasks.get(name).languages:
                if env.language in (None, language):
                    yield EpisodeKey(task=name, language=language, split=split, seed=seed, trial=0)


def observed(env: DecisionEnv, key: EpisodeKey, values: tuple[float, ...] = ()) -> State:
    """Returns the state that the env is in."""
    view = env.view()
    return State(key=key, choices=env.choices, prompt=view.prompt(), features=view.features(), values=values)


def labelled_states(settings: Mapping[str, Any], count: int, seed: int, teacher: Teacher, workers: int = 1) -> list[State]:
    """Returns the first `count` labelled states of the train split, in an order that does not depend on `workers`.

    Args:
        settings: Arguments of `DecisionEnv`.
        count: How many states.
        seed: Fixes episodes and exploration.
        teacher: Values the decisions.
        workers: Processes to use.
    """
    env = DecisionEnv(**settings)
    found: list[State] = []
    seeds = iter(range(1_000 * seed, 1_000 * seed + 1_000))
    label = partial(labels_of_episode, dict(settings), teacher)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number in seeds:
            for states in (pool.map if workers > 1 else map)(label, episode_keys(env, "train", [number])):
                found += states
            if len(found) >= count:
                break
    return found[:count]


def labels_of_episode(settings: Mapping[str, Any], teacher: Teacher, key: EpisodeKey) -> list[State]:
    """Plays one episode of the train split, mostly well and sometimes at random, and labels half of its states."""
    env = DecisionEnv(**settings)
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    states = []
    while env.session is not None and not env.session.ended:
        drawn = partial(uniform, "states", key.task, key.language, key.seed, env.session.step)
        decision = Decision(int(drawn("which") * len(Decision)))
        if drawn("label") < LABELLED:
            states.append(observed(env, key, teacher.values(env)))
        if drawn("explore") >= EXPLORE:
            advance(env, BASES[0].decide(env.view()))
        else:
            advance(env, decision)
    return states


def visited_states(settings: Mapping[str, Any], strategy: Strategy, count: int, seed: int) -> list[State]:
    """Returns `count` states of the train split that a strategy comes to, in a random order that the seed fixes."""
    env = DecisionEnv(**settings)
    found: list[State] = []
    for key in episode_keys(env, "train", range(1_000 * seed + 500, 1_000 * seed + 1_000)):
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
        while env.session is not None and not env.session.ended:
            if uniform("visited", key.task, key.language, key.seed, env.session.step) < LABELLED:
                found.append(observed(env, key))
            advance(env, strategy.decide(env.view()))
        if len(found) >= count:
            break
    random.Random(seed).shuffle(found)
    return found[:count]
