"""The supervised warm start: TRL's SFTTrainer, one trained token, and the chances that the teacher gives as labels."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ec2_env.models.choice import DecisionModel
from ec2_env.training.deciding import QUIET, Figure, telling
from ec2_env.training.smoothing import GuidedTeacher
from ec2_env.training.states import State
from ec2_env.training.teacher import best

Example = tuple[str, list[float]]
"""A prompt, and the chance of each decision."""


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.quick.Plan`."""

    @property
    def examples(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def warm_rate(self) -> float: ...
    @property
    def softness(self) -> float: ...


def labels(states: Sequence[State], teacher: GuidedTeacher, plan: Sizes, seed: int) -> list[Example]:
    """Returns prompts with the chances that the teacher gives each decision: softmax(worth / softness).

    States are drawn with equal chances, but a decision that is the best in more than half of them counts as if it were in half.
    """
    values = teacher.values([state.prompt for state in states], [state.features for state in states])
    chosen = [best(row) for row in values.tolist()]
    often = Counter(chosen)
    weights = [min(1.0, len(chosen) / 2 / often[decision]) for decision in chosen]
    chances = np.exp((values - values.max(axis=1, keepdims=True)) / plan.softness)
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = random.Random(seed).choices(range(len(states)), weights, k=plan.examples)
    return [(states[n].prompt, chances[n].tolist()) for n in drawn]


def warm_start(policy: DecisionModel, examples: Sequence[Example], plan: Sizes, seed: int, figure: Figure) -> None:
    """Trains the adapter to name the teacher's decisions; the loss is on the one token that decides, among the six digits."""
    import datasets
    import torch
    import transformers
    import trl

    rows, chances = [], {}
    for prompt, wanted in examples:
        tokens = policy.tokens(prompt)
        chances[tuple(tokens)] = wanted
        rows.append({"input_ids": [*tokens, policy.digits[best(wanted)]], "completion_mask": [0] * len(tokens) + [1]})

    class DecidingTrainer(trl.SFTTrainer):  # type: ignore[misc]  # TRL is not typed
        """Asks the model for the six digits only: the logits of whole prompts would take most of the time."""

        def compute_loss(self, model: Any, inputs: Mapping[str, Any], *_: Any, **__: Any) -> Any:
            ends = (inputs["labels"] != -100).int().argmax(-1).tolist()
            prompts = [tuple(ids[:end]) for ids, end in zip(inputs["input_ids"].tolist(), ends, strict=True)]
            found = policy.log_chances(prompts)
            wanted = torch.tensor([chances[prompt] for prompt in prompts], device=found.device)
            return -(wanted * found).sum(-1).mean()

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
        trainer.add_callback(telling(figure, "sft"))
        trainer.train()
    policy.forget()
