"""What policies get in the episodes of the test split that a run plays, each a stage that is done once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ec2_env.rollout import EpisodeKey
from ec2_env.training.evaluation import Chooser, Score, by_prompt, evaluate, table
from ec2_env.training.feature_evaluation import FIXED, front, sweep_table
from ec2_env.training.features_policy import Preference
from ec2_env.training.preferences import SWEEP
from ec2_env.training.progress import Progress
from ec2_env.training.references import verdict
from ec2_env.training.stages import Stages

Decide = Callable[[Sequence[str]], list[int]]
"""Decides for prompts."""
KEPT = "kept policy"
"""Name of the policy that a run ends with, if it had two to choose from."""


class TestSplit:
    """The scores of a run.

    Args:
        settings: Arguments of `DecisionEnv`.
        keys: The episodes.
        stages: Of the run.
        progress: Is told how far it is.

    Attributes:
        scores: Of policies under the weights of the settings, the last one that of the policy.
        front: Of the policy under each preference of the sweep, if it was swept.
    """

    __test__ = False  # no test of pytest's

    def __init__(self, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], stages: Stages, progress: Progress) -> None:
        self.settings, self.keys, self.stages, self.progress = settings, keys, stages, progress
        self.scores: list[Score] = []
        self.front: dict[Preference, Score] = {}
        self.trained: list[str] = []
        self.choice: list[str] = []

    def play(self, name: str, choose: Chooser) -> None:
        """Plays with a policy."""
        score = self._played(f"score of {name}", name, choose)
        self.progress.say(f"{name}: {score.mean:.3f}")
        self.scores.append(score)

    def judge(self, name: str, decide: Decide) -> None:
        """Plays with a policy that was trained."""
        self.play(name, by_prompt(self.progress.timed("model", decide)))
        self.trained.append(name)

    def keep(self, name: str, told: str) -> None:
        """Ends the list with one of the policies that were trained.

        Args:
            name: Of the policy.
            told: Says why it is this one.
        """
        self.scores.append(replace(next(score for score in self.scores if score.name == name), name=KEPT))
        self.choice.append(told)
        self.progress.say(told)

    def sweep(self, decide: Decide) -> None:
        """Plays with a policy that was trained, once under each of the preferences of a sweep."""
        self.progress.say(f"playing the test split under {len(SWEEP)} preferences")
        for place, wanted in enumerate(SWEEP):
            told = partial(told_by, decide, wanted)
            name = f"cost={wanted.cost:g},privacy={wanted.privacy:g}"
            self.front[wanted] = self._played(f"front{place}", name, by_prompt(self.progress.timed("model", told)))

    def all(self) -> list[Score]:
        """Returns all scores, the last one that of the policy."""
        return [*self.scores[:-1], *self.front.values(), self.scores[-1]]

    def said(self) -> list[str]:
        """Says how the trained policies stand to others."""
        lines = [*verdict(self.scores, self.trained), *self.choice]
        if self.front:
            gain = front(list(self.front.values()), [score for score in self.scores if score.name in FIXED]).gain
            lines.append(f"hypervolume over that of the fixed strategies: {gain:+.1%}")
        return lines

    def tables(self) -> list[str]:
        """Returns the table of all policies, and one of the policy under each preference if it was swept."""
        return [table(self.scores, self.scores[-1].name), *([sweep_table(self.front)] if self.front else [])]

    def _played(self, stage: str, name: str, choose: Chooser) -> Score:
        with self.progress.on("env"):
            return self.stages.records(stage, lambda: evaluate(name, choose, self.settings, self.keys), Score)


def told_by(decide: Decide, wanted: Preference | None, prompts: Sequence[str]) -> list[int]:
    """Decides for prompts under a preference; under the one that they tell of if it is None."""
    return decide(prompts if wanted is None else [wanted.told(prompt) for prompt in prompts])
