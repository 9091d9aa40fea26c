"""GRPO, RLOO, DPO and KTO move a tiny model towards the decisions that are better, and read each prompt once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ec2_env.cli import main
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision
from ec2_env.training.states import State

pytestmark = pytest.mark.filterwarnings("ignore")  # Transformers, PEFT and TRL warn about one another
PROMPTS = ("Entropy high. The first words are the same.\nChoice:", "Entropy low. The first words are not.\nChoice:")
GOOD = (Decision.ACT, Decision.EDGE)


@pytest.fixture
def plan() -> Any:
    pytest.importorskip("trl", exc_type=ImportError)
    from ec2_env.training.quick import Plan

    return Plan(prompts=2, passes=4, rate=0.02, penalty=0.0, layers=1, rank=2, generations=6)


@pytest.fixture
def policy(tiny: Path, plan: Any) -> Iterator[Any]:
    from ec2_env.training.adapter import fresh_policy

    yield fresh_policy(tiny, plan, seed=0)


def states() -> list[State]:
    key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=0, trial=0)
    return [
        State(key=key, choices=(), prompt=prompt, features=(), values=tuple(0.1 * (one is good) for one in Decision))
        for prompt, good in zip(PROMPTS, GOOD, strict=True)
    ]


def chances(policy: Any) -> list[float]:
    """Returns the log chance of the good decision after each prompt."""
    return [row[good] for row, good in zip(policy.scores(PROMPTS), GOOD, strict=True)]


def silent(stage: str, step: int, name: str, value: float) -> None:
    """Takes nothing down."""


@pytest.mark.parametrize("learner", ["grpo", "rloo"])
@pytest.mark.parametrize("drawn", [False, True])
def test_reinforcement_raises_the_chance_of_the_better_decision(policy: Any, plan: Any, learner: str, drawn: bool) -> None:
    from ec2_env.training.grpo import improve

    before = chances(policy)
    improve(policy, states(), replace(plan, drawn=drawn), 0, silent, learner)
    assert all(later > earlier for later, earlier in zip(chances(policy), before, strict=True))
    assert list(policy.model.peft_config) == ["default"]


def test_a_penalty_keeps_the_policy_near_its_start(tiny: Path, plan: Any) -> None:
    from ec2_env.training.adapter import fresh_policy
    from ec2_env.training.grpo import improve

    moved = []
    for penalty in (0.0, 1.0):
        policy = fresh_policy(tiny, plan, seed=0)
        before = chances(policy)
        improve(policy, states(), replace(plan, penalty=penalty), 0, silent)
        moved.append(sum(abs(later - earlier) for later, earlier in zip(chances(policy), before, strict=True)))
    assert moved[1] < moved[0] / 2


def test_trying_every_decision_follows_the_exact_gradient(policy: Any, plan: Any) -> None:
    """One step of plain gradient ascent on the expected value, by hand, and by GRPO with the same optimizer."""
    import torch

    from ec2_env.training.grpo import improve

    seen = states()
    policy.model.train()
    found = policy.log_chances([policy.tokens(state.prompt) for state in seen])
    advantages = torch.tensor([state.values for state in seen])
    expected = (found.exp() * (advantages - advantages.mean(1, keepdim=True))).sum(-1).mean()
    (-expected).backward()
    wanted = {name: one.grad.clone() for name, one in policy.model.named_parameters() if one.grad is not None}
    policy.model.zero_grad()
    caught: dict[str, Any] = {}

    def catch(name: str, tensor: Any) -> None:
        caught[name] = tensor.grad.clone()

    for name, one in policy.model.named_parameters():
        if name in wanted:
            one.register_post_accumulate_grad_hook(partial(catch, name))
    improve(policy, seen, replace(plan, passes=1), 0, silent)
    assert caught.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert torch.allclose(caught[name], gradient, atol=1e-7), name


@pytest.mark.parametrize("learner", ["dpo", "kto"])
def test_logged_decisions_raise_the_better_over_the_worse(policy: Any, plan: Any, learner: str) -> None:
    from ec2_env.training.logged import prefer

    before = chances(policy)
    prefer(policy, states(), replace(plan, passes=8), 0, silent, learner)
    assert all(later > earlier for later, earlier in zip(chances(policy), before, strict=True))
    assert list(policy.model.peft_config) == ["default"]


def test_states_without_a_better_decision_are_refused(policy: Any, plan: Any) -> None:
    from ec2_env.training.logged import prefer

    with pytest.raises(ConfigurationError, match="lower the margin"):
        prefer(policy, states(), replace(plan, margin=0.5), 0, silent)


def test_a_batch_reads_equal_prompts_once_and_what_all_begin_with_once(policy: Any) -> None:
    rows = [policy.tokens(f"One two three four five six seven eight nine ten. Then {n}.") for n in (1, 2, 1, 2)]
    alone = [policy.log_chances([row])[0] for row in rows]
    policy.read = 0
    together = policy.log_chances(rows)
    assert policy.read < len(rows[0]) + len(rows[1])
    for one, other in zip(alone, together, strict=True):
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-5)
    assert together[0].tolist() == together[2].tolist()


def test_collected_datasets_are_read_as_states_and_others_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", minversion="19", exc_type=ImportError)
    from ec2_env.training.logged import read_states

    flags = ["--task", "forward_invoice", "--language", "en", "--seeds", "1", "--quiet", "--out"]
    for kind in ("kto", "decisions", "sft"):
        assert main(["collect", "--kind", kind, *flags, str(tmp_path / kind)]) == 0
    found, others = read_states(tmp_path / "decisions"), read_states(tmp_path / "kto")
    assert {len(state.values) for state in found} == {len(Decision)}
    assert {state.prompt for state in others} <= {state.prompt for state in found}
    assert len({(state.key, state.prompt, state.values) for state in others}) == len(others)
    with pytest.raises(ConfigurationError, match="no values of decisions"):
        read_states(tmp_path / "sft")
    with pytest.raises(ConfigurationError, match="ec2-env collect"):
        read_states(tmp_path / "nothing")
