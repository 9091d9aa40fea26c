"""Practice values all decisions of a state under the policy that goes on, without seeing or changing the episode's own future."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ec2_env.reward import Terms
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Always, Decision, load_strategy
from ec2_env.training.evaluation import by_strategy, start
from ec2_env.training.practice import Lesson, ahead, practiced
from ec2_env.training.scorers import COST, PRIVACY
from ec2_env.training.teacher import BASES, Teacher

SETTINGS = {"task": "forward_invoice", "language": "en"}
KEY = EpisodeKey(task="forward_invoice", language="en", split="train", seed=3, trial=0)
EDGE_ONLY = Always(name="edge_only", decision=Decision.EDGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Counts how often it is asked, for how many episodes."""

    asked: list[int]

    def __call__(self, envs: object) -> list[Decision]:
        self.asked.append(len(list(envs)))  # type: ignore[call-overload]  # a sequence of envs
        return [Decision.EDGE] * self.asked[-1]


def test_practice_values_decisions_as_the_teacher_does() -> None:
    env = start(SETTINGS, KEY)
    [brought] = ahead([env], 3, by_strategy(BASES[0]))
    values = [Terms(*parts).scalar(env.weights) for parts in brought.tolist()]
    assert values == pytest.approx(Teacher(bases=BASES[:1], draws=3, candidates=24).values(env))


def test_what_a_decision_is_worth_depends_on_who_goes_on() -> None:
    env = start(SETTINGS, KEY)
    cloud = Always(name="cloud", decision=Decision.ACT_REDACTED)
    [alone], [helped] = (ahead([env], 4, by_strategy(after)) for after in (EDGE_ONLY, cloud))
    assert helped[Decision.EDGE][1] > alone[Decision.EDGE][1] == 0.0


def test_looking_ahead_leaves_the_episode_as_it_is() -> None:
    env, untouched = start(SETTINGS, KEY), start(SETTINGS, KEY)
    first = ahead([env], 2, by_strategy(BASES[0]))
    assert np.array_equal(first, ahead([env], 2, by_strategy(BASES[0])))
    untouched.view().signals()
    assert env.session is not None and untouched.session is not None
    assert env.session.events == untouched.session.events


def test_all_that_are_running_are_decided_for_at_once() -> None:
    counting = Counting(asked=[])
    ahead([start(SETTINGS, KEY), start(SETTINGS, KEY)], 3, counting)
    assert counting.asked[0] == 2 * 3 * len(Decision)
    assert len(counting.asked) < 60


def test_states_do_not_depend_on_the_number_of_processes() -> None:
    lesson = Lesson(settings=SETTINGS, count=6, draws=1, first=0)
    alone = practiced(lesson, BASES[0])
    assert len(alone) == 6
    assert alone == practiced(lesson, BASES[0], workers=2)
    assert {state.key.split for state in alone} == {"train"}


def test_a_strategy_and_the_same_strategy_in_batches_come_to_the_same_states() -> None:
    lesson = Lesson(settings=SETTINGS, count=4, draws=1, first=7)
    strategy = load_strategy("adaptive_assistance:redacted")
    assert practiced(lesson, strategy) == practiced(lesson, by_strategy(strategy))


def test_values_are_the_weighed_terms() -> None:
    [state] = practiced(Lesson(settings=SETTINGS, count=1, draws=1, first=0), BASES[0])
    weights = start(SETTINGS, KEY).weights
    assert state.values == tuple(Terms(*parts).scalar(weights) for parts in state.brought)


def test_states_without_draws_are_only_visited() -> None:
    found = practiced(Lesson(settings=SETTINGS, count=20, draws=0, first=0, share=1.0), BASES[0])
    assert [state.values for state in found] == [()] * 20
    assert found[0].choices == () and len(found[1].choices) == 1


def test_a_share_of_the_episodes_has_a_preference_of_its_own() -> None:
    lesson = Lesson(settings={"task": "forward_invoice"}, count=120, draws=0, first=0, share=1.0, preferences=0.5)
    found = practiced(lesson, BASES[0])
    assert found == practiced(lesson, BASES[0])
    weights = {state.key: set[tuple[float, float]]() for state in found}
    for state in found:
        weights[state.key].add((state.features[COST], state.features[PRIVACY]))
    told = [pair for (pair,) in weights.values()]
    usual = told.count((0.15, 0.25))
    assert 0 < usual < len(told)
    assert len(set(told)) == len(told) - usual + 1
    assert all(state.features[COST] > 0.1 or "Cost matters not" in state.prompt or "little" in state.prompt for state in found)
