"""The methods that `ec2-env train --method NAME` knows: a method is one entry here and one module.

The module has four names, as `ec2_env.training.quick` does:

- `Plan`, a frozen dataclass whose fields all have defaults but those in `given`: how much of everything. `settings` are the
  arguments of `DecisionEnv` or `WorkspaceEnv`, `test_seeds` the instances of each task that are played in the end.
- `scaled(plan, factor) -> Plan`: so many times as much training.
- `train(out, seed, plan, base=None) -> list[Score]`: trains one policy into the folder `out`, goes on from what it had done there
  before it was stopped (`ec2_env.training.stages`), and returns how policies do on the same test episodes. **The last score is
  that of the trained policy.** Strategies that it is compared with are named by their specification (`step_routing`); a score
  named `cost=0.5,privacy=0` is the trained policy under that preference.
- `prepare(out, plan)`, if there is something that all seeds share; it runs once, before them, with the folder of the experiment.

The module is imported only when its method is used, so it may import what is slow at its top, except what an extra installs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ec2_env.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way of training.

    Attributes:
        about: One line for the help.
        module: Where it is.
        given: Fields of the plan that make this method of the module.
        minutes: What the plan of the module is sized for, on two idle CPU cores.
        extras: Names of the extras that have to be installed.
        decides: Whether what is trained decides about the cloud, so that `learned:FOLDER` is a strategy.
    """

    about: str
    module: str
    given: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 15.0
    extras: tuple[str, ...] = ("local", "train")
    decides: bool = True

    def load(self) -> ModuleType:
        """Imports the module."""
        return importlib.import_module(self.module)


LANGUAGE = "ec2_env.training.quick"
"""The module of the methods that train a language model to decide."""
FEATURES = "ec2_env.training.feature_training"
"""The module of the methods on features."""
METHODS: Mapping[str, Method] = {
    "quick": Method(
        about="SmolLM2 decides: labels by looking ahead, SFT, GRPO", module=LANGUAGE, given={"learner": "grpo"}, minutes=30.0
    ),
    "rloo": Method(
        about="the same with RLOO, on decisions drawn", module=LANGUAGE, given={"learner": "rloo", "drawn": True}, minutes=30.0
    ),
    "dpo": Method(about="SmolLM2 learns from pairs of logged decisions", module=LANGUAGE, given={"learner": "dpo"}, minutes=30.0),
    "kto": Method(
        about="SmolLM2 learns from good and bad logged decisions", module=LANGUAGE, given={"learner": "kto"}, minutes=30.0
    ),
    "agent": Method(
        about="SmolLM2 does the work itself and calls the cloud: SFT on solutions, GRPO on episodes",
        module="ec2_env.training.agent",
        minutes=60.0,
        decides=False,
    ),
    "ppo": Method(about="PPO on features", module=FEATURES, given={"method": "ppo"}, minutes=2.0, extras=("rl",)),
    "dqn": Method(about="DQN on features", module=FEATURES, given={"method": "dqn"}, minutes=2.0, extras=("rl",)),
    "bandit": Method(
        about="scores fitted to what decisions change on copies",
        module=FEATURES,
        given={"method": "bandit"},
        minutes=2.0,
        extras=(),
    ),
    "encoder": Method(
        about="a head on what a language model reads, and on features: imitation, REINFORCE",
        module="ec2_env.training.encoder",
        minutes=5.0,
    ),
    "tree": Method(about="a decision tree fitted to the same", module=FEATURES, given={"method": "tree"}, minutes=2.0, extras=()),
}


def method(name: str) -> Method:
    """Returns a method.

    Raises:
        UnknownName: if there is none of the name; the message suggests the nearest ones.
    """
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    return METHODS[name]
