"""When a run stops or pauses: Ctrl-C, caps on what it uses, a disk that fills up, an endpoint that is down or refuses."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from ec2_env.bench.statistics import Spent

WAITS_S = (30.0, 60.0, 120.0, 300.0, 600.0)
"""Pauses of an outage, one after the other; the last one is repeated."""
SLICE_S = 0.5
"""Longest time that a pause does not look for Ctrl-C."""
_NO_ANSWER = re.compile(r"gave no usable answer in \d+ attempt")
_HTTP = re.compile(r"; the last: HTTP (\d{3})\b")
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|exceeded your current quota", re.IGNORECASE)
_OF_ONE_REQUEST = re.compile(r"moderation|flagged|content.?(?:filter|policy)|safety", re.IGNORECASE)
_OVERLOAD = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What a whole run may use of the cloud, in all its processes together; None for no cap.

    Attributes:
        usd: US dollars.
        tokens: Tokens, input and output.
        calls: Calls that were answered.
    """

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def any(self) -> bool:
        """Says whether there is a cap."""
        return (self.usd, self.tokens, self.calls) != (None, None, None)


class Stop:
    """Says when to stop: at Ctrl-C, when a cap of the run has been reached, or when going on would do harm."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.interrupted = False
        self.trouble = ""
        """Why going on would do harm; empty if it would not."""
        self.spent = Spent()

    @property
    def cap(self) -> str:
        """The option whose cap has been reached; empty if none has."""
        caps, spent = self.caps, self.spent
        reached = {
            "--max-usd": caps.usd is not None and spent.usd >= caps.usd,
            "--max-tokens": caps.tokens is not None and spent.tokens >= caps.tokens,
            "--max-calls": caps.calls is not None and spent.calls >= caps.calls,
        }
        return next((option for option, is_reached in reached.items() if is_reached), "")

    @property
    def reason(self) -> str:
        """Why to stop; empty to go on."""
        if self.interrupted:
            return "interrupted"
        match self.cap:
            case "--max-usd":
                return f"${self.spent.usd:.2f} of --max-usd {self.caps.usd:g} are spent"
            case "--max-tokens":
                return f"{self.spent.tokens:,} of --max-tokens {self.caps.tokens:,} are used"
            case "--max-calls":
                return f"{self.spent.calls:,} of --max-calls {self.caps.calls:,} are made"
        return self.trouble

    @contextmanager
    def listening(self, say: Callable[[str], None]) -> Iterator[None]:
        """Makes the first Ctrl-C stop the run after the episodes under way, and the second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            say("stopping after the episodes under way; press Ctrl-C again to stop at once")

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How a run bears an endpoint that is down.

    Attributes:
        errors: So many episodes in a row without an answer are an outage.
        longest_s: Seconds of pauses, one after the other without a success, after which the run stops.
        sleep: Waits for so many seconds; tests pass their own.
    """

    errors: int = 5
    longest_s: float = 3600.0
    sleep: Callable[[float], None] = time.sleep


class Outage:
    """Tells an endpoint that is down from episodes that fail, by the errors of finished episodes.

    An outage begins after `Patience.errors` episodes in a row that got no answer. The run pauses, plays one of them, and either
    pauses longer or, after the first success, plays the others of them and goes on. Errors of other kinds, such as a chat that
    does not fit the model's window, are the episode's own and neither begin nor end an outage.

    Args:
        patience: None if no endpoint is asked: then nothing is an outage.
    """

    def __init__(self, patience: Patience | None) -> None:
        self.patience = patience
        self.down = False
        """Whether to hand out no more episodes for now."""
        self.waited_s = 0.0
        """Seconds of pauses since the last success."""
        self.refusal = ""
        """What an endpoint said that will answer no request at all, such as one whose key is wrong."""
        self.last = ""
        self._pauses = 0
        self._row: list[int] = []
        self._again: set[int] = set()

    @property
    def probing(self) -> bool:
        """Whether it is not known yet if the outage is over, so that one episode at a time is enough."""
        return self._pauses > 0

    def saw(self, number: int, problem: str) -> None:
        """Takes note of a finished episode.

        Args:
            number: Its number in the grid.
            problem: What an endpoint did wrong; empty if it ended without an infrastructure error.
        """
        if self.patience is None:
            return
        if not problem:
            self._row, self.down, self._pauses, self.waited_s = [], False, 0, 0.0
        elif is_refusal(problem):
            self.refusal = problem
        elif is_no_answer(problem):
            self._row.append(number)
            self.last = problem
            self.down = self.down or self.probing or len(self._row) >= self.patience.errors
            if self.down:
                self._again.update(self._row)

    def to_play_again(self) -> frozenset[int]:
        """Returns the episodes that an outage has spoiled, once."""
        found, self._again = frozenset(self._again), set()
        return found

    def has_spoiled(self) -> bool:
        """Says whether there are any."""
        return bool(self._again)

    def next_pause_s(self) -> float:
        """Returns how long to wait before the next try, in seconds; 0 if it has been long enough."""
        if self.patience is None:
            return 0.0
        return min(WAITS_S[min(self._pauses, len(WAITS_S) - 1)], self.patience.longest_s - self.waited_s)

    def pause(self, seconds: float, stop: Stop) -> None:
        """Waits, unless Ctrl-C comes, and lets one episode be tried."""
        assert self.patience is not None
        left_s = seconds
        while left_s > 0 and not stop.interrupted:
            self.patience.sleep(min(SLICE_S, left_s))
            left_s -= SLICE_S
        self.waited_s += seconds
        self._pauses += 1
        self.down = False

    def says(self) -> str:
        """Returns what has happened, in words."""
        return f"{len(self._row):,} episodes in a row got no answer from their endpoint; the last: {self.last}"


def is_no_answer(problem: str) -> bool:
    """Says whether an endpoint could not be reached or was overloaded, rather than refusing one request."""
    status = _status(problem)
    passing = not 400 <= status < 500 or status in _OVERLOAD
    return _NO_ANSWER.search(problem) is not None and passing and not is_refusal(problem)


def is_refusal(problem: str) -> bool:
    """Says whether an endpoint will refuse every request: wrong key, no credit, wrong address or name of the model."""
    if _NO_ANSWER.search(problem) is None:
        return False
    status = _status(problem)
    if status == 403 and _OF_ONE_REQUEST.search(problem):
        return False
    return status in (401, 402, 403, 404) or _NO_CREDIT.search(problem) is not None


def _status(problem: str) -> int:
    """Returns the HTTP status of the last attempt; 0 if there was no answer."""
    found = _HTTP.search(problem)
    return int(found[1]) if found else 0
