"""Learned: follows a trained policy: a small language model, a head on what one reads, or a policy on features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ec2_env.models.choice import load_decision_model
from ec2_env.strategy import Decision, Strategy, StrategyMaker, View, options
from ec2_env.training.encoder_policy import EncoderPolicy, is_encoder_policy, load_encoder_policy
from ec2_env.training.features_policy import FeaturePolicy, Preference, is_feature_policy, load_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Follows a trained adapter. The model is loaded at the first decision.

    Attributes:
        path: Folder of the adapter; "" for the untrained model.
        preference: Takes the place of the run's weights; None to follow these.
        heavy: Tells suites that a decision takes a forward pass.
    """

    path: str
    preference: Preference | None = None
    name: str = "learned"
    uses_edge: bool = True
    heavy: bool = True

    def decide(self, view: View) -> Decision:
        """Returns the decision whose digit is the likeliest next token after the prompt."""
        prompt = view.prompt()
        if self.preference is not None:
            prompt = self.preference.told(prompt)
        return Decision(load_decision_model(self.path).decide([prompt])[0])


def make(text: str) -> Strategy:
    """Takes the folder of a policy; without one, the language model decides untrained.

    Behind the folder may stand `cost=WEIGHT` and `privacy=WEIGHT`, which are then followed instead of the weights of the run.
    """
    path, _, rest = text.partition(",")
    if is_encoder_policy(Path(path)):
        policy: EncoderPolicy | FeaturePolicy | Learned = load_encoder_policy(path)
    elif is_feature_policy(Path(path)):
        policy = load_policy(path)
    else:
        policy = Learned(path=path, name="learned" if path else "untrained")
    if not rest:
        return policy
    usual = policy.preference or Preference(0.15, 0.25)
    told = options(rest, cost=usual.cost, privacy=usual.privacy)
    return replace(policy, preference=Preference(**told), name=f"{policy.name}:{rest}")


STRATEGY = StrategyMaker(make=make, about="a policy trained for the decision (learned:FOLDER)")
