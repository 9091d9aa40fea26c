"""Measures how fast the environments are, through `gym.make`, in one process.

python benchmarks/speed.py
python benchmarks/speed.py --profile tools
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import pstats
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.task import tasks

clock = time.perf_counter
"""Which time counts; `--clock cpu` leaves out what other programs of a busy machine take."""
Measure = Callable[[float], tuple[int, float]]
"""Works for about so many seconds; returns how many things were done and in how many seconds."""


def timed(seconds: float, work: Callable[[], int]) -> tuple[int, float]:
    """Repeats `work` (which returns how much it did) for about `seconds`."""
    done, started = 0, clock()
    while (passed := clock() - started) < seconds:
        done += work()
    return done, passed


def tools(seconds: float) -> tuple[int, float]:
    """Tool calls in running episodes: lists, searches, single records and writes."""
    env = gym.make("EC2/ForwardInvoice-v0", language="en", max_episode_steps=10_000)
    env.reset(seed=0)
    workspace = env.unwrapped.episode.workspace  # type: ignore[attr-defined]  # both envs have an episode
    mails, files, people = (list(workspace.rows(table)) for table in ("mail", "file", "contact"))
    calls = [
        {"name": "list_mail", "arguments": {}},
        {"name": "search_mail", "arguments": {"query": "invoice"}},
        *({"name": "read_mail", "arguments": {"mail_id": mail}} for mail in mails[:4]),
        {"name": "list_files", "arguments": {}},
        *({"name": "read_file", "arguments": {"path": path}} for path in files[:2]),
        *({"name": "get_contact", "arguments": {"contact_id": person}} for person in people[:3]),
        {"name": "search_contacts", "arguments": {"query": "office"}},
        {"name": "label_mail", "arguments": {"mail_id": mails[0], "label": "urgent"}},
        {"name": "draft_mail", "arguments": {"to": ["a@office.example"], "subject": "x", "body": "y"}},
        {"name": "write_file", "arguments": {"path": "notes/a.md", "content": "text"}},
    ]

    def episode() -> int:
        env.reset(seed=0, options={"seed": 0})
        for _ in range(2):
            for call in calls:
                env.step(call)
        return 2 * len(calls)

    started = clock()
    for _ in range(20):
        env.reset(seed=0, options={"seed": 0})
    reset_s = (clock() - started) / 20
    done, passed = timed(seconds, episode)
    return done, passed - reset_s * done / (2 * len(calls))


def resets(env_id: str) -> Measure:
    """Resets with fresh seeds."""

    def measure(seconds: float) -> tuple[int, float]:
        env = gym.make(env_id)
        env.reset(seed=0)

        def once() -> int:
            env.reset()
            return 1

        for _ in range(100):  # each task's price is worked out once
            once()
        return timed(seconds, once)

    return measure


def oracle(seconds: float) -> tuple[int, float]:
    """Whole episodes, solved by the tasks' own solutions and graded."""
    env = gym.make("EC2/Workspace-v0")
    env.reset(seed=0)
    for name in tasks.names():
        env.reset(options={"task": name})

    def episode() -> int:
        env.reset()
        running = env.unwrapped.episode.solve()  # type: ignore[attr-defined]  # both envs have an episode
        session = env.unwrapped.session  # type: ignore[attr-defined]  # as above
        step, over = next(running), False
        while not over:
            _, _, over, _, info = env.step(step.action)
            if not over:
                step = running.send(session.records[-1].value)
        assert info["result"]["completion"] == 1.0
        return 1

    return timed(seconds, episode)


def decisions(choose: Callable[[random.Random], int], group: int = 1) -> Measure:
    """Steps of `DecisionEnv`, observation, prompt and resets included; each seed is played `group` times, as in group-relative
    training, where what has been audited and counted once is known.
    """

    def measure(seconds: float) -> tuple[int, float]:
        env = gym.make("EC2/EmailDecision-v0")
        rng = random.Random(0)
        env.reset(seed=0)
        for name in env.unwrapped.names:  # type: ignore[attr-defined]  # an EpisodeEnv
            env.reset(options={"task": name})

        played = 0

        def episode() -> int:
            nonlocal played
            env.reset(seed=1_000 + played // group)
            played += 1
            steps, over = 0, False
            while not over:
                _, _, terminated, truncated, _ = env.step(choose(rng))
                steps, over = steps + 1, terminated or truncated
            return steps

        return timed(seconds, episode)

    return measure


def copies(env_id: str, action: Any) -> Measure:
    """Deep copies of the unwrapped env in the middle of an episode."""

    def measure(seconds: float) -> tuple[int, float]:
        env = gym.make(env_id, disable_env_checker=True)
        env.reset(seed=1)
        for _ in range(6):
            env.step(action)
        inner = env.unwrapped

        def once() -> int:
            copy.deepcopy(inner)
            return 1

        return timed(seconds, once)

    return measure


def cartpole(seconds: float) -> tuple[int, float]:
    """Steps of CartPole, for comparison across machines."""
    env = gym.make("CartPole-v1")
    env.reset(seed=0)

    def episode() -> int:
        env.reset()
        steps, over = 0, False
        while not over:
            _, _, terminated, truncated, _ = env.step(steps % 2)
            steps, over = steps + 1, terminated or truncated
        return steps

    return timed(seconds, episode)


MEASURES: dict[str, tuple[str, Measure]] = {
    "cartpole": ("CartPole steps", cartpole),
    "tools": ("WorkspaceEnv tool calls", tools),
    "resets": ("WorkspaceEnv resets, fresh seeds", resets("EC2/Workspace-v0")),
    "decision_resets": ("DecisionEnv resets, fresh seeds", resets("EC2/EmailDecision-v0")),
    "oracle": ("solved and graded episodes", oracle),
    "decision_edge": ("DecisionEnv steps, edge only", decisions(lambda rng: 0)),
    "decision_act": ("DecisionEnv steps, cloud acts", decisions(lambda rng: 4)),
    "decision_redacted": ("DecisionEnv steps, cloud acts, redacted", decisions(lambda rng: 5)),
    "decision_random": ("DecisionEnv steps, random decisions", decisions(lambda rng: rng.randrange(6))),
    "decision_group": ("DecisionEnv steps, random decisions, 8 a seed", decisions(lambda rng: rng.randrange(6), group=8)),
    "copy_workspace": ("deep copies of WorkspaceEnv", copies("EC2/Email-v0", {"name": "list_mail"})),
    "copy_decision": ("deep copies of DecisionEnv", copies("EC2/EmailDecision-v0", 3)),
}


def import_s() -> float:
    """Returns how long `import ec2_env` takes in a fresh process, in seconds, best of three."""
    code = "import time; t = time.perf_counter(); import ec2_env; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(3)]
    return min(map(float, runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    parser.add_argument("--only", choices=MEASURES, nargs="*", help="measure only these")
    parser.add_argument("--profile", choices=MEASURES, help="show where the time of one measurement goes")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    chosen = parser.parse_args()
    globals()["clock"] = time.process_time if chosen.clock == "cpu" else time.perf_counter
    if chosen.profile:
        MEASURES[chosen.profile][1](0.2)  # loads vocabularies and prices
        profiler = cProfile.Profile()
        profiler.runcall(MEASURES[chosen.profile][1], chosen.seconds)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        return
    rate_of_cartpole = 0.0
    for name in chosen.only or MEASURES:
        title, measure = MEASURES[name]
        done, passed = measure(chosen.seconds)
        rate_of_cartpole = done / passed if name == "cartpole" else rate_of_cartpole
        ratio = f"  {done / passed / rate_of_cartpole:7.3f} of CartPole" if rate_of_cartpole else ""
        print(f"{title:42} {done / passed:10,.0f} /s  {passed / done * 1e6:9.1f} us each{ratio}", flush=True)
    if not chosen.only:
        print(f"{'import ec2_env':42} {import_s():10.3f} s")


if __name__ == "__main__":
    main()
