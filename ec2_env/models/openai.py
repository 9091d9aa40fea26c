"""Any endpoint that speaks OpenAI's chat protocol: vLLM, llama.cpp, Ollama or a vendor. `openai:MODEL@base_url=...`."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import Message, Model, ModelCard, Reply, Signals, Usage
from ec2_env.models.entropy import top_entropy
from ec2_env.models.loading import Loader, read_options
from ec2_env.models.payload import arguments_text, cleaned, function_of
from ec2_env.models.replay import RecordingModel
from ec2_env.models.toolchat import chat_turns, read_call, render_tools
from ec2_env.models.window import estimated_tokens, fit
from ec2_env.registry import require

FORM = (
    "openai:MODEL@base_url=http://HOST/v1,key_env=NAME,price=NAME,family=o200k,parameters=4e9,protocol=native|json,timeout_s=60"
)
_RETRIED = frozenset({408, 409, 425, 429})
_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """How an endpoint is addressed and what the accounting sees.

    Attributes:
        base_url: Address up to and including the version; None is the SDK's own default.
        key_env: Environment variable that holds the key. Local servers need none.
        price: Entry of the price book; None if the model is not sold by the token.
        family: Vocabulary that tokens are counted with where the endpoint reports no usage.
        parameters: Number of weights used for a token, for FLOPs.
        protocol: `native` sends tools to the endpoint; `json` describes them in the prompt and reads the call from the text.
        timeout_s: Longest wait for one answer.
        retries: Further attempts after the first.
        temperature: None leaves it to the endpoint; some models accept no other.
        seed: Sampling seed, for endpoints that honor it.
        max_tokens: Most output tokens; None leaves it to the endpoint.
        max_context_tokens: Longer chats are cut by `ec2_env.models.window.fit`; None sends everything.
        record: File that requests' digests and replies are appended to, for `replay:FILE`; for runs in one process.
    """

    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    price: str | None = None
    family: str = "o200k"
    parameters: float | None = None
    protocol: Literal["native", "json"] = "native"
    timeout_s: float = 60.0
    retries: int = 4
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_context_tokens: int | None = None
    record: str | None = None

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigurationError(f"base_url is {self.base_url!r}; expected an address that begins with http:// or https://")
        if self.timeout_s <= 0 or self.retries < 0:
            raise ConfigurationError("timeout_s must be positive and retries at least 0")


class _Unusable(ValueError):
    """An answer that is JSON but not what the protocol says."""


class EndpointModel:
    """A model behind an HTTP endpoint.

    Overload (429), server errors, timeouts, broken connections and answers that are not what the protocol says are tried again
    after 0.5, 1, 2 ... 8 seconds, or after what the endpoint asks for, up to a minute. Threads may share the object.

    Args:
        name: The model's name at the endpoint.
        options: Address and limits.
        sleep: Waits for so many seconds; tests pass their own.

    Raises:
        MissingExtra: at the first request, if the `openai` package is not installed.
    """

    def __init__(self, name: str, options: EndpointOptions | None = None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = name
        self.options = options or EndpointOptions()
        self._sleep = sleep

    @property
    def card(self) -> ModelCard:
        options = self.options
        return ModelCard(name=self.name, family=options.family, parameters=options.parameters, price=options.price)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), logprobs: int = 0) -> Reply:
        """Returns the endpoint's answer; see `Model.complete`.

        Raises:
            EndpointError: if no attempt gave a usable answer; the message names the address, the last problem and the attempts.
        """
        return self._answer(self._request(messages, tools, logprobs), bool(tools))

    def probe(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> Signals:
        """Returns the entropy of the first token; the endpoint is asked for one token only.

        Raises:
            EndpointError: as `complete` does.
        """
        body = self._request(messages, tools, logprobs) | {"max_tokens": 1}
        return Signals(entropy=self._answer(body, bool(tools)).entropy)

    def _answer(self, body: dict[str, Any], has_tools: bool) -> Reply:
        problem, attempt = "", 0
        for attempt in range(1, self.options.retries + 2):
            reply, problem, wait_s = self._attempt(body, has_tools)
            if reply is not None:
                return reply
            if wait_s is None:
                break
            if attempt <= self.options.retries:
                self._sleep(wait_s or min(8.0, 0.5 * 2 ** (attempt - 1)))
        raise EndpointError(f"{self.name} at {self._address} gave no usable answer in {attempt} attempt(s); the last: {problem}")

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

    def _request(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], logprobs: int) -> dict[str, Any]:
        options = self.options
        if options.max_context_tokens is not None:
            room = options.max_context_tokens - (options.max_tokens or 0)
            messages = fit(messages, room - estimated_tokens(render_tools(tools)) - 64)
        body: dict[str, Any] = {"model": self.name}
        if options.protocol == "json":
            body["messages"] = chat_turns(messages, tools)
        else:
            body["messages"] = [_message(message) for message in messages]
            if tools:
                body["tools"] = [{"type": "function", "function": function_of(tool)} for tool in tools]
        if logprobs > 0:
            body |= {"logprobs": True, "top_logprobs": logprobs}
        wanted = {"temperature": options.temperature, "seed": options.seed, "max_tokens": options.max_tokens}
        return {**cleaned(body), **{name: value for name, value in wanted.items() if value is not None}}

    def _attempt(self, body: dict[str, Any], has_tools: bool) -> tuple[Reply | None, str, float | None]:
        """Returns the reply, or the problem and the seconds to wait (0: the usual; None: trying again is no use)."""
        openai = require("openai", extra="llm")
        try:
            raw = self._client.chat.completions.with_raw_response.create(**body)
        except openai.APITimeoutError:
            return None, f"no answer within {self.options.timeout_s:g} s", 0.0
        except openai.APIStatusError as error:
            problem = f"HTTP {error.status_code}: {_excerpt(error.response.text)}"
            retried = error.status_code in _RETRIED or error.status_code >= 500
            return None, problem, _asked_wait(error.response.headers) if retried else None
        except openai.APIConnectionError as error:
            return None, f"no connection ({error.__cause__ or error})", 0.0
        try:
            return self._reply(json.loads(raw.http_response.content), has_tools), "", 0.0
        except (ValueError, RecursionError) as error:
            problem = str(error) if isinstance(error, _Unusable) else "not JSON"
            return None, f"HTTP {raw.status_code}, {problem}: {_excerpt(raw.http_response.text)}", 0.0

    def _reply(self, answer: Any, has_tools: bool) -> Reply:
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise _Unusable("without choices")
        message = cleaned(choice["message"])
        text = message.get("content")
        text = text if isinstance(text, str) else ""
        calls = tuple(_calls(message))
        if not calls and has_tools and self.options.protocol == "json":
            call = read_call(text)
            calls = (call,) if call else ()
        return Reply(text=text, calls=calls, usage=_usage(answer), entropy=_entropy(choice))


def _message(message: Message) -> dict[str, Any]:
    """Returns a message as endpoints accept it: only known fields, arguments as JSON text, ids filled in."""
    sent: list[dict[str, Any]] = []
    calls = message.get("tool_calls") or ()
    for position, call in enumerate(calls):
        function = function_of(call)
        arguments = arguments_text(function.get("arguments") or {})
        entry = {"name": function.get("name"), "arguments": arguments}
        sent.append({"id": call.get("id") or f"call_{position}", "type": "function", "function": entry})
    kept = {key: message[key] for key in ("role", "content", "name", "tool_call_id") if message.get(key) is not None}
    return {**kept, "content": kept.get("content", ""), **({"tool_calls": sent} if sent else {})}


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = []
    entries = message.get("tool_calls")
    for call in entries if isinstance(entries, list) else ():
        function = function_of(call) if isinstance(call, Mapping) else {}
        if isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            calls.append({"name": function["name"], "arguments": arguments if isinstance(arguments, dict | str) else {}})
    return calls


def _usage(answer: Mapping[str, Any]) -> Usage | None:
    usage = answer.get("usage")
    if not isinstance(usage, Mapping) or not isinstance(usage.get("prompt_tokens"), int):
        return None
    prompt = max(0, usage["prompt_tokens"])
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    cached = min(max(cached, 0), prompt) if isinstance(cached, int) else 0
    output = usage.get("completion_tokens")
    return Usage(raw=prompt - cached, cached=cached, output=max(output, 0) if isinstance(output, int) else 0)


def _entropy(choice: Mapping[str, Any]) -> float | None:
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    first = tokens[0] if isinstance(tokens, list) and tokens else None
    top = first.get("top_logprobs") if isinstance(first, Mapping) else None
    if not isinstance(top, list):
        return None
    values = [entry.get("logprob") for entry in top if isinstance(entry, Mapping)]
    return top_entropy(float(value) for value in values if isinstance(value, int | float))


def _asked_wait(headers: Mapping[str, str]) -> float:
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
    return RecordingModel(model, options.record) if options.record else model


LOADER = Loader(load=_load, form=FORM)
