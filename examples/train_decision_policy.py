"""Trains SmolLM2 to decide when its agent should ask the cloud, and plays one episode with it.

Takes two to five minutes on two CPU cores. That shows every step of the recipe and not yet a good policy: `--minutes 30` is what
the recipe is made for.

Needs `pip install 'ec2-env[local,train]'` and, once, `ec2-env models pull smollm2`.

    python examples/train_decision_policy.py --minutes 2 --out out/decision_policy
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.envs import DecisionEnv
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import load_strategy
from ec2_env.training.quick import Plan, scaled, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0, help="scales the amount of training; 30 is the whole recipe")
    parser.add_argument("--out", type=Path, default=Path("out/decision_policy"))
    arguments = parser.parse_args()

    plan = Plan(settings={"domain": "email"}, bound=False)
    train(arguments.out, seed=0, plan=scaled(plan, arguments.minutes / 30))

    key = EpisodeKey(task="forward_invoice", language="en", split="test", seed=0, trial=0)
    trajectory = play(DecisionEnv(domain="email"), load_strategy(f"learned:{arguments.out}"), key)
    result = trajectory.result
    print({name: result[name] for name in ("status", "completion", "privacy", "cloud_calls", "cloud_usd")})


if __name__ == "__main__":
    main()
