"""What TRL is given: classes whose public methods are exactly the tools, and datasets that choose episodes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ec2_env.errors import ConfigurationError
from ec2_env.registration import env_ids, register
from ec2_env.task import tasks
from ec2_env.training.env_factory import ENDED, check_rows, make_dataset, make_environment_class

register()
IDS = sorted(f"EC2/{name}-v0" for name in env_ids())
ROW = {"task": "forward_invoice", "language": "en", "split": "train", "seed": 3}


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize("env_id", IDS)
def test_public_methods_are_exactly_the_tools_and_what_trl_calls(env_id: str) -> None:
    kind = make_environment_class(env_id)
    offered = {tool["function"]["name"] for tool in _tools(env_id)}
    assert public(kind) == offered | {"reset", "get_reward"}


def _tools(env_id: str) -> list[dict[str, Any]]:
    from ec2_env.training.env_factory import workspace_env

    env = workspace_env(env_id, {})
    found: dict[str, dict[str, Any]] = {}
    for name in env.names:
        _, info = env.reset(seed=0, options={"task": name})
        found.update({tool["function"]["name"]: tool for tool in info["tools"]})
    return list(found.values())


@pytest.mark.parametrize("env_id", IDS)
def test_schemas_from_signatures_say_what_the_env_says(env_id: str) -> None:
    transformers = pytest.importorskip("transformers.utils")
    env = make_environment_class(env_id)()
    for tool in _tools(env_id):
        expected = tool["function"]
        made = transformers.get_json_schema(getattr(env, expected["name"]))["function"]
        assert made["description"] == expected["description"]
        assert set(made["parameters"]["properties"]) == set(expected["parameters"]["properties"])
        assert made["parameters"].get("required", []) == expected["parameters"]["required"]
        for name, schema in expected["parameters"]["properties"].items():
            assert made["parameters"]["properties"][name]["type"] == schema["type"]
            assert made["parameters"]["properties"][name].get("enum") == schema.get("enum")


def test_an_episode_played_through_the_methods_is_rewarded_at_its_end() -> None:
    env: Any = make_environment_class("EC2/ForwardInvoice-v0")()
    instruction = env.reset(**ROW)
    assert instruction
    assert env.list_mail("inbox").startswith("[")
    assert "error" in env.read_mail(mail_id="none")
    assert "expected" in env.read_mail(wrong=1)
    assert env.finish(answer="done") == '{"finished":true}'
    assert env.list_mail() == "The episode has ended; no more calls are possible."
    assert env.get_reward() == env.get_reward() < 0.5


def test_asking_the_cloud_costs_reward() -> None:
    env: Any = make_environment_class("EC2/ForwardInvoice-v0")()
    env.reset(**ROW)
    assert env.get_reward() == 0.0
    env.reset(**ROW)
    env.invoke_cloud(request="help", mode="act", share="transcript")
    assert env.get_reward() < 0.0


def test_datasets_are_the_same_for_the_same_arguments_and_fit_their_env() -> None:
    pytest.importorskip("datasets")
    first, again = (make_dataset("EC2/Email-v0", 14, seed=4) for _ in range(2))
    assert first.to_list() == again.to_list() != make_dataset("EC2/Email-v0", 14, seed=5).to_list()
    assert {row["task"] for row in first} <= set(tasks.names())
    env: Any = make_environment_class("EC2/Email-v0")()
    for row in first:
        assert env.reset(**row) is None


def test_a_row_whose_prompt_belongs_to_another_episode_is_refused() -> None:
    pytest.importorskip("datasets")
    row = make_dataset("EC2/ForwardInvoice-v0", 1)[0]
    env: Any = make_environment_class("EC2/ForwardInvoice-v0")()
    with pytest.raises(ConfigurationError, match="is not its instruction"):
        env.reset(**{**row, "seed": row["seed"] + 1})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task": "nothing"}, "has no task"),
        ({"language": "fr"}, "has no language"),
        ({"split": "dev"}, "split is"),
        ({"seed": "1"}, "seed is"),
    ],
)
def test_unusable_rows_are_named_before_training(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"row 1: .*{said}"):
        check_rows([ROW, {**ROW, **change}], ["forward_invoice"])
    with pytest.raises(ConfigurationError, match="'seed' is missing"):
        check_rows([{name: value for name, value in ROW.items() if name != "seed"}], ["forward_invoice"])


def test_an_id_of_another_kind_of_env_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="WorkspaceEnv"):
        make_environment_class("EC2/ForwardInvoiceDecision-v0")


def test_a_step_limit_of_the_settings_ends_the_episode() -> None:
    env: Any = make_environment_class("EC2/ForwardInvoice-v0", max_episode_steps=2)()
    env.reset(**ROW)
    assert [env.list_files() == ENDED for _ in range(3)] == [False, False, True]
