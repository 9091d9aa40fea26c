"""How uncertain a real model is of the first token of each turn: the source of the `entropy_*` priors of the simulated models.

SmolLM2-135M reads the tasks' own solutions, and at each turn its entropy over the 20 likeliest first tokens is taken. What
matters is not its level, which differs between models, but how it falls over the turns and how far tasks differ.

    python benchmarks/entropy.py --tasks 24
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ec2_env.actions import Finish
from ec2_env.bench.suites import DEFAULT_SUITE, load_suite
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.payload import message_text
from ec2_env.models import smollm2
from ec2_env.models.draws import uniform
from ec2_env.models.entropy import top_entropy
from ec2_env.models.walker import Walker
from ec2_env.session import Session
from ec2_env.task import build_episode
from ec2_env.workspace.world import Language

CONTEXT = 3_500
"""Tokens that are read of a transcript."""
TOP = 20
SHOWN = 14
"""Turns that are shown one by one; later ones are taken together."""


def transcript(task: str, language: Language) -> list[tuple[str, str]]:
    """Returns role and text of each message of a task's own solution."""
    session = Session(build_episode(task, 0, language, "test"), cloud=None, settings=CloudSettings())
    walker = Walker(session.episode)
    while (step := walker.step) is not None:
        result = session.call(step.action, "edge")
        if isinstance(step.action, Finish):
            break
        walker.advance(result.value)
    return [(str(message["role"]), message_text(message)) for message in session.messages]


def entropies(messages: Sequence[tuple[str, str]]) -> list[float]:
    """Returns the entropy in nats at the start of each assistant turn that fits the context."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2.folder())
    ids: list[int] = []
    starts = []
    for role, text in messages:
        speaker = "user" if role == "tool" else role
        ids += tokenizer(f"<|im_start|>{speaker}\n", add_special_tokens=False)["input_ids"]
        if role == "assistant":
            starts.append(len(ids) - 1)
        ids += tokenizer(f"{text}<|im_end|>\n", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = _model()(input_ids=torch.tensor([ids[:CONTEXT]])).logits[0]
    found = [top_entropy(logits[start].log_softmax(-1).topk(TOP).values.tolist()) for start in starts if start < CONTEXT]
    return [value for value in found if value is not None]


@cache
def _model() -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(smollm2.folder(), dtype=torch.float32).eval()


def report(by_task: dict[str, list[float]]) -> list[str]:
    """Returns the mean by turn, and the spread that is left within and between tasks."""
    turns = [[values[turn] for values in by_task.values() if turn < len(values)] for turn in range(SHOWN)]
    late = [value for values in by_task.values() for value in values[SHOWN:]]
    means = [float(np.mean(values)) if values else math.nan for values in turns]
    tail = float(np.mean(late)) if late else math.nan
    left = [[value - (means[turn] if turn < SHOWN else tail) for turn, value in enumerate(values)] for values in by_task.values()]
    left = [values for values in left if len(values) > 2]
    within = float(np.mean([np.var(values, ddof=1) for values in left]))
    size = float(np.mean([len(values) for values in left]))
    between = max(0.0, float(np.var([np.mean(values) for values in left], ddof=1)) - within / size)
    return [
        "turn  mean entropy (nats)  tasks",
        *(f"{turn:4}  {mean:19.2f}  {len(values):5}" for turn, (mean, values) in enumerate(zip(means, turns, strict=True))),
        f"later {tail:19.2f}  {len(late):5} turns",
        f"standard deviation, less the mean of the turn: {within**0.5:.2f} within a task, {between**0.5:.2f} between tasks",
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=24, help="English tasks, drawn from the suite by name (default: 24)")
    wanted = parser.parse_args().tasks
    english = [(task, language) for task, language in load_suite(DEFAULT_SUITE).pairs() if language == "en"]
    drawn = sorted(english, key=lambda pair: uniform("entropy benchmark", pair[0]))[:wanted]
    print("\n".join(report({task: entropies(transcript(task, language)) for task, language in drawn})))


if __name__ == "__main__":
    main()
