"""Replays: equal to the last byte, and precise about what is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env import cli
from ec2_env.bench.repeating import graded_again, repeat
from ec2_env.bench.replaying import differences, replay, replay_calls
from ec2_env.envs import WorkspaceEnv
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import record
from ec2_env.trace import Ended, ToolRan, Trajectory, from_json, to_json

Change = Callable[[dict[str, Any]], None]


def trajectories(stored: Path) -> list[Trajectory]:
    return [from_json(line) for line in (stored / "trajectories.jsonl").read_bytes().splitlines()]


@pytest.fixture
def copied(stored: Path, tmp_path: Path) -> Path:
    """Returns a copy of the run that a test may change."""
    return Path(shutil.copytree(stored, tmp_path / "copy"))


def change(file: Path, number: int, how: Change) -> None:
    """Changes one line of a file, from 1."""
    lines = file.read_text(encoding="utf-8").splitlines()
    held = json.loads(lines[number - 1])
    how(held)
    lines[number - 1] = msgspec.json.encode(held, order="sorted").decode()
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def with_call(trajectory: Trajectory, **changes: Any) -> Trajectory:
    """Returns the trajectory with its first call changed."""
    events = list(trajectory.events)
    index = next(i for i, event in enumerate(events) if isinstance(event, ToolRan))
    events[index] = msgspec.structs.replace(events[index], **changes)
    return msgspec.structs.replace(trajectory, events=tuple(events))


def test_every_episode_of_a_run_replays_bit_for_bit(stored: Path) -> None:
    found = list(replay(stored))
    assert len(found) == 14
    assert [one for one in found if one.differences] == []
    assert all(one.again and one.calls for one in found)


def test_records_alone_are_enough_with_simulated_models(copied: Path) -> None:
    (copied / "trajectories.jsonl").unlink()
    found = list(replay(copied, sample=5))
    assert len(found) == 5
    assert all(one.again and not one.calls and not one.differences for one in found)


def test_a_file_of_trajectories_is_replayed_call_by_call(stored: Path) -> None:
    found = list(replay(stored / "trajectories.jsonl", (2, 3)))
    assert [one.number for one in found] == [2, 3]
    assert all(one.calls and not one.again and not one.differences for one in found)


def test_another_result_of_a_call_is_named_with_its_event(stored: Path) -> None:
    wrong = with_call(trajectories(stored)[0], result="something else")
    found = replay_calls(wrong)
    assert len(found) == 1
    assert "(tool " in found[0].where and found[0].where.endswith(".result")
    assert "something else" in found[0].recorded


def test_another_end_and_another_figure_are_named(stored: Path) -> None:
    one = trajectories(stored)[0]
    end = next(event for event in one.events if isinstance(event, Ended))
    better = msgspec.structs.replace(end, completion=0.98765)
    wrong = msgspec.structs.replace(
        one,
        events=(*(e for e in one.events if e is not end), better),
        result={**one.result, "completion": 0.98765, "cloud_usd": 9.0},
    )
    assert {found.where.rpartition(" ")[2] for found in replay_calls(wrong)} >= {"(end).completion", "result.cloud_usd"}


def test_only_the_first_unequal_event_of_two_trajectories_is_named(stored: Path) -> None:
    one = trajectories(stored)[0]
    shorter = msgspec.structs.replace(with_call(one, by="agent"), events=with_call(one, by="agent").events[:-1], seed=7)
    found = differences(one, shorter)
    assert [where.where.partition(" ")[0] for where in found] == ["trajectory.seed", "event", "events"]
    assert differences(one, one) == ()


@pytest.mark.parametrize(
    ("file", "how", "named"),
    [
        ("results.jsonl", lambda held: held["result"].update(latency_s=1.0), "record.result.latency_s"),
        ("results.jsonl", lambda held: held.update(total=5.0), "record.total"),
        ("results.jsonl", lambda held: held.update(sha256="0" * 64), "sha256"),
        ("trajectories.jsonl", lambda held: held["events"][0].update(step=9), "event 0 (decision).step"),
    ],
)
def test_a_changed_line_is_found(copied: Path, file: str, how: Change, named: str) -> None:
    change(copied / file, 3, how)
    found = {one.number: [difference.where for difference in one.differences] for one in replay(copied, (2, 3))}
    assert found[2] == []
    assert named in found[3]


def test_a_run_of_real_models_is_only_replayed_call_by_call(copied: Path) -> None:
    settings = json.loads((copied / "manifest.json").read_text(encoding="utf-8"))
    for card in settings["settings"]["models"].values():
        card["simulated"] = False
    (copied / "manifest.json").write_text(json.dumps(settings), encoding="utf-8")
    assert [(one.again, one.differences) for one in replay(copied, (1,))] == [(False, ())]
    (copied / "trajectories.jsonl").unlink()
    (found,) = replay(copied, (1,))
    assert not found.checked and "not checked" in str(found)


def test_calls_that_a_record_keeps_in_part_and_faults_are_taken_as_recorded() -> None:
    env = WorkspaceEnv(task="forward_invoice", fault_rate=0.5)
    env.reset(seed=3)
    for name, arguments in (("no_such_tool" * 9, {}), ("list_mail", {"folder": "x" * 3_000}), ("list_mail", {})):
        env.step({"name": name, "arguments": arguments})
    for text in ("no call at all", '{"name": 5}', "[" * 300):
        env.step(text)
    for _ in range(6):
        env.step({"name": "list_mail", "arguments": {}})
    env.step({"name": "finish", "arguments": {"answer": "done", "data": {"sum": 3}}})
    assert env.session is not None
    trajectory = from_json(to_json(record(env.session, "mine")))
    assert any("429" in event.result or "504" in event.result for event in trajectory.events if isinstance(event, ToolRan))
    assert replay_calls(trajectory) == ()


def test_a_refusal_is_equal_whichever_wrong_argument_it_names() -> None:
    env = WorkspaceEnv(task="forward_invoice")
    env.reset(seed=3)
    env.step({"name": "search_mail", "arguments": {"query": 5, "page": "x"}})
    env.step({"name": "finish", "arguments": {}})
    assert env.session is not None
    trajectory = from_json(to_json(record(env.session, "mine")))
    assert replay_calls(trajectory) == ()


def test_an_end_can_be_graded_again(stored: Path) -> None:
    for one in trajectories(stored)[:3]:
        assert graded_again(one) == one
        assert repeat(one).ended


def test_a_difference_is_put_down_to_other_code_if_there_is_some(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(copied / "results.jsonl", 2, lambda held: held.update(total=5.0))
    assert cli.main(["replay", str(copied), "--episode", "2", "--check"]) == 1
    assert "state of the code" not in capsys.readouterr().out
    change(copied / "trajectories.jsonl", 2, lambda held: held.update(version="0.0.1"))
    assert next(one.code for one in replay(copied, (2,))).startswith("played by version 0.0.1")
    settings = json.loads((copied / "manifest.json").read_text(encoding="utf-8"))
    settings["settings"]["code"] = "0" * 64
    (copied / "manifest.json").write_text(json.dumps(settings), encoding="utf-8")
    (copied / "trajectories.jsonl").unlink()
    assert cli.main(["replay", str(copied), "--episode", "2", "--check"]) == 1
    assert "played by another state of the code" in capsys.readouterr().out


def test_what_cannot_be_replayed_is_an_error(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no"):
        list(replay(tmp_path / "nothing"))
    with pytest.raises(ConfigurationError, match="not a run folder"):
        list(replay(tmp_path))
    with pytest.raises(ConfigurationError, match="has 14 episodes, no episode 15"):
        list(replay(stored, (15,)))
    (tmp_path / "bad.jsonl").write_text('{"task": 1}\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 1 is no Trajectory"):
        list(replay(tmp_path / "bad.jsonl"))


def test_command_prints_what_differs_and_says_so_by_its_status(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(copied), "--episode", "1", "--calls-only"]) == 0
    assert "step 0: " in capsys.readouterr().out
    change(copied / "results.jsonl", 2, lambda held: held.update(total=5.0))
    assert cli.main(["replay", str(copied), "--episode", "1", "--episode", "2", "--check"]) == 1
    out = capsys.readouterr().out
    assert "DIFFERENT, first in record.total: recorded '5.0'" in out
    assert out.rstrip().endswith("1 equal, 1 different")
