"""The environments: in `WorkspaceEnv` the agent is the edge model, in `DecisionEnv` it only decides about the cloud."""

from __future__ import annotations

import copy
import operator
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ec2_env import features as seen
from ec2_env.actions import Action, InvokeCloud, Malformed, dump_action, parse_action
from ec2_env.episode_env import EpisodeEnv, Observation
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import Model
from ec2_env.models.draws import uniform
from ec2_env.models.loading import load_model
from ec2_env.session import Session
from ec2_env.spaces import ToolCallSpace, UnicodeText
from ec2_env.strategy import REQUESTS, Choice, Decision, View, decision_of
from ec2_env.task import recent_episode, tasks, toolbox
from ec2_env.trace import Decided
from ec2_env.workspace.tools import failure


class WorkspaceEnv(EpisodeEnv[Any]):
    """The agent does the work: an action is one tool call, `invoke_cloud` and `finish` included.

    ## Action
    JSON text `{"name": ..., "arguments": {...}}`, the same as a dict, or an object of `ec2_env.actions`. Calls that are
    malformed, unknown or refused never raise: the observation says what was wrong, and the step counts.

    ## Observation
    `Dict(instruction=text, result=text, date=text, steps_left=Box(), budget_left=Box(), exposure_left=Box(), cloud_calls=Box())`.
    `result` is what the last call returned, as JSON. `budget_left` is the unspent share of the cap on the cloud bill,
    `exposure_left` the unused share of `max_exposure`; 1 without a cap.

    ## Reward
    weights.task * completion at the end, less weights.cost * (US dollars spent / price of doing the task cloud-only), less
    weights.privacy * weighted share of sensitive units newly exposed, at each step. `info` holds the terms, see
    `docs/environments.md`.

    ## Starting state, end
    `reset(seed=...)` draws task, language and instance. Ends on `finish` (terminated) or at the step limit (truncated).

    ## Version history
    v0: first version.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        apps = tuple(dict.fromkeys(app for name in self.names for app in tasks.get(name).apps))
        self.action_space = ToolCallSpace(toolbox(apps))
        self.observation_space = spaces.Dict(
            {
                "instruction": UnicodeText(),
                "result": UnicodeText(),
                "date": UnicodeText(40),
                "steps_left": spaces.Box(0, 10_000, (), np.float32),
                "budget_left": spaces.Box(0, 1, (), np.float32),
                "exposure_left": spaces.Box(0, 1, (), np.float32),
                "cloud_calls": spaces.Box(0, 10_000, (), np.float32),
            }
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Fixes the draws of this and later episodes, as in Gymnasium.
            options: "task", "language", "split", "seed" (of the instance) and "trial" choose the episode instead of drawing it.
        """
        info = self._begin(seed, options, None)
        return self._observation(""), info

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Makes one call. See the class for actions, observations and rewards."""
        session = self._running()
        if session.ended:
            raise gym.error.ResetNeeded("the episode has ended; call reset()")
        since = len(session.events)
        parsed = parse_action(action)
        text = self._ask(session, parsed) if isinstance(parsed, InvokeCloud) else session.call(parsed, "agent").text
        session.next_step()
        reward, terminated, truncated, info = self._outcome(since)
        return self._observation(text), reward, terminated, truncated, info

    def _ask(self, session: Session, request: InvokeCloud) -> str:
        """Invokes the cloud; in mode `act` its call is made at once, and its result is what the agent sees."""
        answer = session.invoke(request)
        if answer is None or not answer.ok:
            result = failure(f"the cloud could not help: {answer.text if answer else 'there is no cloud'}")
            session.note_cloud(request, result.text)
            return result.text
        session.note_cloud(request, answer.text)
        if request.mode != "act":
            return answer.text
        action: Action | Malformed = parse_action(answer.call)
        return session.call(action, "cloud").text

    def _observation(self, result: str) -> Observation:
        session = self._running()
        return {
            "instruction": session.episode.instruction,
            "result": result,
            "date": session.workspace.now.isoformat(" ", "minutes"),
            "steps_left": np.array(session.max_steps - session.step, np.float32),
            "budget_left": np.array(seen.budget_left(session), np.float32),
            "exposure_left": np.array(seen.exposure_left(session), np.float32),
            "cloud_calls": np.array(session.meter.cloud_calls, np.float32),
        }


class DecisionEnv(EpisodeEnv[np.int64]):
    """An edge model does the work; the policy only decides, before every step, whether and how to use the cloud.

    ## Action
    `Discrete(6)`: 0 the edge acts; 1 the cloud plans from the instruction; 2 it advises on the transcript; 3 the same, redacted;
    4 the cloud acts on the transcript; 5 the same, redacted. After 1 to 3 the edge acts, too.

    ## Observation
    `Dict(features=Box(len(ec2_env.features.NAMES),))`, and `info["prompt"]`, the state in about 80 tokens of text.

    ## Reward, end
    As in `WorkspaceEnv`. The edge model's probe (its first-token entropy) is part of every observation and is paid for.

    ## Version history
    v0: first version.

    Args:
        edge: Specification of the edge model; None leaves the work to the cloud (decisions without it are then impossible).
        share: What crosses with decisions 2 to 5: the whole "transcript", or of it what is "relevant"
            (`ec2_env.cloud.relevance`).
        settings: See `EpisodeEnv`.
    """

    def __init__(self, *, edge: str | Model | None = "sim:qwen3.5-9b", share: str = "transcript", **settings: Any) -> None:
        super().__init__(**settings)
        if share not in ("transcript", "relevant"):
            raise ConfigurationError(f"share is {share!r}, expected 'transcript' or 'relevant'")
        self.share = share
        self.edge = load_model(edge) if isinstance(edge, str) else edge
        self.action_space = spaces.Discrete(len(Decision))
        self.observation_space = spaces.Dict({"features": spaces.Box(-1, 5, (len(seen.NAMES),), np.float32)})
        self.choices: tuple[Choice, ...] = ()
        """What was chosen so far; taken again, it brings a fresh episode into the same state."""
        self.decisions: tuple[Decision, ...] = ()
        """What these choices came down to."""
        self.sent_messages = 0
        """Number of messages of the transcript that have crossed in the clear."""
        self._watcher = seen.Watcher()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; see `WorkspaceEnv.reset`."""
        info = self._begin(seed, options, self.edge)
        self._forget()
        values = self.features()
        info["prompt"] = self._prompt(values)
        return {"features": np.array(values, np.float32)}, info

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Takes one decision and the step that follows from it.

        Raises:
            ConfigurationError: if the action is not a whole number from 0 to 5.
        """
        since = len(self._running().events)
        self.take(action)
        reward, terminated, truncated, info = self._outcome(since)
        values = self.features()
        info["prompt"] = self._prompt(values)
        return {"features": np.array(values, np.float32)}, reward, terminated, truncated, info

    def begin(self, task: str, language: str, split: str, seed: int, trial: int = 0) -> None:
        """Starts a chosen episode without computing an observation, for rollouts that need none."""
        episode = recent_episode(task, seed, language, split)  # type: ignore[arg-type]  # checked inside
        self._start(episode, self.edge, trial)
        self._forget()

    def _forget(self) -> None:
        self.choices, self.decisions, self.sent_messages, self._watcher = (), (), 0, seen.Watcher()

    def take(self, action: Any) -> None:
        """Takes one decision without computing an observation: what `step` does, for rollouts that need none.

        Args:
            action: A number from 0 to 5; or an `InvokeCloud`, for strategies that write requests of their own.
        """
        session = self._running()
        if session.ended:
            raise gym.error.ResetNeeded("the episode has ended; call reset()")
        choice = chosen(action)
        decision = decision_of(choice)
        own = dump_action(choice)["arguments"] if isinstance(choice, InvokeCloud) else None
        session.events.append(Decided(session.step, int(decision), own))
        self.choices, self.decisions = (*self.choices, choice), (*self.decisions, decision)
        request = choice if isinstance(choice, InvokeCloud) else self._request(choice)
        taken = request is not None and self._invoke(session, request)
        if not taken and session.edge is not None:
            session.edge_turn()
        session.next_step()

    def _request(self, decision: Decision) -> InvokeCloud | None:
        """Returns what a decision asks of the cloud; None if it asks nothing."""
        request = REQUESTS.get(decision)
        if request is None or self.share == "transcript" or request.share != "transcript":
            return request
        return replace(request, share="relevant")

    def _invoke(self, session: Session, request: InvokeCloud) -> bool:
        """Uses the cloud; says whether it has taken the step."""
        answer = session.invoke(request)
        if answer is None:
            return False
        if answer.ok and not request.redact and request.share == "transcript":
            self.sent_messages = len(session.messages)
        if request.mode == "act" and answer.ok:
            session.call(parse_action(answer.call), "cloud")
            return True
        session.hear(request, answer)
        return False

    def features(self) -> tuple[float, ...]:
        """Returns the features of the current state, in the order of `ec2_env.features.NAMES`."""
        session = self._running()
        self._watcher.watch(session)
        return seen.features(session, self._watcher, self.decisions, self.sent_messages, self.weights, self._reference)

    def _prompt(self, values: tuple[float, ...]) -> str:
        return seen.prompt(self._running(), self._watcher, self.decisions, values, self.weights)

    def view(self) -> View:
        """Returns what a strategy sees now. The costly parts are made only if it asks for them."""
        session = self._running()
        card = session.edge.card if session.edge is not None else None
        return View(
            step=session.step,
            task=session.episode.name,
            language=session.episode.language,
            edge=card.name if card else "",
            decisions=self.decisions,
            signals=session.signals,
            wish=session.wish,
            prompt=lambda: self._prompt(self.features()),
            features=self.features,
            draw=partial(uniform, session.noise, "strategy", session.step),
            messages=session.messages,
            tools=session.tools.schemas_with_finish,
            write=session.write,
            fork=partial(copy.deepcopy, self) if card is not None and card.simulated and self.cloud.card.simulated else None,
        )

    def _copied(self, other: Any) -> None:
        other._watcher = self._watcher.fork()


def chosen(action: Any) -> Choice:
    """Returns what a policy chose.

    Raises:
        ConfigurationError: if it is no whole number from 0 to 5 and no request that could be sent.
    """
    if isinstance(action, InvokeCloud):
        request = parse_action(action)
        if not isinstance(request, InvokeCloud):
            raise ConfigurationError(
                f"the request cannot be sent: {request.problem if isinstance(request, Malformed) else request}"
            )
        return request
    try:
        return Decision(operator.index(action))
    except (TypeError, ValueError):
        raise ConfigurationError(f"decision is {action!r}, expected a whole number from 0 to {len(Decision) - 1}") from None
