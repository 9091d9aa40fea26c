"""The teacher: looks ahead from a state of a `DecisionEnv` by playing copies of it to the end, once for each decision.

One step of policy improvement over a few simple base policies (rollout algorithm, Bertsekas 2013): the value of a decision is the
mean return of taking it and then following a base policy, under the base policy for which that mean is highest. The copies draw
their luck anew, so the teacher does not see what will happen; it does use the simulator, which no policy beside the data can, so
it is a source of labels and an upper reference, not a competitor.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.reward import Terms, terms
from ec2_env.session import Session
from ec2_env.strategy import Always, Decision, Strategy, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """Takes one decision when the edge model's first-token entropy is above a threshold, and leaves other steps to the edge.

    Attributes:
        threshold: Entropy in nats.
        decision: What to do above it, and where the edge model does not tell its entropy.
    """

    threshold: float
    decision: Decision
    uses_edge: bool = True

    @property
    def name(self) -> str:
        return f"{self.decision.name.lower()}>{self.threshold:g}"

    def decide(self, view: View) -> Decision:
        """Returns the decision above the threshold, EDGE below."""
        entropy = view.signals().entropy
        return Decision.EDGE if entropy is not None and entropy <= self.threshold else self.decision


BASES: tuple[Strategy, ...] = (
    Above(threshold=1.3, decision=Decision.ADVISE_REDACTED),
    Above(threshold=1.3, decision=Decision.ACT_REDACTED),
    Above(threshold=1.5, decision=Decision.ADVISE),
    Always(name="edge_only", decision=Decision.EDGE),
)
"""What the teacher's rollouts go on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teacher:
    """Values decisions by rollouts.

    Attributes:
        bases: Policies that rollouts go on with; the best one counts.
        draws: Rollouts for each decision and base policy. All decisions of a state are tried under the same luck, so that their
            differences are less noisy than their values.
        candidates: Lucks that the `draws` likeliest are taken from, see `likely_lucks`.
    """

    bases: tuple[Strategy, ...] = BASES
    draws: int = 4
    candidates: int = 48

    def values(self, env: DecisionEnv) -> tuple[float, ...]:
        """Returns the estimated return from here on of each decision, at the env's weights.

        Raises:
            ConfigurationError: if the episode has not begun or has ended.
        """
        lucks = likely_lucks(env, self.draws, self.candidates)
        return tuple(
            max(sum(play_on(env, decision, base, luck) for luck in lucks) / len(lucks) for base in self.bases)
            for decision in Decision
        )

    def decide(self, env: DecisionEnv) -> Decision:
        """Returns the decision of highest value; the lowest number among equals."""
        return best(self.values(env))


def best(values: Sequence[float]) -> Decision:
    """Returns the decision of highest value, the lowest number among equals."""
    return Decision(max(range(len(values)), key=lambda number: (values[number], -number)))


def likely_lucks(env: DecisionEnv, draws: int, candidates: int) -> tuple[str, ...]:
    """Returns names of luck under which the edge model would show about the signals that it shows now.

    What the edge model shows (its entropy, its wish for help) tells something of how its next step will go. Copies under any luck
    would forget that; copies under the true luck would know what nobody can. So of `candidates` fresh lucks, those `draws` are
    taken whose signals come nearest to the ones seen: a sample of the future given what is seen (rejection sampling).
    """
    session = running(env)
    seen = session.signals()
    distances = []
    for number in range(candidates):
        trial = session.fork()
        trial.noise, trial._signals = f"{session.noise}/lookahead/{session.step}/{number}", None
        shown = trial.signals()
        distance = abs((shown.entropy or 0.0) - (seen.entropy or 0.0)) + (shown.wants_help != seen.wants_help)
        distances.append((distance, number, trial.noise))
    return tuple(noise for _, _, noise in sorted(distances)[:draws])


def running(env: DecisionEnv) -> Session:
    """Returns the env's session.

    Raises:
        ConfigurationError: if the episode has not begun or has ended.
    """
    if env.session is None or env.session.ended:
        raise ConfigurationError("there is nothing to decide: the episode has not begun or has ended")
    return env.session


def play_on(env: DecisionEnv, decision: Decision, base: Strategy, noise: str) -> float:
    """Returns the return from here on, at the env's weights, of one decision followed by a base policy; see `terms_ahead`."""
    return terms_ahead(env, decision, base, noise).scalar(env.weights)


def terms_ahead(env: DecisionEnv, decision: Decision, after: Strategy, noise: str) -> Terms:
    """Returns what comes from here on of one decision followed by a strategy, played on a copy of the env.

    Args:
        env: In the middle of an episode; it is not changed.
        decision: What to do first.
        after: Decides afterwards.
        noise: Name of the copy's luck: the same name is the same luck.

    Raises:
        ConfigurationError: if the episode has not begun or has ended.
    """
    running(env)
    fork = copy.deepcopy(env)
    session = running(fork)
    session.noise = noise
    since, levels = len(session.events), dict(session.levels)
    fork.take(decision)
    while not session.ended:
        fork.take(after.decide(fork.view()))
    return terms(session.events[since:], levels, session.episode.units, fork._reference)
