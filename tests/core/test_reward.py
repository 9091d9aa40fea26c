"""Rewards in their three forms say the same, and add up to the result."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.episode_env import REWARD_SPACE
from ec2_env.errors import ConfigurationError
from ec2_env.reference import reference_usd
from ec2_env.reward import RewardWeights, Terms, privacy, reward_weights, terms
from ec2_env.sensitive import SensitiveUnit
from ec2_env.task import task_domains, tasks
from ec2_env.testing import play as solve
from ec2_env.trace import CloudCall, Ended, Exposed


def unit(number: int, weight: float = 1.0) -> SensitiveUnit:
    return SensitiveUnit(
        id=f"u{number}", kind="phone", value=str(number), owner="x", weight=weight, necessity="none", dimension="identity"
    )


def call(usd: str = "0.1", *exposures: tuple[str, float]) -> CloudCall:
    return CloudCall(
        step=0,
        mode="act",
        share="transcript",
        redact=False,
        status="ok",
        sent=(),
        texts=0,
        reply="",
        tokens_raw=0,
        tokens_cached=0,
        tokens_out=0,
        usd=usd,
        latency_s=0.0,
        exposures=tuple(Exposed(u, level, "verbatim", 0, 0, 1) for u, level in exposures),
    )


def played(seed: int, **settings: Any) -> tuple[DecisionEnv, list[Any], list[dict[str, Any]]]:
    """Returns an env after an episode of random decisions, its rewards and its infos."""
    env = DecisionEnv(**settings)
    env.reset(seed=seed)
    rng, rewards, infos, over = random.Random(seed), [], [], False
    while not over:
        _, reward, terminated, truncated, info = env.step(rng.choice((0, 0, 2, 3, 4, 5)))
        rewards.append(reward)
        infos.append(info)
        over = terminated or truncated
    return env, rewards, infos


@pytest.mark.parametrize("seed", range(6))
def test_the_terms_of_an_episode_add_up_to_its_result(seed: int) -> None:
    env, _, infos = played(seed)
    result, session = infos[-1]["result"], env.session
    assert session is not None
    assert sum(info["reward_terms"]["task"] for info in infos) == result["completion"]
    reference = reference_usd(session.episode.name, session.episode.language, env.cloud.card)
    assert sum(info["reward_terms"]["cost"] for info in infos) * reference == pytest.approx(result["cloud_usd"])
    weights = {unit.id: unit.weight for unit in session.episode.units}
    exposed = sum(weights[e["unit"]] * e["level"] for e in result["exposed"]) / sum(weights.values())
    assert sum(info["reward_terms"]["exposure"] for info in infos) == pytest.approx(exposed)
    shown: dict[str, float] = {}
    for info in infos:
        for found in info["exposures"]:
            shown[found["unit"]] = max(shown.get(found["unit"], 0.0), found["level"])
    assert shown == {e["unit"]: e["level"] for e in result["exposed"]}
    assert infos[-1]["cloud_usd"] == result["cloud_usd"]


@pytest.mark.parametrize("seed", range(3))
def test_scalar_vector_and_constraint_forms_agree(seed: int) -> None:
    weights = {"task": 2.0, "cost": 0.5, "privacy": 0.3}
    _, scalars, infos = played(seed, weights=weights)
    env, vectors, _ = played(seed, reward="vector")
    assert env.reward_space == REWARD_SPACE
    for scalar, vector, info in zip(scalars, vectors, infos, strict=True):
        assert isinstance(scalar, float)
        assert vector in REWARD_SPACE
        assert scalar == pytest.approx(float(np.dot(vector, [2.0, 0.5, 0.3])))
        assert info["cost"] == {name: info["reward_terms"][name] for name in ("cost", "exposure")}
        assert vector.tolist() == [info["reward_terms"]["task"], -info["cost"]["cost"], -info["cost"]["exposure"]]


def test_exposure_is_counted_once_and_by_what_is_new() -> None:
    units, known = [unit(1), unit(2, 3.0)], {}
    first = terms([call("0.1", ("u1", 0.3))], known, units, 1.0)
    second = terms([call("0.1", ("u1", 1.0)), call("0", ("u2", 0.7))], known, units, 1.0)
    again = terms([call("0.2", ("u1", 0.7), ("u2", 0.3))], known, units, 1.0)
    assert first == Terms(0.0, 0.1, pytest.approx(0.3 / 4))
    assert second.exposure == pytest.approx((0.7 + 3 * 0.7) / 4)
    assert again == Terms(0.0, 0.2, 0.0)
    assert known == {"u1": 1.0, "u2": 0.7}


def test_cost_is_money_as_a_share_of_the_reference() -> None:
    assert terms([call("0.05"), call("0.01")], {}, [], 0.12).cost == pytest.approx(0.5)


def test_the_task_term_comes_with_the_end() -> None:
    end = Ended(3, "pass", 0.8, {}, 0, (), (), True, "", {})
    assert terms([end], {}, [unit(1)], 1.0) == Terms(0.8, 0.0, 0.0)


def test_privacy_looks_at_what_was_touched_or_sent() -> None:
    units = [unit(1), unit(2), unit(3, 2.0)]
    assert privacy(units, {}, []) == 1.0
    assert privacy(units, {}, ["u1"]) == 1.0
    assert privacy(units, {"u1": 1.0}, ["u1"]) == 0.0
    assert privacy(units, {"u1": 0.3}, ["u1", "u3"]) == pytest.approx(1 - 0.3 / 3)
    assert privacy(units, {"u2": 1.0}, []) == 0.0


@pytest.mark.parametrize(
    "values", [{"task": -1}, {"cost": "1"}, {"privacy": float("nan")}, {"task": True}, {"tasks": 1}, {"cost": 1e9}]
)
def test_weights_that_cannot_be_used_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        reward_weights(values)


def test_the_oracle_without_the_cloud_earns_the_whole_task_weight() -> None:
    env = WorkspaceEnv(task="forward_invoice", language="en", weights=RewardWeights(task=3.0))
    env.reset(seed=0)
    total = sum(env.step(action)[1] for action in solve(env.episode).actions)
    assert total == 3.0


def test_neither_never_nor_always_calling_is_best_for_every_task() -> None:
    def mean(decision: int, name: str) -> float:
        env, total = DecisionEnv(task=name), 0.0
        for seed in range(3):
            env.reset(seed=seed)
            over = False
            while not over:
                _, reward, terminated, truncated, _ = env.step(decision)
                total, over = total + reward, terminated or truncated
        return total / 3

    better = [mean(4, name) > mean(0, name) for name in task_domains()["email"]]
    assert any(better)
    assert not all(better)


def test_the_reference_is_positive_and_grows_with_the_price() -> None:
    from ec2_env.models.loading import load_model

    card = load_model("sim:gpt-5.4").card
    for name in tasks.names():
        for language in tasks.get(name).languages:
            assert 0.001 < reference_usd(name, language, card) < 2
