"""Lets a local model work in `WorkspaceEnv`, many episodes in step with one another, and measures how it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ec2_env.actions import Action, InvokeCloud, Malformed, parse_action
from ec2_env.envs import WorkspaceEnv
from ec2_env.models.base import Message
from ec2_env.models.calltext import read_call
from ec2_env.prompts import AGENT
from ec2_env.reward import Terms
from ec2_env.rollout import EpisodeKey
from ec2_env.session import json_text
from ec2_env.strategy import Decision, decision_of
from ec2_env.training.agent_decoding import Decoder
from ec2_env.training.agent_rows import offered_tools
from ec2_env.training.evaluation import Score

REFUSED = '{"error":'
"""What a result begins with if the call was not made."""
CLOUDLESS = Malformed("there is no tool 'invoke_cloud'")
PATIENCE = 3
"""After so many replies in a row that were no call, or none that was carried out, an episode is ended and graded as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How a model did on a list of episodes.

    Attributes:
        score: Returns, completion, cost and exposure, and how often it used the cloud.
        replies: Turns that it wrote.
        calls: Those of them that were calls and were carried out.
        passed: Episodes that were completed to at least the threshold of the study.
    """

    score: Score
    replies: int
    calls: int
    passed: int


@dataclass(kw_only=True)
class Work:
    """One episode, and the chat in which a model works on it."""

    env: WorkspaceEnv
    tools: list[dict[str, Any]]
    messages: list[Message]
    cloud: bool
    replies: int = 0
    calls: int = 0
    asked: Counter[int] = field(default_factory=Counter)
    in_vain: int = 0
    rewards: float = 0.0
    terms: Terms = field(default_factory=lambda: Terms(0.0, 0.0, 0.0))
    over: bool = False

    def take(self, text: str) -> None:
        """Does what the model has written; writes the call and its result into the chat."""
        call = read_call(text, self.tools)
        action: Action | Malformed = (
            parse_action(call) if call else Malformed("no tool call in the reply; call one tool, or finish")
        )
        if isinstance(action, InvokeCloud):
            self.asked[int(decision_of(action))] += self.cloud
            action = action if self.cloud else CLOUDLESS
        else:
            self.asked[int(Decision.EDGE)] += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        result, self.replies = str(observation["result"]), self.replies + 1
        made = call is not None and not result.startswith(REFUSED)
        self.calls, self.in_vain, self.over = self.calls + made, 0 if made else self.in_vain + 1, terminated or truncated
        if self.in_vain == PATIENCE and not self.over:
            self.over, reward = True, self.env.cut_off(reward, info)
        found, so_far = info["reward_terms"], self.terms
        self.rewards += float(reward)
        self.terms = Terms(so_far.task + found["task"], so_far.cost + found["cost"], so_far.exposure + found["exposure"])
        self._note(call, result)

    def _note(self, call: Mapping[str, Any] | None, result: str) -> None:
        """Writes into the chat what `ec2_env.models.hf` would show there: a reply without a call is left out."""
        if call is None:
            self.messages.append({"role": "user", "content": result})
            return
        number, arguments = f"call_{self.replies}", call["arguments"]
        text = arguments if isinstance(arguments, str) else json_text(arguments)
        made = {"id": number, "type": "function", "function": {"name": call["name"], "arguments": text}}
        self.messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
        self.messages.append({"role": "tool", "tool_call_id": number, "name": call["name"], "content": result})


def begin(settings: Mapping[str, Any], key: EpisodeKey, cloud: bool) -> Work:
    """Starts an episode.

    Args:
        settings: Arguments of `WorkspaceEnv`.
        key: Which episode.
        cloud: Whether the agent is told of the cloud.
    """
    env = WorkspaceEnv(task=key.task, **settings)
    options = {"task": key.task, "language": key.language, "split": key.split, "seed": key.seed, "trial": key.trial}
    observation, _ = env.reset(seed=0, options=options)
    first = [{"role": "system", "content": AGENT}, {"role": "user", "content": observation["instruction"]}]
    return Work(env=env, tools=offered_tools(key.task, cloud), messages=first, cloud=cloud)


def play_agent(
    name: str, decoder: Decoder, settings: Mapping[str, Any], keys: Sequence[EpisodeKey], *, cloud: bool, together: int = 8
) -> Played:
    """Plays every episode to its end.

    Args:
        name: What to call the policy.
        decoder: Writes the turns.
        settings: Arguments of `WorkspaceEnv`.
        keys: The episodes.
        cloud: Whether the agent is told of the cloud and may use it.
        together: Episodes played in step with one another.
    """
    done: list[Work] = []
    for start in range(0, len(keys), together):
        batch = [begin(settings, key, cloud) for key in keys[start : start + together]]
        done += batch
        decoder.forget()
        while running := [work for work in batch if not work.over]:
            prompts = [decoder.chat.prompt_ids(work.messages, work.tools) for work in running]
            for work, written in zip(running, decoder.reply(prompts), strict=True):
                work.take(decoder.chat.tokenizer.decode(written, skip_special_tokens=True).strip())
    asked = sum((work.asked for work in done), Counter[int]())
    results = [work.env.session.result for work in done if work.env.session is not None]
    score = Score(
        name=name,
        returns=tuple(work.rewards for work in done),
        parts=tuple(work.terms for work in done),
        decisions={int(decision): asked[decision] for decision in Decision},
    )
    return Played(
        score=score,
        replies=sum(work.replies for work in done),
        calls=sum(work.calls for work in done),
        passed=sum(result is not None and result["status"] == "pass" for result in results),
    )
