"""Simple rules, of which the words that name a task and the preference choose one: what a language model is taught to follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ec2_env.bench.landscape_tree import Node
from ec2_env.strategy import Decision, View
from ec2_env.training.encoder_guide import Guide, Watched, guide
from ec2_env.training.encoder_text import SentenceEncoder, sentences
from ec2_env.training.scorers import COST, PRIVACY


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitedRules:
    """Follows the rule that suits the task and the weights of the env; a strategy.

    Attributes:
        guide: The rules, and what each brings in a task.
        tasks: Vector of each sentence that names a task.
        otherwise: Vector of a task that is not among them.
    """

    guide: Guide
    tasks: Mapping[str, NDArray[Any]]
    otherwise: NDArray[Any]
    name: str = "rules by the task"
    uses_edge: bool = True

    def answer(self, prompt: str, features: Sequence[float]) -> int:
        """Returns the decision of the rule that suits, by the prompt's first sentence and the weights among the features."""
        task = self.tasks.get(sentences(prompt)[0], self.otherwise)
        suited = self.guide.suited(task[None], np.array([[features[COST], features[PRIVACY]]]))
        return self.guide.rules.answer(features, int(self.guide.roots[suited[0]]))

    def decide(self, view: View) -> Decision:
        """Returns the decision of the rule that suits."""
        return Decision(self.answer(view.prompt(), view.features()))


def suited_rules(trees: Sequence[Node], episodes: Sequence[Watched], encoder: SentenceEncoder, seed: int) -> SuitedRules:
    """Returns what watching rules teaches, see `ec2_env.training.encoder_guide.guide`.

    Args:
        trees: The rules.
        episodes: What was watched.
        encoder: Reads the sentences that name tasks.
        seed: Draws preferences.
    """
    prompts = [one.states[0].prompt for one in episodes]
    vectors = encoder.states(prompts)[:, : encoder.width // 2]
    named = [sentences(prompt)[0] for prompt in prompts]
    return SuitedRules(
        guide=guide(trees, episodes, vectors, seed),
        tasks=dict(zip(named, vectors, strict=True)),
        otherwise=vectors.mean(axis=0),
    )
