"""Measures how long `reset` takes for every task: median, 99th percentile and the slowest tasks.

python benchmarks/reset_latency.py
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import gymnasium as gym

import ec2_env  # noqa: F401  # registers the environments
from ec2_env.task import tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30, help="fresh seeds of each task and language")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: leave out what other programs take")
    chosen = parser.parse_args()
    clock = time.perf_counter if chosen.clock == "wall" else time.process_time
    env = gym.make("EC2/Workspace-v0")
    took: dict[str, list[float]] = {}
    for name in tasks.names():
        for language in tasks.get(name).languages:
            env.reset(seed=0, options={"task": name, "language": language})  # imports the task
            for seed in range(1, chosen.seeds + 1):
                started = clock()
                env.reset(seed=seed, options={"task": name, "language": language})
                took.setdefault(name, []).append((clock() - started) * 1000)
    every = sorted(value for values in took.values() for value in values)
    print(f"{len(took)} tasks, {len(every)} resets: median {median(every):.2f} ms (wanted < 1), ", end="")
    print(f"99th percentile {every[len(every) * 99 // 100]:.2f} ms (wanted < 5)")
    for name in sorted(took, key=lambda name: -median(took[name]))[:10]:
        print(f"  {name:28} median {median(took[name]):.2f} ms, worst {max(took[name]):.2f} ms")


if __name__ == "__main__":
    main()
