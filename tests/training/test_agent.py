"""The agent's recipe on a tiny random model: it runs, repeats itself, and goes on where it was stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ec2_env.envs import DecisionEnv
from ec2_env.models.hf import LocalModel, LocalOptions, load_folder
from ec2_env.rollout import EpisodeKey
from ec2_env.training import agent
from ec2_env.training.agent_card import load_adapter, save_adapter
from ec2_env.training.agent_decoding import Decoder
from ec2_env.training.agent_grpo import improve
from ec2_env.training.agent_play import begin, play_agent
from ec2_env.training.agent_rows import examples, offered_tools, solved, tokenized, trainer_row
from ec2_env.training.agent_sft import fine_tune

SETTINGS = {"cloud": "sim:gpt-5.4", "language": "en", "max_episode_steps": 9}
PLAN = agent.Plan(
    settings=SETTINGS,
    tasks=("forward_invoice", "largest_text"),
    dtype="float32",
    solutions=2,
    held_out=1,
    invocations=4,
    steps=1,
    generations=2,
    max_tokens=12_000,
    max_new_tokens=6,
    layers=1,
    rank=2,
    test_seeds=1,
)
KEY = EpisodeKey(task="forward_invoice", language="en", split="train", seed=3, trial=0)
ALWAYS = frozenset({"forward_invoice/4/search_contacts"})


@pytest.fixture(scope="module")
def chat(tiny: Path) -> LocalModel:
    return load_folder(str(tiny), LocalOptions(max_new_tokens=6, max_context_tokens=14_000))


@pytest.fixture(scope="module")
def env() -> DecisionEnv:
    return DecisionEnv(**SETTINGS)


def test_the_cloud_is_called_before_a_hard_step_and_does_it(env: DecisionEnv) -> None:
    alone, asking = solved(env, KEY, ()), solved(env, KEY, ALWAYS)
    assert alone is not None and asking is not None

    def calls(messages: list) -> list[str]:  # type: ignore[type-arg]  # messages are plain data
        return [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]

    assert calls(asking) == ["invoke_cloud" if name == "search_contacts" else name for name in calls(alone)]


def test_exactly_what_the_agent_writes_is_trained(chat: LocalModel, env: DecisionEnv) -> None:
    messages = solved(env, KEY, ())
    assert messages is not None
    example = tokenized(chat, KEY.task, messages, offered_tools(KEY.task, cloud=False))
    assert example is not None
    row = trainer_row(example)
    kept = [token for token, one in zip(row["input_ids"], row["completion_mask"], strict=True) if one]
    turns = chat.tokenizer.decode(kept).removesuffix("<|im_end|>").split("<|im_end|>")
    written = [message for message in messages if message["role"] == "assistant"]
    assert len(turns) == len(written) == len(example.places) + 1
    for turn, message in zip(turns, written[:-1], strict=False):
        made = message["tool_calls"][0]["function"]
        assert json.loads(turn) == {"name": made["name"], "arguments": json.loads(made["arguments"])}
    assert turns[-1] == written[-1]["content"]


def test_a_conversation_is_read_as_it_is_prompted_when_it_is_played(chat: LocalModel, env: DecisionEnv) -> None:
    (example,) = examples(chat, env, [KEY])
    work = begin(SETTINGS, KEY, cloud=False)
    for start, end in example.turns[:-1]:
        assert chat.prompt_ids(work.messages, work.tools) == example.tokens[:start]
        work.take(chat.tokenizer.decode(example.tokens[start:end], skip_special_tokens=True))
    assert work.over and work.rewards == 1.0
    assert work.calls == work.replies == len(example.places)


def test_words_without_a_call_are_answered_and_counted(chat: LocalModel) -> None:
    work = begin(SETTINGS, KEY, cloud=False)
    work.take("I would like to help.")
    work.take('{"name": "invoke_cloud", "arguments": {"request": "", "mode": "advise", "share": "transcript"}}')
    assert (work.replies, work.calls, work.terms.cost) == (2, 0, 0.0)
    assert [message["role"] for message in work.messages] == ["system", "user", "user", "assistant", "tool"]


def test_a_model_that_writes_nonsense_plays_to_the_end(chat: LocalModel) -> None:
    keys = [replace(KEY, seed=seed) for seed in range(3)]
    played = play_agent("nonsense", Decoder(chat, 4), SETTINGS, keys, cloud=True, together=2)
    assert (played.replies, played.calls, played.passed) == (9, 0, 0)
    assert played.score.returns == (0.0, 0.0, 0.0)


@pytest.mark.filterwarnings("ignore")  # Transformers, PEFT and TRL warn about one another
def test_one_seed_trains_one_adapter_also_when_it_is_stopped_on_the_way(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = agent.train(tmp_path / "first", 1, PLAN, base=tiny)
    assert [score.name for score in first] == ["untrained", "SFT, work alone", "SFT", "SFT + GRPO"]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(agent, "improve", killed)
        agent.train(tmp_path / "second", 1, PLAN, base=tiny)
    with monkeypatch.context() as patched:
        patched.setattr(agent, "fine_tune", killed)  # what was trained is not trained again
        second = agent.train(tmp_path / "second", 1, PLAN, base=tiny)
    name = "adapter_model.safetensors"
    assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert first == second
    card = json.loads((tmp_path / "first" / "card.json").read_text(encoding="utf-8"))
    assert card["seed"] == 1 and card["plan"]["steps"] == 1 and len(card["test_suite_sha256"]) == 64
    loaded = load_folder(str(tiny), LocalOptions(adapter=str(tmp_path / "first")))
    assert loaded.card.name.endswith("+first")


@pytest.mark.filterwarnings("ignore")  # Transformers, PEFT and TRL warn about one another
def test_a_trainer_that_was_killed_goes_on_from_its_checkpoint_to_the_same_adapter(
    tiny: Path, tmp_path: Path, env: DecisionEnv
) -> None:
    plan = replace(PLAN, steps=2, save_every=1)
    keys = [replace(KEY, seed=seed) for seed in range(2)]

    def trained(name: str, *, killed: bool) -> bytes:
        said: list[str] = []

        def say(text: str) -> None:
            said.append(text)
            if killed and len(said) == 2:
                raise KeyboardInterrupt

        def sft(agent_: LocalModel) -> None:
            fine_tune(agent_, list(examples(agent_, env, keys)), plan, 0, tmp_path / name / "sft", say)

        def grpo(agent_: LocalModel) -> None:
            improve(agent_, keys, plan, 0, tmp_path / name / "grpo", say)

        policy = agent.fresh_agent(tiny, plan, 0)
        for part in (sft, grpo):
            said.clear()
            if killed:
                with pytest.raises(KeyboardInterrupt):
                    part(policy)
                policy = agent.fresh_agent(tiny, plan, 0)
                if part is grpo:
                    load_adapter(policy, tmp_path / name / "done")
            part(policy)
            save_adapter(policy, tmp_path / name / "done", "tiny")
        return (tmp_path / name / "done" / "adapter_model.safetensors").read_bytes()

    assert trained("whole", killed=False) == trained("killed", killed=True)
