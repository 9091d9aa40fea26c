"""Trajectories of a run that kept none: its episodes are played again, and the digest of each is compared with its record."""

from __future__ import annotations

import hashlib

from ec2_env.bench.records import EpisodeRecord, Played
from ec2_env.bench.replaying import PlayAgain
from ec2_env.bench.stored_runs import StoredRun
from ec2_env.errors import ConfigurationError
from ec2_env.models.loading import load_model


class PlayedAgain:
    """Plays an episode when it is asked for.

    Args:
        run: The run.

    Raises:
        ConfigurationError: if a model of the run is not simulated: it would answer otherwise, and for money.
    """

    def __init__(self, run: StoredRun) -> None:
        for spec in (*run.settings["edges"], run.settings["cloud"]):
            if not load_model(spec).card.simulated:
                raise ConfigurationError(f"{spec} is not simulated, so its episodes cannot be played again; leave --replay out")
        self._player = PlayAgain(run)

    def line(self, number: int, record: EpisodeRecord) -> bytes:
        """Returns the trajectory of an episode, played again.

        Raises:
            ConfigurationError: if it could not be played, or is not the one that was recorded.
        """
        played = self._player.attempt(record)
        if not isinstance(played, Played):
            raise ConfigurationError(f"episode {number} cannot be played again: {played.message.splitlines()[-1]}")
        line = played.trajectory or b""
        if hashlib.sha256(line).hexdigest() != record.sha256:
            raise ConfigurationError(
                f"episode {number} comes out otherwise when it is played again: the run was made with another state of the code "
                f"or of the models (version {self._player.run.settings.get('version')})"
            )
        return line
