"""`ec2-env run`, `tasks` and `demo` as a user meets them."""

from __future__ import annotations

import json

import pytest

from ec2_env import cli, trace
from ec2_env.commands.run import show
from ec2_env.task import task_domains, tasks


def test_episode_is_shown_step_by_step_with_what_crossed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "forward_invoice", "--strategy", "cloud_only"]) == 0
    out = capsys.readouterr().out
    assert "step 0: act" in out and "crossed:" in out and "exposed iban-1 at 1.0" in out
    for axis in ("task     completion", "cost     $", "privacy  ", "return   "):
        assert any(line.startswith(axis) for line in out.splitlines()), axis
    shown = next(line for line in out.splitlines() if line.startswith("privacy  "))
    assert "% of what the work needs, " in shown and shown.endswith("% of the rest")
    assert "gpt-5.4 (simulated)" in out and "\x1b" not in out


def test_trajectory_is_one_line_of_json_and_the_same_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "forward_invoice", "--json", "--language", "zh", "--split", "train", "--seed", "3", "--trial", "1"]
    cli.main(words)
    first = capsys.readouterr().out
    cli.main(words)
    assert capsys.readouterr().out == first
    found = trace.from_json(first)
    assert (found.task, found.language, found.split, found.seed, found.trial) == ("forward_invoice", "zh", "train", 3, 1)


def test_router_that_needs_offline_scores_gets_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "forward_invoice", "--strategy", "task_routing:ratio=1"]) == 0
    assert "step 0: act" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["forward_invoise"], "Did you mean 'forward_invoice'"),
        (["forward_invoice", "--edge", "sim:qwen3.5-9"], "Did you mean"),
        (["forward_invoice", "--strategy", "step_routing:limit=1"], "unknown option 'limit'"),
    ],
)
def test_wrong_name_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_color_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    show("\x1b[31mred\x1b[0m")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show("\x1b[31mred\x1b[0m")
    monkeypatch.setenv("NO_COLOR", "1")
    show("\x1b[31mred\x1b[0m")
    assert capsys.readouterr().out == "red\n\x1b[31mred\x1b[0m\nred\n"


def test_every_task_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tasks"]) == 0
    first_words = [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()]
    assert set(tasks.names()) <= set(first_words)


def test_tasks_as_json_tell_everything_and_can_be_chosen_by_domain(capsys: pytest.CaptureFixture[str]) -> None:
    domain, names = next(iter(task_domains().items()))
    assert cli.main(["tasks", "--json", "--domain", domain]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == list(names)
    for one in found:
        assert 0 < one["solution_steps"] <= one["max_steps"] and one["languages"] and one["example"]
    assert cli.main(["tasks", "--domain", "nowhere"]) == 2


def test_demo_shows_three_strategies_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo"]) == 0
    out = capsys.readouterr().out
    for name in ("edge_only", "cloud_only", "adaptive_assistance:redacted", "simulated", "ec2-env bench"):
        assert name in out
    assert max(map(len, out.splitlines())) <= 120 and "\x1b" not in out


def test_demo_finds_an_episode_that_shows_the_point() -> None:
    from ec2_env.bench.demo import find_episode

    alone, cloud, mixed = (one.trajectory.result for one in find_episode())
    assert alone["status"] == "fail" and alone["privacy"] == 1.0
    assert cloud["status"] == "pass" and cloud["privacy"] < 0.5
    assert mixed["status"] == "pass" and mixed["privacy"] > 0.5 and mixed["cloud_usd"] < cloud["cloud_usd"]
