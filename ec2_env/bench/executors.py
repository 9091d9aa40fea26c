"""Who plays the jobs of a run: processes of this machine, or Ray or Dask, here or on a cluster."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import re
import signal
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from ec2_env.bench.manifest import code_digest
from ec2_env.bench.records import start_worker
from ec2_env.errors import ConfigurationError
from ec2_env.registry import require

EXECUTORS = ("processes", "ray", "dask")
EPISODES = 12
"""Most episodes of simulated models, of some milliseconds each, that are handed over at once to a process of this machine."""
CLUSTER_EPISODES = 240
"""The same for Ray and Dask, where handing over takes longer; benchmarks/scaling.py measures both."""
CONNECT_S = 10.0
"""Longest time to wait for a cluster's port to answer; Ray itself would try for many minutes."""

P = ParamSpec("P")
T = TypeVar("T")


class ClusterExecutor(Executor, ABC):
    """Hands calls to workers that may be on other machines. A call that was handed over cannot be taken back.

    A run that is told to stop therefore waits for its jobs under way, which is what keeps paid episodes from being lost.

    Attributes:
        slots: Calls that the workers can make at once.
        episodes: Most episodes of simulated models that one call plays.
    """

    slots: int
    episodes = CLUSTER_EPISODES

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Returns the future of a call. `fn` is a function of an installed module.

        The future ends in ConfigurationError if the worker has another version of this package, and in BrokenExecutor if the
        worker is lost.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        self._send((code_digest(), pickle.dumps((fn, args, kwargs))), future)
        return future

    @abstractmethod
    def _send(self, call: tuple[str, bytes], future: Future[Any]) -> None:
        """Hands a call to the cluster; the future gets what comes of it."""


class RayExecutor(ClusterExecutor):
    """Calls as tasks of Ray.

    Args:
        workers: CPUs of the Ray that is started here if there is no address; None for all.
        address: Where a cluster is, such as `auto` or `ray://HOST:10001`; None starts one here, which ends with `shutdown`.
        again: Whether a call whose worker was lost is made again: not if it costs money.

    Raises:
        MissingExtra: if Ray is not installed.
        ConfigurationError: if there is no cluster at the address.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, *, again: bool = True) -> None:
        self._ray = require("ray", extra="ray")
        self._mine = not self._ray.is_initialized()
        if self._mine:
            where = {"address": address} if address else {"address": "local", "num_cpus": workers, "include_dashboard": False}
            said = {"log_to_driver": False, "logging_level": logging.WARNING}
            with _deaf():
                _connected(address, lambda: self._ray.init(**where, **said))
        self._task = self._ray.remote(num_cpus=1, max_retries=3 if again else 0)(called)
        self.slots = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _send(self, call: tuple[str, bytes], future: Future[Any]) -> None:
        self._task.remote(*call).future().add_done_callback(partial(_hand_on, future))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends what is under way, and the Ray that was started here."""
        if self._mine:
            self._ray.shutdown()


class DaskExecutor(ClusterExecutor):
    """Calls as tasks of Dask.

    Args:
        workers: Worker processes, of one thread each, that are started here if there is no address; None for all CPUs.
        address: Where a scheduler is, such as `tcp://HOST:8786`; None starts one here, which ends with `shutdown`.
        again: Whether calls whose worker was lost may be made again. A scheduler elsewhere decides for itself, by its setting
            `distributed.scheduler.allowed-failures`.

    Raises:
        MissingExtra: if Dask's scheduler is not installed.
        ConfigurationError: if there is no scheduler at the address.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, *, again: bool = True) -> None:
        distributed = require("distributed", extra="dask")
        dask = require("dask", extra="dask")
        self._cluster: Any = None
        if address is None:
            with _deaf(), dask.config.set({"distributed.scheduler.allowed-failures": 3 if again else 0}):
                self._cluster = distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
                )
        self._client = _connected(address, lambda: distributed.Client(address or self._cluster, set_as_default=False))
        self.slots = max(1, sum(self._client.nthreads().values()))
        self._held: set[Any] = set()
        """Futures of Dask: it forgets a call that nobody holds the future of."""

    def _send(self, call: tuple[str, bytes], future: Future[Any]) -> None:
        held = self._client.submit(called, *call, pure=False)
        self._held.add(held)
        held.add_done_callback(partial(self._done, future))

    def _done(self, future: Future[Any], held: Any) -> None:
        self._held.discard(held)
        _hand_on(future, held)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends what is under way, and the scheduler that was started here."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def called(digest: str, call: bytes) -> bytes:
    """Makes a call in a worker of a cluster.

    The call and what it returns are pickled here, in one piece: Ray and Dask take longer over many small objects.

    Raises:
        ConfigurationError: if the code here is not that of the process that the call comes from.
    """
    if digest != code_digest():
        raise ConfigurationError(
            "a worker of the cluster has other code of ec2-env than this process; install the same version on every machine"
        )
    fn, args, kwargs = pickle.loads(call)
    return pickle.dumps(fn(*args, **kwargs))


def _hand_on(future: Future[Any], source: Any) -> None:
    """Gives a future the outcome of another, unpickled; a worker that was lost is a BrokenExecutor."""
    try:
        result = pickle.loads(source.result())
    except BaseException as error:
        cause = getattr(error, "cause", None)
        known = cause if isinstance(cause, Exception) else error
        foreign = type(known).__module__.split(".")[0] in ("ray", "distributed", "asyncio", "concurrent")
        future.set_exception(BrokenExecutor(f"{type(known).__name__}: {known}") if foreign else known)
    else:
        future.set_result(result)


def _connected(address: str | None, connect: Callable[[], T]) -> T:
    try:
        if address is not None:
            reach(address)
        return connect()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigurationError(f"no cluster answers at {address or 'this machine'}: {error}") from error


def reach(address: str) -> None:
    """Looks whether somebody listens at an address that ends in HOST:PORT; believes any other, such as `auto`.

    Raises:
        OSError: if nobody does.
    """
    if found := re.search(r"^(?:\w+://)?\[?([^\[\]/]+?)\]?:(\d+)$", address):
        socket.create_connection((found[1], int(found[2])), timeout=CONNECT_S).close()


@contextmanager
def opened(name: str, workers: int | None, address: str | None = None, *, again: bool = True) -> Iterator[ClusterExecutor | None]:
    """Opens the executor of a name, and closes it in the end.

    Args:
        name: One of `EXECUTORS`; for `processes` there is nothing to open, and the run starts its own pool.
        workers: How many workers to start if no address is named; None for as many as there are CPUs.
        address: Where a cluster is.
        again: Whether calls whose worker was lost may be made again.

    Raises:
        ConfigurationError: if the name is unknown, or an address makes no sense.
        MissingExtra: if the package is not installed.
    """
    if name not in EXECUTORS:
        raise ConfigurationError(f"there is no executor {name!r}; the executors are {', '.join(EXECUTORS)}")
    if name == "processes":
        if address is not None:
            raise ConfigurationError("--address names a cluster of Ray or Dask; add --executor ray or --executor dask")
        yield None
        return
    executor = (RayExecutor if name == "ray" else DaskExecutor)(workers, address, again=again)
    try:
        yield executor
    finally:
        executor.shutdown()


def started_pool(workers: int) -> ProcessPoolExecutor:
    """Returns a pool whose processes do not hear Ctrl-C, which is the parent's business, from their start on."""
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=start_worker)
    with _deaf():
        for _ in range(workers):
            pool.submit(int)
    return pool


@contextmanager
def _deaf() -> Iterator[None]:
    """Lets the processes that are started meanwhile ignore Ctrl-C."""
    listening = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if listening else None
    try:
        yield
    finally:
        if listening:
            signal.signal(signal.SIGINT, before)
