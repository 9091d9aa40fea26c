"""Trains a small language model to do the work and to call the cloud: `ec2-env train --method agent`.

Read from top to bottom: solutions of short tasks as conversations, a first supervised part on the work alone, a look at which
steps the model still gets wrong, a second part in which it calls `invoke_cloud` before those, GRPO on whole episodes of all tasks
at once (TRL's `environment_factory`), and a table on the test split. Plan and seed fix everything; the clock decides nothing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ec2_env.envs import DecisionEnv
from ec2_env.models import smollm2
from ec2_env.models.base import ModelCard
from ec2_env.models.hf import LocalModel, LocalOptions
from ec2_env.registration import register
from ec2_env.registry import require
from ec2_env.rollout import EpisodeKey
from ec2_env.training.adapter import LORA_MODULES
from ec2_env.training.agent_card import Clouded, Measured, lines, load_adapter, save_adapter, table, write_cards
from ec2_env.training.agent_decoding import Decoder
from ec2_env.training.agent_grpo import improve
from ec2_env.training.agent_play import Played, play_agent
from ec2_env.training.agent_rows import Example, examples, shares
from ec2_env.training.agent_sft import fine_tune, right_calls
from ec2_env.training.evaluation import Score
from ec2_env.training.stages import Stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything.

    Attributes:
        settings: Arguments of `WorkspaceEnv`; its cloud model is simulated, for solutions are played with it.
        tasks: What is learned; short ones of several domains.
        model: Folder of the base model in Transformers' format; SmolLM2 if empty.
        dtype: Type of its weights; the adapter's are float32.
        device: PyTorch device, such as "cpu" or "cuda".
        solutions: Conversations of the first part, without the cloud.
        held_out: Instances of each task, of the train split, on which it is looked which steps are hard.
        hard: Share of right calls below which a step is hard.
        invocations: Conversations of the second part.
        plain: Share of these that are without the cloud, so that the model can also do without.
        batch: Conversations in a step of supervised training.
        rate: Learning rate of supervised training.
        steps: Steps of GRPO.
        prompts: Episodes in a step of GRPO.
        generations: Attempts at each.
        rows: Attempts whose gradients are computed at once.
        grpo_rate: Learning rate of GRPO.
        temperature: Of the attempts.
        max_tokens: Longest prompt, and longest episode after its prompt.
        max_new_tokens: Longest turn.
        layers: How many layers get an adapter, from the last; the others only run forward. 0 for all.
        rank: Of the adapter.
        save_every: Steps of supervised training between checkpoints.
        test_seeds: Instances of each task that are played for the table.
        together: Episodes that are played in step with one another.
    """

    settings: Mapping[str, Any] = field(
        default_factory=lambda: {"cloud": "sim:gpt-5.4", "language": "en", "max_episode_steps": 14}
    )
    tasks: tuple[str, ...] = ("forward_invoice", "largest_text")
    model: str = ""
    dtype: str = "bfloat16"
    device: str = "cpu"
    solutions: int = 48
    held_out: int = 4
    hard: float = 0.6
    invocations: int = 24
    plain: float = 0.25
    batch: int = 1
    rate: float = 2e-3
    steps: int = 3
    prompts: int = 1
    generations: int = 8
    rows: int = 1
    grpo_rate: float = 5e-5
    temperature: float = 1.0
    max_tokens: int = 4096
    max_new_tokens: int = 96
    layers: int = 15
    rank: int = 16
    save_every: int = 10
    test_seeds: int = 5
    together: int = 12


def scaled(plan: Plan, factor: float) -> Plan:
    """Returns a plan with `factor` times the conversations and GRPO steps."""
    return replace(
        plan,
        solutions=max(len(plan.tasks), round(plan.solutions * factor)),
        invocations=max(len(plan.tasks), round(plan.invocations * factor)),
        steps=max(1, round(plan.steps * factor)),
    )


def train(out: Path, seed: int, plan: Plan, base: Path | None = None) -> list[Score]:
    """Trains an adapter, saves it with a card, and prints and returns how it does on the test split.

    Args:
        out: Folder for the adapter; made if need be. What was finished in it before is not done again.
        seed: Fixes the data, the training and the order of everything.
        plan: How much of everything.
        base: Folder of the model to train, in the place of `plan.model`.

    Raises:
        ConfigurationError: if SmolLM2 has not been pulled, or the folder holds another run.
        MissingExtra: if an extra is not installed.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for module in ("torch", "transformers", "peft", "datasets", "trl"):
        require(module, extra="train")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # TRL and PEFT use its older names
    register()
    folder = base or (Path(plan.model) if plan.model else smollm2.folder())
    trained_on = str(folder) if base or plan.model else "smollm2"
    stages = Stages(out, {"plan": asdict(plan), "seed": seed, "model": trained_on})
    chat = fresh_agent(folder, plan, seed)
    env = DecisionEnv(**plan.settings)
    measures = [measured("untrained", chat, env, plan, stages, ("with the cloud",))]

    def adapted(name: str, part: Any) -> None:
        """Trains the next part, or takes it from an earlier run."""
        stages.once(
            name,
            make=lambda: part(stages.workplace(name)),
            save=lambda path, _: save_adapter(chat, path, trained_on),
            load=lambda path: load_adapter(chat, path),
        )

    def alone(workplace: Path) -> None:
        found = list(examples(chat, env, train_keys(plan, seed, "alone", plan.solutions)))
        say(f"SFT on the work alone: {len(found)} solutions, {sum(len(one.places) for one in found)} calls")
        fine_tune(chat, found, plan, seed, workplace, say)

    adapted("alone", alone)
    measures.append(measured("SFT, work alone", chat, env, plan, stages, ("alone",)))
    found = shares(measures[-1].right_train)
    hard = frozenset(name for name, share in found.items() if share < plan.hard)
    say(f"hard steps ({len(hard)} of {len(found)}): {', '.join(sorted(hard)) or 'none'}")

    def asking(workplace: Path) -> None:
        found = mixed(chat, env, plan, seed, hard)
        say(f"SFT with the cloud before hard steps: {len(found)} solutions")
        fine_tune(chat, found, plan, seed, workplace, say)

    adapted("asking", asking)
    measures.append(measured("SFT", chat, env, plan, stages))

    def grpo(workplace: Path) -> None:
        say(f"GRPO: {plan.steps} steps of {plan.prompts} episodes, {plan.generations} attempts each")
        improve(chat, train_keys(plan, seed, "grpo", plan.steps * plan.prompts), plan, seed, workplace, say)

    adapted("grpo", grpo)
    measures.append(measured("SFT + GRPO", chat, env, plan, stages))
    save_adapter(chat, out, trained_on)
    write_cards(out, trained_on, seed, plan.tasks, asdict(plan), found, measures)
    print(table(measures), flush=True)
    for line in lines(measures):
        print(line, flush=True)
    return [measure.score for measure in measures]


def say(text: str) -> None:
    """Tells how far it has come."""
    print(text, flush=True)


def fresh_agent(folder: Path, plan: Plan, seed: int) -> LocalModel:
    """Returns the base model with a new adapter, which does nothing yet, on its last layers."""
    import datasets
    import peft
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()  # a row of bars for each dataset that a trainer reads
    transformers.set_seed(seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, plan.dtype))
    depth = model.config.num_hidden_layers
    adapter = peft.LoraConfig(
        r=plan.rank,
        lora_alpha=2 * plan.rank,
        target_modules=list(LORA_MODULES),
        layers_to_transform=list(range(max(0, depth - plan.layers), depth)) if plan.layers else None,
        task_type="CAUSAL_LM",
    )
    options = LocalOptions(max_new_tokens=plan.max_new_tokens, max_context_tokens=plan.max_tokens + plan.max_new_tokens)
    card = ModelCard(name=folder.name, family="o200k", parameters=float(model.num_parameters()))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return LocalModel(peft.get_peft_model(model, adapter).to(plan.device), tokenizer, card, options)


BOTH: tuple[Clouded, ...] = ("alone", "with the cloud")
PARTS = {"held out": 0, "alone": 1, "asking": 2, "grpo": 3}
"""Every part of the training has instances of its own."""
APART = 100_000


def train_keys(plan: Plan, seed: int, part: str, count: int) -> list[EpisodeKey]:
    """Returns episodes of the train split; tasks take turns."""
    first = (seed * len(PARTS) + PARTS[part]) * APART
    tasks = plan.tasks
    return [key_of(plan, tasks[n % len(tasks)], "train", first + n // len(tasks)) for n in range(count)]


def key_of(plan: Plan, task: str, split: str, seed: int) -> EpisodeKey:
    return EpisodeKey(task=task, language=plan.settings["language"], split=split, seed=seed, trial=0)


def test_keys(plan: Plan) -> list[EpisodeKey]:
    """Returns the episodes of the table."""
    return [key_of(plan, task, "test", seed) for seed in range(plan.test_seeds) for task in plan.tasks]


def held_out(chat: LocalModel, env: DecisionEnv, plan: Plan) -> list[Example]:
    """Returns solutions of the train split that nothing is trained on; the same ones for every seed of the training."""
    return list(examples(chat, env, train_keys(plan, 0, "held out", plan.held_out * len(plan.tasks))))


def mixed(chat: LocalModel, env: DecisionEnv, plan: Plan, seed: int, hard: Collection[str]) -> list[Example]:
    """Returns solutions with the cloud used before hard steps, and among them some without a cloud."""
    keys = train_keys(plan, seed, "asking", plan.invocations)
    without = round(plan.plain * len(keys))
    return [
        *examples(chat, env, keys[without:], hard, cloud=True),
        *examples(chat, env, keys[:without]),
    ]


def measured(
    name: str,
    chat: LocalModel,
    env: DecisionEnv,
    plan: Plan,
    stages: Stages,
    how: Sequence[Clouded] = ("alone", "with the cloud"),
) -> Measured:
    """Returns how the model does now: right calls under teacher forcing, and test episodes without and with a cloud."""

    keys = test_keys(plan)

    def right(split: str) -> dict[str, list[bool]]:
        say(f"{name}: right calls, {split} split")
        return right_calls(chat, held_out(chat, env, plan) if split == "train" else list(examples(chat, env, keys)))

    def play(how: Clouded) -> Played:
        say(f"{name}: {len(keys)} episodes of the test split, {how}")
        decoder = Decoder(chat, plan.max_new_tokens)
        return play_agent(name, decoder, plan.settings, keys, cloud=how != "alone", together=plan.together)

    return Measured(
        name=name,
        right_train=stages.records(f"{name}, right calls, train", lambda: right("train"), dict[str, list[bool]]),
        right_test=stages.records(f"{name}, right calls, test", lambda: right("test"), dict[str, list[bool]]),
        played={word: stages.records(f"{name}, {word}", partial(play, word), Played) for word in how},
    )
