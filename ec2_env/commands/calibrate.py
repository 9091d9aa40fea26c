"""`ec2-env calibrate`: fits the simulated models to the published single-model rows, or to a run of real ones."""

from __future__ import annotations

import argparse
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ec2_env.command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", default="ec2-128", metavar="NAME", help="suite to fit on (default: ec2-128)")
    parser.add_argument("--workers", type=int, default=2, help="models that are fitted at once (default: 2)")
    parser.add_argument("--write", action="store_true", help="write what was fitted into the profile files of the package")
    parser.add_argument(
        "--from", dest="run", type=Path, metavar="RUN", help="fit to the models of this run folder that worked alone instead"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("."), metavar="FOLDER", help="with --from: where the profiles go (default: .)"
    )


def run(arguments: argparse.Namespace) -> int:
    return _own(arguments.run, arguments.out) if arguments.run is not None else _published(arguments)


def _published(arguments: argparse.Namespace) -> int:
    from ec2_env.bench.calibration import calibrate, suite_keys
    from ec2_env.models.profile import FOLDER

    keys = suite_keys(arguments.suite)
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            fits = calibrate(keys, pool)
    else:
        fits = calibrate(keys)
    for fit in fits:
        print(
            f"{fit.name:18} ability {fit.ability:6.3f}  steadiness {fit.steadiness:.2f}  "
            f"completion {_beside(fit.reached.completion, fit.target.completion)}"
            + ("" if fit.target.pass_hat_3 is None else f"  Pass^3 {_beside(fit.reached.pass_hat_3, fit.target.pass_hat_3)}")
        )
        if arguments.write:
            path = FOLDER / f"{fit.name}.toml"
            text = path.read_text("utf-8")
            for name in ("ability", "steadiness"):
                text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {getattr(fit, name)}", text)
            path.write_text(text, "utf-8")
    print(f"{len(keys)} episodes an evaluation: suite {arguments.suite}, as ec2-env bench plays it")
    return 0


def _beside(reached: float, target: float) -> str:
    return f"{100 * reached:4.1f} (published {100 * target:.1f}, error {100 * (reached - target):+.1f})"


def _own(folder: Path, out: Path) -> int:
    from ec2_env.bench.own_runs import fit_run, profile_text

    out.mkdir(parents=True, exist_ok=True)
    for own in fit_run(folder):
        path = out / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', own.profile.name)}.toml"
        path.write_text(profile_text(own), encoding="utf-8")
        print(f"{profile_text(own).splitlines()[0].removeprefix('# ')} Use it as sim:{path}")
    return 0


COMMAND = Command(
    help="fit the simulated models to the published single-model rows, or to your own run", add_arguments=add_arguments, run=run
)
