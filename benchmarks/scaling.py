"""Measures what a large run is made of: an episode, handing a job to a worker, and what the one process that records does.

python benchmarks/scaling.py
python benchmarks/scaling.py --executor processes --executor ray --executor dask --workers 2 --episodes 240

Times are of wall clocks, and medians of several rounds where that is possible; other load on the machine makes them longer. The
last lines say how many workers one recording process can serve.
"""

from __future__ import annotations

import argparse
import dataclasses
import operator
import os
import resource
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from pathlib import Path

import msgspec

from ec2_env.bench.executors import EPISODES, EXECUTORS, opened, started_pool
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.parquet import export
from ec2_env.bench.progress import Quiet
from ec2_env.bench.records import EpisodeRecord, Job, Played, play_jobs
from ec2_env.bench.runner import run
from ec2_env.bench.statistics import Totals
from ec2_env.bench.store import RecordLog, write_json
from ec2_env.bench.suites import load_suite

ECHO = operator.itemgetter(1)
"""Returns the answer that it is given beside some jobs: a call that costs only the way there and back."""


def config_of(episodes: int) -> BenchConfig:
    """Returns the first tasks of the default suite, three strategies, 12 episodes of each task, about as many as wanted."""
    suite = load_suite("ec2-128")
    tasks = max(1, episodes // (3 * EPISODES))
    names = suite.tasks[:: max(1, len(suite.tasks) // tasks)][:tasks]
    suite = msgspec.structs.replace(suite, tasks=names, seeds=4, trials=3)
    strategies = ("edge_only", "cloud_only", "step_routing")
    return BenchConfig(name="ec2-128", suite=suite, strategies=strategies, edges=("sim:qwen3.5-9b",), cloud="sim:gpt-5.4")


def timed(call: Callable[[], object], rounds: int) -> float:
    """Returns the median of the seconds that a call takes."""
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def jobs_of(config: BenchConfig) -> list[Job]:
    """Returns the jobs of a run."""
    chunks = config.grid().chunks(iter(range(len(config.grid()))), EPISODES)
    return [Job(cell, keys, (), config.suite.max_steps, config.weights, config.trajectories) for cell, keys in chunks]


def played(jobs: list[Job]) -> tuple[list[list[Played]], float]:
    """Returns the answers of jobs played here, and the processor seconds of one episode; vocabularies are loaded before."""
    play_jobs(jobs[::3])
    begun = time.process_time()
    answers = [[one for one in play_jobs([job]) if isinstance(one, Played)] for job in jobs]
    return answers, (time.process_time() - begun) / sum(map(len, answers))


def record_s(config: BenchConfig, answers: list[list[Played]]) -> float:
    """Returns the processor seconds that recording one episode takes, the disk left out of them."""
    totals = Totals(config.grid())
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(RecordLog(Path(folder) / "results.jsonl", None, print)) as log,
    ):
        begun = time.process_time()
        for answer in answers:
            log.append(answer)
            for one in answer:
                totals.add(msgspec.json.decode(one.record, type=EpisodeRecord))
        return (time.process_time() - begun) / sum(map(len, answers))


def handing_s(executor: Executor, jobs: tuple[Job, ...], answer: list[Played], workers: int) -> float:
    """Returns the seconds that a call takes of the way there and back, with many under way and nothing to do."""
    calls = 20 * workers

    def all_of_them() -> None:
        for future in [executor.submit(ECHO, (jobs, answer)) for _ in range(calls)]:
            future.result()

    all_of_them()
    return timed(all_of_them, 5) / calls


def show(name: str, value: str) -> None:
    """Prints a line of the table."""
    print(f"{name:<66}{value:>16}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", action="append", choices=EXECUTORS, help="repeatable (default: processes)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--episodes", type=int, default=144, help="about so many are played (default: %(default)s)")
    parser.add_argument("--records", type=int, default=0, help="also read and export so many records; needs the extra parquet")
    parser.add_argument("--runs", action="store_true", help="also time whole runs with 1 worker and with --workers")
    chosen = parser.parse_args()
    config = config_of(chosen.episodes)
    jobs = jobs_of(config)
    answers, episode_s = played(jobs)
    episodes = [one for answer in answers for one in answer]
    recording_s = statistics.median(record_s(config, answers) for _ in range(5))
    show("episodes played", f"{len(episodes):,}")
    show("processor time of an episode", f"{1e3 * episode_s:.2f} ms")
    show("bytes of a record", f"{statistics.mean(len(one.record) + 1 for one in episodes):,.0f}")
    show("bytes of a trajectory", f"{trajectory_bytes(config):,.0f}")
    show("processor time of recording an episode", f"{1e6 * recording_s:.0f} us")
    for name in chosen.executor or ["processes"]:
        with opened(name, chosen.workers) as cluster:
            executor: Executor = cluster or started_pool(chosen.workers)
            size = cluster.episodes if cluster else EPISODES
            for together in dict.fromkeys((EPISODES, size)):
                call = tuple((jobs * together)[: together // EPISODES])
                call_s = handing_s(executor, call, (episodes * together)[:together], chosen.workers)
                say(name, chosen.workers, together, call_s, episode_s, recording_s)
            if cluster is None:
                executor.shutdown()
    if chosen.records:
        large_files(config, episodes, chosen.records)
    if chosen.runs:
        whole_runs(config, chosen.workers)


def trajectory_bytes(config: BenchConfig) -> float:
    """Returns the mean size of some trajectories, as lines."""
    some = jobs_of(dataclasses.replace(config, trajectories=True))[::4]
    return statistics.mean(len(one.trajectory or b"") + 1 for one in play_jobs(some) if isinstance(one, Played))


def say(name: str, workers: int, together: int, call_s: float, episode_s: float, recording_s: float) -> None:
    """Prints what handing over a number of episodes at once costs, and what follows from it."""
    work_s, one_s = together * episode_s, call_s + together * recording_s
    title = f"{name}, {together} episodes a call"
    show(f"{title}: way there and back", f"{1e3 * call_s:.2f} ms")
    show(f"{title}: share of it, {workers} workers", f"{100 * call_s / (work_s / workers + call_s):.2f} %")
    show(f"{title}: episodes a second handed over and recorded", f"{together / one_s:,.0f}")
    show(f"{title}: workers of this speed that it keeps busy", f"{work_s / one_s:,.0f}")


def large_files(config: BenchConfig, episodes: list[Played], number: int) -> None:
    """Writes a run of so many records, those at hand over and over with other seeds; times reading it again and exporting it."""
    held = [msgspec.json.decode(one.record, type=EpisodeRecord) for one in episodes]
    rounds = max(1, number // len(held))
    seeds = config.suite.seeds * rounds
    wide = dataclasses.replace(config, suite=msgspec.structs.replace(config.suite, seeds=seeds))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        with file.open("wb") as stream:
            for cell in wide.cells():
                for turn in range(rounds):
                    for one in held:
                        moved = msgspec.structs.replace(one, seed=one.seed + turn * config.suite.seeds)
                        stream.write(msgspec.json.encode(moved, order="sorted") + b"\n" if one.cell == cell else b"")
        write_json(Path(folder) / "manifest.json", {"settings": {}})
        totals, log = Totals(wide.grid()), RecordLog(file, None, print)
        begun = time.process_time()
        for record in log.read():
            totals.add(record)
        rows = totals.done
        show(f"processor time of reading one of {rows:,} records", f"{1e6 * (time.process_time() - begun) / rows:.0f} us")
        before, begun = peak_mb(), time.process_time()
        export(Path(folder), Path(folder) / "parquet")
        show("processor time of exporting one of them", f"{1e6 * (time.process_time() - begun) / rows:.0f} us")
        show("memory that the export added at its peak", f"{peak_mb() - before:,.0f} MB")
    tracemalloc.start()
    whole = Totals(dataclasses.replace(config, suite=msgspec.structs.replace(config.suite, seeds=10_000_000 // 36)).grid())
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    show(f"memory of the totals of {len(whole.grid):,} episodes", f"{size / 1e6:,.0f} MB")


def peak_mb() -> float:
    """Returns the largest memory of this process so far, in megabytes, on Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def whole_runs(config: BenchConfig, workers: int) -> None:
    """Times whole runs, start of the workers included, in a folder that is removed."""
    for number in dict.fromkeys((1, workers)):
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            run(config, Path(folder) / "run", workers=number, watch=Quiet(silent=True))
            taken = time.perf_counter() - begun
        show(f"a whole run of {len(config.grid()):,} episodes, processes, workers: {number}", f"{taken:.1f} s")


if __name__ == "__main__":
    main()
