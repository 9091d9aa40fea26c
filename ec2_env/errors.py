"""The errors that a person who uses EC2-Env can meet.

What a *model* gets wrong is an observation, never an exception. What a *programmer* or a *configuration* gets wrong raises
one of these, and its message says what came, what was expected and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EC2Error(Exception):
    """Base of all errors raised on purpose by this package."""


class UnknownName(EC2Error, KeyError):
    """A task, app, strategy, model or suite that does not exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else f"Known: {', '.join(known) or 'none'}."
        super().__init__(f"No {kind} named {name!r}. {hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class ConfigurationError(EC2Error, ValueError):
    """A setting that cannot be used as given."""


class MissingExtra(EC2Error, ImportError):
    """An optional dependency that a requested feature needs."""


class EndpointError(EC2Error):
    """A model endpoint that stayed unreachable or misbehaved after all retries."""


class ToolError(Exception):
    """Raised inside a tool; its text becomes the observation. Never reaches the user of an env."""
