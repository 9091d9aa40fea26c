"""Measures how much memory many environments take in the middle of their episodes.

python benchmarks/memory.py --envs 1000
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

import gymnasium as gym

import ec2_env  # noqa: F401  # registers the environments


def resident_mb() -> float:
    """Returns the resident memory of this process in megabytes: the present one on Linux, the peak elsewhere."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=8)
    chosen = parser.parse_args()
    for env_id, actions in (
        ("EC2/Email-v0", [{"name": "list_mail"}, {"name": "search_mail", "arguments": {"query": "the"}}]),
        ("EC2/EmailDecision-v0", [0, 4, 5, 3]),
    ):
        before = resident_mb()
        live = []
        for seed in range(chosen.envs):
            env = gym.make(env_id, disable_env_checker=True)
            env.reset(seed=seed)
            over = False
            for step in range(chosen.steps):
                if not over:
                    _, _, terminated, truncated, _ = env.step(actions[step % len(actions)])
                    over = terminated or truncated
            live.append(env)
        after = resident_mb()
        print(
            f"{len(live)} live {env_id} after {chosen.steps} steps: {after:.0f} MB resident, {after - before:.0f} MB of it theirs"
        )
        del live


if __name__ == "__main__":
    main()
