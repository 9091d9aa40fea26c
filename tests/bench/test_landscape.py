"""The landscape: what looking ahead, trees and figures say of made-up and of real episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ec2_env.bench import landscape
from ec2_env.bench.landscape import DomainLandscape, LandscapePlan, all_domains, check_plan, decision_values, explore
from ec2_env.bench.landscape_episodes import DEFAULT, FIXED, GRID, HEAVY, NONE, RANDOM, episode_keys, valued_states
from ec2_env.bench.landscape_figures import best_shares, figures, held_out_leads
from ec2_env.bench.landscape_rollouts import CONTINUATIONS, Race, outcome, play_oracle, weighing
from ec2_env.bench.landscape_table import report
from ec2_env.bench.landscape_tree import Leaf, Split, TreePolicy, best_split, decided, described, grow, simple_trees
from ec2_env.cli import main
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision
from ec2_env.task import task_domains

KEY = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)
SHORT = Race(first=1, more=1, kept=2)
FIRST_PLAN = Split(NAMES.index("step"), 0.0, Leaf(Decision.PLAN), Leaf(Decision.EDGE))


def one_hot(decisions: Sequence[int]) -> NDArray[np.float64]:
    return np.eye(len(Decision))[list(decisions)]


def split(below: float, above: float) -> NDArray[np.float64]:
    """Returns features of 40 states; only the entropy of the first 20 lies below that of the others."""
    features = np.zeros((40, len(NAMES)))
    features[:20, NAMES.index("entropy")], features[20:, NAMES.index("entropy")] = below, above
    return features


# -- trees


def test_tree_finds_the_question_that_tells_states_apart() -> None:
    tree = grow(split(0.4, 0.8), one_hot([Decision.EDGE] * 20 + [Decision.ADVISE] * 20), depth=4, leaf=5)
    assert tree == Split(NAMES.index("entropy"), pytest.approx(0.6), Leaf(Decision.EDGE), Leaf(Decision.ADVISE))  # type: ignore[arg-type]
    assert described(tree) == "entropy <= 0.6 ? EDGE : ADVISE"


def test_tree_asks_nothing_where_one_decision_is_best_everywhere() -> None:
    assert grow(split(0.4, 0.8), one_hot([Decision.ACT] * 40), depth=4, leaf=5) == Leaf(Decision.ACT)


def test_tree_minds_what_a_wrong_decision_costs_more_than_how_often_it_is_wrong() -> None:
    values = np.zeros((40, len(Decision)))
    values[:39, Decision.EDGE], values[39, Decision.PLAN] = 0.01, 1.0
    assert grow(split(0.4, 0.8), values, depth=0, leaf=5) == Leaf(Decision.PLAN)


def test_no_leaf_holds_fewer_states_than_asked() -> None:
    assert best_split(split(0.4, 0.8), one_hot([0] * 20 + [2] * 20), leaf=21) is None


def test_best_question_is_the_one_that_trying_all_of_them_finds() -> None:
    random = np.random.default_rng(5)
    features, values = random.integers(0, 6, (30, 4)).astype(float), random.normal(size=(30, len(Decision)))
    tried = []
    for feature in range(4):
        for threshold in sorted(set(features[:, feature]))[:-1]:
            under = features[:, feature] <= threshold
            if min(under.sum(), (~under).sum()) >= 3:
                tried.append(values[under].sum(axis=0).max() + values[~under].sum(axis=0).max())
    found = best_split(features, values, leaf=3)
    assert found is not None
    assert found[0] == pytest.approx(max(tried))


def test_depth_bounds_the_questions_to_a_leaf() -> None:
    random = np.random.default_rng(6)
    features, values = random.random((200, len(NAMES))), random.normal(size=(200, len(Decision)))

    def questions(node: Leaf | Split) -> int:
        return 0 if isinstance(node, Leaf) else 1 + max(questions(node.below), questions(node.above))

    assert questions(grow(features, values, depth=3, leaf=5)) == 3


def test_trees_that_people_would_write_differ_and_ask_at_most_four_questions() -> None:
    trees = simple_trees()
    assert len(set(trees)) == len(trees)
    assert {Leaf(Decision.EDGE), FIRST_PLAN} <= set(trees)
    assert all(described(tree).count("?") <= 4 for tree in trees)


def test_tree_plays_as_a_strategy() -> None:
    env = DecisionEnv()
    tree = FIRST_PLAN
    play(env, TreePolicy(tree=tree), KEY)
    assert env.decisions[0] is Decision.PLAN
    assert set(env.decisions[1:]) == {Decision.EDGE}
    assert decided(tree, [1.0] * len(NAMES)) == Decision.EDGE


# -- looking ahead


def test_trying_a_decision_changes_nothing_and_gives_the_same_again() -> None:
    env = DecisionEnv()
    env.begin("forward_invoice", "en", "test", 0)
    assert env.session is not None
    before = len(env.session.events)
    found = [outcome(env, Decision.ADVISE, CONTINUATIONS[1], "luck") for _ in range(2)]
    assert found[0] == found[1]
    assert len(env.session.events) == before
    assert found[0][1] > 0


def test_what_a_decision_brings_does_not_depend_on_the_weights_of_the_env() -> None:
    found = []
    for weights in (RewardWeights(), RewardWeights(task=3, cost=2, privacy=0)):
        env = DecisionEnv(weights=weights)
        env.begin("forward_invoice", "en", "test", 1)
        found.append([outcome(env, decision, CONTINUATIONS[2], "luck") for decision in Decision])
    assert found[0] == found[1]


def test_looking_ahead_for_a_grid_gives_what_each_weights_alone_would() -> None:
    env = DecisionEnv()
    chosen = [GRID[NONE], GRID[DEFAULT], GRID[HEAVY]]
    trees = [FIRST_PLAN, FIRST_PLAN, Leaf(Decision.EDGE)]
    together = play_oracle(env, KEY, weighing(chosen), trees, SHORT)
    alone = [play_oracle(env, KEY, weighing([one]), [tree], SHORT)[0] for one, tree in zip(chosen, trees, strict=True)]
    assert together == alone
    assert len({decisions for _, decisions in together}) > 1


def test_the_trees_own_decision_stands_unless_another_is_clearly_better() -> None:
    nothing = np.zeros(8)
    once, often, cheaper = np.array([0.9] + [-0.1] * 7), np.array([0.9] * 4 + [-0.1] * 4), np.full(8, 0.03)
    assert Race()._choice({0: nothing, 2: once}, 0, 1.0) == 0
    assert Race()._choice({0: nothing, 2: often}, 0, 1.0) == 2
    assert Race()._choice({4: nothing, 0: cheaper}, 4, 1.0) == 4


def test_states_are_valued_the_same_again_and_with_every_decision() -> None:
    key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=3, trial=0)
    once, again = (valued_states(("sim:qwen3.5-9b", "sim:gpt-5.4"), 2, key) for _ in range(2))
    assert [state[0] for state in once] == [state[0] for state in again]
    assert all(np.array_equal(one[1], other[1]) for one, other in zip(once, again, strict=True))
    assert once[0][1].shape == (len(Decision), len(CONTINUATIONS), 2, 3)
    assert len(once[0][0]) == len(NAMES)


# -- figures


def made_up(name: str = "made up") -> DomainLandscape:
    """Four episodes: the cloud completes all and costs 1, the edge half of them; the oracle completes all at a cost of 0.2."""
    vectors = {spec: np.array([[0.0, 0.5, 0.5]] * 4) for spec in (*FIXED, RANDOM)}
    vectors["edge_only"] = np.array([[1.0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
    vectors["cloud_only"] = np.array([[1.0, 1, 1]] * 4)
    careful, perfect = np.array([[1.0, 0.4, 0]] * 4), np.array([[1.0, 0.2, 0]] * 2)
    outcomes = np.zeros((6, len(Decision), 1, 4, 3))
    for state in range(6):
        outcomes[state, state, :, :, 0] = 1.0
    return DomainLandscape(
        name=name,
        keys=tuple(episode_keys("email", "test", 4, 0)),
        vectors=vectors,
        trees=np.stack([careful] * len(GRID)),
        tree_decisions=np.array([[3, 1, 0, 0, 0, 0]] * len(GRID)),
        oracle=perfect,
        oracle_grid=np.stack([perfect[:1]] * len(GRID), axis=1),
        places=(0, 1),
        grid_places=(0,),
        oracle_decisions=np.array([4, 1, 1, 1, 1, 0]),
        features=np.zeros((6, len(NAMES))),
        outcomes=outcomes,
    )


def test_figures_of_a_made_up_landscape() -> None:
    found = figures(made_up())
    at = found.default
    assert at.best == "cloud_only"
    assert at.returns["cloud_only"].mean == pytest.approx(1 - 0.15 - 0.25)
    assert at.lead.mean == pytest.approx(0.97 - 0.6)
    assert at.lead_share == pytest.approx(0.37 / (0.97 + 0.2))
    assert at.recovered == pytest.approx((0.94 - 0.6) / 0.37)
    assert found.shares[DEFAULT] == pytest.approx([1 / 6] * 6)
    assert {target: verdict.reached for target, verdict in found.verdicts.items()} == dict.fromkeys(found.verdicts, True)
    assert found.decisions["PLAN"].lead is not None
    assert found.decisions["PLAN"].lead.mean == pytest.approx(1.0)


def test_a_landscape_without_a_lead_misses_its_targets() -> None:
    part = made_up()
    part.oracle[:] = [1.0, 1.0, 1.0]
    part.outcomes[:, Decision.PLAN] = 0.0
    found = figures(part)
    assert not found.verdicts["lead"].reached
    assert not found.verdicts["tree"].reached
    assert found.default.recovered is None
    assert "PLAN 2.8%" in found.verdicts["shares"].text


def test_domains_together_pair_the_same_episodes_as_apart() -> None:
    first, second = made_up("first"), made_up("second")
    second.vectors["cloud_only"][:2] = [0.9, 1, 1]
    whole = figures(all_domains([first, second]))
    apart = [figures(part).default for part in (first, second)]
    assert whole.episodes == 8
    assert whole.default.lead.mean == pytest.approx(np.mean([at.lead.mean for at in apart]))


def test_decisions_that_are_equally_good_share_a_state() -> None:
    values = np.array([[1.0, 1.0, 0, 0, 0, 0], [0.0, 1.0, 0, 0, 0, 0]])
    assert best_shares(values).tolist() == [0.25, 0.75, 0, 0, 0, 0]


def test_a_decision_that_is_best_by_luck_has_no_lead_under_other_lucks() -> None:
    random = np.random.default_rng(0)
    outcomes = np.zeros((300, len(Decision), 1, 4, 3))
    outcomes[..., 0] = random.integers(0, 2, outcomes.shape[:-1])
    leads = held_out_leads(outcomes, RewardWeights())
    assert decision_values(outcomes, RewardWeights()).max(axis=1).mean() > 0.7
    assert abs(np.concatenate(leads).mean()) < 0.08


def test_report_names_every_domain_target_and_decision() -> None:
    text = report([figures(made_up("mine")), figures(all_domains([made_up("mine")]))], "EDGE")
    assert "| mine" in text
    assert all(decision.name in text for decision in Decision)
    assert text.count("- ") >= 5


# -- plans and the command


def test_grid_holds_no_the_default_and_heavy_weights() -> None:
    assert (GRID[NONE].cost, GRID[NONE].privacy) == (0, 0)
    assert GRID[DEFAULT] == RewardWeights()
    assert min(GRID[HEAVY].cost, GRID[HEAVY].privacy) > 1


def test_episodes_cover_every_task_before_any_comes_twice() -> None:
    names = task_domains()["email"]
    keys = episode_keys("email", "test", 60, 1)
    assert {key.task for key in keys[:24]} == set(names)
    assert len(set(keys)) == 60
    assert keys != episode_keys("email", "test", 60, 2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"episodes": 1}, "episodes is 1"),
        ({"draws": 1}, "draws is 1"),
        ({"oracle_episodes": 99}, "grid episodes <="),
        ({"edge": "scripted:REPLIES"}, "no simulated model"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(
    changed: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "REPLIES").write_text('["yes"]', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=said):
        check_plan(LandscapePlan(domains=("email",), **changed))


def test_an_unknown_domain_is_refused() -> None:
    with pytest.raises(UnknownName, match="emial"):
        check_plan(LandscapePlan(domains=("emial",)))


SMALL = partial(
    LandscapePlan,
    domains=("files",),
    seed=9,  # its first tasks are short
    episodes=2,
    oracle_episodes=2,
    grid_episodes=1,
    states=2,
    draws=2,
    train_episodes=1,
    race=Race(first=1, more=1, kept=1),
    calibration_seeds=1,
)


def test_one_and_two_processes_find_the_same() -> None:
    (parts, trees), (again, same) = (explore(SMALL(workers=workers)) for workers in (1, 2))
    assert trees == same
    assert figures(parts[0]) == figures(again[0])
    assert np.array_equal(parts[0].outcomes, again[0].outcomes)


def test_the_command_prints_tables_and_writes_all_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(landscape, "LandscapePlan", SMALL)  # the command's options go before it
    out = tmp_path / "figures.json"
    status = main(["landscape", "--domain", "files", "--seed", "9", "--workers", "1", "--quiet", "--out", str(out)])
    found = json.loads(out.read_bytes())
    whole = found["landscapes"][-1]
    assert status == int(not all(verdict["reached"] for verdict in whole["verdicts"].values()))
    assert [one["name"] for one in found["landscapes"]] == ["files", "all"]
    assert len(found["trees"]) == len(whole["standings"]) == len(GRID)
    assert "| files" in capsys.readouterr().out


def test_the_command_refuses_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["landscape", "--quick", "--out", str(tmp_path / "none" / "x.json")]) == 2
    assert "no folder" in capsys.readouterr().err
