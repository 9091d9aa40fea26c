"""Recordings give back what was recorded, survive a crash, and say what was not recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import Message, ModelCard, Reply, Signals, Usage
from ec2_env.models.loading import load_model
from ec2_env.models.payload import read_reply, reply_record
from ec2_env.models.replay import NotRecorded, RecordingModel, ReplayModel
from ec2_env.models.scripted import ScriptedModel

USER = {"role": "user", "content": "go \ud800 价"}
TOOL = {"type": "function", "function": {"name": "finish", "parameters": {}}}


class Counting:
    """Answers with the number of requests so far: the same request never gets the same reply."""

    card = ModelCard(name="counting", family="o200k", price="gpt-5.4")

    def __init__(self) -> None:
        self.count = 0

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        self.count += 1
        call = {"name": "finish", "arguments": {"answer": str(self.count)}}
        return Reply(text=f"{self.count}", calls=(call,), usage=Usage(raw=1, cached=2, output=3), entropy=0.25, thinking_tokens=4)


def test_a_replay_equals_the_run(tmp_path: Path) -> None:
    file = tmp_path / "new" / "run.jsonl"
    recording = RecordingModel(Counting(), file)
    chats = [[USER], [USER, {"role": "assistant", "content": "x"}], [USER]]
    said = [recording.complete(chat, [TOOL], 5) for chat in chats]
    replay = load_model(f"replay:{file}")
    assert [replay.complete(chat, [TOOL], 5) for chat in chats] == said
    assert replay.card == recording.card


def test_repeated_requests_get_their_replies_in_order_and_then_the_last(tmp_path: Path) -> None:
    recording = RecordingModel(Counting(), tmp_path / "run.jsonl")
    for _ in range(3):
        recording.complete([USER])
    replay = ReplayModel(tmp_path / "run.jsonl")
    assert [replay.complete([USER]).text for _ in range(5)] == ["1", "2", "3", "3", "3"]
    replay.rewind()
    assert replay.complete([USER]).text == "1"


def test_signals_are_recorded_apart_from_turns(tmp_path: Path) -> None:
    recording = RecordingModel(Counting(), tmp_path / "run.jsonl")
    told = Signals(entropy=0.25, tool="finish", tokens=3)
    assert recording.probe([USER], [TOOL], 5) == told
    replay = ReplayModel(tmp_path / "run.jsonl")
    assert replay.probe([USER], [TOOL], 5) == told
    with pytest.raises(NotRecorded, match="a probe, not for a turn"):
        replay.complete([USER], [TOOL], 5)


def test_signals_recorded_before_tools_were_told_are_still_read(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    RecordingModel(Counting(), file).probe([USER], [TOOL], 5)
    head, record = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    record["signals"] = {"entropy": 0.25, "wants_help": None}
    file.write_text(f"{json.dumps(head)}\n{json.dumps(record)}\n", encoding="utf-8")
    assert ReplayModel(file).probe([USER], [TOOL], 5) == Signals(entropy=0.25, tool=None, tokens=1)


def test_an_unrecorded_request_is_told_where_it_departs(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": "x"}
    RecordingModel(Counting(), tmp_path / "run.jsonl").complete([USER, said, {"role": "tool", "content": "a"}], [TOOL], 5)
    replay = ReplayModel(tmp_path / "run.jsonl")
    cases: list[tuple[list[Message], list[dict[str, Any]], int, str]] = [
        ([USER, said, {"role": "tool", "content": "b"}], [TOOL], 5, r"message 3 \(role tool\) differs"),
        ([USER, said], [TOOL], 5, "it has 2 messages, the nearest recorded one 3"),
        ([USER, said, {"role": "tool", "content": "a"}], [], 5, "other tools"),
        ([USER, said, {"role": "tool", "content": "a"}], [TOOL], 0, "logprobs=5, not 0"),
    ]
    for messages, tools, logprobs, part in cases:
        with pytest.raises(NotRecorded, match=part):
            replay.complete(messages, tools, logprobs)
    assert issubclass(NotRecorded, EndpointError)


def test_a_recording_continues_after_a_crash_in_the_middle_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    RecordingModel(Counting(), file).complete([USER])
    with file.open("ab") as torn:
        torn.write(b'{"key": "half a li')
    assert ReplayModel(file).complete([USER]).text == "1"
    RecordingModel(Counting(), file).complete([USER], [TOOL])
    assert ReplayModel(file).complete([USER], [TOOL]).text == "1"
    assert len(file.read_bytes().splitlines()) == 3


def test_a_crash_in_the_first_line_leaves_an_empty_recording(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(b'{"format": 1, "ca')
    RecordingModel(Counting(), file).complete([USER])
    assert ReplayModel(file).card.name == "counting"


def test_a_file_records_one_model_only(tmp_path: Path) -> None:
    recording = RecordingModel(Counting(), tmp_path / "run.jsonl")
    assert not recording.path.exists()
    recording.complete([USER])
    with pytest.raises(ConfigurationError, match="records 'counting', not 'scripted'"):
        RecordingModel(ScriptedModel(["a"]), tmp_path / "run.jsonl")


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    recording = RecordingModel(ScriptedModel(["x" * 5_000]), tmp_path / "run.jsonl")
    threads = [threading.Thread(target=recording.complete, args=([{"role": "user", "content": str(i)}],)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    replay = ReplayModel(tmp_path / "run.jsonl")
    assert all(len(replay.complete([{"role": "user", "content": str(i)}]).text) == 5_000 for i in range(16))


@pytest.mark.parametrize("content", ["", "\n", "[]\n", '{"format": 99, "card": {}}\n', '{"format": 1, "card": {"name": "x"}}\n'])
def test_a_file_that_is_no_recording_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(content)
    with pytest.raises(ConfigurationError):
        ReplayModel(file)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    RecordingModel(Counting(), tmp_path / "run.jsonl").complete([USER])
    with (tmp_path / "run.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(ConfigurationError, match="line 3"):
        ReplayModel(tmp_path / "run.jsonl")


class Failing:
    """An endpoint that fails at every second request."""

    card = ModelCard(name="failing", family="o200k")

    def __init__(self) -> None:
        self.count = 0

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        self.count += 1
        if self.count % 2:
            raise EndpointError(f"down \ud800 {self.count}")
        return Reply(text=str(self.count))


def test_failures_are_recorded_and_fail_again_in_the_same_words(tmp_path: Path) -> None:
    def heard(model: RecordingModel | ReplayModel) -> list[str]:
        said = []
        for number in range(4):
            try:
                said.append(model.complete([USER]).text if number < 2 else str(model.probe([USER], [TOOL], 20)))
            except EndpointError as error:
                said.append(str(error).replace("\ud800", "?"))
        return said

    first = heard(RecordingModel(Failing(), tmp_path / "run.jsonl"))
    assert first == heard(ReplayModel(tmp_path / "run.jsonl"))
    assert first[:2] == ["down ? 1", "2"]


_USAGE = st.builds(Usage, raw=st.integers(0), cached=st.integers(0), output=st.integers(0), reasoning=st.integers(0))
_CALL = st.fixed_dictionaries({"name": st.text(), "arguments": st.dictionaries(st.text(), st.integers())})
_REPLY = st.builds(
    Reply,
    text=st.text(),
    calls=st.lists(_CALL, max_size=2).map(tuple),
    usage=st.none() | _USAGE,
    entropy=st.none() | st.floats(0, 10),
    thinking_tokens=st.integers(0),
    reasoning=st.text(),
)


@given(_REPLY)
def test_every_reply_survives_being_written_and_read(reply: Reply) -> None:
    assert read_reply(reply_record(reply)) == reply
