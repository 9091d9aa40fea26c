"""Differences between two texts by lines: for showing them, and for applying them to a third text."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CONTEXT = 3
MAX_PRODUCT = 40_000
"""Product of the numbers of lines compared in detail; beyond it, all that lies between the common ends counts as replaced."""


class Edit(NamedTuple):
    """The old lines from `start` up to `stop` are replaced by the new lines from `new_start` up to `new_stop`."""

    start: int
    stop: int
    new_start: int
    new_stop: int


def lines_of(text: str) -> list[str]:
    """Returns the lines of a text; unlike `str.splitlines`, only a newline ends one."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def edits(old: Sequence[str], new: Sequence[str]) -> list[Edit]:
    """Returns what changed between two lists of lines, in order."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, second = old[head : len(old) - tail], new[head : len(new) - tail]
    if not first and not second:
        return []
    if not first or not second or len(first) * len(second) > MAX_PRODUCT:
        return [Edit(head, head + len(first), head, head + len(second))]
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=True)
    return [Edit(head + a, head + b, head + c, head + d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def added_lines(old: str, new: str) -> list[str]:
    """Returns the lines that the new text has in place of, or beside, those of the old one."""
    lines = lines_of(new)
    return [line for edit in edits(lines_of(old), lines) for line in lines[edit.new_start : edit.new_stop]]


def unified(old: str, new: str) -> Iterator[str]:
    """Yields the hunks of a unified difference, without a header."""
    before, after = lines_of(old), lines_of(new)
    for group in _groups(edits(before, after)):
        start, new_start = max(0, group[0].start - CONTEXT), max(0, group[0].new_start - CONTEXT)
        stop, new_stop = min(len(before), group[-1].stop + CONTEXT), min(len(after), group[-1].new_stop + CONTEXT)
        yield f"@@ -{start + bool(before)},{stop - start} +{new_start + bool(after)},{new_stop - new_start} @@"
        at = start
        for edit in group:
            yield from (f" {line}" for line in before[at : edit.start])
            yield from (f"-{line}" for line in before[edit.start : edit.stop])
            yield from (f"+{line}" for line in after[edit.new_start : edit.new_stop])
            at = edit.stop
        yield from (f" {line}" for line in before[at:stop])


def transplant(old: str, new: str, text: str) -> str | None:
    """Applies what changed from `old` to `new` to another text; returns None if the two changes meet on the same lines."""
    if text == old:
        return new
    if text == new:
        return text
    base, ours, theirs = lines_of(old), lines_of(text), lines_of(new)
    mine, found, shift = edits(base, ours), list(ours), 0
    for edit in edits(base, theirs):
        if any(own.start <= edit.stop and edit.start <= own.stop for own in mine):
            return None
        shift = sum((own.new_stop - own.new_start) - (own.stop - own.start) for own in mine if own.stop <= edit.start)
        shift += len(found) - len(ours)
        found[edit.start + shift : edit.stop + shift] = theirs[edit.new_start : edit.new_stop]
    return "".join(f"{line}\n" for line in found)


def _groups(changes: Sequence[Edit]) -> list[list[Edit]]:
    groups: list[list[Edit]] = []
    for edit in changes:
        if groups and edit.start - groups[-1][-1].stop <= 2 * CONTEXT:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups
