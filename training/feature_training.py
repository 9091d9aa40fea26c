"""Trains policies on features for the decision about the cloud: `ec2-env train --method ppo|dqn|bandit|tree`.

A plan of fixed size, one policy for all preferences, saved with a card, and figures on the test split. The plan and the seed fix
everything; the clock decides nothing.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

import numpy as np

import ec2_env
from ec2_env.bench.records import start_worker
from ec2_env.bench.suites import Suite, suite_digest
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError
from ec2_env.registration import camel
from ec2_env.reward import Terms
from ec2_env.training.bandit import Samples, fit_terms, fit_tree, in_rounds
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
from ec2_env.training.features_policy import Preference, Scorer, save_policy
from ec2_env.training.lagrangian import Budget, Multipliers, settle
from ec2_env.training.preferences import USUAL, AnyPreference, Preferences
from ec2_env.training.sb3 import train_dqn, train_ppo

Method = Literal["ppo", "dqn", "bandit", "tree"]
METHODS: tuple[Method, ...] = get_args(Method)
MINUTES = 2.0
"""What a plan is sized for, on one idle CPU core."""
STEPS_A_MINUTE = 40_000
STATES_A_MINUTE = 500
PART = 64
"""Episodes of a step in the search for multipliers."""
HELD_OUT = 700_000
"""First seed of the train instances that multipliers are sought on; learners draw theirs from elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturePlan:
    """What to train, and on how much.

    Attributes:
        method: How.
        settings: Arguments of `DecisionEnv`; no weights, since these are drawn.
        steps: Steps of the env for PPO and DQN.
        states: States whose decisions are tried out for the bandit and the tree.
        draws: Lucks under which they are.
        test_seeds: Instances of each task that are played for the figures.
        budget: What batches of episodes may use; None to follow preferences.
    """

    method: Method
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int = round(MINUTES * STEPS_A_MINUTE)
    states: int = round(MINUTES * STATES_A_MINUTE)
    draws: int = 1
    test_seeds: int = 2
    budget: Budget | None = None


Plan = FeaturePlan


def scaled(plan: FeaturePlan, factor: float) -> FeaturePlan:
    """Returns a plan with `factor` times the training."""
    return replace(plan, steps=max(1, round(plan.steps * factor)), states=max(20, round(plan.states * factor)))


def sized(plan: Mapping[str, Any], minutes: float) -> FeaturePlan:
    """Returns a plan for so many minutes of training on an idle core."""
    return FeaturePlan(**plan, steps=max(1, round(minutes * STEPS_A_MINUTE)), states=max(20, round(minutes * STATES_A_MINUTE)))


def check(plan: FeaturePlan) -> None:
    """Looks at a plan before anything is played.

    Raises:
        ConfigurationError: if its models are real, for looking ahead and for so many episodes.
        UnknownName: if a model or domain does not exist.
    """
    env = DecisionEnv(**plan.settings)
    if env.edge is None or not (env.edge.card.simulated and env.cloud.card.simulated):
        raise ConfigurationError("policies on features train on thousands of episodes, which takes two simulated models")


def train(out: Path, seeds: Sequence[int], plan: FeaturePlan, workers: int = 1) -> list[dict[str, Any]]:
    """Trains a policy for each seed, saves it with a card, prints and returns how they do on the test split.

    Args:
        out: Folder of the policy; with several seeds, they go into `seed0` and so on in it.
        seeds: Fix episodes, exploration and networks.
        plan: What to train.
        workers: Processes; the results do not depend on them.

    Raises:
        ConfigurationError: if a model is not simulated.
        MissingExtra: if Stable-Baselines3 is needed and not installed.
    """
    check(plan)
    _tell(f"playing {len(test_keys(plan))} episodes of the test split with the fixed strategies")
    fixed = fixed_scores(plan.settings, test_keys(plan))
    folders = [out if len(seeds) == 1 else out / f"seed{seed}" for seed in seeds]
    job = partial(train_one, plan, fixed)
    if workers == 1:
        results = list(map(job, seeds, folders))
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=spawn, initializer=start_worker) as pool:
            results = list(pool.map(job, seeds, folders))
    for line in summary(results):
        _tell(line)
    return results


def train_one(plan: FeaturePlan, fixed: Mapping[str, Score], seed: int, folder: Path) -> dict[str, Any]:
    """Trains, saves and judges one policy; returns its figures."""
    _tell(f"seed {seed}: training with {plan.method}")
    scorer, preference = learned(plan, seed, partial(_say_of, seed))
    _tell(f"seed {seed}: playing the test split")
    keys = test_keys(plan)
    if preference is None or plan.budget is None:
        scores = swept(scorer, plan.settings, keys)
        found = verdicts(scores, fixed)
        text = f"{table(plan.method, scores[USUAL], fixed)}\n\n{sweep_table(scores)}"
    else:
        mine = played(f"{plan.method} to a budget", told(scorer, preference), plan.settings, keys)
        weighed = played("weighted rewards", told(scorer, USUAL), plan.settings, keys)
        found = {"budget": budgeted(plan.budget, mine, weighed, seed), "multipliers": preference._asdict()}
        text = table(mine.name, mine, {**fixed, weighed.name: weighed})
    _tell(text)
    save_policy(folder, scorer, card(plan, seed, found), preference)
    return found


def learned(plan: FeaturePlan, seed: int, say: Callable[[str], None] = lambda text: None) -> tuple[Scorer, Preference | None]:
    """Returns what was learned, and the multipliers if there is a budget."""
    ascent = Multipliers(budget=plan.budget) if plan.budget is not None else None
    if plan.method in ("ppo", "dqn"):
        climbing = ascent if plan.method == "ppo" else None
        scorer = _by_reinforcement(plan, seed, say, climbing)
    else:
        fit: Callable[[Samples], Scorer] = fit_terms if plan.method == "bandit" else partial(fit_tree, seed=seed)
        scorer = in_rounds(plan.settings, plan.states, plan.draws, seed, fit, say)
    if plan.budget is None or ascent is None:
        return scorer, None
    say("seeking the multipliers under which the budget is kept on train episodes")
    return scorer, settle(partial(play_part, plan.settings, scorer), plan.budget, ascent.values)


def _by_reinforcement(plan: FeaturePlan, seed: int, say: Callable[[str], None], ascent: Multipliers | None) -> Scorer:
    preferences: Preferences = ascent or AnyPreference()
    if plan.method == "dqn":
        return train_dqn(plan.settings, preferences, plan.steps, seed, say)
    ended = ascent.ascend if ascent is not None else lambda: None
    return train_ppo(plan.settings, preferences, plan.steps, seed, say, ended)


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
        "env": f"EC2/{camel(domain) if domain else 'Workspace'}Decision-v0",
        "method": plan.method,
        "seed": seed,
        "plan": asdict(plan),
        "test_suite_sha256": suite_digest(suite),
        "results": results,
    }


def summary(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Says in words how the policies of all seeds do; intervals over seeds are of the mean, by Student's t."""
    if "budget" in results[0]:
        kept = {name: [found["budget"][name]["batches_within"] for found in results] for name in results[0]["budget"]}
        return [f"{name}: {over_seeds(values)} of the test batches within the budget" for name, values in kept.items()]
    specs = list(dict.fromkeys(spec for found in results for spec in found["over"]))
    lines = [f"return at the usual weights: {over_seeds([found['return'] for found in results])}"]
    for spec in specs:
        lines.append(f"minus {spec}: {over_seeds([found['over'][spec]['mean'] for found in results])}")
    gains = [found["hypervolume"]["gain"] for found in results]
    lows = ", ".join(f"{found['hypervolume']['low']:+.3f} to {found['hypervolume']['high']:+.3f}" for found in results)
    return [*lines, f"hypervolume over that of the fixed strategies: {over_seeds(gains)} (95% over episodes, by seed: {lows})"]


T_TABLE = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t by number of seeds, two-sided, 95%."""


def over_seeds(values: Sequence[float]) -> str:
    """Returns a mean, with half the width of its 95% interval over seeds if there are several."""
    if len(values) not in T_TABLE:
        return f"{fmean(values):+.3f}" + (f" ({len(values)} seeds)" if len(values) > 1 else "")
    width = T_TABLE[len(values)] * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return f"{fmean(values):+.3f} ± {width:.3f} ({len(values)} seeds)"


def _say_of(seed: int, text: str) -> None:
    _tell(f"seed {seed}: {text}")


def _tell(text: str) -> None:
    print(text, flush=True)
