"""The boundary: what crosses is what was asked for, is audited and paid for, and nothing crosses that must not."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from ec2_env.actions import InvokeCloud
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.gateway import CloudSettings, cloud_settings
from ec2_env.cloud.redaction import RuleRedactor
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import Message, ModelCard, Reply, Usage
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import Session
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode, task_domains, tasks
from ec2_env.testing import play as solve
from ec2_env.trace import CloudCall

CARD = ModelCard(name="recorder", family="o200k", price="gpt-5.4")
NAMES = task_domains()["email"]


class Recorder:
    """A cloud model that keeps what it is sent, and answers what it was told to, or fails."""

    def __init__(self, reply: Reply | Exception = Reply(text="ok"), card: ModelCard = CARD) -> None:  # noqa: B008  # frozen
        self.card = card
        self.reply = reply
        self.seen: list[tuple[Sequence[Message], Sequence[dict[str, Any]]]] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        self.seen.append((list(messages), list(tools)))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def worked(cloud: Any, name: str = "forward_invoice", seed: int = 0, language: str = "en", **settings: Any) -> Session:
    """Returns a session in which the task's solution is done but for the report."""
    episode = build_episode(name, seed, language)  # type: ignore[arg-type]  # "en" or "zh"
    session = Session(episode, cloud=cloud, settings=cloud_settings(settings))
    for action in solve(episode).actions[:-1]:
        session.call(action, "agent")
        session.step += 1
    return session


def sent_text(session: Session) -> str:
    """Returns every text that has crossed in an episode."""
    return "\n".join(text for event in session.events if isinstance(event, CloudCall) for _, text in event.sent)


# -- what crosses


@pytest.mark.parametrize("mode", ["plan", "advise", "act"])
@pytest.mark.parametrize("share", ["request", "instruction", "transcript"])
def test_what_crosses_is_what_was_shared(mode: Any, share: Any) -> None:
    cloud = Recorder()
    session = worked(cloud)
    session.invoke(InvokeCloud(request="Which approver?", mode=mode, share=share))
    messages, tools = cloud.seen[0]
    whole = "\n".join(str(message.get("content")) for message in messages)
    assert "Which approver?" in whole
    assert (session.episode.instruction in whole) == (share != "request")
    assert any(message["role"] == "tool" for message in messages) == (share == "transcript")
    assert bool(tools) == (mode == "act")
    event = session.events[-1]
    assert isinstance(event, CloudCall)
    crossed = sent_text(session)
    for message in messages:
        assert str(message.get("content")) in crossed, "a text crossed that the record does not show"


def test_only_new_texts_are_recorded_again() -> None:
    cloud = Recorder()
    session = worked(cloud)
    for _ in range(2):
        session.invoke(InvokeCloud(mode="advise", share="transcript"))
    first, second = (event for event in session.events if isinstance(event, CloudCall))
    assert len(first.sent) == len({text for _, text in first.sent})
    assert second.sent == ()
    assert second.exposures == ()
    assert second.texts == first.texts


@pytest.mark.parametrize("name", NAMES)
def test_a_redacted_call_holds_no_unit_that_the_oracle_redactor_finds(name: str) -> None:
    for language in tasks.get(name).languages:
        cloud = Recorder()
        session = worked(cloud, name, 3, language, redactor="oracle")
        session.invoke(InvokeCloud(mode="act", share="transcript", redact=True))
        event = session.events[-1]
        assert isinstance(event, CloudCall)
        assert event.status == "ok"
        found = Audit(session.episode.units).find(sent_text(session))
        assert max(found.values(), default=0.0) < 1.0, found


@pytest.mark.parametrize("name", NAMES)
def test_a_redacted_call_holds_nothing_that_the_rules_find(name: str) -> None:
    for language in tasks.get(name).languages:
        session = worked(Recorder(), name, 4, language)
        session.invoke(InvokeCloud(mode="advise", share="transcript", redact=True, request=session.episode.units[0].value))
        event = session.events[-1]
        assert isinstance(event, CloudCall)
        cards = session.episode.workspace.rows("contact").values()
        again = RuleRedactor([("name", card.name) for card in cards])
        for position, text in event.sent:
            if position > 0:
                assert again.restore(again.redact(text)) == text
                left = again.redact(text)
                assert {part for part in left.split() if part not in text.split()} <= {p for p in left.split() if "LITERAL" in p}


def test_every_leak_is_counted_in_the_step_that_leaks() -> None:
    session = worked(Recorder())
    unit = session.episode.units[0]
    answer = session.invoke(InvokeCloud(request=f"Is {unit.value} right?", mode="advise", share="request"))
    assert answer is not None
    assert [(e.unit, e.level) for e in answer.event.exposures] == [(unit.id, 1.0)]
    exposed = answer.event.exposures[0]
    text = dict(answer.event.sent)[exposed.text]
    assert text[exposed.start : exposed.end].strip("$") == unit.value.strip("$")


def test_placeholders_come_back_as_values() -> None:
    session = worked(Recorder(), redactor="oracle")
    session.invoke(InvokeCloud(mode="advise", share="transcript", redact=True))
    assert session.gateway is not None
    placeholder = session.gateway.redactor.redact(session.episode.units[0].value)
    assert placeholder.startswith("[")
    session.gateway.model = Recorder(Reply(text=f"Use {placeholder}", calls=({"name": "x", "arguments": {"a": [placeholder]}},)))
    answer = session.invoke(InvokeCloud(mode="act", share="transcript", redact=True))
    assert answer is not None
    assert answer.text == f"Use {session.episode.units[0].value}"
    assert answer.call == {"name": "x", "arguments": {"a": [session.episode.units[0].value]}}
    assert session.episode.units[0].value not in answer.event.reply, "the record of the reply holds what the cloud never said"


# -- refusals and failures


@pytest.mark.parametrize("cap", [{"max_calls": 0}, {"max_usd": 0.0}, {"max_usd": 1e-6}, {"max_tokens": 10}])
def test_a_refused_call_sends_nothing_and_costs_nothing(cap: dict[str, Any]) -> None:
    cloud = Recorder()
    session = worked(cloud, **cap)
    answer = session.invoke(InvokeCloud(mode="act", share="transcript"))
    assert answer is not None
    assert not answer.ok
    assert cloud.seen == []
    event = answer.event
    assert (event.status, event.sent, event.exposures, event.usd) == ("refused", (), (), "0")
    assert (session.meter.cloud_calls, session.meter.cloud_usd) == (0, 0)
    assert "budget" in event.problem


@pytest.mark.parametrize("cap", [{"max_calls": 3}, {"max_usd": 0.06}, {"max_tokens": 9_000}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_budgets_are_never_passed(cap: dict[str, Any], seed: int) -> None:
    env = DecisionEnv(task="forward_invoice", cloud_settings=cap)
    env.begin("forward_invoice", "en", "train", seed)
    session = env.session
    assert session is not None
    while not session.ended:
        env.take((4, 2, 5)[session.step % 3])
    meter = session.meter
    assert meter.cloud_calls <= cap.get("max_calls", 99)
    assert float(meter.cloud_usd) <= cap.get("max_usd", 99)
    assert meter.tokens_raw + meter.tokens_cached + meter.tokens_out <= cap.get("max_tokens", 10**9)
    assert meter.cloud_calls > 0
    assert any(isinstance(event, CloudCall) and event.status == "refused" for event in session.events)


def test_the_money_cap_of_the_env_shows_in_the_observation() -> None:
    env = WorkspaceEnv(task="forward_invoice", cloud=Recorder(), max_cloud_usd=0.05)
    observation, _ = env.reset(seed=0)
    assert observation["budget_left"] == 1.0
    ask = {"name": "invoke_cloud", "arguments": {"request": "?", "mode": "advise", "share": "instruction"}}
    observation, _, _, _, info = env.step(ask)
    assert 0 < observation["budget_left"] < 1
    assert observation["budget_left"] == pytest.approx(1 - info["cloud_usd"] / 0.05, rel=1e-5)


def test_an_outage_is_an_observation_and_what_left_still_counts() -> None:
    cloud = Recorder()
    env = WorkspaceEnv(task="forward_invoice", cloud=cloud, language="en", cloud_settings={"outage_rate": 1.0})
    env.reset(seed=0)
    unit = env.episode.units[0]
    ask = {"name": "invoke_cloud", "arguments": {"request": unit.value, "mode": "act", "share": "request"}}
    observation, _, terminated, _, info = env.step(ask)
    assert "could not help" in observation["result"]
    assert not terminated
    assert cloud.seen == []
    assert [e["unit"] for e in info["exposures"]] == [unit.id]
    assert info["cloud_usd"] == 0.0


def test_some_calls_fail_at_a_rate_in_between_and_always_the_same() -> None:
    def statuses() -> list[str]:
        session = worked(Recorder(), outage_rate=0.5)
        for _ in range(20):
            session.invoke(InvokeCloud(mode="advise", share="request", request="?"))
        return [event.status for event in session.events if isinstance(event, CloudCall)]

    assert 4 < statuses().count("failed") < 16
    assert statuses() == statuses()


def test_a_broken_endpoint_ends_the_episode_as_an_error() -> None:
    env = WorkspaceEnv(task="forward_invoice", cloud=Recorder(EndpointError("no route")))
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(
        {"name": "invoke_cloud", "arguments": {"request": "?", "mode": "advise", "share": "request"}}
    )
    assert terminated
    assert not truncated
    assert info["result"]["status"] == "error"
    assert "no route" in info["result"]["problem"]


def test_a_broken_endpoint_ends_a_rollout_as_an_error_too() -> None:
    env = DecisionEnv(task="forward_invoice", cloud=Recorder(EndpointError("no route")))
    key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=0, trial=0)
    assert play(env, load_strategy("cloud_only"), key).result["status"] == "error"


def test_a_broken_edge_model_ends_an_episode_as_an_error_and_not_with_an_exception() -> None:
    env = DecisionEnv(task="forward_invoice", edge=Recorder(EndpointError("edge down")), cloud=Recorder())
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(0)
    assert terminated
    assert not truncated
    assert info["result"]["status"] == "error"


class FailingRedactor:
    """A redactor that cannot do its work."""

    def redact(self, text: str) -> str:
        raise MemoryError("too much")

    def restore(self, text: str) -> str:
        return text

    def fork(self) -> FailingRedactor:
        return self


def test_nothing_crosses_when_redaction_fails() -> None:
    cloud = Recorder()
    session = worked(cloud)
    assert session.gateway is not None
    session.gateway._redactor = FailingRedactor()
    answer = session.invoke(InvokeCloud(mode="act", share="transcript", redact=True))
    assert answer is not None
    assert answer.event.status == "refused"
    assert (cloud.seen, answer.event.sent, session.levels) == ([], (), {})


def test_a_cloud_model_without_a_price_is_a_mistake_of_configuration() -> None:
    with pytest.raises(ConfigurationError, match="price"):
        worked(Recorder(card=ModelCard(name="free", family="o200k")))


def test_a_cloud_model_without_a_price_is_refused_by_the_env_as_well() -> None:
    env = WorkspaceEnv(task="forward_invoice", cloud=Recorder(card=ModelCard(name="free", family="o200k")))
    with pytest.raises(ConfigurationError, match="price"):
        env.reset(seed=0)


# -- money and tokens


def test_what_a_provider_reports_is_what_is_billed() -> None:
    session = worked(Recorder(Reply(text="ok", usage=Usage(raw=100, cached=50, output=7))))
    session.invoke(InvokeCloud(mode="advise", share="transcript"))
    meter = session.meter
    assert (meter.tokens_raw, meter.tokens_cached, meter.tokens_out) == (100, 50, 7)


def test_what_a_provider_reports_beyond_the_own_count_is_in_the_record_and_the_result() -> None:
    reported = Usage(raw=100, cached=50, output=7)
    plain, told = (worked(Recorder(Reply(text="ok", usage=usage))) for usage in (None, reported))
    for session in (plain, told):
        for _ in range(2):
            session.invoke(InvokeCloud(mode="advise", share="transcript"))
        session.end()
    own, seen = ([event for event in session.events if isinstance(event, CloudCall)] for session in (plain, told))
    for ours, theirs in zip(own, seen, strict=True):
        assert (ours.gap_raw, ours.gap_cached, ours.gap_out, ours.gap_usd) == (0, 0, 0, "0")
        assert theirs.gap_raw == 100 - ours.tokens_raw
        assert theirs.gap_cached == 50 - ours.tokens_cached
        assert theirs.gap_out == 7 - ours.tokens_out
        assert Decimal(theirs.gap_usd) == Decimal(theirs.usd) - Decimal(ours.usd)
    assert plain.result is not None and told.result is not None
    assert plain.result["usage_gap"] == {"raw": 0, "cached": 0, "out": 0, "usd": 0.0}
    assert told.result["usage_gap"] == {
        "raw": sum(call.gap_raw for call in seen),
        "cached": sum(call.gap_cached for call in seen),
        "out": sum(call.gap_out for call in seen),
        "usd": pytest.approx(sum(float(call.gap_usd) for call in seen)),
    }
    assert told.result["cloud_usd"] - told.result["usage_gap"]["usd"] == pytest.approx(plain.result["cloud_usd"])


@pytest.mark.parametrize("usage", [None, Usage(raw=272_001, output=100)])
def test_a_long_request_is_billed_at_the_second_tier(usage: Usage | None) -> None:
    cloud = Recorder(Reply(text="ok", usage=usage))
    session = worked(cloud)
    text = " a" * 300_000 if usage is None else "?"
    answer = session.invoke(InvokeCloud(mode="advise", share="request", request=text))
    assert answer is not None
    event = answer.event
    assert event.tokens_raw > 272_000
    assert Decimal(event.usd) == Decimal(5 * event.tokens_raw + Decimal("22.5") * event.tokens_out) / 1_000_000


def test_a_request_that_failed_is_not_in_the_prompt_cache() -> None:
    session = worked(Recorder(EndpointError("no route")))
    session.invoke(InvokeCloud(mode="act", share="transcript"))
    assert session.gateway is not None
    session.gateway.model = Recorder()
    session.invoke(InvokeCloud(mode="act", share="transcript"))
    failed, first = (event for event in session.events if isinstance(event, CloudCall))
    assert (failed.status, first.status, first.tokens_cached) == ("failed", "ok", 0)


def test_a_repeated_prefix_is_cached() -> None:
    session = worked(Recorder())
    for _ in range(2):
        session.invoke(InvokeCloud(mode="act", share="transcript"))
    first, second = (event for event in session.events if isinstance(event, CloudCall))
    assert first.tokens_cached == 0
    assert second.tokens_cached > 0.8 * first.tokens_raw
    assert second.tokens_raw + second.tokens_cached == first.tokens_raw


@pytest.mark.parametrize("strategy", ["cloud_only", "cloud_only:redacted", "adaptive_assistance", "sketch_guided", "random"])
@pytest.mark.parametrize("name", NAMES[::3])
def test_the_totals_are_the_sums_of_the_calls(strategy: str, name: str) -> None:
    env = DecisionEnv(task=name, cloud_settings={"outage_rate": 0.2})
    language = tasks.get(name).languages[0]
    done = play(env, load_strategy(strategy), EpisodeKey(task=name, language=language, split="test", seed=1, trial=1))
    calls = [event for event in done.events if isinstance(event, CloudCall)]
    result = done.result
    for total in ("tokens_raw", "tokens_cached", "tokens_out"):
        assert result[total] == sum(getattr(call, total) for call in calls)
    assert result["cloud_usd"] == pytest.approx(sum(float(call.usd) for call in calls), abs=1e-12)
    assert result["cloud_calls"] == sum(call.status == "ok" for call in calls)
    levels: dict[str, float] = {}
    for call in calls:
        for exposed in call.exposures:
            assert exposed.level > levels.get(exposed.unit, 0.0)
            levels[exposed.unit] = exposed.level
    assert {e["unit"]: e["level"] for e in result["exposed"]} == levels
    turns = [event for event in done.events if type(event).__name__ == "EdgeTurn"]
    assert result["edge_flops"] == pytest.approx(sum(turn.flops for turn in turns))
    assert result["edge_flops_without_probes"] == pytest.approx(sum(turn.flops for turn in turns if not turn.probe))
    assert result["usage_gap"] == {"raw": 0, "cached": 0, "out": 0, "usd": 0.0}, "simulated models report no usage"
    waited = sum(call.latency_s for call in calls) + sum(turn.latency_s for turn in turns)
    assert result["latency_s"] == pytest.approx(waited)


def test_unknown_settings_are_named() -> None:
    with pytest.raises(ConfigurationError, match="max_usd"):
        cloud_settings({"max_dollars": 1})
    assert cloud_settings({"latency": {"round_trip_s": 1.0, "prefill_tokens_per_s": 2.0, "decode_tokens_per_s": 3.0}}).latency
    assert CloudSettings().max_usd is None
    assert CloudSettings().max_exposure is None
