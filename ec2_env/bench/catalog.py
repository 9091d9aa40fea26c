"""What tasks there are, in figures and in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from ec2_env.task import build_episode, tasks
from ec2_env.testing import play
from ec2_env.workspace.tools import apps

LENGTH_SEEDS = 5
"""Test seeds whose solutions give a task's length."""


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a task.

    Attributes:
        languages: The first one is the primary one.
        sensitive_kinds: Kinds of sensitive values in test seed 0, in the first language.
        sensitive_values: Their number.
        solution_steps: Mean calls of the task's own solution over a few test seeds.
        example: Instruction of train seed 0.
    """

    name: str
    title: str
    category: str
    domain: str
    languages: tuple[str, ...]
    apps: tuple[str, ...]
    patterns: tuple[str, ...]
    sensitive_kinds: tuple[str, ...]
    sensitive_values: int
    solution_steps: float
    max_steps: int
    example: str


def described(name: str) -> Described:
    """Returns what is known of a task."""
    task = tasks.get(name)
    episodes = [build_episode(name, seed, split="test") for seed in range(LENGTH_SEEDS)]
    return Described(
        name=name,
        title=task.title,
        category=task.category,
        domain=task.domain,
        languages=task.languages,
        apps=task.apps,
        patterns=task.patterns,
        sensitive_kinds=tuple(sorted({unit.kind for unit in episodes[0].units})),
        sensitive_values=len(episodes[0].units),
        solution_steps=sum(len(play(episode).actions) for episode in episodes) / LENGTH_SEEDS,
        max_steps=task.max_steps,
        example=build_episode(name, 0).instruction,
    )


def catalog(found: Sequence[Described]) -> str:
    """Returns the page of all tasks: figures, a table for each domain, and one example each."""
    lines = [
        "# Tasks",
        "",
        "Made by `ec2-env tasks --markdown`. Steps are the mean length of a task's own solution, the first language is the",
        "primary one, and the examples are the instructions of seed 0 of the train split.",
        "",
        *_figures(found),
        "",
        *_apps(found),
        "",
    ]
    for domain in dict.fromkeys(one.domain for one in found):
        lines += _section(domain, [one for one in found if one.domain == domain])
    return "\n".join(lines).rstrip() + "\n"


def _figures(found: Sequence[Described]) -> Iterator[str]:
    steps = sorted(one.solution_steps for one in found)
    private = sum(one.sensitive_values > 0 for one in found)
    twins = sum(len(one.languages) > 1 for one in found)
    primary = Counter(one.languages[0] for one in found)
    yield f"- Tasks: {len(found)}, of which {private} hold sensitive values."
    yield f"- Categories: {_counted(Counter(one.category for one in found))}."
    yield f"- Primary language: {_counted(primary)}; in both languages: {twins}."
    yield f"- Apps in a task: {_counted(Counter(f'{len(one.apps)}' for one in found))}."
    yield f"- Steps: {steps[0]:.1f} to {steps[-1]:.1f}, median {median(steps):.1f}."
    yield f"- Patterns: {_counted(Counter(pattern for one in found for pattern in one.patterns), least=5)}."


def _apps(found: Sequence[Described]) -> Iterator[str]:
    yield "| app | tools that read | tools that write | tasks |"
    yield "|---|---|---|---|"
    for name in apps.names():
        tools = apps.get(name).tools
        used = sum(name in one.apps for one in found)
        reads, writes = (", ".join(f"`{tool.name}`" for tool in tools if tool.write is write) for write in (False, True))
        yield f"| {name} | {reads} | {writes} | {used} |"


def _counted(counts: Counter[str], least: int = 1) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {number}" for name, number in ordered if number >= least)


def _section(domain: str, found: Sequence[Described]) -> Iterator[str]:
    yield f"## {domain}"
    yield ""
    yield "| task | category | apps | steps | languages | sensitive values | patterns |"
    yield "|---|---|---|---|---|---|---|"
    for one in found:
        cells = (
            f"`{one.name}`: {one.title}",
            one.category,
            ", ".join(one.apps),
            f"{one.solution_steps:.1f}",
            ", ".join(one.languages),
            f"{one.sensitive_values}: {', '.join(one.sensitive_kinds)}" if one.sensitive_values else "none",
            ", ".join(one.patterns),
        )
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield ""
    for one in found:
        yield f"**{one.name}**"
        yield ""
        yield from (f"> {line}" for line in one.example.splitlines())
        yield ""
