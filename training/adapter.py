"""The adapter that is trained: how it begins, how it is kept, and the cards that go with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import ec2_env
from ec2_env.models.choice import DecisionModel, shorten
from ec2_env.training.evaluation import Score, table

LORA_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Shape(Protocol):
    """What of a plan matters here, see `ec2_env.training.quick.Plan`."""

    @property
    def depth(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def rank(self) -> int: ...


def fresh_policy(base: Path, plan: Shape, seed: int) -> DecisionModel:
    """Returns the base model with a new adapter, which does nothing yet, on its last layers; float32."""
    import datasets
    import peft
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()  # a row of bars for each dataset that a trainer reads
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


def save_adapter(policy: DecisionModel, folder: Path, trained_on: str) -> None:
    """Writes the adapter in PEFT's form; no path of this machine remains in it, unless `trained_on` is one."""
    folder.mkdir(parents=True, exist_ok=True)
    policy.model.save_pretrained(folder, selected_adapters=["default"])
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's form, which holds a path of this machine
    config["base_model_name_or_path"] = trained_on
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def restore_adapter(policy: DecisionModel, folder: Path) -> None:
    """Sets the policy's adapter to one that was saved from a policy of the same shape."""
    import peft
    from safetensors.torch import load_file

    peft.set_peft_model_state_dict(policy.model, load_file(folder / "adapter_model.safetensors"))
    policy.forget()


def write_card(folder: Path, trained_on: str, seed: int, plan: Mapping[str, Any], scores: Sequence[Score] = ()) -> None:
    """Writes `card.json`: what the adapter was made from, with which versions, and how policies did."""
    import peft
    import torch
    import transformers
    import trl

    versions = {module.__name__: module.__version__ for module in (ec2_env, peft, torch, transformers, trl)}
    results = {score.name: {"mean_return": score.mean, "episodes": len(score.returns)} for score in scores}
    card = {"base_model": trained_on, "seed": seed, "plan": plan, "versions": versions, "results": results}
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def write_readme(
    folder: Path, trained_on: str, seed: int, plan: Mapping[str, Any], scores: Sequence[Score], said: Sequence[str]
) -> None:
    """Writes the adapter's model card for people; the last score is that of the adapter."""
    (folder / "README.md").write_text(
        f"---\nbase_model: {trained_on}\nlibrary_name: peft\nlicense: apache-2.0\n---\n"
        "# A policy for the decision about the cloud\n\n"
        f"LoRA adapter for the first {plan['depth']} layers of {trained_on}, trained on the train split of "
        f"{dict(plan['settings']) or 'all domains'}\nby `ec2-env train` with seed {seed} (ec2-env {ec2_env.__version__}; "
        "all of the plan is in `card.json`). The models in its episodes are simulated.\n\n"
        "Use it as the strategy `learned:FOLDER`. On the test split:\n\n"
        f"{table(scores, scores[-1].name)}\n\n" + "\n".join(f"- {line}" for line in said) + "\n",
        encoding="utf-8",
    )
