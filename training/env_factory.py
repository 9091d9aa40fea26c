"""`WorkspaceEnv` for TRL: a class whose public methods are the tools, as `GRPOTrainer(environment_factory=...)` wants it.

TRL makes a tool of every public method except `reset` and `get_reward`, so the class has no others; signature, types and text of
each come from the tool itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from ec2_env.actions import Finish, Mode, Share, ToolCall
from ec2_env.envs import WorkspaceEnv
from ec2_env.errors import ConfigurationError
from ec2_env.models.draws import uniform
from ec2_env.prompts import AGENT
from ec2_env.registry import require
from ec2_env.task import build_episode, tasks, toolbox
from ec2_env.workspace.tools import Tool

ROW = ("task", "language", "split", "seed")
"""Columns of a dataset row that choose its episode."""
ENDED = "The episode has ended; no more calls are possible."


def make_environment_class(env_id: str, **settings: Any) -> type:
    """Returns a class for `environment_factory`. Its instances start an episode per dataset row of `make_dataset`.

    Args:
        env_id: A `WorkspaceEnv` id, such as "EC2/ForwardInvoice-v0" or "EC2/Email-v0".
        settings: Further arguments of the env, such as `cloud` or `weights`.

    Raises:
        ConfigurationError: if the id is no `WorkspaceEnv`.
    """
    env = workspace_env(env_id, settings)
    names = env.names

    class Environment:
        """One episode at a time; methods are the tools of the workspace."""

        def __init__(self) -> None:
            self._env = workspace_env(env_id, settings)
            self._return = 0.0
            self._over = True

        def reset(self, **row: Any) -> str | None:
            """Starts the episode of a dataset row; returns the instruction if the row's prompt does not hold it."""
            check_row(row, names)
            _, info = self._env.reset(seed=0, options={name: row[name] for name in ROW})
            self._return, self._over = 0.0, False
            instruction = str(info["messages"][-1]["content"])
            if not row.get("prompt"):
                return instruction
            if row["prompt"][-1]["content"].startswith(instruction):
                return None
            raise ConfigurationError(
                f"the prompt of {row['task']} (seed {row['seed']}) is not its instruction; make a new dataset"
            )

        def get_reward(self) -> float:
            """Returns the sum of rewards; work that was not finished is graded as it stands."""
            if not self._over:
                self._take(Finish())
            return self._return

        def invoke_cloud(self, request: str, mode: Mode, share: Share, redact: bool = False) -> str:
            """Asks a stronger model in the cloud. It costs money, and whatever is shared leaves this machine.

            Args:
                request: What to ask.
                mode: plan: a short plan; advise: what to do next; act: the cloud takes the next step itself.
                share: How much crosses: only the request, the instruction too, or the whole transcript.
                redact: Whether to replace sensitive values by placeholders first.

            Returns:
                What the cloud said, or the result of the step that it took.
            """
            given = {"request": request, "mode": mode, "share": share, "redact": redact}
            return self._take({"name": "invoke_cloud", "arguments": given})

        def finish(self, answer: str, data: dict | None = None) -> str:  # type: ignore[type-arg]  # the schema maker takes no parameters
            """Ends the work.

            Args:
                answer: What to tell the user.
                data: The facts asked for, by key.

            Returns:
                A confirmation.
            """
            return self._take({"name": "finish", "arguments": {"answer": answer, "data": data}})

        def _take(self, action: ToolCall | Finish | dict[str, Any]) -> str:
            if self._over:
                return ENDED
            observation, reward, terminated, truncated, _ = self._env.step(action)
            self._return += float(reward)
            self._over = terminated or truncated
            return str(observation["result"])

    tools = toolbox(tuple(dict.fromkeys(app for name in names for app in tasks.get(name).apps))).tools
    for name, tool in tools.items():
        setattr(Environment, name, method(name, documented(tool), tool.parameters, tool.hints))
    Environment.__name__ = Environment.__qualname__ = env_id.removeprefix("EC2/").removesuffix("-v0")
    return Environment


def method(name: str, text: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> Callable[..., str]:
    """Returns a method that makes the call `name` on the env, with the signature and docstring of the tool."""

    def call(self: Any, *values: Any, **arguments: Any) -> str:
        given = {**dict(zip(parameters, values, strict=False)), **arguments}
        return str(self._take({"name": name, "arguments": given}))

    plain = [parameter.replace(annotation=hints[key]) for key, parameter in parameters.items()]
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    call.__signature__ = inspect.Signature([this, *plain], return_annotation=str)  # type: ignore[attr-defined]  # read by inspect
    call.__annotations__ = {**{key: hints[key] for key in parameters}, "return": str}
    call.__name__ = call.__qualname__ = name
    call.__doc__ = text
    return call


def documented(tool: Tool) -> str:
    """Returns the tool's docstring in Google form, without the workspace and with what it returns."""
    description, described = tool.documentation
    lines = [f"    {name}: {described.get(name) or name}" for name in tool.parameters]
    arguments = "\n\nArgs:\n" + "\n".join(lines) if lines else ""
    return f"{description}{arguments}\n\nReturns:\n    The result as JSON, or what was wrong with the call."


def make_dataset(env_id: str, count: int, *, seed: int = 0, split: str = "train", language: str | None = None) -> Any:
    """Returns a `datasets.Dataset` of episodes, the same for the same arguments.

    Columns: `prompt` (system message and instruction), `env_id`, `task`, `language`, `split`, `seed`.

    Args:
        env_id: A `WorkspaceEnv` id.
        count: Number of rows; tasks take turns.
        seed: Fixes the instances.
        split: "train" or "test".
        language: "en", "zh", or None for both in turn.

    Raises:
        ConfigurationError: if the id is no `WorkspaceEnv`, or an argument cannot be used.
        MissingExtra: if datasets is not installed.
    """
    datasets = require("datasets", extra="train")
    if count < 1:
        raise ConfigurationError(f"count is {count!r}, expected a whole number above 0")
    names = workspace_env(env_id, {"split": split, "language": language}).names
    rows = [dataset_row(env_id, names[n % len(names)], n // len(names), seed, split, language) for n in range(count)]
    check_rows(rows, names)
    return datasets.Dataset.from_list(rows)


def dataset_row(env_id: str, task: str, turn: int, seed: int, split: str, language: str | None) -> dict[str, Any]:
    """Returns the row of a task's `turn`-th episode."""
    languages = tasks.get(task).languages
    chosen = language or languages[turn % len(languages)]
    number = int(uniform("dataset", seed, task, turn) * 2**31)
    episode = build_episode(task, number, chosen, split)  # type: ignore[arg-type]  # checked inside
    messages = [{"role": "system", "content": AGENT}, {"role": "user", "content": episode.instruction}]
    return {"prompt": messages, "env_id": env_id, "task": task, "language": chosen, "split": split, "seed": number}


def check_rows(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> None:
    """Checks all rows of a dataset before anything is trained on it.

    Raises:
        ConfigurationError: for the first row that does not choose an episode of these tasks; says which and why.
    """
    known = tuple(names)
    for number, row in enumerate(rows):
        try:
            check_row(row, known)
        except ConfigurationError as error:
            raise ConfigurationError(f"row {number}: {error}") from error


def check_row(row: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Checks that a row chooses an episode of one of the tasks.

    Raises:
        ConfigurationError: if it does not.
    """
    missing = [name for name in ROW if name not in row]
    if missing:
        raise ConfigurationError(f"the column {missing[0]!r} is missing; expected {', '.join(ROW)}")
    if row["task"] not in names:
        raise ConfigurationError(f"the env has no task {row['task']!r}; expected one of {', '.join(names)}")
    if row["language"] not in tasks.get(row["task"]).languages:
        raise ConfigurationError(f"{row['task']} has no language {row['language']!r}")
    if row["split"] not in ("train", "test"):
        raise ConfigurationError(f"split is {row['split']!r}, expected 'train' or 'test'")
    if isinstance(row["seed"], bool) or not isinstance(row["seed"], int):
        raise ConfigurationError(f"seed is {row['seed']!r}, expected a whole number")


def workspace_env(env_id: str, settings: Mapping[str, Any]) -> WorkspaceEnv:
    """Returns the env behind an id.

    Raises:
        ConfigurationError: if it is no `WorkspaceEnv`.
    """
    spec = gym.spec(env_id)
    if spec.entry_point is None:
        raise ConfigurationError(f"{env_id} is registered without a class")
    creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
    env = creator(**{**spec.kwargs, **settings})  # not by gym.make, which keeps `max_episode_steps` for a wrapper of its own
    if not isinstance(env, WorkspaceEnv):
        raise ConfigurationError(f"{env_id} is a {type(env).__name__}; expected the id of a WorkspaceEnv, such as EC2/Email-v0")
    return env
