"""The run folder: what a crash leaves, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ec2_env.bench.records import EpisodeRecord, Played
from ec2_env.bench.store import RecordLog, RunFolder
from ec2_env.errors import ConfigurationError

RecordMaker = Callable[..., EpisodeRecord]


@pytest.fixture
def filled(tmp_path: Path, record: RecordMaker) -> tuple[Path, Path, list[EpisodeRecord]]:
    """Returns a file of five records, the file of their trajectories, and the records."""
    records = [record(number, number / 10) for number in range(5)]
    log = RecordLog(tmp_path / "results.jsonl", tmp_path / "trajectories.jsonl", print)
    for one in records:
        log.append([Played(msgspec.json.encode(one), f'{{"trial":{one.trial}}}'.encode())])
    log.close()
    return tmp_path / "results.jsonl", tmp_path / "trajectories.jsonl", records


def test_records_come_back_as_they_were_written(filled: tuple[Path, Path, list[EpisodeRecord]]) -> None:
    file, trajectories, records = filled
    assert list(RecordLog(file, trajectories, pytest.fail).read()) == records


def test_line_that_was_cut_off_anywhere_is_dropped_and_reported(filled: tuple[Path, Path, list[EpisodeRecord]]) -> None:
    file, trajectories, records = filled
    whole, kept = file.read_bytes(), trajectories.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start + 1, len(whole)):
        file.write_bytes(whole[:end])
        trajectories.write_bytes(kept)
        said: list[str] = []
        assert list(RecordLog(file, trajectories, said.append).read()) == records[:4]
        assert len(said) == 1 and "line 5 was cut off" in said[0] and "lines kept: 4" in said[0]
        assert file.read_bytes() == whole[:start]
        assert len(trajectories.read_bytes().splitlines()) == 4


def test_damage_in_the_middle_is_an_error_that_names_the_line(filled: tuple[Path, Path, list[EpisodeRecord]]) -> None:
    file, trajectories, _ = filled
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], b'{"strategy": 3}\n', *lines[3:]]))
    with pytest.raises(ConfigurationError, match="line 3 is damaged"):
        list(RecordLog(file, trajectories, pytest.fail).read())


def test_record_without_its_trajectory_is_an_error(filled: tuple[Path, Path, list[EpisodeRecord]]) -> None:
    file, trajectories, _ = filled
    trajectories.unlink()
    with pytest.raises(ConfigurationError, match=r"lacks trajectories of records \(0 of 5\)"):
        list(RecordLog(file, trajectories, pytest.fail).read())


def test_folder_of_a_run_with_other_settings_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunFolder(path, {"trials": 3, "edges": ["a"], "weights": {"cost": 0.1}}, {}).close()
    RunFolder(path, {"trials": 3, "edges": ("a",), "weights": {"cost": 0.1}}, {"python": "another"}).close()
    with pytest.raises(ConfigurationError, match=r"trials is 3 there and 5 here; weights.cost is 0.1 there and 0.2 here.*--out"):
        RunFolder(path, {"trials": 5, "edges": ["a"], "weights": {"cost": 0.2}}, {})


def test_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("hello")
    with pytest.raises(ConfigurationError, match="not a run folder"):
        RunFolder(tmp_path, {"trials": 3}, {})
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="not a manifest"):
        RunFolder(tmp_path, {"trials": 3}, {})


def test_folder_in_use_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "run", {"trials": 3}, {})
    with pytest.raises(ConfigurationError, match="in use by another run"):
        RunFolder(tmp_path / "run", {"trials": 3}, {})
    first.close()
    RunFolder(tmp_path / "run", {"trials": 3}, {}).close()


def test_folder_that_was_killed_while_it_was_made_is_used(tmp_path: Path) -> None:
    (tmp_path / "manifest.json.part").write_text('{"settin')
    RunFolder(tmp_path, {"trials": 3}, {}).close()
    assert '"trials": 3' in (tmp_path / "manifest.json").read_text(encoding="utf-8")
