"""Trains a small language model to decide about the cloud, on two CPU cores in minutes: `ec2-env train --quick`.

Read from top to bottom: a plan of fixed size, labels from a teacher that looks ahead, a supervised warm start (TRL's SFTTrainer,
one trained token), GRPO on returns of the env (TRL's GRPOTrainer), and a table on the test split. The plan and the seed fix
everything; the clock decides nothing.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import ec2_env
from ec2_env.envs import DecisionEnv
from ec2_env.models import smollm2
from ec2_env.models.choice import DecisionModel, load_decision_model, shorten
from ec2_env.registry import require
from ec2_env.strategy import load_strategy
from ec2_env.training.evaluation import Score, by_prompt, by_strategy, difference, evaluate, table
from ec2_env.training.grpo import QUIET, improve
from ec2_env.training.smoothing import SmoothedTeacher
from ec2_env.training.states import State, episode_keys, labelled_states, visited_states
from ec2_env.training.teacher import BASES, Teacher, best

FIXED = (
    "edge_only",
    "cloud_only",
    "cloud_only:redacted",
    "sketch_guided",
    "step_routing",
    "step_routing:redacted",
    "adaptive_assistance",
    "adaptive_assistance:redacted",
)
"""Strategies that the trained policy is compared with, beside `random` and the untrained model."""
LORA_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything.

    Attributes:
        settings: Arguments of `DecisionEnv`.
        states: States that the teacher labels.
        draws: Rollouts of the teacher for each decision.
        examples: Labels of the warm start, drawn from the states.
        batch: Examples in a step of the warm start.
        warm_rate: Learning rate of the warm start.
        softness: Advantage by which a decision has to be better to be e times as likely in the labels.
        steps: Steps of GRPO.
        prompts: States in a step of GRPO.
        generations: Decisions drawn for each.
        reward_draws: Rollouts behind a reward.
        rate: Learning rate of GRPO.
        entropy: Weight of the entropy bonus in GRPO.
        depth: Layers of the model that are kept, from the first; see `ec2_env.models.choice.shorten`.
        layers: How many of them get an adapter, from the last; the others only run forward.
        rank: Of the adapter.
        test_seeds: Instances of each task and language that are played for the table.
        workers: Processes that label.
    """

    settings: Mapping[str, Any] = field(default_factory=lambda: {"domain": "email"})
    states: int = 1600
    draws: int = 4
    examples: int = 2000
    batch: int = 8
    warm_rate: float = 2e-3
    softness: float = 0.005
    steps: int = 60
    prompts: int = 12
    generations: int = 12
    reward_draws: int = 8
    rate: float = 1e-4
    entropy: float = 0.0
    depth: int = 12
    layers: int = 6
    rank: int = 16
    test_seeds: int = 2
    workers: int = 2


def scaled(plan: Plan, factor: float) -> Plan:
    """Returns a plan with `factor` times the states, labels and GRPO steps."""
    return replace(
        plan,
        states=max(50, round(plan.states * factor)),
        examples=max(plan.batch, round(plan.examples * factor)),
        steps=max(1, round(plan.steps * factor)),
    )


def train(out: Path, seed: int, plan: Plan, base: Path | None = None, pace: bool = True) -> list[Score]:
    """Trains an adapter, saves it with a card, and prints and returns how it does on the test split.

    Args:
        out: Folder for the adapter; made if need be.
        seed: Fixes labels, training and the order of everything.
        plan: How much of everything.
        base: Folder of the model to train; SmolLM2 if None.
        pace: Whether to say how long each part took.

    Raises:
        ConfigurationError: if SmolLM2 has not been pulled.
        MissingExtra: if an extra is not installed.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for module in ("torch", "transformers", "peft", "datasets", "trl"):
        require(module, extra="train")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # TRL and PEFT use its older names
    say = Progress(pace)
    policy = fresh_policy(base or smollm2.folder(), plan, seed)
    keys = list(episode_keys(DecisionEnv(**plan.settings), "test", range(plan.test_seeds)))

    say(f"labelling {plan.states} states of the train split by looking ahead ({plan.draws} rollouts a decision)")
    teacher = Teacher(bases=BASES[:1], draws=plan.draws)
    states = labelled_states(plan.settings, plan.states, seed, teacher, plan.workers)
    smoothed = SmoothedTeacher(states=states)

    say(f"playing {len(keys)} episodes of the test split with the untrained model and the references")
    scores = references(plan, keys, smoothed, teacher)
    whole = load_decision_model("") if base is None else policy
    scores.append(evaluate("untrained model", by_prompt(whole.decide), plan.settings, keys))

    say(f"warm start: {plan.examples} labels, {plan.examples // plan.batch} steps")
    warm_start(policy, labels(states, smoothed, plan, seed), plan, seed, say)
    trained_on = "smollm2" if base is None else str(base)
    write_adapter(policy, out / "warm_start", seed, plan, trained_on, scores=())
    policy.forget()
    scores.append(evaluate("SFT", by_prompt(policy.decide), plan.settings, keys))
    say(f"SFT: {scores[-1].mean:.3f}")

    say(f"GRPO: {plan.steps} steps of {plan.prompts} states, {plan.generations} decisions each")
    visited = visited_states(plan.settings, smoothed, plan.steps * plan.prompts, seed)
    improve(policy, visited, plan, seed, say)
    policy.forget()
    scores.append(evaluate("SFT + GRPO", by_prompt(policy.decide), plan.settings, keys))

    write_adapter(policy, out, seed, plan, trained_on, scores)
    write_readme(out, seed, plan, trained_on, scores)
    say(f"adapter and card are in {out}; try: ec2-env bench --strategy learned:{out}")
    print(table(scores, "SFT + GRPO"), flush=True)
    for line in verdict(scores):
        print(line, flush=True)
    return scores


class Progress:
    """Prints what is being done, and how many seconds after the start."""

    def __init__(self, pace: bool) -> None:
        self.start = time.perf_counter() if pace else None

    def __call__(self, text: str) -> None:
        print(text if self.start is None else f"[{time.perf_counter() - self.start:5.0f} s] {text}", flush=True)


def fresh_policy(base: Path, plan: Plan, seed: int) -> DecisionModel:
    """Returns the base model with a new adapter, which does nothing yet, on its last layers; float32."""
    import peft
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.set_seed(seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    shorten(model, plan.depth)
    depth = model.config.num_hidden_layers
    adapter = peft.LoraConfig(
        r=plan.rank,
        lora_alpha=2 * plan.rank,
        target_modules=list(LORA_MODULES),
        layers_to_transform=list(range(max(0, depth - plan.layers), depth)),
        task_type="CAUSAL_LM",
    )
    return DecisionModel(peft.get_peft_model(model, adapter), transformers.AutoTokenizer.from_pretrained(base))


def references(plan: Plan, keys: Sequence[Any], smoothed: SmoothedTeacher, teacher: Teacher) -> list[Score]:
    """Plays the policies that need no language model."""
    scores = []
    for spec in ("random", *FIXED):
        strategy = load_strategy(spec)
        scores.append(evaluate(spec, by_strategy(strategy), plan.settings, keys, edge=strategy.uses_edge))
    scores.append(evaluate(f"rule {BASES[0].name}", by_strategy(BASES[0]), plan.settings, keys))
    scores.append(evaluate("teacher, smoothed", by_strategy(smoothed), plan.settings, keys))
    scores.append(evaluate("teacher, looking ahead", lambda envs: [teacher.decide(env) for env in envs], plan.settings, keys))
    return scores


def labels(states: Sequence[State], smoothed: SmoothedTeacher, plan: Plan, seed: int) -> list[tuple[str, list[float]]]:
    """Returns prompts with the chances that the smoothed teacher gives each decision: softmax(advantage / softness).

    Drawn so that no decision is the best one in more than half, and less often where little depends on the decision.
    """
    values = np.array(smoothed.values([state.prompt for state in states]))
    chosen = [best(row) for row in values.tolist()]
    stakes = values.max(axis=1) - values.mean(axis=1) + 0.01
    whole = {decision: stakes[[one == decision for one in chosen]].sum() for decision in set(chosen)}
    weights = [stake * min(1.0, stakes.sum() / 2 / whole[decision]) for decision, stake in zip(chosen, stakes, strict=True)]
    chances = np.exp((values - values.max(axis=1, keepdims=True)) / plan.softness)
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = random.Random(seed).choices(range(len(states)), weights, k=plan.examples)
    return [(states[n].prompt, chances[n].tolist()) for n in drawn]


def warm_start(
    policy: DecisionModel, examples: Sequence[tuple[str, list[float]]], plan: Plan, seed: int, say: Callable[[str], None]
) -> None:
    """Trains the adapter to name the teacher's decisions; the loss is on the one token that decides, among the six digits."""
    import datasets
    import torch
    import transformers
    import trl

    class Telling(transformers.TrainerCallback):  # type: ignore[misc]  # Transformers is not typed here
        """Says the loss on one line."""

        def on_log(self, arguments: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
            if "loss" in logs:
                say(f"  step {state.global_step}: loss {float(logs['loss']):.3f}")

    class DecidingTrainer(trl.SFTTrainer):  # type: ignore[misc]  # TRL is not typed
        """Asks the model for the deciding token's logits only: those of a whole batch would take most of the time."""

        def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
            place = (inputs["labels"] != -100).int().argmax(-1)
            kept = (place - 1).unique()
            logits = model(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], logits_to_keep=kept, use_cache=False
            ).logits
            rows = torch.arange(len(place))
            wanted = torch.tensor(
                [chances[tuple(ids[:end])] for ids, end in zip(inputs["input_ids"].tolist(), place, strict=True)]
            )
            scores = logits[rows, torch.searchsorted(kept, place - 1)][:, policy.digits]
            return torch.nn.functional.cross_entropy(scores.float(), wanted)

    rows, chances = [], {}
    for prompt, wanted in examples:
        tokens = policy.tokens(prompt)
        chances[tuple(tokens)] = wanted
        rows.append({"input_ids": [*tokens, policy.digits[best(wanted)]], "completion_mask": [0] * len(tokens) + [1]})
    with tempfile.TemporaryDirectory() as scratch:
        trainer = DecidingTrainer(
            model=policy.model,
            args=trl.SFTConfig(
                output_dir=scratch,
                seed=seed,
                num_train_epochs=1,
                per_device_train_batch_size=plan.batch,
                learning_rate=plan.warm_rate,
                lr_scheduler_type="cosine",
                warmup_steps=0.1,
                completion_only_loss=True,
                max_length=None,
                logging_steps=max(1, len(rows) // plan.batch // 10),
                **QUIET,
            ),
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=policy.tokenizer,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.add_callback(Telling())
        trainer.train()


def verdict(scores: Sequence[Score]) -> list[str]:
    """Says in words how the trained policies stand, with 95% intervals of differences on the same episodes."""
    named = {score.name: score for score in scores}
    fixed = max((named[spec] for spec in FIXED), key=lambda score: score.mean)
    lines = []
    for mine in (named["SFT"], named["SFT + GRPO"]):
        for other in (named["untrained model"], named["random"], fixed, named["teacher, looking ahead"]):
            lines.append(compared(mine, other))
    return [*lines, compared(named["SFT + GRPO"], named["SFT"])]


def compared(mine: Score, other: Score) -> str:
    """Says how one policy stands to another."""
    gap, width = difference(mine, other)
    word = "better than" if gap > width else "worse than" if gap < -width else "not distinguishable from"
    return f"{mine.name} is {word} {other.name}: {gap:+.3f} ± {width:.3f}"


def write_adapter(policy: DecisionModel, folder: Path, seed: int, plan: Plan, trained_on: str, scores: Sequence[Score]) -> None:
    """Writes the adapter and `card.json`; no path of this machine remains in them, unless `trained_on` is one."""
    import peft
    import torch
    import transformers
    import trl

    folder.mkdir(parents=True, exist_ok=True)
    policy.model.save_pretrained(folder, selected_adapters=["default"])
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's form, which holds a path of this machine
    config["base_model_name_or_path"] = trained_on
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    versions = {module.__name__: module.__version__ for module in (ec2_env, peft, torch, transformers, trl)}
    results = {score.name: {"mean_return": score.mean, "episodes": len(score.returns)} for score in scores}
    card = {"base_model": trained_on, "seed": seed, "plan": asdict(plan), "versions": versions, "results": results}
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def write_readme(folder: Path, seed: int, plan: Plan, trained_on: str, scores: Sequence[Score]) -> None:
    """Writes the adapter's model card for people."""
    (folder / "README.md").write_text(
        f"---\nbase_model: {trained_on}\nlibrary_name: peft\nlicense: apache-2.0\n---\n"
        "# A policy for the decision about the cloud\n\n"
        f"LoRA adapter for the first {plan.depth} layers of {trained_on}, trained on the train split of {dict(plan.settings)}\n"
        f"by `ec2-env train --quick --seed {seed}` (ec2-env {ec2_env.__version__}). The models in its episodes are simulated.\n\n"
        "Use it as the strategy `learned:FOLDER`; `warm_start/` holds it as it was before GRPO. On the test split:\n\n"
        f"{table(scores, 'SFT + GRPO')}\n\n"
        + "\n".join(f"- {line}" for line in verdict(scores))
        + "\n\n`card.json` holds plan, seeds, versions and results.\n",
        encoding="utf-8",
    )
