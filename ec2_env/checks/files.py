"""Files that had to be written: facts, lines, exact contents, JSON."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ec2_env.facts import canonical, stated
from ec2_env.task import Grading


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    """A file that had to be written at a path, holding facts.

    Attributes:
        path: Where.
        states: Facts that have to be in it; the share earned is that of the facts found.
        avoids: Look-alikes that must not be in it.
    """

    path: str
    states: Sequence[object]
    avoids: Sequence[object] = ()

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "file" and change.id == self.path and change.after is not None:
                state.claimed.add(index)
                return stated(change.after.content, self.states, self.avoids)
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLines:
    """A file that had to be written at a path, with exactly these rows, one a line, in any order.

    Earns (right - wrong) / expected, never below 0; a repeated row is wrong. Empty lines do not count.

    Attributes:
        path: Where.
        rows: Cells of each expected row.
        separator: What stands between two cells; spaces around it make no difference.
    """

    path: str
    rows: Sequence[Sequence[object]]
    separator: str = "|"

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "file" and change.id == self.path and change.after is not None:
                state.claimed.add(index)
                text = unicodedata.normalize("NFKC", change.after.content)
                lines = [line for line in text.splitlines() if line.strip()]
                given = [tuple(canonical(cell.strip()) for cell in line.split(self.separator)) for line in lines]
                right = len({tuple(canonical(cell) for cell in row) for row in self.rows} & set(given))
                return max(0.0, (2 * right - len(given)) / len(self.rows))
        return 0.0


@dataclass(frozen=True, slots=True)
class FileBecame:
    """A file that had to get exactly this content; ends of lines and empty lines at the end make no difference.

    Attributes:
        path: Which file.
        content: Its right content; None if the file had to go.
    """

    path: str
    content: str | None

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "file" and change.id == self.path:
                given = None if change.after is None else _trimmed(change.after.content)
                if given == (None if self.content is None else _trimmed(self.content)):
                    state.claimed.add(index)
                    return 1.0
        return 0.0


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonWritten:
    """A JSON file that had to be written; spaces and the order of keys and of items in lists make no difference.

    Earns (right - wrong) / expected over its values, never below 0, and nothing if the frame is not exactly right.

    Attributes:
        path: Where.
        content: What it had to say. Objects in a list are told apart by their "id", other items by their value.
        frame: Keys whose values are the file's frame: all of them have to be right, and they earn nothing by themselves.
    """

    path: str
    content: object
    frame: Collection[str] = ()

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == "file" and change.id == self.path and change.after is not None:
                state.claimed.add(index)
                return self.share(change.after.content)
        return 0.0

    def share(self, text: str) -> float:
        """Returns the share that a file with this text earns."""
        try:
            given = set(leaves(msgspec.json.decode(text)))
        except (msgspec.DecodeError, RecursionError):
            return 0.0
        wanted = set(leaves(msgspec.to_builtins(self.content)))
        if {leaf for leaf in given if self.framed(leaf)} != {leaf for leaf in wanted if self.framed(leaf)}:
            return 0.0
        values = {leaf for leaf in wanted if not self.framed(leaf)}
        right, extra = len(values & given), {leaf[0] for leaf in given - wanted}
        return max(0.0, (right - len(extra)) / len(values))

    def framed(self, leaf: tuple[tuple[str, ...], object]) -> bool:
        """Says whether a value belongs to the frame."""
        return not set(leaf[0]).isdisjoint(self.frame)


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yields the values of parsed JSON in canonical form, each with the keys that lead to it.

    Empty objects and lists are values. An object in a list is named by its "id"; other items share the path of their list.
    """
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(value, list) and value:
        for item in value:
            name = item.get("id") if isinstance(item, dict) else None
            if isinstance(name, str):
                yield from leaves(item, (*path, f"[{name}]"))
            else:
                yield path, ("item", canonical(item))
    else:
        yield path, str(value) if isinstance(value, dict | list) else canonical(value)
