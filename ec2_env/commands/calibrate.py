"""`ec2-env calibrate`: fits the simulated abilities to the published single-model rows."""

from __future__ import annotations

import argparse
import re

from ec2_env.command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", default="ec2-128", metavar="NAME", help="suite whose tasks are fitted on (default: ec2-128)")
    parser.add_argument("--seeds", type=int, default=5, help="train seeds of each task and language (default: 5)")
    parser.add_argument("--write", action="store_true", help="write the fitted abilities into the profile files")


def run(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.calibration import calibrate
    from ec2_env.models.profile import FOLDER

    for fit in calibrate(arguments.suite, range(arguments.seeds)):
        error = 100 * (fit.reached - fit.target)
        print(
            f"{fit.name:16} ability {fit.ability:6.3f}   completion {100 * fit.reached:5.1f} "
            f"(published {100 * fit.target:.1f}, error {error:+.1f})   {fit.episodes} train episodes"
        )
        if arguments.write:
            path = FOLDER / f"{fit.name}.toml"
            path.write_text(re.sub(r"(?m)^ability = .*$", f"ability = {fit.ability}", path.read_text("utf-8")), "utf-8")
    return 0


COMMAND = Command(help="fit the simulated models to the published single-model rows", add_arguments=add_arguments, run=run)
