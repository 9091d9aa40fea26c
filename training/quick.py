"""Trains a small language model to decide about the cloud, on two CPU cores: `ec2-env train --quick`, or --method rloo, dpo, kto.

Read from top to bottom: a plan of fixed size, a race of simple rules, a teacher that leaves the best of them where looking ahead
tells it to, a supervised warm start on what it would do (TRL's SFTTrainer, one trained token), then practice (GRPO or RLOO, on
what decisions bring if the policy goes on afterwards) or logged decisions (DPO or KTO), and a table on the test split. The plan
and the seed fix everything; the clock decides nothing. Each part is a stage, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.registry import require
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Strategy
from ec2_env.training.evaluation import Score
from ec2_env.training.feature_evaluation import chosen_keys
from ec2_env.training.language_run import Run
from ec2_env.training.progress import Progress
from ec2_env.training.references import references
from ec2_env.training.smoothing import GuidedTeacher
from ec2_env.training.states import State
from ec2_env.training.teacher import BASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything.

    Attributes:
        learner: What follows the warm start.
        settings: Arguments of `DecisionEnv`.
        preferences: Share of the train episodes that have a preference of their own, drawn as for policies on features, so that
            one policy covers the trade-off; the others have the weights of the settings.
        rules: Simple rules that race for being among those that the teacher follows.
        rule_episodes: Train episodes of each in the first heat.
        watched: Train episodes that the winners are watched on, to know which suits a task.
        states: States in which all decisions are tried, with the rule going on, for the teacher to know where to leave it.
        ridge: Regularization of the smoothing, in states.
        draws: Lucks under which each decision of a state is tried, for the teacher and in practice.
        validation: Held-out train episodes on which the margin is chosen by which the teacher leaves the rule.
        visited: States that the teacher comes to; it labels them without trying anything.
        examples: Labels of the warm start, drawn from those.
        batch: Examples in a step of the warm start.
        warm_rate: Learning rate of the warm start.
        softness: Worth by which a decision has to be better to be e times as likely in the labels.
        start: What the learner starts from: the warm start, or the base model with an adapter that does nothing yet.
        rounds: Times that states are practiced on, each with the policy as it then is.
        practice: States of each round, or logged states for DPO and KTO.
        after: Who goes on after a decision that is tried: a cheap copy of the policy, the policy itself (for a GPU), or the rule.
        copy_states: States on which the policy is copied.
        copy_ridge: Regularization of the copy, in states.
        trust: Share of a reward, or of a value of DPO and KTO, that is what a decision brought; the rest is what decisions
            bring in states that read alike.
        prompts: States in a step of the learner.
        passes: Times that each state is learned from.
        drawn: Whether decisions are drawn from the policy instead of all six being tried.
        generations: Decisions that are drawn for each state, if they are.
        rate: Learning rate of the learner.
        penalty: Return that leaving the start by one nat has to bring (GRPO and RLOO).
        choice: Held-out train episodes on which what the learner made is compared with the warm start, which is kept if it is as
            good; 0 to keep what the learner made.
        margin: Difference of values from which a decision counts as better (DPO), or as good or bad (KTO).
        pull: How strongly the policy is held to the start (beta of DPO and KTO).
        data: Folder that `ec2-env collect` wrote, for DPO and KTO; if empty, states are logged as the labels were.
        depth: Layers of the model that are kept, from the first; see `ec2_env.models.choice.shorten`.
        layers: How many of them get an adapter, from the last; the others only run forward.
        rank: Of the adapter.
        test_seeds: Instances of each task that are played for the table.
        bound: Whether the teacher that looks ahead plays the test split as well.
        front: Whether the policy plays the test split under each preference of the sweep, which takes as long as a seed.
        untrained: Whether SmolLM2 does, as it is.
        workers: Processes that play.
    """

    learner: Literal["grpo", "rloo", "dpo", "kto"] = "grpo"
    settings: Mapping[str, Any] = field(default_factory=dict)
    preferences: float = 0.0
    rules: int = 110
    rule_episodes: int = 20
    watched: int = 2000
    states: int = 1500
    ridge: float = 200.0
    draws: int = 2
    validation: int = 300
    visited: int = 5000
    examples: int = 4000
    batch: int = 8
    warm_rate: float = 2e-3
    softness: float = 0.005
    start: Literal["warm", "base"] = "warm"
    rounds: int = 1
    practice: int = 1000
    after: Literal["copy", "policy", "rule"] = "copy"
    copy_states: int = 400
    copy_ridge: float = 3.0
    trust: float = 0.05
    prompts: int = 16
    passes: int = 1
    drawn: bool = False
    generations: int = 12
    rate: float = 3e-4
    penalty: float = 0.002
    choice: int = 150
    margin: float = 0.02
    pull: float = 0.1
    data: str = ""
    depth: int = 12
    layers: int = 6
    rank: int = 16
    test_seeds: int = 1
    bound: bool = True
    front: bool = False
    untrained: bool = False
    workers: int = 2

    def test_keys(self) -> list[EpisodeKey]:
        """Returns the episodes of the test split that are played for the table: every task in its first language."""
        return chosen_keys(DecisionEnv(**self.settings), "test", range(self.test_seeds))


def scaled(plan: Plan, factor: float) -> Plan:
    """Returns a plan with `factor` times the states and labels."""
    return replace(
        plan,
        rules=max(4, min(plan.rules, round(4 * factor * plan.rules))),
        rule_episodes=max(1, round(plan.rule_episodes * factor)),
        watched=max(8, round(plan.watched * factor)),
        states=max(50, round(plan.states * factor)),
        validation=max(4, round(plan.validation * factor)),
        visited=max(50, round(plan.visited * factor)),
        examples=max(plan.batch, round(plan.examples * factor)),
        practice=max(plan.prompts, round(plan.practice * factor)),
        choice=max(4, round(plan.choice * factor)),
    )


def prepare(out: Path, plan: Plan) -> None:
    """Plays what the policies of all seeds are compared with."""
    references(out, plan.settings, plan.test_keys(), plan.bound, plan.untrained)


def train(out: Path, seed: int, plan: Plan, base: Path | None = None) -> list[Score]:
    """Trains an adapter, saves it with a card, and prints and returns how it does on the test split; its score is the last one.

    Args:
        out: Folder for the adapter; made if need be.
        seed: Fixes labels, training and the order of everything.
        plan: How much of everything.
        base: Folder of the model to train; SmolLM2 if None.

    Raises:
        ConfigurationError: if the plan contradicts itself, SmolLM2 has not been pulled, or the folder holds another run.
        MissingExtra: if an extra is not installed.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for module in ("torch", "transformers", "peft", "datasets", "trl"):
        require(module, extra="train")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # TRL and PEFT use its older names
    if plan.data and plan.preferences:
        raise ConfigurationError(
            "plan.data holds values under one preference, and plan.preferences asks for many; leave out one of the two"
        )
    with Progress(out) as progress:
        run = Run(out, seed, plan, base, progress)
        run.compare()
        states: list[State] = []
        follow: Strategy = BASES[0]
        teacher: GuidedTeacher | None = None
        if plan.start == "warm":
            follow = rules = run.suit(run.race())
            states = run.practice("labels", plan.states, rules)
            teacher = run.teach(rules, states)
            run.warm_start(teacher, run.visit(teacher))
        if plan.learner in ("grpo", "rloo"):
            for number in range(plan.rounds):
                states = run.improve(f"{plan.learner}{number}", states, teacher)
        else:
            run.prefer(states, follow)
        name = plan.learner.upper()
        run.judge(f"SFT + {name}" if plan.start == "warm" else name)
        run.choose()
        if plan.front:
            run.test.sweep(run.policy.decide)
        run.finish()
    return run.test.all()
