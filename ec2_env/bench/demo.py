"""The idea in ten seconds: one episode, three strategies side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product, zip_longest

from ec2_env.bench.single import BOLD, DIM, PLAIN, PlayedEpisode, play_one
from ec2_env.render import cut
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey
from ec2_env.trace import CloudCall, Event, ToolRan

TASK = "forward_invoice"
EDGE, CLOUD = "sim:qwen3.5-9b", "sim:gpt-5.4"
STRATEGIES = ("edge_only", "cloud_only", "adaptive_assistance:redacted")
SEEDS, TRIALS = 12, 3
COLUMN = 37
RED, YELLOW, GREEN = "\x1b[31m", "\x1b[33m", "\x1b[32m"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def find_episode() -> tuple[PlayedEpisode, ...]:
    """Returns the first episode that shows the point, played by all three; the one that shows it best if none does entirely."""
    best: tuple[PlayedEpisode, ...] = ()
    for seed, trial in product(range(SEEDS), range(TRIALS)):
        key = EpisodeKey(task=TASK, language="en", split="test", seed=seed, trial=trial)
        played = tuple(play_one(strategy, EDGE, CLOUD, key) for strategy in STRATEGIES)
        if not best or _merit(played) > _merit(best):
            best = played
        if _shows_the_point(played):
            return played
    return best


def _shows_the_point(played: Sequence[PlayedEpisode]) -> bool:
    alone, cloud, mixed = (one.trajectory.result for one in played)
    return bool(
        alone["status"] == "fail"
        and cloud["status"] == mixed["status"] == "pass"
        and cloud["privacy"] < 0.5 < mixed["privacy"]
        and mixed["cloud_calls"] > 0
        and mixed["cloud_usd"] < cloud["cloud_usd"]
    )


def _merit(played: Sequence[PlayedEpisode]) -> float:
    """Returns by how much the mixed strategy beats the better of the other two."""
    alone, cloud, mixed = (one.terms.scalar(RewardWeights()) for one in played)
    return mixed - max(alone, cloud)


def demo_lines(played: Sequence[PlayedEpisode]) -> list[str]:
    """Returns the demo as lines with ANSI colors, at most 119 columns wide."""
    first = played[0].trajectory
    columns = [_column(one) for one in played]
    rows = zip_longest(*columns, fillvalue="")
    return [
        f"{BOLD}{played[0].title}{PLAIN}  one episode, three strategies; edge and cloud are simulated models",
        *(f"{DIM}{cut(line, 118)}{PLAIN}" for line in first.instruction.splitlines()),
        "",
        *(_side_by_side(row) for row in rows),
        "",
        *_result(played),
        "",
        "A small model beside the data makes mistakes; a strong one in the cloud costs money and sees what it is sent.",
        "Knowing when to ask, and what to send, is what EC2-Env measures and trains.",
        "",
        "This episode was chosen to show it. Next:",
        "  ec2-env bench                    compare all strategies, in under a minute",
        f"  ec2-env run {TASK}      watch an episode with what crossed to the cloud",
        "  ec2-env tasks                    list the tasks",
    ]


def _column(one: PlayedEpisode) -> list[str]:
    lines = [f"{BOLD}{one.trajectory.strategy}{PLAIN}"]
    for event in one.trajectory.events:
        lines += _short(event)
    return lines


def _short(event: Event) -> list[str]:
    match event:
        case ToolRan():
            color = YELLOW if event.by == "cloud" else ""
            mark = "" if event.ok else f" {RED}refused{PLAIN}"
            return [f"{color}{event.by:<5} {event.name}{PLAIN if color else ''}{mark}"]
        case CloudCall() if event.status == "ok":
            asked = [] if event.mode == "act" else [f"{YELLOW}cloud {event.mode}s{', redacted' if event.redact else ''}{PLAIN}"]
            units = [exposed.unit for exposed in event.exposures]
            return [*asked, *(f"{RED}      exposed {unit}{PLAIN}" for unit in units)]
    return []


def _result(played: Sequence[PlayedEpisode]) -> list[str]:
    results = [one.trajectory.result for one in played]
    passed = [f"{GREEN if r['status'] == 'pass' else RED}{r['status']}{PLAIN}, {r['completion']:.2f}" for r in results]
    missed = [", ".join(_missed(one)) for one in played]
    cost = [f"${r['cloud_usd']:.4f}, {r['cloud_calls']} cloud calls" for r in results]
    privacy = [f"{r['privacy'] * 100:.0f}%, {len(r['exposed'])} values exposed" for r in results]
    total = [f"{one.terms.scalar(RewardWeights()):.2f}" for one in played]
    rows = (("task", passed), ("missed", missed), ("cost", cost), ("privacy", privacy), ("return", total))
    return [
        _side_by_side([f"{DIM}{name:<8}{PLAIN}{cut(cell, COLUMN - 8) if name == 'missed' else cell}" for cell in cells])
        for name, cells in rows
    ]


def _missed(one: PlayedEpisode) -> list[str]:
    result = one.trajectory.result
    return [*result["forbidden"], *(name.replace("_", " ") for name, score in result["checks"].items() if score < 1)] or [
        "nothing"
    ]


def _side_by_side(cells: Sequence[str]) -> str:
    return " | ".join(cell + " " * (COLUMN - len(_COLOR.sub("", cell))) for cell in cells).rstrip()
