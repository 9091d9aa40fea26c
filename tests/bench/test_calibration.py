"""Simulated models are fitted to single models alone, and to no row with two models."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from ec2_env import cli
from ec2_env.bench import calibration, compare, own_runs
from ec2_env.bench.calibration import Fit, Reached, Target, anchors, calibrate, fit, reached, suite_keys, summary
from ec2_env.errors import ConfigurationError
from ec2_env.models import profile as profiles
from ec2_env.models.profile import load_profile
from ec2_env.rollout import EpisodeKey

KEYS = [
    EpisodeKey(task="forward_invoice", language="en", split="train", seed=seed, trial=trial)
    for seed in range(4)
    for trial in range(3)
]


@pytest.mark.parametrize("name", ["qwen3.5-9b", "gpt-5.4"])
def test_more_ability_completes_more(name: str) -> None:
    own = load_profile(name)
    low, high = (reached(replace(own, ability=ability), KEYS) for ability in (-6.0, 9.0))
    assert low.completion < high.completion == 1.0
    assert low.pass_hat_3 < high.pass_hat_3 == 1.0


def test_a_steadier_model_repeats_its_outcomes() -> None:
    keys = [replace(key, seed=seed, trial=trial) for key in KEYS[:1] for seed in range(12) for trial in range(3)]
    own = replace(load_profile("qwen3.5-9b"), ability=0.9, curiosity=0.0, repair=0.0)
    loose, steady = (reached(replace(own, steadiness=share), keys) for share in (0.0, 0.999))
    assert steady.pass_hat_3 > loose.pass_hat_3


def test_pass_hat_3_counts_instances_that_pass_in_all_runs_and_none_with_fewer() -> None:
    assert summary([[1.0, 0.7, 0.9], [1.0, 0.69, 1.0], [1.0]]) == Reached(completion=pytest.approx(6.29 / 7), pass_hat_3=0.5)


def test_the_fit_reaches_its_target_as_far_as_few_episodes_allow() -> None:
    own = load_profile("qwen3.5-9b")
    low = fit(own, Target(completion=0.2), KEYS)
    high = fit(own, Target(completion=0.8, pass_hat_3=0.75), KEYS)
    assert low.ability < high.ability
    assert low.steadiness == own.steadiness
    assert abs(high.reached.completion - 0.8) < 0.15
    assert (low.episodes, high.target.pass_hat_3) == (12, 0.75)


def test_the_anchors_are_the_six_single_models_and_the_episodes_those_of_the_table() -> None:
    assert sorted(anchors()) == ["deepseek-v4-flash", "deepseek-v4-pro", "glm-5.1", "gpt-5.4", "qwen3.5-27b", "qwen3.5-9b"]
    keys = suite_keys()
    assert len(keys) == 384
    assert {(key.split, key.seed) for key in keys} == {("test", 0)}


def test_calibration_cannot_read_the_rows_with_two_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It imports nothing that knows the published table, and it runs with that table out of reach."""
    source = ast.parse(Path(str(calibration.__file__)).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(source) if isinstance(node, ast.ImportFrom)}
    assert not any("compare" in str(module) or "reproduction" in str(module) for module in imported)
    monkeypatch.setattr(compare, "published", lambda: pytest.fail("the published table was read"))
    monkeypatch.setattr(calibration, "ANCHORS", tmp_path / "anchors.toml")
    (tmp_path / "anchors.toml").write_text('[completion]\n"qwen3.5-9b" = 50\n', encoding="utf-8")
    assert [found.name for found in calibrate(KEYS[:3])] == ["qwen3.5-9b"]
    text = calibration.Path(profiles.__file__).with_name("anchors.toml").read_text(encoding="utf-8")
    assert not any(name in text for name in ("sketch", "routing", "adaptive", "46.32", "55.58", "65.01"))


def test_the_command_shows_the_fit_and_writes_nothing_but_what_was_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Fit(
        name="qwen3.5-9b",
        ability=1.234,
        steadiness=0.35,
        target=Target(completion=0.4, pass_hat_3=0.1),
        reached=Reached(completion=0.41, pass_hat_3=0.12),
        episodes=7,
    )
    monkeypatch.setattr(calibration, "calibrate", lambda keys, pool=None: [found])
    before = (profiles.FOLDER / "qwen3.5-9b.toml").read_text(encoding="utf-8")
    (tmp_path / "qwen3.5-9b.toml").write_text(before, encoding="utf-8")
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    assert cli.main(["calibrate", "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "error +1.0" in shown and "error +2.0" in shown
    assert (tmp_path / "qwen3.5-9b.toml").read_text(encoding="utf-8") == before
    assert cli.main(["calibrate", "--workers", "1", "--write"]) == 0
    after = (tmp_path / "qwen3.5-9b.toml").read_text(encoding="utf-8")
    changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert changed == ["ability = 1.234", "steadiness = 0.35"]


def test_a_profile_is_fitted_to_a_users_own_run_and_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["bench", "--suite", "email-smoke", "--strategy", "edge_only", "--trials", "3", "--seeds", "4", "--workers", "1"]
    assert cli.main([*run, "--edge", "sim:qwen3.5-27b", "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert cli.main(["calibrate", "--from", str(tmp_path / "run"), "--out", str(tmp_path)]) == 0
    assert "error" in capsys.readouterr().out
    found = load_profile(str(tmp_path / "qwen3.5-27b.toml"))
    assert (found.name, found.family, found.parameters) == ("qwen3.5-27b", "qwen3.5", 27e9)
    [own] = own_runs.fit_run(tmp_path / "run")
    assert (found.ability, found.steadiness) == (own.profile.ability, own.profile.steadiness)


def test_a_folder_without_a_model_that_worked_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"results\.jsonl"):
        own_runs.fit_run(tmp_path)
    (tmp_path / "results.jsonl").touch()
    with pytest.raises(ConfigurationError, match="alone"):
        own_runs.fit_run(tmp_path)
