"""Which priors of the simulated models matter for the predictions, and what fitting them to other rows would do.

Each prior is moved to both ends of its range, for all models at once, with all draws kept. Rows with two models are then fitted,
one left out at a time, on a linear model of these moves. That variant looks at the published rows with two models: it is
marked, and nothing that it finds goes back into the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.reproduction import CLOUD, TARGETS, Row, configs, predicted, rows
from ec2_env.bench.runner import Watching, run

RANGES: Mapping[str, tuple[float, float]] = {
    "shared": (0.3, 0.8),
    "step_sd": (0.5, 1.5),
    "curiosity": (0.05, 0.4),
    "repair": (0.05, 0.5),
    "fresh_look": (0.1, 0.7),
    "plan_lift": (0.3, 0.7),
    "plan_rest": (0.0, 0.4),
    "advice_lift": (0.3, 0.8),
    "follow": (0.5, 1.0),
    "follow_asked": (0.8, 1.0),
    "style_penalty": (0.0, 0.5),
    "entropy_base": (0.2, 0.9),
    "entropy_doubt": (0.5, 3.0),
    "entropy_fail": (0.0, 1.0),
    "entropy_opening": (0.0, 2.5),
    "entropy_task_sd": (0.1, 0.6),
    "entropy_sd": (0.3, 0.9),
    "help_rate": (0.3, 1.5),
    "help_spread": (0.5, 2.0),
    "plan_thinking": (0.1, 1.0),
}
"""Where a prior may reasonably lie, as `docs/simulator.md` says; what only redaction or other strategies feel is left out."""
STRATEGIES = ("edge_only", "cloud_only", "sketch_guided", "step_routing", "adaptive_assistance")
"""Task-routing sends whole tasks to one model, so priors of working together hardly touch it."""
FIGURES = ("completion", "privacy", "usd")
RIDGE = 0.3
"""Weight of staying at the prior, against errors counted in units of their targets."""


class Move(NamedTuple):
    """A prior at one end of its range."""

    prior: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What moving a prior does.

    Attributes:
        move: Which prior, and where to.
        rows: The table with it.
        change: By how many points each figure of each predicted row moves, shape (rows, `FIGURES`).
    """

    move: Move
    rows: tuple[Row, ...]
    change: NDArray[np.float64]


def moves() -> tuple[Move, ...]:
    """Returns every prior at both ends of its range."""
    return tuple(Move(prior, value) for prior, ends in RANGES.items() for value in ends)


def config(move: Move | None) -> BenchConfig:
    """Returns the run of the rows with `CLOUD` once each, with a prior moved in all of its models."""
    change = "" if move is None else f"@{move.prior}={move.value:g}"
    edges = {edge.removeprefix("sim:"): f"{edge}{change}" for edge in configs()[CLOUD].edges}
    whole = configs(edges, f"sim:{CLOUD}{change}")[CLOUD]
    return replace(whole, strategies=STRATEGIES, suite=msgspec.structs.replace(whole.suite, trials=1))


def play(path: Path, *, workers: int, watch: Watching) -> tuple[tuple[Row, ...], list[Effect]] | None:
    """Plays the table as it is and with every move; returns the rows and the effects, or None if it was interrupted.

    Args:
        path: Folder of the run folders; what is there is not played again.
        workers: Number of processes.
        watch: Is told how it goes.
    """
    base: tuple[Row, ...] = ()
    effects = []
    for move in (None, *moves()):
        watch.say("priors as they are" if move is None else f"{move.prior} = {move.value:g}")
        outcome = run(config(move), path / _folder(move), workers=workers, watch=watch)
        if outcome.left:
            return None
        found = rows({CLOUD: outcome})
        if move is None:
            base = found
        else:
            effects.append(Effect(move=move, rows=found, change=figures(found) - figures(base)))
    return base, effects


def _folder(move: Move | None) -> str:
    return "as_it_is" if move is None else f"{move.prior}_{move.value:g}"


def figures(found: Sequence[Row]) -> NDArray[np.float64]:
    """Returns the predicted rows' figures in percent, shape (rows, `FIGURES`)."""
    return np.array([[row.figures[name].ours or 0.0 for name in FIGURES] for row in predicted(found)])


def published(found: Sequence[Row]) -> NDArray[np.float64]:
    """Returns the published figures of the same rows."""
    return np.array([[row.figures[name].published for name in FIGURES] for row in predicted(found)])


def tolerances(found: Sequence[Row]) -> NDArray[np.float64]:
    """Returns the target of each figure in points; that of money is a share of the published share."""
    theirs = published(found)
    limits = np.tile([TARGETS[name] for name in FIGURES], (len(theirs), 1))
    limits[:, FIGURES.index("usd")] *= theirs[:, FIGURES.index("usd")] / 100
    return np.asarray(limits, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A row predicted with priors that were fitted to all other rows with two models.

    Attributes:
        row: The row as it is predicted without any fit.
        before: Errors without a fit, by `FIGURES`, in points.
        after: Errors with it, on the linear model.
        priors: Values of the fitted priors that moved the most.
    """

    row: Row
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    priors: Mapping[str, float]


def leave_one_out(base: Sequence[Row], effects: Sequence[Effect], defaults: Mapping[str, float]) -> list[LeftOut]:
    """Fits the priors to all predicted rows but one, for each of them, within their ranges and with a pull to where they are.

    Args:
        base: The table as it is.
        effects: Both ends of each prior.
        defaults: Value of each prior.
    """
    names = tuple(RANGES)
    slopes = np.array([_slope(name, effects) for name in names])
    room = np.array([[RANGES[name][0] - defaults[name], RANGES[name][1] - defaults[name]] for name in names])
    scale = np.array([RANGES[name][1] - RANGES[name][0] for name in names])
    error, limit = figures(base) - published(base), tolerances(base)
    found = []
    for number, row in enumerate(predicted(base)):
        others = [other for other in range(len(error)) if other != number]
        design = (slopes[:, others] / limit[others]).reshape(len(names), -1).T * scale
        wanted = (-error[others] / limit[others]).ravel()
        steps = _bounded_ridge(design, wanted, room / scale[:, None]) * scale
        after = error[number] + np.tensordot(steps, slopes[:, number], axes=1)
        most = sorted(range(len(names)), key=lambda k: -abs(steps[k] / scale[k]))[:4]
        priors = {names[k]: defaults[names[k]] + float(steps[k]) for k in most if steps[k]}
        found.append(LeftOut(row=row, before=error[number], after=after, priors=priors))
    return found


def _slope(prior: str, effects: Sequence[Effect]) -> NDArray[np.float64]:
    """Returns by how much each figure moves with a unit of a prior: over its whole range."""
    low, high = (next(e for e in effects if e.move == Move(prior, value)) for value in RANGES[prior])
    return np.asarray((high.change - low.change) / (high.move.value - low.move.value), dtype=np.float64)


def _bounded_ridge(design: NDArray[Any], wanted: NDArray[Any], bounds: NDArray[Any], rounds: int = 200) -> NDArray[np.float64]:
    """Returns the minimum of |design x - wanted|^2 + RIDGE * rows * |x|^2 within bounds, by coordinate descent."""
    found = np.zeros(design.shape[1])
    penalty = RIDGE * len(wanted)
    left = wanted.astype(np.float64)
    for _ in range(rounds):
        for k in range(len(found)):
            column = design[:, k]
            best = (column @ left + (column @ column) * found[k]) / (column @ column + penalty)
            new = float(np.clip(best, *bounds[k]))
            left = left - column * (new - found[k])
            found[k] = new
    return found
