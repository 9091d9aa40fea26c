"""What every test runs under: no network, no hub, and property tests that draw the same examples each time."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")

if "PYTEST_XDIST_WORKER" in os.environ:  # workers that all take every core slow down small models tenfold
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


@pytest.fixture(scope="session")
def root() -> Path:
    """Returns the root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def only_this_machine_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a connection to any other machine fail; local test servers keep working."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address!r}; tests use only this machine")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
