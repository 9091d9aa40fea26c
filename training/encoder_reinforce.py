"""REINFORCE on whole episodes (Williams 1992), many of them side by side, so that one pass through the head decides for all.

Several copies of an episode run under the same luck and preference, and only their drawn decisions differ. What the other copies
got is the baseline of each (leave-one-out, Kool et al. 2019): most of a return is luck, and what the copies share of it cancels.
Cost and exposure before a decision do not count for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean
from typing import Any, Protocol

import numpy as np

from ec2_env.envs import DecisionEnv
from ec2_env.registry import require
from ec2_env.reward import RewardWeights, terms
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision
from ec2_env.training.encoder_head import LearningHead
from ec2_env.training.encoder_policy import read, shown
from ec2_env.training.encoder_text import SentenceEncoder
from ec2_env.training.features_policy import Preference
from ec2_env.training.preferences import AnyPreference
from ec2_env.training.scorers import Floats


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.encoder.Plan`."""

    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def episodes(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def entropy(self) -> float: ...


@dataclass(slots=True, kw_only=True)
class Copy:
    """One copy of an episode.

    Attributes:
        env: Plays it; its weights are the preference.
        places: Of its decisions in the batch.
        losses: What cost and exposure took from the return at each step.
        completion: What it completed in the end.
    """

    env: DecisionEnv
    places: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    completion: float = 0.0

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.env.session is not None and not self.env.session.ended

    def take(self, decision: int) -> None:
        """Takes a decision and notes what it brought."""
        session = self.env.session
        assert session is not None
        since = len(session.events)
        self.env.take(Decision(decision))
        found = terms(session.events[since:], self.env._levels, session.episode.units, self.env._reference)
        self.losses.append(-self.env.weights.cost * found.cost - self.env.weights.privacy * found.exposure)
        self.completion = found.task

    def to_go(self) -> Floats:
        """Returns what came of the episode from each of its steps on."""
        found: Floats = self.completion + np.cumsum(self.losses[::-1])[::-1]
        return found


@dataclass(slots=True)
class Batch:
    """The states of all copies and what was decided there, in the order in which they were played.

    Attributes:
        rows: What the network was shown.
        led: What the rules that suit decide.
        prompts: Their texts.
        decisions: What was decided.
    """

    rows: list[Floats] = field(default_factory=list)
    led: list[int] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)


def reinforce(
    head: LearningHead,
    encoder: SentenceEncoder,
    keys: Iterator[EpisodeKey],
    steps: int,
    sizes: Sizes,
    seed: int,
    say: Callable[[str], None],
    note: Callable[..., None] = lambda step, **values: None,
    tuned: Sequence[Any] = (),
) -> None:
    """Trains a head on the returns of the episodes that it plays.

    Args:
        head: Is trained in place.
        encoder: Reads the texts.
        keys: Train episodes, as many as it takes.
        steps: Steps of training.
        sizes: How much of everything in a step.
        seed: Fixes preferences and the decisions drawn.
        say: Is told from time to time how it goes.
        note: Is told the figures of every step.
        tuned: Parameters of the encoder that are trained, too.
    """
    torch = require("torch", extra="local")
    draw, source, returns = np.random.default_rng(seed), AnyPreference(), list[float]()
    optimizer = torch.optim.Adam([*head.parameters(), *tuned], lr=sizes.rate)
    for step in range(steps):
        groups = [begin(sizes.settings, key, source.draw(draw), sizes.copies) for key in islice(keys, sizes.episodes)]
        batch = play(groups, head, encoder, draw)
        for group in optimizer.param_groups:
            group["lr"] = sizes.rate * (1 - step / steps)
        optimizer.zero_grad()
        loss, entropy = objective(groups, batch, head, encoder if tuned else None, sizes.entropy)
        loss.backward()
        optimizer.step()
        if tuned:
            encoder.forget()
        returns.append(fmean(float(copy.to_go()[0]) for group in groups for copy in group))
        note(step, mean_return=returns[-1], entropy=entropy)
        if (step + 1) % max(1, steps // 8) == 0:
            say(f"  step {step + 1}: mean return {fmean(returns):.3f}, entropy {entropy:.2f}")
            returns.clear()


def objective(
    groups: Sequence[Sequence[Copy]], batch: Batch, head: LearningHead, tuned: SentenceEncoder | None, bonus: float
) -> tuple[Any, float]:
    """Returns the loss of a batch, and the entropy of its decisions in nats.

    Args:
        groups: The copies of each episode, played.
        batch: Their states and decisions.
        head: What is trained.
        tuned: The encoder, if gradients are to reach it.
        bonus: Weight of the entropy.
    """
    torch = require("torch", extra="local")
    rows = torch.tensor(np.concatenate(batch.rows), dtype=torch.float32)
    if tuned is not None:
        rows = torch.cat([rows[:, : -tuned.width], tuned.means(batch.prompts)], dim=1)
    places = [place for group in groups for copy in group for place in copy.places]
    ahead = torch.tensor(np.concatenate([one for group in groups for one in compared(group)]), dtype=torch.float32)
    scaled = ahead / ahead.square().mean().sqrt().clamp(min=1e-3)
    logp = head.logits(rows, batch.led).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1).mean()
    chosen = logp[places, torch.tensor(batch.decisions)[places]]
    return -(chosen * scaled).mean() - bonus * entropy, float(entropy.detach())


def begin(settings: Mapping[str, Any], key: EpisodeKey, wanted: Preference, copies: int) -> list[Copy]:
    """Returns copies of an episode at its start, under a preference."""
    group = []
    for _ in range(copies):
        env = DecisionEnv(**settings)
        env.weights = RewardWeights(cost=wanted.cost, privacy=wanted.privacy)
        env.begin(key.task, key.language, key.split, key.seed, key.trial)
        group.append(Copy(env=env))
    return group


def play(groups: Sequence[Sequence[Copy]], head: LearningHead, encoder: SentenceEncoder, draw: np.random.Generator) -> Batch:
    """Plays all copies to their ends with decisions drawn from the head."""
    torch = require("torch", extra="local")
    batch, running = Batch(), [copy for group in groups for copy in group]
    while running:
        views = [copy.env.view() for copy in running]
        features, prompts = np.array([view.features() for view in views]), [view.prompt() for view in views]
        texts = read(head.start.inputs, encoder, prompts)
        rows, led = shown(head.start.inputs, features, texts), head.start.led(features, texts)
        with torch.no_grad():
            chances = head.logits(rows, led).softmax(-1).double().numpy().cumsum(axis=1)
        drawn = (chances < draw.random((len(running), 1)) * chances[:, -1:]).sum(axis=1).tolist()
        for copy, decision in zip(running, drawn, strict=True):
            copy.places.append(len(batch.decisions))
            batch.decisions.append(decision)
            copy.take(decision)
        batch.rows.append(rows)
        batch.led += led
        batch.prompts += prompts
        running = [copy for copy in running if copy.running]
    return batch


def compared(group: Sequence[Copy]) -> list[Floats]:
    """Returns by how much each step of each copy was followed by more than the same step of the other copies.

    A copy that has ended has nothing more to lose, so that only what it completed counts for it.
    """
    ahead = [copy.to_go() for copy in group]
    longest = max(map(len, ahead))
    whole = np.array(
        [np.pad(one, (0, longest - len(one)), constant_values=copy.completion) for one, copy in zip(ahead, group, strict=True)]
    )
    baseline = (whole.sum(axis=0) - whole) / max(1, len(group) - 1)
    return [(row - base)[: len(one)] for row, base, one in zip(whole, baseline, ahead, strict=True)]
