"""Experiments: a file says all of it, unknown keys are refused, several seeds are summed up, and a killed run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ec2_env.cli import main
from ec2_env.errors import ConfigurationError, MissingExtra, UnknownName
from ec2_env.reward import Terms
from ec2_env.training import metrics as figures
from ec2_env.training.evaluation import Score
from ec2_env.training.experiment import Experiment, checked, differences, made_with, plan_of, read, resolved, toml
from ec2_env.training.experiment_run import drift
from ec2_env.training.experiment_summary import lines, markdown, student, summary
from ec2_env.training.lagrangian import Budget
from ec2_env.training.methods import METHODS
from ec2_env.training.metrics import Metrics, log_to

SHIPPED = sorted((Path(__file__).parents[2] / "examples" / "experiments").glob("*.toml"))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "one.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_experiments_that_ship_can_be_planned_and_say_how_they_are_run(path: Path) -> None:
    experiment = read(path)
    assert plan_of(experiment).test_seeds >= 1
    assert f"ec2-env train --config examples/experiments/{path.name}" in path.read_text(encoding="utf-8")


def test_there_are_experiments() -> None:
    assert {read(path).method for path in SHIPPED} <= set(METHODS)
    assert len(SHIPPED) >= 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('method = "pppo"', "ppo"),
        ('method = "ppo"\nsteps = 3', "No key of an experiment named 'steps'"),
        ('method = "ppo"\n[plan]\nstep = 3', "'steps'"),
        ('method = "ppo"\n[plan]\nsettings = 3', "No field of the plan of ppo named 'settings'"),
        ('method = "ppo"\n[settings]\ndomian = "email"', "'domain'"),
    ],
)
def test_unknown_names_are_refused_with_what_was_expected(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as refused:
        plan_of(read(written(tmp_path, text)))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("method = ", "cannot be read"),
        ("seeds = 3", "method"),
        ('method = "ppo"\nseeds = 0', "seeds is 0"),
        ('method = "ppo"\nseeds = [1, 1]', r"seeds are \[1, 1\]"),
        ('method = "ppo"\nworkers = 0', "workers is 0"),
        ('method = "ppo"\nminutes = 1e9', "minutes is 1e"),
        ('method = "ppo"\nlog_to = "mail"', "log_to is 'mail'"),
        ('method = "ppo"\n[plan]\nsteps = "many"', "plan of ppo"),
        ('method = "ppo"\n[plan.budget]\ncost = -1', "plan of ppo|budget of cost"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=said):
        plan_of(read(written(tmp_path, text)))


@pytest.mark.parametrize("name", METHODS)
def test_a_resolved_experiment_is_the_same_again(name: str, tmp_path: Path) -> None:
    experiment = checked(Experiment(method=name, seeds=(3, 5), minutes=1.0, settings={"domain": "email", "language": "zh"}))
    plan = plan_of(experiment)
    whole = resolved(experiment, plan)
    again = read(written(tmp_path, toml(whole)))
    assert msgspec.to_builtins(again) == msgspec.to_builtins(whole)
    assert plan_of(again) == plan
    assert not differences(whole, again)
    assert len(whole.made["test_suite_sha256"]) == 64


def test_an_experiment_of_another_version_is_run_with_a_note() -> None:
    experiment = Experiment(method="tree", settings={"domain": "email"}, plan={"test_seeds": 1})
    now = resolved(experiment, plan_of(experiment))
    assert drift(experiment, now) == drift(now, now) == []
    before = msgspec.structs.replace(now, made={**now.made, "test_suite_sha256": "0" * 64})
    assert drift(before, now) == [
        "note: since this experiment was run, these have changed: test episodes; its figures may differ"
    ]


def test_minutes_scale_a_plan_and_fields_go_before_them() -> None:
    plan = plan_of(Experiment(method="ppo", minutes=1.0, plan={"states": 7, "budget": {"cost": 0.5}}))
    assert (plan.steps, plan.states, plan.budget) == (25_000, 7, Budget(cost=0.5))


def score(name: str, *values: float) -> Score:
    parts = tuple(Terms(value, 0.0, 0.0) for value in values)
    return Score(name=name, returns=values, parts=parts, decisions={0: 1})


def test_seeds_are_summed_up_with_both_kinds_of_chance() -> None:
    fixed = [score("step_routing", 0.1, 0.3), score("edge_only", 0.2, 0.4)]
    runs = {
        0: [*fixed, score("cost=0.5,privacy=0", 0.3, 0.5), score("ppo", 0.3, 0.5)],
        1: [*fixed, score("cost=0.5,privacy=0", 0.5, 0.7), score("ppo", 0.5, 0.7)],
    }
    found = summary(runs)
    assert found["best_fixed"] == "edge_only"
    assert found["return"]["mean"] == pytest.approx(0.5)
    assert found["return"]["sd_between_seeds"] == pytest.approx(0.2 / 2**0.5)
    assert found["return"]["half_width_over_seeds"] == pytest.approx(12.706 * 0.1)
    assert found["over"]["step_routing"]["mean"] == pytest.approx(0.3)
    assert found["over"]["step_routing"]["half_width_over_episodes"] == pytest.approx(0.0)
    assert found["hypervolume"]["gain"]["by_seed"] == pytest.approx([0.4 / 0.3 - 1, 0.6 / 0.3 - 1])
    assert lines(found)[1].startswith("minus edge_only (0.300, the best fixed strategy on these episodes): +0.200 ± 0.000")
    assert "| return minus step_routing | 0.300 |" in markdown(found, "a command")


def test_one_seed_has_no_spread_and_a_policy_without_references_has_no_differences() -> None:
    found = summary({4: [score("agent", 0.2, 0.4)]})
    assert found["return"]["sd_between_seeds"] is None
    assert (found["over"], found["best_fixed"]) == ({}, None)
    assert "over seeds" not in lines(found)[0]


def test_a_budget_is_judged_for_every_seed() -> None:
    found = summary({0: [score("ppo", 0.2, 0.4)]}, Budget(cost=0.1))
    assert found["batches_within_budget"]["mean"] == 1.0


def test_students_t_goes_on_beyond_its_table() -> None:
    scipy = pytest.importorskip("scipy.stats")
    for freedom in (4, 9, 10, 20, 99):
        assert student(freedom) == pytest.approx(scipy.t.ppf(0.975, freedom), abs=1e-3)


COMMAND = ("train", "--domain", "inventory", "--minutes", "0.02", "--test-seeds", "1")


def test_two_seeds_are_trained_in_their_folders_and_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "two"
    assert main([*COMMAND, "--method", "tree", "--seeds", "2", "--out", str(out)]) == 0
    first = {name: (out / name / "weights.npz").read_bytes() for name in ("seed0", "seed1")}
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert found["seeds"] == [0, 1] and len(found["return"]["by_seed"]) == 2
    assert (out / "seed0" / "metrics.jsonl").exists()
    capsys.readouterr()
    assert main([*COMMAND, "--method", "tree", "--seeds", "2", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "seed 0: finished before" in said and "racing" not in said
    assert main(["train", "--config", str(out / "experiment.toml"), "--out", str(tmp_path / "again")]) == 0
    assert {name: (tmp_path / "again" / name / "weights.npz").read_bytes() for name in first} == first
    assert main([*COMMAND, "--method", "bandit", "--seeds", "2", "--out", str(out)]) == 2
    assert "holds another experiment (different: method)" in capsys.readouterr().err


def test_a_run_that_was_killed_goes_on_to_the_same_policy(tmp_path: Path) -> None:
    flags = (*COMMAND, "--method", "bandit", "--out")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main([*flags, str(whole)]) == 0
    run = subprocess.Popen([sys.executable, "-m", "ec2_env", *flags, str(killed)], stdout=subprocess.DEVNULL, cwd=tmp_path)
    stages = killed / "stages"
    for _ in range(5000):
        if (stages / "states_1_0").exists() or run.poll() is not None:
            break
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert (stages / "states_1_0").exists() and not (killed / "weights.npz").exists()
    before = (stages / "states_1_0").stat().st_mtime_ns
    assert main([*flags, str(killed)]) == 0
    assert (stages / "states_1_0").stat().st_mtime_ns == before
    assert (killed / "weights.npz").read_bytes() == (whole / "weights.npz").read_bytes()
    assert (killed / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()


def test_figures_go_into_the_file_alone_unless_asked(tmp_path: Path) -> None:
    log_to(None)
    with Metrics(tmp_path) as one:
        one.log("ppo", 1, entropy=0.5, kl=float("nan"))
        one.log("ppo", 2, entropy=0.4)
        one.log("choice", 2, value=1)
        one.rewind("ppo", 1)
    told = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert told == [{"stage": "ppo", "step": 1, "entropy": 0.5}, {"stage": "choice", "step": 2, "value": 1.0}]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


@pytest.mark.parametrize("tracker", ["trackio", "wandb"])
def test_a_tracker_that_is_asked_for_gets_the_figures(tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    run = SimpleNamespace(log=got.append, finish=lambda: got.append("finished"))
    monkeypatch.setitem(sys.modules, tracker, SimpleNamespace(init=lambda **named: run))
    log_to(tracker)
    try:
        with Metrics(tmp_path) as one:
            one.log("ppo", 7, entropy=0.5)
    finally:
        log_to(None)
    assert got == [{"ppo/entropy": 0.5, "ppo/step": 7}, "finished"]


def test_tensorboard_gets_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    writer = SimpleNamespace(add_scalar=lambda *figure: got.append(figure), close=lambda: got.append("closed"))
    monkeypatch.setattr(figures, "_module", lambda tracker: SimpleNamespace(SummaryWriter=lambda log_dir: writer))
    log_to("tensorboard")
    try:
        with Metrics(tmp_path) as one:
            one.log("ppo", 7, entropy=0.5)
    finally:
        log_to(None)
    assert got == [("ppo/entropy", 0.5, 7), "closed"]


def test_a_tracker_that_is_not_installed_is_said_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtra, match="pip install wandb"):
        log_to("wandb")
    with pytest.raises(ConfigurationError, match="expected tensorboard, trackio, wandb"):
        log_to("mail")


def test_versions_and_digests_stand_in_the_file() -> None:
    made = made_with(plan_of(Experiment(method="tree", settings={"domain": "email"}, plan={"test_seeds": 1})))
    assert {"ec2_env", "code", "test_suite_sha256", "python", "packages"} == set(made)
