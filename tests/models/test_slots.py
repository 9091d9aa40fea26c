"""No more requests at once than were allowed, over threads and processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ec2_env.errors import ConfigurationError
from ec2_env.models.endpoint import CONCURRENCY, default_concurrency
from ec2_env.models.slots import Slots


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_threads_never_hold_more_than_the_limit() -> None:
    lock, inside, most = threading.Lock(), [0], [0]

    def work() -> None:
        with Slots("here", 2, sleep=lambda _: threading.Event().wait(0.001) and None).held():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            threading.Event().wait(0.005)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 2 and inside[0] == 0


def test_a_slot_of_another_process_is_waited_for_and_freed_when_it_dies(tmp_path: Path) -> None:
    slots = Slots("here", 1)
    holder = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from ec2_env.models.slots import Slots\n"
        "with Slots('here', 1).held():\n    print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline().strip() == b"held"
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        process.kill()
        process.wait()

    slots._sleep = wait
    with slots.held():
        assert len(waits) == 1
    process.communicate()


def test_other_addresses_have_slots_of_their_own() -> None:
    with Slots("here", 1).held(), Slots("there", 1).held(), Slots("here", None).held():
        assert Slots("here", 1).folder != Slots("there", 1).folder


def test_a_slot_is_free_again_after_an_error() -> None:
    for _ in range(2):
        with pytest.raises(KeyError), Slots("here", 1).held():
            raise KeyError


def test_the_environment_sets_the_limit_of_endpoints_that_name_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONCURRENCY, "3")
    assert default_concurrency() == 3
    monkeypatch.setenv(CONCURRENCY, "many")
    with pytest.raises(ConfigurationError, match=CONCURRENCY):
        default_concurrency()
