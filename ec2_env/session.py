"""One episode in progress: the workspace, the transcript, the boundary and the record of what happened.

Both environments are thin layers over this; whatever plays an episode goes through `call` and `invoke`.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import msgspec

from ec2_env.actions import Action, Finish, InvokeCloud, Malformed, ToolCall, action_text, dump_action, parse_action
from ec2_env.cloud.gateway import Answer, CloudSettings, Gateway
from ec2_env.cloud.ledger import accounts, figures
from ec2_env.cloud.metering import EDGE_LATENCY, Meter, edge_flops, latency_s
from ec2_env.cloud.payload import message_text
from ec2_env.cloud.tokens import count
from ec2_env.errors import EndpointError
from ec2_env.models.asking import Writer
from ec2_env.models.base import EdgeMind, Message, Model, Probing, Reply, Signals, Usage, bound_edge, implements, tamed
from ec2_env.models.draws import uniform
from ec2_env.progress import Record
from ec2_env.prompts import ADVICE_MARK, AGENT, CLOUD_DOWN, NOTHING, PLAN_MARK, WORDS, WRITE, Writing
from ec2_env.task import Episode, grade, toolbox
from ec2_env.trace import By, EdgeTurn, Ended, Event, ToolRan
from ec2_env.workspace.tools import MAX_ARGUMENT_CHARS, Result, failure, tidy

PASS_THRESHOLD = 0.7
"""Completion from which a run counts as passed: the study's threshold."""
FAULTS = (
    "429 Too Many Requests: the rate limit was reached and nothing was done; try again",
    "504 Gateway Timeout: the service did not answer in time and nothing was done; try again",
)
_WORD = re.compile(r"[\u3000-\u9fff]|[^\s\u3000-\u9fff]+")
"""A word: a Chinese character, or what stands between spaces."""


class Session:
    """One episode in progress.

    Args:
        episode: What is to be done.
        cloud: Model behind the boundary; None if there is none.
        settings: Conditions of its use.
        edge: Model that does the work; None if an agent outside does it.
        trial: Number of the trial: fixes the draws of simulated models and outages.
        max_steps: Steps after which the episode is cut off; the task's own limit if None.
        fault_rate: Chance that a tool call fails as services do, 0 to below 1; drawn from the episode's noise.
    """

    def __init__(
        self,
        episode: Episode,
        *,
        cloud: Model | None,
        settings: CloudSettings,
        edge: Model | None = None,
        trial: int = 0,
        max_steps: int | None = None,
        fault_rate: float = 0.0,
    ) -> None:
        self.episode = episode
        self.workspace = episode.workspace.fork()
        self.tools = toolbox(episode.task.apps)
        self._noise, self.fate = f"{episode.key}/{trial}", episode.key
        self.trial = trial
        self.max_steps = max_steps or episode.task.max_steps
        self.fault_rate = fault_rate
        self.meter = Meter()
        self.messages: list[Message] = [
            {"role": "system", "content": AGENT},
            {"role": "user", "content": episode.instruction},
        ]
        self.records: list[Record] = []
        self.events: list[Event] = []
        self.step = 0
        self.finish: Finish | None = None
        self.status: str | None = None
        self.broken = ""
        """What an endpoint did wrong; the episode is then an infrastructure error."""
        self.invalid = 0
        """Calls that were malformed, unknown or refused by a tool's signature."""
        self.minds: dict[str, Any] = {}
        self.gateway = Gateway(cloud, self, settings) if cloud is not None else None
        self.edge_model = edge
        self.edge: Model | EdgeMind | None = bound_edge(edge, self, cloud)
        self._edge_read = 0
        self._edge_read_to_write = 0
        self._signals: Signals | None = None
        self.result: dict[str, Any] | None = None

    def fork(self) -> Session:
        """Returns an independent copy in microseconds, for branching rollouts."""
        other = Session.__new__(Session)
        other.__dict__.update(self.__dict__)
        other.workspace, other.meter = self.workspace.fork(), self.meter.fork()
        other.messages, other.records, other.events = list(self.messages), list(self.records), list(self.events)
        other.minds = {}
        other.gateway = self.gateway.fork(other) if self.gateway is not None else None
        if self.edge is not self.edge_model and self.edge is not None:
            other.edge = self.edge.fork(other)  # type: ignore[attr-defined]  # what is bound to an episode can be copied with it
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "tools"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what does not travel in a pickle, tools and reactions, from the episode, which is built again."""
        self.__dict__.update(state)
        self.tools = toolbox(self.episode.task.apps)
        self.workspace.adopt_reactions(self.episode.workspace)

    @property
    def ended(self) -> bool:
        return self.status is not None

    @property
    def noise(self) -> str:
        """Fixes the random draws of this run. A copy that is given another one has another fate as well."""
        return self._noise

    @noise.setter
    def noise(self, noise: str) -> None:
        self._noise = self.fate = noise

    # -- acting on the workspace

    def call(self, action: Action | Malformed, by: By) -> Result:
        """Makes one call on the workspace, or finishes, and writes both to the transcript. Never raises."""
        match action:
            case Malformed():
                self.invalid += 1
                result = failure(action.problem)
                self._note("invalid", {"text": action.problem[:200]}, result, by)
            case InvokeCloud():
                result = failure("invoke_cloud is not a tool of the workspace")
            case Finish():
                self.finish = Finish(answer=action.answer[:MAX_ARGUMENT_CHARS], data=tidy(action.data))
                result = Result(True, {"finished": True}, '{"finished":true}')
                self._note("finish", dump_action(self.finish)["arguments"], result, by)
            case ToolCall():
                before = len(self.workspace.journal)
                result = self._fault(action) or self.tools.run(self.workspace, action)
                if not result.ok and action.name not in self.tools.tools:
                    self.invalid += 1
                arguments = tidy(action.arguments) if result.ok else clipped(action.arguments)
                self._note(action.name[:60], arguments, result, by, len(self.workspace.journal) > before)
        return result

    def _fault(self, call: ToolCall) -> Result | None:
        """Returns the failure of a call that the service behind the tool did not take; it can be repeated."""
        if self.fault_rate == 0 or call.name not in self.tools.tools:
            return None
        if uniform(self.noise, "fault", len(self.records)) >= self.fault_rate:
            return None
        return failure(f"{call.name}: {FAULTS[int(uniform(self.noise, 'which fault', len(self.records)) * len(FAULTS))]}")

    def _note(self, name: str, arguments: dict[str, Any], result: Result, by: By, wrote: bool = False) -> None:
        text = json_text(arguments)
        number = f"call_{len(self.records)}"
        made = {"id": number, "type": "function", "function": {"name": name, "arguments": text}}
        self.messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
        self.messages.append({"role": "tool", "tool_call_id": number, "content": result.text})
        key = action_text(ToolCall(name, arguments))
        record = Record(key, name, result.value, result.ok, wrote, by)
        self.records.append(record)
        for side in sorted(self.minds, key=lambda side: side != by):  # who made the call first: the other may take over from it
            self.minds[side].observe(record)
        self.events.append(ToolRan(self.step, by, name, arguments, result.ok, result.text))
        self._signals = None

    # -- the cloud

    def invoke(self, request: InvokeCloud) -> Answer | None:
        """Sends one request to the cloud and records it; None if the episode has no cloud."""
        if self.gateway is None:
            return None
        answer = self.gateway.invoke(request, self.messages, self.tools.schemas_with_finish, self.meter, self.step)
        if answer.redaction is not None:
            self.events.append(answer.redaction)
        self.events.append(answer.event)
        if answer.event.status == "failed":
            self.meter.latency_s += answer.event.latency_s
        if answer.broken:
            self.broken = answer.text
        return answer

    def hear(self, request: InvokeCloud, answer: Answer) -> None:
        """Writes a plan or advice into the transcript, where the edge model will read it."""
        mark = (PLAN_MARK if request.mode == "plan" else ADVICE_MARK) if answer.ok else CLOUD_DOWN
        self.messages.append({"role": "user", "content": f"{mark} {answer.text}"})
        self._signals = None

    def note_cloud(self, request: InvokeCloud, answer: str) -> None:
        """Writes an agent's own `invoke_cloud` call and what it brought into the transcript."""
        number = f"cloud_{len(self.messages)}"
        arguments = json_text(dump_action(request)["arguments"])
        made = {"id": number, "type": "function", "function": {"name": "invoke_cloud", "arguments": arguments}}
        self.messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
        self.messages.append({"role": "tool", "tool_call_id": number, "content": answer})

    # -- the edge model

    def signals(self) -> Signals:
        """Returns the edge model's signals before this step; its probe is paid for once a step."""
        if self._signals is None:
            self._signals = Signals(tokens=0)
            if self.edge is not None and not self.ended and implements(type(self.edge), Probing):
                try:
                    self._signals = cast(Probing, self.edge).probe(self.messages, self.tools.schemas_with_finish, 20)
                except EndpointError as error:
                    self.broken = str(error)
            if self._signals.tokens:
                self._charge_edge(Reply(usage=Usage(output=self._signals.tokens)), probe=True)
        return self._signals

    def edge_turn(self) -> Result:
        """Lets the edge model take the next step. If its endpoint stays broken, the episode ends as an infrastructure error."""
        if self.edge is None:
            raise RuntimeError("this session has no edge model")
        try:
            reply = self.edge.complete(self.messages, self.tools.schemas_with_finish)
        except EndpointError as error:
            self.broken = str(error)
            return failure(f"the edge model does not answer: {error}")
        if not self.edge.card.simulated:
            reply = tamed(reply)
        self._charge_edge(reply, probe=False)
        return self.call(first_call(reply), "edge")

    def wish(self) -> bool | None:
        """Says whether the edge model wants help; None if it does not tell. Free: whoever wants help has to write for it."""
        if self.edge is None or self.ended or not implements(type(self.edge), Writer):
            return None
        return cast(Writer, self.edge).wishes()

    def write(self, purpose: Writing) -> str:
        """Has the edge model write a text for the cloud, at its own expense; "" if it writes none.

        What it wrote stands in the transcript as its own turn, and is all that a request of share `request` sends. A real model
        is asked in one more completion without tools, so that it reads the transcript anew the first time: its chat then begins
        otherwise. The simulated ones are charged alike.
        """
        if self.edge is None or self.ended:
            return ""
        try:
            if implements(type(self.edge), Writer):
                reply = cast(Writer, self.edge).write(purpose, self.messages)
            else:
                model = cast(Model, self.edge_model)  # not what is bound to the episode: calls of its that wait go on waiting
                reply = tamed(model.complete([*self.messages, {"role": "user", "content": WRITE[purpose]}]))
        except EndpointError as error:
            self.broken = str(error)
            return ""
        if purpose == "wish" and self.edge.card.simulated:
            self._charge_edge(reply, probe=False)  # a call in its own chat, as a tool would be
        else:
            self._charge_writing(purpose, reply)
        text = written_text(reply.text, WORDS[purpose])
        if text:
            self.messages.append({"role": "assistant", "content": text})
        return text

    def _charge_writing(self, purpose: Writing, reply: Reply) -> None:
        assert self.edge is not None
        card = self.edge.card
        fresh = [*map(message_text, self.messages[self._edge_read_to_write :]), WRITE[purpose]]
        self._edge_read_to_write = len(self.messages)
        written = reply.usage.output if reply.usage else count(reply.text, card.family) + reply.thinking_tokens
        self._add_edge(sum(count(text, card.family) for text in fresh), written, reply.text, probe=False)

    def _charge_edge(self, reply: Reply, *, probe: bool) -> None:
        """Counts a turn: everything that is new in the transcript since the edge model last read it, and what it wrote."""
        assert self.edge is not None
        card = self.edge.card
        read = sum(count(message_text(message), card.family) for message in self.messages[self._edge_read :])
        if self._edge_read == 0:
            read += self.tools.schema_tokens(card.family, count)
        self._edge_read = len(self.messages)
        said = reply.text + "".join(json_text(call) for call in reply.calls)
        written = reply.usage.output if reply.usage else count(said, card.family) + reply.thinking_tokens
        if not probe:
            self._edge_read += 1  # the call that it writes now is in its cache already
        self._add_edge(read, written, reply.text, probe=probe)

    def _add_edge(self, read: int, written: int, text: str, *, probe: bool) -> None:
        assert self.edge is not None
        parameters = self.edge.card.parameters or 0.0
        took = latency_s(written, read, profile=EDGE_LATENCY)
        self.meter.add_edge(read, written, parameters, took, probe=probe)
        self.events.append(EdgeTurn(self.step, read, written, edge_flops(parameters, read + written), took, text, probe))

    # -- the end

    def next_step(self) -> None:
        """Closes a step; ends the episode if the agent finished, the steps are used up, or an endpoint broke."""
        self.step += 1
        if self.finish is not None or self.broken or self.step >= self.max_steps:
            self.end()

    def end(self) -> None:
        """Grades the episode and fixes its result."""
        graded = grade(self.episode, self.workspace, self.finish)
        if self.broken:
            status = "error"
        elif self.invalid and self.invalid == len(self.records):
            status = "invalid"
        else:
            status = "pass" if graded.completion >= PASS_THRESHOLD else "fail"
        self.status = status
        ended = Ended(
            step=self.step,
            status=status,  # type: ignore[arg-type]  # one of the four, see above
            completion=graded.completion,
            checks=graded.checks,
            strays=graded.strays,
            forbidden=graded.forbidden,
            touched=self.touched(),
            finished=self.finish is not None,
            answer=self.finish.answer if self.finish else "",
            data=self.finish.data if self.finish else {},
            problem=self.broken,
        )
        self.events.append(ended)
        self.result = self._result(ended)

    def touched(self) -> tuple[str, ...]:
        """Returns the ids of the sensitive units that the instruction or any tool result has shown."""
        shown = [str(m["content"]) for m in self.messages if m["role"] == "tool"]
        text = "\n".join([self.episode.instruction, *shown])
        return tuple(unit.id for unit in self.episode.units if unit.value in text)

    @property
    def levels(self) -> dict[str, float]:
        """Exposure level of every unit that has crossed so far."""
        return self.gateway.audit.levels if self.gateway is not None else {}

    @property
    def _called(self) -> bool:
        """Whether any request has left for the cloud, answered or not."""
        return self.gateway is not None and self.gateway.calls > 0

    def _result(self, ended: Ended) -> dict[str, Any]:
        meter = self.meter
        return {
            "status": ended.status,
            "completion": ended.completion,
            "checks": ended.checks,
            "strays": ended.strays,
            "forbidden": list(ended.forbidden),
            **figures(accounts(self.episode.units, self.levels, ended.touched), called=self._called),
            "cloud_calls": meter.cloud_calls,
            "tokens_raw": meter.tokens_raw,
            "tokens_cached": meter.tokens_cached,
            "tokens_out": meter.tokens_out,
            "cloud_usd": float(meter.cloud_usd),
            "usage_gap": {
                "raw": meter.gap_raw,
                "cached": meter.gap_cached,
                "out": meter.gap_out,
                "usd": float(meter.gap_usd),
            },
            "edge_flops": meter.edge_flops,
            "edge_flops_without_probes": meter.edge_flops_without_probes,
            "latency_s": meter.latency_s,
            "steps": self.step,
            "problem": ended.problem,
        }


def json_text(value: Any) -> str:
    """Returns a value as compact JSON text; what JSON has no form for is written as text."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(value, separators=(",", ":"), default=str)


def written_text(text: str, words: int) -> str:
    """Returns what of a model's text is meant for the cloud: no thoughts, at most so many words; "" if it declines to write."""
    text = text.rpartition("</think>")[2].partition("<think>")[0].strip()
    if text.rstrip(".").upper() == NOTHING or re.match(rf"{NOTHING}\b", text):
        return ""
    ends = [found.end() for found in _WORD.finditer(text)]
    return text if len(ends) <= words else text[: ends[words - 1]]


def first_call(reply: Reply) -> Action | Malformed:
    """Returns the call that a reply makes. A reply without one is malformed: the observation says what was expected."""
    if reply.calls:
        return parse_action(reply.calls[0])
    return Malformed(f"no tool call in the reply ({len(reply.text)} characters of text); call one tool, or finish")


def clipped(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments of a refused call, short enough to keep in the transcript."""
    text = json.dumps(tidy(arguments), ensure_ascii=False, default=str)
    return tidy(arguments) if len(text) <= 2_000 else {"too_large": text[:500]}
