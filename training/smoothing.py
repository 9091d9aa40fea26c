"""Smooths the teacher's values over states: what it thinks of a few thousand states, freed from the luck of single rollouts.

A value that comes from a few rollouts is mostly luck (an episode passes or fails), so its best decision is often a wrong label.
Ridge regression of the advantages on the phrases of the prompt averages over states that read alike.

What is left of the luck still asks for the cloud too often, so the teacher whose labels a language model learns follows a simple
rule, and leaves it only where another decision is worth more by a margin (conservative policy iteration, Kakade and Langford
2002). It is a policy of its own: the one that the language model has to be compared with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ec2_env.bench.landscape_tree import Node, decided
from ec2_env.features import OPTIONS
from ec2_env.strategy import Decision, View
from ec2_env.training.states import State
from ec2_env.training.teacher import best

_SEPARATORS = re.compile(r"[.,:\n]+ *")


def phrases(prompt: str) -> frozenset[str]:
    """Returns the phrases of a prompt's state, such as "entropy high"."""
    return frozenset(filter(None, _SEPARATORS.split(prompt.removeprefix(OPTIONS).lower())))


@dataclass(frozen=True, kw_only=True)
class SmoothedTeacher:
    """Estimates the advantage of each decision from a prompt alone, by ridge regression; also a strategy.

    Attributes:
        states: Labelled states.
        ridge: Regularization, in states: a phrase that this many states have counts half.
    """

    states: Sequence[State]
    ridge: float = 30.0
    name: str = "smoothed_teacher"
    uses_edge: bool = True

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Number of each phrase."""
        return {phrase: n for n, phrase in enumerate(sorted({p for state in self.states for p in phrases(state.prompt)}))}

    @cached_property
    def fitted(self) -> tuple[Any, Any]:
        """Weights of the phrases, shape (vocabulary, 6), and mean advantages, shape (6,)."""
        values = np.array([state.values for state in self.states])
        advantages = values - values.mean(axis=1, keepdims=True)
        mean = advantages.mean(axis=0)
        rows = self.encoded([state.prompt for state in self.states])
        square = rows.T @ rows + self.ridge * np.eye(rows.shape[1])
        return np.linalg.solve(square, rows.T @ (advantages - mean)), mean

    def encoded(self, prompts: Sequence[str]) -> Any:
        """Returns which known phrases each prompt has, shape (len(prompts), vocabulary)."""
        rows = np.zeros((len(prompts), len(self.vocabulary)))
        for row, prompt in zip(rows, prompts, strict=True):
            for phrase in phrases(prompt):
                if phrase in self.vocabulary:
                    row[self.vocabulary[phrase]] = 1.0
        return rows

    def values(self, prompts: Sequence[str]) -> list[list[float]]:
        """Returns the estimated advantage of each decision, shape (len(prompts), 6)."""
        weights, mean = self.fitted
        found: list[list[float]] = (self.encoded(prompts) @ weights + mean).tolist()
        return found

    def blended(self, states: Sequence[State], trust: float) -> list[State]:
        """Returns states whose values are advantages over the mean of the six: in part their own, in part the estimated ones.

        Args:
            states: With values of their own.
            trust: Share of their own values, 0 to 1.
        """
        own = np.array([state.values for state in states])
        own -= own.mean(axis=1, keepdims=True)
        mixed = trust * own + (1 - trust) * np.array(self.values([state.prompt for state in states]))
        return [replace(state, values=tuple(row), brought=()) for state, row in zip(states, mixed.tolist(), strict=True)]

    def decide(self, view: View) -> Decision:
        """Returns the decision of highest estimated advantage."""
        return best(self.values([view.prompt()])[0])


@dataclass(frozen=True, kw_only=True)
class GuidedTeacher:
    """Follows a rule, and leaves it where another decision is estimated to be worth more by a margin; also a strategy.

    Attributes:
        rule: The rule.
        smoothed: Estimates what decisions are worth if the rule goes on.
        margin: By how much a decision has to be worth more than that of the rule, in units of the return.
    """

    rule: Node
    smoothed: SmoothedTeacher
    margin: float
    name: str = "teacher"
    uses_edge: bool = True

    def values(self, prompts: Sequence[str], features: Sequence[Sequence[float]]) -> Any:
        """Returns the estimated worth of each decision less that of the rule's, which has the margin instead.

        Args:
            prompts: Of the states.
            features: Of the states.

        Returns:
            Shape (states, 6).
        """
        found = np.array(self.smoothed.values(prompts))
        rows, own = np.arange(len(found)), [decided(self.rule, seen) for seen in features]
        found -= found[rows, own][:, None]
        found[rows, own] = self.margin
        return found

    def rewarded(self, states: Sequence[State], trust: float, most: float) -> list[State]:
        """Returns states with values as `SmoothedTeacher.blended` has them, those of the rule's decisions higher by the margin.

        Args:
            states: With values of their own.
            trust: Share of their own values, 0 to 1.
            most: What the margin counts at most.
        """
        found = []
        for state in self.smoothed.blended(states, trust):
            own, values = decided(self.rule, state.features), list(state.values)
            values[own] += min(self.margin, most)
            found.append(replace(state, values=tuple(values)))
        return found

    def decide(self, view: View) -> Decision:
        """Returns the decision of the rule, or one that is better by the margin."""
        return best(self.values([view.prompt()], [view.features()])[0].tolist())
