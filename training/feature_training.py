"""Trains policies on features for the decision about the cloud: `ec2-env train --method ppo|dqn|bandit|tree`.

A plan of fixed size, one policy for all preferences, saved with a card, and figures on the test split. The plan and the seed fix
everything; the clock decides nothing, and no test episode chooses anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

import ec2_env
from ec2_env.bench.suites import Suite, suite_digest
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.registration import camel
from ec2_env.reward import Terms
from ec2_env.training.bandit import grown, guided, in_rounds
from ec2_env.training.evaluation import Score
from ec2_env.training.feature_evaluation import (
    budgeted,
    chosen_keys,
    fixed_scores,
    played,
    sweep_table,
    swept,
    table,
    told,
    verdicts,
)
from ec2_env.training.features_policy import Preference, load_policy, save_policy
from ec2_env.training.lagrangian import Budget, Multipliers, settle
from ec2_env.training.metrics import Metrics
from ec2_env.training.preferences import SWEEP, USUAL, AnyPreference
from ec2_env.training.rules import Rules, raced
from ec2_env.training.sb3 import train_dqn, train_ppo
from ec2_env.training.scorers import Scorer
from ec2_env.training.stages import Stages
from ec2_env.training.validation import CHOICES, best_of, held_out, worths

PART = 64
"""Episodes of a step in the search for multipliers."""
HELD_OUT = 700_000
"""First seed of the train instances that multipliers are sought on; learners draw theirs from elsewhere."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturePlan:
    """What to train, and on how much.

    Attributes:
        method: How.
        settings: Arguments of `DecisionEnv`; no weights, since these are drawn.
        rules: Simple rules that race for being what learners start from.
        rule_episodes: Train episodes of each in the first heat.
        steps: Steps of the env for PPO and DQN.
        states: States whose decisions are tried out for the bandit and the tree.
        draws: Lucks under which they are.
        validation: Held-out train episodes that candidates are compared on, under each of four preferences.
        test_seeds: Instances of each task that are played for the figures.
        budget: What batches of episodes may use; None to follow preferences.
        compared: Whether the fixed strategies play the test split, too, and the policy at fifteen preferences; if not, it plays
            at the default weights only.
    """

    method: Literal["ppo", "dqn", "bandit", "tree"]
    settings: Mapping[str, Any] = field(default_factory=dict)
    rules: int = 110
    rule_episodes: int = 20
    steps: int = 50_000
    states: int = 1200
    draws: int = 1
    validation: int = 200
    test_seeds: int = 2
    budget: Budget | None = None
    compared: bool = True


Plan = FeaturePlan


def scaled(plan: FeaturePlan, factor: float) -> FeaturePlan:
    """Returns a plan with `factor` times the training, and the choosing that belongs to it."""
    return replace(
        plan,
        rules=max(4, min(plan.rules, round(4 * factor * plan.rules))),
        rule_episodes=max(1, round(plan.rule_episodes * factor)),
        steps=max(1, round(plan.steps * factor)),
        states=max(20, round(plan.states * factor)),
        validation=max(4, round(plan.validation * factor)),
    )


def check(plan: FeaturePlan) -> None:
    """Looks at a plan before anything is played.

    Raises:
        ConfigurationError: if its models are real, for looking ahead and for so many episodes.
        UnknownName: if a model or domain does not exist.
    """
    env = DecisionEnv(**plan.settings)
    if env.edge is None or not (env.edge.card.simulated and env.cloud.card.simulated):
        raise ConfigurationError("policies on features train on thousands of episodes, which takes two simulated models")


def prepare(out: Path, plan: FeaturePlan) -> None:
    """Plays what all seeds are compared with, once for all of them.

    Raises:
        ConfigurationError: if a model is not simulated.
    """
    check(plan)
    if plan.compared:
        references(out, plan)


def references(out: Path, plan: FeaturePlan) -> list[Score]:
    """Returns how the fixed strategies do on the test split; played once for a folder."""
    keys = test_keys(plan)
    stages = Stages(out / "references", {"settings": plan.settings, "test_seeds": plan.test_seeds})
    if not stages.has("fixed"):
        _tell(f"playing {len(keys)} episodes of the test split with the fixed strategies")
    return stages.records("fixed", lambda: list(fixed_scores(plan.settings, keys).values()), list[Score])


def train(out: Path, seed: int, plan: FeaturePlan, base: Path | None = None) -> list[Score]:
    """Trains one policy, saves it with a card, and returns how it does on the test split, beside the fixed strategies.

    Args:
        out: Folder of the policy. Stages that are finished there are not done again.
        seed: Fixes episodes, exploration and networks.
        plan: What to train.
        base: Of no effect; policies on features start from nothing.

    Raises:
        ConfigurationError: if a model is not simulated, or the folder holds another run.
        MissingExtra: if Stable-Baselines3 is needed and not installed.
    """
    check(plan)
    say = partial(_say_of, seed)
    shared = out.parent if out.name == f"seed{seed}" else out
    fixed = {score.name: score for score in references(shared, plan)} if plan.compared else {}
    stages = Stages(out, {"plan": asdict(plan), "seed": seed})
    scorer, preference, chosen = learned(plan, seed, stages, say)
    say("playing the test split")
    if not plan.compared:
        mine = stages.records("test", lambda: [_played_as(scorer, plan, plan.method, preference or USUAL)], list[Score])
        save_policy(out, scorer, card(plan, seed, {"return": mine[0].mean, "chosen": chosen}), preference)
        return mine
    if preference is None or plan.budget is None:
        mine = stages.records("test", lambda: list(swept(scorer, plan.settings, test_keys(plan)).values()), list[Score])
        scores = dict(zip(SWEEP, mine, strict=True))
        usual = replace(scores[USUAL], name=plan.method)
        found, text = verdicts(scores, fixed), f"{table(plan.method, usual, fixed)}\n\n{sweep_table(scores)}"
        told_of = [*fixed.values(), *mine, usual]
    else:
        pair = {f"{plan.method} to a budget": preference, "weighted rewards": USUAL}
        play = partial(_played_as, scorer, plan)
        kept = stages.records("test", lambda: [play(name, wanted) for name, wanted in pair.items()], list[Score])
        found = {"budget": budgeted(plan.budget, kept[0], kept[1], seed), "multipliers": preference._asdict()}
        text = table(kept[0].name, kept[0], {**fixed, kept[1].name: kept[1]})
        told_of = [*fixed.values(), kept[1], kept[0]]
    _tell(text)
    save_policy(out, scorer, card(plan, seed, {**found, "chosen": chosen}), preference)
    return told_of


def _played_as(scorer: Scorer, plan: FeaturePlan, name: str, wanted: Preference) -> Score:
    return played(name, told(scorer, wanted), plan.settings, test_keys(plan))


def learned(plan: FeaturePlan, seed: int, stages: Stages, say: Say) -> tuple[Scorer, Preference | None, dict[str, Any]]:
    """Returns what was learned, the multipliers if there is a budget, and how it was chosen among candidates."""
    ascent = Multipliers(budget=plan.budget) if plan.budget is not None else None
    rules = _rules(plan, seed, stages, say)

    def make() -> tuple[Scorer, Any, Any]:
        say(f"training with {plan.method}")
        with Metrics(stages.folder.parent) as metrics:
            candidates = _candidates(plan, rules, seed, stages, metrics, say, ascent)
            say(f"choosing among {len(candidates)} candidates on {plan.validation} held-out train episodes")
            keys = held_out(DecisionEnv(**plan.settings), CHOICES, seed, plan.validation)
            found = worths(candidates, plan.settings, keys) if len(candidates) > 1 else dict.fromkeys(candidates, (0.0,))
            name = best_of(found)
            for place, returns in enumerate(found.values()):
                metrics.log("choice", place, **{"return": float(np.mean(returns))})
        say("  " + ", ".join(f"{one} {np.mean(returns):.3f}" for one, returns in found.items()) + f": {name}")
        start = list(ascent.values) if ascent is not None else None
        return candidates[name], start, {"candidate": name, "mean_returns": found}

    def save(path: Path, made: tuple[Scorer, Any, Any]) -> None:
        save_policy(path, made[0], {"start": made[1], "chosen": made[2]})

    def load(path: Path) -> tuple[Scorer, Any, Any]:
        policy = load_policy(str(path))
        about = json.loads((path / "card.json").read_text(encoding="utf-8"))
        return policy.scorer, about["start"], about["chosen"]

    scorer, start, chosen = stages.once("policy", make, save, load)
    chosen = {**chosen, "rules": rules.described()}
    if plan.budget is None or start is None:
        return scorer, None, chosen
    say("seeking the multipliers under which the budget is kept on train episodes")
    seek = partial(settle, partial(play_part, plan.settings, scorer), plan.budget, Preference(*start))
    return scorer, stages.records("multipliers", seek, Preference), chosen


def _rules(plan: FeaturePlan, seed: int, stages: Stages, say: Say) -> Rules:
    """Returns the rules that the learner starts from."""
    if not stages.has("rules"):
        say(f"racing {plan.rules} simple rules on train episodes")
    race = partial(raced, plan.settings, plan.rules, plan.rule_episodes, seed, say)
    return Rules.of(stages.records("rules", lambda: race().told(), list[tuple[int, list[float]]]))


def _candidates(
    plan: FeaturePlan, rules: Rules, seed: int, stages: Stages, metrics: Metrics, say: Say, ascent: Multipliers | None
) -> Mapping[str, Scorer]:
    """Returns policies of which one is to be chosen."""
    match plan.method:
        case "dqn":
            return train_dqn(plan.settings, AnyPreference(), plan.steps, seed, stages, metrics, say)
        case "ppo":
            ended = ascent.ascend if ascent is not None else lambda: None
            return train_ppo(plan.settings, ascent or AnyPreference(), rules, plan.steps, seed, stages, metrics, say, ended)
        case "bandit" | "tree":
            fit = partial(guided, rules) if plan.method == "bandit" else partial(grown, seed=seed)
            return in_rounds(plan.settings, plan.states, plan.draws, seed, fit, rules.alone(), stages, say)


def play_part(settings: Mapping[str, Any], scorer: Scorer, wanted: Preference, number: int) -> tuple[Terms, ...]:
    """Returns what episodes of the train split bring under a preference; the number chooses at most `PART` of them."""
    keys = chosen_keys(_env(tuple(sorted(settings.items()))), "train", [HELD_OUT + number])
    drawn = np.random.default_rng(number).permutation(len(keys))[:PART]
    return played("", told(scorer, wanted), settings, [keys[place] for place in drawn]).parts


@lru_cache(maxsize=2)
def _env(settings: tuple[tuple[str, Any], ...]) -> DecisionEnv:
    return DecisionEnv(**dict(settings))


def test_keys(plan: FeaturePlan) -> list[Any]:
    """Returns the episodes of the test split that are played for the figures."""
    return chosen_keys(DecisionEnv(**plan.settings), "test", range(plan.test_seeds))


def card(plan: FeaturePlan, seed: int, results: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a policy's card says of how it was made and how it does."""
    suite = Suite(about="test episodes", tasks=DecisionEnv(**plan.settings).names, primary=True, seeds=plan.test_seeds, trials=1)
    domain = plan.settings.get("domain")
    return {
        "ec2_env": ec2_env.__version__,
        "env": f"EC2/{camel(domain) if domain and ',' not in domain else 'Workspace'}Decision-v0",
        "method": plan.method,
        "seed": seed,
        "plan": asdict(plan),
        "test_suite_sha256": suite_digest(suite),
        "results": results,
    }


def _say_of(seed: int, text: str) -> None:
    _tell(f"seed {seed}: {text}")


def _tell(text: str) -> None:
    print(text, flush=True)
