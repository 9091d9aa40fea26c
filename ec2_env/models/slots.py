"""Limits how many requests run at once, over all threads and processes of a user on one machine."""

from __future__ import annotations

import hashlib
import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

POLL_S = 0.02
LONGEST_POLL_S = 0.25


class Slots:
    """A number of slots that share a name; each is a locked file, which the system frees when its process dies.

    Args:
        name: What is limited, such as an address.
        count: Most holders at once; None for no limit.
        sleep: Waits for so many seconds; tests pass their own.
    """

    def __init__(self, name: str, count: int | None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.count = count
        self._sleep = sleep
        user = os.getuid() if hasattr(os, "getuid") else 0
        self.folder = Path(tempfile.gettempdir()) / f"ec2-env-slots-{user}" / hashlib.sha256(name.encode()).hexdigest()[:16]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits for a free slot and holds it."""
        if self.count is None:
            yield
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._taken(self.count)
        try:
            yield
        finally:
            file.close()

    def _taken(self, count: int) -> IO[bytes]:
        pause_s = POLL_S
        while True:
            for number in range(count):
                file = (self.folder / str(number)).open("ab")
                if _locked(file):
                    return file
                file.close()
            self._sleep(pause_s)
            pause_s = min(LONGEST_POLL_S, pause_s * 1.5)


def _locked(file: IO[bytes]) -> bool:
    """Locks a file until it is closed; returns False at once if another holder has it."""
    try:
        if os.name == "nt":
            windows: Any = importlib.import_module("msvcrt")
            file.seek(0)
            windows.locking(file.fileno(), windows.LK_NBLCK, 1)
        else:
            posix: Any = importlib.import_module("fcntl")
            posix.flock(file.fileno(), posix.LOCK_EX | posix.LOCK_NB)
    except OSError:
        return False
    return True
