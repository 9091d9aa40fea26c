"""One run that trains a language model to decide: its parts, each of which is a stage that is done once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ec2_env.bench.landscape_tree import Node, described
from ec2_env.envs import DecisionEnv
from ec2_env.models import smollm2
from ec2_env.reward import RewardWeights
from ec2_env.rollout import EpisodeKey
from ec2_env.strategy import Strategy
from ec2_env.training.adapter import fresh_policy, restore_adapter, save_adapter, write_card, write_readme
from ec2_env.training.encoder_guide import ALWAYS, Watched, watch_all
from ec2_env.training.encoder_text import fresh_encoder
from ec2_env.training.evaluation import Chooser, by_prompt, by_strategy, evaluate
from ec2_env.training.features_policy import Preference
from ec2_env.training.grpo import improve
from ec2_env.training.language_scores import TestSplit, told_by
from ec2_env.training.logged import prefer, read_states
from ec2_env.training.practice import Lesson, practiced
from ec2_env.training.preferences import Following
from ec2_env.training.progress import Progress
from ec2_env.training.references import references
from ec2_env.training.rules import NEVER, Rules, raced
from ec2_env.training.smoothing import GuidedTeacher, PolicyCopy, Worths
from ec2_env.training.stages import Stages
from ec2_env.training.states import State
from ec2_env.training.suited import SuitedRules, suited_rules
from ec2_env.training.teacher import BASES
from ec2_env.training.validation import CHOICES, PREFERENCES, held_out
from ec2_env.training.warm_start import labels, warm_start

if TYPE_CHECKING:
    from ec2_env.training.quick import Plan

INSTANCES = 100
"""Train instances of each task for each stage that plays, so that no two stages play the same episodes."""
LEAST = -6.0
"""Log chance below which a copy of the policy does not ask how unlikely a decision is."""
MARGINS = (0.01, 0.02, 0.04, NEVER)
"""Margins by which the teacher may leave its rule, in units of the return; the last one is never reached."""
VISITED = 0.5
"""Share of the states of an episode that the model is shown labels of."""
READERS = 4
"""Layers of the base model that read the sentences that name tasks; see docs/training_encoder.md."""
WARM = "warm_start"
"""Name of the stage that keeps the adapter after the warm start."""
RULE = "best rule"
"""Name of the simple rule that won the race, in the table."""
READING = ("model", "training")
"""Purposes for which the model reads."""


class Run:
    """The parts of a run, in the order in which they are called.

    Args:
        out: Folder for the adapter.
        seed: Fixes labels, training and the order of everything.
        plan: How much of everything.
        base: Folder of the model to train; SmolLM2 if None.
        progress: Is told how far it is.
    """

    def __init__(self, out: Path, seed: int, plan: Plan, base: Path | None, progress: Progress) -> None:
        self.out, self.seed, self.plan, self.progress = out, seed, plan, progress
        self.trained_on = "smollm2" if base is None else str(base)
        self.base = base or smollm2.folder()
        self.policy = fresh_policy(self.base, plan, seed)
        self.stages = Stages(out, {"plan": asdict(plan), "seed": seed, "base": self.trained_on})
        self.test = TestSplit(plan.settings, plan.test_keys(), self.stages, progress)
        self.practices = 0
        self.tried: dict[str, float] = {}

    def compare(self) -> None:
        """Plays the test split with what the policy is compared with, unless that has been done for all seeds."""
        plan = self.plan
        self.progress.say(f"{len(self.test.keys)} test episodes with the references")
        with self.progress.on("env"):
            self.test.scores += references(self.out, plan.settings, self.test.keys, plan.bound, plan.untrained)

    def practice(self, name: str, count: int, follow: Strategy | Chooser) -> list[State]:
        """Returns states of train episodes that no other stage plays, with the values of all decisions.

        Args:
            name: Of the stage.
            count: How many states.
            follow: Plays, and goes on after a decision that is tried.
        """
        self.progress.say(f"{name}: all decisions in {count} states, under {self.plan.draws} lucks each")
        return self._met(name, follow, count, self.plan.draws)

    def visit(self, teacher: GuidedTeacher) -> list[State]:
        """Returns states of train episodes that the teacher plays; nothing is tried there, so they are cheap."""
        plan = self.plan
        self.progress.say(f"{plan.visited} states that the teacher comes to")
        return self._met("visited", teacher, plan.visited, 0, share=VISITED)

    def _met(self, name: str, follow: Strategy | Chooser, count: int, draws: int, **more: float) -> list[State]:
        """Returns states of episodes that begin with the first instances that no stage has played."""
        plan, first = self.plan, 1_000 * self.seed + INSTANCES * self.practices
        lesson = Lesson(settings=plan.settings, count=count, draws=draws, first=first, preferences=plan.preferences, **more)
        self.practices += 1
        with self.progress.on("env"):
            return self.stages.records(name, lambda: practiced(lesson, follow, plan.workers), list[State])

    def race(self) -> tuple[Node, ...]:
        """Returns the simple rules that return most on train episodes, each under some preference."""
        plan = self.plan
        self.progress.say(f"racing {plan.rules} simple rules on train episodes")
        with self.progress.on("env"):
            race = partial(raced, plan.settings, plan.rules, plan.rule_episodes, self.seed)
            rules = Rules.of(self.stages.records("rules", lambda: race().told(), list[tuple[int, list[float]]]))
        self.progress.say(f"  {described(rules.best(DecisionEnv(**plan.settings).weights))}")
        self.test.play(RULE, by_strategy(Following(guide=rules.simple())))
        return rules.trees

    def suit(self, winners: Sequence[Node]) -> SuitedRules:
        """Returns rules of which the task chooses one, by what each brought in train episodes where all were watched."""
        plan, trees = self.plan, tuple(dict.fromkeys((*winners, *ALWAYS)))
        self.progress.say(f"watching {len(trees)} rules on {plan.watched} train episodes each")
        with self.progress.on("env"):
            watch = partial(watch_all, plan.settings, trees, plan.watched, self.seed, plan.workers)
            episodes = self.stages.records("watched", watch, list[Watched])
        with self.progress.on("model"):
            rules = suited_rules(trees, episodes, fresh_encoder(self.base, READERS), self.seed)
        self.test.play(rules.name, by_strategy(rules))
        return rules

    def teach(self, rules: SuitedRules, states: list[State]) -> GuidedTeacher:
        """Returns the teacher: the rules, left by the margin that returns most on held-out train episodes.

        Args:
            rules: What it follows.
            states: With the values that decisions have if the rules go on.
        """
        plan, worths = self.plan, self._worths(states)
        teachers = [GuidedTeacher(rules=rules, worths=worths, margin=margin) for margin in MARGINS]
        keys = held_out(DecisionEnv(**plan.settings), CHOICES, self.seed, plan.validation)
        wanted = self._wanted()
        self.progress.say(
            f"comparing {len(teachers)} margins on {len(keys)} held-out train episodes, {len(wanted)} preference(s)"
        )

        def play() -> list[float]:
            return [
                fmean(self._return(by_strategy(replace(one, preference=told)), keys, told) for told in wanted) for one in teachers
            ]

        with self.progress.on("env"):
            means = self.stages.records("margins", play, list[float])
        told = ", ".join(f"{margin:g}: {mean:.3f}" for margin, mean in zip(MARGINS, means, strict=True))
        self.progress.say(f"  {told}")
        teacher = teachers[means.index(max(means))]
        self.test.play("teacher", by_strategy(teacher))
        return teacher

    def warm_start(self, teacher: GuidedTeacher, states: list[State]) -> None:
        """Teaches the model what the teacher would do in states."""
        plan = self.plan
        examples = labels(states, teacher, plan, self.seed)
        self.progress.say(f"warm start: {plan.examples} labels, {plan.examples // plan.batch} steps")
        self._trained(WARM, lambda: warm_start(self.policy, examples, plan, self.seed, self.progress.figure))
        self.judge("SFT")

    def improve(self, name: str, states: list[State], teacher: GuidedTeacher | None) -> list[State]:
        """Practices on states that the policy itself comes to, with the values that decisions have if it goes on itself.

        Args:
            name: Of the stage.
            states: Of earlier stages. The policy is copied on the last ones, and rewards lean on all.
            teacher: Of the warm start: leaving its rule has to bring its margin here, too.

        Returns:
            These and the states that were practiced on.
        """
        plan = self.plan
        found = self.practice(f"states of {name}", plan.practice, self._follower(name, states, teacher))
        worths = self._worths([*states, *found])
        if teacher is None:
            rewarded = worths.blended(found, plan.trust)
        else:
            rewarded = replace(teacher, worths=worths).rewarded(found, plan.trust, MARGINS[-2])
        seed = self.seed + self.practices
        self._trained(name, lambda: improve(self.policy, rewarded, plan, seed, self.progress.figure, plan.learner))
        return [*states, *found]

    def prefer(self, states: list[State], follow: Strategy) -> None:
        """Learns from logged decisions.

        Args:
            states: Of earlier stages; values lean on all.
            follow: Plays what is logged, unless the plan names a dataset.
        """
        plan = self.plan
        logged = read_states(Path(plan.data)) if plan.data else self.practice("logged", plan.practice, follow)
        judged = self._worths([*states, *logged]).blended(logged, plan.trust)
        self._trained(plan.learner, lambda: prefer(self.policy, judged, plan, self.seed, self.progress.figure, plan.learner))

    def judge(self, name: str) -> None:
        """Plays the test split with the policy as it is, and the held-out train episodes that `choose` compares on.

        Args:
            name: Of the policy.
        """
        plan = self.plan
        self.test.judge(name, self.policy.decide)
        if not plan.choice or plan.start != "warm":
            return
        keys = held_out(DecisionEnv(**plan.settings), CHOICES, self.seed, plan.validation + plan.choice)[plan.validation :]
        decide = self.progress.timed("model", self.policy.decide)

        def play() -> list[float]:
            return [self._return(by_prompt(partial(told_by, decide, wanted)), keys, wanted) for wanted in self._wanted()]

        with self.progress.on("env"):
            self.tried[name] = fmean(self.stages.records(f"held out, {name}", play, list[float]))

    def choose(self) -> None:
        """Goes back to the warm start if what followed is not better on held-out train episodes; no test episode chooses."""
        if len(self.tried) < 2:
            return
        (first, before), (last, after) = self.tried.items()
        kept = last if after > before else first
        if kept == first:
            restore_adapter(self.policy, self.stages.folder / WARM)
        told = f"{first} {before:.3f}, {last} {after:.3f}"
        self.test.keep(kept, f"kept is {kept}: on {self.plan.choice} held-out train episodes, {told}")

    def finish(self) -> None:
        """Saves the adapter with its cards, and prints the tables."""
        test, plan = self.test, asdict(self.plan)
        self._save(self.out)
        write_card(self.out, self.trained_on, self.seed, plan, test.scores)
        write_readme(self.out, self.trained_on, self.seed, plan, test.scores, test.said())
        for line in (*test.tables(), *test.said(), self.progress.times(self.policy.read, READING)):
            print(line, flush=True)

    def _wanted(self) -> Sequence[Preference | None]:
        """Returns the preferences under which candidates are compared; None stands for the weights of the settings."""
        return PREFERENCES if self.plan.preferences else (None,)

    def _return(self, choose: Chooser, keys: Sequence[EpisodeKey], wanted: Preference | None) -> float:
        """Returns the mean return of episodes under a preference, or under the weights of the settings."""
        score = evaluate("", choose, self.plan.settings, keys)
        if wanted is None:
            return score.mean
        weights = RewardWeights(cost=wanted.cost, privacy=wanted.privacy)
        return fmean(part.scalar(weights) for part in score.parts)

    def _worths(self, states: list[State]) -> Worths:
        return Worths(states, self.plan.ridge, weighed=self.plan.preferences > 0)

    def _follower(self, name: str, states: list[State], teacher: GuidedTeacher | None) -> Strategy | Chooser:
        """Returns who goes on after decisions that are tried: the policy, a copy of it, or a rule."""
        plan = self.plan
        if plan.after == "rule" or not states:
            return BASES[0]
        if plan.after == "policy":
            return by_prompt(self.progress.timed("model", self.policy.decide))
        with self.progress.on("model"):
            known = states[-plan.copy_states :]
            scores = self.stages.records(
                f"copy for {name}", lambda: self.policy.scores([state.prompt for state in known]), list[list[float]]
            )
        return PolicyCopy(known, np.array(scores).clip(min=LEAST), plan.copy_ridge, teacher)

    def _trained(self, name: str, train: Callable[[], None]) -> None:
        with self.progress.on("training"):
            self.stages.once(name, train, lambda path, _: self._save(path), lambda path: restore_adapter(self.policy, path))

    def _save(self, path: Path) -> None:
        save_adapter(self.policy, path, self.trained_on)
        write_card(path, self.trained_on, self.seed, asdict(self.plan))
