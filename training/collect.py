"""Collects datasets for TRL from episodes: conversations of the agent, and decisions about the cloud. See docs/data.md.

The same plan gives the same rows in the same order, whatever the number of processes is.
"""

from __future__ import annotations

import multiprocessing
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import ec2_env
from ec2_env.bench.grid import strategy_of
from ec2_env.bench.manifest import code_digest, digest
from ec2_env.bench.records import start_worker
from ec2_env.bench.stored_runs import StoredRun
from ec2_env.bench.suites import suite_digest
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Strategy
from ec2_env.training.collect_decisions import TEACHER, decision_rows, judged_states, kto_rows, preference_rows
from ec2_env.training.collect_episodes import EPISODE, conversation_row, conversation_rows, unusable
from ec2_env.training.collect_folder import Collected, Done, Watch, write_folder
from ec2_env.training.collect_plan import Plan, check, env_of, rules, simulated
from ec2_env.training.collect_stored import open_stored, stored_episode, stored_lines
from ec2_env.training.teacher import BASES, Teacher

FORMAT = 1
"""Version of the columns and of collection.json."""
AHEAD = 4
"""Jobs for each process that may be under way or wait to be written."""
TIES = "states: no decision is better by the margin"

Row = dict[str, Any]
ItemT = TypeVar("ItemT")


def collect(plan: Plan, out: Path, workers: int = 1, watch: Watch | None = None) -> Done:
    """Plays episodes and writes their rows and a card to a new folder.

    The folder appears under its name when it is complete.

    Args:
        plan: What to collect.
        out: The folder.
        workers: Processes that play.
        watch: Is told how far it is.

    Raises:
        UnknownName: if something named in the plan does not exist.
        ConfigurationError: if the plan cannot be used, the folder is there already, or a process died.
        MissingExtra: if pyarrow is not installed.
    """
    check(plan)
    strategies = [strategy_of(spec).name for spec in plan.strategies]
    about = {
        **_about(plan.kind, plan.suite.split, plan.command()),
        "episodes": f"{len(plan.suite.pairs())} pair(s) of task and language, seeds 0 to {plan.suite.seeds - 1}, "
        f"{plan.suite.trials} trial(s) each, split {plan.suite.split}",
        "suite_digest": suite_digest(plan.suite),
        "edges": [plan.edge],
        "cloud": plan.cloud,
        "simulated": simulated(plan),
        "strategies": strategies,
        "rules": rules(plan),
    }
    with ExitStack() as stack:
        pool = None
        if workers > 1:
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker))
        return write_folder(about, plan.chat, in_order(pool, partial(rows_of, plan), plan.keys(), workers), out, watch)


def collect_stored(run: Path, out: Path, threshold: float, allow_test: bool = False, watch: Watch | None = None) -> Done:
    """Writes conversations of the trajectories that a run has kept; nothing is played, but every call is made again.

    Args:
        run: Folder of the run.
        out: The folder to make.
        threshold: Completion from which a conversation is taken, 0 to 1.
        allow_test: Whether a run of the test split may be taken.
        watch: Is told how far it is.

    Raises:
        ConfigurationError: if the run cannot be used, or a trajectory is not what its calls bring.
        MissingExtra: if pyarrow is not installed.
    """
    if not 0 <= threshold <= 1:
        raise ConfigurationError(f"threshold is {threshold:g}, expected a completion from 0 to 1")
    stored = open_stored(run, allow_test)
    settings = stored.settings
    words = ["ec2-env", "collect", "--kind", "sft", "--trajectories", "RUN", "--threshold", f"{threshold:g}"]
    words += ["--allow-test"] if settings["split"] == "test" else []
    specs = (*settings["edges"], settings["cloud"])
    about = {
        **_about("sft", settings["split"], shlex.join([*words, "--out", "DIR"])),
        "episodes": f"trajectories of a run with the manifest {digest(dict(settings))}, split {settings['split']}",
        "suite_digest": None,
        "edges": list(settings["edges"]),
        "cloud": settings["cloud"],
        "simulated": all(stored.card(spec).simulated for spec in specs),
        "strategies": [str(name) for name in settings["strategies"]],
        "rules": {"taken": f"episodes completed to at least {threshold:g}, by the grader of this version"},
    }
    return write_folder(about, False, _stored_rows(stored, threshold), out, watch)


def _about(kind: str, split: str, command: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": kind,
        "split": split,
        "command": command,
        "version": ec2_env.__version__,
        "code": code_digest(),
    }


# -- rows


def rows_of(plan: Plan, key: EpisodeKey) -> Collected:
    """Returns the rows of one episode."""
    left_out: Counter[str] = Counter()
    env = env_of(plan.edge, plan.cloud, plan.suite.max_steps)
    strategies = [strategy_of(spec) for spec in plan.strategies]
    if plan.kind == "sft":
        return list(conversation_rows(env, strategies, key, plan.threshold, left_out)), left_out
    players: list[Strategy | None] = [*strategies] or [None]
    teacher = Teacher(bases=BASES[:1], draws=plan.draws)
    rows: list[Row] = []
    for player in players:
        rows += _judged_rows(plan, env, teacher, player, key, left_out)
    return rows, left_out


def _judged_rows(
    plan: Plan, env: DecisionEnv, teacher: Teacher, strategy: Strategy | None, key: EpisodeKey, left_out: Counter[str]
) -> Iterator[Row]:
    name = strategy.name if strategy is not None else TEACHER
    for state, decision in judged_states(env, plan.settings, teacher, strategy, key):
        match plan.kind:
            case "preference":
                found = list(preference_rows(state, name, plan.chat, plan.margin))
            case "kto":
                found = list(kto_rows(state, name, plan.chat, plan.margin))
            case _:
                found = list(decision_rows(state, decision, name, plan.chat))
        left_out[TIES] += not found
        yield from found


def _stored_rows(run: StoredRun, threshold: float) -> Iterator[Collected]:
    cloud = run.card(run.settings["cloud"])
    for number, line in stored_lines(run):
        where = f"{run.kept}: line {number}"
        played, messages = stored_episode(line, run.settings["split"], where)
        reason = unusable(played, threshold)
        if reason:
            yield [], Counter({reason: 1})
            continue
        try:
            yield [conversation_row(played, messages, EPISODE, cloud)], Counter()
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error


def in_order(
    pool: Executor | None, function: Callable[[ItemT], Collected], items: Iterator[ItemT], workers: int
) -> Iterator[Collected]:
    """Yields a function's results in the order of the items; a pool works ahead of the reader, but not far.

    Raises:
        ConfigurationError: if a process of the pool died.
    """
    if pool is None:
        yield from map(function, items)
        return
    waiting: deque[Future[Collected]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenExecutor as error:
        raise ConfigurationError("a process that played died; there may be too little memory: try fewer --workers") from error
    finally:
        for future in waiting:
            future.cancel()
