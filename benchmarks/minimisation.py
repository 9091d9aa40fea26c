"""Measures minimisation: what sharing only the relevant part of the transcript does to the work, to privacy and to the bill.

python benchmarks/minimisation.py
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import Any

from ec2_env.bench.suites import load_suite
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.relevance import parsed, relevant, terms_of
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import Message
from ec2_env.rollout import EpisodeKey, play
from ec2_env.session import Session
from ec2_env.strategy import load_strategy
from ec2_env.task import build_episode
from ec2_env.testing import play as solve

STRATEGIES = ("cloud_only", "step_routing", "adaptive_assistance")
OPTIONS = ("", ":relevant", ":redacted", ":relevant,redacted")
COLUMNS = (
    "completion, %",
    "± 95%",
    "privacy, %",
    "needless exposure, %",
    "cloud calls",
    "tokens raw",
    "cached",
    "out",
    "USD",
    "steps",
)


def results(strategy: str, keys: Sequence[EpisodeKey]) -> list[dict[str, Any]]:
    """Returns the result of every episode, played with the default models."""
    env, policy = DecisionEnv(), load_strategy(strategy)
    return [play(env, policy, key).result for key in keys]


def row(found: Sequence[dict[str, Any]], trials: int) -> list[str]:
    """Returns the cells of one strategy. The interval is over tasks; tasks without sensitive values say nothing about privacy."""
    tasks = [mean(one["completion"] for one in found[i : i + trials]) for i in range(0, len(found), trials)]
    private = [one for one in found if one["units"]]
    return [
        f"{100 * mean(tasks):.1f}",
        f"{196 * stdev(tasks) / math.sqrt(len(tasks)):.1f}",
        f"{100 * mean(one['privacy'] for one in private):.1f}",
        f"{100 * mean(one['excess_exposure'] for one in private):.1f}",
        f"{mean(one['cloud_calls'] for one in found):.1f}",
        *(f"{mean(one[name] for one in found):,.0f}" for name in ("tokens_raw", "tokens_cached", "tokens_out")),
        f"{mean(one['cloud_usd'] for one in found):.4f}",
        f"{mean(one['steps'] for one in found):.1f}",
    ]


def transcripts(pairs: Sequence[tuple[str, str]]) -> Iterator[list[Message]]:
    """Yields the transcript of each task's own solution."""
    for task, language in pairs:
        episode = build_episode(task, 0, language, "test")  # type: ignore[arg-type]  # "en" or "zh"
        session = Session(episode, cloud=None, settings=CloudSettings())
        for action in solve(episode).actions[:-1]:
            session.call(action, "edge")
        yield session.messages[1:]


def times(pairs: Sequence[tuple[str, str]]) -> str:
    """Says how long the rule takes: asked after every step, when only the last result is new, and once for a whole transcript."""
    after_each, at_once, sizes = [], [], []
    for messages in transcripts(pairs):
        ends = range(3, len(messages) + 1, 2)
        for steps, seconds in ((ends, after_each), (ends[-1:], at_once)):
            terms_of.cache_clear()
            parsed.cache_clear()
            for end in steps:
                begun = time.process_time()
                relevant(messages[:end])
                seconds.append(time.process_time() - begun)
        sizes.append(sum(len(str(message["content"])) for message in messages))
    return (
        f"Time of the rule: {1e3 * mean(after_each):.2f} ms after a step (longest {1e3 * max(after_each):.2f}), "
        f"{1e3 * mean(at_once):.2f} ms for a whole transcript that it has not seen (longest {1e3 * max(at_once):.2f}); "
        f"{mean(sizes):,.0f} characters on average, {max(sizes):,} at most."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3, help="episodes of each task")
    parser.add_argument("--every", type=int, default=1, help="play only every so many tasks of the suite")
    chosen = parser.parse_args()
    pairs = list(load_suite("ec2-128").pairs())[:: chosen.every]
    keys = [
        EpisodeKey(task=task, language=language, split="test", seed=0, trial=trial)
        for task, language in pairs
        for trial in range(chosen.trials)
    ]
    print(times(pairs))
    print(f"\n| {len(keys)} episodes each | {' | '.join(COLUMNS)} |")
    print("| --- |" + " ---: |" * len(COLUMNS))
    for strategy in STRATEGIES:
        for options in OPTIONS:
            print(f"| {strategy}{options} | {' | '.join(row(results(strategy + options, keys), chosen.trials))} |", flush=True)


if __name__ == "__main__":
    main()
