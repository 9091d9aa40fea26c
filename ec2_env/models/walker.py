"""Walks a task's solution from wherever an episode is.

A walker holds what the solution has been sent so far, not the running generator, so that it can be copied in no time; the
generator is made again by sending the same values when it is next needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ec2_env.actions import Finish, action_text
from ec2_env.progress import Progress, Record
from ec2_env.task import Episode, Step, Steps, toolbox

_BROKEN = (LookupError, ValueError, TypeError, AttributeError, StopIteration)
"""What a solution may raise when it is sent what it does not expect; the walker then has no next step."""


class Walker:
    """A solution and the position in it.

    Args:
        episode: The episode to solve.
        sends: What each call so far returned, in order.
    """

    __slots__ = ("_episode", "_generator", "_known", "_step", "sends")

    def __init__(self, episode: Episode, sends: tuple[Any, ...] = ()) -> None:
        self._episode = episode
        self.sends = sends
        self._generator: Steps | None = None
        self._known = False
        self._step: Step | None = None

    @property
    def step(self) -> Step | None:
        """The next step, or None if the solution has ended or broke on what it was sent."""
        if not self._known:
            self._replay()
        return self._step

    def advance(self, value: Any) -> None:
        """Tells the solution what its step returned (or what it believes that it returned)."""
        if self._generator is None:
            self._replay()
        self.sends = (*self.sends, value)
        self._move(value)

    def fork(self) -> Walker:
        """Returns an independent copy in constant time."""
        other = Walker(self._episode, self.sends)
        other._known, other._step = self._known, self._step
        return other

    def _replay(self) -> None:
        self._generator = self._episode.solve()
        self._move(None)
        for value in self.sends:
            self._move(value)

    def _move(self, value: Any) -> None:
        self._known = True
        try:
            self._step = self._generator.send(value) if self._generator is not None else None
        except _BROKEN:
            self._step = None


def from_progress(progress: Progress, records: Sequence[Record]) -> Walker:
    """Returns a walker at the first step that the records do not show as done.

    A read counts as done if a record of it is newer than the last write that the solution has passed, or if reading again now
    would show the same. A write counts as done once for each record of it.
    """
    walker = Walker(progress.episode)
    by_key: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        if record.ok:
            by_key.setdefault(record.key, []).append(index)
    last_write = -1
    while (step := walker.step) is not None and not isinstance(step.action, Finish):
        key = action_text(step.action)
        indices = by_key.get(key)
        if not indices:
            break
        index = next((i for i in indices if i > last_write), None)
        if index is None:
            now = toolbox(progress.episode.task.apps).run(progress.workspace.fork(), step.action)
            if records[indices[-1]].wrote or now.value != records[indices[-1]].value:
                break
            index = indices[-1]
        if records[index].wrote:
            last_write = max(last_write, index)
            indices.remove(index)
        walker.advance(records[index].value)
    return walker
