"""Scheduler: recurring jobs with their dependencies and runs. Lists show states; opening a job shows its error and settings.

A triggered run ends at once, and how it ends follows from the workspace: a job fails while one that it depends on has not
succeeded or while the integration that it uses does not work, and it may have failures of its own that pass after some runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.config import fault_of
from ec2_env.workspace.cron import next_run
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import World

State = Literal["success", "failed", "upstream_failed", "running"]
PAGE = 20
"""Jobs on one page of a list."""
MAX_RUNS = 50
"""Most runs that one look at a history shows."""


class Job(Row, frozen=True, kw_only=True):
    """One job.

    Attributes:
        schedule: Cron expression of five fields.
        last_run: "YYYY-MM-DD HH:MM", or empty if it never ran.
        depends_on: Ids of the jobs that have to succeed first.
        integration: Id of the integration that it uses; empty for none.
        settings: Free text, credentials among it.
        locked: Why nobody may change or trigger it; empty if they may.
        coming: Errors of its next runs, in order and not shown to anybody; an empty text and all runs after them succeed.
    """

    name: str
    schedule: str
    paused: bool = False
    last_status: str = "success"
    last_run: str = ""
    next_run: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    error: str = ""
    failures: int = 0
    depends_on: tuple[str, ...] = ()
    integration: str = ""
    settings: str = ""
    locked: str = ""
    coming: tuple[str, ...] = ()


class Run(Row, frozen=True, kw_only=True):
    """One run of a job, started at "YYYY-MM-DD HH:MM". It cannot be taken back."""

    job_id: str
    started: str
    status: str
    seconds: int
    error: str = ""
    trigger: str = "schedule"

    @property
    def lasting(self) -> bool:
        return True


@tool(opens="get_job")
def list_jobs(
    workspace: Workspace,
    status: Literal["success", "failed", "upstream_failed", "running", "paused"] | None = None,
    tag: str | None = None,
    page: int = 1,
) -> list[dict[str, Any]]:
    """Lists the jobs by name with their last and next run, without errors and settings.

    Args:
        status: Show only jobs whose last run ended like this, or only paused jobs.
        tag: Show only jobs that carry this tag.
        page: Page number, from 1; a page has 20 jobs.
    """
    if page < 1:
        raise ToolError("page must be 1 or more")
    found = [job for job in workspace.rows("job").values() if tag is None or tag in job.tags]
    if status is not None:
        found = [job for job in found if (job.paused if status == "paused" else job.last_status == status)]
    found.sort(key=lambda job: (job.name, job.id))
    return [
        {
            "id": job.id,
            "name": job.name,
            "schedule": job.schedule,
            "paused": job.paused,
            "last_status": job.last_status,
            "last_run": job.last_run,
            "next_run": job.next_run,
            "tags": list(job.tags),
        }
        for job in found[(page - 1) * PAGE : page * PAGE]
    ]


@tool()
def get_job(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Shows one job in full: its last error, what it depends on, how often it failed in a row, and its settings.

    Args:
        job_id: Id of the job, as shown by list_jobs.
    """
    job = workspace.get("job", job_id)
    return {
        "id": job.id,
        "name": job.name,
        "owner": job.owner,
        "schedule": job.schedule,
        "paused": job.paused,
        "last_status": job.last_status,
        "last_run": job.last_run,
        "next_run": job.next_run,
        "error": job.error,
        "consecutive_failures": job.failures,
        "depends_on": list(job.depends_on),
        "integration": job.integration,
        "tags": list(job.tags),
        "config": job.settings,
        "locked": job.locked,
    }


@tool()
def job_history(workspace: Workspace, job_id: str, limit: int = 10) -> list[dict[str, Any]]:
    """Lists the runs of a job, newest first.

    Args:
        job_id: Id of the job.
        limit: How many runs to show, 1 to 50.
    """
    workspace.get("job", job_id)
    if not 1 <= limit <= MAX_RUNS:
        raise ToolError(f"limit must be 1 to {MAX_RUNS}")
    runs = [run for run in workspace.rows("job_run").values() if run.job_id == job_id]
    runs.sort(key=lambda run: (run.started, run.id), reverse=True)
    return [
        {
            "run_id": run.id,
            "started": run.started,
            "seconds": run.seconds,
            "status": run.status,
            "error": run.error,
            "trigger": run.trigger,
        }
        for run in runs[:limit]
    ]


@tool(write=True)
def trigger_job(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Runs a job now and returns how the run ended.

    Args:
        job_id: Id of the job.
    """
    job = unlocked(workspace, job_id)
    if job.paused:
        raise ToolError(f"409 Conflict: {job.id} is paused; resume it with resume_job first")
    if job.last_status == "running":
        raise ToolError(f"409 Conflict: {job.id} is already running since {job.last_run}; wait until it has ended")
    status, error = outcome(workspace, job)
    started = workspace.now.isoformat(" ", "minutes")
    run = Run(
        id=workspace.new_id("run"), job_id=job.id, started=started, status=status, seconds=30, error=error, trigger="manual"
    )
    workspace.put("job_run", run)
    changed = msgspec.structs.replace(
        job,
        last_status=status,
        last_run=started,
        error=error,
        failures=job.failures + 1 if error else 0,
        coming=job.coming if status == "upstream_failed" else job.coming[1:],
    )
    workspace.put("job", changed)
    return {"run_id": run.id, "job_id": job.id, "status": status, "error": error}


@tool(write=True)
def pause_job(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Pauses a job: it is not run again until it is resumed.

    Args:
        job_id: Id of the job.
    """
    job = unlocked(workspace, job_id)
    if job.paused:
        raise ToolError(f"409 Conflict: {job.id} is paused already")
    workspace.put("job", msgspec.structs.replace(job, paused=True, next_run=""))
    return {"id": job.id, "paused": True}


@tool(write=True)
def resume_job(workspace: Workspace, job_id: str) -> dict[str, Any]:
    """Lets a paused job run on its schedule again.

    Args:
        job_id: Id of the job.
    """
    job = unlocked(workspace, job_id)
    if not job.paused:
        raise ToolError(f"409 Conflict: {job.id} is not paused")
    changed = msgspec.structs.replace(job, paused=False, next_run=next_run(job.schedule, workspace.now))
    workspace.put("job", changed)
    return {"id": job.id, "paused": False, "next_run": changed.next_run}


@tool(write=True)
def update_job(workspace: Workspace, job_id: str, schedule: str) -> dict[str, Any]:
    """Changes when a job runs.

    Args:
        job_id: Id of the job.
        schedule: New cron expression: minute, hour, day of month, month and day of week, such as "30 2 * * 1-5".
    """
    job = unlocked(workspace, job_id)
    if job.last_status == "running":
        raise ToolError(f"409 Conflict: {job.id} is running; wait until it has ended")
    text = " ".join(schedule.split())
    following = next_run(text, workspace.now)
    workspace.put("job", msgspec.structs.replace(job, schedule=text, next_run="" if job.paused else following))
    return {"id": job.id, "schedule": text, "next_run": "" if job.paused else following}


def unlocked(workspace: Workspace, job_id: str) -> Job:
    """Returns a job that may be changed.

    Raises:
        ToolError: if there is no such job, or it is locked.
    """
    job: Job = workspace.get("job", job_id)
    if job.locked:
        raise ToolError(
            f"403 Forbidden: {job.id} is locked ({job.locked}); only its owner, {job.owner or 'unknown'}, may change it"
        )
    return job


def outcome(workspace: Workspace, job: Job) -> tuple[State, str]:
    """Returns how a run of a job ends now, and its error."""
    jobs = workspace.rows("job")
    for key in job.depends_on:
        if key in jobs and jobs[key].last_status != "success":
            return "upstream_failed", f"upstream_failed: {key} has not succeeded"
    used = workspace.rows("integration").get(job.integration)
    error = fault_of(used) if used is not None else ""
    error = error or (job.coming[0] if job.coming else "")
    return ("failed", error) if error else ("success", "")


class SchedulerSeeder:
    """Fills the scheduler while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def add(
        self,
        name: str,
        *,
        schedule: str = "0 2 * * *",
        status: State = "success",
        paused: bool = False,
        last_run: datetime | None = None,
        tags: Sequence[str] = (),
        owner: str = "",
        error: str = "",
        failures: int = 0,
        depends_on: Sequence[str] = (),
        integration: str = "",
        settings: str = "",
        locked: str = "",
        coming: Sequence[str] = (),
    ) -> Job:
        """Adds a job and returns it. `last_run` is early this morning if not given; a failed one has failed at least once."""
        world = self.world
        at = last_run or world.moment(0, 2 + world.rng.randrange(5))
        job = Job(
            id=world.new_id("job"),
            name=name,
            schedule=schedule,
            paused=paused,
            last_status=status,
            last_run=at.isoformat(" ", "minutes"),
            next_run="" if paused else self._next(schedule),
            tags=tuple(tags),
            owner=owner,
            error=error,
            failures=max(failures, int(status in ("failed", "upstream_failed"))),
            depends_on=tuple(depends_on),
            integration=integration,
            settings=settings,
            locked=locked,
            coming=tuple(coming),
        )
        world.workspace.put("job", job)
        return job

    def run(
        self,
        job: Job,
        started: datetime,
        *,
        status: State = "success",
        error: str = "",
        seconds: int = 0,
        trigger: Literal["schedule", "manual"] = "schedule",
    ) -> Run:
        """Adds a past run to the history of a job and returns it."""
        run = Run(
            id=self.world.new_id("run"),
            job_id=job.id,
            started=started.isoformat(" ", "minutes"),
            status=status,
            seconds=seconds or self.world.rng.randrange(4, 600),
            error=error,
            trigger=trigger,
        )
        self.world.workspace.put("job_run", run)
        return run

    def noise(self, count: int) -> list[Job]:
        """Adds jobs that ran well and have nothing to do with the task."""
        world, rng = self.world, self.world.rng
        tags, tomorrow, today = world.text(("housekeeping",), ("日常维护",)), world.day(1), world.today
        jobs = []
        for _ in range(count):
            hour, minute = rng.randrange(6), rng.randrange(60)
            job = Job(
                id=world.new_id("job"),
                name=f"{rng.choice(NOISE[world.language])} {rng.randrange(1, 40)}",
                schedule=f"{minute} {hour} * * *",
                last_run=f"{today} {hour:02d}:{minute:02d}",
                next_run=f"{tomorrow} {hour:02d}:{minute:02d}",
                tags=tags,
            )
            world.workspace.put("job", job)
            jobs.append(job)
        return jobs

    def _next(self, schedule: str) -> str:
        daily = re.fullmatch(r"(\d+) (\d+) \* \* \*", schedule)
        if daily:
            hour, minute = int(daily[2]), int(daily[1])
            return f"{self.world.day((hour, minute) <= (9, 0))} {hour:02d}:{minute:02d}"
        return next_run(schedule, self.world.workspace.now)


NOISE = {
    "en": (
        "Log rotation",
        "Thumbnail cleanup",
        "Session purge",
        "Disk usage report",
        "Certificate check",
        "Cache warm-up",
        "Search reindex",
        "Printer queue reset",
    ),
    "zh": ("日志轮转", "缩略图清理", "会话清理", "磁盘用量统计", "证书检查", "缓存预热", "搜索索引重建", "打印队列重置"),
}

APP = App("scheduler", (list_jobs, get_job, job_history, trigger_job, pause_job, resume_job, update_job), SchedulerSeeder)
