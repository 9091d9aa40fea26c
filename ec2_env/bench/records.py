"""The record of one episode, and the side of the runner that plays episodes, in this process or in others."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import msgspec

from ec2_env.bench.grid import Cell, strategy_of
from ec2_env.envs import DecisionEnv
from ec2_env.errors import EC2Error
from ec2_env.reference import reference_usd
from ec2_env.reward import RewardWeights, terms
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Prepared, Strategy
from ec2_env.trace import to_json


class EpisodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `results.jsonl`.

    Attributes:
        reward: The terms of the whole episode, unweighted: task, cost (1: as cloud-only), exposure (1: every unit in full).
        total: The return: the weighted sum of the terms.
        result: `info["result"]` of the last step.
        sha256: Digest of the trajectory.
    """

    strategy: str
    edge: str | None
    cloud: str
    task: str
    language: str
    split: str
    seed: int
    trial: int
    reward: dict[str, float]
    total: float
    result: dict[str, Any]
    sha256: str

    @property
    def cell(self) -> Cell:
        return Cell(self.strategy, self.edge, self.cloud)

    @property
    def key(self) -> EpisodeKey:
        return EpisodeKey(task=self.task, language=self.language, split=self.split, seed=self.seed, trial=self.trial)


class Job(NamedTuple):
    """Episodes to play: they share a cell, a task and a language.

    `gaps` are the offline scores of (task, language) pairs, for strategies that need them.
    """

    cell: Cell
    keys: tuple[EpisodeKey, ...]
    gaps: tuple[tuple[tuple[str, str], float], ...]
    max_steps: int | None
    weights: RewardWeights
    trajectories: bool


class Played(NamedTuple):
    """An episode as lines of JSON: its record, and its trajectory if that is kept."""

    record: bytes
    trajectory: bytes | None


class Broken(NamedTuple):
    """An exception in a worker, as text: not every exception survives the way between processes."""

    episode: str
    message: str
    expected: bool
    """Whether it is an error that the message explains, rather than a defect."""


def play_job(job: Job) -> Iterator[Played | Broken]:
    """Plays the episodes of a job one after the other; ends after the first that raises."""
    for key in job.keys:
        try:
            yield _play(job, key)
        except Exception as error:
            name = f"{job.cell.strategy} on {key.task}/{key.language}/{key.split}/{key.seed}, trial {key.trial}"
            known = isinstance(error, EC2Error)
            yield Broken(name, str(error) if known else traceback.format_exc(), known)
            return


_TURN = threading.Lock()


def play_jobs(jobs: Sequence[Job]) -> list[Played | Broken]:
    """Plays jobs in a worker; a `Broken` is the last. Threads of one process share its envs, so they take turns."""
    found: list[Played | Broken] = []
    with _TURN:
        for job in jobs:
            found += play_job(job)
            if isinstance(found[-1], Broken):
                break
    return found


def _play(job: Job, key: EpisodeKey) -> Played:
    env = _env(job.cell.edge, job.cell.cloud, job.max_steps)
    trajectory = play(env, _strategy(job.cell.strategy, job.gaps), key)
    session = env.session
    assert session is not None
    unit = reference_usd(key.task, session.episode.language, env.cloud.card)
    found = terms(trajectory.events, {}, session.episode.units, unit)
    line = to_json(trajectory)
    record = EpisodeRecord(
        **job.cell._asdict(),
        **asdict(key),
        reward={"task": found.task, "cost": found.cost, "exposure": found.exposure},
        total=found.scalar(job.weights),
        result=trajectory.result,
        sha256=hashlib.sha256(line).hexdigest(),
    )
    return Played(msgspec.json.encode(record, order="sorted"), line if job.trajectories else None)


@lru_cache(maxsize=8)
def _env(edge: str | None, cloud: str, max_steps: int | None) -> DecisionEnv:
    return DecisionEnv(edge=edge, cloud=cloud, max_episode_steps=max_steps)


@lru_cache(maxsize=64)
def _strategy(spec: str, gaps: tuple[tuple[tuple[str, str], float], ...]) -> Strategy:
    strategy = strategy_of(spec)
    return strategy.prepare(dict(gaps)) if isinstance(strategy, Prepared) else strategy


def frozen(gaps: Mapping[tuple[str, str], float]) -> tuple[tuple[tuple[str, str], float], ...]:
    """Returns offline scores in a form that can be a key of a cache."""
    return tuple(sorted(gaps.items()))


def start_worker() -> None:
    """Sets up a worker process: Ctrl-C is the parent's business, and a parent that was killed takes its workers along."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
