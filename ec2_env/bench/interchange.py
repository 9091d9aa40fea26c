"""Turns results of the study's own harness into a run folder, so that its runs and ours can stand in the same kinds of report."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import msgspec

import ec2_env
from ec2_env.bench.grid import BenchConfig, Cell, Grid
from ec2_env.bench.harness_folder import MODES, Foreign, read_folder
from ec2_env.bench.records import EpisodeRecord, Played
from ec2_env.bench.report import Report, count
from ec2_env.bench.statistics import DRAWS, Estimate, Totals
from ec2_env.bench.store import RecordLog, RunFolder
from ec2_env.bench.suites import Suite
from ec2_env.cloud.metering import edge_flops
from ec2_env.cloud.prices import Price, cost_usd, price
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import ModelCard
from ec2_env.reward import RewardWeights, Terms
from ec2_env.session import PASS_THRESHOLD
from ec2_env.workspace.world import Language

SUITE = "imported:acebench"
UNMEASURED = ("privacy_all", "necessary_exposure", "excess_exposure", "usage_gap_tokens", "usage_gap_usd")
"""Figures that the harness cannot give: it judges only values that were accessed, and does not count tokens itself."""
FLOPS = ("edge_pflops", "edge_pflops_without_probes")
_ACTIVE, _SIZE = re.compile(r"a(\d+(?:\.\d+)?)b\b"), re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Runs of the harness in the form of a run of this package.

    Attributes:
        settings: The manifest; its `source` is "imported", and its `not_measured` names the figures without meaning.
        records: One record for each repeat of each task.
        notes: What a reader has to know.
    """

    settings: Mapping[str, Any]
    records: tuple[EpisodeRecord, ...]
    notes: tuple[str, ...]

    def totals(self) -> Totals:
        """Returns the sums over all records."""
        settings = self.settings
        pairs = tuple(cast("tuple[str, Language]", tuple(pair.rsplit("/", 1))) for pair in settings["tasks"])
        cells = tuple(dict.fromkeys(record.cell for record in self.records))
        totals = Totals(Grid(cells, pairs, settings["split"], settings["seeds"], settings["trials"]))
        for record in self.records:
            totals.add(record)
        return totals


def imported(folders: Sequence[Path], *, entry: str | None = None, as_harness: bool = False) -> Imported:
    """Reads result folders of the harness.

    Args:
        folders: Output folders, each of one run mode or of several.
        entry: Entry of the price book for the cloud model; the model's own name if None.
        as_harness: Whether a run without a score counts as a completion of 0, and one whose privacy judge failed as a total
            leak, as in the harness's own tables. Otherwise the first is an infrastructure error and the second says nothing.

    Raises:
        ConfigurationError: if there is nothing to read, two results claim the same repeat, or several cloud models took part.
        UnknownName: if the cloud model has no price.
    """
    found = [one for folder in folders for one in read_folder(folder)]
    clouds = sorted({one.cell.cloud for one in found} - {""})
    if len(clouds) > 1:
        raise ConfigurationError(
            f"the folders have several cloud models ({', '.join(clouds)}); import each into a run of its own"
        )
    cloud = clouds[0] if clouds else "none"
    rates = price(entry or cloud) if any(one.usage for one in found) else None
    numbered = sorted(_numbered(found, cloud), key=_order)
    references = _references(numbered, rates)
    records = tuple(_record(cell, trial, one, rates, references, as_harness) for cell, trial, one in numbered)
    unmeasured = [*UNMEASURED, *([] if references else ["cost", "return"]), *([] if _flops_known(found) else FLOPS)]
    cells = list(dict.fromkeys(cell for cell, _, _ in numbered))
    edges = sorted({cell.edge for cell in cells if cell.edge is not None})
    cards = [ModelCard(name=name, family="", parameters=_parameters(name)) for name in edges]
    cards.append(ModelCard(name=cloud, family="", price=entry or cloud))
    settings = {
        "format": 1,
        "source": "imported",
        "version": ec2_env.__version__,
        "code": "imported",
        "suite": SUITE,
        "suite_digest": f"imported:{_digest(found)}",
        "tasks": sorted({f"{one.task}/{_language(one.task)}" for one in found}),
        "split": "test",
        "seeds": 1,
        "trials": 1 + max(trial for _, trial, _ in numbered),
        "max_steps": None,
        "calibration_seeds": None,
        "strategies": list(dict.fromkeys(cell.strategy for cell in cells)),
        "edges": edges,
        "cloud": cloud,
        "models": {card.name: msgspec.to_builtins(asdict(card)) for card in cards},
        "files": {},
        "prices": {"entry": entry or cloud, "as_of": rates.as_of} if rates is not None else None,
        "weights": asdict(RewardWeights()),
        "trajectories": False,
        "not_measured": sorted(unmeasured),
        "errors": "completion 0, failed judges a total leak" if as_harness else "in no mean",
    }
    return Imported(settings=settings, records=records, notes=tuple(_notes(numbered, settings, rates)))


def _numbered(found: Sequence[Foreign], cloud: str) -> Iterator[tuple[Cell, int, Foreign]]:
    """Yields each result with its row and the number of its trial, from 0."""
    grouped: dict[tuple[Cell, str], list[Foreign]] = defaultdict(list)
    for one in found:
        grouped[one.cell._replace(cloud=cloud), one.task].append(one)
    for (cell, _), group in grouped.items():
        taken: dict[int, Foreign] = {}
        for place, one in enumerate(group):
            trial = one.run - 1 if one.run else place
            if trial in taken:
                raise ConfigurationError(
                    f"{taken[trial].place} and {one.place} are both repeat {trial + 1} of a task; remove one"
                )
            taken[trial] = one
            yield cell, trial, one


def _order(numbered: tuple[Cell, int, Foreign]) -> tuple[str, int, str, str, int]:
    cell, trial, one = numbered
    return cell.edge or "", list(MODES.values()).index(cell.strategy.partition(":")[0]), cell.strategy, one.task, trial


def _references(numbered: Sequence[tuple[Cell, int, Foreign]], rates: Price | None) -> Mapping[str, float]:
    """Returns what each task cost on average when the cloud did all of it, in US dollars; nothing if that was not run."""
    spent: dict[str, list[float]] = defaultdict(list)
    for cell, _, one in numbered:
        if cell.strategy == "cloud_only" and one.completion is not None:
            spent[one.task].append(_usd(one, rates))
    found = {task: sum(values) / len(values) for task, values in spent.items()}
    return found if found and all(found.get(one.task, 0.0) > 0 for _, _, one in numbered) else {}


def _usd(one: Foreign, rates: Price | None) -> float:
    if rates is None or not one.usage:
        return 0.0
    if one.calls > len(one.usage):  # only the sum of the calls is known: no single one can be said to be long
        rates = replace(rates, long_context=None)
    return float(sum((cost_usd(usage, rates) for usage in one.usage), Decimal(0)))


def _record(
    cell: Cell, trial: int, one: Foreign, rates: Price | None, references: Mapping[str, float], as_harness: bool
) -> EpisodeRecord:
    error = one.completion is None and not as_harness
    completion = one.completion or 0.0
    privacy = 0.0 if one.judge_failed and as_harness else one.privacy
    usd, flops = _usd(one, rates), edge_flops(_parameters(cell.edge or "") or 0.0, one.edge_tokens or 0)
    leaks = [leak for _, leak in one.leaks]
    found = Terms(completion, usd / references[one.task] if references else 0.0, 0.0 if privacy is None else 1 - privacy)
    result = {
        "status": "error" if error else "pass" if completion >= PASS_THRESHOLD else "fail",
        "completion": completion,
        "privacy": 1.0 if privacy is None else privacy,
        "privacy_unweighted": 1 - sum(leaks) / len(leaks) if leaks else 1.0 if privacy is None else privacy,
        "privacy_all": 1.0 if privacy is None else privacy,
        "any_leak": any(leaks) or (privacy is not None and privacy < 1),
        "necessary_exposure": 0.0,
        "excess_exposure": 0.0,
        "called": one.calls > 0,
        "exposed": [{"unit": unit, "level": leak} for unit, leak in sorted(one.leaks) if leak > 0],
        "touched": [],
        "units": 0 if privacy is None else max(1, len(leaks)),
        "cloud_calls": one.calls,
        "tokens_raw": sum(usage.raw for usage in one.usage),
        "tokens_cached": sum(usage.cached for usage in one.usage),
        "tokens_out": sum(usage.output for usage in one.usage),
        "cloud_usd": usd,
        "usage_gap": {"raw": 0, "cached": 0, "out": 0, "usd": 0.0},
        "edge_flops": flops,
        "edge_flops_without_probes": flops,
        "latency_s": one.elapsed_s,
        "steps": one.turns,
        "problem": one.problem,
    }
    return EpisodeRecord(
        **cell._asdict(),
        task=one.task,
        language=_language(one.task),
        split="test",
        seed=0,
        trial=trial,
        reward={"task": found.task, "cost": found.cost, "exposure": found.exposure},
        total=found.scalar(RewardWeights()),
        result=result,
        sha256=one.sha256,
    )


def _flops_known(found: Sequence[Foreign]) -> bool:
    return all(one.cell.edge is None or (_parameters(one.cell.edge) and one.edge_tokens is not None) for one in found)


def _parameters(model: str) -> float | None:
    """Returns the weights used for a token, from a name such as "qwen3.5-27b" or "qwen3-30b-a3b"; None if it does not say."""
    size = _ACTIVE.search(model) or _SIZE.search(model)
    return float(size[1]) * 1e9 if size else None


def _language(task: str) -> str:
    return "zh" if re.search(r"(?:^|[_-])zh(?:[_-]|$)", task) else "en"


def _digest(found: Sequence[Foreign]) -> str:
    names = sorted(f"{one.cell} {one.task} {one.run} {one.sha256}" for one in found)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _notes(numbered: Sequence[tuple[Cell, int, Foreign]], settings: Mapping[str, Any], rates: Price | None) -> Iterator[str]:
    errors = sum(one.completion is None for _, _, one in numbered)
    failed = sum(one.judge_failed for _, _, one in numbered)
    if errors:
        yield f"{count(errors, 'run')} without a score: {settings['errors'].partition(',')[0]}."
    if failed:
        yield f"{count(failed, 'run')} whose privacy judge failed: {settings['errors'].rpartition('failed judges ')[2]}."
    yield (
        "Imported: other tasks, graders and privacy judge than this package has. Not to be put beside figures of our suites, "
        "except by the order of the strategies."
    )
    yield (
        f"In brackets: 95% intervals by a bootstrap over tasks ({DRAWS:,} draws). Completion, Pass^3 and privacy in percent. "
        "Privacy is the harness's score over accessed values, by a language model."
    )
    if rates is not None:
        yield f"USD: recorded tokens at prices as of {rates.as_of} (entry {settings['prices']['entry']})."
    if "return" not in settings["not_measured"]:
        yield (
            "Return as in our tables, with cost 1 for the mean cloud-only run of the task, and exposure taken as 1 - privacy, "
            "which is at least ours."
        )
    yield f"Not measured by the harness: {', '.join(settings['not_measured'])}."


# -- what is shown and kept


def report(found: Imported, command: str) -> Report:
    """Returns the table of imported runs; figures that were not measured are left blank."""
    settings, blank = found.settings, dict.fromkeys(found.settings["not_measured"], Estimate(None))
    summaries = [replace(one, figures={**one.figures, **blank}) for one in found.totals().summaries()]
    cloud, edges = settings["cloud"], tuple(dict.fromkeys(one.cell.edge for one in summaries))
    headings = {edge: f"edge {edge}, cloud {cloud}" if edge else f"no edge model, cloud {cloud}" for edge in edges}
    missing = sum(one.missing for one in summaries)
    problems = [f"PARTIAL: {count(missing, 'run')} missing; rows are not comparable."] if missing else []
    tasks, trials = len(settings["tasks"]), settings["trials"]
    return Report(
        title=f"Imported runs of the study's harness: {count(tasks, 'task')}, {count(trials, 'repeat')}",
        models=f"Real models: {', '.join(name for name in settings['models'] if name != 'none')}.",
        sections=tuple((headings[edge], tuple(one for one in summaries if one.cell.edge == edge)) for edge in edges),
        notes=(*problems, *found.notes),
        command=command,
        config=BenchConfig(
            name=SUITE,
            suite=Suite(about="", seeds=1, trials=trials),
            strategies=tuple(settings["strategies"]),
            edges=tuple(settings["edges"]),
            cloud=cloud,
        ),
    )


def write(found: Imported, out: Path) -> None:
    """Writes imported runs into a run folder, unless it holds just these.

    Raises:
        ConfigurationError: if the folder holds something else.
    """
    folder = RunFolder(out, found.settings, {})
    try:
        log = RecordLog(out / "results.jsonl", None, print)
        there = sum(1 for _ in log.read())
        if there < len(found.records):
            log.append([Played(msgspec.json.encode(record, order="sorted"), None) for record in found.records[there:]])
            log.close()
    finally:
        folder.close()
