"""Training on features in small: the env of learners, the bandit, PPO and DQN, budgets, fronts, and the command."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ec2_env.bench.landscape_tree import Leaf
from ec2_env.cli import main
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights, Terms
from ec2_env.strategy import Decision, load_strategy
from ec2_env.training import sb3
from ec2_env.training.bandit import Samples, changes_of, doubted, fit_tree, grown, guided, in_rounds
from ec2_env.training.evaluation import Score
from ec2_env.training.feature_evaluation import front, volume
from ec2_env.training.feature_training import FeaturePlan, learned
from ec2_env.training.features_policy import Preference
from ec2_env.training.lagrangian import MOST, Budget, Multipliers, moved, settle
from ec2_env.training.metrics import Metrics
from ec2_env.training.preferences import SWEEP, USUAL, AnyPreference, FeatureEnv
from ec2_env.training.rules import NEVER, Rules, raced, winners
from ec2_env.training.scorers import COST, PRIVACY, Advised, Network
from ec2_env.training.stages import Stages

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


EDGE_RULE = Rules(trees=(Leaf(0),), terms=np.array([[0.4, 0.0, 0.0]]))


def asking(cost: float, doubt: bool) -> list[float]:
    row = [0.5] * len(NAMES)
    row[NAMES.index("entropy")], row[COST], row[PRIVACY] = (0.95 if doubt else 0.05), cost, 0.5
    return row


@pytest.mark.parametrize("fit", [partial(guided, EDGE_RULE), partial(grown, seed=0)])
def test_fitted_policies_ask_where_it_helps(fit) -> None:  # type: ignore[no-untyped-def]
    scorer = next(iter(fit(samples()).values()))
    assert [int(scorer.scores(asking(0.5, doubt)).argmax()) for doubt in (True, False)] == [3, 0]


def test_a_policy_leaves_its_rule_only_by_the_margin() -> None:
    candidates = guided(EDGE_RULE, samples())
    decisions = {name: int(scorer.scores(asking(0.5, True)).argmax()) for name, scorer in candidates.items()}
    assert decisions["margin 0.02"] == 3
    assert decisions[f"margin {NEVER:g}"] == 0
    assert int(candidates["margin 0"].scores(asking(5.0, True)).argmax()) == 0


def test_doubt_takes_from_what_decisions_complete_and_leaves_the_edge_alone() -> None:
    found = samples()
    less = doubted(found, 2.0)
    assert (less.changes[:, 0] == found.changes[:, 0]).all()
    assert (less.changes[:, 3, 0] < found.changes[:, 3, 0]).all()
    assert (less.changes[:, :, 1:] == found.changes[:, :, 1:]).all()
    assert fit_tree(found, 0).kind == "tree"


def test_rounds_give_the_same_policy_again_and_take_up_what_was_found(tmp_path: Path) -> None:
    def rounds(folder: str) -> list[float]:
        stages = Stages(tmp_path / folder, {"seed": 0})
        found = in_rounds(SMALL, 16, 1, 0, partial(guided, EDGE_RULE), EDGE_RULE.alone(), stages)
        return next(iter(found.values())).arrays()["coefficients"].ravel().tolist()

    once = rounds("one")
    assert rounds("other") == once
    (tmp_path / "one" / "stages" / "states_2_0").unlink()
    assert rounds("one") == once
    assert np.isfinite(once).all()


def test_coefficients_shrink_what_is_mostly_luck_towards_the_mean() -> None:
    generator = np.random.default_rng(0)
    noise = Samples(samples().features, generator.normal(0, 0.4, (400, 6, 3)))
    told = np.array([changes_of(noise)[1:, 1:, 0]])
    assert np.abs(told).max() < 0.2


def test_rules_race_on_the_same_episodes_and_the_best_for_each_preference_stay() -> None:
    once, again = (raced(SMALL, 6, 1, 0) for _ in range(2))
    assert once.told() == again.told() == Rules.of(once.told()).told()
    terms = np.array([[0.9, 1.0, 0.5], [0.5, 0.0, 0.0], [0.4, 0.1, 0.1]])
    trees = [Leaf(4), Leaf(0), Leaf(3)]
    assert winners(trees, terms, 1) == [Leaf(4), Leaf(0)]
    best = Rules(trees=tuple(trees), terms=terms)
    for weight, decision in ((0.0, 4), (1.0, 0)):
        row = [0.0] * len(NAMES)
        row[COST] = row[PRIVACY] = weight
        assert best.simple().answer(row) == decision
    assert len(once.described()) == len(once.trees)


def test_a_guide_takes_away_what_the_rule_gets_in_the_same_episode() -> None:
    plain, measured = FeatureEnv(SMALL, AnyPreference()), FeatureEnv(SMALL, AnyPreference(), EDGE_RULE.simple())
    totals = []
    for env in (plain, measured):
        seen, _ = env.reset(seed=5)
        assert seen[len(NAMES) :].tolist() == ([1, 0, 0, 0, 0, 0] if env is measured else [])
        total, over = 0.0, False
        while not over:
            _, reward, over, _, _ = env.step(0)
            total += float(reward)
        totals.append(total)
    assert totals[1] == pytest.approx(0.0)
    assert plain.inner.weights == measured.inner.weights


def test_an_episode_of_learners_goes_on_from_its_state() -> None:
    env, other = (FeatureEnv(SMALL, AnyPreference(), EDGE_RULE.simple()) for _ in range(2))
    env.reset(seed=3)
    env.step(3)
    env.step(0)
    other.reset(seed=9)
    other.restore(json.loads(json.dumps(env.state())))
    for action in (1, 0, 4) * 20:
        (one, reward, over, *_), (two, same, ended, *_) = env.step(action), other.step(action)
        assert (one.tolist(), reward, over) == (two.tolist(), same, ended)
        if over:
            break
    assert env.reset()[0].tolist() == other.reset()[0].tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["ppo", "dqn"])
def test_reinforcement_learners_leave_a_network_and_the_seed_fixes_it(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra 'rl' is not installed", exc_type=ImportError)
    tiny(monkeypatch)
    plan = FeaturePlan(
        method="ppo" if method == "ppo" else "dqn", settings=SMALL, steps=128, rules=4, rule_episodes=1, validation=2
    )
    one, other = (
        learned(plan, 0, Stages(tmp_path / name, {"seed": 0}), lambda text: None)[0].arrays() for name in ("one", "other")
    )
    assert one["w0"].shape[0] == len(NAMES) + (len(Decision) if method == "ppo" else 0)
    assert all((one[name] == other[name]).all() for name in one)
    lines = [json.loads(line) for line in (tmp_path / "one" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["stage"] for line in lines} >= {method}


def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the learners so small that they are done in a second."""
    monkeypatch.setattr(sb3, "ENVS", 2)
    monkeypatch.setattr(sb3, "PPO", {**sb3.PPO, "n_steps": 16, "batch_size": 32})
    monkeypatch.setattr(sb3, "DQN", {**sb3.DQN, "learning_starts": 8})


class Stopped(Exception):
    """Stands for a process that was killed."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["ppo", "dqn"])
def test_a_learner_that_was_stopped_goes_on_to_the_same_policy_bit_for_bit(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra 'rl' is not installed", exc_type=ImportError)
    tiny(monkeypatch)
    rules = raced(SMALL, 4, 1, 0)

    def train(folder: str, saves: int) -> dict[str, Any]:
        class Fragile(sb3.Checkpoint):
            left = saves

            def save(self, model: Any, kept: Any) -> None:
                super().save(model, kept)
                self.left -= 1
                if not self.left:
                    raise Stopped

        monkeypatch.setattr(sb3, "Checkpoint", Fragile)
        stages = Stages(tmp_path / folder, {"seed": 0})
        given = (SMALL, AnyPreference(), rules) if method == "ppo" else (SMALL, AnyPreference())
        learner: Any = sb3.train_ppo if method == "ppo" else sb3.train_dqn
        with Metrics(tmp_path / folder) as metrics:
            return {name: one.arrays() for name, one in learner(*given, 256, 0, stages, metrics).items()}

    whole = train("whole", 10**6)
    with pytest.raises(Stopped):
        train("stopped", 3)
    resumed = train("stopped", 10**6)
    assert list(resumed) == list(whole)
    if method == "ppo":
        start, guide = Advised(rules.simple(), *_parts(whole["start"])), rules.simple()
        rows = np.random.default_rng(0).uniform(0, 1, (50, len(NAMES))).tolist()
        assert [int(start.scores(row).argmax()) for row in rows] == [guide.answer(row) for row in rows]
    assert all((resumed[name][key] == whole[name][key]).all() for name in whole for key in whole[name])
    assert (tmp_path / "stopped" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


def _parts(arrays: dict[str, Any]) -> tuple[Network, Any]:
    count = sum(name[0] == "w" for name in arrays)
    return Network(tuple((arrays[f"w{n}"], arrays[f"b{n}"]) for n in range(count))), arrays["direct"]


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
    flags = ["--domain", "inventory", "--minutes", "0.02", "--test-seeds", "1", "--out", str(tmp_path)]
    assert main(["train", "--method", "tree", *flags]) == 0
    said = capsys.readouterr().out
    assert "minus step_routing" in said and "hypervolume over" in said
    assert "± " in (tmp_path / "summary.md").read_text(encoding="utf-8")
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["method"] == "tree" and len(card["test_suite_sha256"]) == 64
    assert card["results"]["hypervolume"]["fixed"] > 0
    assert load_strategy(f"learned:{tmp_path}").name == "learned"


def test_a_budget_is_judged_on_batches_of_the_test_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--domain", "inventory", "--minutes", "0.02", "--test-seeds", "1", "--out", str(tmp_path)]
    assert main(["train", "--method", "bandit", "--budget-cost", "0.3", "--budget-exposure", "0.2", *flags]) == 0
    assert "of the test batches within the budget" in capsys.readouterr().out
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["plan"]["budget"] == {"cost": 0.3, "exposure": 0.2, "batch": 32}
    assert card["preference"] == card["results"]["multipliers"]


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
