"""Any endpoint that speaks OpenAI's chat protocol: vLLM, llama.cpp, Ollama or a vendor. `openai:MODEL@base_url=...`."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.answers import Unusable, read_answer
from ec2_env.models.base import Message, Model, ModelCard, Reply, Signals
from ec2_env.models.chatrequest import Ask, chat_request
from ec2_env.models.drafts import called, drafted_tool
from ec2_env.models.draws import uniform
from ec2_env.models.endpoint import FORM, EndpointOptions, default_concurrency
from ec2_env.models.loading import Loader, read_options
from ec2_env.models.payload import digest
from ec2_env.models.queued import QueuedEdge
from ec2_env.models.replay import RecordingModel
from ec2_env.models.slots import Slots
from ec2_env.registry import require

MAX_BODY_BYTES = 16 << 20
_RETRIED = frozenset({408, 409, 425, 429})
_LONGEST_WAIT_S = 60.0
_OVERFLOW = re.compile(
    r"context.{0,3}(?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens",
    re.IGNORECASE | re.DOTALL,
)
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|exceeded your current quota", re.IGNORECASE)
_log = logging.getLogger(__name__)


class _Failure(NamedTuple):
    """Why an attempt brought no reply. `wait_s` is what the endpoint asks for, 0 if nothing."""

    problem: str
    again: bool = True
    wait_s: float = 0.0
    status: int = 0
    text: str = ""


class EndpointModel:
    """A model behind an HTTP endpoint.

    Overload (429), server errors, timeouts, broken connections and answers that are not what the protocol says are tried again
    after 0.5, 1, 2 ... 8 seconds, each a quarter shorter or longer by a draw that the request fixes, or after what the endpoint
    asks for, up to a minute. Refusals (400, 401, 403, 404, no credit) are not. Threads may share the object.

    An endpoint that refuses a parameter which is not the user's own wish (`logprobs`, a probe's `temperature`, the older name of
    `max_tokens`) is asked without it from then on. One that answers a probe of several tokens with status 500, as some servers do
    when a call is cut short, is from then on probed with one.

    Args:
        name: The model's name at the endpoint.
        options: Address and limits.
        sleep: Waits for so many seconds; tests pass their own.
        clock: Tells the seconds since any point, for the deadlines; tests pass their own.

    Raises:
        MissingExtra: at the first request, if the `openai` package is not installed.
    """

    def __init__(
        self,
        name: str,
        options: EndpointOptions | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.options = options or EndpointOptions()
        self._sleep, self._clock = sleep, clock
        self._refused: frozenset[str] = frozenset()
        """Parameters that this endpoint has refused; `draft` stands for probes of several tokens."""
        self._noted = False
        self._slots = Slots(self.options.base_url or "default", self.options.concurrency or default_concurrency())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_client"}

    @property
    def card(self) -> ModelCard:
        options = self.options
        return ModelCard(name=self.name, family=options.family, parameters=options.parameters, price=options.price)

    def bind_edge(self, progress: Any, cloud: Model | None) -> QueuedEdge:
        """Returns the model for one episode at the edge: several calls of one reply are made one after the other."""
        return QueuedEdge(self, progress)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the endpoint's answer; see `Model.complete`.

        Raises:
            EndpointError: if no attempt gave a usable answer; the message names the address, the last problem and the attempts.
        """
        reply = self._answer(Ask(messages, tools, logprobs))
        self._note(reply, logprobs)
        return reply

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the entropy of the first token, and the tool of the call that begins with it, asked for at temperature 0.

        The entropy is unknown where llama.cpp holds a token back that is only a part of a character.

        Raises:
            EndpointError: as `complete` does.
        """
        wanted = self._probe_tokens(tools)
        if "logprobs" in self._refused and wanted == 1:
            return Signals(tokens=0)
        reply = self._answer(Ask(messages, tools, logprobs, wanted))
        self._note(reply, logprobs)
        tool = called(reply.calls[0]) if reply.calls else drafted_tool(reply.text, tools)
        tokens = max(1, reply.usage.output) if reply.usage else self._probe_tokens(tools)
        return Signals(entropy=reply.entropy, tool=tool, tokens=tokens)

    def _probe_tokens(self, tools: Sequence[dict[str, Any]]) -> int:
        """Returns how many tokens a probe asks for: one where no call can come or the endpoint fails at the start of one."""
        wanted = self.options.probe_tokens if tools and "draft" not in self._refused else 1
        return min(wanted, self.options.max_tokens or wanted)

    def close(self) -> None:
        """Closes the connections; the next request opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    @cached_property
    def _client(self) -> Any:
        key = os.environ.get(self.options.key_env) or "none"
        return require("openai", extra="llm").OpenAI(
            base_url=self.options.base_url, api_key=key, timeout=self.options.timeout_s, max_retries=0
        )

    @property
    def _address(self) -> str:
        """The endpoint's address without user name and password, for messages."""
        return re.sub(r"//[^/@]*@", "//", self.options.base_url or str(self._client.base_url))

    def _answer(self, ask: Ask) -> Reply:
        began, attempts, failures, scale = self._clock(), 0, 0, 1.0
        while True:
            body = chat_request(self.name, self.options, ask, self._refused, scale)
            with self._slots.held():
                found = self._attempt(body, ask)
            attempts += 1
            if isinstance(found, Reply):
                return found
            if self._overflows(found) and self.options.max_context_tokens and scale > 0.2:
                scale *= 0.75
                continue
            if self._learned(found, body):
                continue
            if found.status == 500 and ask.probe_tokens > 1:
                self._refused |= {"draft"}
                self._tell(f"fails at a probe of several tokens ({found.problem}); it is probed with one, and names no tool")
                ask = ask._replace(probe_tokens=1)
                continue
            failures += 1
            wait_s = found.wait_s or self._usual_wait_s(body, failures)
            late = self._clock() - began + wait_s > self.options.deadline_s
            if not found.again or failures > self.options.retries or late:
                break
            self._sleep(wait_s)
        more = f" within {self.options.deadline_s:g} s" if late and found.again else ""
        raise EndpointError(
            f"{self.name} at {self._address} gave no usable answer in {attempts} attempt(s){more}; the last: {found.problem}"
            f"{self._hint(found)}"
        )

    def _usual_wait_s(self, body: Mapping[str, Any], failures: int) -> float:
        return min(8.0, 0.5 * 2.0 ** (failures - 1)) * (0.75 + 0.5 * uniform("retry", digest(body), failures))

    def _hint(self, failure: _Failure) -> str:
        key_env = self.options.key_env
        if failure.status in (401, 403):
            state = "it is set" if os.environ.get(key_env) else "it is not set"
            return f". Check the key: it is read from {key_env}, and {state}; another variable is named with key_env=NAME"
        if failure.status == 404:
            return ". Check base_url, which usually ends in /v1, and the model's name"
        if self._overflows(failure):
            return ". Set max_context_tokens to the model's window, or to less"
        return ""

    @staticmethod
    def _overflows(failure: _Failure) -> bool:
        return failure.status in (400, 413, 422) and _OVERFLOW.search(failure.text) is not None

    def _learned(self, failure: _Failure, body: Mapping[str, Any]) -> bool:
        """Says whether the endpoint has just refused a parameter for the first time that it can do without."""
        if failure.status not in (400, 422) or self._overflows(failure):
            return False
        optional = {"max_tokens": "max_completion_tokens", "logprobs": "logprobs"}
        if self.options.temperature is None:
            optional["temperature"] = "temperature"
        for name, mark in optional.items():
            if name in body and name not in self._refused and mark in failure.text:
                self._refused |= {name}
                if name == "logprobs":
                    self._tell_no_entropy(failure.problem)
                return True
        return False

    def _note(self, reply: Reply, logprobs: int) -> None:
        if logprobs > 0 and reply.entropy is None:
            self._tell_no_entropy("no logprobs in an answer that should have them")

    def _tell_no_entropy(self, problem: str) -> None:
        if not self._noted:
            self._noted = True
            self._tell(f"does not tell its first-token entropy ({problem}); step-routing escalates each such step")

    def _tell(self, problem: str) -> None:
        _log.warning("%s at %s %s", self.name, self._address, problem)

    def _attempt(self, body: dict[str, Any], ask: Ask) -> Reply | _Failure:
        openai = require("openai", extra="llm")
        late = f"no answer within {self.options.timeout_s:g} s"
        try:
            with self._client.chat.completions.with_streaming_response.create(**body) as answer:
                status, content = answer.status_code, self._content(answer)
        except (openai.APITimeoutError, TimeoutError):
            return _Failure(late)
        except openai.APIStatusError as error:
            return _refusal(error)
        except openai.APIConnectionError as error:
            return _Failure(f"no connection ({error.__cause__ or error})")
        except Exception as error:
            if not _is_transport_error(error):
                raise
            return _Failure(late if "Timeout" in type(error).__name__ else f"the connection broke ({type(error).__name__})")
        try:
            return read_answer(json.loads(content), ask.tools, self.options.tools)
        except (ValueError, RecursionError) as error:
            problem = str(error) if isinstance(error, Unusable) else "not JSON"
            return _Failure(f"HTTP {status}, {problem}: {_excerpt(content.decode('utf-8', 'replace'))}")

    def _content(self, answer: Any) -> bytes:
        """Reads a body, but not for ever.

        Raises:
            TimeoutError: if it is not there in time.
        """
        began, content = self._clock(), bytearray()
        for part in answer.iter_bytes():
            content += part
            if len(content) > MAX_BODY_BYTES:
                return bytes(content[:1000])  # no chat answer is so long: it is cut, is then no JSON, and is reported
            if self._clock() - began > self.options.timeout_s:
                raise TimeoutError
        return bytes(content)


def _is_transport_error(error: Exception) -> bool:
    """Says whether the HTTP library, whichever the SDK uses, reports a fault of the connection while a body is read."""
    return any(kind.__name__ in ("TransportError", "StreamError", "DecodingError") for kind in type(error).__mro__)


def _refusal(error: Any) -> _Failure:
    status, text = error.status_code, error.response.text
    again = (status in _RETRIED or status >= 500) and not _NO_CREDIT.search(text)
    wait_s = _asked_wait_s(error.response.headers)
    return _Failure(f"HTTP {status}: {_excerpt(text)}", again, wait_s, status, text[:10_000])


def _asked_wait_s(headers: Mapping[str, str]) -> float:
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return min(_LONGEST_WAIT_S, max(0.0, float(headers.get(name, "")) * unit_s))
        except ValueError:
            continue  # absent, or a date: the usual wait serves
    return 0.0


def _excerpt(text: str) -> str:
    return " ".join(text[:600].split())[:300] or "an empty body"


def _load(rest: str) -> Model:
    name, options = read_options(rest, EndpointOptions, form=FORM)
    if not name:
        raise ConfigurationError(f"the model's name at the endpoint is missing; a model is written {FORM}")
    model = EndpointModel(name, options)
    if not options.record:
        return model
    if multiprocessing.parent_process() is not None:
        raise ConfigurationError("record=FILE is for runs in one process; use --workers 1")
    return RecordingModel(model, options.record)


LOADER = Loader(load=_load, form=FORM)
