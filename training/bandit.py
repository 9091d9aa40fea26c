"""Contextual bandit: what each decision would change, tried on copies of states, and policies fitted to it. Numpy only.

In states of train episodes every decision is taken on copies, which are then played to the end. All decisions of a state are
tried under the same luck, one that fits what the edge model shows (`ec2_env.training.teacher`). What comes of it (completion,
cost, exposure) is kept apart, so that it can be weighed as any preference says.

What a decision is worth depends on what follows it: advice helps little where more is asked for at the next step anyway. So this
is done in rounds (approximate policy iteration by rollouts, Lagoudakis and Parr 2003). In the first, episodes and copies follow
the simple rule that suits the episode's preference (`ec2_env.training.rules`); in the next ones, the policy fitted so far.

One draw says little, and the best of six noisy means is mostly luck. So a policy leaves its rule only where another decision is
estimated to be better by a margin (conservative policy iteration, Kakade and Langford 2002). Which margin, is chosen by playing
train episodes that nothing was fitted to (`ec2_env.training.validation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ec2_env.bench.landscape_rollouts import outcome
from ec2_env.bench.landscape_tree import grow
from ec2_env.envs import DecisionEnv
from ec2_env.models.draws import uniform
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Decision, Strategy
from ec2_env.training.features_policy import FeaturePolicy, Preference
from ec2_env.training.preferences import AnyPreference
from ec2_env.training.rules import NEVER, Rules, tabled
from ec2_env.training.scorers import COST, PRIVACY, Floats, Guided, Questions, Scorer, encoded
from ec2_env.training.stages import Stages
from ec2_env.training.states import EXPLORE, advance, episode_keys
from ec2_env.training.teacher import likely_lucks

VALUED = 0.3
"""Share of the states of an episode that are valued: neighbors are much alike."""
CANDIDATES = 24
"""Fresh lucks among which those are taken that fit what the edge model shows."""
RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Strengths of shrinking, in states, that are tried."""
COPIES = 8
"""Preferences under which a state stands in the sample that a tree is grown on."""
ROUNDS = 3
"""Rounds of trying and fitting."""
NEWEST = 2
"""Rounds whose samples are fitted: older ones were followed by an older policy."""
PART = 60
"""States after which what was found is kept, so that a run that is stopped goes on from there."""
MARGINS = (0.02, 0.0, 0.01, 0.04, 0.08, NEVER)
"""Margins that are tried, in units of the return; the first one is that of the rounds before the last."""
DOUBTS = (2.0, 0.0, 1.0, 4.0, 8.0)
"""For trees, standard errors of the mean by which the cloud's help is thought to be less than it seemed; the first as above."""
SCATTER = 0.5
"""Standard deviation of the logarithm of the preferences in the copies around the one that was followed."""
Follow = Callable[[EpisodeKey], tuple[Strategy, Preference]]
"""What an episode and the copies of its states are played with, and under which preference."""


@dataclass(frozen=True, slots=True)
class Samples:
    """States and what decisions brought there.

    Attributes:
        features: Shape (states, features); the weights among them are those of the preference that was followed.
        changes: Completion, cost and exposure from there on, less those of EDGE under the same luck; shape (states, 6, 3).
        episodes: How many they come from.
    """

    features: Floats
    changes: Floats
    episodes: int = 0


def in_rounds(
    settings: Mapping[str, Any],
    states: int,
    draws: int,
    seed: int,
    fit: Callable[[Samples], Mapping[str, Scorer]],
    start: Scorer,
    stages: Stages,
    say: Callable[[str], None] = lambda text: None,
) -> Mapping[str, Scorer]:
    """Returns the candidates that are fitted in the last round.

    Args:
        settings: Arguments of `DecisionEnv`.
        states: How many states of the train split, in all rounds together.
        draws: Lucks under which every decision is tried.
        seed: Fixes episodes, exploration, preferences and which states are taken.
        fit: Fits candidates, the first of them the one that the next round follows.
        start: What the first round follows.
        stages: Keeps what was found in states.
        say: Is told when a round is over.
    """
    env, rounds, scorer, passed = DecisionEnv(**settings), list[Samples](), start, 0
    for number in range(ROUNDS):
        parts, left = list[Samples](), max(1, states // ROUNDS)
        while left > 0:
            name = f"states_{number}_{len(parts)}"
            make = partial(sampled, env, seed, passed, min(PART, left), draws, partial(by_policy, scorer))
            found = stages.once(name, make, save_samples, load_samples)
            parts.append(found)
            left, passed = left - len(found.features), passed + found.episodes
        rounds.append(joined(parts))
        candidates = fit(joined(rounds[-NEWEST:]))
        scorer = next(iter(candidates.values()))
        say(f"  round {number + 1} of {ROUNDS}")
    return candidates


def joined(parts: Sequence[Samples]) -> Samples:
    """Returns samples as one."""
    features, changes = (np.concatenate([getattr(one, name) for one in parts]) for name in ("features", "changes"))
    return Samples(features, changes, sum(one.episodes for one in parts))


def save_samples(path: Path, samples: Samples) -> None:
    """Writes samples to a file."""
    with path.open("wb") as file:
        np.savez(file, features=samples.features, changes=samples.changes, episodes=np.array(samples.episodes))


def load_samples(path: Path) -> Samples:
    """Reads samples."""
    with np.load(path, allow_pickle=False) as file:
        return Samples(file["features"], file["changes"], int(file["episodes"]))


def by_policy(scorer: Scorer, key: EpisodeKey) -> tuple[Strategy, Preference]:
    """Returns a policy under a preference of the episode's own."""
    wanted = drawn_preference(key)
    return FeaturePolicy(scorer=scorer, preference=wanted), wanted


def drawn_preference(key: EpisodeKey) -> Preference:
    """Returns the preference of an episode."""
    return AnyPreference().draw(np.random.default_rng(int(uniform("preference", key.task, key.language, key.seed) * 2**53)))


def sampled(env: DecisionEnv, seed: int, passed: int, states: int, draws: int, follow: Follow) -> Samples:
    """Returns samples of so many states.

    Args:
        env: Is played.
        seed: Fixes the episodes.
        passed: Episodes that were played before.
        states: How many.
        draws: Lucks under which every decision is tried.
        follow: What is played.
    """
    features: list[tuple[float, ...]] = []
    changes: list[Floats] = []
    episodes = 0
    for key in islice(shuffled_keys(env, seed), passed, None):
        if len(features) >= states:
            break
        episodes += 1
        for seen, found in valued_states(env, key, draws, *follow(key)):
            features.append(seen)
            changes.append(found)
    return Samples(np.array(features[:states]), np.array(changes[:states]), episodes)


def shuffled_keys(env: DecisionEnv, seed: int) -> Iterator[EpisodeKey]:
    """Yields train episodes without end: all tasks and languages in a random order, then again with other instances."""
    for number in range(1_000 * seed, 1_000 * (seed + 1)):
        keys = list(episode_keys(env, "train", [number]))
        yield from sorted(keys, key=lambda key: uniform("bandit", key.task, key.language, key.seed))


def valued_states(
    env: DecisionEnv, key: EpisodeKey, draws: int, strategy: Strategy, wanted: Preference
) -> Iterator[tuple[tuple[float, ...], Floats]]:
    """Plays an episode with a strategy and some random decisions; yields some of its states and the changes there."""
    drawn = partial(uniform, "bandit states", key.task, key.language, key.seed)
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    while env.session is not None and not env.session.ended:
        step = env.session.step
        if drawn(step, "valued") < VALUED:
            lucks = likely_lucks(env, draws, CANDIDATES)
            found = np.array([[outcome(env, decision, strategy, luck) for luck in lucks] for decision in Decision]).mean(axis=1)
            seen = list(env.view().features())
            seen[COST], seen[PRIVACY] = wanted
            yield tuple(seen), found - found[0]
        explores = drawn(step, "explore") < EXPLORE
        advance(env, Decision(int(drawn(step, "which") * len(Decision))) if explores else strategy.decide(env.view()))


def guided(rules: Rules, samples: Samples) -> dict[str, Scorer]:
    """Returns policies that leave their rule by one margin or another."""
    coefficients, simple = changes_of(samples), rules.simple()
    return {f"margin {margin:g}": Guided(simple, coefficients, margin) for margin in MARGINS}


def grown(samples: Samples, seed: int) -> dict[str, Scorer]:
    """Returns trees that were grown with one doubt or another."""
    return {f"doubt {doubt:g}": fit_tree(doubted(samples, doubt), seed) for doubt in DOUBTS}


def doubted(samples: Samples, doubt: float) -> Samples:
    """Returns samples in which every decision but EDGE completes `doubt` standard errors less than it was seen to."""
    changes = samples.changes.copy()
    changes[:, 1:, 0] -= doubt * changes[:, 1:, 0].std(axis=0) / len(changes) ** 0.5
    return Samples(samples.features, changes, samples.episodes)


def changes_of(samples: Samples) -> Floats:
    """Returns ridge regressions of the changes, the strength of shrinking chosen for each term by leaving one state out.

    Shrinking is towards the mean change of a decision. Completion is mostly luck and shrinks much, cost hardly.

    Returns:
        Coefficients of shape (encoded features, 6, 3).
    """
    rows = encoded(samples.features)
    scale = np.maximum(rows.std(axis=0), 0.05)
    center = rows.mean(axis=0)
    center[0], scale[0] = 0.0, 1.0
    basis = (rows - center) / scale
    coefficients = np.zeros((rows.shape[1], *samples.changes.shape[1:]))
    for term in range(samples.changes.shape[2]):
        wanted = samples.changes[:, :, term]
        _, fitted = min((_left_out(basis, wanted, ridge) for ridge in RIDGES), key=lambda pair: pair[0])
        coefficients[:, :, term] = fitted / scale[:, None]
        coefficients[0, :, term] = fitted[0] - (center[1:] / scale[1:]) @ fitted[1:]
    return coefficients


def _left_out(basis: Floats, wanted: Floats, ridge: float) -> tuple[float, Floats]:
    """Returns the mean square error on states left out one at a time, and the coefficients fitted to all; column 0 is 1."""
    penalty = np.full(basis.shape[1], ridge)
    penalty[0] = 1e-6
    solved = np.linalg.solve(basis.T @ basis + np.diag(penalty), basis.T)
    fitted = solved @ wanted
    influence = np.minimum((basis * solved.T).sum(axis=1), 0.99)
    return float((((wanted - basis @ fitted) / (1 - influence)[:, None]) ** 2).mean()), fitted


def fit_tree(samples: Samples, seed: int, depth: int = 5, leaf: float = 0.03) -> Questions:
    """Returns a tree that may also ask for the preference: every state stands in its sample under several like its own.

    Args:
        samples: What to fit.
        seed: Draws the preferences.
        depth: Most questions from the root to a leaf.
        leaf: Fewest rows in a leaf, as a share of all.
    """
    features, changes = (np.repeat(part, COPIES, axis=0) for part in (samples.features, samples.changes))
    told = features[:, [COST, PRIVACY]] * np.exp(SCATTER * np.random.default_rng(seed).standard_normal((len(features), 2)))
    features[:, [COST, PRIVACY]] = told
    values = changes[:, :, 0] - changes[:, :, 1] * told[:, :1] - changes[:, :, 2] * told[:, 1:]
    values -= values.mean(axis=1, keepdims=True)
    return tabled([grow(features, values, depth, max(1, round(leaf * len(features))))])[0]
