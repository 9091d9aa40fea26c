"""Rows that had to be added, changed or removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ec2_env.facts import canonical
from ec2_env.task import Grading


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A row that had to be edited in the given fields and in no other, save those that change by themselves.

    Attributes:
        table: Name of the table.
        id: Which row.
        fields: New values by field name, compared by `agrees`.
        ignores: Fields that may have any value, such as the time of the last change.
    """

    table: str
    id: str
    fields: Mapping[str, Any]
    ignores: Collection[str] = ()

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            if change.table == self.table and change.id == self.id and change.kind == "changed":
                same_as = {name: getattr(change.before, name) for name in change.after.__struct_fields__} | dict(self.fields)
                wanted = {name: value for name, value in same_as.items() if name not in self.ignores}
                if all(agrees(getattr(change.after, name), value) for name, value in wanted.items()):
                    state.claimed.add(index)
                    return 1.0
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A row that had to be added, with at least these field values, compared by `agrees`. For texts use `Posted` and `Told`."""

    table: str
    fields: Mapping[str, Any]

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            added = change.table == self.table and change.kind == "added"
            if added and all(agrees(getattr(change.after, name), value) for name, value in self.fields.items()):
                state.claimed.add(index)
                return 1.0
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Rows that had to be removed; earns the share removed, less a share for each that had to stay.

    Attributes:
        table: Name of the table.
        ids: Rows that had to go.
    """

    table: str
    ids: Collection[str]

    def __call__(self, state: Grading) -> float:
        gone = {
            change.id: index for index, change in state.unclaimed() if change.table == self.table and change.kind == "removed"
        }
        right = [key for key in self.ids if key in gone]
        state.claimed.update(gone[key] for key in right)
        wrong = len(gone) - len(right)
        return max(0.0, (len(right) - wrong) / len(self.ids))


@dataclass(frozen=True, slots=True)
class Booked:
    """An event that had to be created, whatever its title.

    Attributes:
        start: "YYYY-MM-DD HH:MM".
        end: The same.
        attendees: Addresses that have to be invited: exactly these.
        owner: Address of the calendar's owner, who may be among them.
    """

    start: str
    end: str
    attendees: Collection[str]
    owner: str

    def __call__(self, state: Grading) -> float:
        for index, change in state.unclaimed():
            event = change.after
            if change.table != "event" or change.kind != "added" or (event.start, event.end) != (self.start, self.end):
                continue
            if {*event.attendees} - {self.owner} == {*self.attendees}:
                state.claimed.add(index)
                return 1.0
        return 0.0


@dataclass(frozen=True, slots=True)
class Reran:
    """Jobs that had to be run again until they succeeded; earns the share of them that were.

    A job that depends on another one fails while that has not succeeded, so the right order takes the fewest runs.

    Attributes:
        runs: How many runs each job takes, by id. With more of them a job earns nothing, and each one too many is a stray change.
    """

    runs: Mapping[str, int]

    def __call__(self, state: Grading) -> float:
        earned = 0
        for job_id, count in self.runs.items():
            jobs = [
                (index, change)
                for index, change in state.unclaimed()
                if change.table == "job" and change.id == job_id and change.kind == "changed"
            ]
            runs = [index for index, change in state.unclaimed() if change.table == "job_run" and change.after.job_id == job_id]
            if len(jobs) == 1 and runs:
                index, change = jobs[0]
                kept = (change.before.schedule, change.before.paused) == (change.after.schedule, change.after.paused)
                if kept and change.after.last_status == "success":
                    state.claimed.update((index, *runs[:count]))
                    earned += len(runs) == count
        return earned / len(self.runs)


def agrees(given: object, expected: object) -> bool:
    """Compares one field of a row: texts without case, width, repeated spaces and end marks, sequences without order."""
    if isinstance(given, tuple) and isinstance(expected, tuple | list | set | frozenset):
        return {canonical(item) for item in given} == {canonical(item) for item in expected}
    if isinstance(given, str) and isinstance(expected, str):
        return str(canonical(given)).strip(" .;,\u3002\uff1b") == str(canonical(expected)).strip(" .;,\u3002\uff1b")
    return given == expected
