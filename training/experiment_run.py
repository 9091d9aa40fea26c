"""Runs an experiment: one policy for each seed, each in its own folder, and what they say together.

What a seed returned is kept in `scores.json` of its folder, so that a run that was stopped does not train it again. How far a
seed had come is its method's business (`ec2_env.training.stages`).
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ec2_env.bench.records import start_worker
from ec2_env.errors import ConfigurationError
from ec2_env.training.evaluation import Score
from ec2_env.training.experiment import FILE, Experiment, differences, plan_of, read, resolved, toml
from ec2_env.training.experiment_summary import lines, markdown, summary
from ec2_env.training.methods import method
from ec2_env.training.metrics import Metrics, log_to
from ec2_env.training.stages import write_whole

SCORES = "scores.json"


def run(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Trains all seeds, saves and returns what they say together; goes on from what is in the folder.

    Args:
        experiment: What to train.
        out: Folder of the policy; with several seeds, they go into `seed0` and so on in it.

    Raises:
        ConfigurationError: if a setting cannot be used, or the folder holds another experiment.
        MissingExtra: if an extra is not installed.
    """
    log_to(experiment.log_to)
    plan = plan_of(experiment)
    whole = resolved(experiment, plan)
    settle_folder(out, whole)
    for line in drift(experiment, whole):
        print(line, flush=True)
    module = method(experiment.method).load()
    if hasattr(module, "prepare"):
        module.prepare(out, plan)
    seeds = whole.all_seeds()
    folders = [folder_of(out, seed, seeds) for seed in seeds]
    job = partial(one_seed, experiment.method, plan, experiment.log_to)
    if experiment.workers == 1 or len(seeds) == 1:
        scores = list(map(job, seeds, folders))
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(experiment.workers, mp_context=spawn, initializer=start_worker) as pool:
            scores = list(pool.map(job, seeds, folders))
    found = summary(dict(zip(seeds, scores, strict=True)), getattr(plan, "budget", None))
    write_whole(out / "summary.json", msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    write_whole(out / "summary.md", markdown(found, f"ec2-env train --config {out / FILE}").encode())
    for line in lines(found):
        print(line, flush=True)
    return found


def drift(before: Experiment, now: Experiment) -> list[str]:
    """Says in what an experiment that was run before is made with something else now, so that its figures may differ."""
    names = {"ec2_env": "version of ec2-env", "code": "code", "test_suite_sha256": "test episodes"}
    changed = [text for name, text in names.items() if name in before.made and before.made[name] != now.made[name]]
    return (
        [f"note: since this experiment was run, these have changed: {', '.join(changed)}; its figures may differ"]
        if changed
        else []
    )


def folder_of(out: Path, seed: int, seeds: Sequence[int]) -> Path:
    """Returns the folder of a seed."""
    return out if len(seeds) == 1 else out / f"seed{seed}"


def one_seed(name: str, plan: Any, tracker: str | None, seed: int, folder: Path) -> list[Score]:
    """Trains one seed, unless it has been trained already; runs in a process of its own if there are several workers."""
    kept = folder / SCORES
    if kept.exists():
        print(f"seed {seed}: finished before", flush=True)
        return msgspec.json.decode(kept.read_bytes(), type=list[Score])
    log_to(tracker)
    began = time.perf_counter()
    scores: list[Score] = method(name).load().train(folder, seed, plan)
    with Metrics(folder) as metrics:
        metrics.log("test", 0, **{"return": scores[-1].mean, "seconds": time.perf_counter() - began})
    write_whole(kept, msgspec.json.encode(scores))
    return scores


def settle_folder(out: Path, whole: Experiment) -> None:
    """Writes the experiment into its folder, or finds it there.

    Raises:
        ConfigurationError: if another one is there.
    """
    out.mkdir(parents=True, exist_ok=True)
    place = out / FILE
    if place.exists():
        before = read(place)
        differing = differences(before, whole)
        if (len(before.all_seeds()) == 1) != (len(whole.all_seeds()) == 1):
            differing.append("one seed or several")
        if differing:
            raise ConfigurationError(
                f"{out} holds another experiment (different: {', '.join(differing)}); delete it, or choose another folder"
            )
    write_whole(place, toml(whole).encode())
