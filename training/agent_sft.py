"""Supervised training of the agent's own turns (TRL's SFTTrainer, PEFT), and how many of the next calls a model gets right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ec2_env.models.hf import LocalModel
from ec2_env.training.agent_rows import Example, trainer_row


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.agent.Plan`."""

    @property
    def device(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def save_every(self) -> int: ...


def on_device(device: str) -> dict[str, Any]:
    """Returns settings of TRL's trainers: weights keep their type, nothing is reported, and one checkpoint is kept."""
    return {
        "use_cpu": device == "cpu",
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "save_strategy": "steps",
        "save_total_limit": 1,
    }


def checkpoint(workplace: Path) -> str | None:
    """Returns the newest whole checkpoint of a trainer in a folder, if there is one."""
    found = [path for path in workplace.glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return str(max(found, key=lambda path: int(path.name.partition("-")[2]))) if found else None


def fine_tune(
    chat: LocalModel, examples: Sequence[Example], plan: Sizes, seed: int, workplace: Path, say: Callable[[str], None]
) -> None:
    """Trains the model's adapter to write the agent's turns; goes on from the last checkpoint in `workplace`.

    Args:
        chat: Its model has an adapter, which is trained in place.
        examples: Conversations; each is seen once, in an order that the seed fixes.
        plan: How much of everything.
        seed: Fixes the order.
        workplace: Folder for checkpoints.
        say: Is told the loss now and then.
    """
    import datasets
    import torch
    import transformers
    import trl

    class Telling(transformers.TrainerCallback):  # type: ignore[misc]  # Transformers is not typed here
        """Says the loss on one line."""

        def on_log(self, arguments: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
            if "loss" in logs:
                say(f"  step {state.global_step}: loss {float(logs['loss']):.3f}")

    class TurnsTrainer(trl.SFTTrainer):  # type: ignore[misc]  # TRL is not typed
        """Asks the model for the logits of trained tokens only: they are a sixth of a conversation."""

        def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
            labels = inputs["labels"][:, 1:]
            kept = (labels != -100).any(0).nonzero()[:, 0]
            logits = model(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], logits_to_keep=kept, use_cache=False
            ).logits
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels[:, kept].flatten())

    steps = max(1, -(-len(examples) // plan.batch))
    trainer = TurnsTrainer(
        model=chat.model,
        args=trl.SFTConfig(
            output_dir=str(workplace),
            seed=seed,
            num_train_epochs=1,
            per_device_train_batch_size=plan.batch,
            learning_rate=plan.rate,
            lr_scheduler_type="cosine",
            warmup_steps=0.1,
            completion_only_loss=True,
            max_length=None,
            logging_steps=max(1, steps // 8),
            save_steps=plan.save_every,
            **on_device(plan.device),
        ),
        train_dataset=datasets.Dataset.from_list([trainer_row(example) for example in examples]),
        processing_class=chat.tokenizer,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Telling())
    trainer.train(resume_from_checkpoint=checkpoint(workplace))
    chat.model.eval()


def right_calls(chat: LocalModel, examples: Sequence[Example]) -> dict[str, list[bool]]:
    """Returns for each place in the solutions whether the model would have written the right call there, word for word.

    The conversation up to the call is the right one. A call is right if each of its tokens, the end of the turn included, is the
    likeliest one after the right tokens before it, which is what greedy decoding writes.

    Args:
        chat: The model.
        examples: Conversations that it was not trained on.
    """
    import torch

    found: dict[str, list[bool]] = {}
    for example in examples:
        turns = example.turns[: len(example.places)]
        kept = torch.tensor([position - 1 for start, end in turns for position in range(start, end)])
        ids = torch.tensor([example.tokens], device=chat.model.device)
        with torch.inference_mode():
            logits = chat.model(input_ids=ids, logits_to_keep=kept.to(ids.device), use_cache=False).logits[0]
        likeliest = iter(logits.argmax(-1).tolist())
        for (start, end), name in zip(turns, example.places, strict=True):
            written = [next(likeliest) for _ in range(start, end)]
            found.setdefault(name, []).append(written == example.tokens[start:end])
    return found
