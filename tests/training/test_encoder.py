"""A head on a language-model encoder in small: what it reads, how it learns, what it leaves, and the strategy that uses it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ec2_env.bench.landscape_tree import Leaf
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision, load_strategy
from ec2_env.training.encoder_guide import Seen, Watched, guide
from ec2_env.training.encoder_head import fresh_head
from ec2_env.training.encoder_policy import LEAD, load_encoder_policy, shown
from ec2_env.training.encoder_text import sentences
from ec2_env.training.scorers import COST, PRIVACY, SIZE

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers and PEFT warn about one another
SMALL = {"task": "forward_invoice", "language": "en"}
KEY = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)


def plan(**changes: Any) -> Any:
    """Returns a plan of a few episodes."""
    from ec2_env.training.encoder import Plan

    sizes: dict[str, Any] = {"rules": 6, "rule_episodes": 1, "watched": 4, "steps": 2, "lora_steps": 1}
    sizes |= {"episodes": 2, "copies": 2, "validation": 2, "test_seeds": 2, "workers": 1, "depth": 2, "layers": 1, "rank": 2}
    return Plan(settings=SMALL, **{**sizes, **changes})


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Returns the folder of a policy that was trained for a moment, and the scores."""
    from ec2_env.training.encoder import train

    out = tmp_path_factory.mktemp("run") / "policy"
    return out, train(out, 0, plan(), base=tiny)


def test_sentences_leave_out_what_is_the_same_everywhere_and_what_is_told_in_numbers() -> None:
    env = DecisionEnv(**SMALL)
    texts = set()
    for cost in (0.0, 1.0):
        env.weights = RewardWeights(cost=cost)
        env.begin("forward_invoice", "en", "train", 0)
        texts.add(sentences(env.view().prompt()))
    (parts,) = texts
    assert parts[0].startswith("Forward") and parts[0].endswith("English.") and parts[1] == "first step."
    assert all(part.endswith(".") for part in parts)
    assert not any("matters" in part or "Choice" in part or "redacted cloud" in part for part in parts)


def test_a_state_has_the_same_vector_whatever_is_read_beside_it(tiny: Path) -> None:
    from ec2_env.training.encoder_text import fresh_encoder

    texts = ["Pay, late. Entropy high. Written.", "Send, late. Last read_email ok by edge. Written.", "Send, late. Price low."]
    one, other = fresh_encoder(tiny, 2), fresh_encoder(tiny, 2)
    together = one.states(texts)
    alone = np.concatenate([other.states([text]) for text in texts])
    assert together.shape == (3, one.width)
    assert np.allclose(together, alone, atol=1e-6)
    assert np.allclose(one.means(texts).detach().numpy(), together, atol=1e-6)
    assert len({tuple(row) for row in together.round(4).tolist()}) == len(texts)


def test_a_state_is_its_task_and_the_mean_of_its_other_sentences(tiny: Path) -> None:
    from ec2_env.training.encoder_text import fresh_encoder

    encoder = fresh_encoder(tiny, 2)
    both, first, second, other = encoder.states(["Pay, late. Written.", "Pay, late.", "Pay, Written.", "Send, Written."])
    half = encoder.width // 2
    assert np.allclose(both[half:], (first[half:] + second[half:]) / 2, atol=1e-6)
    assert both[:half].tolist() == first[:half].tolist() != other[:half].tolist()


@pytest.mark.parametrize("inputs", ["numbers", "text", "both"])
def test_the_preference_is_always_shown(inputs: Any) -> None:
    features, texts = np.full((1, len(NAMES)), 0.5), np.ones((1, 4))
    features[0, [COST, PRIVACY]] = 0.0, SIZE
    rows = shown(inputs, features, texts)
    assert rows[0, :2].tolist() == [0.0, 0.5]
    assert rows.shape[1] == {"numbers": len(NAMES), "text": 6, "both": len(NAMES) + 4}[inputs]


TREES = (Leaf(Decision.EDGE), Leaf(Decision.ACT))


def watched(title: str, brought: tuple[tuple[float, float, float], ...]) -> Watched:
    return Watched(brought=brought, states=(Seen(features=(0.5,) * len(NAMES), prompt=title),))


def test_the_rule_that_suits_is_told_from_the_task_and_the_preference() -> None:
    edge_is_enough, cloud_helps = ((0.8, 0.0, 0.0), (0.8, 1.0, 0.0)), ((0.2, 0.0, 0.0), (0.8, 1.0, 0.0))
    tasks = np.array([[1.0, 0.0], [0.0, 1.0]] * 20)
    found = guide(TREES, [watched("a", edge_is_enough), watched("b", cloud_helps)] * 20, tasks, 0)
    for cost, decisions in ((0.15, [Decision.EDGE, Decision.ACT]), (2.0, [Decision.EDGE, Decision.EDGE])):
        features = np.full((2, len(NAMES)), 0.5)
        features[:, [COST, PRIVACY]] = cost, 0.25
        assert found.decisions(features, tasks[:2]) == decisions


def test_without_texts_one_rule_suits_all_tasks() -> None:
    brought = ((0.2, 0.0, 0.0), (0.8, 1.0, 0.0))
    found = guide(TREES, [watched("a", brought)] * 4, np.zeros((4, 0)), 0)
    assert found.coefficients.shape == (1, 2, 3)
    assert found.suited(np.zeros((2, 0)), np.array([[0.1, 0.0], [1.0, 0.0]])).tolist() == [1, 0]


def test_a_network_that_says_nothing_leaves_the_decision_to_the_rule() -> None:
    found = guide(TREES, [watched("a", ((0.2, 0.0, 0.0), (0.8, 0.0, 0.0)))] * 4, np.zeros((4, 0)), 0)
    fresh = fresh_head("numbers", found, np.random.default_rng(0).random((4, len(NAMES))), 3, 0)
    assert fresh.scores(np.full((1, len(NAMES)), 0.5), np.zeros((1, 0))).tolist() == [[0, 0, 0, 0, LEAD, 0]]


def test_what_the_copies_of_an_episode_share_cancels() -> None:
    from ec2_env.training.encoder_reinforce import Copy, compared

    env = DecisionEnv(**SMALL)
    group = [Copy(env=env, losses=[-0.1, 0.0], completion=1.0), Copy(env=env, losses=[0.0], completion=1.0)]
    better, worse = compared(group)[1], compared(group)[0]
    assert worse.tolist() == pytest.approx([-0.1, 0.0])
    assert better.tolist() == pytest.approx([0.1])


def test_returns_of_copies_are_those_of_the_env(tiny: Path) -> None:
    from ec2_env.training.encoder_head import LearningHead
    from ec2_env.training.encoder_reinforce import begin
    from ec2_env.training.encoder_reinforce import play as play_copies
    from ec2_env.training.encoder_text import fresh_encoder
    from ec2_env.training.evaluation import episode_terms
    from ec2_env.training.features_policy import Preference

    encoder = fresh_encoder(tiny, 1)
    rows = np.random.default_rng(0).random((4, len(NAMES) + encoder.width))
    led = guide(TREES, [watched("a", ((0.2, 0.0, 0.0), (0.8, 1.0, 0.0)))] * 4, np.zeros((4, 0)), 0)
    head = LearningHead(fresh_head("both", led, rows, 3, 0))
    group = begin(SMALL, replace(KEY, split="train"), Preference(0.4, 0.3), 3)
    batch = play_copies([group], head, encoder, np.random.default_rng(1))
    assert sorted(place for copy in group for place in copy.places) == list(range(len(batch.decisions)))
    for copy in group:
        assert copy.to_go()[0] == pytest.approx(episode_terms(copy.env).scalar(copy.env.weights))


def test_every_policy_is_scored_on_the_same_episodes_and_the_trained_one_comes_last(run: tuple[Path, list[Any]]) -> None:
    assert {len(score.returns) for score in run[1]} == {2}
    assert run[1][-1].name == "encoder"
    assert {"step_routing", "cost=0.5,privacy=0.25"} <= {score.name for score in run[1]}


def test_the_card_says_how_the_policy_was_made_and_chosen(run: tuple[Path, list[Any]], tiny: Path) -> None:
    card = json.loads((run[0] / "card.json").read_text(encoding="utf-8"))
    assert (card["policy"], card["seed"], card["base_model"]) == ("encoder", 0, str(tiny))
    assert set(card["results"]["chosen"]["mean_returns"]) == {"rules", "rules by the text", "reinforced", "tuned"}
    assert len(card["test_suite_sha256"]) == 64 and card["ec2_env"]


def test_two_runs_with_one_seed_leave_the_same_head(run: tuple[Path, list[Any]], tiny: Path, tmp_path: Path) -> None:
    from ec2_env.training.encoder import train

    train(tmp_path, 0, plan(), base=tiny)
    for name in ("start", "reinforced", "tuned/head.npz", "tuned/adapter_model.safetensors"):
        assert (tmp_path / "stages" / name).read_bytes() == (run[0] / "stages" / name).read_bytes(), name
    assert (tmp_path / "head.npz").read_bytes() == (run[0] / "head.npz").read_bytes()


def test_the_figures_of_every_step_are_kept(run: tuple[Path, list[Any]]) -> None:
    lines = [json.loads(line) for line in (run[0] / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["stage"], line["step"]) for line in lines] == [("reinforced", 0), ("reinforced", 1), ("tuned", 0)]
    assert all(np.isfinite([line["mean_return"], line["entropy"]]).all() for line in lines)


def test_every_stage_changes_what_it_trains(run: tuple[Path, list[Any]]) -> None:
    from safetensors.torch import load_file

    stages = run[0] / "stages"
    assert (stages / "start").read_bytes() != (stages / "reinforced").read_bytes()
    adapter = load_file(stages / "tuned" / "adapter_model.safetensors")
    assert any(tensor.abs().sum() > 0 for name, tensor in adapter.items() if "lora_B" in name)


def test_a_run_that_was_stopped_goes_on_with_what_is_finished(run: tuple[Path, list[Any]], tiny: Path, tmp_path: Path) -> None:
    import shutil

    from ec2_env.training.encoder import train

    out = tmp_path / "policy"
    shutil.copytree(run[0], out)
    for name in ("choice", "test"):
        (out / "stages" / name).unlink()
    assert train(out, 0, plan(), base=tiny) == run[1]


@pytest.mark.parametrize("stage", ["reinforced", "tuned"])
def test_a_saved_policy_decides_as_a_strategy_as_it_did_in_training(stage: str, tiny: Path, tmp_path: Path) -> None:
    from ec2_env.training.encoder import train
    from ec2_env.training.encoder_evaluation import played_by

    sizes = {"reinforced": {"lora_steps": 0}, "tuned": {"steps": 0}}[stage]
    scores = train(tmp_path, 1, plan(**sizes), base=tiny)
    strategy = load_strategy(f"learned:{tmp_path}")
    env = DecisionEnv(**SMALL)
    first, again = play(env, strategy, KEY), play(env, strategy, KEY)
    assert first == again
    assert first.result["completion"] == pytest.approx(scores[-1].parts[0].task)
    batched = played_by("", load_encoder_policy(str(tmp_path)), SMALL, [KEY])
    assert batched.parts[0] == scores[-1].parts[0]


def test_a_preference_behind_the_folder_takes_the_place_of_the_weights_of_the_run(run: tuple[Path, list[Any]]) -> None:
    strategy = load_strategy(f"learned:{run[0]},cost=2,privacy=0.5")
    assert strategy.name == "learned:cost=2,privacy=0.5"
    found = play(DecisionEnv(**SMALL), strategy, KEY)
    dear = DecisionEnv(**SMALL, weights={"cost": 2.0, "privacy": 0.5})
    assert found.result == play(dear, load_strategy(f"learned:{run[0]}"), KEY).result


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scale": np.zeros(1)}, "layers do not fit together"),
        ({"center": np.array([np.nan])}, "finite numbers"),
        ({"b1": np.zeros(5)}, "layers do not fit together"),
        ({"inputs": np.array(7)}, "no policy with an encoder"),
        ({"roots": np.array([-1])}, "coefficients have another shape"),
        ({"coefficients": np.zeros((1, 1, 3)), "roots": np.array([999])}, "rules begin nowhere"),
        ({"below": np.array([[0]])}, "no table of nodes"),
    ],
)
def test_what_is_no_head_is_refused(changes: dict[str, Any], said: str, run: tuple[Path, list[Any]], tmp_path: Path) -> None:
    (tmp_path / "card.json").write_bytes((run[0] / "card.json").read_bytes())
    with np.load(run[0] / "head.npz") as file:
        arrays = {**{name: file[name] for name in file.files}, **changes}
    np.savez(tmp_path / "head.npz", **arrays)
    with pytest.raises(ConfigurationError, match=said):
        load_encoder_policy(str(tmp_path))
