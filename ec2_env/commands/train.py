"""`ec2-env train`: trains a policy to decide about the cloud: a small language model, or one on features."""

from __future__ import annotations

import argparse
from pathlib import Path

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError
from ec2_env.training.methods import FEATURES, METHODS, method


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  ec2-env train --quick --out out/quick\n"
        "  ec2-env train --method ppo --out out/ppo\n"
        "  ec2-env train --method ppo --seeds 5 --workers 5 --out out/ppo5\n"
        "  ec2-env train --method ppo --budget-cost 0.2 --budget-exposure 0.1 --out out/budget"
    )
    parser.add_argument("--quick", action="store_true", help="SmolLM2 on the mail tasks, with simulated models, on two CPU cores")
    parser.add_argument(
        "--method",
        choices=tuple(METHODS),
        help="; ".join(f"{name}: {one.about}" for name, one in METHODS.items()),
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the policy goes (out/METHOD)")
    parser.add_argument("--seed", type=int, default=0, help="fixes data, training and their order (%(default)s)")
    parser.add_argument(
        "--minutes",
        type=float,
        help="scales the amount of training; the clock itself decides nothing (what the method is made for: 15; 2 on features)",
    )
    features = parser.add_argument_group("policies on features")
    features.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="train with so many seeds, from --seed on (%(default)s)"
    )
    features.add_argument("--workers", type=int, default=1, metavar="N", help="seeds trained at a time (%(default)s)")
    features.add_argument("--domain", metavar="NAME", help="task folder (default: all)")
    features.add_argument("--edge", default="sim:qwen3.5-9b", metavar="MODEL", help="edge model (%(default)s)")
    features.add_argument("--cloud", default="sim:gpt-5.4", metavar="MODEL", help="cloud model (%(default)s)")
    features.add_argument("--test-seeds", type=int, default=2, metavar="N", help="test instances of each task (%(default)s)")
    features.add_argument("--budget-cost", type=float, metavar="B", help="train to a mean cost of at most B, cloud-only being 1")
    features.add_argument("--budget-exposure", type=float, metavar="E", help="train to a mean exposure of at most E, 0 to 1")


def _run(arguments: argparse.Namespace) -> int:
    name = "quick" if arguments.quick else arguments.method
    if name is None:
        raise ConfigurationError(f"say what to train: ec2-env train --quick, or --method {', '.join(METHODS)}")
    if arguments.quick and arguments.method not in (None, "quick"):
        raise ConfigurationError(f"--quick trains a language model; leave it out with --method {arguments.method}")
    chosen = method(name)
    minutes = chosen.minutes if arguments.minutes is None else arguments.minutes
    if not 0.01 <= minutes <= 600:
        raise ConfigurationError(f"--minutes is {minutes:g}, expected 0.01 to 600")
    if not 0 <= arguments.seed < 10**6:
        raise ConfigurationError(f"--seed is {arguments.seed}, expected 0 to 999999")
    out = arguments.out or Path("out") / name
    if chosen.module == FEATURES:
        return _on_features(arguments, name, out, minutes)
    module = chosen.load()
    module.train(out, arguments.seed, module.scaled(module.Plan(**chosen.given), minutes / chosen.minutes))
    return 0


def _on_features(arguments: argparse.Namespace, method: str, out: Path, minutes: float) -> int:
    for name in ("seeds", "workers", "test_seeds"):
        if not 1 <= getattr(arguments, name) <= 100:
            raise ConfigurationError(f"--{name.replace('_', '-')} is {getattr(arguments, name)}, expected 1 to 100")
    from ec2_env.training.feature_training import sized, train
    from ec2_env.training.lagrangian import Budget

    limits = {"cost": arguments.budget_cost, "exposure": arguments.budget_exposure}
    budget = Budget(**limits) if any(limit is not None for limit in limits.values()) else None
    settings = {"domain": arguments.domain, "edge": arguments.edge, "cloud": arguments.cloud}
    plan = sized({"method": method, "settings": settings, "test_seeds": arguments.test_seeds, "budget": budget}, minutes)
    train(out, range(arguments.seed, arguments.seed + arguments.seeds), plan, arguments.workers)
    print(f"saved in {out}; try: ec2-env bench --strategy learned:{out if arguments.seeds == 1 else out / 'seed0'}")
    return 0


COMMAND = Command(help="Train a policy to decide about the cloud", add_arguments=_add_arguments, run=_run)
