"""How likely a simulated model is to do a step right, and the luck that decides whether it does."""

from __future__ import annotations

import math
from functools import lru_cache

from ec2_env.models.draws import normal, percentile
from ec2_env.models.profile import Profile
from ec2_env.progress import Progress
from ec2_env.task import Step


def ability_logit(profile: Profile, progress: Progress, step: Step, at: int | None) -> float:
    """Returns the log odds that a model does a step right without help.

    discrimination * (ability + skill - difficulty - effects), with effects of the task and of the step (each partly common to all
    models) and of the episode, as in item response theory.

    Args:
        profile: What the model is like.
        progress: The episode.
        step: The step.
        at: Its position in the solution; None for what is known of it without having got there.
    """
    episode = progress.episode
    effect = effects(profile.draws, profile.task_sd, profile.shared, profile.instance_sd, episode.name, episode.key)
    if at is not None:
        effect += profile.step_sd * step_effect(profile.draws, profile.shared, episode.key, at)
    return profile.discrimination * (profile.ability + profile.skills[step.skill] - step.difficulty - effect)


def luck(profile: Profile, progress: Progress, *position: int) -> float:
    """Returns a uniform number that is in part the same in every run of an episode: models repeat their mistakes.

    Phi(sqrt(s) * a + sqrt(1 - s) * b) with s = `steadiness` and standard normal a, b, fixed by the episode, and by the run.
    """
    purpose = (profile.draws, "success", *position)
    steady, fresh = math.sqrt(profile.steadiness), math.sqrt(1 - profile.steadiness)
    return percentile(steady * normal(progress.fate, *purpose) + fresh * normal(progress.noise, *purpose))


@lru_cache(maxsize=10_000)
def effects(model: str, task_sd: float, shared: float, instance_sd: float, task: str, episode: str) -> float:
    """Returns how much harder than average an episode is for a model, in logits of ability."""
    common, own = normal("task", task), normal("task", task, model)
    effect = task_sd * (math.sqrt(shared) * common + math.sqrt(1 - shared) * own)
    return effect + instance_sd * normal("instance", episode)


@lru_cache(maxsize=50_000)
def step_effect(model: str, shared: float, episode: str, at: int) -> float:
    """Returns how much harder than the others a step of an episode is for a model: standard normal."""
    common, own = normal("step", episode, at), normal("step", episode, at, model)
    return math.sqrt(shared) * common + math.sqrt(1 - shared) * own


def logistic(logit: float) -> float:
    """Returns 1 / (1 + exp(-logit)) without overflow."""
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def choose(count: int, draw: float) -> int:
    """Returns an index below `count`, earlier ones likelier: weights 1, 1/2, 1/3 ..."""
    weights = [1 / (rank + 1) for rank in range(count)]
    left = draw * sum(weights)
    for index, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return index
    return count - 1
