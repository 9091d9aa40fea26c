"""Exports a run as partitioned Parquet, for what is too much for lines of JSON. docs/scale.md describes the columns."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from ec2_env.bench.grid import Cell
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.store import PART
from ec2_env.bench.stored_runs import records_in
from ec2_env.errors import ConfigurationError
from ec2_env.registry import require
from ec2_env.rollout import EpisodeKey

GROUP_ROWS = 20_000
"""Most rows that are held in memory, and in one row group."""
FILE_ROWS = 1_000_000
"""Most rows in one file."""
NO_EDGE = "none"
"""Stands for the edge model of strategies that run none, in names of folders and in the column."""
MANIFEST_KEY = "ec2_env.manifest"
"""Under this name every file holds the run's manifest, as JSON, in its metadata."""
PARTITIONS = ("strategy", "edge")


class Column(NamedTuple):
    """A column: its name, its Arrow type, and where its value stands in a record's JSON, names joined by dots."""

    name: str
    type: str
    path: str


def _result(kind: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, f"result.{name}") for name in names)


COLUMNS = (
    *(Column(name, "string", name) for name in ("cloud", "task", "language", "split")),
    *(Column(name, "int32", name) for name in ("seed", "trial")),
    *(Column(f"reward_{name}", "float64", f"reward.{name}") for name in ("task", "cost", "exposure")),
    Column("total", "float64", "total"),
    *_result("string", "status", "problem"),
    *_result("float64", "completion"),
    *_result("int32", "steps", "strays", "units", "cloud_calls"),
    *_result("bool", "called", "any_leak"),
    *_result("float64", "privacy", "privacy_unweighted", "privacy_all", "privacy_all_unweighted"),
    *_result("float64", "necessary_exposure", "excess_exposure"),
    *_result("int64", "tokens_raw", "tokens_cached", "tokens_out"),
    *_result("float64", "cloud_usd", "edge_flops", "edge_flops_without_probes", "latency_s"),
    *(Column(f"usage_gap_{name}", "int64", f"result.usage_gap.{name}") for name in ("raw", "cached", "out")),
    Column("usage_gap_usd", "float64", "result.usage_gap.usd"),
    *_result("json", "checks", "exposed", "touched", "forbidden"),
    Column("sha256", "string", "sha256"),
)
"""In this order; the columns of the partitions, strings both, stand in the names of the folders. `json` is a string of JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export came to.

    Attributes:
        rows: Episodes written.
        files: Files written.
        superseded: Lines left out: infrastructure errors whose episode was played again.
        cut_off: Whether the last line was incomplete, and left out.
    """

    rows: int
    files: int
    superseded: int
    cut_off: bool


def export(run: Path, out: Path) -> Exported:
    """Writes the results of a run to `OUT/strategy=.../edge=.../part-00000.parquet`; changes nothing in the run folder.

    Reads the records twice and holds `GROUP_ROWS` rows and the names of the episodes that ever failed, whatever their number is.
    The folder appears under its name when it is complete.

    Raises:
        ConfigurationError: if `run` is no run folder, `out` is there already, or a line is damaged.
        MissingExtra: if pyarrow is not installed.
    """
    file = run / "results.jsonl"
    if not file.exists() or not (run / "manifest.json").exists():
        raise ConfigurationError(f"{run} is not a run folder; name one that `ec2-env bench --out` has filled")
    draft = out.with_name(out.name + PART)
    if out.exists() or draft.exists():
        raise ConfigurationError(f"{out if out.exists() else draft} is there already; remove it, or name another folder")
    last, superseded = _failures(file)
    rows = 0
    try:
        with _Writer(draft, (run / "manifest.json").read_bytes()) as writer:
            for number, record in records_in(file):
                if _failed(record) and last[_key(record)] != number:
                    continue
                writer.add(record)
                rows += 1
        os.replace(draft, out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Exported(rows=rows, files=writer.files, superseded=superseded, cut_off=not _ends_whole(file))


def _ends_whole(file: Path) -> bool:
    with file.open("rb") as stream:
        if not stream.seek(0, os.SEEK_END):
            return True
        stream.seek(-1, os.SEEK_END)
        return stream.read() == b"\n"


_Key = tuple[Cell, EpisodeKey]


def _key(record: EpisodeRecord) -> _Key:
    return record.cell, record.key


def _failed(record: EpisodeRecord) -> bool:
    return bool(record.result["status"] == "error")


def _failures(file: Path) -> tuple[dict[_Key, int], int]:
    """Returns the line of the last word on each episode that ever failed, 0 if that is a result, and how many lines are none."""
    last: dict[_Key, int] = {}
    superseded = 0
    for number, record in records_in(file):
        failed = _failed(record)
        if not failed and not last:
            continue
        key = _key(record)
        superseded += last.get(key, 0) > 0
        if failed or key in last:
            last[key] = number if failed else 0
    return last, superseded


class _Writer:
    """Writes rows, one partition after the other; a partition that comes back gets another file.

    A run writes its episodes in the order of its grid, so that a partition comes back once for each time the run was resumed.
    """

    def __init__(self, path: Path, manifest: bytes) -> None:
        self._arrow, self._parquet = require("pyarrow", extra="parquet"), require("pyarrow.parquet", extra="parquet")
        path.mkdir(parents=True)
        self._path = path
        types = {"json": self._arrow.string(), "bool": self._arrow.bool_()}
        fields = [(one.name, types.get(one.type) or getattr(self._arrow, one.type)()) for one in COLUMNS]
        self._schema = self._arrow.schema(fields, metadata={MANIFEST_KEY: json.dumps(json.loads(manifest))})
        self._folder: Path | None = None
        self._columns: list[list[Any]] = [[] for _ in COLUMNS]
        self._open: Any = None
        self._written = 0
        self.files = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def add(self, record: EpisodeRecord) -> None:
        """Takes a record."""
        values = (record.strategy, record.edge or NO_EDGE)
        folder = self._path.joinpath(*(f"{name}={quote(value, safe='')}" for name, value in zip(PARTITIONS, values, strict=True)))
        if folder != self._folder or self._written + len(self._columns[0]) >= FILE_ROWS:
            self._close()
            self._folder = folder
        for column, (first, rest, as_json) in zip(self._columns, _PLACES, strict=True):
            column.append(_value(getattr(record, first), rest, as_json))
        if len(self._columns[0]) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        assert self._folder is not None
        if self._open is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"part-{sum(1 for _ in self._folder.iterdir()):05}.parquet"
            self._open = self._parquet.ParquetWriter(self._folder / name, self._schema, compression="zstd")
            self.files += 1
        columns = zip(self._columns, self._schema, strict=True)
        arrays = [self._arrow.array(column, field.type) for column, field in columns]
        self._open.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._written += len(self._columns[0])
        self._columns = [[] for _ in COLUMNS]

    def _close(self) -> None:
        if self._columns[0]:
            self._flush()
        if self._open is not None:
            self._open.close()
        self._open, self._written = None, 0


_PLACES = [(first, tuple(rest), one.type == "json") for one in COLUMNS for first, *rest in [one.path.split(".")]]


def _value(value: Any, rest: tuple[str, ...], as_json: bool) -> Any:
    for name in rest:
        value = value.get(name) if isinstance(value, dict) else None
    return msgspec.json.encode(value, order="sorted").decode() if as_json else value
