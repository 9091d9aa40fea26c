"""What is wrong with a task, in words: what every task has to prove."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ec2_env.actions import Finish, action_text
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.detection import detect
from ec2_env.task import Episode, build_episode, tasks, toolbox
from ec2_env.testing.agents import AGENTS
from ec2_env.testing.calls import EMAIL, ID, PATH
from ec2_env.testing.mutants import mutants
from ec2_env.testing.play import play, steps_of, texts_in

WORST = 0.25
"""Completion that an agent which does not do the work may reach in one episode."""
MIN_STEPS, MIN_SLIPS = 4, 3
PRIVATE = ("iban", "card_number", "national_id", "api_key", "password", "phone")
"""Kinds of values that are found by their form, and have to be annotated wherever they stand."""
_DATED = re.compile(r"\A[^.。]*[.。]\s*")
WHOLE_NUMBER = 7
"""Fewer digits than this are the tail of some number ("account ends in 4688"), and no value by themselves."""


def check_task(name: str, seeds: Iterable[int] = range(20)) -> list[str]:
    """Returns everything that is wrong with a task, in words; an empty list for a sound one.

    Checked for every seed, language and split: see `check_episode`. Once per task: its solution has at least four steps and three
    slips, twenty seeds or more differ in what they ask, and twins in two languages have the same parts of the score.
    """
    task, seeds = tasks.get(name), list(seeds)
    problems: list[str] = []
    steps = steps_of(build_episode(name, 0))
    if len(steps) < MIN_STEPS:
        problems.append(f"{name}: the solution has fewer than {MIN_STEPS} steps; make the work longer")
    if sum(len(step.slips) for step in steps) < MIN_SLIPS:
        problems.append(f"{name}: fewer than {MIN_SLIPS} slips; name the plausible ways to fail")
    scores: dict[tuple[int, str], set[str]] = {}
    for language in task.languages:
        for split in ("train", "test"):
            instructions = set()
            for seed in seeds:
                episode = build_episode(name, seed, language, split)
                instructions.add(_DATED.sub("", episode.instruction))
                parts = str(sorted((check.name, check.weight) for check in episode.checks))
                scores.setdefault((episode.variant, language), set()).add(parts)
                problems += check_episode(episode)
            if len(instructions) < 2 and len(seeds) >= 20:
                problems.append(f"{name} ({language}, {split}): every seed has the same instruction; draw names and values")
    return [*problems, *_unequal_twins(name, scores)]


def _unequal_twins(name: str, scores: dict[tuple[int, str], set[str]]) -> Iterator[str]:
    for (variant, language), parts in scores.items():
        twin = scores.get((variant, "zh" if language == "en" else "en"))
        if language == "en" and twin is not None and parts.isdisjoint(twin):
            yield f"{name}: variant {variant} is graded differently in its two languages; use the same checks for both"


def check_episode(episode: Episode) -> list[str]:
    """Returns everything that is wrong with one episode.

    The solution scores 1.0 and uses only what it has seen; no mutant scores 1.0; agents that do not do the work score at most
    0.25; building the episode again gives the same one; every sensitive value is there, is found by the audit, and is annotated.
    """
    return [f"{episode.key}: {problem}" for problem in _problems(episode)]


def _problems(episode: Episode) -> Iterator[str]:
    again = build_episode(episode.name, episode.seed, episode.language, episode.split)
    if again.instruction != episode.instruction or again.workspace.tables() != episode.workspace.tables():
        yield "building it twice gives two episodes; draw only from world.rng, and iterate over no sets"
    done = play(episode)
    if done.grade.completion != 1.0:
        yield f"the solution scores {done.grade.completion}, expected 1.0; mend the solution or the checks: {done.grade}"
    for step, result in zip(steps_of(episode), done.results, strict=False):
        if not result.ok and not step.refused:
            yield f"a call of the solution fails; mend it, or declare the step refused=True: {result.text[:200]}"
        elif result.ok and step.refused:
            yield f"a step that is declared refused=True succeeds; leave that out: {action_text(step.action)[:200]}"
    for value in unseen_values(episode):
        yield f"the solution uses a value that no tool showed; find it with a read first: {value}"
    for mutant in mutants(episode):
        if mutant.completion >= 1.0:
            yield f"a wrong solution scores {mutant.completion}; check what it got wrong: {mutant.name}"
    for agent, play_agent in AGENTS.items():
        score = play_agent(episode)
        if score > WORST:
            yield f"the agent {agent!r} scores {score}, expected at most {WORST}; pay only for work that was done"
    yield from annotation_problems(episode)


def annotation_problems(episode: Episode) -> Iterator[str]:
    """Yields what is wrong with an episode's sensitive units: not there, not found by the audit, or missing."""
    if episode.task.annotated and not episode.units:
        yield "no sensitive unit; draw secrets with world.secret(...), or declare the task annotated=False"
    texts = [episode.instruction]
    for rows in episode.workspace.tables().values():
        for row in rows.values():
            texts.append("\n".join(texts_in(msgspec.to_builtins(row))))
    audit = Audit(episode.units)
    missing = {unit.id: unit for unit in episode.units}
    for text in texts:
        here = [unit for unit in episode.units if _stands_in(unit.value, text)]
        levels = audit.find(text) if here else {}
        for unit in here:
            missing.pop(unit.id, None)
            if levels.get(unit.id) != 1.0:
                yield f"the audit does not find {unit.id} ({unit.value!r}) where it stands; write it as it was drawn"
        yield from _not_annotated(episode, text)
    for unit in missing.values():
        yield f"{unit.id} ({unit.value!r}) is annotated and nowhere in the episode; place it or do not draw it"


def _stands_in(value: str, text: str) -> bool:
    """Says whether a text holds a value, and not merely a longer number that has its digits at one end."""
    if value not in text:
        return False
    before = r"(?<!\d)(?<!\d[.,])" if value[0].isdigit() else ""
    after = r"(?![\d])" if value[-1].isdigit() else ""
    return re.search(f"{before}{re.escape(value)}{after}", text) is not None


def _not_annotated(episode: Episode, text: str) -> Iterator[str]:
    if not episode.task.annotated:
        return
    for found in detect(text):
        value = text[found.start : found.end]
        if value.isdigit() and len(value) < WHOLE_NUMBER:
            continue
        if found.kind in PRIVATE and not any(value in unit.value or unit.value in value for unit in episode.units):
            yield f"{value!r} looks like {found.kind} and is not annotated; draw it with world.secret({found.kind!r}, owner=...)"


def unseen_values(episode: Episode) -> list[str]:
    """Returns ids and addresses that the solution uses before any tool has shown them: signs of a crystal ball."""
    known = [episode.instruction]
    workspace, tools = episode.workspace.fork(), toolbox(episode.task.apps)
    solution: Any = episode.solve()
    value: Any = None
    problems: list[str] = []
    while True:
        try:
            step = solution.send(value)
        except StopIteration:
            return problems
        text = action_text(step.action).replace("\\n", " ")
        for token in [*EMAIL.findall(text), *ID.findall(text), *PATH.findall(text)]:
            if not any(token in shown for shown in known):
                problems.append(f"{token} in {text[:120]}")
        if isinstance(step.action, Finish):
            return problems
        result = tools.run(workspace, step.action)
        value = result.value
        known.append(result.text)
