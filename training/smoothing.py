"""What states that read alike have in common: ridge regression of anything on the phrases of the prompt.

What a decision brings in a few rollouts is mostly luck (an episode passes or fails), so the best decision by them is often a
wrong label. Regression averages over states that read alike.

What is left of the luck still asks for the cloud too often, so the teacher whose labels a language model learns follows simple
rules, and leaves them only where another decision is worth more by a margin (conservative policy iteration, Kakade and Langford
2002). It is a policy of its own: the one that the language model has to be compared with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ec2_env.features import OPTIONS
from ec2_env.strategy import Decision, View
from ec2_env.training.features_policy import Preference
from ec2_env.training.scorers import COST, PRIVACY, Floats
from ec2_env.training.states import State
from ec2_env.training.suited import SuitedRules
from ec2_env.training.teacher import best

_SEPARATORS = re.compile(r"[.,:\n]+ *")


def phrases(prompt: str) -> frozenset[str]:
    """Returns the phrases of a prompt's state, such as "entropy high"."""
    return frozenset(filter(None, _SEPARATORS.split(prompt.removeprefix(OPTIONS).lower())))


class Smoothed:
    """Estimates numbers from a prompt alone, by ridge regression on its phrases.

    Args:
        prompts: Of known states.
        numbers: What is known of each, shape (len(prompts), columns).
        ridge: Regularization, in states: a phrase that this many states have counts half.
    """

    def __init__(self, prompts: Sequence[str], numbers: Floats, ridge: float) -> None:
        self.vocabulary = {phrase: n for n, phrase in enumerate(sorted({p for prompt in prompts for p in phrases(prompt)}))}
        self.mean = numbers.mean(axis=0)
        rows = self._encoded(prompts)
        self.weights: Floats = np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ (numbers - self.mean))

    def __call__(self, prompts: Sequence[str]) -> Floats:
        """Returns the estimates, shape (len(prompts), columns)."""
        found: Floats = self._encoded(prompts) @ self.weights + self.mean
        return found

    def _encoded(self, prompts: Sequence[str]) -> Floats:
        """Returns which known phrases each prompt has, shape (len(prompts), vocabulary)."""
        rows = np.zeros((len(prompts), len(self.vocabulary)))
        for row, prompt in zip(rows, prompts, strict=True):
            for phrase in phrases(prompt):
                if phrase in self.vocabulary:
                    row[self.vocabulary[phrase]] = 1.0
        return rows


class Worths:
    """Estimates the advantage of each decision over the mean of the six.

    Args:
        states: With the values of all decisions.
        ridge: See `Smoothed`.
        weighed: Whether completion, cost and exposure are estimated apart, for the weights among a state's features to weigh.
            Otherwise the values are, under the weights that they were made with.
    """

    def __init__(self, states: Sequence[State], ridge: float, weighed: bool = False) -> None:
        self.weighed = weighed
        parts = np.array([one.brought for one in states]) if weighed else np.array([one.values for one in states])[:, :, None]
        parts -= parts.mean(axis=1, keepdims=True)
        self.smoothed = Smoothed([one.prompt for one in states], parts.reshape(len(states), -1), ridge)

    def values(self, prompts: Sequence[str], features: Sequence[Sequence[float]]) -> Floats:
        """Returns the estimates, shape (len(prompts), 6)."""
        told = [[1.0, -one[COST], -one[PRIVACY]] if self.weighed else [1.0] for one in features]
        found: Floats = (self.smoothed(prompts).reshape(len(told), len(Decision), -1) * np.array(told)[:, None]).sum(axis=2)
        return found

    def blended(self, states: Sequence[State], trust: float) -> list[State]:
        """Returns states whose values are advantages over the mean of the six: in part their own, in part the estimated ones.

        Args:
            states: With values of their own.
            trust: Share of their own values, 0 to 1.
        """
        own = np.array([state.values for state in states])
        own -= own.mean(axis=1, keepdims=True)
        mixed = trust * own + (1 - trust) * self.values(*seen(states))
        return [replace(state, values=tuple(row), brought=()) for state, row in zip(states, mixed.tolist(), strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedTeacher:
    """Follows the simple rule that suits, and leaves it where another decision is estimated to be worth more by a margin.

    Attributes:
        rules: The rules.
        worths: Estimates what decisions are worth if the rule goes on.
        margin: By how much a decision has to be worth more than that of the rule, in units of the return.
        preference: Takes the place of the env's weights; None to follow these.
    """

    rules: SuitedRules
    worths: Worths
    margin: float
    preference: Preference | None = None
    name: str = "teacher"
    uses_edge: bool = True

    def values(self, prompts: Sequence[str], features: Sequence[Sequence[float]]) -> Floats:
        """Returns the estimated worth of each decision less that of the rule's, which has the margin instead.

        Args:
            prompts: Of the states.
            features: Of the states.

        Returns:
            Shape (states, 6).
        """
        found = self.worths.values(prompts, features)
        rows, own = np.arange(len(found)), list(map(self.rules.answer, prompts, features))
        found -= found[rows, own][:, None]
        found[rows, own] = self.margin
        return found

    def rewarded(self, states: Sequence[State], trust: float, most: float) -> list[State]:
        """Returns states with values as `Worths.blended` has them, those of the rule's decisions higher by the margin.

        Args:
            states: With values of their own.
            trust: Share of their own values, 0 to 1.
            most: What the margin counts at most.
        """
        found = []
        for state in self.worths.blended(states, trust):
            own, values = self.rules.answer(state.prompt, state.features), list(state.values)
            values[own] += min(self.margin, most)
            found.append(replace(state, values=tuple(values)))
        return found

    def decide(self, view: View) -> Decision:
        """Returns the decision of the rule, or one that is better by the margin."""
        prompt, features = view.prompt(), list(view.features())
        if self.preference is not None:
            features[COST], features[PRIVACY] = self.preference
            prompt = self.preference.told(prompt)
        return best(self.values([prompt], [features])[0].tolist())


class PolicyCopy:
    """A cheap copy of a policy that reads prompts; a strategy.

    Args:
        states: That the policy was asked about.
        scores: What it gave each decision there, shape (len(states), 6).
        ridge: See `Smoothed`.
        teacher: What the policy was taught by, if it was: most of its decisions are the teacher's.
    """

    name = "copy"
    uses_edge = True

    def __init__(self, states: Sequence[State], scores: Floats, ridge: float, teacher: GuidedTeacher | None = None) -> None:
        self.teacher = teacher
        self.smoothed = Smoothed(self._told(*seen(states)), scores, ridge)

    def decide(self, view: View) -> Decision:
        """Returns the decision of the highest estimated score."""
        return best(self.smoothed(self._told([view.prompt()], [view.features()]))[0].tolist())

    def _told(self, prompts: Sequence[str], features: Sequence[Sequence[float]]) -> Sequence[str]:
        """Returns the prompts, with a further phrase for the decision of the teacher."""
        if self.teacher is None:
            return prompts
        taught: Any = self.teacher.values(prompts, features).argmax(axis=1)
        return [f"{prompt}\ntaught {number}" for prompt, number in zip(prompts, taught.tolist(), strict=True)]


def seen(states: Sequence[State]) -> tuple[list[str], list[tuple[float, ...]]]:
    """Returns the prompts and the features of states."""
    return [state.prompt for state in states], [state.features for state in states]
