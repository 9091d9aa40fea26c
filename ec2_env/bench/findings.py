"""Plays what the four published findings need, and tests them.

Episodes are played once and kept in run folders, a folder for each part; a second call plays only what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ec2_env.bench.findings_abilities import marginal
from ec2_env.bench.findings_balance import balance
from ec2_env.bench.findings_plan import FindingsPlan, Played, configs
from ec2_env.bench.findings_rules import Finding, means
from ec2_env.bench.findings_sweep import convergence, preference
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.runner import Outcome, Watching, run
from ec2_env.bench.store import RecordLog

TESTS: Mapping[int, Callable[[Played], Finding]] = {1: balance, 2: convergence, 3: preference, 4: marginal}
"""The test of each finding."""


def play(plan: FindingsPlan, path: Path, *, workers: int, watch: Watching) -> dict[str, Outcome]:
    """Plays what is missing of a plan, a run folder below `path` for each part.

    Returns:
        The outcomes of the parts that were begun; all of them, unless the user interrupted one.
    """
    outcomes: dict[str, Outcome] = {}
    for name, config in configs(plan).items():
        watch.say(f"part {name}")
        outcomes[name] = run(config, path / name, workers=workers, watch=watch)
        if outcomes[name].interrupted:
            break
    return outcomes


def read(plan: FindingsPlan, path: Path) -> Played:
    """Returns the figures of what `play` has played."""
    records = {name: _records(path / name) for name in configs(plan)}
    parts = {name: means(found, plan.task_names(), plan.draws) for name, found in records.items() if name != "oracle"}
    if "help" in parts:
        parts["help"] = {**parts["sweep"], **parts["help"]}
    if "calling" in parts:
        parts["abilities"] = {**parts["calling"], **parts["abilities"]}
    first = [record for name in ("abilities", "oracle") for record in records.get(name, ()) if record.trial == 0]
    return Played(plan=plan, parts=parts, few=means(first, plan.oracle_names(), plan.draws))


def _records(folder: Path) -> list[EpisodeRecord]:
    return list(RecordLog(folder / "results.jsonl", None, _silent).read())


def _silent(text: str) -> None:
    """Says nothing: whoever played the records has said it."""


def judge(played: Played) -> list[Finding]:
    """Returns the plan's findings, tested."""
    return [TESTS[number](played) for number in sorted(set(played.plan.findings))]
