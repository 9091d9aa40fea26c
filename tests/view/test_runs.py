"""Run folders as the viewer reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from ec2_env.errors import ConfigurationError
from ec2_env.trace import to_json
from ec2_env.view.episodes import episode_data
from ec2_env.view.runs import Run, open_run


@pytest.fixture
def bare(folder: Path, tmp_path: Path) -> Path:
    """Returns a copy of the run without its trajectories."""
    path = tmp_path / "bare"
    shutil.copytree(folder, path)
    (path / "trajectories.jsonl").unlink()
    return path


def test_episodes_have_the_numbers_of_their_lines(folder: Path, small: Run) -> None:
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert list(small.records) == list(range(1, len(lines) + 1))
    for number, record in small.records.items():
        assert json.loads(lines[number - 1])["sha256"] == record.sha256
        assert small.trajectory(number).task == record.task


def test_what_is_no_run_folder_is_refused_with_what_to_do(tmp_path: Path, bare: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a run folder.*ec2-env bench"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match=r"kept no trajectories; run ec2-env bench with --trajectories.*--replay"):
        open_run(bare)
    with pytest.raises(ConfigurationError, match="holds no such episode"):
        open_run(bare, replay=True, tasks=("travel",))


def test_run_without_trajectories_is_played_again_to_the_same_bytes(small: Run, bare: Path) -> None:
    again = open_run(bare, replay=True)
    assert {record.strategy for record in again.records.values()} >= {"task_routing"}, "one strategy needs offline scores"
    for number in again.records:
        assert to_json(again.trajectory(number)) == to_json(small.trajectory(number))


def test_episode_that_comes_out_otherwise_is_not_shown_as_the_recorded_one(bare: Path) -> None:
    text = (bare / "results.jsonl").read_text(encoding="utf-8").splitlines()
    text[0] = json.dumps({**json.loads(text[0]), "sha256": "0" * 64})
    (bare / "results.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    data = episode_data(open_run(bare, replay=True), 1)
    assert "comes out otherwise" in data["notes"][0] and "steps" not in data


def test_run_of_a_real_model_is_not_played_again(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = SimpleNamespace(card=SimpleNamespace(simulated=False))
    monkeypatch.setattr("ec2_env.view.replay.load_model", lambda spec: real)
    with pytest.raises(ConfigurationError, match=r"sim:qwen3\.5-9b is not simulated"):
        open_run(bare, replay=True)


def test_run_that_is_still_growing_is_read_up_to_its_last_whole_line(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "growing"
    shutil.copytree(folder, path)
    for name, kept in (("results.jsonl", 4), ("trajectories.jsonl", 3)):
        lines = (path / name).read_bytes().splitlines(keepends=True)
        (path / name).write_bytes(b"".join(lines[:kept]) + lines[kept][:40])
    before = {entry.name: entry.read_bytes() for entry in path.iterdir()}
    assert list(open_run(path).records) == [1, 2, 3]
    assert {entry.name: entry.read_bytes() for entry in path.iterdir()} == before, "looking changes nothing"


def test_episode_played_again_after_an_error_is_there_once(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "repaired"
    shutil.copytree(folder, path)
    for name in ("results.jsonl", "trajectories.jsonl"):
        lines = (path / name).read_bytes().splitlines(keepends=True)
        (path / name).write_bytes(b"".join([*lines, lines[0]]))
    run = open_run(path)
    assert 1 not in run.records and max(run.records) in run.records
    assert run.trajectory(max(run.records)).task == run.records[max(run.records)].task


def test_tasks_and_strategies_can_be_chosen(folder: Path) -> None:
    run = open_run(folder, tasks=("forward_invoice",), strategies=("cloud_only",))
    assert {(record.task, record.strategy) for record in run.records.values()} == {("forward_invoice", "cloud_only")}


@pytest.mark.parametrize("name", ["results.jsonl", "trajectories.jsonl"])
def test_damaged_line_is_named(name: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    shutil.copytree(folder, path)
    lines = (path / name).read_bytes().splitlines(keepends=True)
    (path / name).write_bytes(b"\xff{\n" + b"".join(lines[1:]))
    if name == "results.jsonl":
        with pytest.raises(ConfigurationError, match="line 1 is damaged"):
            open_run(path)
    else:
        assert "line 1 of the run's trajectories is damaged" in episode_data(open_run(path), 1)["notes"][0]
