"""Recorded replies, for the exact reproduction of a run that was paid for: `replay:FILE.jsonl`.

The first line of a recording holds the model's card. Each other line holds one reply, or the endpoint's failure, under the
digest of its request, and short digests of the request's messages, so that a request which was not recorded can be told where it
departs. Prompts themselves are not stored.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from ec2_env.actions import clean
from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import Message, Model, ModelCard, Probing, Reply, Signals
from ec2_env.models.drafts import called
from ec2_env.models.loading import Loader
from ec2_env.models.payload import cleaned, digest, read_card, read_reply, reply_record
from ec2_env.models.queued import QueuedEdge

FORM = "replay:FILE.jsonl, a file written by RecordingModel"
FORMAT = 1
_SHORT = 16


class NotRecorded(EndpointError):
    """A replayed run asked for something that the recorded run did not ask for."""


class _Failed(NamedTuple):
    """What an endpoint was reported to have done wrong."""

    problem: str


_Answer: TypeAlias = Reply | Signals | _Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The identity of one request.

    Attributes:
        key: SHA-256 of all the rest together.
        messages: `ROLE DIGEST` for each message, in order.
        tools: Digest of the tool schemas.
        logprobs: Size of the first-token distribution asked for.
        probe: Whether only the signals are asked for, not a turn.
    """

    key: str
    messages: tuple[str, ...]
    tools: str
    logprobs: int
    probe: bool

    @classmethod
    def of(cls, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int, *, probe: bool = False) -> Request:
        """Digests a request."""
        parts = tuple(f"{message.get('role')} {digest(message)[:_SHORT]}" for message in messages)
        key = digest([list(messages), list(tools), logprobs, probe])
        return cls(key=key, messages=parts, tools=digest(list(tools))[:_SHORT], logprobs=logprobs, probe=probe)


class RecordingModel:
    """Passes requests on to a model and appends every reply to a file.

    The file begins with the first reply, and a line is on disk before its reply is returned. An existing recording of the same
    model is continued; what a crash left of a half-written line is removed. Threads may share the object; processes need a file
    each.

    Raises:
        ConfigurationError: if the file exists and is not a recording of this model.
    """

    def __init__(self, inner: Model, path: str | Path) -> None:
        self.inner = inner
        self.path = Path(path)
        self._lock = threading.Lock()
        if self._begun():
            _drop_torn_line(self.path)
        if self._begun():
            recorded = ReplayModel(self.path).card
            if recorded != inner.card:
                raise ConfigurationError(f"{path} records {recorded.name!r}, not {inner.card.name!r}; choose another file")

    @property
    def card(self) -> ModelCard:
        return self.inner.card

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the inner model's reply, after it has been written down; so is an error before it is raised."""
        with self._recording(Request.of(messages, tools, logprobs)) as record:
            reply = self.inner.complete(messages, tools, logprobs)
            record["reply"] = cleaned(reply_record(reply))
        return reply

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns and writes down the inner model's signals; one that cannot be probed is asked for a whole turn."""
        with self._recording(Request.of(messages, tools, logprobs, probe=True)) as record:
            if isinstance(self.inner, Probing):
                signals = self.inner.probe(messages, tools, logprobs)
            else:
                signals = _turn_signals(self.inner.complete(messages, tools, logprobs))
            record["signals"] = dataclasses.asdict(signals)
        return signals

    def bind_edge(self, progress: Any, cloud: Model | None) -> QueuedEdge:
        """Returns the model for one episode at the edge: several calls of one reply are made one after the other."""
        return QueuedEdge(self, progress)

    @contextmanager
    def _recording(self, request: Request) -> Iterator[dict[str, Any]]:
        """Gives a record to complete, and writes it down even if the endpoint fails."""
        record = dataclasses.asdict(request)
        try:
            yield record
        except EndpointError as error:
            self._append(record | {"error": clean(str(error))})
            raise
        self._append(record)

    def _begun(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > 0

    def _append(self, record: dict[str, Any]) -> None:
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            head = [] if self._begun() else [{"format": FORMAT, "card": dataclasses.asdict(self.inner.card)}]
            with self.path.open("ab") as file:
                for one in (*head, record):
                    file.write(json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n")
                file.flush()
                os.fsync(file.fileno())


class ReplayModel:
    """Answers from a recording.

    Where the same request was recorded several times, its replies are served in recorded order and the last one repeats. This
    position is the one thing that the model remembers; `rewind` forgets it.

    Raises:
        ConfigurationError: if the file is missing or is not a recording.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise ConfigurationError(f"no file {str(path)!r}; a recorded model is written {FORM}")
        with self.path.open("rb") as file:
            self._card = self._read_head(file)
            self._answers: dict[str, list[_Answer]] = defaultdict(list)
            self._requests: list[Request] = []
            for number, line in enumerate(file, 2):
                if line.endswith(b"\n"):
                    self._read_line(line, number)
        self._served: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def card(self) -> ModelCard:
        return self._card

    def rewind(self) -> None:
        """Serves repeated requests from their first recorded reply again."""
        with self._lock:
            self._served.clear()

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the recorded reply to exactly this request.

        Raises:
            NotRecorded: if there is none; the message says where the request departs from the nearest recorded one.
            EndpointError: if the endpoint failed in the recorded run, with the same words.
        """
        answer = self._next(Request.of(messages, tools, logprobs))
        return answer if isinstance(answer, Reply) else Reply(entropy=answer.entropy)

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the recorded signals.

        Raises:
            NotRecorded: if the recorded run did not ask for them.
            EndpointError: as `complete` does.
        """
        answer = self._next(Request.of(messages, tools, logprobs, probe=True))
        return answer if isinstance(answer, Signals) else _turn_signals(answer)

    def bind_edge(self, progress: Any, cloud: Model | None) -> QueuedEdge:
        """Returns the model for one episode at the edge, as the recorded one was."""
        return QueuedEdge(self, progress)

    def _next(self, request: Request) -> Reply | Signals:
        answers = self._answers.get(request.key)
        if not answers:
            raise NotRecorded(f"{self.path} has no answer to this request: {self._difference(request)}")
        with self._lock:
            position = self._served.get(request.key, 0)
            self._served[request.key] = position + 1
        answer = answers[min(position, len(answers) - 1)]
        if isinstance(answer, _Failed):
            raise EndpointError(answer.problem)
        return answer

    def _read_head(self, file: BinaryIO) -> ModelCard:
        try:
            head = json.loads(file.readline())
            if head["format"] != FORMAT:
                raise ConfigurationError(f"{self.path} has format {head['format']!r}; this version reads {FORMAT}")
            return read_card(head["card"])
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError(f"{self.path} does not begin with a model card; expected {FORM}") from error

    def _read_line(self, line: bytes, number: int) -> None:
        try:
            record = json.loads(line)
            answer = _read_answer(record)
            request = Request(
                key=record["key"],
                messages=tuple(record["messages"]),
                tools=record["tools"],
                logprobs=record["logprobs"],
                probe=record["probe"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{self.path}, line {number}, is not a recorded reply: {error}") from error
        self._answers[request.key].append(answer)
        self._requests.append(request)

    def _difference(self, request: Request) -> str:
        if not self._requests:
            return "the recording is empty"
        same, nearest = max(((_shared(request, other), other) for other in self._requests), key=lambda pair: pair[0])
        if same < len(request.messages) and same < len(nearest.messages):
            role = request.messages[same].split()[0]
            return (
                f"its message {same + 1} (role {role}) differs from every recorded one that begins with the same {same} messages"
            )
        if same < max(len(request.messages), len(nearest.messages)):
            return f"it has {len(request.messages)} messages, the nearest recorded one {len(nearest.messages)}"
        if request.tools != nearest.tools:
            return "its messages were recorded, but with other tools"
        if request.logprobs == nearest.logprobs:
            return "its messages were recorded for " + ("a turn, not for a probe" if request.probe else "a probe, not for a turn")
        return f"its messages were recorded with logprobs={nearest.logprobs}, not {request.logprobs}"


def _turn_signals(reply: Reply) -> Signals:
    """Returns what a whole turn tells."""
    tool = called(reply.calls[0]) if reply.calls else None
    return Signals(entropy=reply.entropy, tool=tool, tokens=reply.usage.output if reply.usage else 1)


def _read_answer(record: Any) -> _Answer:
    if "error" in record:
        return _Failed(str(record["error"]))
    return Signals(**record["signals"]) if "signals" in record else read_reply(record["reply"])


def _shared(one: Request, other: Request) -> int:
    count = 0
    for left, right in zip(one.messages, other.messages, strict=False):
        if left != right:
            break
        count += 1
    return count


def _drop_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


LOADER = Loader(load=ReplayModel, form=FORM)
