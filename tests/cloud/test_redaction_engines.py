"""Engines by name, and a model that redacts: its list is hidden, its work is counted, and if it fails nothing crosses."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ec2_env.actions import InvokeCloud
from ec2_env.cloud import engine as engine_module
from ec2_env.cloud.engine import Engine, Surroundings, check_engine, engines, make_redactor
from ec2_env.cloud.engines import model as model_engine
from ec2_env.cloud.engines import strong
from ec2_env.cloud.engines.model import ModelRedactor, Unreadable, read_list
from ec2_env.cloud.finding import Found
from ec2_env.cloud.gateway import CloudSettings, cloud_settings
from ec2_env.cloud.redaction import NoRedactor, RuleRedactor
from ec2_env.envs import DecisionEnv
from ec2_env.errors import ConfigurationError, EndpointError, MissingExtra
from ec2_env.models.base import Message, ModelCard, Reply, Usage
from ec2_env.models.scripted import ScriptedModel
from ec2_env.session import Session
from ec2_env.task import build_episode
from ec2_env.trace import EdgeTurn

CLOUD = ScriptedModel(["ok"], ModelCard(name="cloud", family="o200k", price="gpt-5.4"))
PARAMETERS = 1e9


class Lister:
    """A model that lists those of its values that are in the text, or answers as it is told to."""

    def __init__(self, values: dict[str, str] | None = None, reply: Reply | Exception | None = None) -> None:
        self.card = ModelCard(name="lister", family="o200k", parameters=PARAMETERS)
        self.values = values or {}
        self.reply = reply
        self.asked: list[str] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        text = messages[-1]["content"]
        self.asked.append(text)
        if isinstance(self.reply, Exception):
            raise self.reply
        if self.reply is not None:
            return self.reply
        return Reply(text=json.dumps([{"text": value, "type": kind} for value, kind in self.values.items() if value in text]))


@pytest.fixture
def lister(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lister]:
    model = Lister({"Alma Dunmore": "person", "Xk29": "password", "1436.5": "money", "blue folder": "secret thing"})
    monkeypatch.setattr(model_engine, "load_model", lambda spec: model)
    yield model


def session(**settings: Any) -> Session:
    return Session(build_episode("forward_invoice", 0, "en"), cloud=CLOUD, settings=cloud_settings(settings))


# -- engines by name


def test_the_engines_are_files_and_every_one_says_what_is_wrong_with_its_setting() -> None:
    assert {"none", "rules", "strong", "oracle", "model"} <= set(engines.names())
    for name in engines.names():
        assert isinstance(engines.get(name), Engine)
    for name in ("none", "rules", "oracle"):
        check_engine(name)
        with pytest.raises(ConfigurationError, match="nothing after its name"):
            check_engine(f"{name}:more")


@pytest.mark.parametrize("spec", ["magic", "", "rule", None, 7, ["rules"]])
def test_an_unknown_engine_is_refused_with_the_list_of_engines(spec: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected one of model:SPEC, none, oracle, rules"):
        CloudSettings(redactor=spec)


def test_an_engine_of_ones_own_is_used_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.added, "upper", Engine(make=lambda surroundings, rest: NoRedactor()))
    env = DecisionEnv(task="forward_invoice", language="en", cloud_settings={"redactor": "upper"})
    env.reset(seed=0)
    assert env.session is not None and env.session.gateway is not None
    assert isinstance(env.session.gateway.redactor, NoRedactor)


def test_an_engine_gets_the_address_book_and_the_units_of_its_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Surroundings] = []

    def make(surroundings: Surroundings, rest: str) -> NoRedactor:
        given.append(surroundings)
        return NoRedactor()

    monkeypatch.setitem(engines.added, "curious", Engine(make=make))
    running = session(redactor="curious")
    running.invoke(InvokeCloud(mode="advise", share="transcript", redact=True))
    assert given[0].units == running.episode.units
    assert given[0].directory and all(kind == "name" for kind, _ in given[0].directory)


def test_a_missing_library_is_named_when_the_setting_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, *, extra: str) -> Any:
        raise MissingExtra(f"{module} is not installed; run: pip install 'ec2-env[{extra}]'")

    monkeypatch.setattr(strong, "require", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'ec2-env\[redaction\]'"):
        DecisionEnv(cloud_settings={"redactor": "strong"})


def test_strong_hides_what_the_library_finds_and_what_the_rules_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strong, "by_presidio", lambda text: (Found(0, 5, "name"),) if text.startswith("Quill") else ())
    redactor = RuleRedactor((), strong.by_presidio)
    assert redactor.redact("Quill pays $1,200") == "[NAME_001] pays [AMOUNT_001]"
    assert redactor.redact("so Quill pays") == "so [NAME_001] pays"
    assert redactor.restore("[NAME_001]") == "Quill"


def test_the_library_itself_is_asked_where_it_is_installed() -> None:
    pytest.importorskip("presidio_analyzer", exc_type=ImportError)
    check_engine("strong")
    redactor = make_redactor("strong", Surroundings())
    text = "Reach me at 192.0.2.75 or alma@bluefjord.example, card 4111 1111 1111 1111."
    redacted = redactor.redact(text)
    assert "4111" not in redacted and "192.0.2.75" not in redacted
    assert redactor.restore(redacted) == text
    assert pickle.loads(pickle.dumps(redactor)).redact(text) == redacted


# -- a model that redacts


def test_what_a_model_lists_is_hidden_wherever_it_returns(lister: Lister) -> None:
    redactor = ModelRedactor("any")
    text = 'Alma Dunmore has the blue folder, {"amount": 1436.5} and "Xk29".'
    redacted = redactor.redact(text)
    assert redacted == '[NAME_001] has the [OTHER_001], {"amount": [AMOUNT_001]} and "[PASSWORD_001]".'
    assert redactor.restore(redacted) == text
    lister.values = {}
    assert redactor.redact("again Alma Dunmore") == "again [NAME_001]"


def test_a_text_is_asked_about_once_and_long_ones_in_pieces(lister: Lister) -> None:
    redactor = ModelRedactor("any")
    for _ in range(3):
        redactor.redact("hello there")
        redactor.redact("  \n ")
    assert len(lister.asked) == 1
    text = "word " * 2_000 + "Alma Dunmore " + "word " * 2_000
    assert "Alma" not in redactor.redact(text)
    assert max(map(len, lister.asked)) < model_engine.CHUNK + 50


@pytest.mark.parametrize("at", range(2_860, 3_020, 7))
def test_a_value_on_the_border_of_two_pieces_is_whole_in_one(lister: Lister, at: int) -> None:
    redactor = ModelRedactor("any")
    text = "x" * (at - 1) + " Alma Dunmore " + "y" * 4_000
    assert "Alma Dunmore" not in redactor.redact(text)
    assert redactor.restore(redactor.redact(text)) == text


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "none",
        "Sure! []",
        '{"text": "a"}',
        '["a"]',
        '[{"text": 1}]',
        '[{"type": "name"}]',
        "[" * 5_000,
        '[{"text": "a", "type": 3}]',
    ],
)
def test_a_list_that_cannot_be_read_is_an_error(reply: str) -> None:
    with pytest.raises(Unreadable):
        read_list(reply)


def test_a_list_may_be_fenced_empty_and_of_unknown_types() -> None:
    assert read_list('```json\n[{"text": " Ann Lee ", "type": "PERSON"}, {"text": ""}]\n```') == [("Ann Lee", "name")]
    assert read_list("[]") == []
    assert read_list('[{"text": "x1"}, {"text": "y2", "type": "Phone Number"}]') == [("x1", "other"), ("y2", "phone")]


@pytest.mark.parametrize("reply", [Reply(text="I cannot help"), RuntimeError("out of memory"), EndpointError("no route")])
def test_nothing_crosses_if_the_model_fails_or_cannot_be_read(lister: Lister, reply: Any) -> None:
    lister.reply = reply
    running = session(redactor="model:any")
    for _ in range(2):
        answer = running.invoke(InvokeCloud(mode="advise", share="transcript", redact=True))
        assert answer is not None
        assert (answer.event.status, answer.event.sent, running.levels) == ("refused", (), {})
        assert answer.broken is isinstance(reply, EndpointError)
    lister.reply = None
    answer = running.invoke(InvokeCloud(mode="advise", share="instruction", redact=True))
    assert answer is not None
    assert (answer.event.status == "ok") is isinstance(reply, Exception), "an unreadable list stays unreadable at temperature 0"


def test_the_work_of_a_model_is_edge_work_and_a_line_of_the_record(lister: Lister) -> None:
    running = session(redactor="model:any")
    clear = session(redactor="rules")
    for one in (running, clear):
        one.invoke(InvokeCloud(mode="advise", share="transcript", redact=True))
    turns = [event for event in running.events if isinstance(event, EdgeTurn)]
    assert [turn.redaction for turn in turns] == [True]
    assert running.meter.edge_flops == turns[0].flops == 2 * PARAMETERS * (turns[0].tokens_in + turns[0].tokens_out) > 0
    assert running.meter.edge_flops_without_probes == running.meter.edge_flops
    assert running.meter.latency_s - clear.meter.latency_s == pytest.approx(turns[0].latency_s, abs=0.05)
    assert clear.meter.edge_flops == 0
    running.invoke(InvokeCloud(mode="advise", share="transcript", redact=True))
    assert len([event for event in running.events if isinstance(event, EdgeTurn)]) == 1, "nothing was new"


def test_the_work_of_a_refused_call_is_counted_too(lister: Lister) -> None:
    lister.reply = Reply(text="no list", usage=Usage(raw=100, output=5))
    running = session(redactor="model:any")
    running.invoke(InvokeCloud(mode="advise", share="transcript", redact=True))
    assert running.meter.edge_flops == 2 * PARAMETERS * 105


def test_the_instruction_of_the_model_is_read_once_a_session(lister: Lister) -> None:
    redactor = ModelRedactor("any")
    redactor.redact("one two three")
    first = redactor.take_work().tokens_in
    redactor.redact("one two four")
    assert first > redactor.take_work().tokens_in + 100
    assert redactor.take_work().tokens_in == 0


def test_hiding_what_a_simulated_cloud_says_asks_no_model(lister: Lister) -> None:
    redactor = ModelRedactor("any")
    redactor.redact("Alma Dunmore and 1436.5")
    asked = len(lister.asked)
    assert redactor.hide("to Alma Dunmore: $1,436.50 for Bo Li") == "to [NAME_001]: $[AMOUNT_001] for Bo Li"
    assert len(lister.asked) == asked


@pytest.mark.parametrize("copied", [lambda r: r.fork(), copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_copies_of_a_model_session_go_on_by_themselves(lister: Lister, copied: Any) -> None:
    redactor = ModelRedactor("any")
    redactor.redact("Alma Dunmore")
    other = copied(redactor)
    assert other.redact("Xk29 of Alma Dunmore") == "[PASSWORD_001] of [NAME_001]"
    assert redactor.restore("[PASSWORD_001]") == "[PASSWORD_001]"


def test_an_env_with_a_model_that_redacts_goes_on_in_copies(tmp_path: Path) -> None:
    script = tmp_path / "empty.json"
    script.write_text(
        json.dumps({"card": {"name": "nothing", "family": "o200k", "parameters": 1e8}, "replies": [{"text": "[]"}]})
    )
    env = DecisionEnv(task="forward_invoice", language="en", cloud_settings={"redactor": f"model:scripted:{script}"})
    env.reset(seed=4)
    env.step(5)
    again = copy.deepcopy(env)
    thawed = pickle.loads(pickle.dumps(env))
    for action in (3, 5, 0):
        steps = [one.step(action)[1:4] for one in (env, again, thawed)]
        assert steps[0] == steps[1] == steps[2]
    assert env.session is not None
    turns = [event for event in env.session.events if isinstance(event, EdgeTurn) and event.redaction]
    assert turns and all(turn.flops == 2e8 * (turn.tokens_in + turn.tokens_out) for turn in turns)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("model", "needs a model"),
        ("model:", "needs a model"),
        ("model:sim:qwen3.5-9b", "simulated"),
        ("model:scripted:nowhere.json", "no file"),
    ],
)
def test_a_model_that_cannot_redact_is_refused_when_the_setting_is_read(spec: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        DecisionEnv(cloud_settings={"redactor": spec})


def test_forms_are_listed_with_what_follows_the_name() -> None:
    assert "model:SPEC" in engine_module.forms()
