"""Parquet holds what the records hold: every field, every episode once, readable by DuckDB and polars."""

from __future__ import annotations

import dataclasses
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env import cli
from ec2_env.bench import parquet
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.parquet import COLUMNS, MANIFEST_KEY, PARTITIONS, export
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.runner import Outcome
from ec2_env.errors import ConfigurationError

arrow = pytest.importorskip("pyarrow")
files_of = pytest.importorskip("pyarrow.parquet")

Runner = Callable[..., Outcome]
RecordMaker = Callable[..., EpisodeRecord]


@pytest.fixture
def small(config: BenchConfig) -> BenchConfig:
    """Returns a suite with a strategy without an edge model, and one whose name has a colon."""
    return dataclasses.replace(config, strategies=("cloud_only", "step_routing:threshold=1.5"))


@pytest.fixture
def folder(play: Runner, small: BenchConfig, tmp_path: Path) -> Path:
    play(changed=small)
    return tmp_path / "run"


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Returns the leaves of a record by their paths; what a column keeps as JSON is a leaf."""
    whole = {column.path for column in COLUMNS if column.type == "json"}
    if not isinstance(value, dict) or path in whole:
        return {path: value}
    return {name: one for key, item in value.items() for name, one in flat(item, f"{path}.{key}" if path else key).items()}


def rows(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted(out.rglob("*.parquet")):
        found += files_of.ParquetFile(file).read().to_pylist()
    return found


def test_every_field_of_a_record_is_a_column_or_a_partition(folder: Path) -> None:
    paths = {column.path for column in COLUMNS} | set(PARTITIONS)
    for record in records(folder):
        assert set(flat(record)) == paths


def test_every_episode_comes_back_with_its_values(folder: Path, tmp_path: Path) -> None:
    done = export(folder, tmp_path / "out")
    assert (done.rows, done.superseded, done.cut_off) == (len(records(folder)), 0, False)
    found = {row["sha256"]: row for row in rows(tmp_path / "out")}
    assert len(found) == len(records(folder))
    for record in records(folder):
        row, fields = found[record["sha256"]], flat(record)
        for column in COLUMNS:
            value = json.loads(row[column.name]) if column.type == "json" else row[column.name]
            assert value == fields[column.path], column.name


def test_folders_are_partitions_that_readers_understand(folder: Path, tmp_path: Path) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    export(folder, tmp_path / "out")
    pattern = f"{tmp_path}/out/**/*.parquet"
    expected: dict[tuple[str, str], list[float]] = {}
    for record in records(folder):
        expected.setdefault((record["strategy"], record["edge"] or "none"), []).append(record["total"])
    want = sorted((*key, len(totals), pytest.approx(sum(totals))) for key, totals in expected.items())
    query = f"select strategy, edge, count(*), sum(total) from read_parquet('{pattern}') group by all"
    assert sorted(duckdb.sql(query).fetchall()) == want
    scanned = polars.scan_parquet(pattern, hive_partitioning=True).group_by("strategy", "edge")
    summed = scanned.agg(polars.len(), polars.col("total").sum()).collect()
    assert sorted(summed.rows()) == want


def test_an_episode_that_failed_and_was_played_again_is_there_once(tmp_path: Path, record: RecordMaker, folder: Path) -> None:
    lines = [record(0, status="error"), record(1, status="error"), record(0), record(2), record(1, status="error", problem="b")]
    text = b"".join(msgspec.json.encode(one) + b"\n" for one in lines)
    (folder / "results.jsonl").write_bytes(text + b'{"cloud":"sim')
    done = export(folder, tmp_path / "out")
    assert (done.rows, done.superseded, done.cut_off) == (3, 2, True)
    found = {(row["task"], row["trial"]): (row["status"], row["problem"]) for row in rows(tmp_path / "out")}
    assert found == {("ask", 0): ("pass", None), ("ask", 1): ("error", "b"), ("ask", 2): ("pass", None)}
    assert (folder / "results.jsonl").read_bytes().endswith(b'{"cloud":"sim'), "the run folder is left as it was"


def test_rows_are_written_in_groups_and_a_partition_that_comes_back_gets_another_file(
    tmp_path: Path, record: RecordMaker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2)
    monkeypatch.setattr(parquet, "FILE_ROWS", 4)
    order = [*range(5), *range(18, 21), *range(6, 9)]
    (folder / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(record(number)) + b"\n" for number in order))
    assert export(folder, tmp_path / "out").files == 4
    left, right = (sorted((tmp_path / "out" / name).rglob("*.parquet")) for name in ("strategy=left", "strategy=right"))
    metadata = [files_of.ParquetFile(file).metadata for file in left]
    assert [(one.num_rows, one.num_row_groups) for one in metadata] == [(4, 2), (1, 1), (3, 2)]
    assert [file.name for file in (*left, *right)] == [
        "part-00000.parquet",
        "part-00001.parquet",
        "part-00002.parquet",
        "part-00000.parquet",
    ]


def test_files_carry_the_manifest(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "out")
    for file in (tmp_path / "out").rglob("*.parquet"):
        kept = files_of.read_schema(file).metadata[MANIFEST_KEY.encode()]
        assert json.loads(kept) == json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_the_page_lists_every_column(root: Path) -> None:
    page = (root / "docs" / "scale.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \|", page)
    types = {"json": "string", "float64": "double"}
    wanted = [(name, "string") for name in PARTITIONS] + [(one.name, types.get(one.type, one.type)) for one in COLUMNS]
    assert listed == wanted


def test_wrong_folders_are_refused_and_nothing_is_left_behind(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a run folder"):
        export(tmp_path, tmp_path / "out")
    (folder / "results.jsonl").write_bytes((folder / "results.jsonl").read_bytes() + b"{}\n")
    with pytest.raises(ConfigurationError, match=r"line \d+ is damaged"):
        export(folder, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigurationError, match="is there already"):
        export(folder, tmp_path / "out")


def test_command_says_what_it_has_written(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    number = len(records(folder))
    with (folder / "results.jsonl").open("ab") as stream:
        stream.write(b"{")
    assert cli.main(["export", str(folder), "--parquet", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{number} episodes in 2 files in ")
    assert "incomplete" in shown.err


def test_memory_does_not_grow_with_the_run(
    tmp_path: Path, record: RecordMaker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 200)
    line, peaks = msgspec.json.encode(record(0)) + b"\n", list[int]()
    for number in (1_000, 1_000, 6_000):
        (folder / "results.jsonl").write_bytes(line * number)
        tracemalloc.start()
        assert export(folder, tmp_path / f"out{len(peaks)}").rows == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1], "the first export only warms up"
