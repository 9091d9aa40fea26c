"""Lays out which priors matter, and the rows predicted with priors fitted to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ec2_env.bench.ablation import RANGES, Effect, LeftOut, leave_one_out
from ec2_env.bench.reproduction import Row, predicted
from ec2_env.models.profile import load_profile


def as_terminal(base: Sequence[Row], effects: Sequence[Effect], defaults: Mapping[str, float]) -> str:
    """Returns both tables."""
    lines = [
        "One prior moved to an end of its range, in all models: mean (and largest) absolute change over six rows of two models,",
        "in points; and the change of the rows with one model, which are not fitted again here.",
        "",
        f"{'prior':18} {'from':>5} {'to':>5}  {'completion':>14}  {'privacy':>14}  {'USD share':>14}"
        f"  {'9b alone':>8} {'27b alone':>9} {'cloud':>6}",
    ]
    for effect in sorted(effects, key=lambda one: -float(np.abs(one.change[:, 0]).mean())):
        changes = "  ".join(f"{values.mean():6.1f} ({values.max():5.1f})" for values in np.abs(effect.change).T)
        alone = _alone(effect.rows) - _alone(base)
        prior = effect.move.prior
        lines.append(
            f"{prior:18} {defaults[prior]:5g} {effect.move.value:5g}  {changes}"
            f"  {alone[0]:+8.1f} {alone[1]:+9.1f} {alone[2]:+6.1f}"
        )
    return "\n".join([*lines, "", *_left_out(leave_one_out(base, effects, defaults)), ""])


def _alone(found: Sequence[Row]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns completion of the edge models alone, then of the cloud alone."""
    values = [row.figures["completion"].ours or 0.0 for row in found if row.strategy == "edge_only"]
    values += [row.figures["completion"].ours or 0.0 for row in found if row.strategy == "cloud_only"]
    return np.array(values)


def _left_out(found: Sequence[LeftOut]) -> list[str]:
    names = ("completion", "privacy", "USD share")
    lines = [
        "FITTED TO ROWS WITH TWO MODELS, the row itself left out: error in points without and with the fit, on the linear model",
        "of the changes above. Used nowhere: it says how far priors alone could explain what was published.",
        "",
        f"{'row':34}" + "".join(f"  {name:>16}" for name in names) + "  priors that moved the most",
    ]
    for one in found:
        errors = "".join(f"  {before:+7.1f} > {after:+6.1f}" for before, after in zip(one.before, one.after, strict=True))
        moved = ", ".join(f"{name} {value:.2g}" for name, value in one.priors.items())
        lines.append(f"{one.row.edge} {one.row.strategy}".ljust(34) + f"{errors}  {moved}")
    before = np.abs([one.before for one in found]).mean(axis=0)
    after = np.abs([one.after for one in found]).mean(axis=0)
    means = "".join(f"  {a:7.1f} > {b:6.1f}" for a, b in zip(before, after, strict=True))
    return [*lines, "mean absolute error".ljust(34) + means]


def defaults(found: Sequence[Row]) -> dict[str, float]:
    """Returns the present value of each prior, that of the first edge model where models differ."""
    profile = load_profile(str(next(row.edge for row in predicted(found))))
    return {name: float(getattr(profile, name)) for name in RANGES}
