"""The state of a workspace: frozen rows in copy-on-write tables, with a journal of changes.

Copying a workspace copies a dictionary of tables and nothing else; a table is copied when one side first writes to it. The
journal gives undo, the net difference and the audit of side effects for free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from ec2_env.errors import ToolError

Author = Literal["agent", "world"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all rows. A row never changes; an edit replaces it. Sequences are tuples."""

    id: str

    @property
    def lasting(self) -> bool:
        """Whether adding it had an effect that removing it does not undo, such as a mail that has been sent."""
        return False

    @property
    def reaches(self) -> tuple[str, ...]:
        """Who else reads it, by address, channel or host: the recipients of a sent mail, the members of an invitation.

        Empty for what stays with the user. Graders ask this of every row that the agent wrote, so that nothing leaves unnoticed.
        """
        return ()


class Change(msgspec.Struct, frozen=True):
    """One row before and after. Added: `before` is None. Removed: `after` is None."""

    table: str
    id: str
    before: Any
    after: Any
    author: Author

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        return "added" if self.before is None else "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class Reaction:
    """Something that other people do once, in answer to what the agent does.

    Attributes:
        trigger: Says whether this change by the agent sets it off; sees the workspace right after the agent's call.
        effect: Writes the consequences into the workspace (as the world, not as the agent).
    """

    trigger: Callable[[Workspace, Change], bool]
    effect: Callable[[Workspace], None]


class Workspace:
    """The tables of one episode, the simulated clock and the people who react.

    Args:
        now: The moment at which the episode starts. Each journaled change takes one simulated minute.
    """

    __slots__ = ("_author", "_fired", "_owned", "_reactions", "_tables", "journal", "start")

    def __init__(self, now: datetime) -> None:
        self.start = now
        self.journal: tuple[Change, ...] = ()
        self._tables: dict[str, dict[str, Any]] = {}
        self._owned: set[str] = set()
        self._reactions: tuple[Reaction, ...] = ()
        self._fired: frozenset[int] = frozenset()
        self._author: Author | None = None

    @property
    def now(self) -> datetime:
        """The simulated time."""
        return self.start + timedelta(minutes=len(self.journal))

    def rows(self, table: str) -> Mapping[str, Any]:
        """Returns the rows of a table by id, in order of insertion. Not to be modified."""
        return self._tables.get(table, {})

    def tables(self) -> Mapping[str, Mapping[str, Any]]:
        """Returns the rows of every table, by name and id. Not to be changed."""
        return self._tables

    def get(self, table: str, row_id: str) -> Any:
        """Returns one row.

        Raises:
            ToolError: if there is none; the text says so to the agent.
        """
        row = self._tables.get(table, {}).get(row_id)
        if row is None:
            raise ToolError(f"there is no {table} with id {row_id[:80]!r}")
        return row

    def put(self, table: str, row: Row) -> None:
        """Adds a row, or replaces the one with the same id."""
        rows = self._writable(table)
        before = rows.get(row.id)
        if before == row:
            return
        rows[row.id] = row
        self._note(table, row.id, before, row)

    def remove(self, table: str, row_id: str) -> None:
        """Removes a row.

        Raises:
            ToolError: if there is none.
        """
        before = self.get(table, row_id)
        del self._writable(table)[row_id]
        self._note(table, row_id, before, None)

    def new_id(self, prefix: str) -> str:
        """Returns an id that no initial row has; initial ids have four digits, these have five."""
        return f"{prefix}-{10001 + len(self.journal)}"

    def begin(self, reactions: tuple[Reaction, ...] = ()) -> None:
        """Ends the building of the workspace: from here on, changes are the agent's and are journaled."""
        self._reactions = reactions
        self._author = "agent"

    def react(self, since: int) -> None:
        """Lets other people react to the agent's changes from journal position `since` on.

        All triggers see the workspace before anybody has reacted to these changes.
        """
        if not self._reactions:
            return
        changes = [change for change in self.journal[since:] if change.author == "agent"]
        due = [
            (index, reaction)
            for index, reaction in enumerate(self._reactions)
            if index not in self._fired and any(reaction.trigger(self, change) for change in changes)
        ]
        self._fired |= {index for index, _ in due}
        self._author = "world"
        try:
            for _, reaction in due:
                reaction.effect(self)
        finally:
            self._author = "agent"

    def undo(self, since: int) -> None:
        """Takes back every change from journal position `since` on, so that a failed tool leaves no trace."""
        for change in reversed(self.journal[since:]):
            rows = self._writable(change.table)
            if change.before is None:
                rows.pop(change.id, None)
            else:
                rows[change.id] = change.before
        self.journal = self.journal[:since]

    def diff(self) -> tuple[Change, ...]:
        """Returns the agent's net changes, in order of first touch.

        What was done and undone does not appear, unless it was `lasting`: a sent mail stays sent when its copy is deleted.
        """
        net: dict[tuple[str, str], Change] = {}
        for change in self.journal:
            if change.author != "agent":
                continue
            key = (change.table, change.id)
            first = net.get(key)
            if first is not None and first.before is None and change.after is None and first.after.lasting:
                continue
            net[key] = change if first is None else msgspec.structs.replace(first, after=change.after)
        return tuple(change for change in net.values() if change.before != change.after)

    def fork(self) -> Workspace:
        """Returns an independent copy in microseconds; both sides copy a table when they next write to it."""
        other = Workspace.__new__(Workspace)
        other.start, other.journal = self.start, self.journal
        other._tables = dict(self._tables)
        other._owned = set()
        self._owned = set()
        other._reactions, other._fired, other._author = self._reactions, self._fired, self._author
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        return self.fork()

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.start, self.journal, self._tables, self._fired, self._author)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.start, self.journal, self._tables, self._fired, self._author = state
        self._owned, self._reactions = set(self._tables), ()

    def adopt_reactions(self, origin: Workspace) -> None:
        """Takes the reactions of the episode's original workspace; they are code and do not travel in a pickle."""
        self._reactions = origin._reactions

    def _writable(self, table: str) -> dict[str, Any]:
        if table not in self._owned:
            self._tables[table] = dict(self._tables.get(table, {}))
            self._owned.add(table)
        return self._tables[table]

    def _note(self, table: str, row_id: str, before: Any, after: Any) -> None:
        if self._author is not None:
            self.journal = (*self.journal, Change(table, row_id, before, after, self._author))
