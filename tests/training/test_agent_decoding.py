"""Chats decoded together come out as chats decoded one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ec2_env.errors import ConfigurationError
from ec2_env.models.hf import LocalModel, LocalOptions, load_folder
from ec2_env.training.agent_decoding import Decoder
from ec2_env.training.agent_rows import Example
from ec2_env.training.agent_sft import right_calls

LENGTH = 12


@pytest.fixture(scope="module")
def chat(tiny: Path) -> LocalModel:
    return load_folder(str(tiny), LocalOptions(max_new_tokens=LENGTH))


def greedy(chat: LocalModel, prompt: list[int]) -> list[int]:
    """Returns what Transformers itself writes."""
    import torch

    with torch.inference_mode():
        ids = chat.model.generate(torch.tensor([prompt]), max_new_tokens=LENGTH, do_sample=False)
    return list(ids[0, len(prompt) :].tolist())


def test_chats_of_different_lengths_are_continued_as_each_would_be_alone(chat: LocalModel) -> None:
    prompts = [list(range(5, 5 + length)) for length in (3, 40, 11, 3)]
    assert Decoder(chat, LENGTH).reply(prompts) == [greedy(chat, prompt) for prompt in prompts]


def test_what_was_read_before_is_not_read_again_and_changes_nothing(chat: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = Decoder(chat, LENGTH)
    prompts = [list(range(5, 45)), list(range(9, 20))]
    longer = [[*prompt, *new, 7, 8, 9] for prompt, new in zip(prompts, decoder.reply(prompts), strict=True)][::-1]
    read: list[int] = []
    forward = chat.model.forward

    def counting(*arguments: Any, **given: Any) -> Any:
        read.append(given["input_ids"].shape[-1])
        return forward(*arguments, **given)

    counting.__signature__ = __import__("inspect").signature(forward)  # type: ignore[attr-defined]
    monkeypatch.setattr(chat.model, "forward", counting)
    again = decoder.reply(longer)
    monkeypatch.undo()
    assert max(read) < 6
    assert again == [greedy(chat, prompt) for prompt in longer]


def test_the_same_generator_draws_the_same_turns(chat: LocalModel) -> None:
    import torch

    prompts = [list(range(5, 25))] * 3
    drawn = [Decoder(chat, LENGTH, 1.0, torch.Generator().manual_seed(seed)).reply(prompts) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0][0] != drawn[0][1]


def test_a_model_with_windowed_layers_is_refused(chat: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat.model.config, "layer_types", ["sliding_attention", "full_attention"], raising=False)
    with pytest.raises(ConfigurationError, match="window"):
        Decoder(chat, LENGTH)


def test_a_call_is_right_exactly_if_greedy_decoding_writes_it(chat: LocalModel) -> None:
    prompt = list(range(5, 30))
    written = greedy(chat, prompt)
    whole = [*prompt, *written]
    example = Example(tokens=whole, turns=[(len(prompt), len(whole))], places=["task/0/tool"])
    wrong = replace(example, tokens=[*whole[:-1], whole[-1] + 1])
    assert right_calls(chat, [example, wrong]) == {"task/0/tool": [True, False]}
