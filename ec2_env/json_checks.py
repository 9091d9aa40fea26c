"""A building block for grading JSON files: by what they say, not by how they are laid out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import msgspec

from ec2_env.facts import canonical
from ec2_env.task import Grading


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
