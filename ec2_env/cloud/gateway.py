"""The only door to a cloud model: it chooses the context, redacts, audits, meters, asks, and maps the reply back.

There is no second way, so that no strategy, training script or server can get round the audit or the meter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Literal

from ec2_env.actions import InvokeCloud
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.engine import Surroundings, check_engine, make_redactor
from ec2_env.cloud.mapping import restored_call
from ec2_env.cloud.metering import EDGE_LATENCY, LatencyProfile, Meter, PromptCache, edge_flops, latency_s
from ec2_env.cloud.payload import Payload, Transcript, build_payload, message_text
from ec2_env.cloud.prices import cost_usd, price
from ec2_env.cloud.provenance import exposed
from ec2_env.cloud.redaction import Hiding, Redactor, Unusable, Work, Working
from ec2_env.cloud.tokens import count
from ec2_env.errors import ConfigurationError, EndpointError
from ec2_env.models.base import CloudMind, Message, Model, Reply, Usage, bound_cloud, tamed
from ec2_env.models.draws import uniform
from ec2_env.progress import Progress
from ec2_env.trace import CloudCall, EdgeTurn, Exposed

ROUNDING = 1e-9
"""By so much a sum of shares may pass a cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSettings:
    """The conditions under which the cloud can be used.

    Attributes:
        max_usd: Hard cap for an episode in US dollars; None for no cap. A call whose worst case would pass it is refused.
        max_calls: Hard cap on calls; None for no cap.
        max_tokens: Hard cap on all cloud tokens, input and output; None for no cap.
        max_exposure: Hard cap on the weighted share of the episode's sensitive units that may cross, 0 to 1; None for no cap. A
            call is audited before it is sent and refused if it would pass the cap.
        outage_rate: Chance that a call fails, 0 to 1; drawn from the episode's noise.
        redactor: Engine for redacted calls: "rules", "strong" (Presidio and the rules), "model:SPEC" (a model on the edge lists
            what is sensitive), "oracle" (knows the true values; an upper bound), "none", or one of your own, see
            `ec2_env.cloud.engine`.
        max_output_tokens: Longest reply that is reckoned with before a call.
        latency: Speed of the cloud and of the way to it.
    """

    max_usd: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_exposure: float | None = None
    outage_rate: float = 0.0
    redactor: str = "rules"
    max_output_tokens: int = 2048
    latency: LatencyProfile = field(default_factory=lambda: LatencyProfile(0.4, 20_000.0, 80.0))

    def __post_init__(self) -> None:
        if not _number(self.outage_rate) or not 0 <= self.outage_rate <= 1:
            raise ConfigurationError(f"outage_rate is {self.outage_rate!r}, expected a share between 0 and 1")
        check_engine(self.redactor)
        for name in ("max_usd", "max_calls", "max_tokens", "max_exposure"):
            value = getattr(self, name)
            if value is not None and not (_number(value) and value >= 0):
                raise ConfigurationError(f"{name} is {value!r}, expected a number of at least 0, or None for no cap")
        if self.max_exposure is not None and self.max_exposure > 1:
            raise ConfigurationError(f"max_exposure is {self.max_exposure!r}, expected a share between 0 and 1")


def _number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def cloud_settings(values: dict[str, Any]) -> CloudSettings:
    """Makes settings of keyword arguments.

    Raises:
        ConfigurationError: if a key is unknown or a value impossible.
    """
    known = [f.name for f in fields(CloudSettings)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigurationError(f"unknown cloud setting {unknown[0]!r}; the settings are {', '.join(known)}")
    if isinstance(values.get("latency"), dict):
        values = {**values, "latency": LatencyProfile(**values["latency"])}
    return CloudSettings(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back from the cloud.

    Attributes:
        event: The record of the call.
        text: The reply's text with placeholders mapped back, or what went wrong.
        call: The call that the cloud makes (mode `act`), with placeholders mapped back, unvalidated; None if there is none.
        broken: Whether the endpoint misbehaved: the episode then counts as an infrastructure error, not as a failure.
        redaction: What a model on the edge did to redact the request; None if none did anything.
    """

    event: CloudCall
    text: str
    call: dict[str, Any] | None = None
    broken: bool = False
    redaction: EdgeTurn | None = None

    @property
    def ok(self) -> bool:
        return self.event.status == "ok"


class Gateway:
    """The boundary of one episode.

    Args:
        model: The cloud model, before it is bound to the episode.
        progress: The episode.
        settings: Budgets, outages, redaction.
    """

    def __init__(self, model: Model, progress: Progress, settings: CloudSettings) -> None:
        self.model = model
        self.settings = settings
        self.card = model.card
        self.audit = Audit(progress.episode.units)
        self.cache = PromptCache()
        self.calls = 0
        self._progress = progress
        self._mind: CloudMind | None = bound_cloud(model, progress)
        self._redactor: Redactor | None = None
        self._clear = Transcript()
        self._hidden: Transcript | None = None
        self._sent: frozenset[str] = frozenset()
        if self.card.price is None:
            raise ConfigurationError(f"cloud model {self.card.name!r} has no price; name one, for example with @price=gpt-5.4")
        self.rates = price(self.card.price)

    def fork(self, progress: Progress) -> Gateway:
        """Returns an independent copy for a copy of the episode."""
        other = Gateway.__new__(Gateway)
        other.__dict__.update(self.__dict__)
        other._progress = progress
        other._mind = self._mind.fork(progress) if self._mind is not None else None
        other.audit, other.cache = self.audit.fork(), self.cache.fork()
        other._clear = self._clear.fork()
        other._redactor = _copied(self._redactor) if self._redactor is not None else None
        other._hidden = self._hidden.fork(other.redactor.redact) if self._hidden is not None else None
        return other

    def invoke(
        self, request: InvokeCloud, messages: Sequence[Message], tools: tuple[dict[str, Any], ...], meter: Meter, step: int
    ) -> Answer:
        """Sends one request, unless a budget forbids it. Never raises for what the cloud does.

        Args:
            request: What is asked and what may cross.
            messages: The episode's transcript.
            tools: Schemas of the workspace's tools.
            meter: The episode's totals; this call is added to them.
            step: Number of the step, for the record.
        """
        if self.settings.max_calls is not None and self.calls >= self.settings.max_calls:
            return self._stopped(request, step, "refused", f"the budget of {self.settings.max_calls} cloud calls is used up")
        problem, broken, payload = "", False, None
        try:
            payload = self._payload(request, messages, tools)
        except Exception as error:  # whatever a redaction engine does, nothing may cross unredacted
            problem = f"redaction failed, so nothing was sent ({type(error).__name__})"
            broken = isinstance(error, EndpointError)
        work = self._redaction(meter, step) if request.redact else None
        if payload is None:
            answer = self._stopped(request, step, "refused", problem, broken=broken)
        else:
            answer = self._asked(request, payload, meter, step)
        return replace(answer, redaction=work)

    def _asked(self, request: InvokeCloud, payload: Payload, meter: Meter, step: int) -> Answer:
        """Sends one payload, unless a budget forbids it."""
        cache = self.cache.fork()
        raw, cached = cache.split(payload.texts, self.card.family)
        problem: str | None = self._over_budget(Usage(raw=raw, cached=cached, output=self.settings.max_output_tokens), meter)
        problem = problem or self._over_exposure(payload)
        if problem:
            return self._stopped(request, step, "refused", problem)
        self.calls += 1
        if uniform(self._progress.noise, "outage", self.calls) < self.settings.outage_rate:
            return self._stopped(request, step, "failed", "the cloud did not answer in time", payload)
        if self._mind is not None:
            self._mind.hide = self._hide if request.redact else None
        try:
            reply = (self._mind or self.model).complete(payload.messages, payload.tools)
        except EndpointError as error:
            return self._stopped(request, step, "failed", str(error), payload, broken=True)
        self.cache = cache
        reply = reply if self.card.simulated else tamed(reply)
        return self._received(request, payload, reply, Usage(raw=raw, cached=cached), meter, step)

    def _payload(self, request: InvokeCloud, messages: Sequence[Message], tools: tuple[dict[str, Any], ...]) -> Payload:
        """Returns what will cross, redacted if the request says so.

        Raises:
            RuntimeError: if the engine cannot be used.
        """
        if request.redact and isinstance(self.redactor, Unusable):
            raise RuntimeError(self.redactor.problem)
        if request.redact and self._hidden is None:
            self._hidden = Transcript(self.redactor.redact)
        transcript = self._hidden if request.redact and self._hidden is not None else self._clear
        transcript.catch_up(messages)
        return build_payload(request, transcript, tools)

    @property
    def redactor(self) -> Redactor:
        """The engine of this session, made when first needed."""
        if self._redactor is None:
            episode = self._progress.episode
            cards = episode.workspace.rows("contact").values()
            directory = tuple(("name", card.name) for card in cards)
            self._redactor = make_redactor(self.settings.redactor, Surroundings(directory=directory, units=episode.units))
        return self._redactor

    def _hide(self, text: str) -> str:
        """Returns a text as somebody writes it who has read nothing but what crossed; nothing at all if the engine fails."""
        try:
            redactor = self.redactor
            hidden = redactor.hide(text) if isinstance(redactor, Hiding) else redactor.redact(text)
        except Exception:  # an engine from outside
            return ""
        return hidden if isinstance(hidden, str) else ""

    def _redaction(self, meter: Meter, step: int) -> EdgeTurn | None:
        """Counts what a redactor has done since it was last asked, and returns the record of it."""
        try:
            redactor = self.redactor
            work = redactor.take_work() if isinstance(redactor, Working) else Work()
            flops = edge_flops(work.parameters, work.tokens_in + work.tokens_out)
        except Exception:  # an engine from outside
            return None
        if not (work.tokens_in or work.tokens_out):
            return None
        took = latency_s(work.tokens_out, work.tokens_in, profile=EDGE_LATENCY)
        meter.add_edge(work.tokens_in, work.tokens_out, work.parameters, took)
        return EdgeTurn(step, work.tokens_in, work.tokens_out, flops, took, redaction=True)

    def _mapped_back(self, request: InvokeCloud, payload: Payload, reply: Reply) -> tuple[str, dict[str, Any] | None, str]:
        """Returns a reply's text and first call with placeholders mapped back, and what went wrong."""
        call = reply.calls[0] if reply.calls else None
        if not request.redact:
            return reply.text, call, ""
        try:
            text = self.redactor.restore(reply.text)
            if not isinstance(text, str):
                raise TypeError("redaction restores a text to a text")
            return text, restored_call(call, payload.tools, self.redactor.restore) if call is not None else None, ""
        except Exception as error:  # an engine from outside
            problem = f"placeholders could not be mapped back and are left as they are ({type(error).__name__})"
            return f"{reply.text}\n[{problem}]", call, problem

    def _received(self, request: InvokeCloud, payload: Payload, reply: Reply, estimate: Usage, meter: Meter, step: int) -> Answer:
        """Meters, audits and maps back one reply."""
        spoken = message_text({"content": reply.text})
        for call in reply.calls[:1]:
            spoken += call_text(call)
        written = count(spoken, self.card.family) + reply.thinking_tokens
        own = replace(estimate, output=min(written, self.settings.max_output_tokens))
        usage = reply.usage or own
        usd = cost_usd(usage, self.rates)
        took = latency_s(usage.output, usage.raw, profile=self.settings.latency)
        meter.add_cloud(usage, usd, took)
        gap = (usage.raw - own.raw, usage.cached - own.cached, usage.output - own.output)
        gap_usd = usd - cost_usd(own, self.rates) if reply.usage else Decimal(0)
        meter.add_gap(*gap, gap_usd)
        fresh, exposures = self._crossed(payload, step)
        text, first, problem = self._mapped_back(request, payload, reply)
        event = CloudCall(
            step=step,
            mode=request.mode,
            share=request.share,
            redact=request.redact,
            status="ok",
            sent=fresh,
            texts=len(payload.texts),
            reply=spoken,
            tokens_raw=usage.raw,
            tokens_cached=usage.cached,
            tokens_out=usage.output,
            usd=str(usd),
            latency_s=took,
            exposures=exposures,
            gap_raw=gap[0],
            gap_cached=gap[1],
            gap_out=gap[2],
            gap_usd=str(gap_usd),
            problem=problem,
        )
        return Answer(event=event, text=text, call=first)

    def _crossed(self, payload: Payload, step: int) -> tuple[tuple[tuple[int, str], ...], tuple[Exposed, ...]]:
        """Audits what has left: returns the texts that left for the first time, and what they exposed."""
        found = self.audit.scan(payload.texts)
        fresh = tuple((i, text) for i, text in enumerate(payload.texts) if text not in self._sent)
        self._sent |= frozenset(text for _, text in fresh)
        episode, events = self._progress.episode, self._progress.events
        units = self.audit.units
        return fresh, exposed(found, payload.texts, units, episode.instruction, events, step=step, call=self.calls)

    def _over_budget(self, worst: Usage, meter: Meter) -> str | None:
        """Says which cap the worst case of a call would pass, or None."""
        cap = self.settings
        if cap.max_usd is not None and meter.cloud_usd + cost_usd(worst, self.rates) > Decimal(str(cap.max_usd)):
            return f"the budget of ${cap.max_usd} does not cover another call (${meter.cloud_usd:.4f} spent)"
        used = meter.tokens_raw + meter.tokens_cached + meter.tokens_out
        if cap.max_tokens is not None and used + worst.raw + worst.cached + worst.output > cap.max_tokens:
            return f"the budget of {cap.max_tokens} cloud tokens does not cover another call ({used} used)"
        return None

    def _over_exposure(self, payload: Payload) -> str | None:
        """Says that a call would expose more than is allowed, or None. Does not say what, since the agent reads it."""
        cap = self.settings.max_exposure
        if cap is None:
            return None
        after = self.audit.fork()
        if not after.scan(payload.texts) or _exposed(after) <= cap + ROUNDING:
            return None
        return f"the exposure budget of {cap:g} does not cover this call ({_exposed(self.audit):.3f} used)"

    def _stopped(
        self,
        request: InvokeCloud,
        step: int,
        status: Literal["refused", "failed"],
        problem: str,
        payload: Payload | None = None,
        broken: bool = False,
    ) -> Answer:
        """Returns the answer of a call that brought nothing. It is not billed; but what was sent has crossed, answer or not."""
        fresh, exposures = self._crossed(payload, step) if payload is not None else ((), ())
        event = CloudCall(
            step=step,
            mode=request.mode,
            share=request.share,
            redact=request.redact,
            status=status,
            sent=fresh,
            texts=len(payload.texts) if payload is not None else 0,
            reply="",
            tokens_raw=0,
            tokens_cached=0,
            tokens_out=0,
            usd="0",
            latency_s=self.settings.latency.round_trip_s if status == "failed" else 0.0,
            exposures=exposures,
            problem=problem,
        )
        return Answer(event=event, text=problem, broken=broken)


def _copied(redactor: Redactor) -> Redactor:
    """Returns a copy of a redactor's session; if there is none, the copy of the episode goes on and sends nothing redacted."""
    try:
        copy = redactor.fork()
    except Exception as error:  # an engine from outside
        return Unusable(f"the redactor could not be copied ({type(error).__name__})")
    return copy if callable(getattr(copy, "redact", None)) else Unusable("the redactor's copy is no redactor")


def call_text(call: dict[str, Any]) -> str:
    """Returns a call as the text that a model writes for it."""
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"{call.get('name')}({arguments})"


def _exposed(audit: Audit) -> float:
    """Returns the weighted share of the units that has crossed, 0 to 1: the sum of the exposure terms of the reward."""
    whole = sum(unit.weight for unit in audit.units)
    return sum(unit.weight * audit.levels.get(unit.id, 0.0) for unit in audit.units) / whole if whole else 0.0
