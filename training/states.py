"""States to learn from: where an episode can stand before a decision, what a policy reads there, and what the teacher thinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.reward import Terms
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Choice, Decision
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
        values: An estimate of the return of each decision from here on; empty if there is none.
        brought: What these returns are made of, completion, cost and exposure for each decision; empty if that is not known.
    """

    key: EpisodeKey
    choices: tuple[Choice, ...]
    prompt: str
    features: tuple[float, ...]
    values: tuple[float, ...] = ()
    brought: tuple[tuple[float, ...], ...] = ()


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


def observed(env: DecisionEnv, key: EpisodeKey, values: Sequence[float] = (), brought: Any = ()) -> State:
    """Returns the state that the env is in.

    Args:
        env: In the middle of an episode.
        key: Which episode.
        values: Of the six decisions.
        brought: Completion, cost and exposure of each; the values follow from them.
    """
    view, weights = env.view(), env.weights
    parts = tuple((float(task), float(cost), float(exposure)) for task, cost, exposure in brought)
    found = values or [Terms(*part).scalar(weights) for part in parts]
    return State(key=key, choices=env.choices, prompt=view.prompt(), features=view.features(), values=tuple(found), brought=parts)


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
