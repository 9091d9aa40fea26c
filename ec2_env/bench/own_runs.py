"""Fits a simulated model to a user's own run of a real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ec2_env.bench.calibration import Fit, Target, fit, summary
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.statistics import PASS_K
from ec2_env.bench.store import RecordLog
from ec2_env.errors import ConfigurationError
from ec2_env.models.loading import load_model
from ec2_env.models.profile import Profile, make_profile
from ec2_env.rollout import EpisodeKey

ALONE = ("edge_only", "cloud_only")
"""Strategies with one model: no other record is looked at."""
START = 1.0
"""Ability before the fit, in logits; the result does not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFit:
    """A model of a run and the profile that stands for it.

    Attributes:
        spec: The model, as the run named it.
        profile: The profile, fitted.
        fit: How well it fits.
    """

    spec: str
    profile: Profile
    fit: Fit


def fit_run(folder: Path) -> list[OwnFit]:
    """Returns a fit for every model that worked alone in a run.

    Args:
        folder: A run folder of `ec2-env bench` with the strategy `edge_only` or `cloud_only`.

    Raises:
        ConfigurationError: if there is no record of a model that worked alone.
    """
    file = folder / "results.jsonl"
    if not file.is_file():
        raise ConfigurationError(f"{folder} holds no results.jsonl; expected a run folder of ec2-env bench")
    by_model: dict[tuple[str, str], list[EpisodeRecord]] = {}
    for record in RecordLog(file, None, print).read():
        if record.strategy in ALONE and record.result["status"] != "error":
            spec = record.cloud if record.edge is None else record.edge
            by_model.setdefault((record.strategy, spec), []).append(record)
    if not by_model:
        raise ConfigurationError(f"{folder} has no finished episode of {' or '.join(ALONE)}; those show what a model does alone")
    return [_fitted(spec, records) for (_, spec), records in sorted(by_model.items())]


def _fitted(spec: str, records: Sequence[EpisodeRecord]) -> OwnFit:
    card = load_model(spec).card
    own = {"ability": START, "family": card.family, "parameters": card.parameters, "price": card.price}
    start = make_profile(card.name, {name: value for name, value in own.items() if value is not None})
    runs: dict[EpisodeKey, list[float]] = {}
    for record in records:
        runs.setdefault(replace(record.key, trial=0), []).append(record.result["completion"])
    theirs = summary(runs.values())
    repeated = any(len(group) >= PASS_K for group in runs.values())
    target = Target(completion=theirs.completion, pass_hat_3=theirs.pass_hat_3 if repeated else None)
    found = fit(start, target, sorted((record.key for record in records), key=str))
    return OwnFit(spec=spec, profile=replace(start, ability=found.ability, steadiness=found.steadiness), fit=found)


def profile_text(own: OwnFit) -> str:
    """Returns a profile file: what was fitted and what is known, with the error of the fit; all else stays a prior."""
    profile, fit = own.profile, own.fit
    passed = "" if fit.target.pass_hat_3 is None else f", Pass^3 {_beside(fit.reached.pass_hat_3, fit.target.pass_hat_3)}"
    lines = [
        f"# Fitted to {own.spec} working alone on {fit.episodes} episodes: completion "
        f"{_beside(fit.reached.completion, fit.target.completion)}{passed}.",
        f"ability = {profile.ability}",
        *([] if fit.target.pass_hat_3 is None else [f"steadiness = {profile.steadiness}"]),
        f'family = "{profile.family}"',
        *([] if profile.parameters is None else [f"parameters = {profile.parameters}"]),
        *([] if profile.price is None else [f'price = "{profile.price}"']),
    ]
    return "\n".join(lines) + "\n"


def _beside(reached: float, target: float) -> str:
    return f"{100 * reached:.1f} (real {100 * target:.1f}, error {100 * (reached - target):+.1f})"
