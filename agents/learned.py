"""Learned: a small language model with a trained adapter reads the state in words and names the decision as a digit."""

from __future__ import annotations

from dataclasses import dataclass

from ec2_env.models.choice import load_decision_model
from ec2_env.strategy import Decision, Strategy, StrategyMaker, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Follows a trained adapter. The model is loaded at the first decision.

    Attributes:
        path: Folder of the adapter; "" for the untrained model.
        heavy: Tells suites that a decision takes a forward pass.
    """

    path: str
    name: str = "learned"
    uses_edge: bool = True
    heavy: bool = True

    def decide(self, view: View) -> Decision:
        """Returns the decision whose digit is the likeliest next token after the prompt."""
        return Decision(load_decision_model(self.path).decide([view.prompt()])[0])


def make(text: str) -> Strategy:
    """Takes the folder of an adapter; without one, the model decides untrained."""
    return Learned(path=text, name="learned" if text else "untrained")


STRATEGY = StrategyMaker(make=make, about="a small language model trained for the decision (learned:FOLDER)")
