"""Throws random and hostile actions at an environment: nothing may raise, hang or leave the observation space.

python benchmarks/hostile.py --actions 100000
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium as gym

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.actions import Finish, InvokeCloud, ToolCall, plain, shallow
from ec2_env.task import tasks, toolbox

SLOW_S = 2.0
"""A single step that takes longer counts as a hang."""

TEXTS = (
    "",
    " ",
    "\x00",
    "\x1b[2J",
    "\ud800",
    "a\udfffb",
    "\u202e\u200b",
    "𝟙𝟚𝟛",
    "١٢",
    "²",
    "ı",
    "ß" * 50,
    "x" * 30_000,
    "中" * 25_000,
    "9" * 5_000,
    "-0",
    "1e999",
    "NaN",
    "null",
    "{}",
    "[" * 5_000,
    '{"a":' * 200,
    "'; DROP TABLE mail; --",
    "<script>alert(1)</script>",
    "{0.__class__}",
    "%s%n",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "..\\..\\b",
    "C:\\x",
    "~/x",
    "a//b",
    "a/./b",
    "con\x00.md",
    "@",
    "a@b",
    "a@b@c.de",
    "me@office.example",
    "ME@OFFICE.EXAMPLE ",
    "mail-1000",
    "mail-99999",
    "0000-00-00",
    "9999-12-31",
    "9999-12-31 23:59",
    "0001-01-01",
    "2026-02-30",
    "２０２６-01-01",
    "2026-01-01 25:00",
    "[PHONE_001]",
    "[AMOUNT_001] [LITERAL_001]",
    'Advice from the cloud: {"name":"finish"}',
    "Plan from the cloud:",
)
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 10**5000, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"),
    True, False, 1j,
)  # fmt: skip


class Rude:
    """An object whose every question is answered by an error."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]  # on purpose

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class RudeMapping(Mapping[str, Any]):
    """A mapping that fails or never ends."""

    def __init__(self, endless: bool) -> None:
        self.endless = endless

    def __getitem__(self, key: str) -> Any:
        if not self.endless:
            raise OSError(key)
        return "send_mail" if key == "name" else self if key == "arguments" else key

    def __iter__(self) -> Iterator[str]:
        number = 0
        while self.endless:
            number += 1
            yield str(number)
        raise OSError("iter")

    def __len__(self) -> int:
        return -1


class OddText(str):
    """A text of a foreign class."""

    def __len__(self) -> int:
        raise RuntimeError("len")

    def strip(self, *arguments: Any) -> str:
        raise RuntimeError("strip")


def endless(width: int) -> list[Any]:
    """Returns a list that holds itself several times."""
    found: list[Any] = []
    found += [found] * width
    return found


def ring() -> dict[str, Any]:
    """Returns a mapping that holds itself."""
    found: dict[str, Any] = {"name": "finish"}
    found["arguments"] = found
    found["data"] = found
    return found


def bomb(levels: int = 12, width: int = 20) -> list[Any]:
    """Returns a small structure that unfolds to width ** levels values."""
    found: list[Any] = ["ha"]
    for _ in range(levels):
        found = [found] * width
    return found


def deep(depth: int) -> Any:
    """Returns a list nested so deep that recursion fails on it."""
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


ODD: tuple[Callable[[], Any], ...] = (
    lambda: None,
    object,
    Rude,
    lambda: RudeMapping(False),
    lambda: RudeMapping(True),
    lambda: endless(1),
    lambda: endless(10),
    ring,
    bomb,
    lambda: deep(19),
    lambda: deep(100),
    lambda: deep(50_000),
    lambda: {1: 2},
    lambda: {None: "x"},
    lambda: {"\ud800": "\udc00"},
    lambda: {("a",): 1},
    lambda: {1, 2},
    lambda: (x for x in range(3)),
    lambda: ["x"] * 100_000,
    lambda: [["y"] * 300] * 300,
    lambda: {str(i): i for i in range(5_000)},
    lambda: b"\xff\xfe",
    lambda: bytearray(b"{}"),
    lambda: memoryview(b"{}"),
    lambda: OddText("finish"),
    lambda: MappingProxyType({"name": "finish", "arguments": {}}),
    lambda: {"function": {"name": "list_mail", "arguments": "{}"}},
    lambda: {"function": {"function": {}}},
    lambda: Finish,
    lambda: print,
    lambda: range(10**9),
)


def value(rng: random.Random, seen: list[str], depth: int = 0) -> Any:
    """Returns any value, more often a plausible one the deeper it goes."""
    draw = rng.random()
    if draw < 0.35:
        return rng.choice(TEXTS)
    if draw < 0.6 and seen:
        return rng.choice(seen)
    if draw < 0.75:
        return rng.choice(NUMBERS)
    if draw < 0.85 or depth > 3:
        return rng.choice(ODD)()
    if draw < 0.93:
        return [value(rng, seen, depth + 1) for _ in range(rng.randrange(0, 4))]
    return {rng.choice(TEXTS): value(rng, seen, depth + 1) for _ in range(rng.randrange(0, 4))}


def action(rng: random.Random, tools: Mapping[str, Any], seen: list[str], slots: list[str]) -> Any:
    """Returns one action: rubbish, a call with rubbish in it, or something that is almost right."""
    draw = rng.random()
    if draw < 0.08:
        return rng.choice(ODD)()
    if draw < 0.14:
        return value(rng, seen)
    name: Any = rng.choice([*tools, *["invoke_cloud"] * 5, "finish"])
    arguments = _arguments(rng, name, tools, seen, slots)
    if rng.random() < 0.05:
        arguments = value(rng, seen)
    if rng.random() < 0.05:
        return {"name": value(rng, seen), "arguments": arguments}
    return _wrapped(rng, name, arguments)


def _arguments(rng: random.Random, name: str, tools: Mapping[str, Any], seen: list[str], slots: list[str]) -> Any:
    if name == "finish":
        return {"answer": value(rng, seen), "data": {slot: value(rng, seen) for slot in slots}}
    if name == "invoke_cloud":
        found = {
            "request": value(rng, seen),
            "mode": rng.choice(("plan", "advise", "act")),
            "share": rng.choice(("request", "instruction", "transcript")),
            "redact": rng.random() < 0.5,
        }
        if rng.random() < 0.2:
            found[rng.choice(list(found))] = value(rng, seen)
        return found
    known = tools[name].parameters
    found = {parameter: value(rng, seen) for parameter in known if rng.random() < 0.9}
    if rng.random() < 0.3:
        found = {k: [v] if k in ("to", "cc", "emails", "attendees", "attachments") else v for k, v in found.items()}
    return found


def _wrapped(rng: random.Random, name: str, arguments: Any) -> Any:
    """Returns a call in one of the forms in which calls come."""
    form = rng.randrange(6)
    if form == 0:
        return ToolCall(name, arguments)
    if form == 1 and name == "invoke_cloud" and type(arguments) is dict:
        return InvokeCloud(**{k: v for k, v in arguments.items() if k in ("request", "mode", "share", "redact")})
    if form == 1 and name == "finish" and isinstance(arguments, dict):
        return Finish(answer=arguments.get("answer"), data=arguments.get("data"))  # type: ignore[arg-type]  # on purpose
    if form in (2, 3):
        if not shallow(arguments):
            return {"name": name, "arguments": arguments}
        text = json.dumps({"name": name, "arguments": plain(arguments)})
        if form == 3:
            return text.encode(rng.choice(("utf-8", "utf-16", "utf-32")), "surrogatepass")
        cut = rng.randrange(len(text)) if rng.random() < 0.1 else len(text)
        return text[:cut]
    return {"name": name, "arguments": arguments}


def attack(env: gym.Env[Any, Any], count: int, seed: int) -> dict[str, float]:
    """Makes `count` hostile steps, starting new episodes as they end.

    Returns:
        Numbers of steps, episodes and accepted calls, and the slowest step in seconds.

    Raises:
        AssertionError: if an observation leaves the space or a step takes longer than `SLOW_S`.
    """
    rng = random.Random(seed)
    ended, episodes, accepted, slowest = True, 0, 0, 0.0
    tools: Mapping[str, Any] = {}
    slots: list[str] = []
    seen: list[str] = []
    for number in range(count):
        if ended:
            env.reset(seed=seed * 1_000_003 + number)
            episode = env.unwrapped.episode  # type: ignore[attr-defined]  # both envs have one
            tools, slots = toolbox(episode.task.apps).tools, [slot.key for slot in episode.report]
            seen = [
                *tasks.get(episode.name).apps,
                *(row for table in ("mail", "file", "event", "contact") for row in episode.workspace.rows(table)),
            ]
            ended, episodes = False, episodes + 1
        given = action(rng, tools, seen, slots)
        before = time.perf_counter()
        observation, _, terminated, truncated, info = env.step(given)
        slowest = max(slowest, time.perf_counter() - before)
        assert observation in env.observation_space, f"step {number}: the observation is outside its space"
        assert slowest < SLOW_S, f"step {number} took {slowest:.1f} s"
        accepted += '"error"' not in observation["result"][:12]
        ended = terminated or truncated
        if ended:
            json.dumps(info["result"]).encode()
    return {"steps": count, "episodes": episodes, "accepted": accepted, "slowest_s": slowest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    env = gym.make("EC2/Workspace-v0", disable_env_checker=True)
    started = time.perf_counter()
    found = attack(env, chosen.actions, chosen.seed)
    print(f"{found} in {time.perf_counter() - started:.0f} s; no exception, no hang, every observation in its space")


if __name__ == "__main__":
    main()
