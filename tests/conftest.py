"""What every test runs under: no network, no hub, and property tests that draw the same examples each time.

Also what tests of several packages need: a browser, and records made by hand.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from ec2_env.bench.grid import Cell
    from ec2_env.bench.records import EpisodeRecord
    from ec2_env.rollout import EpisodeKey

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")

if "PYTEST_XDIST_WORKER" in os.environ:  # workers that all take every core slow down small models tenfold
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


@pytest.fixture(scope="session")
def root() -> Path:
    """Returns the root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Returns a Chromium of this system; skips where there is none.

    Its sandbox cannot be used by the administrator, whom containers run tests as.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("this system has no Chromium")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if root else [])
        yield found
        found.close()


@pytest.fixture
def plain_record() -> Callable[..., EpisodeRecord]:
    """Returns a function that makes a record with plain figures; `changes` go into the result."""
    from ec2_env.bench.records import EpisodeRecord

    def made(cell: Cell, key: EpisodeKey, completion: float, **changes: Any) -> EpisodeRecord:
        result = {
            "status": "pass" if completion >= 0.7 else "fail",
            "completion": completion,
            "privacy": 1.0,
            "privacy_all": 1.0,
            "any_leak": False,
            "necessary_exposure": 0.0,
            "excess_exposure": 0.0,
            "units": 5,
            "cloud_calls": 0,
            "tokens_raw": 0,
            "tokens_cached": 0,
            "tokens_out": 0,
            "cloud_usd": 0.0,
            "usage_gap": {"raw": 0, "cached": 0, "out": 0, "usd": 0.0},
            "edge_flops": 0.0,
            "edge_flops_without_probes": 0.0,
            "latency_s": 0.0,
            "steps": 1,
            **changes,
        }
        return EpisodeRecord(
            **cell._asdict(),
            task=key.task,
            language=key.language,
            split=key.split,
            seed=key.seed,
            trial=key.trial,
            reward={"task": completion, "cost": 0.0, "exposure": 0.0},
            total=completion,
            result=result,
            sha256="0" * 64,
        )

    return made


@pytest.fixture(autouse=True)
def only_this_machine_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a connection to any other machine fail; local test servers keep working."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address!r}; tests use only this machine")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
