"""All that the page shows of one episode, as plain data: from its record and its trajectory alone."""

from __future__ import annotations

from typing import Any

import ec2_env
from ec2_env.bench.records import EpisodeRecord
from ec2_env.cloud.ledger import accounts
from ec2_env.cloud.matching import matcher_for
from ec2_env.errors import EC2Error
from ec2_env.reward import RewardWeights
from ec2_env.sensitive import SensitiveUnit
from ec2_env.task import Episode, build_episode
from ec2_env.trace import CloudCall, Ended, Trajectory
from ec2_env.view.ending import completion, ending
from ec2_env.view.plain import plain
from ec2_env.view.runs import Run
from ec2_env.view.steps import Timeline, exposure, step_terms, weights_of


def episode_data(run: Run, number: int) -> dict[str, Any]:
    """Returns the page data of an episode. What cannot be had is missing, and a note says why; never raises for that.

    Args:
        run: The run.
        number: Number of the episode, see `Run.records`.
    """
    record = run.records[number]
    head = {"run": run.name, "number": number, **_head(record)}
    try:
        trajectory = run.trajectory(number)
    except EC2Error as error:
        return {**head, "notes": [str(error)]}
    notes = []
    if trajectory.version != ec2_env.__version__:
        notes.append(f"written by version {trajectory.version}; what is built again here is built by {ec2_env.__version__}")
    episode, problem = _built(trajectory)
    if problem:
        notes.append(f"the episode could not be built again, so values, changes and checks are missing: {problem}")
    elif episode is not None and episode.instruction != trajectory.instruction:
        notes.append(
            "the task has changed since: built again, this episode asks something else; values, changes and checks may be wrong"
        )
    units = episode.units if episode is not None else ()
    body = _body(trajectory, record, units, weights_of(run.settings), notes)
    end = _end(trajectory, episode, notes) if episode is not None else {}
    return {**head, "title": episode.task.title if episode is not None else record.task, **body, **end, "notes": notes}


def _head(record: EpisodeRecord) -> dict[str, Any]:
    names = ("strategy", "edge", "cloud", "task", "language", "split", "seed", "trial", "reward", "total")
    return {**{name: getattr(record, name) for name in names}, "result": plain(record.result)}


def _built(trajectory: Trajectory) -> tuple[Episode | None, str]:
    try:
        return build_episode(trajectory.task, trajectory.seed, trajectory.language, trajectory.split), ""  # type: ignore[arg-type]  # checked there
    except EC2Error as error:
        return None, str(error)


def _body(
    trajectory: Trajectory, record: EpisodeRecord, units: tuple[SensitiveUnit, ...], weights: RewardWeights, notes: list[str]
) -> dict[str, Any]:
    timeline = Timeline(trajectory, matcher_for(units))
    steps = timeline.steps()
    lines = [line for event in trajectory.events if isinstance(event, CloudCall) for line in event.exposures]
    by_id = {unit.id: unit for unit in units}
    notes += _reward_steps(steps, trajectory, record, units, weights)
    levels: dict[str, float] = {}
    for line in lines:
        levels[line.unit] = max(line.level, levels.get(line.unit, 0.0))
    touched = {unit for event in trajectory.events if isinstance(event, Ended) for unit in event.touched}
    return {
        "weights": plain(weights),
        "instruction": trajectory.instruction,
        "steps": steps,
        "units": [
            {**plain(one), "value": by_id[one.unit].value, "owner": by_id[one.unit].owner}
            for one in accounts(units, levels, touched)
        ],
        "exposures": [exposure(line) for line in lines],
    }


def _reward_steps(
    steps: list[dict[str, Any]],
    trajectory: Trajectory,
    record: EpisodeRecord,
    units: tuple[SensitiveUnit, ...],
    weights: RewardWeights,
) -> list[str]:
    """Writes its reward terms into each step; returns notes on what is wrong with them."""
    known = {unit.id for unit in units}
    calls = [event for event in trajectory.events if isinstance(event, CloudCall)]
    if not all(line.unit in known for call in calls for line in call.exposures):
        return ["values crossed that the episode, built again, does not have; the steps' rewards are missing"] if units else []
    try:
        rewards = dict(step_terms(trajectory, units, weights, record.reward.get("cost", 0.0)))
    except (ArithmeticError, ValueError, TypeError) as error:
        return [f"the prices of the calls are no numbers ({error!r}); the steps' rewards are missing"]
    for step in steps:
        step["terms"] = rewards.get(step["step"])
    total = sum(one["reward"] for one in rewards.values())
    return (
        [] if abs(total - record.total) <= 1e-6 else [f"the steps' rewards add up to {total:.4f}; recorded is {record.total:.4f}"]
    )


def _end(trajectory: Trajectory, episode: Episode, notes: list[str]) -> dict[str, Any]:
    found = ending(trajectory, episode)
    if found.differing:
        notes.append(
            f"made again, {len(found.differing)} calls return something else than recorded (first: event {found.differing[0]}); "
            "changes and checks may be wrong"
        )
    if not found.agrees:
        notes.append("graded again, the checks earn something else than recorded")
    ended = next((event for event in trajectory.events if isinstance(event, Ended)), None)
    strays = sum(change["by"] == "agent" and change["check"] is None for change in found.changes)
    happened = any(act["happened"] for act in found.forbidden)
    return {
        "changes": found.changes,
        "checks": found.checks,
        "forbidden": found.forbidden,
        "formula": completion(found.checks, strays, happened),
        "report": {"finished": ended.finished, "answer": ended.answer, "data": plain(ended.data)} if ended is not None else None,
    }
