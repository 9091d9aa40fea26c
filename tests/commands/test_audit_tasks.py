"""`ec2-env audit-tasks` and `ec2-env doctor` say what is wrong with tasks, and what they earn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ec2_env.cli import main
from ec2_env.task import tasks


def test_an_audit_prints_a_line_for_each_task_and_every_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit-tasks", "forward_invoice", "data_request", "--seeds", "2", "--mutant-seeds", "1", "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["forward_invoice", "data_request"]
    assert any(line.startswith("refuse") and "on safety tasks 0.0000" in line for line in lines)
    assert lines[-1] == "Every limit is kept."


def test_an_audit_is_the_same_from_two_processes(capsys: pytest.CaptureFixture[str]) -> None:
    tables = []
    for workers in ("1", "2"):
        main(
            [
                "audit-tasks",
                "forward_invoice",
                "triage_inbox",
                "--seeds",
                "1",
                "--mutant-seeds",
                "1",
                "--workers",
                workers,
                "--json",
            ]
        )
        tables.append(json.loads(capsys.readouterr().out))
    assert tables[0] == tables[1]
    assert tables[0]["tasks"][0]["wrong"] == tables[0]["tasks"][0]["caught"] > 20


def test_an_audit_refuses_what_it_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit-tasks", "forward_invoce"]) == 2
    assert "forward_invoice" in capsys.readouterr().err
    assert main(["audit-tasks", "--seeds", "0"]) == 2
    assert "--seeds is 0" in capsys.readouterr().err


@pytest.fixture
def strangers(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sound task, one that is paid for nothing, and one that is none."""
    monkeypatch.setattr(tasks, "added", dict(tasks.added))
    shutil.copy(root / "examples" / "custom_task.py", tmp_path / "sound_one.py")
    text = (root / "examples" / "custom_task.py").read_text(encoding="utf-8")
    paid = text + "\nfrom dataclasses import replace\nfrom ec2_env.task import Check\n_build = TASK.build\n"
    paid += "TASK = replace(TASK, build=lambda w: replace(_build(w), checks=(Check('x', 1.0, lambda s: 1.0),)))\n"
    (tmp_path / "paid_for_nothing.py").write_text(paid, encoding="utf-8")
    (tmp_path / "no_task.py").write_text("x = 1\n", encoding="utf-8")
    return tmp_path


def test_the_doctor_names_what_is_wrong_with_each_file_and_what_to_do(
    strangers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(strangers), "--seeds", "2"]) == 1
    shown = capsys.readouterr().out
    assert "sound_one.py: sound" in shown
    assert "the agent 'nothing' scores 1.0" in shown
    assert "pay only for work that was done" in shown
    assert "does not define TASK; end it with TASK = Task(...)" in shown


def test_the_doctor_asks_for_a_file_that_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path / "nothing_here")]) == 2
    assert "there is no task file" in capsys.readouterr().err
