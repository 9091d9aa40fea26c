"""How values crossed, from recorded trajectories: in which form, by which request, and what had brought them into the context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ec2_env.bench.stored_runs import lines_in


class _Exposed(msgspec.Struct):
    unit: str
    form: str
    origin: str = "unknown"
    event: int = -1


class _Tool(msgspec.Struct, tag="tool"):
    name: str


class _Cloud(msgspec.Struct, tag="cloud"):
    mode: str
    share: str
    redact: bool
    exposures: list[_Exposed]


class _Edge(msgspec.Struct, tag="edge"):
    pass


class _Decided(msgspec.Struct, tag="decision"):
    pass


class _Ended(msgspec.Struct, tag="end"):
    pass


class _Slim(msgspec.Struct):
    """What is read of a trajectory; texts are skipped unread."""

    strategy: str
    events: list[_Tool | _Cloud | _Edge | _Decided | _Ended]


@dataclass(slots=True)
class Crossings:
    """Numbers of exposures: a unit counts again when it crosses more fully than before.

    Attributes:
        forms: By form.
        requests: By (mode, share, whether redacted).
        sources: By origin and, for results of tools, the tool.
        episodes: Number of trajectories.
    """

    forms: Counter[str] = field(default_factory=Counter)
    requests: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    sources: Counter[tuple[str, str]] = field(default_factory=Counter)
    episodes: int = 0

    def add(self, trajectory: _Slim) -> None:
        """Counts the exposures of one episode."""
        self.episodes += 1
        for event in trajectory.events:
            if isinstance(event, _Cloud):
                for one in event.exposures:
                    self.forms[one.form] += 1
                    self.requests[event.mode, event.share, event.redact] += 1
                    self.sources[one.origin, _tool(trajectory, one)] += 1


def _tool(trajectory: _Slim, exposed: _Exposed) -> str:
    """Returns the tool whose result, or arguments, first held a value; empty if it was none."""
    if exposed.origin not in ("tool", "agent") or not 0 <= exposed.event < len(trajectory.events):
        return ""
    event = trajectory.events[exposed.event]
    return event.name if isinstance(event, _Tool) else ""


def read_crossings(files: Sequence[Path]) -> Crossings | None:
    """Reads trajectories one by one; None if none are kept.

    Raises:
        ConfigurationError: if a line is damaged.
    """
    there = [file for file in files if file.is_file() and file.stat().st_size]
    if not there:
        return None
    found = Crossings()
    for file in there:
        for _, one in lines_in(file, _Slim):
            found.add(one)
    return found
