"""How far an episode has come: what simulated models may look at, and real ones never."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ec2_env.task import Episode
from ec2_env.trace import Event
from ec2_env.workspace.store import Workspace


class Record(NamedTuple):
    """One tool call that was made, by whomever, and what it returned.

    `key` is the canonical text of the call, `wrote` whether it changed the workspace.
    """

    key: str
    name: str
    value: Any
    ok: bool
    wrote: bool
    by: str


class Mind(Protocol):
    """A simulated model at work, as far as an episode has to know it."""

    def observe(self, record: Record) -> None:
        """Takes in a call that has just been made."""
        ...


class Progress(Protocol):
    """The view of a running episode that a simulated model is bound to."""

    @property
    def episode(self) -> Episode: ...

    @property
    def workspace(self) -> Workspace:
        """The current state. Fork it before running anything on it."""
        ...

    @property
    def records(self) -> Sequence[Record]:
        """Every call so far, oldest first."""
        ...

    @property
    def events(self) -> Sequence[Event]:
        """What happened so far, oldest first: the record, which no model is shown."""
        ...

    @property
    def noise(self) -> str:
        """Fixes the random draws of one trial of the episode."""
        ...

    @property
    def fate(self) -> str:
        """Fixes the random draws that all trials of the episode have in common."""
        ...

    @property
    def minds(self) -> dict[str, Any]:
        """The simulated models at work, by side: each registers itself, so that the other can take over from it."""
        ...
