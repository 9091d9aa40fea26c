"""Scores stored trajectories again: every figure from events, with other weights, prices, graders or a fresh audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from ec2_env.bench.grid import Cell
from ec2_env.bench.records import EpisodeRecord, Played
from ec2_env.bench.repeating import graded_again
from ec2_env.bench.report import Report, make_report
from ec2_env.bench.runner import Outcome
from ec2_env.bench.statistics import Summary, Totals
from ec2_env.bench.store import RecordLog, RunFolder
from ec2_env.bench.stored_runs import StoredRun, config_of, decoded, records_in
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.ledger import ledger, units_of
from ec2_env.cloud.prices import Price, cost_usd, price
from ec2_env.cloud.provenance import exposed
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import ModelCard, Usage
from ec2_env.prompts import ASK
from ec2_env.reference import reference_usd
from ec2_env.reward import RewardWeights, reward_weights, terms
from ec2_env.sensitive import SensitiveUnit
from ec2_env.trace import CloudCall, EdgeTurn, Ended, Trajectory

NEGLIGIBLE = 1e-9
"""Figures that differ by less are equal."""


def result_of(trajectory: Trajectory, units: Sequence[SensitiveUnit]) -> dict[str, Any]:
    """Returns `info["result"]` of an episode, computed from its events alone: the same numbers that were recorded.

    Args:
        trajectory: The record.
        units: The episode's sensitive units.

    Raises:
        ConfigurationError: if the record has no end.
    """
    ended = next((event for event in trajectory.events if isinstance(event, Ended)), None)
    if ended is None:
        raise ConfigurationError(f"the trajectory of {trajectory.task} has no end; it cannot be scored")
    calls = [event for event in trajectory.events if isinstance(event, CloudCall)]
    turns = [event for event in trajectory.events if isinstance(event, EdgeTurn)]
    return {
        "status": ended.status,
        "completion": ended.completion,
        "checks": ended.checks,
        "strays": ended.strays,
        "forbidden": list(ended.forbidden),
        **ledger(trajectory, units).figures(),
        "cloud_calls": sum(call.status == "ok" for call in calls),
        **{name: sum(getattr(call, name) for call in calls) for name in ("tokens_raw", "tokens_cached", "tokens_out")},
        "cloud_usd": float(sum((Decimal(call.usd) for call in calls), Decimal(0))),
        "usage_gap": {
            **{kind: sum(getattr(call, f"gap_{kind}") for call in calls) for kind in ("raw", "cached", "out")},
            "usd": float(sum((Decimal(call.gap_usd) for call in calls), Decimal(0))),
        },
        "edge_flops": _sum(turn.flops for turn in turns),
        "edge_flops_without_probes": _sum(0.0 if turn.probe else turn.flops for turn in turns),
        "latency_s": _sum(event.latency_s for event in trajectory.events if isinstance(event, CloudCall | EdgeTurn)),
        "steps": ended.step,
        "problem": ended.problem,
    }


def _sum(values: Iterator[float]) -> float:
    """Returns a sum in the order of the events, as it was added up in the episode (`sum` of 3.12 would round otherwise)."""
    total = 0.0
    for value in values:
        total += value
    return total


# -- a fresh audit


def audited(trajectory: Trajectory, units: Sequence[SensitiveUnit]) -> Trajectory:
    """Returns the record with the exposures that the installed audit finds in the recorded texts.

    A record holds every text that crossed once, where it crossed first. What stood beside it in its payload, which matters only
    for values cut in two, is put together from earlier requests of the same kind.
    """
    audit, payloads, events, sent = Audit(units), _Payloads(), list(trajectory.events), 0
    for index, event in enumerate(events):
        if not isinstance(event, CloudCall) or event.status == "refused":
            continue
        sent += 1
        texts = payloads.texts(event)
        found = audit.scan(texts)
        lines = exposed(found, texts, audit.units, trajectory.instruction, events[:index], step=event.step, call=sent)
        events[index] = msgspec.structs.replace(event, exposures=lines)
    return msgspec.structs.replace(trajectory, events=tuple(events))


class _Payloads:
    """Puts payloads together again from the texts that were new in each."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, int], str] = {}
        self._bodies: dict[tuple[bool, bool], dict[int, str]] = {}

    def texts(self, call: CloudCall) -> list[str]:
        """Returns the texts of a payload; "" where one is not known."""
        fresh, head = dict(call.sent), 2 if call.mode == "act" else 1
        body = self._bodies.setdefault((call.redact, call.share == "relevant"), {})
        whole = []
        for place in range(call.texts):
            asks = place == call.texts - 1 and call.mode == "advise"
            if place in fresh:
                text = fresh[place]
            elif place < head:
                text = self._heads.get((call.mode, place), "")
            else:
                text = ASK if asks else body.get(place - head, "")
            if place < head:
                self._heads[call.mode, place] = text
            elif text and not asks:
                body[place - head] = text
            whole.append(text)
        return whole


# -- other prices


def repriced(trajectory: Trajectory, rates: Price) -> Trajectory:
    """Returns the record with each cloud call billed at other prices, by its recorded numbers of tokens."""
    events = tuple(_billed(event, rates) if isinstance(event, CloudCall) else event for event in trajectory.events)
    return msgspec.structs.replace(trajectory, events=events)


def _billed(call: CloudCall, rates: Price) -> CloudCall:
    usd = cost_usd(Usage(raw=call.tokens_raw, cached=call.tokens_cached, output=call.tokens_out), rates)
    own = Usage(
        raw=call.tokens_raw - call.gap_raw, cached=call.tokens_cached - call.gap_cached, output=call.tokens_out - call.gap_out
    )
    return msgspec.structs.replace(call, usd=str(usd), gap_usd=str(usd - cost_usd(own, rates)))


# -- episodes and runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoring:
    """How episodes are scored again. Without any setting, as they were scored.

    Attributes:
        weights: Weights of the return; None for those of the run.
        unweighted: Whether every sensitive unit counts alike, instead of by its weight.
        prices: Price book; None for the package's own.
        audit: Whether the recorded texts are audited anew.
        grade: Whether the calls are made again on a fresh workspace and its end is graded anew.
    """

    weights: RewardWeights | None = None
    unweighted: bool = False
    prices: Mapping[str, Price] | None = None
    audit: bool = False
    grade: bool = False

    def words(self) -> str:
        """Returns in words what was done."""
        done = ["every figure from the recorded events"]
        if self.weights is not None:
            done.append("weights {task:g}, {cost:g}, {privacy:g}".format(**asdict(self.weights)))
        done += ["all sensitive values alike"] if self.unweighted else []
        done += ["other prices"] if self.prices is not None else []
        done += ["a fresh audit of the recorded texts"] if self.audit else []
        done += ["ends graded again"] if self.grade else []
        return ", ".join(done)


def rescored(
    record: EpisodeRecord, trajectory: Trajectory, how: Rescoring, card: ModelCard, weights: RewardWeights
) -> EpisodeRecord:
    """Returns the record of an episode, scored again.

    Args:
        record: The record as it is.
        trajectory: What happened.
        how: How to score.
        card: The cloud model.
        weights: Weights of the return.
    """
    rates = price(card.price, how.prices) if how.prices is not None and card.price is not None else None
    units = units_of(trajectory)
    trajectory = graded_again(trajectory) if how.grade else trajectory
    trajectory = audited(trajectory, units) if how.audit else trajectory
    trajectory = repriced(trajectory, rates) if rates is not None else trajectory
    units = tuple(msgspec.structs.replace(unit, weight=1.0) for unit in units) if how.unweighted else units
    unit_usd = reference_usd(record.task, record.key.language, card, rates)
    found = terms(trajectory.events, {}, units, unit_usd)
    return msgspec.structs.replace(
        record,
        reward={"task": found.task, "cost": found.cost, "exposure": found.exposure},
        total=found.scalar(weights),
        result=result_of(trajectory, units),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """A run, scored again.

    Attributes:
        report: Its table, with notes on what differs from the recorded figures.
        records: Its records, in the order in which they were played.
        settings: A manifest that says what was done.
        changed: Episodes of which any figure differs.
    """

    report: Report
    records: tuple[EpisodeRecord, ...]
    settings: Mapping[str, Any]
    changed: int


def rescore(run: StoredRun, how: Rescoring, command: str) -> Rescored:
    """Scores all episodes of a run again; nothing in its folder is changed.

    Raises:
        ConfigurationError: if the run kept no trajectories, or they are not those of its records.
        UnknownName: if the price book lacks the cloud model, or a task is gone.
    """
    if run.kept is None:
        raise ConfigurationError(f"{run.path} kept no trajectories to score again; run ec2-env bench with --trajectories")
    weights = how.weights or reward_weights(run.settings["weights"])
    card = run.card(run.settings["cloud"])
    pairs = list(_scored(run, how, card, weights))
    grid = run.grid(run.ordered({old.cell for old, _ in pairs}))
    before, after = Totals(grid), Totals(grid)
    for old, new in pairs:
        before.add(old)
        after.add(new)
    changed = sum(_differs(old, new) for old, new in pairs)
    settings = {
        **run.settings,
        "source": "rescored",
        "rescoring": how.words(),
        "weights": asdict(weights),
        "trajectories": False,
    }
    config = replace(config_of(run, command), weights=weights)
    left = len(grid) - after.done - after.errors
    outcome = Outcome(totals=after, stopped="", interrupted=False, left=left, settings=run.settings)
    report = make_report(config, outcome)
    told = [f"Scored again: {how.words()}. {_changes(changed, len(pairs))}", *_moved(before.summaries(), after.summaries())]
    if how.prices is not None:
        told.append("Prices are those of the given book, not those named below.")
    return Rescored(
        report=replace(report, notes=(*told, *report.notes)),
        records=tuple(new for _, new in pairs),
        settings=settings,
        changed=changed,
    )


def _scored(
    run: StoredRun, how: Rescoring, card: ModelCard, weights: RewardWeights
) -> Iterator[tuple[EpisodeRecord, EpisodeRecord]]:
    """Yields each record as it is and scored again."""
    assert run.kept is not None
    with run.kept.open("rb") as stream:
        lines = (line for line in stream if line.endswith(b"\n"))
        for numbered, line in zip_longest(records_in(run.results), lines):
            if numbered is None:
                return  # trajectories of a run that still goes on
            number, record = numbered
            stored = decoded(line, Trajectory, run.kept, number) if line is not None else None
            if stored is None or (stored.task, stored.seed, stored.trial) != (record.task, record.seed, record.trial):
                raise ConfigurationError(
                    f"{run.kept}: line {number} is not the trajectory of line {number} of {run.results.name}"
                )
            yield record, rescored(record, stored, how, card, weights)


def _differs(old: EpisodeRecord, new: EpisodeRecord) -> bool:
    before, after = ({**one.result, "reward": one.reward, "total": one.total} for one in (old, new))
    return not _equal(msgspec.to_builtins(before), msgspec.to_builtins(after))


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_equal(old[key], new[key]) for key in old)
    if isinstance(old, float | int) and isinstance(new, float | int):
        return abs(old - new) < NEGLIGIBLE
    return bool(old == new)


def _changes(changed: int, whole: int) -> str:
    return (
        "All figures are as recorded."
        if not changed
        else f"Episodes with another figure than recorded: {changed:,} of {whole:,}."
    )


def _moved(before: Sequence[Summary], after: Sequence[Summary]) -> Iterator[str]:
    """Says for each row which means differ from the recorded ones."""
    for old, new in zip(before, after, strict=True):
        moved = []
        for name in sorted(old.figures):
            left, right = old.figures[name].mean, new.figures[name].mean
            if left is not None and right is not None and abs(left - right) >= NEGLIGIBLE:
                moved.append(f"{name} {left:.4g} to {right:.4g}")
        if moved:
            yield f"{_name(old.cell)}: recorded to rescored: {', '.join(moved)}."


def _name(cell: Cell) -> str:
    return cell.strategy + (f" ({cell.edge})" if cell.edge else "")


def write(found: Rescored, out: Path) -> None:
    """Writes the records into a run folder of their own, marked as rescored.

    Raises:
        ConfigurationError: if the folder holds something else.
    """
    folder = RunFolder(out, found.settings, {})
    try:
        log = RecordLog(out / "results.jsonl", None, print)
        if not any(True for _ in log.read()):
            log.append([Played(msgspec.json.encode(record, order="sorted"), None) for record in found.records])
            log.close()
    finally:
        folder.close()
