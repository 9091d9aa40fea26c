"""Walks a task's solution from wherever an episode is.

A walker holds what the solution has been sent so far, not the running generator, so that it can be copied in no time; the
generator is made again by sending the same values when it is next needed.
"""

from __future__ import annotations

from typing import Any

from ec2_env.actions import Finish, ToolCall, action_text
from ec2_env.progress import Progress
from ec2_env.task import Episode, Step, Steps, toolbox


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

    def advance(self, value: Any, ahead: Walker | None = None) -> None:
        """Tells the solution what its step returned (or what it believes that it returned).

        Args:
            value: What was returned.
            ahead: A walker that may have been sent the same by now: then its step is this one's, and nothing has to be run.
        """
        sends = (*self.sends, value)
        if ahead is not None and ahead._known and len(ahead.sends) == len(sends) and ahead.sends == sends:
            self.sends, self._step, self._known, self._generator = sends, ahead._step, True, None
            return
        if self._generator is None:
            self._replay()
        self.sends = sends
        self._move(value)

    def fork(self) -> Walker:
        """Returns an independent copy in constant time."""
        other = Walker(self._episode, self.sends)
        other._known, other._step = self._known, self._step
        return other

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._episode, self.sends)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._episode, self.sends = state
        self._generator, self._known, self._step = None, False, None

    def _replay(self) -> None:
        self._generator = self._episode.solve()
        self._move(None)
        for value in self.sends:
            self._move(value)

    def _move(self, value: Any) -> None:
        self._known = True
        try:
            self._step = self._generator.send(value) if self._generator is not None else None
        except Exception:  # a solution may break in any way on what it does not expect, and then has no next step
            self._step = None


class Tracker:
    """Knows which step of the solution comes next in a running episode, whoever made the calls so far.

    A read counts as done if a record of it is newer than the last write that the solution has passed, or if reading again now
    would show the same. A write counts as done once for each record of it. To be updated after each call, as it compares with the
    workspace as it then is; that costs time in proportion to what is new.
    """

    __slots__ = ("_by_key", "_last_write", "_read", "walker")

    def __init__(self, episode: Episode) -> None:
        self.walker = Walker(episode)
        self._by_key: dict[str, tuple[int, ...]] = {}
        self._last_write = -1
        self._read = 0

    def fork(self) -> Tracker:
        """Returns an independent copy."""
        other = Tracker.__new__(Tracker)
        other.walker, other._by_key = self.walker.fork(), dict(self._by_key)
        other._last_write, other._read = self._last_write, self._read
        return other

    def update(self, progress: Progress) -> None:
        """Takes in the calls made since the last update and passes the steps that they did."""
        records = progress.records
        for index in range(self._read, len(records)):
            self._by_key[records[index].key] = (*self._by_key.get(records[index].key, ()), index)
        if self._read < len(records):
            self._read = len(records)
            self._pass_done(progress)

    def _pass_done(self, progress: Progress) -> None:
        while (step := self.walker.step) is not None and not isinstance(step.action, Finish):
            index = self._record_of(step.action, step.refused, progress)
            if index is None:
                return
            self.walker.advance(progress.records[index].value)

    def _record_of(self, action: ToolCall, refused: bool, progress: Progress) -> int | None:
        """Returns the position of the record that shows a call as done (or, if so it should be, as refused), or None."""
        key, records = action_text(action), progress.records
        indices = [index for index in self._by_key.get(key, ()) if records[index].ok is not refused]
        if not indices:
            return None
        index = next((i for i in indices if i > self._last_write), None)
        if index is None:
            index = indices[-1]
            if records[index].wrote:
                return None
            now = toolbox(progress.episode.task.apps).run(progress.workspace.fork(), action)
            return index if now.value == records[index].value else None
        if records[index].wrote:
            self._last_write = index
            self._by_key[key] = tuple(i for i in self._by_key[key] if i != index)
        return index
