"""The ledger: where everything that crossed came from, and every figure on privacy computed again from the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from ec2_env.actions import InvokeCloud, ToolCall, dump_action
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.ledger import Account, Ledger, accounts, figures, ledger, units_of
from ec2_env.cloud.provenance import Context
from ec2_env.envs import DecisionEnv, WorkspaceEnv
from ec2_env.reward import privacy, terms
from ec2_env.rollout import EpisodeKey, play, record
from ec2_env.sensitive import SensitiveUnit
from ec2_env.session import Session
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode, tasks
from ec2_env.testing import play as solve
from ec2_env.trace import CloudCall, Ended, Exposed, ToolRan, Trajectory, from_json, to_json

STRATEGIES = ("cloud_only", "cloud_only:redacted", "edge_only", "adaptive_assistance", "sketch_guided", "random")
OUTAGES = {"outage_rate": 0.3, "max_calls": 6}


@cache
def played(name: str, strategy: str, outages: bool = False) -> Trajectory:
    """Returns the record of an episode, as it is read back from its line."""
    env = DecisionEnv(cloud_settings=OUTAGES if outages else {})
    key = EpisodeKey(task=name, language=tasks.get(name).languages[-1], split="test", seed=1, trial=0)
    return from_json(to_json(play(env, load_strategy(strategy), key)))


def records() -> Iterator[Trajectory]:
    """Returns the records of many episodes, of every strategy, a third of them with a cloud that often fails."""
    for number, name in enumerate(tasks.names()[::6]):
        for strategy in STRATEGIES:
            yield played(name, strategy, number % 3 == 2)


def running(name: str = "forward_invoice", seed: int = 7) -> Session:
    """Returns a session with a simulated cloud and without an edge model."""
    env = DecisionEnv()
    return Session(build_episode(name, seed, "en", "test"), cloud=env.cloud, settings=CloudSettings())


def account(name: str, weight: float, necessity: Any, touched: bool, level: float) -> Account:
    return Account(
        unit=name, kind="phone", dimension="personal", weight=weight, necessity=necessity, touched=touched, level=level
    )


def test_every_figure_on_privacy_follows_from_the_record() -> None:
    leaks = 0
    for one in records():
        again = ledger(one).figures()
        assert again == {name: one.result[name] for name in again}
        leaks += again["any_leak"]
    assert leaks > 20, "the episodes say something"


@pytest.mark.parametrize("redact", [False, True])
def test_the_figures_of_an_agent_outside_follow_from_its_record_too(redact: bool) -> None:
    for seed, name in enumerate(tasks.names()[::24]):
        env = WorkspaceEnv(task=name)
        env.reset(seed=seed)
        session = env.session
        assert session is not None
        for number, action in enumerate(solve(session.episode).actions):
            if number % 2:
                request = f"What about {session.episode.instruction[:200]}?"
                asked = {"request": request, "mode": "advise", "share": "transcript", "redact": redact}
                env.step({"name": "invoke_cloud", "arguments": asked})
            _, _, terminated, truncated, _ = env.step(dump_action(action))
            if terminated or truncated:
                break
        one = from_json(to_json(record(session, "agent")))
        again = ledger(one).figures()
        assert again == {figure: one.result[figure] for figure in again}


def test_the_figures_follow_from_the_serialized_ledger_alone() -> None:
    for one in records():
        line = msgspec.json.encode(ledger(one))
        assert msgspec.json.decode(line, type=Ledger).figures() == ledger(one).figures()


def test_the_ledger_holds_no_value() -> None:
    one = played("forward_invoice", "cloud_only")
    text = msgspec.json.encode(ledger(one)).decode()
    assert not any(unit.value in text for unit in units_of(one))


def test_the_units_of_a_record_are_those_of_its_episode() -> None:
    session = running()
    key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=7, trial=0)
    assert units_of(play(DecisionEnv(), load_strategy("edge_only"), key)) == tuple(session.episode.units)


def test_what_crossed_is_what_the_audit_finds_in_the_recorded_texts() -> None:
    for one in records():
        audit = Audit(units_of(one))
        for call in one.events:
            if isinstance(call, CloudCall):
                audit.scan([text for _, text in call.sent])
        assert {line["unit"]: line["level"] for line in one.result["exposed"]} == audit.levels


def test_what_was_touched_is_what_the_recorded_texts_show() -> None:
    for one in records():
        text = "\n".join([one.instruction, *(event.result for event in one.events if isinstance(event, ToolRan))])
        assert one.result["touched"] == [unit.id for unit in units_of(one) if unit.value in text]


def test_every_exposure_says_where_it_crossed_and_where_it_came_from() -> None:
    origins = set()
    for one in records():
        units = {unit.id: unit for unit in units_of(one)}
        sent = 0
        for position, call in enumerate(one.events):
            if not isinstance(call, CloudCall):
                continue
            sent += call.status != "refused"
            for line in call.exposures:
                unit = units[line.unit]
                origins.add(line.origin)
                assert (line.step, line.call, line.necessity) == (call.step, sent, unit.necessity)
                assert dict(call.sent)[line.text][line.start : line.end]
                if line.origin == "instruction":
                    assert line.event == -1 and Audit((unit,)).find(one.instruction)[unit.id] >= line.level
                if line.origin == "tool":
                    source = one.events[line.event]
                    assert isinstance(source, ToolRan)
                    assert line.event < position and Audit((unit,)).find(source.result)[unit.id] >= line.level
    assert {"tool", "instruction"} <= origins <= {"tool", "instruction", "agent"}


def test_the_first_result_that_shows_a_value_is_the_one_that_brought_it() -> None:
    session = running()
    for action in list(solve(session.episode).actions)[:-1]:
        session.call(action, "edge")
    answer = session.invoke(InvokeCloud(request="Go on.", mode="advise", share="transcript", redact=False))
    assert answer is not None and answer.event.exposures
    for line in answer.event.exposures:
        value = next(unit.value for unit in session.episode.units if unit.id == line.unit)
        results = [event.result if isinstance(event, ToolRan) else "" for event in session.events]
        assert line.event == next(index for index, result in enumerate(results) if value in result)


def test_a_value_that_the_agent_writes_unread_comes_from_the_agent() -> None:
    session = running()
    unit = session.episode.units[0]
    asked = InvokeCloud(request=f"Is {unit.value} right?", mode="advise", share="request", redact=False)
    answer = session.fork().invoke(asked)
    assert answer is not None
    assert [(line.origin, line.event, line.call) for line in answer.event.exposures if line.unit == unit.id] == [("agent", -1, 1)]
    session.call(ToolCall("search_mail", {"query": unit.value}), "edge")
    later = session.invoke(asked)
    assert later is not None
    assert [(line.origin, line.event) for line in later.event.exposures if line.unit == unit.id] == [("agent", 0)]


def test_a_value_that_was_read_encoded_comes_from_where_it_was_read() -> None:
    events = [
        ToolRan(0, "edge", "read", {}, True, "nothing"),
        ToolRan(1, "edge", "read", {}, True, "coded"),
        ToolRan(2, "edge", "send", {"text": "4711-42"}, True, "sent 4711-42"),
    ]
    levels = {"coded": 1.0}
    context = Context("Do it.", events)
    assert context.origin("4711-42", 1.0, "x", lambda text: levels.get(text, 0.0)) == ("tool", 1)


def test_a_value_in_two_pieces_comes_from_the_result_that_completes_it() -> None:
    events = [ToolRan(step, "edge", "read", {}, True, text) for step, text in enumerate(("4711", "-42"))]
    assert Context("Do it.", events).origin("4711-42", 1.0, "-42", lambda text: 0.0) == ("tool", 1)


def test_units_seen_and_all_units_are_reported_apart() -> None:
    units = (
        account("a", 3.0, "none", True, 1.0),
        account("b", 1.0, "copy", True, 0.0),
        account("c", 2.0, "reason", False, 0.0),
        account("d", 2.0, "copy", False, 0.3),
    )
    found = figures(units, called=True)
    assert found["privacy"] == pytest.approx(1 - 3.6 / 6)
    assert found["privacy_unweighted"] == pytest.approx(1 - 1.3 / 3)
    assert found["privacy_all"] == pytest.approx(1 - 3.6 / 8)
    assert found["privacy_all_unweighted"] == pytest.approx(1 - 1.3 / 4)
    assert found["necessary_exposure"] == pytest.approx(0.6 / 5)
    assert found["excess_exposure"] == 1.0
    assert (found["any_leak"], found["called"], found["touched"], found["units"]) == (True, True, ["a", "b"], 4)
    assert found["exposed"] == [{"unit": "a", "level": 1.0}, {"unit": "d", "level": 0.3}]


def test_where_there_is_nothing_to_expose_nothing_is() -> None:
    found = figures((), called=False)
    assert [found[name] for name in ("privacy", "privacy_unweighted", "privacy_all", "privacy_all_unweighted")] == [1.0] * 4
    assert (found["necessary_exposure"], found["excess_exposure"], found["any_leak"], found["called"]) == (0.0, 0.0, False, False)


def test_the_ledger_and_the_reward_say_the_same_of_privacy() -> None:
    units = tuple(
        SensitiveUnit(id=f"u{n}", kind="phone", value=str(n), owner="x", weight=0.1 * n, necessity="none", dimension="personal")
        for n in range(1, 8)
    )
    for crossed in range(8):
        levels = {f"u{n}": (0.3, 0.7, 1.0)[n % 3] for n in range(1, crossed + 1)}
        for touched in ([], ["u2", "u7"], [unit.id for unit in units]):
            found = figures(accounts(units, levels, touched), called=True)
            assert found["privacy"] == privacy(units, levels, touched)


def test_necessary_and_excess_exposure_make_up_the_exposure_term_of_the_reward() -> None:
    for one in records():
        units = units_of(one)
        term = terms(one.events, {}, units, 1.0).exposure
        assert term == pytest.approx(1 - one.result["privacy_all"])
        needed = sum(unit.weight for unit in units if unit.necessity != "none")
        rest = sum(unit.weight for unit in units) - needed
        parts = one.result["necessary_exposure"] * needed + one.result["excess_exposure"] * rest
        assert parts == pytest.approx(term * (needed + rest))


def test_a_call_that_left_and_was_not_answered_has_used_the_cloud() -> None:
    env = DecisionEnv(cloud_settings={"outage_rate": 1.0})
    key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=7, trial=0)
    result = play(env, load_strategy("cloud_only"), key).result
    assert (result["called"], result["cloud_calls"]) == (True, 0)
    refused = play(DecisionEnv(cloud_settings={"max_calls": 0}), load_strategy("cloud_only"), key).result
    assert (refused["called"], refused["any_leak"]) == (False, False)


def test_a_record_of_the_first_version_can_be_read() -> None:
    one = played("forward_invoice", "cloud_only")
    old = json.loads(to_json(one))
    old["format"] = 1
    for event in old["events"]:
        for line in event.get("exposures", ()):
            for name in ("step", "call", "origin", "event", "necessity"):
                del line[name]
    again = from_json(json.dumps(old))
    assert again.format == 1 and isinstance(again.events[-1], Ended)
    first = next(line for call in again.events if isinstance(call, CloudCall) for line in call.exposures)
    assert first == Exposed(first.unit, first.level, first.form, first.text, first.start, first.end)
    assert (first.origin, first.necessity) == ("unknown", "unknown")
    assert ledger(again).figures() == ledger(one).figures()
