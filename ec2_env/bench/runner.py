"""Plays the episodes of a run that have not been played, in one process or several, and keeps the totals."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import msgspec

from ec2_env.bench.executors import EPISODES, started_pool
from ec2_env.bench.grid import BenchConfig, Cell, Grid, strategy_of
from ec2_env.bench.manifest import about, manifest
from ec2_env.bench.records import Broken, EpisodeRecord, Job, Played, frozen, play_job, play_jobs
from ec2_env.bench.statistics import Totals
from ec2_env.bench.stopping import Caps, Outage, Patience, Stop
from ec2_env.bench.store import SYNC_S, RecordLog, RunFolder, write_json
from ec2_env.errors import ConfigurationError, EC2Error
from ec2_env.models.loading import load_model
from ec2_env.strategy import Estimating, Measured, Prepared, Strategy

AHEAD = 4
"""Jobs handed out for each worker: enough to keep it busy, few enough to stop soon."""
CALLS = 8
"""Calls that each worker makes at least, if there is enough to play, so that none is idle for long at the end."""
AHEAD_OF_SLOW = 2
"""The same where episodes are slow or cost money; with a cap it is 1, so that no episode begins after the cap is reached."""


class RunBroken(EC2Error):
    """An episode raised, or a worker process died. What was finished is kept."""


class Watching(Protocol):
    """Is told how a run goes."""

    def stage(self, name: str, done: int, total: int) -> None:
        """A part of the run begins; `done` of its episodes are there already."""
        ...

    def advance(self, episodes: int, totals: Totals) -> None:
        """Some episodes have been played."""
        ...

    def say(self, text: str) -> None:
        """Something that the user should know."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to.

    Attributes:
        stopped: Why it ended early, in words; empty if it did not.
        interrupted: Whether it was the user who stopped it.
        left: Episodes that have not been played.
        cap: The option whose cap was reached, such as "--max-usd"; empty if none was.
    """

    totals: Totals
    stopped: str
    interrupted: bool
    left: int
    settings: Mapping[str, Any]
    cap: str = ""


def check(config: BenchConfig) -> None:
    """Loads every strategy and model once, so that a wrong name is found before the first episode.

    Raises:
        UnknownName: for a strategy, model, task or domain that does not exist.
        ConfigurationError: for options that cannot be used, or a cloud model without a price.
        MissingExtra: for a model that needs a package that is not installed.
    """
    config.suite.pairs()
    if not config.strategies or not config.edges:
        raise ConfigurationError("nothing to compare: name at least one strategy and one edge model")
    for spec in config.strategies:
        strategy_of(spec)
    for spec in config.edges:
        load_model(spec)
    if (card := load_model(config.cloud).card).price is None:
        raise ConfigurationError(f"cloud model {card.name!r} has no price; name one, for example with @price=gpt-5.4")


def is_heavy(config: BenchConfig) -> bool:
    """Says whether a model or strategy is too large, or its endpoint too limited, to be used by several processes unasked."""
    if any(getattr(strategy_of(spec), "heavy", False) for spec in config.strategies):
        return True
    return any(not load_model(spec).card.simulated for spec in (*config.edges, config.cloud))


def asks_endpoints(config: BenchConfig) -> bool:
    """Says whether a run waits for answers of models that are neither simulated nor replayed."""
    real = [spec for spec in (*config.edges, config.cloud) if not spec.startswith("replay:")]
    return any(not load_model(spec).card.simulated for spec in real)


def run(
    config: BenchConfig,
    path: Path,
    *,
    workers: int,
    watch: Watching,
    caps: Caps | None = None,
    keep_errors: bool = False,
    executor: Executor | None = None,
    patience: Patience | None = None,
) -> Outcome:
    """Plays what is missing in a run folder and returns the totals of all of it.

    The same settings give the same records and totals with any executor and number of workers, however often the run was
    interrupted.

    Args:
        config: What to run.
        path: The run folder.
        workers: Number of jobs at once. Without an executor, 1 plays in this process and more in so many others.
        watch: Is told how it goes.
        caps: Stops the run when all that is recorded in the folder has reached one of them. No episode starts after that; those
            under way, at most one for each worker, are finished and recorded, so that no result depends on a cap.
        keep_errors: Leaves episodes that ended in an infrastructure error as they are, instead of playing them again.
        executor: Plays the jobs; stays open. It calls module-level functions with picklable arguments. Its processes hold the
            same version of this package; threads take turns.
        patience: How an endpoint that is down is borne; None is the default, and no patience where no endpoint is asked.

    Raises:
        ConfigurationError: if the folder cannot be used.
        RunBroken: if an episode raised or a worker died.
        StorageError: if the disk is full or fails; what was recorded before is kept.
    """
    settings = manifest(config)
    stop = Stop(caps or Caps())
    if patience is None and asks_endpoints(config):
        patience = Patience()
    player = _Player(config, path, workers, watch, stop, keep_errors, executor, patience)
    with closing(RunFolder(path, settings, about())), stop.listening(watch.say), player as play:
        gaps: dict[Cell, Gaps] = {}
        if config.prepared():
            scored = play.stage("scoring tasks for offline routers", config.calibration(), "calibration", gaps)
            if not stop.reason:
                measured = offline_scores(scored)
                shown = {edge: measured_gaps(one, measured[None]) for edge, one in measured.items() if edge is not None}
                write_json(
                    path / "gaps.json", {edge: {"/".join(k): v for k, v in found.items()} for edge, found in shown.items()}
                )
                gaps = _gaps_by_row(config, measured)
        totals = Totals(config.grid())
        if not stop.reason:
            totals = play.stage("playing", totals.grid, "results", gaps)
    left = len(totals.grid) - totals.done - totals.errors
    return Outcome(
        totals=totals,
        stopped=stop.reason if left or totals.errors else "",
        interrupted=stop.interrupted,
        left=left,
        settings=settings,
        cap=stop.cap if left else "",
    )


Gaps = Mapping[tuple[str, str], float]
"""How much more the cloud alone completes of each (task, language) than an edge model alone."""
Means = Mapping[tuple[str, str], Measured]


def offline_scores(scored: Totals) -> dict[str | None, Means]:
    """Returns what each edge model alone completed in the episodes of `BenchConfig.calibration`; under None, what the cloud did.

    Raises:
        RunBroken: if a pair could not be scored because all its episodes ended in infrastructure errors.
    """
    found: dict[str | None, Means] = {cell.edge: scored.measured(cell) for cell in scored.grid.cells}
    for means in found.values():
        missing = [pair for pair in scored.grid.pairs if pair not in means]
        if missing:
            raise RunBroken(
                f"offline routers cannot be scored: every episode of {'/'.join(missing[0])} on the train split ended in an "
                "infrastructure error; see calibration.jsonl, mend the endpoint and run again"
            )
    return found


def measured_gaps(edge: Means, cloud: Means) -> Gaps:
    """Returns the differences of the means."""
    return {pair: cloud[pair].completion - one.completion for pair, one in edge.items()}


def gaps_for(strategy: Strategy, edge: Means, cloud: Means) -> Gaps:
    """Returns what a strategy is prepared with: its own estimates if it makes any, else the differences of the means."""
    return strategy.estimate(edge, cloud) if isinstance(strategy, Estimating) else measured_gaps(edge, cloud)


def _gaps_by_row(config: BenchConfig, measured: Mapping[str | None, Means]) -> dict[Cell, Gaps]:
    rows = [(cell, strategy_of(cell.strategy)) for cell in config.cells() if cell.edge is not None]
    return {
        cell: gaps_for(strategy, measured[cell.edge], measured[None]) for cell, strategy in rows if isinstance(strategy, Prepared)
    }


class _Player:
    """Plays the stages of one run."""

    def __init__(
        self,
        config: BenchConfig,
        path: Path,
        workers: int,
        watch: Watching,
        stop: Stop,
        keep_errors: bool,
        executor: Executor | None,
        patience: Patience | None,
    ) -> None:
        self.config = config
        self.path = path
        self.workers = workers
        self.watch = watch
        self.stop = stop
        self.keep_errors = keep_errors
        self.executor = executor
        self.outage = Outage(patience)
        self.careful = stop.caps.any() or is_heavy(config)
        """Whether episodes are slow or cost money: then they are handed out one by one, few ahead, and forced onto the disk."""
        self.ahead = workers * (1 if stop.caps.any() else AHEAD_OF_SLOW if self.careful else AHEAD)
        self.together = 1
        """Episodes that are handed over at once."""
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Player:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the worker processes: at once after a second Ctrl-C, else after the jobs under way."""
        if self.pool is None:
            return
        if kind is KeyboardInterrupt:
            for child in multiprocessing.active_children():
                child.terminate()
        self.pool.shutdown(cancel_futures=True)

    def stage(self, name: str, grid: Grid, file: str, gaps: Mapping[Cell, Gaps]) -> Totals:
        """Plays the episodes of a grid that its file lacks, in order, and returns the totals of all of them."""
        totals = Totals(grid)
        beside = self.path / f"{file}.trajectories.jsonl" if file != "results" else self.path / "trajectories.jsonl"
        kept = beside if self.config.trajectories else None
        log = RecordLog(self.path / f"{file}.jsonl", kept, self.watch.say, sync_s=0.0 if self.careful else SYNC_S)
        for record in log.read():
            totals.add(record)
        failed: set[int] = set()
        there = sum(not self._is_missing(number, totals, failed) for number in range(len(grid)))
        self.watch.stage(name, there, len(grid))
        if warning := log.warning(len(grid) - there):
            self.watch.say(warning)
        self.stop.trouble = self.stop.trouble or log.trouble
        if not self.careful:
            most = getattr(self.executor, "episodes", EPISODES)
            self.together = min(most, (len(grid) - there) // (CALLS * self.workers))
        earlier = self.stop.spent
        self.stop.spent = earlier + totals.spent
        with closing(log):
            while True:
                skipped = failed - self.outage.to_play_again()
                missing = (number for number in range(len(grid)) if self._is_missing(number, totals, failed))
                for played in self._played(grid, (number for number in missing if number not in skipped), gaps):
                    log.append(played)
                    for one in played:
                        self._count(msgspec.json.decode(one.record, type=EpisodeRecord), totals, failed)
                    self.stop.spent = earlier + totals.spent
                    self.stop.trouble = self.stop.trouble or log.trouble
                    self.watch.advance(len(played), totals)
                if not self._once_more():
                    return totals

    def _is_missing(self, number: int, totals: Totals, failed: set[int]) -> bool:
        """Says whether an episode has no result yet; if errors are kept, those of earlier runs are results."""
        return not totals.has(number, or_error=self.keep_errors and number not in failed)

    def _count(self, record: EpisodeRecord, totals: Totals, failed: set[int]) -> None:
        totals.add(record)
        number = totals.grid.number(record.cell, record.key)
        assert number is not None
        problem = str(record.result["problem"]) if record.result["status"] == "error" else ""
        if problem:
            failed.add(number)
        self.outage.saw(number, problem)
        if self.outage.refusal:
            self.stop.trouble = f"an endpoint refuses every request: {self.outage.refusal}"

    def _once_more(self) -> bool:
        """Waits if an endpoint is down; says whether there is something to play again."""
        outage = self.outage
        if self.stop.reason:
            return False
        if not outage.down:
            return outage.has_spoiled()
        pause_s = outage.next_pause_s()
        if pause_s <= 0:
            self.stop.trouble = f"{outage.says()}; no answer came for {outage.waited_s:,.0f} s of pauses"
            return False
        self.watch.say(
            f"{outage.says()}. Waiting {pause_s:,.0f} s before the next try; Ctrl-C ends the run, which can be resumed"
        )
        outage.pause(pause_s, self.stop)
        return not self.stop.reason

    def _played(self, grid: Grid, missing: Iterator[int], gaps: Mapping[Cell, Gaps]) -> Iterator[list[Played]]:
        """Yields finished episodes in the order of the grid until there are no more or it is time to stop or to pause."""
        jobs = self._jobs(grid, missing, gaps)
        if self.stop.reason:
            return
        if self.workers == 1 and self.executor is None:
            for job in jobs:
                for one in play_job(job):
                    yield [_whole(one)]
                    if self.stop.reason or self.outage.down:
                        return
            return
        if self.executor is None and self.pool is None:
            self.pool = started_pool(self.workers)
        executor = self.executor or self.pool
        assert executor is not None
        try:
            yield from self._pooled(executor, jobs)
        except BrokenExecutor as error:
            raise RunBroken(
                "a worker process died, perhaps for lack of memory; finished episodes are kept: run the same command again, with "
                f"fewer --workers if it happens again ({error})"
            ) from error

    def _pooled(self, executor: Executor, jobs: Iterator[Job]) -> Iterator[list[Played]]:
        waiting: deque[Future[list[Played | Broken]]] = deque()
        calls = _calls(jobs, self.together)
        while True:
            ahead = 1 if self.outage.probing else self.ahead
            room = 0 if self.stop.reason or self.outage.down else max(0, ahead - len(waiting))
            waiting.extend(executor.submit(play_jobs, call) for call in itertools.islice(calls, room))
            if not waiting:
                return
            first = waiting.popleft()
            if (self.stop.reason or self.outage.down) and first.cancel():
                continue
            found = first.result()
            finished = [one for one in found if isinstance(one, Played)]
            if finished:
                yield finished
            _whole(found[-1])

    def _jobs(self, grid: Grid, missing: Iterator[int], gaps: Mapping[Cell, Gaps]) -> Iterator[Job]:
        suite = self.config.suite
        scores = {cell: frozen(found) for cell, found in gaps.items()}
        for cell, keys in grid.chunks(missing, 1 if self.careful else EPISODES):
            yield Job(cell, keys, scores.get(cell, ()), suite.max_steps, self.config.weights, self.config.trajectories)


def _calls(jobs: Iterator[Job], episodes: int) -> Iterator[tuple[Job, ...]]:
    """Groups jobs that follow each other, up to a number of episodes, but one job at least."""
    held, size = list[Job](), 0
    for job in jobs:
        if held and size + len(job.keys) > episodes:
            yield tuple(held)
            held, size = [], 0
        held, size = [*held, job], size + len(job.keys)
    if held:
        yield tuple(held)


def _whole(one: Played | Broken) -> Played:
    """Returns an episode that was played to its end.

    Raises:
        RunBroken: if it was not.
    """
    if isinstance(one, Played):
        return one
    kind = one.message if one.expected else f"a defect, please report it:\n{one.message}"
    raise RunBroken(f"{one.episode}: {kind}")
