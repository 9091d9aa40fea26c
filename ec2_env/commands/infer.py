"""`ec2-env infer`: guesses the sensitive values of recorded episodes from what crossed, beside what the audit found."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ec2_env.command import Command
from ec2_env.errors import ConfigurationError

if TYPE_CHECKING:
    from ec2_env.cloud.inference.tally import Guess, Outcome
    from ec2_env.trace import Trajectory


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_DIR", help="folder of a run that kept its trajectories, or one file of them")
    parser.add_argument("--model", metavar="SPEC", help="let this model guess; without, a fixed scorer does")
    parser.add_argument("--window", type=int, default=6000, help="most tokens of sent texts shown to the model (default: 6000)")
    parser.add_argument("--choices", type=int, default=8, help="options of a question, the true one included (default: 8)")
    parser.add_argument("--linkage", action="store_true", help="also ask which of an episode's values belongs to whom")
    parser.add_argument("--limit", type=int, metavar="N", help="stop after N episodes")
    parser.add_argument("--json", action="store_true", help="everything that was found, as JSON")


def _run(arguments: argparse.Namespace) -> int:
    from ec2_env.cloud.inference.asking import Asked
    from ec2_env.cloud.inference.attacker import attack
    from ec2_env.cloud.inference.tally import as_json, check_choices, groups, judge, table
    from ec2_env.models.loading import load_model

    check_choices(arguments.choices)
    for name in ("limit", "window"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise ConfigurationError(f"--{name} is {getattr(arguments, name)}, expected a whole number above 0")
    asked = Asked(load_model(arguments.model), arguments.window) if arguments.model else None
    guess: Guess = asked if asked is not None else attack
    found: dict[str, list[Outcome]] = {}
    for index, trajectory in enumerate(_trajectories(Path(arguments.run))):
        if index == arguments.limit:
            break
        outcomes = judge(trajectory, guess, arguments.choices, linkage=arguments.linkage)
        found.setdefault(_label(trajectory), []).extend(outcomes)
    if not found:
        raise ConfigurationError(f"{arguments.run} holds no episode")
    chance = 1 / arguments.choices
    about = {"choices": arguments.choices, "chance": chance, "attacker": arguments.model or "rules"}
    if asked is not None:
        about |= {"answers": asked.answers, "abstained": asked.abstained}
    if arguments.json:
        strategies = {label: as_json(groups(outcomes)) for label, outcomes in found.items()}
        print(json.dumps({**about, "strategies": strategies}, indent=2, ensure_ascii=False))
        return 0
    print(f"{arguments.choices} options a question: chance {100 * chance:.1f}% (more where a kind has fewer values). All in %.")
    for label, outcomes in found.items():
        print(f"\n{label}", *table(groups(outcomes)), sep="\n")
    if asked is not None:
        print(f"\nAnswers that named no option, counted as chance: {asked.abstained} of {asked.answers}")
    return 0


def _label(trajectory: Trajectory) -> str:
    return f"{trajectory.strategy} ({trajectory.edge or 'no edge'}, {trajectory.cloud or 'no cloud'})"


def _trajectories(path: Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a run, read line by line.

    Raises:
        ConfigurationError: if there are none, or a line is none.
    """
    import msgspec

    from ec2_env import __version__
    from ec2_env.trace import from_json

    file = path / "trajectories.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise ConfigurationError(f"no file {file}; run `ec2-env bench --trajectories`, or name a file of them")
    warned = False
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                trajectory = from_json(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ConfigurationError(f"{file}: line {number} is not a trajectory ({error})") from error
            if trajectory.version != __version__ and not warned:
                warned = True
                print(f"{file}: written by version {trajectory.version}; units are built by {__version__}", file=sys.stderr)
            yield trajectory


COMMAND = Command(
    help="guess sensitive values from what crossed, beside what the audit found", add_arguments=_add_arguments, run=_run
)
