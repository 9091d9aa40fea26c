"""A tiny random Llama with a tokenizer trained on the spot, so that the training code runs in seconds and without a download."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a model of two layers; its vocabulary has a token for every digit."""
    for module in ("torch", "transformers", "trl", "peft", "datasets"):
        pytest.importorskip(module, reason=f"the extra 'train' is not installed: {module}", exc_type=ImportError)
    import tokenizers
    import torch
    import transformers
    from trl.chat_template_utils import qwen2_5_chat_template

    torch.set_num_threads(1)  # a tiny model gains nothing from more, and threads of several test processes wait for one another
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("tiny")
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits, split])
    raw.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=alphabet, special_tokens=list(CHAT), show_progress=False
    )
    raw.train_from_iterator(_texts(), trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = qwen2_5_chat_template
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=16_384,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _texts() -> list[str]:
    from ec2_env.envs import WorkspaceEnv

    _, info = WorkspaceEnv(domain="email").reset(seed=0)
    return [json.dumps(tool) for tool in info["tools"]] + [str(message["content"]) for message in info["messages"]]
