"""What a dataset is made of: all that fixes its rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ec2_env.bench.grid import strategy_of
from ec2_env.bench.suites import Suite, checked
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.models.loading import load_model
from ec2_env.rollout import EpisodeKey
from ec2_env.session import PASS_THRESHOLD
from ec2_env.strategy import Prepared
from ec2_env.training.teacher import BASES

Kind = Literal["sft", "decisions", "preference", "kto"]
STRATEGIES = ("step_routing:redacted", "adaptive_assistance:redacted", "sketch_guided")
"""Whose use of the cloud is collected for `sft` if the command names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that fixes the rows of a dataset that is played for.

    Attributes:
        kind: What kind of rows.
        suite: Tasks, languages, split, seeds and trials.
        chosen: The flags that chose the suite, for the command in the card.
        strategies: Specifications. For `sft`, whose use of the cloud is shown; for the others, who plays, and for `decisions` who
            decides as well; if there are none, the teacher's explorer plays and the teacher decides.
        edge: Specification of the edge model.
        cloud: Of the cloud model.
        threshold: Completion from which a conversation is taken, 0 to 1.
        margin: Difference of values, in units of the return, from which a decision counts as better (`preference`), or from which
            its advantage has a sign (`kto`).
        draws: Rollouts of the teacher for each decision.
        chat: Whether prompts and answers are chats of one message instead of texts.
    """

    kind: Kind
    suite: Suite
    chosen: tuple[str, ...]
    strategies: tuple[str, ...] = ()
    edge: str = "sim:qwen3.5-9b"
    cloud: str = "sim:gpt-5.4"
    threshold: float = PASS_THRESHOLD
    margin: float = 0.02
    draws: int = 4
    chat: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `DecisionEnv`."""
        return {"edge": self.edge, "cloud": self.cloud, "max_episode_steps": self.suite.max_steps}

    def keys(self) -> Iterator[EpisodeKey]:
        """Yields the episodes: by task and language, then seed, then trial."""
        suite = self.suite
        for task, language in suite.pairs():
            for seed in range(suite.seeds):
                for trial in range(suite.trials):
                    yield EpisodeKey(task=task, language=language, split=suite.split, seed=seed, trial=trial)

    def command(self) -> str:
        """Returns the command that collects the same rows."""
        suite = self.suite
        words = ["ec2-env", "collect", "--kind", self.kind, *self.chosen, "--split", suite.split, "--seeds", str(suite.seeds)]
        words += ["--trials", str(suite.trials)] if suite.trials != 1 else []
        words += [word for strategy in self.strategies for word in ("--strategy", strategy)]
        words += ["--edge", self.edge, "--cloud", self.cloud]
        if self.kind == "sft":
            words += ["--threshold", f"{self.threshold:g}"]
        else:
            words += ["--draws", str(self.draws), *(["--chat"] if self.chat else [])]
        words += ["--margin", f"{self.margin:g}"] if self.kind in ("preference", "kto") else []
        words += ["--allow-test"] if suite.split == "test" else []
        return shlex.join([*words, "--out", "DIR"])


def check(plan: Plan) -> None:
    """Checks what can be checked before anything is played.

    Raises:
        UnknownName: if a task, domain, strategy or model does not exist.
        ConfigurationError: if a setting cannot be used.
    """
    checked(plan.suite)
    plan.suite.pairs()
    if not 0 <= plan.threshold <= 1:
        raise ConfigurationError(f"threshold is {plan.threshold:g}, expected a completion from 0 to 1")
    if not 0 <= plan.margin < 10:
        raise ConfigurationError(f"margin is {plan.margin:g}, expected a difference of returns from 0 to 10")
    if not 1 <= plan.draws <= 48:
        raise ConfigurationError(f"draws is {plan.draws}, expected 1 to 48")
    for spec in plan.strategies:
        if isinstance(strategy_of(spec), Prepared):
            raise ConfigurationError(
                f"{spec} has to be scored offline first: play it with `ec2-env bench --trajectories` and collect from that run"
            )
    if plan.kind == "sft":
        if not plan.strategies:
            raise ConfigurationError("sft shows the use of the cloud of strategies; name one")
    elif not simulated(plan):
        raise ConfigurationError(f"{plan.kind} looks ahead on copies of the episode, which takes simulated models")
    env_of(plan.edge, plan.cloud, plan.suite.max_steps)


def simulated(plan: Plan) -> bool:
    """Says whether both models are simulated."""
    return all(load_model(spec).card.simulated for spec in (plan.edge, plan.cloud))


@lru_cache(maxsize=4)
def env_of(edge: str, cloud: str, max_steps: int | None) -> DecisionEnv:
    return DecisionEnv(edge=edge, cloud=cloud, max_episode_steps=max_steps)


def rules(plan: Plan) -> dict[str, str]:
    """Returns the rules that the rows follow, in words, for the card."""
    if plan.kind == "sft":
        return {"taken": f"solutions and episodes completed to at least {plan.threshold:g}"}
    found = {
        "states": "half of those visited" + ("" if plan.strategies else ", by a rule with a quarter of random decisions"),
        "values": f"means of {plan.draws} rollouts on copies of the state: the decision, then {BASES[0].name} to the end",
    }
    if plan.kind == "preference":
        found["pairs"] = f"the best decision, and one drawn from those whose value is lower by at least {plan.margin:g}"
    if plan.kind == "kto":
        found["labels"] = f"whether the value is above or below the mean of the six, by at least {plan.margin:g}"
    return found
