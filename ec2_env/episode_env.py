"""What both kinds of environment share: choosing an episode, rewards, the result, rendering, copying."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ec2_env.cloud.gateway import CloudSettings, cloud_settings
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.base import Model
from ec2_env.models.loading import load_model
from ec2_env.reference import reference_usd
from ec2_env.render import render_ansi, render_html
from ec2_env.reward import RewardWeights, Terms, reward_weights, terms
from ec2_env.session import Session
from ec2_env.task import Episode, recent_episode, task_domains, tasks
from ec2_env.trace import CloudCall
from ec2_env.workspace.tools import CLOUD_SCHEMA

MAX_SEED = 2**31
Observation = dict[str, Any]
ActionT = TypeVar("ActionT")
REWARD_SPACE = spaces.Box(np.array([0.0, -1e6, -1.0]), np.array([1.0, 0.0, 0.0]), dtype=np.float64)
"""Bounds of the vector reward (task, -cost, -exposure)."""


class EpisodeEnv(gym.Env[Observation, ActionT], Generic[ActionT]):
    """What both environments share: choosing an episode, rewards, the result, rendering, copying.

    Args:
        task: Name of the only task, or None for all tasks of `domain`.
        domain: Name of a task folder ("email") or of several ("email,chat"), or None for all domains.
        split: "train" or "test": disjoint phrasings and draws.
        language: "en", "zh", or None for any language that the task has.
        cloud: Specification of the cloud model.
        cloud_settings: Budgets, outages and redaction, see `ec2_env.cloud.gateway.CloudSettings`.
        max_cloud_usd: Hard cap on the cloud bill of an episode in US dollars.
        max_cost: The same in units of what doing the task cloud-only costs, as the reward counts it; the lower of the two holds.
        max_exposure: Hard cap on the weighted share of the episode's sensitive units that may reach the cloud, 0 to 1.
        reward: "scalar"; "vector" for (task, -cost, -exposure) with a `reward_space`; or "constraint": the reward is the
            completion alone, and `info` has the step's `costs` and the `limits` of the episode. The registered ids that end in
            "Budget" stand for it, with caps (`ec2_env.registration.BUDGET`).
        weights: Weights of the scalar reward, see `ec2_env.reward.RewardWeights`.
        max_episode_steps: Steps after which an episode is truncated; the task's own limit if None.
        fault_rate: Chance that a tool call fails as services do, rate-limited or timed out, 0 to below 1.
        render_mode: None, "ansi" or "html".

    Raises:
        UnknownName: for a task, domain or model that does not exist.
        ConfigurationError: for a setting that cannot be used.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium declares it without ClassVar
        "render_modes": ["ansi", "html"],
        "render_fps": 1,
    }

    def __init__(
        self,
        *,
        task: str | None = None,
        domain: str | None = None,
        split: str = "train",
        language: str | None = None,
        cloud: str | Model = "sim:gpt-5.4",
        cloud_settings: Mapping[str, Any] | CloudSettings | None = None,
        max_cloud_usd: float | None = None,
        max_cost: float | None = None,
        max_exposure: float | None = None,
        reward: str = "scalar",
        weights: Mapping[str, float] | RewardWeights | None = None,
        max_episode_steps: int | None = None,
        fault_rate: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.names = chosen_tasks(task, domain, language)
        if split not in ("train", "test"):
            raise ConfigurationError(f"split is {split!r}, expected 'train' or 'test'")
        if reward not in ("scalar", "vector", "constraint"):
            raise ConfigurationError(f"reward is {reward!r}, expected 'scalar', 'vector' or 'constraint'")
        if render_mode not in (None, "ansi", "html"):
            raise ConfigurationError(f"render_mode is {render_mode!r}, expected None, 'ansi' or 'html'")
        if max_episode_steps is not None and (not isinstance(max_episode_steps, int) or max_episode_steps < 1):
            raise ConfigurationError(f"max_episode_steps is {max_episode_steps!r}, expected a whole number above 0")
        if isinstance(fault_rate, bool) or not isinstance(fault_rate, int | float) or not 0 <= fault_rate < 1:
            raise ConfigurationError(f"fault_rate is {fault_rate!r}, expected a share from 0 to below 1")
        self.split, self.language, self.reward_form, self.render_mode = split, language, reward, render_mode
        self.cloud = load_model(cloud) if isinstance(cloud, str) else cloud
        self.settings = make_settings(cloud_settings, max_cloud_usd, max_exposure)
        if max_cost is not None and (
            isinstance(max_cost, bool) or not isinstance(max_cost, int | float) or not 0 <= max_cost < 1e6
        ):
            raise ConfigurationError(f"max_cost is {max_cost!r}, expected a number of at least 0, or None for no cap")
        self.max_cost = max_cost
        self.weights = weights if isinstance(weights, RewardWeights) else reward_weights(weights or {})
        self.max_episode_steps, self.fault_rate = max_episode_steps, fault_rate
        if reward == "vector":
            self.reward_space = REWARD_SPACE
        self.session: Session | None = None
        self._levels: dict[str, float] = {}
        self._reference = 1.0

    @property
    def episode(self) -> Any:
        """The running episode: instruction, sensitive units, checks. For experimenters; no agent is ever given it.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        return self._running().episode

    def _begin(self, seed: int | None, options: Mapping[str, Any] | None, edge: Model | None) -> dict[str, Any]:
        """Chooses and builds the episode; returns the info of `reset`."""
        super().reset(seed=seed)
        known = {"task", "language", "split", "seed", "trial"}
        options = options or {}
        unknown = sorted(set(options) - known)
        if unknown:
            raise ConfigurationError(f"unknown reset option {unknown[0]!r}; the options are {', '.join(sorted(known))}")
        drawn_name = self.names[int(self.np_random.integers(len(self.names)))]
        drawn_seed = int(self.np_random.integers(MAX_SEED))
        pick = float(self.np_random.random())
        name = options.get("task") or drawn_name
        language = options.get("language") or self.language
        languages = tasks.get(name).languages
        language = language or languages[int(pick * len(languages))]
        number, trial = options.get("seed", drawn_seed), options.get("trial", 0)
        for option, value in (("seed", number), ("trial", trial)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigurationError(f"reset option {option!r} is {value!r}, expected a whole number")
        episode = recent_episode(name, number, language, options.get("split") or self.split)  # type: ignore[arg-type]  # checked inside
        session = self._start(episode, edge, trial)
        return {
            "task": name,
            "seed": episode.seed,
            "language": language,
            "date": episode.date.date().isoformat(),
            "messages": list(session.messages),
            "tools": [*session.tools.schemas_with_finish, CLOUD_SCHEMA],
        }

    def _start(self, episode: Episode, edge: Model | None, trial: int) -> Session:
        self._reference = reference_usd(episode.name, episode.language, self.cloud.card)
        self.session = Session(
            episode,
            cloud=self.cloud,
            settings=self._settings_of_episode(),
            edge=edge,
            trial=trial,
            max_steps=self.max_episode_steps,
            fault_rate=self.fault_rate,
        )
        self._levels = {}
        return self.session

    def _settings_of_episode(self) -> CloudSettings:
        """Returns the conditions of cloud use with the cap on the cost in US dollars, now that the task is known."""
        if self.max_cost is None:
            return self.settings
        cap, other = self.max_cost * self._reference, self.settings.max_usd
        return replace(self.settings, max_usd=cap if other is None else min(cap, float(other)))

    def _running(self) -> Session:
        if self.session is None:
            raise gym.error.ResetNeeded("call reset() before step(), render() or episode")
        return self.session

    def _outcome(self, since: int) -> tuple[Any, bool, bool, dict[str, Any]]:
        """Returns reward, terminated, truncated and info for what has happened since event number `since`."""
        session = self._running()
        events = session.events[since:]
        found = terms(events, self._levels, session.episode.units, self._reference)
        info: dict[str, Any] = {
            "reward_terms": {"task": found.task, "cost": found.cost, "exposure": found.exposure},
            "cost": {"cost": found.cost, "exposure": found.exposure},
            "cloud_usd": float(session.meter.cloud_usd),
            "cloud_calls": session.meter.cloud_calls,
            "exposures": [
                {"unit": e.unit, "level": e.level, "form": e.form} for event in events for e in getattr(event, "exposures", ())
            ],
            "messages": list(session.messages),
        }
        if self.reward_form == "constraint":
            spent = sum(Decimal(event.usd) for event in events if isinstance(event, CloudCall))
            info["costs"] = {"usd": float(spent), "cost": found.cost, "exposure": found.exposure}
            info["limits"] = self._limits()
        if session.result is not None:
            info["result"] = session.result
        over = session.ended
        cut = over and session.finish is None and not session.broken
        return self._reward(found), over and not cut, cut, info

    def _limits(self) -> dict[str, float | None]:
        """Returns the caps on the sums of an episode's `costs`; None where there is no cap."""
        settings = self._settings_of_episode()
        usd = None if settings.max_usd is None else float(settings.max_usd)
        return {"usd": usd, "cost": None if usd is None else usd / self._reference, "exposure": settings.max_exposure}

    def cut_off(self, reward: Any, info: dict[str, Any]) -> Any:
        """Ends the episode from outside: grades it, completes `info` in place, returns the last reward with the grade."""
        session = self._running()
        session.end()
        assert session.result is not None
        graded = Terms(session.result["completion"], 0.0, 0.0)
        info["reward_terms"] = {**info["reward_terms"], "task": graded.task}
        info["result"] = session.result
        return reward + self._reward(graded)

    def _reward(self, found: Terms) -> Any:
        match self.reward_form:
            case "vector":
                return np.array(found.vector())
            case "constraint":
                return found.task
        return found.scalar(self.weights)

    def render(self) -> Any:
        """Returns the episode so far as text ("ansi") or as a page ("html"); None without a render mode."""
        match self.render_mode:
            case "ansi":
                return render_ansi(self._running())
            case "html":
                return render_html(self._running())
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copies the env in the middle of an episode, in microseconds: models, tasks and spaces are shared, the state is not."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        memo[id(self)] = other
        other._levels = dict(self._levels)
        other.session = self.session.fork() if self.session is not None else None
        if self._np_random is not None:
            other._np_random = np.random.Generator(type(self._np_random.bit_generator)())
            other._np_random.bit_generator.state = self._np_random.bit_generator.state
        self._copied(other)
        return other

    def _copied(self, other: Any) -> None:
        """Lets a subclass copy its own state."""


def chosen_tasks(task: str | None, domain: str | None, language: str | None) -> tuple[str, ...]:
    """Returns the names of the tasks that an env draws from, sorted.

    Raises:
        UnknownName: if the task or the domain does not exist.
        ConfigurationError: if no task has the language.
    """
    if task is not None:
        names: tuple[str, ...] = (task,)
        tasks.get(task)
    elif domain is not None:
        for one in domain.split(","):
            if one not in task_domains():
                raise UnknownName("domain", one, task_domains())
        names = tuple(sorted(name for one in set(domain.split(",")) for name in task_domains()[one]))
    else:
        names = tasks.names()
    if language is not None:
        speaking = tuple(name for name in names if language in tasks.get(name).languages)
        if not speaking:
            where = task or domain or "the suite"
            raise ConfigurationError(f"no task of {where} has language {language!r}; expected 'en' or 'zh'")
        names = speaking
    return names


def make_settings(
    given: Mapping[str, Any] | CloudSettings | None, max_cloud_usd: float | None, max_exposure: float | None = None
) -> CloudSettings:
    """Returns the conditions of cloud use from an env's arguments; the caps named apart go before those in `given`."""
    settings = given if isinstance(given, CloudSettings) else cloud_settings(dict(given or {}))
    caps = {"max_usd": max_cloud_usd, "max_exposure": max_exposure}
    return replace(settings, **{name: cap for name, cap in caps.items() if cap is not None})  # type: ignore[arg-type]  # both floats
