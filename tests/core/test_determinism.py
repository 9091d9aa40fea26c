"""The same seeds give the same bytes: in every process, whatever the hash seed, and whatever was played before."""

from __future__ import annotations

import os
import subprocess
import sys

from ec2_env.envs import DecisionEnv
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode, tasks
from ec2_env.trace import from_json, to_json

STRATEGIES = ("random", "cloud_only", "cloud_only:redacted", "adaptive_assistance", "step_routing", "sketch_guided", "edge_only")
SCRIPT = """
import hashlib, sys
from ec2_env.envs import DecisionEnv
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import load_strategy
from ec2_env.task import tasks
from ec2_env.trace import to_json
names = tasks.names()[::int(sys.argv[1])]
env = DecisionEnv(cloud_settings={"outage_rate": 0.1})
for index, name in enumerate(reversed(names) if sys.argv[2] == "reversed" else names):
    for strategy in sys.argv[3:]:
        key = EpisodeKey(task=name, language=tasks.get(name).languages[-1], split="test", seed=3, trial=1)
        line = to_json(play(env, load_strategy(strategy), key))
        print(name, strategy, len(line), hashlib.sha256(line).hexdigest())
"""


def lines(hash_seed: str, order: str) -> list[str]:
    """Returns the digests that a fresh process finds, sorted."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    stride = str(max(1, len(tasks.names()) // 10))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, stride, order, *STRATEGIES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return sorted(done.stdout.splitlines())


def test_trajectories_are_the_same_bytes_in_every_process_and_order() -> None:
    first = lines("0", "forward")
    assert len(first) >= 7 * 10
    assert first == lines("4242", "reversed")


def test_a_trajectory_does_not_depend_on_what_the_env_played_before() -> None:
    key = EpisodeKey(task="forward_invoice", language="en", split="train", seed=8, trial=0)
    fresh = to_json(play(DecisionEnv(), load_strategy("random"), key))
    used = DecisionEnv()
    for name in tasks.names()[1:4]:
        language = tasks.get(name).languages[0]
        play(used, load_strategy("cloud_only"), EpisodeKey(task=name, language=language, split="train", seed=8, trial=0))
    assert to_json(play(used, load_strategy("random"), key)) == fresh


def test_a_trajectory_survives_writing_and_reading() -> None:
    key = EpisodeKey(task="triage_inbox", language="en", split="test", seed=2, trial=0)
    line = to_json(play(DecisionEnv(), load_strategy("random"), key))
    assert b"\n" not in line
    assert to_json(from_json(line)) == line
    assert from_json(line).result["completion"] == from_json(line).events[-1].completion  # type: ignore[union-attr]  # the end


def test_episodes_are_built_the_same_twice_and_differ_between_seeds_splits_and_languages() -> None:
    for name in tasks.names():
        for language in tasks.get(name).languages:
            first, second = build_episode(name, 9, language), build_episode(name, 9, language)
            assert first.instruction == second.instruction
            assert first.units == second.units
            assert list(first.workspace.tables()) == list(second.workspace.tables())
            for table, rows in first.workspace.tables().items():
                assert list(rows.items()) == list(second.workspace.rows(table).items())
            others = {build_episode(name, seed, language).instruction for seed in range(10)}
            assert len(others) > 1
            assert build_episode(name, 9, language, "test").instruction != first.instruction
