"""Training on features in small: the env of learners, the bandit, PPO and DQN, budgets, fronts, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ec2_env.cli import main
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights, Terms
from ec2_env.strategy import load_strategy
from ec2_env.training import sb3
from ec2_env.training.bandit import Samples, fit_terms, fit_tree, in_rounds
from ec2_env.training.evaluation import Score
from ec2_env.training.feature_evaluation import front, volume
from ec2_env.training.feature_training import FeaturePlan, learned, summary
from ec2_env.training.features_policy import COST, PRIVACY, Preference
from ec2_env.training.lagrangian import MOST, Budget, Multipliers, moved, settle
from ec2_env.training.preferences import SWEEP, USUAL, AnyPreference, FeatureEnv

SMALL = {"task": "forward_invoice", "language": "en"}


def test_the_env_of_learners_brings_the_rewards_of_the_decision_env_under_the_drawn_preference() -> None:
    env = FeatureEnv(SMALL, AnyPreference())
    seen, _ = env.reset(seed=3)
    wanted = Preference(env.inner.weights.cost, env.inner.weights.privacy)
    assert seen[[COST, PRIVACY]].tolist() == pytest.approx(list(wanted))
    other = DecisionEnv(**SMALL, weights=RewardWeights(cost=wanted.cost, privacy=wanted.privacy))
    same, _ = other.reset(seed=3)
    over = False
    for action in (0, 3, 4, 1, 2, 5) * 20:
        assert seen.tolist() == same["features"].tolist()
        seen, reward, over, cut, info = env.step(action)
        same, expected, terminated, truncated, _ = other.step(action)
        assert (reward, over, cut, info) == (expected, terminated or truncated, False, {})
        if over:
            break
    assert over


def test_preferences_are_often_small_sometimes_nothing_and_differ_between_episodes() -> None:
    generator = np.random.default_rng(0)
    drawn = np.array([AnyPreference().draw(generator) for _ in range(500)])
    assert drawn.min() == 0 and drawn.max() <= 2
    assert 0.1 < (drawn == 0).mean() < 0.2
    assert np.median(drawn) < 0.3
    assert USUAL in SWEEP


def samples(states: int = 400) -> Samples:
    """Returns samples in which advice helps where the entropy is high, costs 0.1 everywhere, and nothing else does anything."""
    generator = np.random.default_rng(0)
    features = generator.uniform(0, 1, size=(states, len(NAMES)))
    changes = np.zeros((states, 6, 3))
    changes[:, 3, 0] = 0.4 * (features[:, NAMES.index("entropy")] > 0.5) + generator.normal(0, 0.1, states)
    changes[:, 1:, 1] = 0.1
    return Samples(features, changes)


@pytest.mark.parametrize("fit", [fit_terms, lambda found: fit_tree(found, seed=0)])
def test_fitted_policies_ask_where_it_helps_and_where_it_is_worth_its_cost(fit) -> None:  # type: ignore[no-untyped-def]
    scorer = fit(samples())
    doubt, sure = [0.5] * len(NAMES), [0.5] * len(NAMES)
    doubt[NAMES.index("entropy")], sure[NAMES.index("entropy")] = 0.95, 0.05
    for row in (doubt, sure):
        row[COST] = row[PRIVACY] = 0.5
    assert (int(scorer.scores(doubt).argmax()), int(scorer.scores(sure).argmax())) == (3, 0)


def test_a_high_cost_weight_keeps_the_terms_from_asking() -> None:
    row = [0.5] * len(NAMES)
    row[NAMES.index("entropy")], row[COST] = 0.95, 5.0
    assert int(fit_terms(samples()).scores(row).argmax()) == 0


def test_rounds_give_the_same_policy_again() -> None:
    once, again = (in_rounds(SMALL, 16, 1, 0, fit_terms).arrays()["coefficients"] for _ in range(2))
    assert once.tolist() == again.tolist()
    assert np.isfinite(once).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["ppo", "dqn"])
def test_reinforcement_learners_leave_a_network_and_the_seed_fixes_it(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra 'rl' is not installed", exc_type=ImportError)
    monkeypatch.setattr(sb3, "ENVS", 2)
    monkeypatch.setattr(sb3, "MEASURED", 2)
    monkeypatch.setattr(sb3, "CLONED", 2)
    monkeypatch.setattr(sb3, "PPO", {**sb3.PPO, "n_steps": 16, "batch_size": 32})
    monkeypatch.setattr(sb3, "DQN", {**sb3.DQN, "learning_starts": 8})
    plan = FeaturePlan(method="ppo" if method == "ppo" else "dqn", settings=SMALL, steps=32)
    one, other = (learned(plan, 0)[0].arrays() for _ in range(2))
    assert one["w0"].shape[0] == len(NAMES)
    assert all((one[name] == other[name]).all() for name in one)


def parts(cost: float, exposure: float, spread: float = 0.0) -> list[Terms]:
    return [Terms(0.5, cost + spread * (n % 2 * 2 - 1), exposure) for n in range(40)]


def test_multipliers_rise_while_a_budget_is_overdrawn_and_fall_while_there_is_room() -> None:
    budget = Budget(cost=0.2, exposure=0.1)
    rising = moved(Preference(0.1, 0.1), budget.overdrawn(parts(0.4, 0.01)), 0.1)
    assert rising.cost == pytest.approx(0.2)
    assert rising.privacy < 0.1
    assert moved(Preference(MOST, 0.0), (1.0, -1.0), 0.5) == Preference(MOST, 0.0)
    assert Budget(cost=0.2).overdrawn(parts(0.1, 0.9))[1] == float("-inf")


def test_a_budget_is_for_nearly_all_batches_and_not_for_the_mean() -> None:
    budget = Budget(cost=0.2, batch=4)
    assert budget.overdrawn(parts(0.19, 0.0))[0] < 0
    assert budget.overdrawn(parts(0.19, 0.0, spread=0.1))[0] > 0
    assert budget.kept(parts(0.19, 0.0)) == 1.0
    assert 0.5 < budget.kept(parts(0.19, 0.0, spread=0.1)) < 0.95
    with pytest.raises(ConfigurationError, match="expected a number above 0"):
        Budget(exposure=0)


def test_multipliers_of_training_move_after_every_rollout() -> None:
    ascent = Multipliers(budget=Budget(cost=0.2))
    ascent.ascend()
    assert ascent.values == USUAL
    for part in parts(0.5, 0.0):
        ascent.ended(part)
    ascent.ascend()
    assert ascent.values.cost > USUAL.cost
    drawn = [ascent.draw(np.random.default_rng(n)).cost for n in range(50)]
    assert min(drawn) < ascent.values.cost < max(drawn)


def test_settled_multipliers_keep_the_budget() -> None:
    def play(wanted: Preference, number: int) -> list[Terms]:
        return parts(0.5 / (1 + 4 * wanted.cost), 0.3 / (1 + 4 * wanted.privacy), spread=0.02)

    budget = Budget(cost=0.25, exposure=0.1)
    found = settle(play, budget, USUAL)
    assert max(budget.overdrawn(play(found, 99))) <= 0
    assert found.cost < 1 and found.privacy < 2


def score(*points: tuple[float, float, float]) -> Score:
    found = tuple(Terms(*point) for point in points)
    return Score(name="", returns=(0.0,) * len(found), parts=found, decisions={})


def test_the_front_compares_volumes_on_the_same_episodes() -> None:
    fixed = [score((0.4, 0.0, 0.0), (0.6, 0.0, 0.0))]
    mine = [*fixed, score((0.8, 0.5, 0.0), (1.0, 0.5, 0.0))]
    found = front(mine, fixed)
    assert (found.fixed, found.learned) == (pytest.approx(0.5), pytest.approx(0.7))
    assert found.gain == pytest.approx(0.4)
    assert found.low <= found.gain <= found.high
    assert volume(np.array([[0.5, -0.2, 1.0]])) == 0.0


def test_the_command_saves_a_policy_that_bench_can_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--domain", "inventory", "--minutes", "0.01", "--test-seeds", "1", "--out", str(tmp_path)]
    assert main(["train", "--method", "tree", *flags]) == 0
    said = capsys.readouterr().out
    assert "minus step_routing" in said and "hypervolume over" in said
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["method"] == "tree" and len(card["test_suite_sha256"]) == 64
    assert card["results"]["hypervolume"]["fixed"] > 0
    assert load_strategy(f"learned:{tmp_path}").name == "learned"


def test_a_budget_is_judged_on_batches_of_the_test_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--domain", "inventory", "--minutes", "0.01", "--test-seeds", "1", "--out", str(tmp_path)]
    assert main(["train", "--method", "bandit", "--budget-cost", "0.3", "--budget-exposure", "0.2", *flags]) == 0
    assert "of the test batches within the budget" in capsys.readouterr().out
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["plan"]["budget"] == {"cost": 0.3, "exposure": 0.2, "batch": 32}
    assert card["preference"] == card["results"]["multipliers"]


def test_seeds_are_summed_up_with_an_interval() -> None:
    found = [
        {
            "return": value,
            "over": {"step_routing": {"mean": value, "half_width": 0.1}},
            "hypervolume": {"gain": 0.1, "low": 0.0, "high": 0.2},
        }
        for value in (0.1, 0.3)
    ]
    assert summary(found)[1] == "minus step_routing: +0.200 ± 1.271 (2 seeds)"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--method", "ppo", "--seeds", "0"], "--seeds is 0"),
        (["--method", "bandit", "--budget-cost", "0"], "budget of cost is 0"),
        (["--method", "ppo", "--quick"], "leave it out with --method ppo"),
        (["--method", "tree", "--domain", "emial"], "emial"),
    ],
)
def test_unusable_flags_are_said_in_one_line(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *flags]) == 2
    assert said in capsys.readouterr().err
