"""One episode, played and put into words: what `ec2-env run` and `ec2-env demo` show."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.records import EpisodeRecord, Job, Played, play_job
from ec2_env.bench.runner import Means, gaps_for, offline_scores
from ec2_env.bench.statistics import Totals
from ec2_env.bench.suites import Suite
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import ModelCard
from ec2_env.models.loading import load_model
from ec2_env.reference import reference_usd
from ec2_env.render import ansi_lines
from ec2_env.reward import RewardWeights, Terms, terms
from ec2_env.rollout import EpisodeKey, play
from ec2_env.sensitive import SensitiveUnit
from ec2_env.strategy import Prepared, Strategy, load_strategy
from ec2_env.task import task_domains
from ec2_env.trace import Trajectory

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedEpisode:
    """An episode that has been played.

    Attributes:
        title: Title of the task.
        units: Its sensitive units.
        terms: Reward terms of the whole episode, unweighted.
        models: Models and how real they are, in words.
    """

    trajectory: Trajectory
    title: str
    units: tuple[SensitiveUnit, ...]
    terms: Terms
    models: str

    def lines(self) -> list[str]:
        """Returns the whole episode in words, with ANSI colors."""
        one = self.trajectory
        shown = [
            f"{BOLD}{self.title}{PLAIN}  {one.task}/{one.language}/{one.split}/{one.seed}, trial {one.trial}",
            f"{DIM}{one.strategy}; {self.models}{PLAIN}",
            "",
            *one.instruction.splitlines(),
            "",
        ]
        for event in one.events:
            shown += ansi_lines(event, 110)
        return [*shown, "", *self.outcome()]

    def outcome(self) -> list[str]:
        """Returns the result on the three axes, and the return."""
        result, weights = self.trajectory.result, RewardWeights()
        raw, cached, out = (f"{result[f'tokens_{kind}']:,}" for kind in ("raw", "cached", "out"))
        exposed = len(result["exposed"])
        return [
            f"task     completion {result['completion']:.2f} ({result['status']}) in {result['steps']} steps",
            f"cost     ${result['cloud_usd']:.4f} for {result['cloud_calls']} cloud calls: {raw} raw, {cached} cached, {out} out "
            f"tokens; edge {result['edge_flops'] / 1e15:.2f} PFLOP",
            f"privacy  {result['privacy'] * 100:.0f}%: {exposed} of {len(set(result['touched']))} sensitive values seen in the "
            f"episode reached the cloud; by weight {result['necessary_exposure'] * 100:.0f}% of what the work needs, "
            f"{result['excess_exposure'] * 100:.0f}% of the rest",
            f"return   {self.terms.scalar(weights):.2f} = {weights.task:g} x {self.terms.task:.2f} task - {weights.cost:g} x "
            f"{self.terms.cost:.2f} cost - {weights.privacy:g} x {self.terms.exposure:.2f} exposure",
        ]


def play_one(strategy: str, edge: str, cloud: str, key: EpisodeKey) -> PlayedEpisode:
    """Plays one episode of a strategy and models given as specifications.

    Raises:
        EC2Error: if a name or option is wrong.
    """
    env = DecisionEnv(edge=edge, cloud=cloud)
    ready = _ready(strategy, edge, cloud)
    trajectory = play(env, ready, key)
    assert env.session is not None
    units = env.session.episode.units
    cards = [("edge", load_model(edge).card)] if ready.uses_edge else []
    return PlayedEpisode(
        trajectory=trajectory,
        title=env.session.episode.task.title,
        units=units,
        terms=terms(trajectory.events, {}, units, reference_usd(key.task, env.session.episode.language, env.cloud.card)),
        models=", ".join(_described(side, card) for side, card in [*cards, ("cloud", env.cloud.card)]),
    )


def _described(side: str, card: ModelCard) -> str:
    return f"{side} {card.name} ({'simulated' if card.simulated else 'real'})"


def _ready(spec: str, edge: str, cloud: str) -> Strategy:
    strategy = load_strategy(spec)
    if not isinstance(strategy, Prepared):
        return strategy
    scores = _quick_scores(spec, edge, cloud)
    return strategy.prepare(gaps_for(strategy, scores[edge], scores[None]))


def _quick_scores(spec: str, edge: str, cloud: str) -> dict[str | None, Means]:
    """Scores all tasks for an offline router with two instances each, which takes simulated models a second or two."""
    if not all(load_model(model).card.simulated for model in (edge, cloud)):
        raise ConfigurationError(
            f"{spec} needs offline scores of every task, which are measured only with simulated models here; "
            "with real ones use ec2-env bench"
        )
    suite = Suite(about="all tasks", domains=tuple(task_domains()), calibration_seeds=2)
    config = BenchConfig(name="all", suite=suite, strategies=(spec,), edges=(edge,), cloud=cloud)
    totals = Totals(config.calibration())
    for cell, keys in totals.grid.chunks(iter(range(len(totals.grid))), 12):
        for one in play_job(Job(cell, keys, (), None, config.weights, False)):
            if not isinstance(one, Played):
                raise ConfigurationError(f"{one.episode}: {one.message}")
            totals.add(msgspec.json.decode(one.record, type=EpisodeRecord))
    return offline_scores(totals)
