"""`ec2-env train` refuses what it cannot do before it loads anything heavy, and scales the plan, not the clock."""

from __future__ import annotations

import pytest

from ec2_env.cli import main
from ec2_env.training.quick import Plan, scaled


@pytest.mark.parametrize(
    ("flags", "said"),
    [([], "--quick"), (["--quick", "--minutes", "0"], "minutes is 0"), (["--quick", "--seed", "-1"], "--seed is -1")],
)
def test_unusable_flags_are_said_in_one_line(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *flags]) == 2
    assert said in capsys.readouterr().err


def test_minutes_scale_the_amount_of_training_and_nothing_else() -> None:
    plan = Plan()
    half = scaled(plan, 0.5)
    assert (half.states, half.examples, half.practice) == (plan.states // 2, plan.examples // 2, plan.practice // 2)
    assert (half.test_seeds, half.rate, half.depth) == (plan.test_seeds, plan.rate, plan.depth)
    assert scaled(plan, 1) == plan
