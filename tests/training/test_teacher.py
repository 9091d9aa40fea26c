"""The teacher looks ahead without looking into the future, and what is learned from it comes out the same each time."""

from __future__ import annotations

import copy
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from ec2_env.bench.landscape_tree import Leaf, Node, Split
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision, load_strategy
from ec2_env.training.encoder_guide import Guide
from ec2_env.training.evaluation import Score, by_strategy, difference, evaluate, half_width, table
from ec2_env.training.features_policy import Preference
from ec2_env.training.practice import Lesson, practiced
from ec2_env.training.quick import Plan
from ec2_env.training.rules import tabled
from ec2_env.training.scorers import COST, PRIVACY
from ec2_env.training.smoothing import GuidedTeacher, PolicyCopy, Worths, phrases, seen
from ec2_env.training.states import State, episode_keys, go_to, observed
from ec2_env.training.suited import SuitedRules
from ec2_env.training.teacher import BASES, Teacher, best, likely_lucks, play_on
from ec2_env.training.warm_start import labels

SETTINGS = {"task": "forward_invoice", "language": "en"}
TEACHER = Teacher(bases=BASES[:1], draws=2)


def started(seed: int = 0) -> DecisionEnv:
    env = DecisionEnv(**SETTINGS)
    env.begin("forward_invoice", "en", "test", seed)
    return env


def test_the_teacher_beats_random_decisions() -> None:
    keys = list(episode_keys(DecisionEnv(**SETTINGS), "test", range(10)))
    teacher = evaluate("teacher", lambda envs: [TEACHER.decide(env) for env in envs], SETTINGS, keys)
    random = evaluate("random", by_strategy(load_strategy("random")), SETTINGS, keys)
    assert teacher.mean > random.mean


def test_looking_ahead_changes_nothing_and_repeats() -> None:
    env, untouched = started(), started()
    first = TEACHER.values(env)
    assert TEACHER.values(env) == first == TEACHER.values(started())
    assert env.session is not None and untouched.session is not None
    untouched.view().signals()
    assert env.session.events == untouched.session.events
    assert env.session.noise == untouched.session.noise


def test_no_copy_has_the_luck_of_the_episode() -> None:
    env = started()
    lucks = likely_lucks(env, 3, 12)
    assert env.session is not None
    assert len(set(lucks)) == 3
    assert env.session.noise not in lucks


def test_lucks_are_those_under_which_the_edge_model_looks_as_it_does() -> None:
    env = started()
    assert env.session is not None
    seen = env.session.signals().entropy
    assert seen is not None

    def distance(noise: str) -> float:
        fork = copy.deepcopy(env)
        assert fork.session is not None
        fork.session.noise, fork.session._signals = noise, None
        return abs((fork.session.signals().entropy or 0.0) - seen)

    near, all_of_them = likely_lucks(env, 4, 48), likely_lucks(env, 48, 48)
    assert fmean(map(distance, near)) < fmean(map(distance, all_of_them)) / 2


def test_only_running_episodes_have_values() -> None:
    with pytest.raises(ConfigurationError, match="nothing to decide"):
        TEACHER.values(DecisionEnv(**SETTINGS))
    env = started()
    while env.session is not None and not env.session.ended:
        env.take(Decision.EDGE)
    with pytest.raises(ConfigurationError, match="nothing to decide"):
        play_on(env, Decision.EDGE, BASES[0], "luck")


def test_the_oracle_strategy_takes_what_the_teacher_would() -> None:
    env = started()
    assert load_strategy("oracle_decision:draws=3").decide(env.view()) == Teacher(draws=3).decide(env)


def test_a_state_is_rebuilt_from_its_decisions() -> None:
    settings = {"task": "meeting_request"}
    states = practiced(Lesson(settings=settings, count=10, draws=1, first=0), load_strategy("random"))
    env = DecisionEnv(**settings)
    for state in states:
        go_to(env, state)
        assert observed(env, state.key, brought=state.brought) == state


def state(prompt: str, *values: float) -> State:
    key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=0, trial=0)
    return State(key=key, choices=(), prompt=prompt, features=(0.0,) * len(NAMES), values=values)


def test_smoothing_finds_what_depends_on_a_phrase() -> None:
    high = [state(f"Entropy high. Task {n % 3}.", 0, 0, 0, 0.1 + 0.2 * (n % 2), 0, 0) for n in range(60)]
    low = [state(f"Entropy low. Task {n % 3}.", 0.1, 0, 0, 0, 0.3 * (n % 3 == 0), 0) for n in range(60)]
    worths = Worths(high + low, ridge=1.0)
    values = worths.values(["Entropy high. Task 1.", "Entropy low. Task 1.", "never seen"], [high[0].features] * 3)
    assert [best(row) for row in values[:2].tolist()] == [Decision.ADVISE_REDACTED, Decision.EDGE]
    assert phrases("Entropy high. Task 1.\nChoice:") == {"entropy high", "task 1", "choice"}


def suited(trees: list[Node], brought: list[list[float]], by_task: float = 0.0) -> SuitedRules:
    """Returns rules that bring so much in every task; the first brings more by `by_task` in the task "Pay, English."."""
    table, roots = tabled(trees)
    coefficients = np.array([brought, np.zeros((len(trees), 3))])
    coefficients[1, 0, 0] = by_task
    return SuitedRules(
        guide=Guide(rules=table, roots=roots, coefficients=coefficients),
        tasks={"Pay, English.": np.ones(1)},
        otherwise=np.zeros(1),
    )


def test_the_task_chooses_the_rule() -> None:
    rules = suited([Leaf(Decision.ACT), Leaf(Decision.EDGE)], [[0.4, 0.0, 0.0], [0.5, 0.0, 0.0]], by_task=0.2)
    nothing = [0.0] * len(NAMES)
    assert rules.answer("Pay, English, first step.\nEntropy low.", nothing) == Decision.ACT
    assert rules.answer("Send, English, first step.\nEntropy low.", nothing) == Decision.EDGE


def guided(margin: float) -> tuple[GuidedTeacher, list[State]]:
    """Returns a teacher that plans first, and states in which planning is worth 0.1 less than advice where advice is wanted."""
    rules = suited([Split(NAMES.index("step"), 0.0, Leaf(Decision.PLAN), Leaf(Decision.EDGE))], [[0.0, 0.0, 0.0]])
    steps = [tuple(float(step if name == "step" else 0) for name in NAMES) for step in (0, 1)]
    met = [
        replace(state(f"Step {step}. {advice}.", 0, 0, 0, 0.1 if advice == "wanted" else -0.1, 0, 0), features=steps[step])
        for step in (0, 1)
        for advice in ("wanted", "unwanted")
    ]
    return GuidedTeacher(rules=rules, worths=Worths(met * 20, ridge=1.0), margin=margin), met


@pytest.mark.parametrize(("margin", "wanted"), [(0.05, [3, 1, 3, 0]), (0.15, [1, 1, 0, 0])])
def test_the_teacher_leaves_its_rule_only_where_another_decision_is_worth_more_by_the_margin(
    margin: float, wanted: list[int]
) -> None:
    teacher, met = guided(margin)
    values = teacher.values(*seen(met))
    assert [int(best(row)) for row in values.tolist()] == wanted


def test_rewards_keep_the_margin_of_the_rule() -> None:
    teacher, met = guided(0.15)
    plain = teacher.worths.blended(met, 0.5)
    for most, wanted in ((1.0, 0.15), (0.04, 0.04)):
        gains = [
            [round(value - before, 9) for value, before in zip(one.values, other.values, strict=True)]
            for one, other in zip(teacher.rewarded(met, 0.5, most), plain, strict=True)
        ]
        assert gains == [[0, wanted, 0, 0, 0, 0]] * 2 + [[wanted, 0, 0, 0, 0, 0]] * 2


def test_labels_are_the_chances_of_the_teacher_and_rare_decisions_are_drawn_more_often() -> None:
    teacher, met = guided(0.15)
    plan = Plan(examples=400, softness=0.01)
    found = labels([met[0], *met[2:] * 8], teacher, plan, seed=0)
    assert found == labels([met[0], *met[2:] * 8], teacher, plan, seed=0)
    assert all(sum(chances) == pytest.approx(1) for _, chances in found)
    named = [best(chances) for _, chances in found]
    assert set(named) == {Decision.PLAN, Decision.EDGE}
    assert named.count(Decision.PLAN) / 400 > 1.2 / 17


def test_blending_keeps_advantages_or_takes_those_of_like_states() -> None:
    states = [state("Entropy high.", 0, 0, 0, 0.6 * (n % 2), 0, 0) for n in range(40)]
    worths = Worths(states, ridge=1.0)
    own, alike = (worths.blended(states, trust) for trust in (1.0, 0.0))
    assert own[1].values == pytest.approx([value - 0.1 for value in states[1].values])
    assert alike[0].values == alike[1].values == pytest.approx(worths.values(*seen(states[:1]))[0])


def preferred(one: State, cost: float, privacy: float) -> State:
    """Returns the state under other weights."""
    features = list(one.features)
    features[COST], features[PRIVACY] = cost, privacy
    return replace(one, features=tuple(features))


def test_what_decisions_bring_is_weighed_by_the_preference_of_the_state() -> None:
    brought = ((0.5, 0.0, 0.0), (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), (0.7, 0.4, 0.0), (0.9, 0.4, 0.8), (0.5, 0.0, 0.0))
    states = [replace(state(f"Entropy {word}."), brought=brought) for word in ("high", "low")] * 20
    worths = Worths(states, ridge=1.0, weighed=True)
    wanted = [preferred(states[0], *weights) for weights in ((0.0, 0.0), (0.1, 0.5), (2.0, 0.5))]
    values = worths.values(*seen(wanted)).tolist()
    assert [best(row) for row in values] == [Decision.ACT, Decision.ADVISE_REDACTED, Decision.EDGE]
    assert values[0][Decision.ACT] == pytest.approx(0.3, abs=0.02)


def test_a_teacher_can_be_told_a_preference_that_is_not_that_of_the_episode() -> None:
    rules = suited([Leaf(Decision.EDGE), Leaf(Decision.ACT)], [[0.4, 0.0, 0.0], [0.8, 1.0, 0.0]])
    known = [replace(state("Cost matters not."), brought=((0.0, 0.0, 0.0),) * 6)]
    teacher = GuidedTeacher(rules=rules, worths=Worths(known, ridge=1.0, weighed=True), margin=0.01)
    view = started().view()
    told = [replace(teacher, preference=Preference(cost, 0.0)).decide(view) for cost in (0.0, 1.0)]
    assert told == [Decision.ACT, Decision.EDGE]
    assert teacher.decide(view) == Decision.ACT  # 0.8 - 0.15 against 0.4


def test_a_copy_follows_the_teacher_except_where_the_policy_does_not() -> None:
    teacher, met = guided(0.15)
    scores = np.array([[-3.0, -0.1, -3.0, -3.0, -3.0, -3.0], [-3.0, -0.1, -3.0, -3.0, -3.0, -3.0]] + [[-0.1] + [-3.0] * 5] * 2)
    for copied, wanted in ((teacher, [1, 1, 0, 0]), (None, [1, 1, 0, 0])):
        copy_ = PolicyCopy(met * 5, np.tile(scores, (5, 1)), 1.0, copied)
        told = copy_.smoothed(copy_._told(*seen(met))).argmax(axis=1).tolist()
        assert told == wanted
    stubborn = PolicyCopy(met * 5, np.tile(scores[:1], (20, 1)), 1.0, teacher)
    assert stubborn.smoothed(stubborn._told(*seen(met))).argmax(axis=1).tolist() == [1, 1, 1, 1]


def test_the_table_compares_on_the_same_episodes() -> None:
    keys = list(episode_keys(DecisionEnv(**SETTINGS), "test", range(3)))
    edge = evaluate("edge", by_strategy(load_strategy("edge_only")), SETTINGS, keys)
    other = Score(name="other", returns=tuple(value + 0.5 for value in edge.returns), parts=edge.parts, decisions=edge.decisions)
    assert difference(other, edge) == pytest.approx((0.5, 0.0))
    assert half_width([1.0]) == float("inf")
    lines = table([edge, other], "other").splitlines()
    assert lines[2].startswith("| other | ")
    assert "+0.500 ± 0.000" in lines[3]
