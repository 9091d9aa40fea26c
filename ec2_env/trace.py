"""What happened in an episode: frozen events, from which every figure can be computed again."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from ec2_env.sensitive import Necessity

FORMAT = 2
"""Version of the trajectory record. Records of version 1 can be read: they lack where exposed values came from."""

By = Literal["agent", "edge", "cloud"]
Origin = Literal["instruction", "tool", "agent", "unknown"]


class Exposed(msgspec.Struct, frozen=True):
    """A sensitive unit that crossed, or crossed more fully than before. `level` is 0.3, 0.7 or 1.0.

    `origin` says what brought the value into the context first: the instruction, the result of a tool, or the agent, who wrote
    it without having read it.
    """

    unit: str
    level: float
    form: str
    text: int
    """Position of the text in the payload that shows it."""
    start: int
    """Span of the value in that text, half-open; so the next."""
    end: int
    step: int = -1
    call: int = 0
    """Number of the request among those that were sent, from 1; 0 in records of version 1."""
    origin: Origin = "unknown"
    event: int = -1
    """Position among the trajectory's events of the call whose result, or arguments, first held the value; -1 if none did."""
    necessity: Necessity | Literal["unknown"] = "unknown"
    """What the work needs of the value."""


class ToolRan(msgspec.Struct, frozen=True, tag="tool"):
    """One action of the agent and what it returned."""

    step: int
    by: By
    name: str
    arguments: dict[str, Any]
    ok: bool
    result: str


class EdgeTurn(msgspec.Struct, frozen=True, tag="edge"):
    """One turn, or one probe, of the edge model, or what a model on the edge did to redact a request.

    Tokens of input are those not in its prefix cache.
    """

    step: int
    tokens_in: int
    tokens_out: int
    flops: float
    latency_s: float
    text: str = ""
    probe: bool = False
    redaction: bool = False


class CloudCall(msgspec.Struct, frozen=True, tag="cloud"):
    """One request to the cloud: what newly crossed, what came back, what it cost and what it exposed.

    `status` is "ok", "refused" (a budget), or "failed" (an outage or a misbehaving endpoint). `sent` holds the texts of the
    payload that no earlier request of the episode had sent, with their positions in this payload.
    """

    step: int
    mode: str
    share: str
    redact: bool
    status: Literal["ok", "refused", "failed"]
    sent: tuple[tuple[int, str], ...]
    texts: int
    """Number of texts in the whole payload."""
    reply: str
    tokens_raw: int
    tokens_cached: int
    tokens_out: int
    usd: str
    """Price in US dollars, exact, as a decimal text."""
    latency_s: float
    exposures: tuple[Exposed, ...]
    problem: str = ""
    gap_raw: int = 0
    """What the provider reported less what the package counts for the same call; 0 if it reported nothing. So the next three."""
    gap_cached: int = 0
    gap_out: int = 0
    gap_usd: str = "0"


class Decided(msgspec.Struct, frozen=True, tag="decision", omit_defaults=True):
    """A policy's choice before a step: the number of an `ec2_env.strategy.Decision`."""

    step: int
    decision: int
    request: dict[str, Any] | None = None
    """The arguments of `invoke_cloud`, if the policy wrote a request of its own; `decision` is then what that comes down to."""


class Ended(msgspec.Struct, frozen=True, tag="end"):
    """How the episode ended. `answer` and `data` are what the agent reported, if it finished."""

    step: int
    status: Literal["pass", "fail", "invalid", "error"]
    completion: float
    checks: dict[str, float]
    strays: int
    forbidden: tuple[str, ...]
    touched: tuple[str, ...]
    finished: bool
    answer: str
    data: dict[str, Any]
    problem: str = ""


Event: TypeAlias = ToolRan | EdgeTurn | CloudCall | Decided | Ended


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """The whole record of one episode, one line of JSON."""

    format: int = FORMAT
    task: str
    seed: int
    language: str
    split: str
    trial: int
    strategy: str
    edge: str | None
    cloud: str | None
    version: str
    """Version of the package that wrote the record."""
    instruction: str
    events: tuple[Event, ...]
    result: dict[str, Any]
    """`info["result"]` of the last step."""


def to_json(trajectory: Trajectory) -> bytes:
    """Returns one line of JSON, the same bytes for the same trajectory everywhere."""
    return msgspec.json.encode(trajectory, order="sorted")


def from_json(line: bytes | str) -> Trajectory:
    """Reads what `to_json` wrote.

    Raises:
        msgspec.DecodeError: if the line is not a trajectory; the text says what is wrong with it.
    """
    return msgspec.json.decode(line, type=Trajectory)
