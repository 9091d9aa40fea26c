"""docs/tasks.md is what `ec2-env tasks --markdown` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from ec2_env.cli import main


def test_the_page_of_all_tasks_is_up_to_date(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--markdown"]) == 0
    page = (root / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == page, "run: ec2-env tasks --markdown > docs/tasks.md"
