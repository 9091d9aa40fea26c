"""A leaderboard out of a folder of submissions: checked, played again by sample, and laid out by suite and kind of model."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.replaying import PlayAgain
from ec2_env.bench.statistics import FIGURES, PASS_K
from ec2_env.bench.strict import Refused
from ec2_env.bench.submission import CALIBRATION, HEAD, Row, Submission, read_submission
from ec2_env.errors import EC2Error, UnknownName
from ec2_env.render import inert
from ec2_env.strategy import strategies

MOST = 10_000
"""Folders that are looked at."""
BETTER_LOW = frozenset(
    "any_leak called called_annotated cloud_calls cloud_usd cost edge_pflops edge_pflops_without_probes excess_exposure exposure "
    "latency_s necessary_exposure steps tokens_cached tokens_out tokens_raw".split()
)
"""Figures of which less is better."""
NAMES = (*FIGURES, f"pass_hat_{PASS_K}")
SHOWN = (
    ("completion", "completion", 100.0, 1),
    (f"pass_hat_{PASS_K}", f"Pass^{PASS_K}", 100.0, 1),
    ("privacy", "privacy", 100.0, 1),
    ("cloud_usd", "USD", 1.0, 4),
    ("edge_pflops", "PFLOP", 1.0, 2),
    ("return", "return", 1.0, 3),
)
"""Columns: figure, heading, factor, digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One row of one submission, with how many of its submission's episodes were played again."""

    submission: Submission
    row: Row
    replayed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A leaderboard.

    Attributes:
        sections: Headings, by suite and by kind of model, and the rows under each, best first.
        refused: Name of each folder that was refused, and why.
        figure: What it is sorted by.
    """

    sections: tuple[tuple[str, tuple[Standing, ...]], ...]
    refused: tuple[tuple[str, str], ...]
    figure: str


def leaderboard(folder: Path, *, figure: str = "return", replay: int = 0, seed: int = 0) -> Board:
    """Reads all submissions of a folder.

    Args:
        folder: Each folder in it is a submission; or it is one itself.
        figure: What to sort by.
        replay: Episodes of simulated models to play again from each submission.
        seed: Fixes which, together with the submission's records, so that nobody can know before.

    Raises:
        UnknownName: if there is no such figure.
        Refused: if the folder holds no submission.
    """
    if figure not in NAMES:
        raise UnknownName("figure", figure, NAMES)
    standings: list[Standing] = []
    refused: list[tuple[str, str]] = []
    digests: dict[str, str] = {}
    for path in _folders(folder):
        try:
            one = read_submission(path)
            if one.sha256 in digests:
                raise Refused(f"it holds the same records as {digests[one.sha256]}")
            digests[one.sha256] = path.name
            played = _play_again(one, replay, seed)
        except EC2Error as error:
            refused.append((inert(path.name)[:80], inert(str(error))[:400]))
            continue
        standings += [Standing(submission=one, row=row, replayed=played if row.simulated else 0) for row in one.rows]
    return Board(sections=tuple(_sections(standings, figure)), refused=tuple(refused), figure=figure)


def _folders(folder: Path) -> list[Path]:
    if (folder / HEAD).is_file():
        return [folder]
    found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name[0] != ".")
    if not found:
        raise Refused(f"{folder} holds no submission; expected folders with {HEAD} in them")
    return found[:MOST]


def _sections(standings: Sequence[Standing], figure: str) -> Iterator[tuple[str, tuple[Standing, ...]]]:
    for suite in sorted({one.submission.run.settings["suite"] for one in standings}):
        for simulated in (False, True):
            rows = [one for one in standings if one.submission.run.settings["suite"] == suite and one.row.simulated is simulated]
            if rows:
                kind = "simulated models: no measurements of real ones" if simulated else "real models"
                yield f"suite {suite}, {kind}", tuple(sorted(rows, key=lambda one: _merit(one, figure)))


def _merit(one: Standing, figure: str) -> tuple[bool, float, str, str, str]:
    mean = one.row.figures[figure].mean
    ordered = (mean or 0.0) if figure in BETTER_LOW else -(mean or 0.0)
    return mean is None, ordered, one.submission.name, one.row.cell.strategy, one.row.cell.edge or ""


# -- playing again


def _play_again(one: Submission, number: int, seed: int) -> int:
    """Plays some episodes of a submission again, and some of its calibration; returns how many.

    Raises:
        Refused: if one does not come out as it was recorded.
    """
    if number < 1:
        return 0
    simulated = {row.cell for row in one.rows if row.simulated}
    _check_names(one)
    chance = random.Random(f"{seed}/{one.sha256}")
    records = [record for record in one.records() if record.cell in simulated]
    chosen = chance.sample(records, min(number, len(records)))
    player = _Player(one)
    if player.calibration:
        chosen += chance.sample(player.calibration, min(number, len(player.calibration)))
    for record in chosen:
        found = player.differences(record)
        if found:
            raise Refused(
                f"{record.strategy} on {record.task}/{record.language}/{record.seed}, trial {record.trial}, comes out otherwise "
                f"when it is played again (it was made with version {one.run.settings['version']}): {found[0]}"
            )
    return len(chosen)


def _check_names(one: Submission) -> None:
    """Checks that every strategy that has to be loaded ships with the package, and that no name is a path.

    Raises:
        Refused: if one does not.
    """
    for row in one.rows:
        name, _, rest = row.cell.strategy.partition(":")
        if row.simulated and (name not in strategies.names() or "/" in rest or "\\" in rest or Path(rest or "-").exists()):
            raise Refused(f"strategy {row.cell.strategy!r} does not ship with the package, or names a file")


class _Player(PlayAgain):
    """Plays episodes of a submission again; what strategies were prepared with comes from its calibration."""

    def __init__(self, one: Submission) -> None:
        super().__init__(one.run)
        self.calibration: list[EpisodeRecord] = []
        if one.run.settings["calibration_seeds"] is not None:
            grid = one.run.calibration()
            self.calibration = list(one.records(CALIBRATION))
            numbers = {grid.number(record.cell, record.key) for record in self.calibration}
            if len(self.calibration) != len(grid) or len(numbers - {None}) != len(grid):
                raise Refused(f"{CALIBRATION} does not hold every episode of the calibration once")

    def measured(self) -> Iterator[EpisodeRecord]:
        """Yields the records of the calibration."""
        yield from self.calibration


# -- what is shown


def as_terminal(board: Board) -> str:
    """Returns the tables in columns."""
    lines: list[str] = []
    for heading, rows in board.sections:
        table = [_head(), *(_cells(place, one) for place, one in enumerate(rows, 1))]
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines += [heading, *("  ".join(_aligned(row, widths)).rstrip() for row in table), ""]
    return "\n".join([*lines, *_ending(board)]) + "\n"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for place, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield text.ljust(width) if 1 <= place <= 4 else text.rjust(width)


def as_markdown(board: Board) -> str:
    """Returns the tables for a page. What submitters wrote cannot become markup."""
    lines: list[str] = []
    for heading, rows in board.sections:
        table = [_head(), ["---:", *["---"] * 4, *["---:"] * (len(_head()) - 5)]]
        table += [[_plain(text) for text in _cells(place, one)] for place, one in enumerate(rows, 1)]
        lines += [f"**{heading}**", "", *(f"| {' | '.join(row)} |" for row in table), ""]
    return "\n".join([*lines, *map(_plain, _ending(board))]) + "\n"


def _plain(text: str) -> str:
    """Returns a text that is shown as it is: no tables, links, addresses or tags come of it."""
    shown = "".join(f"&#{ord(letter)};" if letter in "|<>&*`[]\\@" else letter for letter in text)
    return shown.replace("://", "&#58;//").replace("www.", "www&#46;")


def as_json(board: Board) -> str:
    """Returns everything, intervals included."""
    sections = [
        {
            "heading": heading,
            "rows": [
                {
                    "name": one.submission.name,
                    "contact": one.submission.contact,
                    "folder": one.submission.path.name,
                    "version": one.submission.run.settings["version"],
                    **one.row.cell._asdict(),
                    "simulated": one.row.simulated,
                    "episodes": one.row.episodes,
                    "errors": one.row.errors,
                    "replayed": one.replayed,
                    "figures": {name: asdict(found) for name, found in sorted(one.row.figures.items())},
                }
                for one in rows
            ],
        }
        for heading, rows in board.sections
    ]
    data: dict[str, Any] = {"sorted_by": board.figure, "sections": sections, "refused": [list(one) for one in board.refused]}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _head() -> list[str]:
    return ["", "submission", "strategy", "edge", "cloud", *(heading for _, heading, _, _ in SHOWN), "errors", "replayed"]


def _cells(place: int, one: Standing) -> list[str]:
    cell, found = one.row.cell, one.row.figures
    shown = ["-" if (mean := found[name].mean) is None else f"{mean * factor:.{digits}f}" for name, _, factor, digits in SHOWN]
    names = [one.submission.name, cell.strategy, cell.edge or "-", cell.cloud]
    return [str(place), *names, *shown, str(one.row.errors), str(one.replayed) if one.row.simulated else "-"]


def _ending(board: Board) -> list[str]:
    order = "least first" if board.figure in BETTER_LOW else "most first"
    sorted_by = f"Sorted by {board.figure}, {order}. Infrastructure errors count as failures."
    notes = [f"{sorted_by} All figures were computed from the records."]
    return [*notes, *(f"REFUSED {name}: {reason}" for name, reason in board.refused)]
