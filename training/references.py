"""What a trained language model is compared with: fixed strategies, rules, a teacher that looks ahead, and the untrained model.

None of them depends on a seed of training, so an experiment of several seeds plays them once, into `references.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ec2_env.bench.manifest import code_digest
from ec2_env.models.choice import load_decision_model
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import load_strategy
from ec2_env.training.evaluation import Score, by_prompt, by_strategy, difference, evaluate
from ec2_env.training.stages import write_whole
from ec2_env.training.teacher import BASES, Teacher

FILE = "references.json"
FIXED = (
    "edge_only",
    "cloud_only",
    "cloud_only:redacted",
    "sketch_guided",
    "step_routing",
    "step_routing:redacted",
    "adaptive_assistance",
    "adaptive_assistance:redacted",
)
"""Strategies that the trained policy is compared with, beside `random` and the untrained model."""
LOOKING_AHEAD = "teacher, looking ahead"
UNTRAINED = "untrained model"
DRAWS = 4
"""Lucks under which the teacher tries every decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What was played, and how it went.

    Attributes:
        made_from: All that fixes the scores.
        scores: One for each policy.
    """

    made_from: Mapping[str, Any]
    scores: tuple[Score, ...]


def played(settings: Mapping[str, Any], keys: Sequence[EpisodeKey], bound: bool, untrained: bool) -> tuple[Score, ...]:
    """Plays the policies that nobody trained.

    Args:
        settings: Arguments of `DecisionEnv`.
        keys: The episodes.
        bound: Whether the teacher that looks ahead plays as well: an upper reference, and slow.
        untrained: Whether SmolLM2 plays as it is, all layers of it: slow, too.
    """
    scores = []
    for spec in ("random", *FIXED):
        strategy = load_strategy(spec)
        scores.append(evaluate(spec, by_strategy(strategy), settings, keys, edge=strategy.uses_edge))
    scores.append(evaluate(f"rule {BASES[0].name}", by_strategy(BASES[0]), settings, keys))
    if bound:
        teacher = Teacher(bases=BASES[:1], draws=DRAWS)
        scores.append(evaluate(LOOKING_AHEAD, lambda envs: [teacher.decide(env) for env in envs], settings, keys))
    if untrained:
        scores.append(evaluate(UNTRAINED, by_prompt(load_decision_model("").decide), settings, keys))
    return tuple(scores)


def references(
    folder: Path, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], bound: bool, untrained: bool
) -> tuple[Score, ...]:
    """Returns the scores that are in the folder or the one above it; plays and keeps them in the folder if they are not.

    Args:
        folder: Of an experiment, or of one of its seeds.
        settings: Arguments of `DecisionEnv`.
        keys: The episodes.
        bound: See `played`.
        untrained: See `played`.
    """
    told = {"settings": dict(settings), "keys": list(keys), "bound": bound, "untrained": untrained, "code": code_digest()}
    made_from = msgspec.to_builtins(told)
    for place in (folder / FILE, folder.parent / FILE):
        if place.exists():
            kept = msgspec.json.decode(place.read_bytes(), type=References)
            if kept.made_from == made_from:
                return kept.scores
    scores = played(settings, keys, bound, untrained)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FILE, msgspec.json.encode(References(made_from=made_from, scores=scores)))
    return scores


def verdict(scores: Sequence[Score], trained: Sequence[str]) -> list[str]:
    """Says in words how trained policies stand to the best references and to one another, on the same episodes.

    Args:
        scores: Of all policies.
        trained: Names of the trained ones, in the order in which they were.
    """
    named = {score.name: score for score in scores}
    fixed = max((named[spec] for spec in FIXED), key=lambda score: score.mean)
    others = [score for score in (named.get(UNTRAINED), named["random"], fixed, named.get(LOOKING_AHEAD)) if score is not None]
    lines = [compared(named[mine], other) for mine in trained for other in others]
    return lines + [compared(named[later], named[earlier]) for earlier, later in pairwise(trained)]


def compared(mine: Score, other: Score) -> str:
    """Says how one policy stands to another."""
    gap, width = difference(mine, other)
    word = "better than" if gap > width else "worse than" if gap < -width else "not distinguishable from"
    return f"{mine.name} is {word} {other.name}: {gap:+.3f} ± {width:.3f}"
