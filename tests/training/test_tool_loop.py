"""TRL's own tool loop over our environment classes, with a random model whose turns are fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.models.hf import LocalOptions, load_folder
from ec2_env.registration import register
from ec2_env.rollout import EpisodeKey
from ec2_env.training.agent import Plan
from ec2_env.training.agent_decoding import Decoder
from ec2_env.training.agent_grpo import improve
from ec2_env.training.agent_rows import Example, examples
from ec2_env.training.env_factory import make_dataset, make_environment_class

TURNS = (
    '<tool_call>\n{"name": "list_mail", "arguments": {"folder": "inbox"}}\n</tool_call>',
    '<tool_call>\n{"name": "invoke_cloud", "arguments": {"request": "next", "mode": "advise", "share": "request"}}\n</tool_call>',
    '<tool_call>\n{"name": "finish", "arguments": {"answer": "done"}}\n</tool_call>',
    "I am done.",
)


@pytest.mark.filterwarnings("ignore")  # Transformers, PEFT and TRL warn about one another
def test_grpo_calls_the_tools_of_the_episode_and_gets_its_reward(tiny: Path, tmp_path: Path) -> None:
    import torch
    import transformers
    import trl

    made: list[Any] = []
    kind = make_environment_class("EC2/ForwardInvoice-v0")

    def environment() -> Any:
        made.append(kind())
        return made[-1]

    class Forced(trl.GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Says the fixed turns instead of what the model would say."""

        def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
            ids = []
            for prompt in prompt_ids:
                said = self.processing_class.decode(prompt).count("<tool_response>")
                ids.append(self.processing_class(TURNS[said] + "<|im_end|>")["input_ids"])
            return ids, None

    torch.manual_seed(0)
    trainer = Forced(
        model=transformers.AutoModelForCausalLM.from_pretrained(tiny),
        environment_factory=environment,
        train_dataset=make_dataset("EC2/ForwardInvoice-v0", 2),
        processing_class=transformers.AutoTokenizer.from_pretrained(tiny),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=8_000,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
        ),
    )
    trainer.train()
    played = [env for env in made if env._env.session is not None]
    assert len(played) >= 2
    for env in played[-2:]:
        calls = [record.name for record in env._env.session.records]
        assert calls == ["list_mail", "finish"]
        assert env._env.session.meter.cloud_calls == 1
        assert env._env.session.ended
    logged = {name: value for entry in trainer.state.log_history for name, value in entry.items()}
    assert logged["tools/call_frequency"] == pytest.approx(3)
    assert logged["reward"] == pytest.approx(played[-1].get_reward(), abs=0.05)


@pytest.mark.filterwarnings("ignore")  # Transformers, PEFT and TRL warn about one another
def test_two_domains_are_prompted_turn_by_turn_as_in_supervised_training(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register()
    settings = {"cloud": "sim:gpt-5.4@ability=20", "language": "en", "max_episode_steps": 14}  # a cloud that does what is right
    plan = Plan(settings=settings, steps=1, prompts=2, generations=2, max_tokens=14_000)
    chat = load_folder(str(tiny), LocalOptions(max_new_tokens=400))
    keys = [EpisodeKey(task=task, language="en", split="train", seed=1, trial=0) for task in plan.tasks]
    hard = ("forward_invoice/4/search_contacts", "largest_text/2/run_command")
    solutions = list(examples(chat, DecisionEnv(**plan.settings), keys, hard, cloud=True))
    seen: list[list[int]] = []
    said: list[str] = []

    def forced(self: Decoder, prompts: list[list[int]]) -> list[list[int]]:
        seen.extend(prompts)
        return [next_turn(solutions, prompt) for prompt in prompts]

    monkeypatch.setattr(Decoder, "reply", forced)
    improve(chat, keys, plan, 0, tmp_path, said.append)
    assert len(seen) == 2 * sum(len(one.turns) for one in solutions)
    (line,) = said
    assert "mean reward 0.9" in line and "deviation 0.0" in line


def next_turn(solutions: list[Example], prompt: list[int]) -> list[int]:
    """Returns the turn that stands after exactly this prompt in one of the solutions."""
    (found,) = [one.tokens[start:end] for one in solutions for start, end in one.turns if one.tokens[:start] == prompt]
    return found
