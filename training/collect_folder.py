"""The folder of a dataset: Parquet, a card and the settings; it appears under its name when it is complete."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ec2_env.bench.store import PART, write_json
from ec2_env.errors import ConfigurationError
from ec2_env.training.collect_card import Tally, card
from ec2_env.training.collect_parquet import RowWriter, check_parquet, columns

DATA = "data"
Collected = tuple[list[dict[str, Any]], Counter[str]]
"""Rows, and what was left out by the reason."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a collection came to: rows and files written, and what was left out by the reason."""

    rows: int
    files: int
    left_out: Mapping[str, int]


Watch = Callable[[int, int], None]
"""Is told after each episode how many are done, and how many rows there are."""


def write_folder(about: Mapping[str, Any], chat: bool, parts: Iterator[Collected], out: Path, watch: Watch | None) -> Done:
    """Writes a dataset, part by part.

    Args:
        about: What it was made with, as `ec2_env.training.collect` states it.
        chat: Whether prompts and answers are chats.
        parts: The rows of one episode after the other.
        out: The folder to make.
        watch: Is told how far it is.

    Raises:
        ConfigurationError: if the folder is there already.
        MissingExtra: if pyarrow is not installed.
    """
    check_parquet()
    draft = out.with_name(out.name + PART)
    if out.exists() or draft.exists():
        raise ConfigurationError(f"{out if out.exists() else draft} is there already; remove it, or name another folder")
    tally, left_out = Tally(), Counter[str]()
    kind, split = about["kind"], about["split"]
    draft.mkdir(parents=True)
    try:
        with RowWriter(draft / DATA, split, columns(kind, chat)) as writer:
            for number, (rows, without) in enumerate(parts, 1):
                for row in rows:
                    tally.add(kind, row)
                    writer.add(row)
                left_out.update(without)
                if watch is not None:
                    watch(number, writer.rows)
        without_zeros = {reason: count for reason, count in sorted(left_out.items()) if count}
        text = card(about, tally, without_zeros, f"{DATA}/{split}-*.parquet")
        (draft / "README.md").write_text(text, encoding="utf-8")
        write_json(draft / "collection.json", {**about, "rows": writer.rows, "left_out": without_zeros})
        os.replace(draft, out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Done(writer.rows, writer.files, without_zeros)


def described(done: Done) -> Sequence[str]:
    """Returns what a collection came to, as lines."""
    return [f"{done.rows:,} rows in {done.files} file(s)", *(f"left out {n:,} {reason}" for reason, n in done.left_out.items())]
