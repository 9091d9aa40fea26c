"""What a simulated model is like: its profile file over the common priors."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields, replace
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

    Attributes:
        name: Name in tables: that of the file, with the settings that were changed.
        draws: Name that its random draws depend on: that of the file. So models that differ in a setting share all draws.
    """

    name: str
    draws: str
    ability: float
    family: str
    parameters: float | None = None
    price: str | None = None
    discrimination: float
    task_sd: float
    shared: float
    instance_sd: float
    step_sd: float
    steadiness: float
    curiosity: float
    repair: float
    fresh_look: float
    plan_lift: float
    plan_rest: float
    advice_lift: float
    follow: float
    follow_asked: float
    question_lift: float
    quoting: float
    subtask_lift: float
    subtask_rest: float
    style_penalty: float
    reason_penalty: float
    window: float
    entropy_base: float
    entropy_doubt: float
    entropy_fail: float
    entropy_opening: float
    entropy_turns: float
    entropy_task_sd: float
    entropy_sd: float
    help_rate: float
    help_spread: float
    plan_thinking: float
    thinking_tokens: float
    skills: dict[str, float]


def profile_names() -> tuple[str, ...]:
    """Returns the names of the shipped profiles, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != "priors"))


@cache
def load_profile(spec: str) -> Profile:
    """Returns a shipped profile or the one in a file, with some of its settings changed if the text says so.

    Args:
        spec: `NAME`, `PATH.toml`, or either with `@SETTING=NUMBER,SETTING=NUMBER`. The settings are the numbers of
            `profiles/priors.toml` and of the profile files; those of skills are written `skills.NAME`.

    Raises:
        UnknownName: if there is no profile of that name.
        ConfigurationError: if the file cannot be read, or a setting is unknown or no number.
    """
    name, _, changes = spec.partition("@")
    if name.endswith(".toml"):
        try:
            own = read_toml(Path(name))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"profile file {name} cannot be read: {error}") from error
        found = make_profile(Path(name).stem, own)
    elif name in profile_names():
        found = make_profile(name, read_toml(FOLDER / f"{name}.toml"))
    else:
        raise UnknownName("simulated model", name, profile_names())
    return replace(found, name=f"{found.name}@{changes}", **_changed(found, changes)) if changes else found


def _changed(profile: Profile, changes: str) -> dict[str, Any]:
    """Reads "SETTING=NUMBER,..." into settings of a profile."""
    numbers = [field.name for field in fields(Profile) if "float" in str(field.type)]
    found: dict[str, Any] = {"skills": dict(profile.skills)}
    for change in changes.split(","):
        name, _, text = change.partition("=")
        skill = name.removeprefix("skills.")
        try:
            value = float(text)
        except ValueError:
            raise ConfigurationError(f"setting {name!r} of a simulated model is {text!r}, expected a number") from None
        if not math.isfinite(value):
            raise ConfigurationError(f"setting {name!r} of a simulated model is {text!r}, expected a finite number")
        if name.startswith("skills.") and skill in profile.skills:
            found["skills"][skill] = value
        elif name in numbers and name != "skills":
            found[name] = value
        else:
            known = [*numbers, *(f"skills.{skill}" for skill in profile.skills)]
            raise UnknownName("setting of a simulated model", name, [one for one in known if one != "skills"])
    return found


def make_profile(name: str, own: dict[str, Any]) -> Profile:
    """Returns the profile that results from laying `own` settings over the priors.

    Raises:
        ConfigurationError: if a setting is unknown or the ability is missing.
    """
    priors = read_toml(FOLDER / "priors.toml")
    known = {field.name for field in fields(Profile)} - {"name", "draws"}
    unknown = sorted(set(own) - known)
    if unknown:
        raise ConfigurationError(f"profile {name!r} has an unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    merged = {**priors, **own, "skills": {**priors["skills"], **own.get("skills", {})}}
    if "ability" not in merged or "family" not in merged:
        raise ConfigurationError(f"profile {name!r} must set ability (logits) and family (a vocabulary)")
    return Profile(name=name, draws=name, **merged)


def read_toml(path: Path) -> dict[str, Any]:
    """Reads one profile file."""
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found
