"""GRPO on whole episodes of several tasks at once: TRL's trainer with one environment class for each task, and its tool loop.

The model is prompted as `ec2_env.models.hf` prompts it: tools in the system turn, a call as JSON text, results as user turns.
TRL is therefore given the model's own chat template, with a few lines before it that bring messages into this form, and a reader
of calls.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ec2_env.models.calltext import read_call
from ec2_env.models.hf import LocalModel
from ec2_env.models.toolchat import chat_turns
from ec2_env.prompts import AGENT
from ec2_env.registration import camel
from ec2_env.rollout import EpisodeKey
from ec2_env.task import recent_episode
from ec2_env.training.agent_decoding import Decoder
from ec2_env.training.agent_rows import offered_tools
from ec2_env.training.agent_sft import checkpoint, on_device
from ec2_env.training.env_factory import make_environment_class

AS_TEXT = """{%- set made = namespace(turns=[]) -%}
{%- for message in messages -%}
{%- if message.role == "tool" -%}
{%- set made.turns = made.turns + [{"role": "user", "content": "Result of " + message.name + ":\\n" + message.content}] -%}
{%- elif message.tool_calls -%}
{%- set call = message.tool_calls[0].function -%}
{%- set text = '{"name": "' + call.name + '", "arguments": ' + (call.arguments | tojson) + '}' -%}
{%- set made.turns = made.turns + [{"role": "assistant", "content": text}] -%}
{%- else -%}
{%- set made.turns = made.turns + [{"role": message.role, "content": message.content}] -%}
{%- endif -%}
{%- endfor -%}
{%- set messages = made.turns -%}
{%- set tools = none -%}
"""
"""What stands before a chat template: messages become the turns of `ec2_env.models.toolchat.chat_turns`."""


class Sizes(Protocol):
    """What of a plan matters here, see `ec2_env.training.agent.Plan`."""

    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def device(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def prompts(self) -> int: ...
    @property
    def generations(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def grpo_rate(self) -> float: ...
    @property
    def temperature(self) -> float: ...
    @property
    def max_new_tokens(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...


def tool_tokenizer(tokenizer: Any) -> Any:
    """Returns a copy of a tokenizer that renders and reads tool calls as JSON text."""
    made = copy.deepcopy(tokenizer)
    made.chat_template = AS_TEXT + tokenizer.chat_template
    made.response_template = {}  # so that TRL looks for none

    def parse_response(ids: Sequence[int], **_: Any) -> dict[str, Any]:
        text = tokenizer.decode(ids, skip_special_tokens=True).strip()
        call = read_call(text)
        if call is None or not isinstance(call["arguments"], dict):
            return {"role": "assistant", "content": text}
        return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]}

    made.parse_response = parse_response
    return made


def episode_row(key: EpisodeKey) -> dict[str, Any]:
    """Returns the row of a dataset that chooses an episode and its environment, with the prompt that the agent begins with."""
    episode = recent_episode(key.task, key.seed, key.language, key.split)  # type: ignore[arg-type]  # checked inside
    first = [{"role": "system", "content": AGENT}, {"role": "user", "content": episode.instruction}]
    prompt = chat_turns(first, offered_tools(key.task, cloud=True))
    chosen = {"task": key.task, "language": key.language, "split": key.split, "seed": key.seed}
    return {"prompt": prompt, "environment": key.task, **chosen}


def improve(
    chat: LocalModel, keys: Sequence[EpisodeKey], plan: Sizes, seed: int, workplace: Path, say: Callable[[str], None]
) -> None:
    """Trains the model's adapter on the env's own rewards; goes on from the last checkpoint in `workplace`.

    Args:
        chat: Its model has an adapter, which is trained in place.
        keys: Episodes; `plan.prompts` of them make a step.
        plan: How much of everything.
        seed: Fixes the order of episodes and what is drawn.
        workplace: Folder for checkpoints.
        say: Is told the mean reward of each step.
    """
    import datasets
    import torch
    import transformers
    import trl

    draw = torch.Generator()
    decoder = Decoder(chat, plan.max_new_tokens, plan.temperature, draw)

    class Telling(transformers.TrainerCallback):  # type: ignore[misc]  # Transformers is not typed here
        """Says the mean reward on one line."""

        def on_log(self, arguments: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any) -> None:
            if "reward" in logs:
                reward, spread, calls = (float(logs[name]) for name in ("reward", "reward_std", "tools/call_frequency"))
                say(f"  step {state.global_step}: mean reward {reward:.3f}, deviation {spread:.3f}, {calls:.1f} calls an episode")

    class TogetherTrainer(trl.GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Lets the decoder write, which reads of each episode only what is new; what it draws is fixed by the step."""

        def _generate(self, prompts: Any) -> Any:
            decoder.forget()
            draw.manual_seed(seed * 1_000_003 + self.state.global_step)
            return super()._generate(prompts)

        def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
            chat.model.eval()
            written = decoder.reply(prompt_ids)
            chat.model.train()
            return written, None

    factories = {
        task: make_environment_class(f"EC2/{camel(task)}-v0", **plan.settings) for task in sorted({k.task for k in keys})
    }
    trainer = TogetherTrainer(
        model=chat.model,
        environment_factory=factories,
        train_dataset=datasets.Dataset.from_list([episode_row(key) for key in keys]),
        processing_class=tool_tokenizer(chat.tokenizer),
        args=trl.GRPOConfig(
            output_dir=str(workplace),
            seed=seed,
            max_steps=plan.steps,
            per_device_train_batch_size=plan.rows,
            gradient_accumulation_steps=max(1, plan.prompts * plan.generations // plan.rows),
            num_generations=plan.generations,
            max_completion_length=plan.max_tokens,
            max_tool_calling_iterations=plan.settings.get("max_episode_steps"),
            temperature=plan.temperature,
            learning_rate=plan.grpo_rate,
            lr_scheduler_type="constant",
            beta=0.0,
            scale_rewards="none",
            loss_type="dr_grpo",
            logging_steps=1,
            save_steps=1,
            **on_device(plan.device),
        ),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Telling())
    trainer.train(resume_from_checkpoint=checkpoint(workplace))
    chat.model.eval()
