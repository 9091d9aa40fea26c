"""The quick examples run as they stand, outside the checkout; the slow ones are tested where they train (`tests/training`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def shown_by(root: Path, tmp_path: Path, name: str) -> str:
    """Runs an example in an empty folder, warnings being errors, and returns what it printed."""
    command = [sys.executable, "-W", "error", str(root / "examples" / name)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_an_agent_pays_for_what_it_shows_the_cloud_and_less_when_it_redacts(root: Path, tmp_path: Path) -> None:
    clear, redacted = shown_by(root, tmp_path, "workspace_agent.py").split("redacted:")
    assert clear.count("invoke_cloud") == redacted.count("invoke_cloud") == 1
    assert "exposes" in clear
    assert "exposes" not in redacted


def test_a_task_from_outside_is_sound_and_playable(root: Path, tmp_path: Path) -> None:
    shown = shown_by(root, tmp_path, "custom_task.py")
    assert shown.startswith("sound\n")
    assert shown.count("completion") == 3


@pytest.mark.parametrize("name", ["custom_task.py", "train_agent_grpo.py", "train_decision_policy.py", "workspace_agent.py"])
def test_every_example_says_how_it_is_run(root: Path, name: str) -> None:
    assert f"python examples/{name}" in (root / "examples" / name).read_text(encoding="utf-8")


def test_no_example_is_forgotten_here(root: Path) -> None:
    named = Path(__file__).read_text(encoding="utf-8")
    assert all(path.name in named for path in (root / "examples").glob("*.py"))
