"""Generalization: every domain is held out once, both sides play the same episodes, and what is finished is not done again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ec2_env.cli import main
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.task import task_domains
from ec2_env.training.generalization import Outcome, compared, over_domains, over_languages, over_models, some_keys, table


def test_every_domain_is_held_out_once_and_never_trained_on_there() -> None:
    found = over_domains(4, {"edge": "sim:qwen3.5-9b"})
    held = [one.target["domain"].split(",") for one in found]
    assert sorted(name for part in held for name in part) == sorted(task_domains())
    for one in found:
        source, target = DecisionEnv(**one.source), DecisionEnv(**one.target)
        assert not set(source.names) & set(target.names)
        assert len(source.names) + len(target.names) == sum(map(len, task_domains().values()))
    with pytest.raises(ConfigurationError, match="folds is 1"):
        over_domains(1, {})


def test_an_env_of_several_domains_has_the_tasks_of_all_of_them() -> None:
    names = DecisionEnv(domain="email,chat").names
    assert names == tuple(sorted([*task_domains()["email"], *task_domains()["chat"]]))
    with pytest.raises(UnknownName, match="chat"):
        DecisionEnv(domain="email,chta")


def test_languages_and_models_change_and_nothing_else_does() -> None:
    there, back = over_languages({"domain": "email"})
    assert (there.source, there.target) == ({"domain": "email", "language": "en"}, {"domain": "email", "language": "zh"})
    assert back.source == there.target
    (one,) = over_models("sim:qwen3.5-27b", "sim:deepseek-v4-pro", {"edge": "sim:qwen3.5-9b", "domain": "email"})
    assert one.target == {"edge": "sim:qwen3.5-27b", "cloud": "sim:deepseek-v4-pro", "domain": "email"}


def test_few_episodes_are_spread_over_all_tasks() -> None:
    keys = some_keys({"domain": "email"}, 1, 3)
    assert len({key.task for key in keys}) == 3
    assert some_keys({"domain": "email"}, 1, None) == some_keys({"domain": "email"}, 1, 10**6)


def outcome(name: str, gain: float) -> Outcome:
    fixed = {"step_routing": [0.1, 0.2], "edge_only": [0.2, 0.3]}
    return Outcome(name=name, fixed=fixed, source=[[0.2 + gain, 0.3 + gain]] * 2, target=[[0.4, 0.5]])


def test_transfers_are_compared_apart_and_together() -> None:
    rows = compared([outcome("one", 0.1), outcome("other", 0.3)])
    assert [row["transfer"] for row in rows] == ["one", "other", "all together"]
    assert rows[0]["best_fixed"] == "edge_only"
    assert rows[0]["minus_best_fixed"] == {"mean": pytest.approx(0.1), "half_width": pytest.approx(0.0)}
    assert rows[0]["minus_trained_on_target"]["mean"] == pytest.approx(-0.1)
    assert rows[2]["episodes"] == 4 and rows[2]["minus_step_routing"]["mean"] == pytest.approx(0.3)
    assert "| all together | 4 | 0.450 | +0.000 ± " in table(rows)


def test_a_policy_of_one_pair_of_models_plays_with_another_beside_the_one_trained_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["generalize", "--over", "models", "--domain", "contacts", "--minutes", "0.01", "--test-seeds", "1"]
    flags += ["--episodes", "2", "--out", str(tmp_path)]
    assert main(flags) == 0
    first = capsys.readouterr().out
    rows = json.loads((tmp_path / "generalization.json").read_text(encoding="utf-8"))
    assert [row["transfer"] for row in rows] == ["to_other_models"]
    assert "training with bandit" in first
    assert main(flags) == 0
    assert "training with bandit" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--over", "domains", "--domain", "email"], "leave --domain out"),
        (["--over", "domains", "--folds", "99"], "folds is 99"),
        (["--over", "languages", "--episodes", "0"], "--episodes is 0"),
    ],
)
def test_unusable_flags_are_said_in_one_line(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generalize", *flags]) == 2
    assert said in capsys.readouterr().err
