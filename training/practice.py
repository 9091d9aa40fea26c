"""Practice: states that a policy comes to, and what each of the six decisions brings there if the same policy goes on afterwards.

Advice at one step takes the worth from advice at the next, so a decision has to be valued under the policy that follows it. Many
episodes are played in step with one another, and so are all copies of their states: whoever decides is asked once for all that
are running, so that a language model decides in one forward pass. All six decisions of a state are tried under the same lucks
(`ec2_env.training.teacher.likely_lucks`), so that their differences are less noisy than their values.
"""

from __future__ import annotations

import copy
import multiprocessing
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.records import start_worker
from ec2_env.envs import DecisionEnv, chosen
from ec2_env.models.draws import uniform
from ec2_env.reward import RewardWeights, Terms, terms
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision, Strategy
from ec2_env.training.evaluation import Chooser, by_strategy, going, start
from ec2_env.training.preferences import AnyPreference
from ec2_env.training.states import EXPLORE, State, advance, episode_keys, observed
from ec2_env.training.teacher import likely_lucks, running

VALUED = 0.15
"""Share of the states of an episode that are valued, if nothing else is said."""
CANDIDATES = 8
"""Fresh lucks, for each that is used, among which those are taken that fit what the edge model shows."""
TOGETHER = 12
"""Episodes that are played in step with one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What to practice.

    Attributes:
        settings: Arguments of `DecisionEnv`.
        count: How many states.
        draws: Lucks under which each decision is tried; with 0 none is, and the states have no values.
        first: Number of the first train instance; the next ones follow.
        share: Of the states of an episode that are taken: neighbors are much alike.
        preferences: Share of the episodes that have a preference of their own, instead of the weights of the settings.
    """

    settings: Mapping[str, Any]
    count: int
    draws: int
    first: int
    share: float = VALUED
    preferences: float = 0.0


def practiced(lesson: Lesson, follow: Strategy | Chooser, workers: int = 1) -> list[State]:
    """Returns states of the train split with the values of all decisions, in an order that does not depend on `workers`.

    Args:
        lesson: How many and where.
        follow: Plays, for a part at random, and goes on after the decisions that are tried. A function decides for a batch.
        workers: Processes to use, if it is a strategy.
    """
    parts = in_parts(lesson)
    found: list[State] = []
    with ExitStack() as stack:
        if callable(follow) or workers == 1:
            job = partial(valued_episodes, lesson, follow if callable(follow) else by_strategy(follow))
            results: Iterator[list[State]] = map(job, parts)
        else:
            spawn = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(workers, mp_context=spawn, initializer=start_worker))
            work = partial(followed, lesson, follow)
            results = (states for some in iter(lambda: list(islice(parts, workers)), []) for states in pool.map(work, some))
        while len(found) < lesson.count:
            found += next(results)
    return found[: lesson.count]


def in_parts(lesson: Lesson) -> Iterator[list[EpisodeKey]]:
    """Yields the episodes, a few at a time, without end: all tasks and languages in a random order, then other instances."""
    env, number = DecisionEnv(**lesson.settings), lesson.first
    while True:
        keys = list(episode_keys(env, "train", [number]))
        random.Random(number).shuffle(keys)
        yield from (keys[place : place + TOGETHER] for place in range(0, len(keys), TOGETHER))
        number += 1


def followed(lesson: Lesson, strategy: Strategy, keys: Sequence[EpisodeKey]) -> list[State]:
    """Returns the valued states of some episodes; for processes, to which no function can be sent."""
    return valued_episodes(lesson, by_strategy(strategy), keys)


def valued_episodes(lesson: Lesson, choose: Chooser, keys: Sequence[EpisodeKey]) -> list[State]:
    """Plays episodes, mostly as a policy does and sometimes at random, and values some of their states."""
    envs = [start(lesson.settings, key) for key in keys]
    for env, key in zip(envs, keys, strict=True):
        prefer(env, key, lesson.preferences)
    found: dict[EpisodeKey, list[State]] = {key: [] for key in keys}
    playing = list(zip(keys, envs, strict=True))
    while playing:
        drawn = [partial(uniform, "practice", key.task, key.language, key.seed, running(env).step) for key, env in playing]
        taken = [pair for pair, draw in zip(playing, drawn, strict=True) if draw("valued") < lesson.share]
        values = ahead([env for _, env in taken], lesson.draws, choose) if lesson.draws else [()] * len(taken)
        for (key, env), brought in zip(taken, values, strict=True):
            found[key].append(observed(env, key, brought=brought))
        for (_, env), draw, choice in zip(playing, drawn, choose([env for _, env in playing]), strict=True):
            explored = Decision(int(draw("which") * len(Decision)))
            advance(env, explored if draw("explore") < EXPLORE else chosen(choice))
        playing = [pair for pair in playing if going(pair[1])]
    return [state for states in found.values() for state in states]


def prefer(env: DecisionEnv, key: EpisodeKey, share: float) -> None:
    """Gives an episode a preference of its own, with a chance of `share`; which one depends on the episode alone."""
    drawn = partial(uniform, "preference", key.task, key.language, key.seed)
    if drawn("own") < share:
        wanted = AnyPreference().draw(np.random.default_rng(int(drawn("which") * 2**53)))
        env.weights = RewardWeights(cost=wanted.cost, privacy=wanted.privacy)


def ahead(envs: Sequence[DecisionEnv], draws: int, choose: Chooser) -> NDArray[np.float64]:
    """Returns what comes from here on of each decision followed by a policy, in the mean; changes no env.

    Returns:
        Completion, cost and exposure; shape (len(envs), 6, 3).

    Raises:
        ConfigurationError: if an episode has not begun or has ended.
    """
    copies = [
        Copy(env, decision, luck)
        for env in envs
        for luck in likely_lucks(env, draws, CANDIDATES * draws)
        for decision in Decision
    ]
    playing = [one.env for one in copies if going(one.env)]
    while playing:
        for env, choice in zip(playing, choose(playing), strict=True):
            env.take(choice)
        playing = [env for env in playing if going(env)]
    found = np.array([(one.task, one.cost, one.exposure) for one in (each.brought() for each in copies)])
    mean: NDArray[np.float64] = found.reshape(len(envs), draws, len(Decision), 3).mean(axis=1)
    return mean


class Copy:
    """A copy of an env under another luck, in which one decision was taken.

    Args:
        env: In the middle of an episode; it is not changed.
        decision: What to do first.
        luck: Name of the copy's luck: the same name is the same luck.
    """

    def __init__(self, env: DecisionEnv, decision: Decision, luck: str) -> None:
        self.env = copy.deepcopy(env)
        session = running(self.env)
        session.noise = luck
        self.since, self.levels = len(session.events), dict(session.levels)
        self.env.take(decision)

    def brought(self) -> Terms:
        """Returns what has come since."""
        assert self.env.session is not None
        return terms(self.env.session.events[self.since :], self.levels, self.env.session.episode.units, self.env._reference)
