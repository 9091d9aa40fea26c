"""Solutions as conversations in tokens, exactly as a local model is prompted, with a mark on every token that it is to write."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ec2_env.actions import Finish
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import Message
from ec2_env.models.hf import LocalModel
from ec2_env.models.toolchat import chat_turns
from ec2_env.rollout import EpisodeKey
from ec2_env.session import PASS_THRESHOLD, json_text
from ec2_env.strategy import Decision, View
from ec2_env.task import tasks, toolbox
from ec2_env.training.collect_conversations import conversation
from ec2_env.training.collect_solution import play_solution
from ec2_env.workspace.tools import CLOUD_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A conversation in tokens.

    Attributes:
        tokens: All of it.
        turns: Half-open ranges of the tokens that the agent writes, turn by turn, the end of a turn included.
        places: What each of its calls is, as `place` names it; one less than `turns` if it closes with a word to the user.
    """

    tokens: list[int]
    turns: list[tuple[int, int]]
    places: list[str]


def offered_tools(task: str, cloud: bool) -> list[dict[str, Any]]:
    """Returns the schemas of what an agent may call in a task, `invoke_cloud` among them if there is a cloud."""
    return [*toolbox(tasks.get(task).apps).schemas_with_finish, *([CLOUD_SCHEMA] if cloud else [])]


def place(task: str, number: int, name: str) -> str:
    """Names a step of a task's solution, so that the same step of other instances has the same name."""
    return f"{task}/{number}/{name}"


class Asking:
    """Uses the cloud before the steps of a solution that are among the hard ones: it acts, on the redacted transcript.

    Args:
        env: Whose episodes these are.
        hard: Names of steps, see `place`.
    """

    name = "hard steps"
    uses_edge = True

    def __init__(self, env: DecisionEnv, hard: Collection[str]) -> None:
        self.env, self.hard = env, hard

    def decide(self, view: View) -> Decision:
        """Returns ACT_REDACTED before a hard step, otherwise EDGE."""
        session = self.env.session
        step = session.minds["edge"].tracker.walker.step if session is not None else None
        if session is None or step is None:
            return Decision.EDGE
        name = "finish" if isinstance(step.action, Finish) else step.action.name
        return Decision.ACT_REDACTED if place(view.task, len(session.records), name) in self.hard else Decision.EDGE


def solved(env: DecisionEnv, key: EpisodeKey, hard: Collection[str]) -> list[Message] | None:
    """Returns a task's solution as a conversation, with the cloud used before hard steps; None if the cloud spoiled it.

    Args:
        env: Where it is played; both models simulated.
        key: Which episode.
        hard: Names of steps, see `place`.
    """
    played = play_solution(env, Asking(env, hard), key)
    if played.result["completion"] < PASS_THRESHOLD or env.session is None:
        return None
    return [compact(message) for message in conversation(played.instruction, key.language, env.session.messages, played.events)]


def compact(message: Message) -> Message:
    """Returns a message with the arguments of its calls as the compact text that transcripts hold."""
    if not message.get("tool_calls"):
        return message
    calls = [{**call, "function": {**call["function"], "arguments": _text(call)}} for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def _text(call: Mapping[str, Any]) -> str:
    arguments = call["function"]["arguments"]
    return arguments if isinstance(arguments, str) else json_text(arguments)


def tokenized(chat: LocalModel, task: str, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Example | None:
    """Returns a conversation as the model would have read and written it; None if it does not fit its window.

    Args:
        chat: The model; its prompts are made as when it plays.
        task: Name of the task.
        messages: The conversation.
        tools: What may be called in it.
    """
    tokens: list[int] = []
    turns: list[tuple[int, int]] = []
    places: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = chat.prompt_ids(messages[:number], tools)
        if prompt[: len(tokens)] != tokens:
            return None
        said = chat_turns([message])[0]["content"]
        written = chat.tokenizer(said, add_special_tokens=False)["input_ids"] + [chat.tokenizer.eos_token_id]
        tokens = [*prompt, *written]
        turns.append((len(prompt), len(tokens)))
        if message.get("tool_calls"):
            places.append(place(task, len(places), message["tool_calls"][0]["function"]["name"]))
    return Example(tokens=tokens, turns=turns, places=places)


def examples(
    chat: LocalModel, env: DecisionEnv, keys: Sequence[EpisodeKey], hard: Collection[str] = (), cloud: bool = False
) -> Iterator[Example]:
    """Yields solutions in tokens; those that the cloud spoiled or that are too long are left out.

    Args:
        chat: The model.
        env: Where the solutions are played.
        keys: Which episodes.
        hard: Before which steps the cloud is used.
        cloud: Whether `invoke_cloud` is among the tools.
    """
    for key in keys:
        messages = solved(env, key, hard)
        found = messages and tokenized(chat, key.task, messages, offered_tools(key.task, cloud))
        if found:
            yield found


def trainer_row(example: Example) -> dict[str, list[int]]:
    """Returns the columns that TRL's `SFTTrainer` reads: tokens, and which of them are trained."""
    mask = [0] * len(example.tokens)
    for start, end in example.turns:
        mask[start:end] = [1] * (end - start)
    return {"input_ids": example.tokens, "completion_mask": mask}


def shares(right: Mapping[str, Sequence[bool]]) -> dict[str, float]:
    """Returns for each place the share of calls that were right there."""
    return {name: sum(found) / len(found) for name, found in right.items() if found}
