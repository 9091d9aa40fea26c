"""Measures the graders: what right, idle, random and greedy agents score, and which wrong solutions pass.

python benchmarks/graders.py --tasks 12 --seeds 200
python benchmarks/graders.py --seeds 5              # every task
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from statistics import fmean

from ec2_env.task import build_episode, tasks
from ec2_env.testing import do_nothing, dump_everything, mutants, play, random_calls

MEAN_LIMIT = 0.05
"""Mean completion that an agent which does not do the work may reach over all tasks."""
WORST_LIMIT = 0.2
"""Completion that it may reach in any single episode."""
AGENTS = {
    "idle": do_nothing,
    "random": random_calls,
    "dump": lambda episode: dump_everything(episode, as_list=False),
    "dump lists": lambda episode: dump_everything(episode, as_list=True),
}


def chosen_names(count: int | None) -> list[str]:
    """Returns `count` task names spread evenly over the sorted ones, or all."""
    names = list(tasks.names())
    return names if count is None or count >= len(names) else [names[i * len(names) // count] for i in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, help="how many tasks, spread over all; all if not given")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--mutant-seeds", type=int, default=3, help="seeds for which every wrong solution is played as well")
    chosen = parser.parse_args()
    names = chosen_names(chosen.tasks)
    scores: dict[str, list[float]] = defaultdict(list)
    survivors: list[str] = []
    caught = total = 0
    print(f"{'task':28} {'solved':>11} {'idle':>11} {'random':>11} {'dump':>11} {'dump lists':>11} {'caught':>11}   (mean/worst)")
    for name in names:
        own: dict[str, list[float]] = defaultdict(list)
        own_caught = own_total = 0
        for language in tasks.get(name).languages:
            for seed in range(chosen.seeds):
                episode = build_episode(name, seed, language, "test" if seed % 2 else "train")
                own["solved"].append(play(episode).grade.completion)
                for agent, score in AGENTS.items():
                    own[agent].append(score(episode))
                for mutant in mutants(episode) if seed < chosen.mutant_seeds else ():
                    own_total += 1
                    own_caught += mutant.completion < 1.0
                    if mutant.completion >= 1.0:
                        survivors.append(f"{episode.key}: {mutant.name}")
        cells = [f"{fmean(own['solved']):5.2f}/{min(own['solved']):5.2f}"]
        cells += [f"{fmean(own[agent]):5.2f}/{max(own[agent]):5.2f}" for agent in AGENTS]
        print(f"{name:28} {' '.join(cells)} {own_caught:5}/{own_total:5}", flush=True)
        caught, total = caught + own_caught, total + own_total
        for agent, values in own.items():
            scores[agent] += values
    print(f"\n{len(names)} tasks, {len(scores['solved'])} episodes; mutants caught: {caught} of {total}")
    for survivor in survivors:
        print(f"survivor: {survivor}")
    failed = bool(survivors) or min(scores["solved"]) < 1.0
    for agent in AGENTS:
        mean, worst = fmean(scores[agent]), max(scores[agent])
        print(f"{agent:12} mean {mean:.4f} (wanted < {MEAN_LIMIT}), worst {worst:.2f} (wanted <= {WORST_LIMIT})")
        failed |= mean >= MEAN_LIMIT or worst > WORST_LIMIT
    print(
        "solutions: "
        + ("all score 1.0" if min(scores["solved"]) == 1.0 else f"{sum(s < 1 for s in scores['solved'])} score below 1.0")
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
