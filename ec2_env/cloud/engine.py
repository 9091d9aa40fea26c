"""Redaction engines by name: `rules`, `strong`, `model:smollm2@max_new_tokens=512` and so on.

A specification is `NAME` or `NAME:REST`. The name is the file name of a module of `ec2_env.cloud.engines` that defines `ENGINE`,
or was added with `engines.add("mine", Engine(make=...))`, in every process that uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ec2_env.cloud.redaction import Redactor
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.registry import Registry
from ec2_env.sensitive import SensitiveUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an engine can be given of an episode.

    Attributes:
        directory: (kind, value) of the people in the workspace's own address book.
        units: The true values; for upper bounds only.
    """

    directory: tuple[tuple[str, str], ...] = ()
    units: tuple[SensitiveUnit, ...] = ()


def _no_rest(rest: str) -> None:
    if rest:
        raise ConfigurationError(f"this redactor takes nothing after its name, got {rest!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Makes redactors of one kind.

    Attributes:
        make: Returns the redactor of one episode, given its surroundings and what follows the colon.
        check: Raises a `ConfigurationError` or `MissingExtra` if that cannot be used; asked when the setting is read.
        form: How it is written, for errors.
    """

    make: Callable[[Surroundings, str], Redactor]
    check: Callable[[str], None] = _no_rest
    form: str = ""


engines: Registry[Engine] = Registry("redactor", "ec2_env.cloud.engines", "ENGINE", Engine)


def check_engine(spec: object) -> None:
    """Makes sure that a specification can be used.

    Raises:
        ConfigurationError: if there is no such engine, or it cannot be used like this.
        MissingExtra: if it needs a library that is not installed.
    """
    if not isinstance(spec, str):
        raise ConfigurationError(f"redactor is {spec!r}, expected one of {', '.join(forms())}")
    name, _, rest = spec.partition(":")
    try:
        engine = engines.get(name)
    except UnknownName as error:
        raise ConfigurationError(f"redactor is {spec!r}, expected one of {', '.join(forms())}") from error
    engine.check(rest)


def forms() -> tuple[str, ...]:
    """Returns how each engine is written."""
    return tuple(engines.get(name).form or name for name in engines.names())


def make_redactor(spec: str, surroundings: Surroundings) -> Redactor:
    """Returns the redactor of one episode.

    Raises:
        UnknownName: if there is no such engine.
    """
    name, _, rest = spec.partition(":")
    return engines.get(name).make(surroundings, rest)
