"""Any executor gives the same bytes: threads, and Ray and Dask, both by a stand-in and, if they are installed, themselves."""

from __future__ import annotations

import dataclasses
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ec2_env import cli
from ec2_env.bench import executors
from ec2_env.bench.executors import DaskExecutor, RayExecutor, called, opened
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.records import play_jobs
from ec2_env.bench.runner import Outcome, RunBroken
from ec2_env.errors import ConfigurationError, MissingExtra

Runner = Callable[..., Outcome]
SMOKE = ("bench", "--suite", "email-smoke", "--quiet", "--format", "json")
NAMES = ("results.jsonl", "manifest.json")


def packed(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    """Returns a call whose function and arguments went through a pickle, as on the way to another machine."""
    data = pickle.dumps((function, args))

    def call() -> Any:
        function, args = pickle.loads(data)
        return pickle.loads(pickle.dumps(function(*args)))

    return call


class FakeRay:
    """As much of Ray as is used; two threads play its workers."""

    def __init__(self, *, running: bool = False) -> None:
        self.running = running
        self.said: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.pool = ThreadPoolExecutor(2)

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **said: Any) -> None:
        if said["address"] == "ray://nowhere:10001":
            raise ConnectionError("ray client connection timeout")
        self.said, self.running = said, True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "memory": 1e9}

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        self.options = options

        def task(function: Callable[..., Any]) -> Any:
            return SimpleNamespace(remote=lambda *args: SimpleNamespace(future=lambda: self.pool.submit(packed(function, args))))

        return task

    def shutdown(self) -> None:
        self.running = False


class FakeDask:
    """The same of Dask's `distributed`, and of its settings."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.started: dict[str, Any] = {}
        self.connected: Any = None
        self.pool = ThreadPoolExecutor(2)
        self.config = SimpleNamespace(set=self.set)
        self.settings: dict[str, Any] = {}

    def set(self, settings: dict[str, Any]) -> Any:
        self.settings = settings
        return ThreadPoolExecutor(1)  # any context manager

    def LocalCluster(self, **started: Any) -> Any:
        self.started = started
        return SimpleNamespace(close=lambda: self.closed.append("cluster"))

    def Client(self, address: Any, *, set_as_default: bool) -> Any:
        if address == "tcp://nowhere:8786":
            raise OSError("Timed out trying to connect")
        self.connected = address
        return SimpleNamespace(
            nthreads=lambda: {"a": 1, "b": 1},
            submit=lambda function, *args, pure: self.pool.submit(packed(function, args)),
            close=lambda: self.closed.append("client"),
        )


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    fake = FakeRay()
    monkeypatch.setattr(executors, "reach", lambda address: None)
    monkeypatch.setattr(executors, "require", lambda module, extra: fake)
    yield fake
    fake.pool.shutdown()


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDask]:
    fake = FakeDask()
    monkeypatch.setattr(executors, "reach", lambda address: None)
    monkeypatch.setattr(executors, "require", lambda module, extra: fake)
    yield fake
    fake.pool.shutdown()


@pytest.fixture
def small(config: BenchConfig) -> BenchConfig:
    """Returns a suite with one strategy that needs offline scores and one that does not."""
    return dataclasses.replace(config, strategies=("task_routing", "step_routing"), trajectories=True)


@pytest.fixture
def expected(play: Runner, small: BenchConfig, tmp_path: Path) -> dict[str, bytes]:
    """Returns the files of a run in this process."""
    play("expected", changed=small)
    return files(tmp_path / "expected")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def test_threads_give_the_same_bytes(play: Runner, small: BenchConfig, expected: dict[str, bytes], tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        outcome = play("threads", changed=small, workers=3, executor=pool)
    assert outcome.left == 0
    assert files(tmp_path / "threads") == expected
    assert {"results.jsonl", "trajectories.jsonl", "calibration.jsonl", "gaps.json", "manifest.json"} <= set(expected)


def test_ray_gives_the_same_bytes(
    play: Runner, small: BenchConfig, expected: dict[str, bytes], tmp_path: Path, ray: FakeRay
) -> None:
    with opened("ray", 2) as executor:
        assert executor is not None and executor.slots == 2 and ray.running
        play("ray", changed=small, workers=2, executor=executor)
    assert files(tmp_path / "ray") == expected
    assert ray.said["address"] == "local" and ray.said["num_cpus"] == 2 and not ray.running


def test_dask_gives_the_same_bytes(
    play: Runner, small: BenchConfig, expected: dict[str, bytes], tmp_path: Path, dask: FakeDask
) -> None:
    with opened("dask", 2) as executor:
        assert executor is not None and executor.slots == 2
        play("dask", changed=small, workers=2, executor=executor)
        assert isinstance(executor, DaskExecutor) and not executor._held
    assert files(tmp_path / "dask") == expected
    assert dask.started["n_workers"] == 2 and dask.started["threads_per_worker"] == 1
    assert dask.closed == ["client", "cluster"]


def test_cluster_at_an_address_is_used_and_left_running(ray: FakeRay) -> None:
    with opened("ray", None, "auto"):
        assert ray.said["address"] == "auto" and "num_cpus" not in ray.said
    ray.running, ray.said = True, {}
    with opened("ray", None):
        assert not ray.said
    assert ray.running, "a Ray that somebody else has started is not shut down"


def test_scheduler_of_dask_at_an_address_is_used_and_left_running(dask: FakeDask) -> None:
    with opened("dask", None, "tcp://host:8786"):
        assert dask.connected == "tcp://host:8786" and not dask.started
    assert dask.closed == ["client"]


def test_lost_calls_are_made_again_only_if_they_cost_nothing(ray: FakeRay) -> None:
    with opened("ray", 2):
        assert ray.options == {"num_cpus": 1, "max_retries": 3}
    with opened("ray", 2, again=False):
        assert ray.options == {"num_cpus": 1, "max_retries": 0}


def test_lost_calls_are_made_again_by_dask_only_if_they_cost_nothing(dask: FakeDask) -> None:
    for again, allowed in ((True, 3), (False, 0)):
        with opened("dask", 2, again=again):
            assert dask.settings == {"distributed.scheduler.allowed-failures": allowed}


def test_call_that_was_handed_over_is_not_taken_back(ray: FakeRay) -> None:
    with opened("ray", 2) as executor:
        assert executor is not None
        futures = [executor.submit(pow, 2, number) for number in range(6)]
        assert not any(future.cancel() for future in futures)
        assert [future.result() for future in futures] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(("most", "expected"), [(None, 12), (240, 24), (20, 20)])
def test_calls_are_large_on_clusters_and_small_for_small_runs(
    most: int | None, expected: int, play: Runner, config: BenchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call plays a share of the run, up to what suits the executor."""
    sizes: list[int] = []

    class Watched(ThreadPoolExecutor):
        if most is not None:
            episodes = most

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            sizes.append(sum(len(job.keys) for job in args[0]))
            return super().submit(fn, *args, **kwargs)

    changed = dataclasses.replace(config, strategies=("cloud_only", "edge_only", "step_routing"))
    monkeypatch.setattr("ec2_env.bench.runner.CALLS", 3)
    with Watched(1) as pool:
        play(changed=changed, executor=pool)
    assert sum(sizes) == 72 == len(changed.grid())
    assert max(sizes) <= expected and sum(sizes) / len(sizes) > expected / 2


def test_worker_with_other_code_is_refused(monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> None:
    call = pickle.dumps((pow, (2, 5), {}))
    assert pickle.loads(called(executors.code_digest(), call)) == 32
    with pytest.raises(ConfigurationError, match="same version on every machine"):
        called("0" * 64, call)
    with opened("ray", 1) as executor, monkeypatch.context() as patch:
        assert executor is not None
        answers = iter(["here", "there"])
        patch.setattr(executors, "code_digest", lambda: next(answers))
        with pytest.raises(ConfigurationError, match="same version on every machine"):
            executor.submit(pow, 2, 5).result()


class WorkerCrashedError(Exception):
    """As Ray's."""


WorkerCrashedError.__module__ = "ray.exceptions"


class Losing(Executor):
    """Loses its second job."""

    def __init__(self) -> None:
        self.jobs = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs += 1
        source: Future[Any] = Future()
        if self.jobs == 2:
            source.set_exception(WorkerCrashedError("the node died"))
        else:
            source.set_result(pickle.dumps(fn(*args, **kwargs)))
        future: Future[Any] = Future()
        executors._hand_on(future, source)
        return future


def test_worker_that_is_lost_ends_the_run_and_keeps_what_was_finished(
    play: Runner, small: BenchConfig, expected: dict[str, bytes], tmp_path: Path
) -> None:
    plain = dataclasses.replace(small, strategies=("step_routing",))
    with pytest.raises(RunBroken, match=r"worker process died.*WorkerCrashedError: the node died"):
        play("lost", changed=plain, workers=2, executor=Losing())
    kept = (tmp_path / "lost" / "results.jsonl").read_bytes().splitlines()
    assert 0 < len(kept) < len(plain.grid())
    with ThreadPoolExecutor(2) as pool:
        assert play("lost", changed=plain, workers=2, executor=pool).left == 0
    last = expected["results.jsonl"].splitlines()[-len(plain.grid()) :]
    assert (tmp_path / "lost" / "results.jsonl").read_bytes().splitlines() == last


def test_error_of_a_call_keeps_its_kind() -> None:
    for error, kind in ((ConfigurationError("no"), ConfigurationError), (WorkerCrashedError("gone"), BrokenExecutor)):
        source: Future[Any] = Future()
        source.set_exception(error)
        future: Future[Any] = Future()
        executors._hand_on(future, source)
        assert type(future.exception()) is kind


def test_wrong_executors_and_addresses_are_errors(ray: FakeRay) -> None:
    for words, message in (
        (("slurm", None, None), r"no executor 'slurm'; the executors are processes, ray, dask"),
        (("processes", None, "auto"), "add --executor ray or --executor dask"),
        (("ray", None, "ray://nowhere:10001"), "no cluster answers at ray://nowhere:10001"),
    ):
        with pytest.raises(ConfigurationError, match=message), opened(*words):
            pytest.fail("it was opened")


def test_unreachable_scheduler_of_dask_is_an_error(dask: FakeDask) -> None:
    with pytest.raises(ConfigurationError, match="no cluster answers at tcp://nowhere:8786"):
        DaskExecutor(address="tcp://nowhere:8786")


def test_address_where_nobody_listens_is_found_before_the_cluster_is_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", f"tcp://localhost:{port}", "auto", "local"):
            executors.reach(address)
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(OSError, match="refused"):
            executors.reach(address)


@pytest.mark.parametrize(("kind", "module", "extra"), [(RayExecutor, "ray", "ray"), (DaskExecutor, "distributed", "dask")])
def test_missing_package_is_named_with_the_command_that_installs_it(
    kind: type[Executor], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"ec2-env\[{extra}\]"):
        kind()


def test_jobs_of_threads_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = [0], [0]

    def watched(job: Any) -> Iterator[int]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        yield from range(50)
        inside[0] -= 1

    monkeypatch.setattr("ec2_env.bench.records.play_job", watched)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(play_jobs, [[1, 2]] * 20))  # type: ignore[list-item]
    assert most == [1] and [len(one) for one in found] == [100] * 20


@pytest.mark.parametrize(("name", "module"), [("ray", "ray"), ("dask", "distributed")])
def test_the_real_cluster_gives_the_same_bytes(name: str, module: str, tmp_path: Path) -> None:
    pytest.importorskip(module)
    assert cli.main([*SMOKE, "--workers", "1", "--out", str(tmp_path / "here")]) == 0
    words = [sys.executable, "-m", "ec2_env", *SMOKE, "--executor", name, "--workers", "1", "--out", str(tmp_path / "there")]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
    assert found.returncode == 0, found.stderr
    for file in NAMES:
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes(), file
