"""Plays many episodes in step with one another, so that a language model decides for all of them in one forward pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from ec2_env.envs import DecisionEnv, chosen
from ec2_env.reward import Terms, terms
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Choice, Decision, Strategy, decision_of

Chooser = Callable[[Sequence[DecisionEnv]], Sequence[Choice | int]]
"""Decides for a batch of running episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How a policy did on a list of episodes.

    Attributes:
        name: Of the policy.
        returns: Sum of rewards of each episode, in the order of the list.
        parts: Completion, cost and exposure of each episode, unweighted.
        decisions: How often it took each decision.
    """

    name: str
    returns: tuple[float, ...]
    parts: tuple[Terms, ...]
    decisions: Mapping[int, int]

    @property
    def mean(self) -> float:
        return fmean(self.returns)


def by_strategy(strategy: Strategy) -> Chooser:
    """Returns a chooser that asks a strategy for one episode after another."""
    return lambda envs: [strategy.decide(env.view()) for env in envs]


def by_prompt(decide: Callable[[Sequence[str]], Sequence[int]]) -> Chooser:
    """Returns a chooser that reads only the prompts, all at once."""
    return lambda envs: decide([env.view().prompt() for env in envs])


def evaluate(name: str, choose: Chooser, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], *, edge: bool = True) -> Score:
    """Plays every episode to its end.

    Args:
        name: What to call the policy.
        choose: The policy.
        settings: Arguments of `DecisionEnv`.
        keys: The episodes.
        edge: Whether an edge model runs at all.
    """
    envs = [start(settings, key, edge=edge) for key in keys]
    playing, counts = list(envs), Counter[int]()
    while playing:
        for env, choice in zip(playing, choose(playing), strict=True):
            counts[decision_of(chosen(choice))] += 1
            env.take(choice)
        playing = [env for env in playing if going(env)]
    parts = tuple(episode_terms(env) for env in envs)
    returns = tuple(part.scalar(env.weights) for part, env in zip(parts, envs, strict=True))
    return Score(name=name, returns=returns, parts=parts, decisions={int(d): counts[d] for d in Decision})


def start(settings: Mapping[str, Any], key: EpisodeKey, *, edge: bool = True) -> DecisionEnv:
    """Returns an env at the beginning of an episode; without an edge model if none is to run."""
    env = DecisionEnv(**settings)
    env.edge = env.edge if edge else None
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    return env


def going(env: DecisionEnv) -> bool:
    """Says whether the env's episode goes on."""
    return env.session is not None and not env.session.ended


def episode_terms(env: DecisionEnv) -> Terms:
    """Returns the terms of all rewards of the env's episode together."""
    assert env.session is not None
    return terms(env.session.events, {}, env.session.episode.units, env._reference)


def half_width(values: Sequence[float]) -> float:
    """Returns half the width of the 95% interval of the mean (normal approximation); infinite below two values."""
    return 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def difference(score: Score, other: Score) -> tuple[float, float]:
    """Returns the mean difference of returns on the same episodes, and half the width of its 95% interval."""
    paired = [mine - theirs for mine, theirs in zip(score.returns, other.returns, strict=True)]
    return fmean(paired), half_width(paired)


def table(scores: Sequence[Score], trained: str) -> str:
    """Returns a Markdown table, best first.

    Args:
        scores: Of policies on the same episodes.
        trained: Name of the policy that the others are compared with.
    """
    mine = next(score for score in scores if score.name == trained)
    lines = [
        f"| policy | return, mean ± 95% CI | {trained} minus it, paired | task | cost | exposure | decisions 0-5, % |",
        "|---|---|---|---|---|---|---|",
    ]
    for score in sorted(scores, key=lambda score: -score.mean):
        gap, width = difference(mine, score)
        against = "" if score is mine else f"{gap:+.3f} ± {width:.3f}"
        parts = [fmean(getattr(part, name) for part in score.parts) for name in ("task", "cost", "exposure")]
        total = sum(score.decisions.values())
        shares = " ".join(f"{100 * count / total:.0f}" for count in score.decisions.values())
        lines.append(
            f"| {score.name} | {score.mean:.3f} ± {half_width(score.returns):.3f} | {against} | "
            + " | ".join(f"{part:.3f}" for part in parts)
            + f" | {shares} |"
        )
    return "\n".join(lines)
