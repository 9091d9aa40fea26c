"""An experiment: a method, seeds, and all that fixes what they train, in a TOML file that a run is repeated from.

    method = "ppo"
    seeds = 5                     # the seeds 0 to 4; or a list
    minutes = 2.0                 # scales the plan; the clock decides nothing

    [settings]                    # arguments of the env
    domain = "email"

    [plan]                        # fields of the method's plan
    test_seeds = 4

A run writes the file again with everything that was left out, and with versions and digests in the table `made`.
"""

from __future__ import annotations

import inspect
import json
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

import ec2_env
from ec2_env.bench.manifest import code_digest
from ec2_env.bench.suites import Suite, suite_digest
from ec2_env.envs import DecisionEnv
from ec2_env.episode_env import EpisodeEnv, chosen_tasks
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.training.methods import method
from ec2_env.training.metrics import TRACKERS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "experiment.toml"
MOST_SEEDS = 100
PACKAGES = ("numpy", "torch", "stable-baselines3", "transformers", "trl", "peft")
"""Whose versions stand in the file, where they are installed."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to train.

    Attributes:
        method: One of `ec2_env.training.methods.METHODS`.
        seeds: A number of seeds, from 0 on, or the seeds.
        minutes: Scales the plan; that of the method if None.
        workers: Seeds trained at a time; the results do not depend on it.
        log_to: Where metrics go beside the file.
        settings: Arguments of the env, over those of the plan.
        plan: Fields of the method's plan, over what `minutes` made of them.
        made: What a run says of itself: versions and digests.
    """

    method: str
    seeds: int | tuple[int, ...] = 1
    minutes: float | None = None
    workers: int = 1
    log_to: str | None = None
    settings: dict[str, Any] = {}
    plan: dict[str, Any] = {}
    made: dict[str, Any] = {}

    def all_seeds(self) -> tuple[int, ...]:
        """Returns the seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def read(path: Path) -> Experiment:
    """Returns the experiment of a file.

    Raises:
        ConfigurationError: if the file cannot be read or a setting cannot be used.
        UnknownName: if a key, method, setting or field does not exist; the message suggests the nearest ones.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"the experiment {path} cannot be read: {error}") from error
    _known("key of an experiment", told, [one.name for one in msgspec.structs.fields(Experiment)])
    try:
        return checked(msgspec.convert(told, Experiment))
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"the experiment {path}: {error}") from error


def checked(experiment: Experiment) -> Experiment:
    """Returns an experiment if it can be used.

    Raises:
        ConfigurationError: if a number is out of range.
        UnknownName: if its method does not exist.
    """
    minutes, seeds = experiment.minutes, experiment.seeds
    method(experiment.method)
    if minutes is not None and not 0.01 <= minutes <= 600:
        raise ConfigurationError(f"minutes is {minutes:g}, expected 0.01 to 600")
    if isinstance(seeds, int) and not 1 <= seeds <= MOST_SEEDS:
        raise ConfigurationError(f"seeds is {seeds}, expected 1 to {MOST_SEEDS} or a list of seeds")
    chosen = experiment.all_seeds()
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= seed < 10**6 for seed in chosen):
        raise ConfigurationError(f"seeds are {list(chosen)}, expected different whole numbers from 0 to 999999")
    if not 1 <= experiment.workers <= MOST_SEEDS:
        raise ConfigurationError(f"workers is {experiment.workers}, expected 1 to {MOST_SEEDS}")
    if experiment.log_to is not None and experiment.log_to not in TRACKERS:
        raise ConfigurationError(f"log_to is {experiment.log_to!r}, expected {', '.join(TRACKERS)}, or to be left out")
    return experiment


def plan_of(experiment: Experiment) -> Any:
    """Returns the method's plan, scaled, with the experiment's settings and fields in it.

    Raises:
        ConfigurationError: if a field is of the wrong kind.
        UnknownName: if a setting or a field does not exist.
    """
    chosen = method(experiment.method)
    module = chosen.load()
    minutes = chosen.minutes if experiment.minutes is None else experiment.minutes
    plan = module.scaled(module.Plan(**chosen.given), minutes / chosen.minutes)
    names = {one.name for one in fields(plan)} - {"settings", *chosen.given}
    _known(f"field of the plan of {experiment.method}", experiment.plan, names)
    _known("setting of the env", experiment.settings, setting_names())
    hints = get_type_hints(type(plan))
    try:
        given = {name: msgspec.convert(value, hints[name]) for name, value in experiment.plan.items()}
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"the plan of {experiment.method}: {error}; it is {experiment.plan}") from error
    return replace(plan, settings={**plan.settings, **experiment.settings}, **given)


def setting_names() -> frozenset[str]:
    """Returns the names of the arguments of the envs."""
    return frozenset(
        name
        for one in (DecisionEnv, EpisodeEnv)
        for name, parameter in inspect.signature(one.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    )


def resolved(experiment: Experiment, plan: Any) -> Experiment:
    """Returns an experiment with nothing left out: its seeds, every field of its plan, and what it is made with."""
    given = method(experiment.method).given
    held = _plain({name: value for name, value in asdict(plan).items() if name not in ("settings", *given)})
    return msgspec.structs.replace(
        experiment,
        seeds=experiment.all_seeds(),
        settings=_plain(plan.settings),
        plan={name: value for name, value in held.items() if value is not None},
        made=made_with(plan),
    )


def _plain(held: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values as a file gives them back: lists for tuples, tables for records."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(held))
    return found


def made_with(plan: Any) -> dict[str, Any]:
    """Returns versions, and digests of the code and of all test instances of the plan's tasks."""
    settings, held = plan.settings, dict[str, str]()
    chosen = chosen_tasks(settings.get("task"), settings.get("domain"), settings.get("language"))
    names = tuple(getattr(plan, "tasks", chosen))
    suite = Suite(about="test episodes", tasks=names, seeds=plan.test_seeds, trials=1)
    if settings.get("language"):
        suite = msgspec.structs.replace(suite, languages=(settings["language"],))
    for package in PACKAGES:
        try:
            held[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "ec2_env": ec2_env.__version__,
        "code": code_digest(),
        "test_suite_sha256": suite_digest(suite),
        "python": platform.python_version(),
        "packages": held,
    }


def differences(one: Experiment, other: Experiment) -> list[str]:
    """Returns in what two resolved experiments differ that their results depend on. Seeds do not depend on one another."""
    pairs = {
        "method": (one.method, other.method),
        "code": (one.made.get("code"), other.made.get("code")),
        **{f"settings.{name}": _both(one.settings, other.settings, name) for name in {*one.settings, *other.settings}},
        **{f"plan.{name}": _both(one.plan, other.plan, name) for name in {*one.plan, *other.plan}},
    }
    return sorted(name for name, (mine, theirs) in pairs.items() if mine != theirs)


def _both(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    return one.get(name), other.get(name)


def toml(experiment: Experiment) -> str:
    """Returns an experiment as a TOML file."""
    told = msgspec.to_builtins(experiment)
    tables = {name: value for name, value in told.items() if isinstance(value, dict)}
    lines = [f"{name} = {_value(value)}" for name, value in told.items() if name not in tables and value is not None]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join([*lines, ""])


def _value(value: Any) -> str:
    """Returns a value as TOML, which has no null: fields that are None are left out."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_value(one)}" for key, one in value.items() if one is not None) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _known(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Looks whether all names are known.

    Raises:
        UnknownName: if one is not; the message lists the known ones where none is near.
    """
    known = set(known)
    for name in sorted(set(given) - known):
        raise UnknownName(kind, name, known)
