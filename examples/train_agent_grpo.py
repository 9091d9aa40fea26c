"""GRPO on whole episodes of several tasks with TRL's own trainer and generation: on one GPU, on several, or with vLLM.

The agent needs a warm start first: without one it makes no valid call, so that no attempt is better than another. `ec2-env train
--method agent` makes one (docs/training_agent.md); its adapter is trained further here.

Needs `pip install 'ec2-env[local,train]'`, and vLLM for `--vllm`.

    python examples/train_agent_grpo.py --model MODEL --adapter out/agent --out out/agent_grpo
    accelerate launch --multi_gpu --num_processes 4 examples/train_agent_grpo.py --model MODEL --adapter out/agent --vllm
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import datasets
import peft
import transformers
import trl

from ec2_env.registration import camel, register
from ec2_env.rollout import EpisodeKey
from ec2_env.training.agent_grpo import episode_row, tool_tokenizer
from ec2_env.training.env_factory import make_environment_class


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder or hub id of a chat model that takes system turns")
    parser.add_argument("--adapter", type=Path, help="folder of the warm start; a new adapter if it is left out")
    parser.add_argument("--tasks", default="forward_invoice,largest_text", help="names as `ec2-env tasks` lists them")
    parser.add_argument("--cloud", default="sim:gpt-5.4", help="the model that invoke_cloud reaches")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=8, help="attempts of a step in each process")
    parser.add_argument("--generations", type=int, default=8, help="attempts at an episode; divides those of all processes")
    parser.add_argument("--calls", type=int, default=14, help="most calls of an episode")
    parser.add_argument("--max-tokens", type=int, default=4096, help="longest episode after its prompt")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--vllm", action="store_true", help="generate with vLLM, in the processes that train")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out/agent_grpo"))
    arguments = parser.parse_args()

    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # environments are an experimental feature of TRL, which says so
    register()
    names = arguments.tasks.split(",")
    keys = [EpisodeKey(task=names[n % len(names)], language="en", split="train", seed=n, trial=0) for n in range(64 * len(names))]
    settings = {"cloud": arguments.cloud, "language": "en", "max_episode_steps": arguments.calls}
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype="auto")
    fresh = None
    if arguments.adapter:
        model = peft.PeftModel.from_pretrained(model, str(arguments.adapter), is_trainable=True)
    else:
        fresh = peft.LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")

    trainer = trl.GRPOTrainer(
        model=model,
        peft_config=fresh,
        environment_factory={name: make_environment_class(f"EC2/{camel(name)}-v0", **settings) for name in names},
        train_dataset=datasets.Dataset.from_list([episode_row(key) for key in keys]),
        processing_class=tool_tokenizer(transformers.AutoTokenizer.from_pretrained(arguments.model)),
        args=trl.GRPOConfig(
            output_dir=str(arguments.out),
            max_steps=arguments.steps,
            per_device_train_batch_size=arguments.batch,
            num_generations=arguments.generations,
            max_completion_length=arguments.max_tokens,
            max_tool_calling_iterations=arguments.calls,
            learning_rate=arguments.rate,
            beta=0.0,
            scale_rewards="none",
            loss_type="dr_grpo",
            use_vllm=arguments.vllm,
            use_cpu=arguments.cpu,
            bf16=not arguments.cpu,
            report_to="none",
            logging_steps=1,
            save_steps=10,
            save_total_limit=1,
        ),
    )
    trainer.train()
    trainer.save_model(str(arguments.out))


if __name__ == "__main__":
    main()
