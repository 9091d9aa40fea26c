"""Looking ahead for a whole grid of weights at once.

What an episode brings (completion, cost, exposure) does not depend on the weights of its return, so one rollout serves all of
them: rollouts are kept as vectors and weighed afterwards. As in `ec2_env.training.teacher`, copies draw their luck anew, among
lucks that fit what the edge model shows, so looking ahead does not see what will happen.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.landscape_tree import Node, TreePolicy, decided
from ec2_env.envs import DecisionEnv
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Always, Decision, Strategy
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.states import advance
from ec2_env.training.teacher import Above, likely_lucks, terms_ahead

CONTINUATIONS: tuple[Strategy, ...] = (
    Always(name="edge_only", decision=Decision.EDGE),
    Above(threshold=1.7, decision=Decision.ADVISE_REDACTED),
    Above(threshold=1.3, decision=Decision.ACT),
)
"""What rollouts go on with: the edge alone, careful use of the cloud at doubtful steps, and lavish use."""
CANDIDATES = 48
"""Fresh lucks among which those are taken that fit what the edge model shows."""
TIE = 1e-3
"""Values that differ by less count as equal: a thousandth of a completed task."""


def weighing(weights: Sequence[RewardWeights]) -> NDArray[np.float64]:
    """Returns a matrix that turns (completion, cost, exposure) into a return for each weights, shape (3, len(weights))."""
    matrix: NDArray[np.float64] = np.array([[one.task, -one.cost, -one.privacy] for one in weights]).T
    return matrix


def outcome(env: DecisionEnv, decision: Decision, after: Strategy, luck: str) -> tuple[float, float, float]:
    """Returns completion, cost and exposure from here on of one decision followed by a strategy, played on a copy of the env.

    Args:
        env: In the middle of an episode; it is not changed.
        decision: What to do first.
        after: Decides afterwards.
        luck: Name of the copy's luck: the same name is the same luck.
    """
    found = terms_ahead(env, decision, after, luck)
    return found.task, found.cost, found.exposure


def outcomes(env: DecisionEnv, draws: int) -> NDArray[np.float64]:
    """Returns what every decision followed by every continuation brings under `draws` lucks, the same for all of them.

    Returns:
        Shape (6, len(CONTINUATIONS), draws, 3): completion, cost, exposure.
    """
    lucks = likely_lucks(env, draws, CANDIDATES)
    return np.array(
        [[[outcome(env, decision, after, luck) for luck in lucks] for after in CONTINUATIONS] for decision in Decision]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """How the oracle decision improves on a tree by looking ahead: every decision a few times, then more of what looks best.

    A single decision changes the return by a few hundredths, and luck by a whole task, so that the best of six means of a few
    rollouts is mostly the luckiest. So the tree's own decision stands unless another one beats it by more than a standard error.

    Attributes:
        first: Lucks under which every decision is tried, with the tree deciding afterwards.
        more: Further lucks for decisions that stay in the race.
        kept: How many stay beside the tree's own.
    """

    first: int = 2
    more: int = 6
    kept: int = 2

    def decide(self, env: DecisionEnv, matrix: NDArray[np.float64], trees: Sequence[Node]) -> list[int]:
        """Returns the decision for each weights.

        Args:
            env: In the middle of an episode; it is not changed.
            matrix: Of `weighing`.
            trees: The tree to improve on, for each weights.
        """
        lucks = likely_lucks(env, self.first + self.more, CANDIDATES)
        own = {tree: decided(tree, env.features()) for tree in trees}
        found: dict[tuple[int, Node], list[tuple[float, float, float]]] = {
            (int(decision), tree): [outcome(env, decision, TreePolicy(tree=tree), luck) for luck in lucks[: self.first]]
            for tree in own
            for decision in Decision
        }
        staying = [
            [] if self._is_idle(found, tree, own[tree]) else [own[tree], *self._ahead(found, tree, own[tree], column)]
            for column, tree in zip(matrix.T, trees, strict=True)
        ]
        pairs = dict.fromkeys((decision, tree) for some, tree in zip(staying, trees, strict=True) for decision in some)
        for decision, tree in pairs:
            found[decision, tree] += [
                outcome(env, Decision(decision), TreePolicy(tree=tree), luck) for luck in lucks[self.first :]
            ]
        return [
            self._choice({decision: np.array(found[decision, tree]) @ column for decision in some}, own[tree], column[0])
            for some, column, tree in zip(staying, matrix.T, trees, strict=True)
        ]

    def _is_idle(self, found: Outcomes, tree: Node, own: int) -> bool:
        """Says whether no decision completes more than the tree's own in the first round: then the others are not looked at."""
        completed = {int(decision): sum(row[0] for row in found[int(decision), tree]) for decision in Decision}
        return completed[own] >= max(completed.values())

    def _ahead(self, found: Outcomes, tree: Node, own: int, column: NDArray[np.float64]) -> list[int]:
        """Returns the decisions that look best after the first round, beside the tree's own."""
        means = {int(d): float((np.array(found[int(d), tree]) @ column).mean()) for d in Decision if d != own}
        return sorted(means, key=lambda decision: -means[decision])[: self.kept]

    def _choice(self, values: Mapping[int, NDArray[np.float64]], own: int, task: float) -> int:
        """Returns the decision that beats the tree's own by most, less a standard error; the tree's own if none does.

        Rollouts that agree say little about what they did not meet, so half of one may always have gone otherwise.

        Args:
            values: Returns of the decisions that are left, under the same lucks.
            own: The tree's decision.
            task: Weight of completion.
        """
        scores = {own: 0.0}
        for decision, row in values.items():
            if decision != own:
                gains = row - values[own]
                error = max(float(gains.std(ddof=1)) / len(gains) ** 0.5, task * 0.5 / len(gains))
                scores[decision] = float(gains.mean()) - error
        return max(scores, key=lambda decision: scores[decision])


Outcomes: TypeAlias = Mapping[tuple[int, Node], Sequence[tuple[float, float, float]]]


def play_oracle(
    env: DecisionEnv, key: EpisodeKey, matrix: NDArray[np.float64], trees: Sequence[Node], race: Race
) -> list[tuple[tuple[float, float, float], tuple[int, ...]]]:
    """Plays an episode by looking ahead, for each weights; what their episodes have in common is played once.

    Returns:
        For each weights the completion, cost and exposure of the episode, and the decisions taken.
    """
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    found: dict[int, tuple[tuple[float, float, float], tuple[int, ...]]] = {}

    def branch(env: DecisionEnv, group: tuple[int, ...]) -> None:
        """Plays on to the end for a group of weights that have decided alike so far."""
        while env.session is not None and not env.session.ended:
            env.view().signals()
            decisions = race.decide(env, matrix[:, group], [trees[n] for n in group])
            parts = {one: tuple(n for n, d in zip(group, decisions, strict=True) if d == one) for one in decisions}
            for decision, part in list(parts.items())[1:]:
                fork = copy.deepcopy(env)
                advance(fork, Decision(decision))
                branch(fork, part)
            group = parts[decisions[0]]
            advance(env, Decision(decisions[0]))
        total = episode_terms(env)
        found.update({n: ((total.task, total.cost, total.exposure), tuple(map(int, env.decisions))) for n in group})

    branch(env, tuple(range(matrix.shape[1])))
    return [found[n] for n in range(matrix.shape[1])]
