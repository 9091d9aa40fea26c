"""Suites: named sets of episodes, pinned by a digest of what the episodes hold."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.task import Episode, build_episode, task_domains, tasks
from ec2_env.workspace.world import Language, Split

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_SUITE = "ec2-128"
STRATEGIES = (
    "edge_only",
    "cloud_only",
    "cloud_only:redacted",
    "sketch_guided",
    "task_routing",
    "step_routing",
    "step_routing:redacted",
    "adaptive_assistance",
    "adaptive_assistance:redacted",
    "random",
)
"""Strategies that a suite compares unless it or the command names others."""


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set of episodes: every task in every language, for instance seeds 0 to seeds - 1, `trials` times.

    Attributes:
        about: One line for people.
        tasks: Names of tasks. Empty for all of `domains`.
        domains: Names of task folders.
        languages: Languages to play; a task without one of them is left out there.
        primary: Whether each task is played in its first language only, if that is one of `languages`.
        split: Which phrasings and draws.
        seeds: Number of instances of each task and language.
        trials: Times that each instance is played.
        max_steps: Steps after which an episode is cut off; the task's own limit if None.
        calibration_seeds: Instances of the train split that offline routers are scored on, for each task and language.
        edges: Edge models that are taken if the command names none.
        cloud: The same for the cloud model.
        strategies: The same for strategies.
    """

    about: str
    tasks: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    languages: tuple[Language, ...] = ("en", "zh")
    primary: bool = False
    split: Split = "test"
    seeds: int = 4
    trials: int = 3
    max_steps: int | None = None
    calibration_seeds: int = 5
    edges: tuple[str, ...] = ("sim:qwen3.5-9b",)
    cloud: str = "sim:gpt-5.4"
    strategies: tuple[str, ...] = STRATEGIES

    def pairs(self) -> tuple[tuple[str, Language], ...]:
        """Returns the (task, language) pairs, by task name and in the order of each task's languages.

        Raises:
            UnknownName: if a task or domain does not exist.
            ConfigurationError: if nothing is left to play.
        """
        names = set(self.tasks)
        for domain in self.domains:
            if domain not in task_domains():
                raise UnknownName("domain", domain, task_domains())
            names |= set(task_domains()[domain])
        found = tuple(
            (name, language)
            for name in sorted(names)
            for language in tasks.get(name).languages[: 1 if self.primary else None]
            if language in self.languages
        )
        if not found:
            raise ConfigurationError(f"no task of the suite has a language of {', '.join(self.languages) or 'an empty list'}")
        return found


def suite_names() -> tuple[str, ...]:
    """Returns the names of the suites that ship, sorted."""
    return tuple(sorted(_shipped()))


def load_suite(name: str) -> Suite:
    """Returns a suite that ships, or the one that a TOML file describes in a table of its own.

    Args:
        name: `email`, or `FILE.toml:NAME`.

    Raises:
        UnknownName: if there is no such suite.
        ConfigurationError: if the file cannot be read or a setting is wrong.
    """
    path, found, inner = name.rpartition(".toml:")
    if not found:
        return _suite(name, _shipped())
    try:
        return _suite(inner, tomllib.loads(Path(f"{path}.toml").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"suite file {path}.toml cannot be read: {error}") from error


def _suite(name: str, tables: Mapping[str, Any]) -> Suite:
    if name not in tables:
        raise UnknownName("suite", name, tables)
    try:
        suite = msgspec.convert(tables[name], Suite)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"suite {name!r}: {error}") from error
    return checked(suite)


def checked(suite: Suite) -> Suite:
    """Returns the suite if its numbers can be used.

    Raises:
        ConfigurationError: if one of them is out of range.
    """
    for setting in ("seeds", "trials", "calibration_seeds"):
        if not 1 <= getattr(suite, setting) <= 100_000:
            raise ConfigurationError(f"{setting} is {getattr(suite, setting)}, expected a whole number from 1 to 100000")
    if suite.max_steps is not None and suite.max_steps < 1:
        raise ConfigurationError(f"max_steps is {suite.max_steps}, expected a whole number above 0")
    return suite


@cache
def _shipped() -> dict[str, Any]:
    text = resources.files("ec2_env.bench").joinpath("suites.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    return found


def suite_digest(suite: Suite) -> str:
    """Returns a SHA-256 of all that the suite's episodes hold: instructions, rows, sensitive units, parts of the score."""
    digest = hashlib.sha256()
    for name, language in suite.pairs():
        for seed in range(suite.seeds):
            digest.update(rendered(build_episode(name, seed, language, suite.split)))
    return digest.hexdigest()


def rendered(episode: Episode) -> bytes:
    """Returns all that an episode holds as canonical JSON: text, rows, sensitive units, parts of the score."""
    held: dict[Literal["key", "version", "text", "rows", "units", "score"], Any] = {
        "key": episode.key,
        "version": episode.task.version,
        "text": episode.instruction,
        "rows": episode.workspace.tables(),
        "units": episode.units,
        "score": [[check.name, check.weight] for check in episode.checks] + [act.name for act in episode.forbidden],
    }
    return msgspec.json.encode(held, order="sorted")
