"""Trajectories of a run that kept none: its episodes are played again, and the digest of each is compared with its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import msgspec

from ec2_env.bench.grid import Cell, Grid, strategy_of
from ec2_env.bench.records import EpisodeRecord, Job, Played, frozen, play_job
from ec2_env.bench.runner import Means, gaps_for, offline_scores
from ec2_env.bench.statistics import Totals
from ec2_env.errors import ConfigurationError
from ec2_env.models.loading import load_model
from ec2_env.reward import reward_weights
from ec2_env.strategy import Prepared
from ec2_env.workspace.world import Language


class PlayedAgain:
    """Plays an episode when it is asked for.

    Args:
        path: The run folder.
        settings: Its manifest.

    Raises:
        ConfigurationError: if a model of the run is not simulated: it would answer otherwise, and for money.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = settings
        for spec in (*settings["edges"], settings["cloud"]):
            if not load_model(spec).card.simulated:
                raise ConfigurationError(f"{spec} is not simulated, so its episodes cannot be played again; leave --replay out")

    def line(self, number: int, record: EpisodeRecord) -> bytes:
        """Returns the trajectory of an episode, played again.

        Raises:
            ConfigurationError: if it could not be played, or is not the one that was recorded.
        """
        gaps = frozen(self._gaps(record.cell))
        weights = reward_weights(self.settings["weights"])
        job = Job(record.cell, (record.key,), gaps, self.settings["max_steps"], weights, True)
        (played,) = play_job(job)
        if not isinstance(played, Played):
            raise ConfigurationError(f"episode {number} cannot be played again: {played.message.splitlines()[-1]}")
        line = played.trajectory or b""
        if hashlib.sha256(line).hexdigest() != record.sha256:
            raise ConfigurationError(
                f"episode {number} comes out otherwise when it is played again: the run was made with another state of the code "
                f"or of the models (version {self.settings.get('version')})"
            )
        return line

    def _gaps(self, cell: Cell) -> Mapping[tuple[str, str], float]:
        strategy = strategy_of(cell.strategy)
        if cell.edge is None or not isinstance(strategy, Prepared):
            return {}
        return gaps_for(strategy, self._scores[cell.edge], self._scores[None])

    @cached_property
    def _scores(self) -> dict[str | None, Means]:
        """What each model alone completed on the train split: read from the run's calibration."""
        settings = self.settings
        cells = (
            Cell("cloud_only", None, settings["cloud"]),
            *(Cell("edge_only", edge, settings["cloud"]) for edge in settings["edges"]),
        )
        pairs = tuple(
            (task, cast(Language, language)) for task, _, language in (pair.partition("/") for pair in settings["tasks"])
        )
        totals = Totals(Grid(cells, pairs, "train", settings["calibration_seeds"], 1))
        for line in (self.path / "calibration.jsonl").read_bytes().splitlines():
            totals.add(msgspec.json.decode(line, type=EpisodeRecord))
        return offline_scores(totals)
