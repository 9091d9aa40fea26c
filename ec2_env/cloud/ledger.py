"""The exposure ledger of an episode: what crossed, line by line, and every figure on privacy that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ec2_env.sensitive import Necessity, SensitiveUnit
from ec2_env.task import build_episode
from ec2_env.trace import CloudCall, Ended, Exposed, Trajectory
from ec2_env.workspace.world import Language, Split


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one sensitive unit at the end of an episode. It does not hold the value.

    Attributes:
        level: Share of the value that has crossed, 0 to 1.
        touched: Whether the instruction or a tool result has shown the value.
    """

    unit: str
    kind: str
    dimension: str
    weight: float
    necessity: Necessity
    touched: bool
    level: float


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """All that an episode exposed.

    Attributes:
        lines: Every exposure, in the order in which they happened.
        accounts: Every unit of the episode, in the order of the episode.
        called: Whether any request was sent to the cloud.
    """

    lines: tuple[Exposed, ...]
    accounts: tuple[Account, ...]
    called: bool

    def figures(self) -> dict[str, Any]:
        """Returns the figures on privacy, by their names in `info["result"]`."""
        return figures(self.accounts, called=self.called)


def ledger(trajectory: Trajectory, units: Sequence[SensitiveUnit] | None = None) -> Ledger:
    """Makes the ledger of an episode that has ended from its record alone.

    Args:
        trajectory: The record.
        units: The episode's sensitive units; built again from the episode's key if None.
    """
    if units is None:
        units = units_of(trajectory)
    calls = [event for event in trajectory.events if isinstance(event, CloudCall)]
    lines = tuple(line for call in calls for line in call.exposures)
    levels: dict[str, float] = {}
    for line in lines:
        levels[line.unit] = max(line.level, levels.get(line.unit, 0.0))
    touched = {unit for event in trajectory.events if isinstance(event, Ended) for unit in event.touched}
    called = any(call.status != "refused" for call in calls)
    return Ledger(lines=lines, accounts=accounts(units, levels, touched), called=called)


def units_of(trajectory: Trajectory) -> tuple[SensitiveUnit, ...]:
    """Returns the sensitive units of a recorded episode, built again from its key."""
    language = msgspec.convert(trajectory.language, Language)
    split = msgspec.convert(trajectory.split, Split)
    return tuple(build_episode(trajectory.task, trajectory.seed, language, split).units)


def accounts(units: Iterable[SensitiveUnit], levels: Mapping[str, float], touched: Collection[str]) -> tuple[Account, ...]:
    """Returns the accounts of `units`, given what crossed at which level and which values were seen."""
    return tuple(
        Account(
            unit=unit.id,
            kind=unit.kind,
            dimension=unit.dimension,
            weight=unit.weight,
            necessity=unit.necessity,
            touched=unit.id in touched,
            level=levels.get(unit.id, 0.0),
        )
        for unit in units
    )


def figures(units: Sequence[Account], *, called: bool) -> dict[str, Any]:
    """Returns the figures on privacy, by their names in `info["result"]`; docs/environments.md says what they mean.

    Shares are 0 to 1. Privacy is 1 and exposure 0 where there is nothing to expose. A unit that crossed without having been seen
    in full counts among the touched.
    """
    seen = [unit for unit in units if unit.touched or unit.level > 0]
    crossed = sorted((unit.unit, unit.level) for unit in units if unit.level > 0)
    return {
        "privacy": 1 - _share(seen, _weight),
        "privacy_unweighted": 1 - _share(seen, _one),
        "privacy_all": 1 - _share(units, _weight),
        "privacy_all_unweighted": 1 - _share(units, _one),
        "any_leak": bool(crossed),
        "necessary_exposure": _share([unit for unit in units if unit.necessity != "none"], _weight),
        "excess_exposure": _share([unit for unit in units if unit.necessity == "none"], _weight),
        "called": called,
        "exposed": [{"unit": unit, "level": level} for unit, level in crossed],
        "touched": [unit.unit for unit in units if unit.touched],
        "units": len(units),
    }


def _weight(unit: Account) -> float:
    return unit.weight


def _one(unit: Account) -> float:
    return 1.0


def _share(units: Iterable[Account], size: Callable[[Account], float]) -> float:
    """Returns which share of `units` has crossed, each counted by its size; 0 of nothing."""
    counted = list(units)
    whole = sum(size(unit) for unit in counted)
    return sum(size(unit) * unit.level for unit in counted) / whole if whole else 0.0
