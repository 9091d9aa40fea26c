"""Policies on features are saved as plain arrays, load without torch, follow a preference, and refuse what is no policy."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.features import NAMES
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Decision, load_strategy
from ec2_env.training.features_policy import FeaturePolicy, Preference, load_policy, save_policy
from ec2_env.training.scorers import COST, PRIVACY, TREE, Advised, Guided, Network, Questions, Scorer, Simple, encoded

KEY = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)


def network(kind: str = "tanh", extra: int = 0) -> Network:
    generator = np.random.default_rng(0)
    ends = (len(NAMES) + extra, 5, len(Decision))
    layers = tuple((generator.normal(size=(a, b)), generator.normal(size=b)) for a, b in pairwise(ends))
    return Network(layers, "tanh" if kind == "tanh" else "relu")


def by_cost() -> Questions:
    """Returns a tree that lets the cloud act unless cost weighs more than 0.5."""
    whole = [np.array(column) for column in ([COST, -1, -1], [0, 1, 2], [1, 0, 0], [2, 0, 0], [0, Decision.ACT, Decision.EDGE])]
    return Questions(whole[0], np.array([0.5, 0.0, 0.0]), whole[2], whole[3], whole[4])


def guided(margin: float = 0.5) -> Guided:
    """Returns a scorer with two rules: `by_cost`, which completes more and costs, and the edge alone."""
    width = encoded(np.zeros((1, len(NAMES)))).shape[1]
    coefficients = np.random.default_rng(1).normal(size=(width, len(Decision), 3))
    return Guided(simple(), coefficients, margin)


def simple() -> Simple:
    return Simple(by_cost(), np.array([0, 2]), np.array([[0.6, 0.8, 0.0], [0.4, 0.0, 0.0]]))


def advised() -> Advised:
    """Returns a network that adds 5 to the rule's decision."""
    return Advised(simple(), network(extra=len(Decision)), 5.0 * np.eye(len(Decision)))


@pytest.mark.parametrize("scorer", [network(), network("relu"), by_cost(), guided(), advised()])
def test_a_saved_policy_decides_as_before(scorer: Scorer, tmp_path: Path) -> None:
    save_policy(tmp_path, scorer, {"method": "test"}, Preference(0.3, 0.4))
    loaded = load_policy(str(tmp_path))
    assert loaded.preference == Preference(0.3, 0.4)
    for row in np.random.default_rng(2).uniform(-1, 2, size=(50, len(NAMES))).tolist():
        assert loaded.scorer.scores(row).tolist() == scorer.scores(row).tolist()
    assert json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))["method"] == "test"


def test_the_preference_takes_the_place_of_the_weights_of_the_run(tmp_path: Path) -> None:
    save_policy(tmp_path, by_cost(), {})
    env = DecisionEnv(task="forward_invoice", language="en")
    free, dear = load_strategy(f"learned:{tmp_path}"), load_strategy(f"learned:{tmp_path},cost=0.8")
    play(env, free, KEY)
    assert set(env.decisions) == {Decision.ACT}
    play(env, dear, KEY)
    assert set(env.decisions) == {Decision.EDGE}
    assert (free.name, dear.name) == ("learned", "learned:cost=0.8")
    with pytest.raises(ConfigurationError, match="unknown option 'speed'"):
        load_strategy(f"learned:{tmp_path},speed=1")


@pytest.mark.parametrize(("cost", "own"), [(0.1, Decision.ACT), (0.4, Decision.EDGE)])
def test_the_rule_is_the_one_that_suits_the_preference_and_others_have_to_beat_it_by_the_margin(
    cost: float, own: Decision
) -> None:
    features = [0.1] * len(NAMES)
    features[COST], features[PRIVACY] = cost, 0.2
    changes = np.tensordot(encoded(np.array([features]))[0], guided().coefficients, 1) @ np.array([1.0, -cost, -0.2])
    expected = changes - changes[own]
    expected[own] = 0.5
    assert guided().scores(features).tolist() == pytest.approx(expected.tolist())
    assert int(guided(margin=100.0).scores(features).argmax()) == own


def test_deciding_needs_no_torch(tmp_path: Path) -> None:
    save_policy(tmp_path, network(), {})
    code = (
        "import sys; from ec2_env.strategy import load_strategy; from ec2_env.envs import DecisionEnv; "
        f"env = DecisionEnv(task='forward_invoice'); env.reset(seed=0); load_strategy('learned:{tmp_path}').decide(env.view()); "
        "assert not {'torch', 'transformers', 'stable_baselines3'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=120).returncode == 0


def test_an_advised_network_is_told_the_decision_of_the_rule() -> None:
    features = [0.1] * len(NAMES)
    told = [0.0] * len(Decision)
    told[Decision.ACT] = 1.0
    alone = advised().network.scores([*features, *told])
    alone[Decision.ACT] += 5.0
    assert advised().scores(features).tolist() == pytest.approx(alone.tolist())


def spoiled_guided(name: str) -> dict[str, np.ndarray]:  # type: ignore[type-arg]  # of any kind
    """Returns the arrays of a guided policy with something wrong."""
    arrays = {**guided().arrays()}
    match name:
        case "rules that begin nowhere":
            arrays["roots"] = np.array([0, 3])
        case "no rules":
            arrays["roots"], arrays["terms"] = np.zeros(0, np.int64), np.zeros((0, 3))
        case "terms of another number of rules":
            arrays["terms"] = arrays["terms"][:1]
        case "a margin for each decision":
            arrays["margin"] = np.zeros(6)
        case "coefficients of other features":
            arrays["coefficients"] = arrays["coefficients"][1:]
    return arrays


@pytest.mark.parametrize(
    "name",
    [
        "rules that begin nowhere",
        "no rules",
        "terms of another number of rules",
        "a margin for each decision",
        "coefficients of other features",
    ],
)
def test_guided_arrays_that_do_not_fit_are_refused(name: str, tmp_path: Path) -> None:
    save_policy(tmp_path, guided(), {})
    np.savez(tmp_path / "weights.npz", **spoiled_guided(name))  # type: ignore[arg-type]  # numpy types further arguments as flags
    with pytest.raises(ConfigurationError, match="holds no policy on features"):
        load_policy(str(tmp_path))


def spoiled(name: str) -> dict[str, np.ndarray]:  # type: ignore[type-arg]  # of any kind
    """Returns the arrays of a policy with something wrong."""
    arrays = {**by_cost().arrays()} if name.startswith("tree") else {**network().arrays()}
    match name:
        case "tree that goes round":
            arrays["below"] = np.array([0, 0, 0])
        case "tree without such a feature":
            arrays["feature"] = np.array([99, -1, -1])
        case "tree without such a decision":
            arrays["decision"] = np.array([0, 6, 0])
        case "tree of fractions":
            arrays["above"] = arrays["above"].astype(float)
        case "tree without a column":
            del arrays[TREE[0]]
        case "network of other shape":
            arrays["w1"] = arrays["w1"][:, :3]
        case "network with a gap":
            arrays["b0"] = np.full(5, np.nan)
        case "network of words":
            arrays["b0"] = np.array(["a"] * 5)
    return arrays


@pytest.mark.parametrize(
    "name",
    [
        "tree that goes round",
        "tree without such a feature",
        "tree without such a decision",
        "tree of fractions",
        "tree without a column",
        "network of other shape",
        "network with a gap",
        "network of words",
    ],
)
def test_arrays_that_do_not_fit_are_refused(name: str, tmp_path: Path) -> None:
    save_policy(tmp_path, by_cost() if name.startswith("tree") else network(), {})
    np.savez(tmp_path / "weights.npz", **spoiled(name))  # type: ignore[arg-type]  # numpy types further arguments as flags
    with pytest.raises(ConfigurationError, match="holds no policy on features"):
        load_policy(str(tmp_path))


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("[]", "holds no policy"),
        ("{", "holds no policy"),
        ('{"policy": "tanh"}', "holds no policy"),
        ('{"policy": "tanh", "format": 1, "features": ["step"], "preference": null}', "other features"),
    ],
)
def test_a_card_that_says_something_else_is_refused(card: str, said: str, tmp_path: Path) -> None:
    save_policy(tmp_path, network(), {})
    (tmp_path / "card.json").write_text(card, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=said):
        load_policy(str(tmp_path))


def test_pickles_are_never_read(tmp_path: Path) -> None:
    save_policy(tmp_path, network(), {})
    arrays = {**network().arrays(), "b0": np.array([{"a": 1}] * 5, dtype=object)}
    np.savez(tmp_path / "weights.npz", **arrays)  # type: ignore[arg-type]  # as above
    with pytest.raises(ConfigurationError, match="holds no policy on features"):
        load_policy(str(tmp_path))


def test_equal_scores_leave_the_step_to_the_edge() -> None:
    flat = Network(((np.zeros((len(NAMES), len(Decision))), np.zeros(len(Decision))),))
    assert FeaturePolicy(scorer=flat).choose([0.0] * len(NAMES)) is Decision.EDGE
