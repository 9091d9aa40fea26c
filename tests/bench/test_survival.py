"""Runs survive: SIGKILL in the middle of a write, a full disk, an endpoint that is down, a wrong key, two runs in one folder."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ec2_env import cli
from ec2_env.bench import store
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.manifest import manifest
from ec2_env.bench.progress import Quiet
from ec2_env.bench.records import EpisodeRecord, Played
from ec2_env.bench.runner import Outcome, run
from ec2_env.bench.stopping import WAITS_S, Outage, Patience, is_no_answer, is_refusal
from ec2_env.bench.store import RecordLog, RunFolder, StorageError
from ec2_env.envs import DecisionEnv
from ec2_env.errors import EndpointError

Runner = Callable[..., Outcome]
RecordMaker = Callable[..., EpisodeRecord]
SMOKE = ("bench", "--suite", "email-smoke", "--trials", "6", "--trajectories", "--workers", "1", "--quiet")
FILES = ("results.jsonl", "trajectories.jsonl")
DOWN = "small at http://127.0.0.1:8000/v1 gave no usable answer in 5 attempt(s); the last: no connection (refused)"
REFUSED = "small at http://127.0.0.1:8000/v1 gave no usable answer in 1 attempt(s); the last: HTTP 401: wrong key"

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL and no RLIMIT_FSIZE")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Returns the files of a run of 18 episodes that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert cli.main([*SMOKE, "--out", str(out)]) == 0
    return {name: (out / name).read_bytes() for name in FILES}


DYING = """
import os, signal, sys
from ec2_env import cli
from ec2_env.bench import store
left, share, write = int(sys.argv[1]), float(sys.argv[2]), store._write

def dying(stream, lines):
    global left
    left -= 1
    if left == 0:
        data = b"".join(line + b"\\n" for line in lines)
        stream.write(data[: int(len(data) * share)])
        os.kill(os.getpid(), signal.SIGKILL)
    write(stream, lines)

store._write = dying
sys.exit(cli.main(sys.argv[3:]))
"""


@needs_posix
def test_run_that_was_killed_in_the_middle_of_writes_ends_like_one_that_was_not(whole: dict[str, bytes], tmp_path: Path) -> None:
    draw = random.Random(20_261_130)
    for _ in range(4):
        words = [sys.executable, "-c", DYING, str(draw.randint(1, 9)), str(draw.random()), *SMOKE, "--out", str(tmp_path)]
        assert subprocess.run(words, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert len((tmp_path / "results.jsonl").read_bytes()) < len(whole["results.jsonl"])
    assert cli.main([*SMOKE, "--resume", "--out", str(tmp_path)]) == 0
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == whole


@needs_posix
def test_run_that_was_killed_at_any_time_ends_like_one_that_was_not(whole: dict[str, bytes], tmp_path: Path) -> None:
    draw, out = random.Random(30), tmp_path / "run"
    for begun in (".lock", "results.jsonl", "results.jsonl"):
        process = subprocess.Popen(
            [sys.executable, "-m", "ec2_env", *SMOKE, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (out / begun).exists():
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.1))
        process.kill()
        process.wait()
    assert cli.main([*SMOKE, "--out", str(out)]) == 0
    assert {name: (out / name).read_bytes() for name in FILES} == whole


@needs_posix
def test_full_disk_is_reported_and_leaves_whole_lines(whole: dict[str, bytes], tmp_path: Path) -> None:
    """A limit on the size of files makes the kernel refuse a write in its middle, as a full disk does."""
    limit = len(whole["trajectories.jsonl"]) // 2
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); from ec2_env import cli; "
    script = script.format(limit) + "sys.exit(cli.main(sys.argv[1:]))"
    words = [sys.executable, "-c", script, *SMOKE, "--out", str(tmp_path / "run")]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "cannot be written" in found.stderr and "make room" in found.stderr and "Traceback" not in found.stderr
    for name in FILES:
        left = (tmp_path / "run" / name).read_bytes()
        assert left and left.endswith(b"\n") and whole[name].startswith(left) and left != whole[name], name
    assert cli.main([*SMOKE, "--out", str(tmp_path / "run")]) == 0
    assert {name: (tmp_path / "run" / name).read_bytes() for name in FILES} == whole


def test_write_that_fails_anywhere_is_taken_back(tmp_path: Path, record: RecordMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    file, beside = tmp_path / "results.jsonl", tmp_path / "trajectories.jsonl"
    lines = [Played(msgspec.json.encode(record(number)), b"{}" * number) for number in range(3)]
    write, failing = store._write, [""]

    def full(stream: Any, data: Any) -> None:
        if stream.name.endswith(failing[0]):
            stream.write(data[0][: len(data[0]) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(stream, data)

    for name in FILES:
        failing[0] = "nothing"
        with monkeypatch.context() as patch:
            patch.setattr(store, "_write", full)
            log = RecordLog(file, beside, pytest.fail)
            log.append(lines[:1])
            before = file.read_bytes(), beside.read_bytes()
            failing[0] = name
            with pytest.raises(StorageError, match=r"No space left on device.*run the same command again"):
                log.append(lines[1:])
            log.close()
        assert (file.read_bytes(), beside.read_bytes()) == before
        assert len(list(RecordLog(file, beside, pytest.fail).read())) == len(before[0].splitlines())


def test_disk_that_is_nearly_full_stops_the_run_before_it_is(
    play: Runner, config: BenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = dataclasses.replace(config, strategies=("cloud_only",))
    whole = play("whole", changed=small)
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=store.RESERVE_BYTES - 1))
        stopped = play(changed=small)
        assert stopped.totals.done == 0 and stopped.left == len(small.grid()) and "make room" in stopped.stopped
        looks = iter([1 << 40] * 3)
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=next(looks, 0)))
        patch.setattr(store, "SYNC_S", 0.0)
        patch.setattr("ec2_env.bench.runner.SYNC_S", 0.0)
        stopped = play(changed=small)
        assert 0 < stopped.totals.done < len(small.grid()) and "make room" in stopped.stopped
    assert play(changed=small).totals.summaries() == whole.totals.summaries()
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == (tmp_path / "whole" / "results.jsonl").read_bytes()


def test_run_that_will_not_fit_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10**9))
    log = RecordLog(tmp_path / "results.jsonl", None, pytest.fail)
    assert log.warning(1_000) == "" and not log.trouble
    assert "needs about 15.0 GB" in log.warning(10_000_000) and not log.trouble


def test_manifest_that_cannot_be_written_is_an_error_and_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match=r"manifest\.json cannot be written"):
            RunFolder(tmp_path / "run", {"trials": 3}, {})
    assert not (tmp_path / "run" / "manifest.json").exists()
    RunFolder(tmp_path / "run", {"trials": 3}, {}).close()


def test_paid_episodes_are_forced_onto_the_disk_one_by_one(
    tmp_path: Path, record: RecordMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    for sync_s, expected in ((0.0, 3), (3600.0, 0)):
        log = RecordLog(tmp_path / f"{expected}.jsonl", None, pytest.fail, sync_s=sync_s)
        forced.clear()
        for number in range(3):
            log.append([Played(msgspec.json.encode(record(number)), None)])
        own = [one for one in forced if one == log._streams[0].fileno()]
        assert len(own) == expected
        log.close()


def test_second_run_in_one_folder_is_refused_and_changes_nothing(tmp_path: Path, config: BenchConfig) -> None:
    with_lock = RunFolder(tmp_path, manifest(config), {})
    before = sorted(entry.name for entry in tmp_path.iterdir())
    words = [sys.executable, "-m", "ec2_env", *SMOKE, "--out", str(tmp_path)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 2 and "in use by another run" in found.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before
    with_lock.close()


class Endpoint:
    """An endpoint that is down from an episode on, until the clock says otherwise; its clock moves only when a run waits.

    Args:
        after: Episodes that it serves before it is down.
        for_s: Seconds that it is down.
        says: What is then wrong.
    """

    def __init__(self, after: int, for_s: float, says: str = DOWN) -> None:
        self.after, self.for_s, self.says = after, for_s, says
        self.now_s = 0.0
        self.asked = 0

    def __call__(self, env: DecisionEnv, action: Any) -> None:
        session = env.session
        assert session is not None
        if session.step == 0:
            self.asked += 1
        if self.asked > self.after and self.now_s < self.for_s:
            raise EndpointError(self.says)
        TAKE(env, action)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


TAKE = DecisionEnv.take


@pytest.fixture
def small(config: BenchConfig) -> BenchConfig:
    """Returns a suite of one strategy that needs no offline scores."""
    return dataclasses.replace(config, strategies=("cloud_only",))


@pytest.fixture(params=["in this process", "through an executor"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "in this process":
        yield None
        return
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_endpoint_that_is_down_for_a_while_pauses_the_run_and_spoils_nothing(
    play: Runner, small: BenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Executor | None
) -> None:
    whole = play("whole", changed=small)
    endpoint = Endpoint(after=5, for_s=100.0)
    with monkeypatch.context() as patch:
        patch.setattr(DecisionEnv, "take", lambda env, action: endpoint(env, action))
        outcome = play(changed=small, executor=executor, patience=Patience(errors=2, sleep=endpoint.sleep))
    assert endpoint.now_s == sum(WAITS_S[:3]), "it waited 30, 60 and 120 s"
    assert (outcome.stopped, outcome.left, outcome.totals.errors) == ("", 0, 0)
    assert outcome.totals.summaries() == whole.totals.summaries()
    recorded = (tmp_path / "run" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results = [line for line in recorded if json.loads(line)["result"]["status"] != "error"]
    assert sorted(results) == sorted((tmp_path / "whole" / "results.jsonl").read_text(encoding="utf-8").splitlines())
    assert len(recorded) - len(results) <= 2 + 12 * 8, "what was handed out when it went down, and one episode a pause"


def test_endpoint_that_stays_down_stops_the_run_instead_of_spoiling_it(
    play: Runner, small: BenchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(after=3, for_s=1e9)
    with monkeypatch.context() as patch:
        patch.setattr(DecisionEnv, "take", lambda env, action: endpoint(env, action))
        outcome = play(changed=small, patience=Patience(errors=4, longest_s=1000.0, sleep=endpoint.sleep))
    assert endpoint.now_s == 1000.0
    assert outcome.totals.done == 3 and outcome.totals.errors == 4
    assert outcome.left == len(small.grid()) - 7
    assert "no answer came for 1,000 s of pauses" in outcome.stopped and DOWN in outcome.stopped
    assert play(changed=small).totals.done == len(small.grid())


def test_wrong_key_stops_the_run_at_once(
    play: Runner, small: BenchConfig, monkeypatch: pytest.MonkeyPatch, executor: Executor | None
) -> None:
    endpoint = Endpoint(after=0, for_s=1e9, says=REFUSED)
    with monkeypatch.context() as patch:
        patch.setattr(DecisionEnv, "take", lambda env, action: endpoint(env, action))
        one_by_one = dataclasses.replace(small, suite=msgspec.structs.replace(small.suite, seeds=1, trials=1))
        outcome = play(changed=one_by_one, executor=executor, patience=Patience(sleep=pytest.fail))
    assert "refuses every request" in outcome.stopped and "HTTP 401" in outcome.stopped
    assert outcome.totals.done == 0
    if executor is None:
        assert outcome.totals.errors == 1


def test_ctrl_c_ends_a_pause(small: BenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint, slept = Endpoint(after=0, for_s=1e9), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(DecisionEnv, "take", lambda env, action: endpoint(env, action))
    outcome = run(small, tmp_path, workers=1, watch=Quiet(silent=True), patience=Patience(errors=1, sleep=sleep))
    assert outcome.interrupted and len(slept) == 3 and outcome.totals.errors == 1


def test_errors_that_are_the_episodes_own_neither_pause_nor_stop() -> None:
    outage = Outage(Patience(errors=2))
    for number, problem in enumerate(
        [
            DOWN,
            "a chat of 9,000 tokens does not fit the window of 4,096",
            DOWN.replace("no connection (refused)", "HTTP 400: unknown role"),
        ]
    ):
        outage.saw(number, problem)
    assert not outage.down and not outage.refusal
    outage.saw(3, DOWN)
    assert outage.down and outage.to_play_again() == {0, 3}


def test_pauses_grow_up_to_the_longest_and_begin_anew_after_a_success() -> None:
    outage, slept = Outage(Patience(errors=1, longest_s=2000.0, sleep=lambda seconds: None)), list[float]()

    class Going:
        interrupted = False

    while (pause := outage.next_pause_s()) > 0:
        slept.append(pause)
        outage.pause(pause, Going())  # type: ignore[arg-type]
    assert slept == [30, 60, 120, 300, 600, 600, 290] and outage.probing
    outage.saw(0, "")
    assert outage.next_pause_s() == 30 and not outage.probing


@pytest.mark.parametrize(
    ("last", "no_answer", "refusal"),
    [
        ("no connection (refused)", True, False),
        ("no answer within 60 s", True, False),
        ("HTTP 503: overloaded", True, False),
        ("HTTP 429: slow down", True, False),
        ("HTTP 200, not JSON: <html>", True, False),
        ('HTTP 429: {"code": "insufficient_quota"}', False, True),
        ("HTTP 401: wrong key", False, True),
        ("HTTP 403: not allowed", False, True),
        ("HTTP 403: input flagged by moderation", False, False),
        ("HTTP 404: no such model", False, True),
        ("HTTP 400: unknown role", False, False),
    ],
)
def test_outage_refusal_and_error_of_one_episode_are_told_apart(last: str, no_answer: bool, refusal: bool) -> None:
    problem = f"small at http://127.0.0.1/v1 gave no usable answer in 2 attempt(s); the last: {last}"
    assert (is_no_answer(problem), is_refusal(problem)) == (no_answer, refusal)
    assert not is_no_answer(last) and not is_refusal(last), "text that no endpoint model has written says nothing"


@pytest.fixture
def server() -> Iterator[tuple[str, list[int]]]:
    """Yields the address of an endpoint that answers with the status in a list."""
    status = [401]

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status[0])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Refusing) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/v1", status
        listening.shutdown()
        thread.join()


def test_what_the_endpoint_model_says_is_understood(server: tuple[str, list[int]]) -> None:
    pytest.importorskip("openai")
    from ec2_env.models.endpoint import EndpointOptions
    from ec2_env.models.openai import EndpointModel

    def problem(address: str) -> str:
        model = EndpointModel("small", EndpointOptions(base_url=address, retries=0))
        try:
            with pytest.raises(EndpointError) as raised:
                model.complete([{"role": "user", "content": "hello"}])
        finally:
            model.close()
        return str(raised.value)

    address, status = server
    for status[0], refusal in ((401, True), (403, True), (404, True), (500, False)):
        text = problem(address)
        assert (is_refusal(text), is_no_answer(text)) == (refusal, not refusal), text
    assert is_no_answer(problem("http://127.0.0.1:9/v1"))
