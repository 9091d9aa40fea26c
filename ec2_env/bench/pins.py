"""Pins: digests of what each task and each suite renders, so that nothing changes unnoticed.

A task whose episodes change has to raise its `version`, since results with it no longer compare with earlier ones.

    python -m ec2_env.bench.pins            # says what differs
    python -m ec2_env.bench.pins --write    # pins what there is now
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from importlib import resources
from pathlib import Path

import msgspec

from ec2_env.bench.suites import load_suite, rendered, suite_digest, suite_names
from ec2_env.task import build_episode, tasks
from ec2_env.workspace.world import Split

SEEDS = 3
SPLITS: tuple[Split, ...] = ("train", "test")


class Pin(msgspec.Struct, frozen=True):
    """What one task rendered when it was pinned.

    Attributes:
        version: The task's version.
        train: SHA-256 of its first episodes of the train split, in all its languages.
        test: The same of the test split.
    """

    version: int
    train: str
    test: str


class Pins(msgspec.Struct, frozen=True):
    """All pins: tasks by name, and the digest of each suite's episodes, by name."""

    tasks: dict[str, Pin]
    suites: dict[str, str]


def pin_of(name: str) -> Pin:
    """Returns what a task renders now."""
    found = {split: hashlib.sha256() for split in SPLITS}
    for split, digest in found.items():
        for language in tasks.get(name).languages:
            for seed in range(SEEDS):
                digest.update(rendered(build_episode(name, seed, language, split)))
    return Pin(tasks.get(name).version, found["train"].hexdigest(), found["test"].hexdigest())


def pinned() -> Pins:
    """Returns the pins that ship."""
    return msgspec.json.decode(_file().read_bytes(), type=Pins)


def differences() -> list[str]:
    """Returns what differs from the pins, in words, with what to do about it."""
    pins, problems = pinned(), []
    old = pins.tasks
    for name in tasks.modules:
        now, then = pin_of(name), old.get(name)
        if then is None:
            problems.append(f"{name} is not pinned; run: make pins")
        elif then != now and then.version == now.version:
            problems.append(f"{name} renders differently, and its version is still {now.version}: raise it, then run: make pins")
        elif then != now:
            problems.append(f"{name} has version {now.version}, and version {then.version} is pinned; run: make pins")
    for name in suite_names():
        if pins.suites.get(name) != suite_digest(load_suite(name)):
            problems.append(f"suite {name} has other episodes than were pinned; run: make pins")
    return problems + [
        f"{name} is pinned, and there is no such task; run: make pins" for name in sorted(set(old) - set(tasks.modules))
    ]


def _file() -> Path:
    return Path(str(resources.files("ec2_env.bench").joinpath("pins.json")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="pin what there is now, unless a version has to be raised first")
    write = parser.parse_args().write
    found = differences()
    unraised = [problem for problem in found if "raise it" in problem]
    print(*(unraised if write else found), sep="\n", end="\n" if (unraised if write else found) else "")
    if write and not unraised:
        suites = {name: suite_digest(load_suite(name)) for name in suite_names()}
        pins = Pins({name: pin_of(name) for name in sorted(tasks.modules)}, suites)
        _file().write_bytes(msgspec.json.format(msgspec.json.encode(pins), indent=1) + b"\n")
    sys.exit(1 if (unraised if write else found) else 0)


if __name__ == "__main__":
    main()
