"""How an endpoint is addressed and used: the options of `openai:MODEL@OPTION=VALUE,...`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from ec2_env.errors import ConfigurationError
from ec2_env.models.drafts import PROBE_TOKENS

FORM = (
    "openai:MODEL@base_url=http://HOST/v1,key_env=NAME,price=NAME,family=o200k,parameters=4e9,tools=native|text,"
    "max_context_tokens=32768,max_tokens=1024,probe_tokens=16,temperature=0,timeout_s=60,concurrency=4,record=FILE"
)
CONCURRENCY = "EC2_ENV_CONCURRENCY"
"""Environment variable with the limit for endpoints whose specification names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """How an endpoint is addressed and what the accounting sees.

    Attributes:
        base_url: Address up to and including the version; None is the SDK's own default.
        key_env: Environment variable that holds the key. Local servers need none.
        price: Entry of the price book; None if the model is not sold by the token.
        family: Vocabulary that tokens are counted with where the endpoint reports no usage.
        parameters: Number of weights used for a token, for FLOPs.
        tools: `native` sends tools to the endpoint; `text` describes them in the prompt and reads the call from the text.
        timeout_s: Longest time for one answer, to its last byte.
        deadline_s: Longest time for all attempts at one answer together; no attempt begins after it.
        retries: Further attempts after the first.
        concurrency: Most requests to this address at once, of all threads and processes of this user; None for no limit, unless
            `CONCURRENCY` is set.
        temperature: None leaves it to the endpoint; some models accept no other.
        seed: Sampling seed, for endpoints that honor it.
        max_tokens: Most output tokens; None leaves it to the endpoint.
        max_context_tokens: The model's window. Longer chats are cut by `ec2_env.models.window.fit`, so that chat, tools and
            `max_tokens` (a quarter of the window, 1,024 at most, if None) fit it; None sends everything.
        probe_tokens: Most output tokens of a probe, `max_tokens` at most: enough to read which tool the model is about to call.
            With 1 a probe tells the first token's entropy alone.
        parallel_tool_calls: Whether the endpoint is told that one answer may, or may not, make several calls; None does not say.
        record: File that requests' digests and replies are appended to, for `replay:FILE`; for runs in one process.
    """

    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    price: str | None = None
    family: str = "o200k"
    parameters: float | None = None
    tools: Literal["native", "text"] = "native"
    timeout_s: float = 60.0
    deadline_s: float = 600.0
    retries: int = 4
    concurrency: int | None = None
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_context_tokens: int | None = None
    probe_tokens: int = PROBE_TOKENS
    parallel_tool_calls: bool | None = None
    record: str | None = None

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigurationError(f"base_url is {self.base_url!r}; expected an address that begins with http:// or https://")
        if not self.timeout_s > 0 or not self.deadline_s > 0 or self.retries < 0:
            raise ConfigurationError("timeout_s and deadline_s must be positive and retries at least 0")
        for name in ("concurrency", "max_tokens", "max_context_tokens", "probe_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} is {value}, expected a whole number above 0")


def default_concurrency() -> int | None:
    """Returns the limit that the environment variable `CONCURRENCY` sets, or None.

    Raises:
        ConfigurationError: if it is no whole number above 0.
    """
    text = os.environ.get(CONCURRENCY, "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ConfigurationError(f"{CONCURRENCY} is {text!r}, expected a whole number above 0")
    return int(text) if text else None
