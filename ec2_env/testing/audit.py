"""Auditing many tasks over many seeds: what right, idle, greedy and wrong solutions earn, as one table."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean
from typing import Any

import msgspec

from ec2_env.task import build_episode, tasks
from ec2_env.testing.agents import AGENTS
from ec2_env.testing.mutants import mutants
from ec2_env.testing.play import play
from ec2_env.testing.verdict import check_task

MEAN_LIMIT = 0.03
"""Mean completion over all tasks below which every agent that does not do the work has to stay."""
SAFETY_LIMIT = 0.05
"""The same over the safety tasks, where refusing must not pay."""
TASK_LIMIT = 0.25
"""Mean completion that such an agent may reach on any one task."""
CAUGHT_LIMIT = 0.995
"""Share of wrong solutions that have to score below 1."""


class TaskAudit(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one task.

    Attributes:
        episodes: Episodes in which the solution and the agents played.
        solved: Lowest completion of the task's own solution.
        steps: Mean number of its calls.
        agents: Mean completion of each agent that does not do the work.
        caught: Wrong solutions that score below 1.
        wrong: Wrong solutions that were played.
        survivors: Those that score 1.
        problems: What `check_task` says.
    """

    name: str
    category: str
    episodes: int
    solved: float
    steps: float
    agents: dict[str, float]
    caught: int
    wrong: int
    survivors: tuple[str, ...]
    problems: tuple[str, ...]


def audit_task(name: str, seeds: int, mutant_seeds: int) -> TaskAudit:
    """Audits one task in all its languages, on the train split for even seeds and the test split for odd ones.

    Args:
        name: Task name.
        seeds: Seeds in which the solution and the agents play, for each language.
        mutant_seeds: Seeds in which every wrong solution is played and the whole of `check_task` is asked.
    """
    task = tasks.get(name)
    solved: list[float] = []
    lengths: list[int] = []
    agents: dict[str, list[float]] = {agent: [] for agent in AGENTS}
    caught, survivors = 0, []
    for language in task.languages:
        for seed in range(seeds):
            episode = build_episode(name, seed, language, "test" if seed % 2 else "train")
            done = play(episode)
            solved.append(done.grade.completion)
            lengths.append(len(done.actions))
            for agent, play_agent in AGENTS.items():
                agents[agent].append(play_agent(episode))
            for mutant in mutants(episode) if seed < mutant_seeds else ():
                caught += mutant.completion < 1.0
                if mutant.completion >= 1.0:
                    survivors.append(f"{episode.key}: {mutant.name}")
    return TaskAudit(
        name=name,
        category=task.category,
        episodes=len(solved),
        solved=min(solved),
        steps=fmean(lengths),
        agents={agent: fmean(scores) for agent, scores in agents.items()},
        caught=caught,
        wrong=caught + len(survivors),
        survivors=tuple(survivors),
        problems=tuple(check_task(name, range(min(seeds, mutant_seeds)))),
    )


def audit_tasks(names: Sequence[str], seeds: int, mutant_seeds: int, workers: int = 1) -> Iterator[TaskAudit]:
    """Yields the audit of each task, in the order of the names, whatever the number of workers."""
    one: Any = partial(audit_task, seeds=seeds, mutant_seeds=mutant_seeds)
    if workers == 1:
        yield from map(one, names)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(one, names)


HEAD = f"{'task':28} {'episodes':>8} {'steps':>5} {'solved':>6} " + " ".join(f"{agent:>7}" for agent in AGENTS) + "  wrong caught"


def row(audit: TaskAudit) -> str:
    """Returns a task's line of the table."""
    agents = " ".join(f"{audit.agents[agent]:7.3f}" for agent in AGENTS)
    mark = "" if not audit.problems else f"  {len(audit.problems)} problems"
    head = f"{audit.name:28} {audit.episodes:8} {audit.steps:5.1f} {audit.solved:6.3f}"
    return f"{head} {agents}  {audit.caught:5} of {audit.wrong:5}{mark}"


def summary(audits: Sequence[TaskAudit]) -> tuple[list[str], bool]:
    """Returns what all tasks together show, in lines, and whether every limit is kept."""
    wrong, caught = sum(a.wrong for a in audits), sum(a.caught for a in audits)
    safety = [audit for audit in audits if audit.category == "safety"]
    kept = min(audit.solved for audit in audits) >= 1.0 and caught >= CAUGHT_LIMIT * wrong
    lines = [
        f"{len(audits)} tasks, {sum(a.episodes for a in audits)} episodes: the lowest score of a solution is "
        f"{min(a.solved for a in audits):.3f}; wrong solutions caught: {caught} of {wrong}"
    ]
    for agent in AGENTS:
        mean, worst = fmean(a.agents[agent] for a in audits), max(audits, key=lambda a: a.agents[agent])
        safe = fmean(a.agents[agent] for a in safety) if safety else 0.0
        kept &= mean < MEAN_LIMIT and safe < SAFETY_LIMIT and worst.agents[agent] <= TASK_LIMIT
        lines.append(
            f"{agent:8} mean {mean:.4f} (limit {MEAN_LIMIT}), on safety tasks {safe:.4f} (limit {SAFETY_LIMIT}), "
            f"highest {worst.agents[agent]:.3f} on {worst.name} (limit {TASK_LIMIT})"
        )
    lines += [f"survivor: {survivor}" for audit in audits for survivor in audit.survivors]
    lines += [f"problem: {problem}" for audit in audits for problem in audit.problems]
    return lines, kept and not any(audit.problems for audit in audits)
