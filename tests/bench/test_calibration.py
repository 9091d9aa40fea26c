"""Abilities are fitted to the published rows: stronger anchors give higher abilities, and only the ability is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ec2_env import cli
from ec2_env.bench import calibration
from ec2_env.bench.calibration import Fit, calibrate, completion
from ec2_env.models import profile as profiles
from ec2_env.models.profile import load_profile
from ec2_env.rollout import EpisodeKey

KEYS = [EpisodeKey(task="forward_invoice", language="en", split="train", seed=seed, trial=0) for seed in range(4)]


@pytest.mark.parametrize("name", ["qwen3.5-9b", "gpt-5.4"])
def test_more_ability_completes_more(name: str) -> None:
    own = load_profile(name)
    assert completion(replace(own, ability=-6.0), KEYS) < completion(replace(own, ability=9.0), KEYS) == 1.0


def test_a_higher_anchor_gives_a_higher_ability(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "ANCHORS", tmp_path / "anchors.toml")
    fits: list[Fit] = []
    for percent in (20, 80):
        (tmp_path / "anchors.toml").write_text(f'[completion]\n"qwen3.5-9b" = {percent}\n', encoding="utf-8")
        fits += calibrate("email-smoke", range(16))
    low, high = fits
    assert low.ability < high.ability
    assert (low.episodes, low.target, high.target) == (16, 0.2, 0.8)
    assert low.reached < high.reached


def test_the_command_shows_the_fit_and_writes_nothing_but_the_ability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = Fit(name="qwen3.5-9b", ability=1.234, target=0.4, reached=0.41, episodes=7)
    monkeypatch.setattr(calibration, "calibrate", lambda suite, seeds: [fit])
    before = (profiles.FOLDER / "qwen3.5-9b.toml").read_text(encoding="utf-8")
    (tmp_path / "qwen3.5-9b.toml").write_text(before, encoding="utf-8")
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    assert cli.main(["calibrate"]) == 0
    assert "error +1.0" in capsys.readouterr().out
    assert (tmp_path / "qwen3.5-9b.toml").read_text(encoding="utf-8") == before
    assert cli.main(["calibrate", "--write"]) == 0
    after = (tmp_path / "qwen3.5-9b.toml").read_text(encoding="utf-8")
    changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert changed == ["ability = 1.234"]
