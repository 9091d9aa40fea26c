"""Writes rows as Parquet that `datasets` loads with the types that TRL wants; holds a bounded part of them in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ec2_env.errors import ConfigurationError
from ec2_env.registry import require

GROUP_ROWS, GROUP_CHARS = 5_000, 32 << 20
"""Most rows, and about the most characters of JSON, that are held in memory and stand in one row group."""
FILE_ROWS = 100_000
"""Most rows in one file."""

JSON = "json"
"""A JSON value in a column of Arrow's JSON type: `datasets` gives it back as it was, whatever its keys are."""

IDENTITY = {
    "task": "string",
    "language": "string",
    "split": "string",
    "seed": "int64",
    "trial": "int64",
    "strategy": "string",
}
"""Columns of every kind."""
_STATE = {"values": "list<float64>", "features": "list<float64>", **IDENTITY, "step": "int32"}


def columns(kind: str, chat: bool) -> dict[str, str]:
    """Returns the names and types of a dataset's columns, in their order; docs/data.md describes them."""
    text = "chat" if chat else "string"
    match kind:
        case "sft":
            return {
                "messages": "list<json>",
                "tools": "list<json>",
                **IDENTITY,
                "edge": "string",
                "cloud": "string",
                "source": "string",
                **dict.fromkeys(("task_completion", "episode_return", "cost", "exposure"), "float64"),
                **dict.fromkeys(("steps", "cloud_calls", "failed_calls"), "int32"),
            }
        case "preference":
            texts = dict.fromkeys(("prompt", "chosen", "rejected"), text)
            return {**texts, "chosen_decision": "int32", "rejected_decision": "int32", "margin": "float64", **_STATE}
        case "kto":
            texts = dict.fromkeys(("prompt", "completion"), text)
            return {**texts, "label": "bool", "decision": "int32", "advantage": "float64", **_STATE}
        case _:
            return {"prompt": text, "completion": text, "decision": "int32", **_STATE}


def check_parquet() -> None:
    """Checks that Parquet can be written.

    Raises:
        MissingExtra: if pyarrow is not installed.
        ConfigurationError: if it is too old.
    """
    arrow = require("pyarrow", extra="parquet")
    if not hasattr(arrow, "json_"):
        raise ConfigurationError(f"pyarrow {arrow.__version__} knows no JSON columns; install pyarrow 19 or later")


class RowWriter:
    """Writes `FOLDER/SPLIT-00000.parquet` and more files of that form.

    Args:
        folder: Where they go; made if need be.
        split: Begins their names.
        schema: Columns, as `columns` gives them.
    """

    def __init__(self, folder: Path, split: str, schema: Mapping[str, str]) -> None:
        self._arrow, self._parquet = require("pyarrow", extra="parquet"), require("pyarrow.parquet", extra="parquet")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._split = folder, split
        self._stored = self._arrow.schema([(name, self._type(kind, stored=True)) for name, kind in schema.items()])
        self._schema = self._arrow.schema([(name, self._type(kind, stored=False)) for name, kind in schema.items()])
        self._json = [name for name, kind in schema.items() if kind == "list<json>"]
        self._rows: list[dict[str, Any]] = []
        self._chars = 0
        self._open: Any = None
        self._in_file = 0
        self.rows = 0
        self.files = 0

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes a row. Values of JSON columns are lists of JSON values."""
        texts = {name: [json.dumps(value, ensure_ascii=False) for value in row[name]] for name in self._json}
        self._rows.append({**row, **texts})
        self._chars += sum(len(text) for column in texts.values() for text in column)
        self.rows += 1
        if len(self._rows) >= GROUP_ROWS or self._chars >= GROUP_CHARS:
            self._flush()
        if self._in_file + len(self._rows) >= FILE_ROWS:
            self._close()

    def _type(self, kind: str, *, stored: bool) -> Any:
        arrow = self._arrow
        match kind:
            case "list<json>":
                return arrow.list_(arrow.string() if stored else arrow.json_())
            case "list<float64>":
                return arrow.list_(arrow.float64())
            case "chat":
                return arrow.list_(arrow.struct([("role", arrow.string()), ("content", arrow.string())]))
            case "bool":
                return arrow.bool_()
        return getattr(arrow, kind)()

    def _flush(self) -> None:
        if self._open is None:
            file = self._folder / f"{self._split}-{self.files:05}.parquet"
            self._open = self._parquet.ParquetWriter(file, self._schema, compression="zstd")
            self.files += 1
        self._open.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._stored).cast(self._schema))
        self._in_file += len(self._rows)
        self._rows, self._chars = [], 0

    def _close(self) -> None:
        """Ends a file; a dataset without rows gets one file, too."""
        if self._rows or self.files == 0:
            self._flush()
        if self._open is not None:
            self._open.close()
        self._open, self._in_file = None, 0
