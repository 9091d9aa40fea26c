"""What is said while a run goes on goes to standard error, and says whether dollars are simulated."""

from __future__ import annotations

import pytest

from ec2_env.bench.grid import Grid
from ec2_env.bench.progress import Bar, Quiet
from ec2_env.bench.statistics import Spent, Totals


def test_a_quiet_run_says_what_begins_and_a_silent_one_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    for watch in (Quiet(), Quiet(silent=True)):
        with watch:
            watch.stage("playing", 1_000, 2_000)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "ec2-env: playing: 2,000 episodes, 1,000 of them recorded before\n"


@pytest.mark.parametrize("simulated", [True, False])
def test_a_bar_counts_episodes_and_money_and_marks_simulated_dollars(
    simulated: bool, grid: Grid, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = Totals(grid)
    totals.spent = Spent(usd=1.5)
    with Bar(simulated=simulated) as bar:
        bar.stage("scoring", 0, 3)
        bar.stage("playing", 2, 10)
        bar.advance(3, totals)
        bar.say("[one] endpoint is slow")
        (task,) = bar._bar.tasks
        assert (task.description, task.completed, task.total) == ("playing", 5, 10)
        assert task.fields["money"] == ("$1.50 simulated" if simulated else "$1.50")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "ec2-env: [one] endpoint is slow" in shown.err
