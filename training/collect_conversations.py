"""Turns episodes into conversations for supervised training: the agent's own turns, `invoke_cloud` among them.

In a `DecisionEnv` a strategy uses the cloud in the place of the agent. Here it reads as if the agent had called `invoke_cloud`
itself, in the form of `ec2_env.training.env_factory`: what the cloud said, or the result of the step that it took, is the result
of that call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ec2_env.actions import InvokeCloud, dump_action, parse_action
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Message
from ec2_env.models.toolchat import NO_CALL
from ec2_env.prompts import ADVICE_MARK, AGENT, CLOUD_DOWN, PLAN_MARK
from ec2_env.strategy import REQUESTS, Decision
from ec2_env.trace import CloudCall, Decided, Ended, Event, ToolRan
from ec2_env.workspace.tools import failure

CLOSING = {"en": "Done.", "zh": "完成。"}
"""What the agent says after `finish` if its report has no text."""


def conversation(instruction: str, language: str, messages: Sequence[Message], events: Sequence[Event]) -> list[dict[str, Any]]:
    """Returns an episode as the agent should have had it: system, user, and then calls and their results in turn.

    Replies of a model without a call that could be read are left out, with the answer to them. If the work was finished, the
    agent closes with its answer to the user, because a chat model has to stop somewhere.

    Args:
        instruction: What the user asked.
        language: "en" or "zh".
        messages: The transcript of the episode, as a `Session` keeps it.
        events: What happened in it.

    Raises:
        ConfigurationError: if events and transcript do not belong together.
    """
    found: list[dict[str, Any]] = [{"role": "system", "content": AGENT}, {"role": "user", "content": instruction}]
    for number, (name, arguments, result) in enumerate(_calls(messages, events)):
        call = {"type": "function", "id": f"call_{number}", "function": {"name": name, "arguments": arguments}}
        found.append({"role": "assistant", "content": "", "tool_calls": [call]})
        found.append({"role": "tool", "tool_call_id": f"call_{number}", "name": name, "content": result})
    end = events[-1] if events else None
    if isinstance(end, Ended) and end.finished:
        found.append({"role": "assistant", "content": end.answer or CLOSING[language]})
    return found


def _calls(messages: Sequence[Message], events: Sequence[Event]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yields name, arguments and result of each call of the agent."""
    rest = _said(messages[2:])
    asked: InvokeCloud | None = None
    acting = False
    for event in events:
        match event:
            case Decided():
                asked, acting = request_of(event), False
            case CloudCall():
                if asked is None:
                    raise ConfigurationError(f"step {event.step}: the cloud was used without a decision to do so")
                acting = event.status == "ok" and asked.mode == "act"
                if not acting:
                    yield "invoke_cloud", dump_action(asked)["arguments"], _heard(next(rest, {}), event)
            case ToolRan(by="cloud") if acting and asked is not None:
                _made(rest, event)
                yield "invoke_cloud", dump_action(asked)["arguments"], event.result
            case ToolRan():
                arguments = _made(rest, event)
                if event.ok or event.name != NO_CALL:
                    yield event.name, arguments, event.result


def request_of(event: Decided) -> InvokeCloud | None:
    """Returns what a decision asked of the cloud; None if nothing.

    Raises:
        ConfigurationError: if the event holds no decision, or a request that could not be sent.
    """
    if event.request is None:
        if not 0 <= event.decision < len(Decision):
            raise ConfigurationError(f"step {event.step}: {event.decision} is no decision")
        return REQUESTS.get(Decision(event.decision))
    request = parse_action({"name": "invoke_cloud", "arguments": event.request})
    if not isinstance(request, InvokeCloud):
        raise ConfigurationError(f"step {event.step}: the request to the cloud could not be sent")
    return request


def _said(messages: Sequence[Message]) -> Iterator[Message]:
    """Yields the messages without the texts that the edge wrote to the cloud: these are in the requests."""
    return (message for message in messages if message["role"] != "assistant" or message.get("tool_calls"))


def _heard(message: Message, event: CloudCall) -> str:
    """Returns what the cloud said, as the result of a call."""
    text = str(message.get("content"))
    mark = next((mark for mark in (PLAN_MARK, ADVICE_MARK, CLOUD_DOWN) if text.startswith(mark)), None)
    if message.get("role") != "user" or mark is None or (mark == CLOUD_DOWN) is (event.status == "ok"):
        raise ConfigurationError(f"step {event.step}: the cloud's answer is not in the transcript")
    said = text.removeprefix(mark).removeprefix(" ")
    return said if event.status == "ok" else failure(f"the cloud could not help: {said}").text


def _made(rest: Iterator[Message], event: ToolRan) -> dict[str, Any]:
    """Returns the arguments of a call as they stand in the transcript."""
    call, result = next(rest, {}), next(rest, {})
    function = (call.get("tool_calls") or [{"function": {}}])[0]["function"]
    if function.get("name") != event.name or result.get("content") != event.result:
        raise ConfigurationError(f"step {event.step}: the call of {event.name!r} is not in the transcript")
    arguments: dict[str, Any] = json.loads(function["arguments"])
    return arguments
