"""Looking ahead for a whole grid of weights at once.

What an episode brings (completion, cost, exposure) does not depend on the weights of its return, so one rollout serves all of
them: rollouts are kept as vectors and weighed afterwards. As in `ec2_env.training.teacher`, copies draw their luck anew, among
lucks that fit what the edge model shows, so looking ahead does not see what will happen.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.envs import DecisionEnv
from ec2_env.reward import RewardWeights, terms
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Always, Decision, Strategy
from ec2_env.training.evaluation import episode_terms
from ec2_env.training.states import advance
from ec2_env.training.teacher import Above, likely_lucks, running

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
    fork = copy.deepcopy(env)
    session = running(fork)
    session.noise = luck
    since, levels = len(session.events), dict(session.levels)
    fork.take(decision)
    while not session.ended:
        fork.take(after.decide(fork.view()))
    found = terms(session.events[since:], levels, session.episode.units, fork._reference)
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
    """How many rollouts the oracle decision plays: a few of everything, then more of what looks best.

    Attributes:
        first: Lucks under which every decision is tried with every continuation.
        more: Further lucks for the pairs of decision and continuation that stay in the race.
        kept: How many such pairs stay.
        doubt: Lucks that are added in thought, under which the decision makes no difference to completion. Costs and exposure of
            a rollout are nearly certain, completion is mostly luck: without doubt, few rollouts find help where there is none.
    """

    first: int = 2
    more: int = 4
    kept: int = 4
    doubt: int = 3

    def decide(self, env: DecisionEnv, matrix: NDArray[np.float64]) -> list[int]:
        """Returns the decision of highest estimated return for each weights.

        Where no decision completes more than the edge alone does in the first round, the edge goes on: everything else costs.

        Args:
            env: In the middle of an episode; it is not changed.
            matrix: Of `weighing`.
        """
        lucks = likely_lucks(env, self.first + self.more, CANDIDATES)
        pairs = [(decision, after) for decision in Decision for after in CONTINUATIONS]
        found = {n: [outcome(env, *pair, luck) for luck in lucks[: self.first]] for n, pair in enumerate(pairs)}
        completed = {n: sum(one[0] for one in rows) for n, rows in found.items()}
        if completed[0] >= max(completed.values()):
            return [int(Decision.EDGE)] * matrix.shape[1]
        values = self._values(found) @ matrix
        staying = {int(n) for column in values.T for n in np.argsort(-column, kind="stable")[: self.kept]}
        ahead = sorted(staying | {n % len(CONTINUATIONS) for n in staying})
        for n in ahead:
            found[n] += [outcome(env, *pairs[n], luck) for luck in lucks[self.first :]]
        values = self._values({n: found[n] for n in ahead}) @ matrix
        return [int(pairs[ahead[int(best)]][0]) for best in values.argmax(axis=0)]

    def _values(self, found: Mapping[int, Sequence[tuple[float, float, float]]]) -> NDArray[np.float64]:
        """Returns the expected completion, cost and exposure of each pair, shape (pairs, 3).

        Args:
            found: Outcomes by number of the pair. That of the edge with the same continuation, `number % len(CONTINUATIONS)`, is
                among them and has as many.
        """
        means = {n: np.mean(rows, axis=0) for n, rows in found.items()}
        rows = []
        for n, mean in means.items():
            without, draws = float(means[n % len(CONTINUATIONS)][0]), len(found[n])
            rows.append((without + (mean[0] - without) * draws / (draws + self.doubt), mean[1], mean[2]))
        return np.array(rows)


def play_oracle(
    env: DecisionEnv, key: EpisodeKey, matrix: NDArray[np.float64], race: Race
) -> list[tuple[tuple[float, float, float], tuple[int, ...]]]:
    """Plays an episode by looking ahead, for each weights; what their episodes have in common is played once.

    Returns:
        For each weights the completion, cost and exposure of the episode, and the decisions taken.
    """
    env.begin(key.task, key.language, key.split, key.seed, key.trial)
    found: dict[int, tuple[tuple[float, float, float], tuple[int, ...]]] = {}
    _branch(env, tuple(range(matrix.shape[1])), matrix, race, found)
    return [found[n] for n in range(matrix.shape[1])]


def _branch(env: DecisionEnv, group: tuple[int, ...], matrix: NDArray[np.float64], race: Race, found: dict[int, Any]) -> None:
    """Plays on to the end for a group of weights that have decided alike so far."""
    while env.session is not None and not env.session.ended:
        env.view().signals()
        decided = race.decide(env, matrix[:, group])
        parts = {decision: tuple(n for n, d in zip(group, decided, strict=True) if d == decision) for decision in decided}
        for decision, part in list(parts.items())[1:]:
            fork = copy.deepcopy(env)
            advance(fork, Decision(decision))
            _branch(fork, part, matrix, race, found)
        group = parts[decided[0]]
        advance(env, Decision(decided[0]))
    total = episode_terms(env)
    for n in group:
        found[n] = ((total.task, total.cost, total.exposure), tuple(map(int, env.decisions)))
