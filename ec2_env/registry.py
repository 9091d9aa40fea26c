"""Lazy registries: the name of a file is the name of the thing in it."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from ec2_env.errors import ConfigurationError, MissingExtra, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Finds objects of one kind by listing a package; imports a module only when its object is asked for.

    Args:
        kind: What is registered, in words, for error messages ("task").
        package: Dotted name of the package to list. Sub-packages are listed too, and do not enter the name.
        attribute: Name of the module attribute that holds the object ("TASK").
        expected: Class that the object has to be an instance of.
    """

    def __init__(self, kind: str, package: str, attribute: str, expected: type[T]) -> None:
        self.kind = kind
        self.package = package
        self.attribute = attribute
        self.expected = expected
        self.added: dict[str, T] = {}
        """Objects from outside the package; see `add`."""
        self._loaded: dict[str, T] = {}

    @cached_property
    def modules(self) -> dict[str, str]:
        """Maps each name to its dotted module, sorted by name; nothing below the package is imported."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise ConfigurationError(f"{self.package} is not an installed package; reinstall ec2-env")
        found: dict[str, str] = {}
        for location in spec.submodule_search_locations:
            root = Path(location)
            for path in root.rglob("*.py"):
                parts = path.relative_to(root).with_suffix("").parts
                if any(part.startswith("_") for part in parts):
                    continue
                if parts[-1] in found:
                    raise ConfigurationError(f"two {self.kind} files are named {parts[-1]!r}: rename one of them")
                found[parts[-1]] = ".".join((self.package, *parts))
        return dict(sorted(found.items()))

    def names(self) -> tuple[str, ...]:
        """Returns all names in sorted order, without importing any of them."""
        return tuple(sorted((*self.modules, *self.added)))

    def add(self, name: str, value: T) -> None:
        """Adds an object from outside the package, such as a task of your own, in this process only.

        Every process that uses it has to add it. A second call with the same object does nothing.

        Raises:
            ConfigurationError: if the name is taken, or the object is of the wrong class.
        """
        if not isinstance(value, self.expected):
            raise ConfigurationError(f"{self.kind} {name!r} must be a {self.expected.__name__}, got {type(value).__name__}")
        if name in self.modules or self.added.get(name, value) is not value:
            raise ConfigurationError(f"there is a {self.kind} named {name!r} already; choose another name")
        self.added[name] = value

    def get(self, name: str) -> T:
        """Returns the object called `name`, importing its module on first use.

        Raises:
            UnknownName: if there is no such file; the message suggests the nearest names.
            ConfigurationError: if the file does not define the attribute, or defines something else.
        """
        if name in self.added:
            return self.added[name]
        if name not in self._loaded:
            if name not in self.modules:
                raise UnknownName(self.kind, name, self.names())
            module = importlib.import_module(self.modules[name])
            value = getattr(module, self.attribute, None)
            if not isinstance(value, self.expected):
                raise ConfigurationError(
                    f"{self.modules[name]} must define {self.attribute}, a {self.expected.__name__}; found {type(value).__name__}"
                )
            self._loaded[name] = value
        return self._loaded[name]


def require(module: str, *, extra: str) -> ModuleType:
    """Imports an optional dependency, or raises an error that names the command that installs it.

    Raises:
        MissingExtra: if `module` is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingExtra(f"{module} is not installed; run: pip install 'ec2-env[{extra}]'") from error
