"""Trains a policy with a language-model encoder and a head to decide about the cloud: `ec2-env train --method encoder`.

Read from top to bottom: simple rules race and the best of them are watched on train episodes, to know which suits a task by its
text; the head starts as the rule that suits the task and the preference; REINFORCE on whole episodes; if wanted, REINFORCE again,
with an adapter on the encoder's last layers; what is best on held-out train episodes is kept. The plan and the seed fix
everything; the clock decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ec2_env.bench.landscape_tree import Node
from ec2_env.envs import DecisionEnv
from ec2_env.models import smollm2
from ec2_env.models.choice import DecisionModel
from ec2_env.registry import require
from ec2_env.training.adapter import fresh_policy, restore_adapter, save_adapter
from ec2_env.training.bandit import shuffled_keys
from ec2_env.training.encoder_evaluation import swept_by, worth
from ec2_env.training.encoder_guide import ALWAYS, Watched, guide, watch_all
from ec2_env.training.encoder_head import LearningHead, fresh_head
from ec2_env.training.encoder_policy import (
    HEAD,
    EncoderPolicy,
    Head,
    Inputs,
    load_head,
    read,
    save_encoder_policy,
    save_head,
    shown,
)
from ec2_env.training.encoder_reinforce import reinforce
from ec2_env.training.encoder_text import SentenceEncoder, fresh_encoder
from ec2_env.training.evaluation import Score
from ec2_env.training.feature_evaluation import sweep_table, table, verdicts
from ec2_env.training.feature_training import FeaturePlan, card, check, references, test_keys
from ec2_env.training.metrics import Metrics
from ec2_env.training.preferences import SWEEP, USUAL
from ec2_env.training.rules import Rules, raced
from ec2_env.training.stages import Stages
from ec2_env.training.validation import CHOICES, held_out

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything.

    Attributes:
        settings: Arguments of `DecisionEnv`; no weights, since these are drawn.
        inputs: What is looked at beside the preference, see `ec2_env.training.encoder_policy.Inputs`.
        depth: Layers of the encoder, from the first.
        rules: Simple rules that race for being watched.
        rule_episodes: Train episodes of each in the first heat.
        watched: Train episodes that the winners are watched on.
        hidden: Units of the hidden layer of the head's network; 0 for a linear one.
        steps: Steps of REINFORCE with the encoder as it is.
        lora_steps: Steps with an adapter on its last layers.
        episodes: Train episodes in a step.
        copies: How often each is played.
        rate: Learning rate of REINFORCE.
        entropy: Weight of the entropy bonus.
        layers: Layers that the adapter is on, from the last that is kept.
        rank: Of the adapter.
        validation: Held-out train episodes that the stages are compared on, under each of four preferences.
        test_seeds: Instances of each task that are played for the figures.
        workers: Processes that watch.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Inputs = "both"
    depth: int = 4
    rules: int = 110
    rule_episodes: int = 20
    watched: int = 2000
    hidden: int = 64
    steps: int = 80
    lora_steps: int = 0
    episodes: int = 16
    copies: int = 4
    rate: float = 4e-3
    entropy: float = 0.0
    layers: int = 2
    rank: int = 8
    validation: int = 150
    test_seeds: int = 2
    workers: int = 2


def scaled(plan: Plan, factor: float) -> Plan:
    """Returns a plan with `factor` times the episodes."""
    return replace(
        plan,
        rules=max(4, min(plan.rules, round(4 * factor * plan.rules))),
        rule_episodes=max(1, round(plan.rule_episodes * factor)),
        watched=max(8, round(plan.watched * factor)),
        steps=max(1, round(plan.steps * factor)),
        lora_steps=round(plan.lora_steps * factor),
        validation=max(4, round(plan.validation * factor)),
    )


def prepare(out: Path, plan: Plan) -> None:
    """Plays what all seeds are compared with, once for all of them.

    Raises:
        ConfigurationError: if a model is not simulated.
    """
    check(compared_as(plan))
    references(out, compared_as(plan))


def compared_as(plan: Plan) -> FeaturePlan:
    """Returns a plan on features with the same settings and test episodes: figures are made as for these policies."""
    return FeaturePlan(method="ppo", settings=plan.settings, test_seeds=plan.test_seeds)


def train(out: Path, seed: int, plan: Plan, base: Path | None = None) -> list[Score]:
    """Trains one policy, saves it with a card, and returns how it does on the test split, beside the fixed strategies.

    Args:
        out: Folder of the policy. Stages that are finished there are not done again.
        seed: Fixes episodes, exploration and head.
        plan: How much of everything.
        base: Folder of the model that reads; SmolLM2 if None.

    Raises:
        ConfigurationError: if a model in the episodes is not simulated, SmolLM2 has not been pulled, or the folder holds another
            run.
        MissingExtra: if PyTorch, Transformers or PEFT is not installed.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    require("torch", extra="local").set_num_threads(plan.workers)
    same, say = compared_as(plan), partial(_say_of, seed)
    check(same)
    fixed = {score.name: score for score in references(out.parent if out.name == f"seed{seed}" else out, same)}
    stages, encoder = Stages(out, {"plan": asdict(plan), "seed": seed}), fresh_encoder(base or smollm2.folder(), plan.depth)
    with Metrics(out) as metrics:
        policies = trained(plan, seed, stages, encoder, say, metrics)
    keys = held_out(DecisionEnv(**plan.settings), CHOICES, seed, plan.validation)
    say(f"comparing the stages on {len(keys)} held-out train episodes")
    found = stages.records(
        "choice", lambda: {name: worth(one, plan.settings, keys) for name, one in policies.items()}, dict[str, tuple[float, ...]]
    )
    chosen = max(found, key=lambda name: float(np.mean(found[name])))
    say("  " + ", ".join(f"{name} {np.mean(returns):.3f}" for name, returns in found.items()) + f": {chosen}")
    policy = policies[chosen]
    say("playing the test split")
    mine = stages.records("test", lambda: swept_by(policy, plan.settings, test_keys(same)), list[Score])
    scores = dict(zip(SWEEP, mine, strict=True))
    usual = replace(scores[USUAL], name="encoder")
    print(f"{table('encoder', usual, fixed)}\n\n{sweep_table(scores)}", flush=True)
    results = {**verdicts(scores, fixed), "chosen": {"candidate": chosen, "mean_returns": found}}
    about = {**card(same, seed, results), "method": "encoder", "plan": asdict(plan)}
    trained_on = "smollm2" if base is None else str(base)
    if policy.encoder.adapted:
        save_adapter(DecisionModel(policy.encoder.model, policy.encoder.tokenizer), out, trained_on)
    save_encoder_policy(out, policy, trained_on, plan.depth, about)
    return [*fixed.values(), *mine, usual]


def trained(
    plan: Plan, seed: int, stages: Stages, encoder: SentenceEncoder, say: Say, metrics: Metrics
) -> dict[str, EncoderPolicy]:
    """Returns the policy after each stage of training, by its name, and the rules without the text to compare them with."""
    trees, episodes = watched(plan, seed, stages, say)
    alone = stages.once("rules_alone", partial(start, plan, "numbers", trees, episodes, encoder, seed), save_head, load_head)
    policies = {"rules": EncoderPolicy(head=alone, reader=encoder)}
    head = alone
    if plan.inputs != "numbers":
        say("reading what was seen")
        head = stages.once("start", partial(start, plan, plan.inputs, trees, episodes, encoder, seed), save_head, load_head)
        policies["rules by the text"] = EncoderPolicy(head=head, reader=encoder)
    if plan.steps:
        fit = partial(improved, plan, seed, encoder, head, say, partial(metrics.log, "reinforced"))
        head = stages.once("reinforced", fit, save_head, load_head)
        policies["reinforced"] = EncoderPolicy(head=head, reader=encoder)
    if plan.lora_steps:
        tune = partial(tuned, plan, seed, encoder, head, say, partial(metrics.log, "tuned"))
        policies["tuned"] = stages.once("tuned", tune, keep_tuned, partial(tuned_before, plan, seed, encoder))
    return policies


def watched(plan: Plan, seed: int, stages: Stages, say: Say) -> tuple[tuple[Node, ...], list[Watched]]:
    """Returns the rules that a head may start from, and the train episodes that they were watched on."""
    if not stages.has("rules"):
        say(f"racing {plan.rules} simple rules on train episodes")
    race = partial(raced, plan.settings, plan.rules, plan.rule_episodes, seed, say)
    winners = Rules.of(stages.records("rules", lambda: race().told(), list[tuple[int, list[float]]])).trees
    trees = tuple(dict.fromkeys((*winners, *ALWAYS)))
    if not stages.has("watched"):
        say(f"watching {len(trees)} rules on {plan.watched} train episodes each")
    watching = partial(watch_all, plan.settings, trees, plan.watched, seed, plan.workers)
    return trees, stages.records("watched", watching, list[Watched])


def start(
    plan: Plan, inputs: Inputs, trees: Sequence[Node], episodes: Sequence[Watched], encoder: SentenceEncoder, seed: int
) -> Head:
    """Returns a head that decides as the simple rule that suits the preference, and the task if texts are looked at."""
    seen = [state for one in episodes for state in one.states]
    texts = read(inputs, encoder, [state.prompt for state in seen])
    tasks = read(inputs, encoder, [one.states[0].prompt for one in episodes])
    rows = shown(inputs, np.array([state.features for state in seen]), texts)
    return fresh_head(inputs, guide(trees, episodes, tasks[:, : tasks.shape[1] // 2], seed), rows, plan.hidden, seed)


def improved(plan: Plan, seed: int, encoder: SentenceEncoder, head: Head, say: Say, note: Callable[..., None]) -> Head:
    """Returns a head that REINFORCE has trained, with the encoder as it is."""
    say(f"REINFORCE: {plan.steps} steps of {plan.episodes} episodes, {plan.copies} copies each")
    learning, keys = LearningHead(head), shuffled_keys(DecisionEnv(**plan.settings), seed)
    reinforce(learning, encoder, islice(keys, plan.watched, None), plan.steps, plan, seed, say, note)
    return learning.head()


def tuned(plan: Plan, seed: int, encoder: SentenceEncoder, head: Head, say: Say, note: Callable[..., None]) -> EncoderPolicy:
    """Returns a policy whose encoder was trained together with the head."""
    say(f"REINFORCE with an adapter on the last {plan.layers} layers: {plan.lora_steps} steps")
    adapted, learning, keys = (
        adapted_encoder(plan, seed, encoder),
        LearningHead(head),
        shuffled_keys(DecisionEnv(**plan.settings), seed),
    )
    parameters = [one for one in adapted.model.parameters() if one.requires_grad]
    passed = plan.watched + plan.steps * plan.episodes
    reinforce(learning, adapted, islice(keys, passed, None), plan.lora_steps, plan, seed + 1, say, note, parameters)
    return EncoderPolicy(head=learning.head(), reader=adapted)


def adapted_encoder(plan: Plan, seed: int, encoder: SentenceEncoder) -> SentenceEncoder:
    """Returns the same encoder with a new adapter, which does nothing yet, on its last layers."""
    policy = fresh_policy(encoder.folder, plan, seed)
    return SentenceEncoder(policy.model, policy.tokenizer, encoder.folder)


def keep_tuned(path: Path, policy: EncoderPolicy) -> None:
    """Writes a policy with an adapter as a stage."""
    save_adapter(DecisionModel(policy.encoder.model, policy.encoder.tokenizer), path, "")
    save_head(path / HEAD, policy.head)


def tuned_before(plan: Plan, seed: int, encoder: SentenceEncoder, path: Path) -> EncoderPolicy:
    """Reads a policy with an adapter that was written as a stage."""
    adapted = adapted_encoder(plan, seed, encoder)
    restore_adapter(DecisionModel(adapted.model, adapted.tokenizer), path)
    return EncoderPolicy(head=load_head(path / HEAD), reader=adapted)


def _say_of(seed: int, text: str) -> None:
    print(f"seed {seed}: {text}", flush=True)
