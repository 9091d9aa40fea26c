"""What TRL's trainers need to know of a policy that answers with one of six digits: one pass over each prompt, six log chances.

TRL asks a model for the log probability of every token of a completion, over the whole vocabulary, in a pass for each completion.
Here a completion is one digit, the rows of a batch share prompts, and what counts are the chances among six digits. So while a
trainer of TRL runs, the model answers its question (`fused_lm_head=True`) from `DecisionModel.log_chances`: each prompt once,
whatever digits follow it. The losses are TRL's own.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ec2_env.models.choice import DecisionModel

Figure = Callable[[str, int, str, float], None]
"""Takes down a figure: stage, step, name, value."""
QUIET: dict[str, Any] = {
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "dataloader_pin_memory": False,
}
"""Settings of TRL's trainers here: in float32, without saving and without reports."""


@contextlib.contextmanager
def deciding(
    trainer: Any, policy: DecisionModel, seen: Callable[[list[tuple[int, ...]], Any], None] | None = None
) -> Iterator[None]:
    """Has the trainer's model answer from the six digits for the time of the context, and tidies up after the trainer.

    Args:
        trainer: One of TRL's, made for the policy's model.
        policy: What is trained.
        seen: Is told the prompts and log chances of each pass that gradients flow through.
    """
    import torch
    from trl.trainer.utils import FusedCausalLMOutput

    base = policy.model.get_base_model()
    plain = types.MethodType(type(base).forward, base)

    def forward(model: Any, *arguments: Any, fused_lm_head: bool = False, labels: Any = None, **inputs: Any) -> Any:
        if not fused_lm_head:
            return plain(*arguments, **inputs)
        places, digits = answers(labels, policy.digits)
        width, mask = inputs["input_ids"].shape[1], inputs["attention_mask"].tolist()
        prompts = [
            tuple(token for token, real in zip(row[:place], here[:place], strict=True) if real)
            for row, place, here in zip(inputs["input_ids"].tolist(), places, mask, strict=True)
        ]
        chances = policy.log_chances(prompts)
        if seen is not None and chances.requires_grad:
            seen(prompts, chances.detach())
        rows, columns = torch.arange(len(places)), torch.tensor(places) - 1
        chosen = chances.gather(1, torch.tensor(digits, device=chances.device)[:, None])[:, 0]

        def spread(values: Any) -> Any:
            return values.new_zeros(len(places), width - 1).index_put((rows, columns), values)

        return FusedCausalLMOutput(
            log_probs=spread(chosen),
            entropy=spread(-(chances.exp() * chances).sum(-1).detach()),
            mean_logits=spread(chances.mean(-1).detach()),
            is_top1=spread((chosen >= chances.max(-1).values).float().detach()).bool(),
        )

    base.forward = types.MethodType(forward, base)
    try:
        yield
    finally:
        del base.forward
        if "ref" in policy.model.peft_config:
            policy.model.delete_adapter("ref")
        policy.forget()


def answers(labels: Any, digits: list[int]) -> tuple[list[int], list[int]]:
    """Returns where the digit of each row stands, and which decision it is.

    Args:
        labels: Token ids to be scored, -100 elsewhere; shape (rows, width). What else is scored (a space, an end) is no decision.
        digits: Token id of each decision.
    """
    places, found = [], []
    for row in labels.tolist():
        place = next(place for place, token in enumerate(row) if token in digits)
        places.append(place)
        found.append(digits.index(row[place]))
    return places, found


def telling(figure: Figure, stage: str) -> Any:
    """Returns a callback that takes down the loss of what a trainer logs."""
    import transformers

    class Telling(transformers.TrainerCallback):  # type: ignore[misc]  # Transformers is not typed here
        """Takes it down."""

        def on_log(self, arguments: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
            if "loss" in logs:
                figure(stage, state.global_step, "loss", float(logs["loss"]))

    return Telling()
