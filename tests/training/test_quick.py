"""The whole training run in small: labels, warm start, GRPO, the saved adapter, and the strategy that uses it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import load_strategy

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers, PEFT and TRL warn about one another


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Returns the folder of an adapter trained for two steps, and the scores."""
    from ec2_env.training.quick import Plan, train

    out = tmp_path_factory.mktemp("run") / "adapter"
    plan = Plan(
        settings={"task": "forward_invoice", "language": "en"},
        rules=6,
        rule_episodes=1,
        watched=6,
        states=12,
        draws=1,
        validation=4,
        visited=20,
        examples=8,
        batch=4,
        rounds=1,
        practice=4,
        copy_states=8,
        prompts=2,
        choice=2,
        untrained=False,
        layers=1,
        rank=2,
        test_seeds=2,
        workers=1,
    )
    return out, train(out, 0, plan, base=tiny)


def test_every_policy_is_scored_on_the_same_episodes(run: tuple[Path, list[Any]]) -> None:
    scores = {score.name: score for score in run[1]}
    assert {
        "random",
        "edge_only",
        "best rule",
        "rules by the task",
        "teacher",
        "SFT",
        "SFT + GRPO",
        "teacher, looking ahead",
    } <= set(scores)
    assert {len(score.returns) for score in scores.values()} == {2}


def test_training_changes_the_adapter(run: tuple[Path, list[Any]]) -> None:
    from safetensors.torch import load_file

    weights = load_file(run[0] / "adapter_model.safetensors")
    trained = [tensor for name, tensor in weights.items() if "lora_B" in name]
    assert trained
    assert all(tensor.abs().sum() > 0 for tensor in trained)


def test_the_card_says_how_the_adapter_was_made(run: tuple[Path, list[Any]], tiny: Path) -> None:
    card = json.loads((run[0] / "card.json").read_text(encoding="utf-8"))
    assert card["seed"] == 0
    assert card["plan"]["practice"] == 4
    assert card["versions"]["ec2_env"]
    assert card["results"]["SFT + GRPO"]["episodes"] == 2
    assert json.loads((run[0] / "adapter_config.json").read_text(encoding="utf-8"))["base_model_name_or_path"] == str(tiny)
    assert not (run[0] / "stages" / "warm_start" / "README.md").exists()
    assert "| kept policy |" in (run[0] / "README.md").read_text(encoding="utf-8")


def test_the_saved_adapter_decides_as_a_strategy_and_always_the_same(run: tuple[Path, list[Any]]) -> None:
    strategy = load_strategy(f"learned:{run[0]}")
    assert strategy.name == "learned"
    key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)
    env = DecisionEnv(task="forward_invoice", language="en")
    first, again = play(env, strategy, key), play(env, strategy, key)
    assert first == again
    score = run[1][-1]
    assert score.name == "kept policy"
    assert first.result["completion"] == pytest.approx(score.parts[0].task)


@pytest.mark.parametrize("better", ["SFT", "SFT + GRPO"])
def test_what_is_better_on_held_out_train_episodes_is_kept(
    tiny: Path, run: tuple[Path, list[Any]], tmp_path: Path, better: str
) -> None:
    from ec2_env.training.quick import Plan, train

    shutil.copytree(run[0], tmp_path / "again")
    for name in ("SFT", "SFT + GRPO"):
        (tmp_path / "again" / "stages" / f"held out, {name}").write_text("[1.0]" if name == better else "[0.0]")
    plan = Plan(**json.loads((run[0] / "card.json").read_text(encoding="utf-8"))["plan"])
    scores = {score.name: score for score in train(tmp_path / "again", 0, plan, base=tiny)}
    assert scores["kept policy"].returns == scores[better].returns
    stage = {"SFT": "warm_start", "SFT + GRPO": "grpo0"}[better]
    name = "adapter_model.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (run[0] / "stages" / stage / name).read_bytes()
    assert f"kept is {better}: on 2 held-out train episodes" in (tmp_path / "again" / "README.md").read_text(encoding="utf-8")


def test_a_folder_without_an_adapter_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("peft", exc_type=ImportError)
    env = DecisionEnv(task="forward_invoice", language="en")
    key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)
    with pytest.raises(ConfigurationError, match="ec2-env train"):
        play(env, load_strategy(f"learned:{tmp_path}"), key)


def test_two_runs_with_one_seed_train_the_same_adapter(tiny: Path, run: tuple[Path, list[Any]], tmp_path: Path) -> None:
    from ec2_env.training.quick import Plan, train

    plan = json.loads((run[0] / "card.json").read_text(encoding="utf-8"))["plan"]
    train(tmp_path, 0, Plan(**plan), base=tiny)
    assert (tmp_path / "adapter_model.safetensors").read_bytes() == (run[0] / "adapter_model.safetensors").read_bytes()


def test_a_run_that_was_stopped_goes_on_to_the_same_adapter(
    tiny: Path, run: tuple[Path, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ec2_env.training import language_run
    from ec2_env.training.quick import Plan, train

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    plan = Plan(**json.loads((run[0] / "card.json").read_text(encoding="utf-8"))["plan"])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(language_run, "improve", stop)
        train(tmp_path, 0, plan, base=tiny)
    assert not (tmp_path / "adapter_model.safetensors").exists()
    monkeypatch.setattr(language_run, "warm_start", stop)
    scores = train(tmp_path, 0, plan, base=tiny)
    assert scores == run[1]
    assert (tmp_path / "adapter_model.safetensors").read_bytes() == (run[0] / "adapter_model.safetensors").read_bytes()


@pytest.mark.parametrize("given", [{"learner": "rloo", "drawn": True}, {"learner": "dpo", "start": "base"}, {"learner": "kto"}])
def test_every_method_ends_in_the_same_table_and_card(
    tiny: Path, run: tuple[Path, list[Any]], tmp_path: Path, given: dict[str, Any]
) -> None:
    from ec2_env.training.quick import Plan, train

    plan = json.loads((run[0] / "card.json").read_text(encoding="utf-8"))["plan"]
    scores = train(tmp_path, 0, Plan(**{**plan, **given, "margin": 0.0001}), base=tiny)
    name = given["learner"].upper()
    assert ("kept policy" if given.get("start") != "base" else name) == scores[-1].name
    assert any(score.name.endswith(name) for score in scores)
    assert {"random", "edge_only", "teacher, looking ahead"} <= {score.name for score in scores}
    assert json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))["plan"]["learner"] == given["learner"]
    assert f"| {scores[-1].name} |" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_policy_for_many_preferences_is_swept_over_them(tiny: Path, run: tuple[Path, list[Any]], tmp_path: Path) -> None:
    from ec2_env.training.experiment_summary import summary
    from ec2_env.training.preferences import SWEEP
    from ec2_env.training.quick import Plan, train

    plan = json.loads((run[0] / "card.json").read_text(encoding="utf-8"))["plan"]
    scores = train(tmp_path, 0, Plan(**{**plan, "preferences": 0.5, "front": True, "bound": False}), base=tiny)
    assert [score.name for score in scores].count("cost=0.15,privacy=0.25") == 1
    assert sum(score.name.startswith("cost=") for score in scores) == len(SWEEP)
    assert scores[-1].name == "kept policy"
    assert summary({0: scores})["hypervolume"]["learned"] > 0
    swept = {score.name: score for score in scores}["cost=2,privacy=0.25"]
    strategy = load_strategy(f"learned:{tmp_path},cost=2,privacy=0.25")
    assert strategy.name == "learned:cost=2,privacy=0.25"
    key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)
    found = play(DecisionEnv(task="forward_invoice", language="en"), strategy, key)
    assert found.result["completion"] == pytest.approx(swept.parts[0].task)


def test_a_dataset_of_one_preference_is_not_mixed_with_many(tmp_path: Path) -> None:
    from ec2_env.training.quick import Plan, train

    with pytest.raises(ConfigurationError, match="one preference"):
        train(tmp_path, 0, Plan(learner="dpo", data="data", preferences=0.5))


def test_one_experiment_plays_its_references_once(run: tuple[Path, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    from ec2_env.training import references
    from ec2_env.training.quick import Plan

    plan = Plan(**json.loads((run[0] / "card.json").read_text(encoding="utf-8"))["plan"])
    monkeypatch.setattr(references, "played", lambda *_: pytest.fail("played again"))
    kept = references.references(run[0] / "seed1", plan.settings, plan.test_keys(), plan.bound, plan.untrained)
    assert list(kept) == run[1][: len(kept)]
