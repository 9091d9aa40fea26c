"""From a text such as `openai:gpt-5.4@key_env=MY_KEY` to a model.

A specification is `PREFIX:NAME@OPTION=VALUE,OPTION=VALUE`; name and options may be left out where the prefix allows it. The
prefix is the file name of a module of `ec2_env.models` that defines `LOADER`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import msgspec

from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.base import Model
from ec2_env.registry import Registry

OptionsT = TypeVar("OptionsT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Makes models of one kind.

    Attributes:
        load: Gets what follows the prefix (`NAME@OPTION=VALUE`, `@OPTION=VALUE` or nothing) and returns the model.
        form: How a specification of this kind is written, for help texts and errors.
        names: Returns the names that can follow the prefix, if they are a closed set.
    """

    load: Callable[[str], Model]
    form: str = ""
    names: Callable[[], tuple[str, ...]] = tuple


_REGISTRY: Registry[Loader] = Registry("model", "ec2_env.models", "LOADER", Loader)
_DEFINES_LOADER = re.compile(r"^LOADER\b", re.MULTILINE)
_SPEC = re.compile(r"\s*([^:@\s]+)(?::(.*)|(@.*))?\s*", re.DOTALL)
_FIRST_OPTION = re.compile(r"@(?=[a-z_]+=)")
_NEXT_OPTION = re.compile(r",(?=[a-z_]+=)")

_loaded: dict[str, Model] = {}
_lock = threading.RLock()


def prefixes() -> tuple[str, ...]:
    """Returns the prefixes that specifications may start with, sorted; imports none of their modules."""
    root = Path(__file__).parent
    names = []
    for name, module in _REGISTRY.modules.items():
        below = module.removeprefix(f"{_REGISTRY.package}.").replace(".", "/")
        if _DEFINES_LOADER.search((root / f"{below}.py").read_text(encoding="utf-8")):
            names.append(name)
    return tuple(names)


def loader(prefix: str) -> Loader:
    """Returns the loader behind a prefix.

    Raises:
        UnknownName: if there is none; the message suggests the nearest ones.
    """
    known = prefixes()
    if prefix not in known:
        raise UnknownName("model", prefix, known)
    return _REGISTRY.get(prefix)


def load_model(spec: str) -> Model:
    """Returns the model that `spec` describes; the same object for the same text within one process.

    Args:
        spec: For example `sim:qwen3.5-9b`, `smollm2@adapter=out/adapter` or `openai:gpt-5.4@timeout_s=30`.

    Raises:
        UnknownName: if there is no such kind of model.
        ConfigurationError: if the specification cannot be read or its options are wrong.
        MissingExtra: if the kind needs a package that is not installed.
    """
    found = _SPEC.fullmatch(spec) if isinstance(spec, str) else None
    if found is None:
        raise ConfigurationError(
            f"{spec!r} does not describe a model; expected PREFIX:NAME, PREFIX one of {', '.join(prefixes())}"
        )
    prefix, rest, options = found.groups()
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = loader(prefix).load((rest or options or "").strip())
        return _loaded[spec]


def read_options(rest: str, options: type[OptionsT], *, form: str) -> tuple[str, OptionsT]:
    """Splits `NAME@OPTION=VALUE,...` and reads the options into a dataclass whose field types say what is allowed.

    Args:
        rest: The specification without its prefix.
        options: A dataclass with defaults for all fields.
        form: How such a specification is written, for errors.

    Raises:
        ConfigurationError: if an option is unknown, is given twice, or has a value of the wrong type.
    """
    name, *tail = _FIRST_OPTION.split(rest, maxsplit=1)
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]  # every caller passes a dataclass
    given: dict[str, str] = {}
    for part in _NEXT_OPTION.split(tail[0]) if tail else []:
        key, _, value = part.partition("=")
        if key not in known:
            raise ConfigurationError(f"{UnknownName('option', key, known)} A model is written {form}")
        if key in given:
            raise ConfigurationError(f"option {key!r} is given twice in {rest!r}")
        given[key] = value
    try:
        return name.strip(), msgspec.convert(given, options, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"cannot read the options of {rest!r}: {error}. A model is written {form}") from error
