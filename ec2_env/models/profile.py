"""What a simulated model is like: its profile file over the common priors."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from ec2_env.errors import ConfigurationError, UnknownName

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Parameters of a simulated model; `profiles/priors.toml` says what each means, in which unit.

    A step succeeds with probability 1 / (1 + exp(-discrimination * (ability + skill - difficulty - task effect))).
    """

    name: str
    ability: float
    family: str
    parameters: float | None = None
    price: str | None = None
    discrimination: float
    task_sd: float
    shared: float
    instance_sd: float
    curiosity: float
    repair: float
    fresh_look: float
    plan_lift: float
    plan_rest: float
    advice_lift: float
    follow: float
    question_lift: float
    quoting: float
    subtask_lift: float
    subtask_rest: float
    style_penalty: float
    reason_penalty: float
    entropy_base: float
    entropy_doubt: float
    entropy_fail: float
    entropy_sd: float
    help_rate: float
    thinking_tokens: float
    skills: dict[str, float]


def profile_names() -> tuple[str, ...]:
    """Returns the names of the shipped profiles, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != "priors"))


@cache
def load_profile(name: str) -> Profile:
    """Returns a shipped profile.

    Raises:
        UnknownName: if there is none of that name.
    """
    if name not in profile_names():
        raise UnknownName("simulated model", name, profile_names())
    return make_profile(name, read_toml(FOLDER / f"{name}.toml"))


def make_profile(name: str, own: dict[str, Any]) -> Profile:
    """Returns the profile that results from laying `own` settings over the priors.

    Raises:
        ConfigurationError: if a setting is unknown or the ability is missing.
    """
    priors = read_toml(FOLDER / "priors.toml")
    known = {field.name for field in fields(Profile)} - {"name"}
    unknown = sorted(set(own) - known)
    if unknown:
        raise ConfigurationError(f"profile {name!r} has an unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    merged = {**priors, **own, "skills": {**priors["skills"], **own.get("skills", {})}}
    if "ability" not in merged or "family" not in merged:
        raise ConfigurationError(f"profile {name!r} must set ability (logits) and family (a vocabulary)")
    return Profile(name=name, **merged)


def read_toml(path: Path) -> dict[str, Any]:
    """Reads one profile file."""
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found
