"""What an episode uses: cloud tokens as a provider would bill them, edge operations, and time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate

from ec2_env.cloud.tokens import count
from ec2_env.models.base import Usage


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """How a provider's prompt cache rounds. The defaults are those that OpenAI documents.

    Attributes:
        block: Tokens are cached in whole blocks of this many.
        minimum: Shorter common prefixes are not cached.
        remembered: How many different earlier requests a session's cache holds.
    """

    block: int = 128
    minimum: int = 1024
    remembered: int = 64


@dataclass(frozen=True, slots=True)
class _Request:
    family: str
    texts: tuple[str, ...]
    totals: tuple[int, ...]
    """Tokens up to and including each text."""


class PromptCache:
    """Prompt caching of one session, computed rather than observed, so that it does not depend on anyone's traffic.

    Args:
        policy: How the provider rounds.
    """

    __slots__ = ("_requests", "policy")

    def __init__(self, policy: CachePolicy | None = None) -> None:
        self.policy = policy or CachePolicy()
        self._requests: tuple[_Request, ...] = ()

    def split(self, prompt: Sequence[str], family: str) -> tuple[int, int]:
        """Splits the tokens of a request into those billed as raw and as cached input, and remembers the request.

        The cached part is the longest prefix shared with any earlier request of the session (whole texts first, then inside the
        first text that differs), rounded down to whole blocks, and nothing below the minimum. Inside a text the prefix is
        compared by characters, so the part of a word that both requests begin alike, such as the space before it, may count as
        shared: a token or two too many, before rounding. Nothing expires by time (docs/decisions.md).

        Args:
            prompt: The texts of the request, in the order sent.
            family: Vocabulary to count with. Requests counted with different vocabularies share nothing.

        Returns:
            Raw and cached tokens. Their sum is the sum of the counts of the texts.

        Raises:
            UnknownName: if there is no such family.
        """
        texts = tuple(prompt)
        nearest, shared = self._nearest(texts, family)
        known = nearest.totals[:shared] if nearest else ()
        base = known[-1] if known else 0
        rest = accumulate((count(text, family) for text in texts[shared:]), initial=base)
        next(rest)
        totals = known + tuple(rest)
        total = totals[-1] if totals else 0
        cached = self._rounded(base)
        if nearest is not None and shared < min(len(texts), len(nearest.texts)):
            size = totals[shared] - base
            if self._rounded(base + size) > cached:
                cached = self._rounded(base + min(size, self._inside(texts, family, shared)))
        self._remember(_Request(family, texts, totals), nearest if nearest and shared == len(nearest.texts) else None)
        return total - cached, cached

    def fork(self) -> PromptCache:
        """Returns an independent copy, in constant time."""
        other = PromptCache(self.policy)
        other._requests = self._requests
        return other

    def _nearest(self, texts: tuple[str, ...], family: str) -> tuple[_Request | None, int]:
        best, most = None, -1
        for request in reversed(self._requests):
            if request.family == family:
                shared = _shared_items(texts, request.texts)
                if shared > most:
                    best, most = request, shared
        return best, max(most, 0)

    def _inside(self, texts: tuple[str, ...], family: str, shared: int) -> int:
        """Returns the tokens of the longest prefix of `texts[shared]` found in a request that is equal up to there."""
        before, text, head = texts[:shared], texts[shared], 0
        for request in self._requests:
            if request.family == family and len(request.texts) > shared and request.texts[:shared] == before:
                head = max(head, _shared_chars(text, request.texts[shared]))
        return count(text[:head], family)

    def _rounded(self, tokens: int) -> int:
        return tokens // self.policy.block * self.policy.block if tokens >= self.policy.minimum else 0

    def _remember(self, request: _Request, continued: _Request | None) -> None:
        kept = tuple(other for other in self._requests if other is not continued)
        self._requests = (*kept, request)[-self.policy.remembered :]


def _shared_items(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    size = min(len(left), len(right))
    if left[:size] == right[:size]:
        return size
    return next(index for index in range(size) if left[index] != right[index])


def _shared_chars(left: str, right: str) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def edge_flops(parameters: float, tokens: int) -> float:
    """Returns the floating-point operations of passing `tokens` tokens through a model with `parameters` weights.

    2 * N a token, the forward pass of a dense transformer without its attention term (arXiv 2001.08361, section 2.1).
    With tokens = uncached input + output it reproduces the order of the published edge figures. For mixtures of experts, N is
    the number of weights used for a token.
    """
    return 2.0 * parameters * tokens


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Speed of one side: seconds for a request to go and come back, and tokens a second read and written."""

    round_trip_s: float
    prefill_tokens_per_s: float
    decode_tokens_per_s: float


EDGE_LATENCY = LatencyProfile(0.0, 2_000.0, 30.0)
"""Speed of the edge."""


def latency_s(output_tokens: int, input_tokens: int, *, profile: LatencyProfile) -> float:
    """Returns the simulated seconds of one call: round trip + input / prefill speed + output / decode speed.

    Input means uncached tokens. Queues, batching and congestion are left out: the figure compares strategies and predicts no
    deployment.
    """
    return profile.round_trip_s + input_tokens / profile.prefill_tokens_per_s + output_tokens / profile.decode_tokens_per_s


@dataclass(slots=True, kw_only=True)
class Meter:
    """Running totals of one episode.

    Attributes:
        tokens_raw: Cloud input tokens not served from a prompt cache.
        tokens_cached: Cloud input tokens served from a prompt cache.
        tokens_out: Cloud output tokens.
        cloud_usd: Price of all cloud calls, exact.
        cloud_calls: Cloud calls that were billed.
        edge_tokens_in: Uncached input tokens of the edge model, probes and models that redact included.
        edge_tokens_out: Output tokens of the edge model, and of models that redact.
        edge_flops: Operations of the edge model, see `edge_flops`.
        edge_flops_without_probes: The same without probes, as EC2-Bench accounts: what a probe has read then stands in the
            edge's prefix cache and is in no turn's figure, so this understates strategies that probe.
        gap_raw: Sum of what providers reported less what the package counts for the same calls; so the next three.
        latency_s: Simulated seconds of all calls, one after the other.
    """

    tokens_raw: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cloud_usd: Decimal = Decimal(0)
    cloud_calls: int = 0
    edge_tokens_in: int = 0
    edge_tokens_out: int = 0
    edge_flops: float = 0.0
    edge_flops_without_probes: float = 0.0
    latency_s: float = 0.0
    gap_raw: int = 0
    gap_cached: int = 0
    gap_out: int = 0
    gap_usd: Decimal = Decimal(0)

    def add_cloud(self, usage: Usage, usd: Decimal, latency_s: float) -> None:
        """Adds one billed cloud call."""
        self.tokens_raw += usage.raw
        self.tokens_cached += usage.cached
        self.tokens_out += usage.output
        self.cloud_usd += usd
        self.cloud_calls += 1
        self.latency_s += latency_s

    def add_gap(self, raw: int, cached: int, out: int, usd: Decimal) -> None:
        """Adds by how much a provider's report of one call is above the package's own count."""
        self.gap_raw += raw
        self.gap_cached += cached
        self.gap_out += out
        self.gap_usd += usd

    def add_edge(self, uncached_in: int, out: int, parameters: float, latency_s: float, *, probe: bool = False) -> None:
        """Adds one turn, one probe or one redaction by an edge model with `parameters` weights."""
        self.edge_tokens_in += uncached_in
        self.edge_tokens_out += out
        flops = edge_flops(parameters, uncached_in + out)
        self.edge_flops += flops
        self.edge_flops_without_probes += 0.0 if probe else flops
        self.latency_s += latency_s

    def fork(self) -> Meter:
        """Returns an independent copy."""
        return dataclasses.replace(self)
