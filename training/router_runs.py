"""Where a router's runs come from: a run folder of `ec2-env bench`, or a suite that is played for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.manifest import digest, manifest
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.runner import Watching, check, run
from ec2_env.bench.store import read_manifest
from ec2_env.bench.stored_runs import records_in
from ec2_env.bench.suites import load_suite
from ec2_env.errors import ConfigurationError
from ec2_env.training.scored_runs import Run
from ec2_env.workspace.world import Split

ALONE = ("edge_only", "cloud_only")
FILES = ("calibration.jsonl", "results.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Runs of one split, and what they were made with.

    Attributes:
        runs: Runs of single models.
        cloud: Name of the cloud model.
        suite: Name of the suite.
        edges: Specifications of edge models.
        cloud_spec: Specification of the cloud model.
        simulated: Whether all models are.
    """

    runs: tuple[Run, ...]
    cloud: str
    suite: str
    edges: tuple[str, ...]
    cloud_spec: str
    simulated: bool


def read_runs(folder: Path, split: Split) -> Source:
    """Returns the runs of single models that a run folder holds of a split; episodes that ended in an error are left out.

    Raises:
        ConfigurationError: if it is no run folder, a line is damaged, or there are no such runs of the cloud or an edge model.
    """
    settings = read_manifest(folder / "manifest.json")
    try:
        models = {spec: card["name"] for spec, card in settings["models"].items()}
        edges, cloud = tuple(settings["edges"]), str(settings["cloud"])
        simulated = all(card["simulated"] for card in settings["models"].values())
        found = tuple(_run(one, models) for one in _records(folder) if one.split == split and one.strategy in ALONE)
        name = str(settings["suite"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{folder / 'manifest.json'} lacks {error}; a router is fitted on a folder of ec2-env bench"
        ) from error
    if len(set(models.values())) < len(models):
        raise ConfigurationError(f"two models of {folder} have one name; a router knows models by their names")
    names = {one.model for one in found}
    if models[cloud] not in names or len(names) < 2:
        raise ConfigurationError(
            f"{folder} holds no runs of edge_only and cloud_only on the {split} split; make some, for example with a strategy "
            "that needs them: ec2-env bench --strategy task_routing"
        )
    return Source(runs=found, cloud=models[cloud], suite=name, edges=edges, cloud_spec=cloud, simulated=simulated)


def play_runs(
    suite: str,
    split: Split,
    seeds: int | None,
    *,
    workers: int,
    watch: Watching,
    edges: tuple[str, ...] = (),
    cloud: str = "",
) -> Source:
    """Plays the edge models and the cloud alone on a split of a suite, once each instance, into a run folder, and reads it.

    Args:
        suite: Name of the suite.
        split: The split.
        seeds: Number of instances of each task and language; as many as offline routers are scored on if None.
        workers: Processes.
        watch: Is told how it goes.
        edges: Specifications; the suite's if empty.
        cloud: The same.

    Raises:
        UnknownName: if there is no such suite, task or model.
        ConfigurationError: if it was interrupted, or something cannot be used.
    """
    own = load_suite(suite)
    played = msgspec.structs.replace(own, split=split, seeds=seeds or own.calibration_seeds, trials=1)
    config = BenchConfig(name=suite, suite=played, strategies=ALONE, edges=edges or own.edges, cloud=cloud or own.cloud)
    check(config)
    folder = Path("runs") / digest(manifest(config))
    outcome = run(config, folder, workers=workers, watch=watch)
    if outcome.left:
        raise ConfigurationError(f"stopped: {outcome.stopped}; run the same command again to go on with {folder}")
    return read_runs(folder, split)


def _records(folder: Path) -> Iterator[EpisodeRecord]:
    for file in (folder / name for name in FILES):
        if file.exists():
            yield from (record for _, record in records_in(file) if record.result.get("status") != "error")


def _run(record: EpisodeRecord, models: dict[str, str]) -> Run:
    return Run(record.task, record.language, models[record.edge or record.cloud], record.seed, float(record.result["completion"]))
