"""Checks that a record from elsewhere agrees with itself, and with the episode that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import msgspec

from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.stored_runs import StoredRun
from ec2_env.bench.strict import Refused, read_object
from ec2_env.cloud.ledger import accounts, figures
from ec2_env.cloud.prices import cost_usd, price
from ec2_env.models.base import ModelCard, Usage
from ec2_env.reference import reference_usd
from ec2_env.reward import RewardWeights
from ec2_env.sensitive import SensitiveUnit
from ec2_env.session import PASS_THRESHOLD
from ec2_env.task import STRAY_FACTOR, build_episode
from ec2_env.workspace.world import Language, Split

EXACT = 1e-9
"""Figures of an honest record differ by less: they are written in full."""
LEVELS = (0.3, 0.7, 1.0)
_COUNTS = ("strays", "cloud_calls", "tokens_raw", "tokens_cached", "tokens_out", "steps", "units")
_AMOUNTS = ("completion", "cloud_usd", "edge_flops", "edge_flops_without_probes", "latency_s")
_RESULT = frozenset([*_COUNTS, *_AMOUNTS, *figures((), called=False), "status", "checks", "forbidden", "usage_gap", "problem"])


@dataclass(frozen=True, slots=True)
class _Known:
    """What an episode holds: its sensitive units, and the weights of its checks by name."""

    units: tuple[SensitiveUnit, ...]
    checks: Mapping[str, float]


def read_record(line: bytes, where: str) -> EpisodeRecord:
    """Returns the record that a line holds.

    Raises:
        Refused: if it holds anything else, or more.
    """
    found = read_object(line, where)
    if set(found) != set(EpisodeRecord.__struct_fields__):
        raise Refused(f"{where} has other fields than a record")
    try:
        return msgspec.convert(found, EpisodeRecord)
    except msgspec.ValidationError as error:
        raise Refused(f"{where} is no record ({error})") from None


def check_record(record: EpisodeRecord, run: StoredRun, where: str) -> None:
    """Checks a record by all that can be known of its episode without playing it.

    Raises:
        Refused: if it contradicts the manifest, itself, or the episode.
    """
    _check_place(record, run, where)
    _check_form(record, where)
    known = _known(record.task, record.seed, record.language, record.split)
    _check_score(record.result, known, where)
    _check_money(record.result, run.card(record.cloud), where)
    exposure = _check_privacy(record.result, known.units, where)
    unit_usd = reference_usd(record.task, cast(Language, record.language), run.card(record.cloud))
    weights, completion, cost = RewardWeights(), record.result["completion"], record.result["cloud_usd"] / unit_usd
    total = weights.task * completion - weights.cost * cost - weights.privacy * exposure
    expected = {"task": completion, "cost": cost, "exposure": exposure}
    if not all(near(record.reward[name], value) for name, value in expected.items()) or not near(record.total, total):
        raise Refused(f"{where}: the reward does not follow from the result")


def _check_place(record: EpisodeRecord, run: StoredRun, where: str) -> None:
    settings = run.settings
    if record.strategy not in settings["strategies"] or record.cloud != settings["cloud"]:
        raise Refused(f"{where}: its strategy or cloud model is not in the manifest")
    if record.edge not in (None, *settings["edges"]) or f"{record.task}/{record.language}" not in settings["tasks"]:
        raise Refused(f"{where}: its edge model, task or language is not in the manifest")
    if record.split != settings["split"] or not 0 <= record.seed < settings["seeds"]:
        raise Refused(f"{where}: its split or seed is not in the manifest")


def _check_form(record: EpisodeRecord, where: str) -> None:
    result = record.result
    if set(record.reward) != {"task", "cost", "exposure"} or len(record.sha256) != 64 or set(result) != _RESULT:
        raise Refused(f"{where}: its reward, digest or result has other fields than a record")
    if not all(_whole(result[name]) for name in _COUNTS) or not all(_amount(result[name]) for name in _AMOUNTS):
        raise Refused(f"{where}: a count is no whole number of at least 0, or an amount no number of at least 0")
    gap = result["usage_gap"]
    if (
        not isinstance(gap, dict)
        or set(gap) != {"raw", "cached", "out", "usd"}
        or not all(near(one, one) for one in gap.values())
    ):
        raise Refused(f"{where}: its usage_gap has another form")
    if not all(isinstance(result[name], kind) for name, kind in (("checks", dict), ("forbidden", list), ("problem", str))):
        raise Refused(f"{where}: its checks, forbidden or problem has another form")


def _check_score(result: Mapping[str, Any], known: _Known, where: str) -> None:
    checks, completion = result["checks"], result["completion"]
    if set(checks) != set(known.checks) or not all(_amount(score) and score <= 1 for score in checks.values()):
        raise Refused(f"{where}: checks are not those of the task")
    earned = sum(weight * checks[name] for name, weight in known.checks.items()) * STRAY_FACTOR ** min(result["strays"], 1_000)
    if not near(completion, 0.0 if result["forbidden"] else round(earned, 6)):
        raise Refused(f"{where}: the completion does not follow from the checks")
    if result["status"] not in ("pass" if completion >= PASS_THRESHOLD else "fail", "invalid", "error"):
        raise Refused(f"{where}: completion and status do not agree")


def _check_money(result: Mapping[str, Any], card: ModelCard, where: str) -> None:
    """Checks that the tokens cost at least what they do in short requests, and at most what they do in long ones."""
    rates = price(str(card.price))
    usage = Usage(raw=result["tokens_raw"], cached=result["tokens_cached"], output=result["tokens_out"])
    least = float(cost_usd(usage, replace(rates, long_context=None)))
    tier = rates.long_context
    most = least if tier is None else float(cost_usd(usage, replace(rates, long_context=replace(tier, above_tokens=-1))))
    if not least - EXACT <= result["cloud_usd"] <= most + EXACT:
        raise Refused(f"{where}: cloud_usd is not what its tokens cost")


def _check_privacy(result: Mapping[str, Any], units: Sequence[SensitiveUnit], where: str) -> float:
    """Checks the figures on privacy; returns the weighted share of all values that crossed."""
    ids, exposed, touched = {unit.id for unit in units}, result["exposed"], result["touched"]
    if (
        not isinstance(exposed, list)
        or not isinstance(touched, list)
        or not all(isinstance(one, str) and one in ids for one in touched)
    ):
        raise Refused(f"{where}: touched names other values than the episode has")
    levels: dict[str, float] = {}
    for one in exposed:
        unit, level = (one.get("unit"), one.get("level")) if isinstance(one, dict) else (None, None)
        if not isinstance(unit, str) or unit not in ids or unit in levels or not isinstance(level, float) or level not in LEVELS:
            raise Refused(f"{where}: exposed names other values than the episode has, or one twice")
        levels[unit] = level
    for name, value in figures(accounts(units, levels, touched), called=result["called"] is True).items():
        if result[name] != value and not near(result[name], value):
            raise Refused(f"{where}: {name} does not follow from the values that were exposed and touched")
    if (levels or result["cloud_calls"]) and result["called"] is not True:
        raise Refused(f"{where}: the cloud was not called, and yet something crossed")
    whole = sum(unit.weight for unit in units)
    return sum(unit.weight * levels.get(unit.id, 0.0) for unit in units) / whole if whole else 0.0


@lru_cache(maxsize=16_384)
def _known(task: str, seed: int, language: str, split: str) -> _Known:
    episode = build_episode(task, seed, cast(Language, language), cast(Split, split))
    return _Known(tuple(episode.units), {check.name: check.weight for check in episode.checks})


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15


def _amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e30


def near(left: object, right: object) -> bool:
    """Says whether two values are numbers, and equal but for rounding."""
    if any(isinstance(one, bool) or not isinstance(one, int | float) or abs(one) > 1e30 for one in (left, right)):
        return False
    return abs(cast(float, left) - cast(float, right)) <= EXACT * max(1.0, abs(cast(float, right)))
