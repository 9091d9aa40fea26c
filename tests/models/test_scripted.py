"""The scripted model has no state: the chat says which reply is next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Reply, Usage
from ec2_env.models.loading import load_model
from ec2_env.models.scripted import ScriptedModel

USER = {"role": "user", "content": "go"}
SAID = {"role": "assistant", "content": "x"}


def test_replies_follow_the_assistant_turns_and_the_last_one_repeats() -> None:
    model = ScriptedModel(["one", {"name": "finish", "arguments": {}}, Reply(text="three", entropy=0.5)])
    chats = [[USER], [USER, SAID, USER], [USER, SAID, SAID], [SAID] * 9, [USER]]
    texts = [model.complete(chat) for chat in chats]
    assert [reply.text for reply in texts] == ["one", "", "three", "three", "one"]
    assert texts[1].calls == ({"name": "finish", "arguments": {}},)


def test_a_file_may_set_the_card(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    card = {"name": "gpt", "family": "o200k", "price": "gpt-5.4"}
    file.write_text(json.dumps({"card": card, "replies": [{"text": "价", "usage": {"raw": 3, "output": 1}}]}), encoding="utf-8")
    model = load_model(f"scripted:{file}")
    assert (model.card.name, model.card.price) == ("gpt", "gpt-5.4")
    assert model.complete([USER]) == Reply(text="价", usage=Usage(raw=3, output=1))


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "3", '[{"txt": "a"}]', '[{"text": 3}]', '{"card": {"name": "x"}, "replies": ["a"]}']
)
def test_a_file_that_is_no_script_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(content)
    with pytest.raises(ConfigurationError):
        load_model(f"scripted:{file}")


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no file 'nowhere\.json'"):
        load_model("scripted:nowhere.json")
