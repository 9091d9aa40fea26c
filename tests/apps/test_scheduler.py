"""The scheduler: what a job shows, when it may be changed, and how its runs end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.errors import ToolError
from ec2_env.task import toolbox
from ec2_env.workspace.cron import next_run
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

BOX = toolbox(("scheduler", "config"))


@pytest.fixture
def world() -> World:
    return World("test/1", "en", "train")


def do(world: World, name: str, **arguments: Any) -> Result:
    return BOX.run(world.workspace, ToolCall(name, arguments))


def good(world: World, name: str, **arguments: Any) -> Any:
    result = do(world, name, **arguments)
    assert result.ok, result.text
    return result.value


def test_a_list_hides_errors_and_settings_that_a_look_reveals(world: World) -> None:
    job = world.scheduler.add(
        "Export", status="failed", error="disk full", settings="password=abc", failures=3, tags=("nightly",)
    )
    listed = do(world, "list_jobs", status="failed")
    assert [row["id"] for row in listed.value] == [job.id]
    assert "disk full" not in listed.text
    assert "abc" not in listed.text
    shown = good(world, "get_job", job_id=job.id)
    assert (shown["error"], shown["config"], shown["consecutive_failures"]) == ("disk full", "password=abc", 3)


def test_jobs_are_listed_by_state_and_tag_in_pages(world: World) -> None:
    paused = world.scheduler.add("A", paused=True, tags=("x",))
    for number in range(45):
        world.scheduler.add(f"Job {number:02d}")
    assert [len(good(world, "list_jobs", page=page)) for page in (1, 2, 3, 4)] == [20, 20, 6, 0]
    assert [row["id"] for row in good(world, "list_jobs", status="paused")] == [paused.id]
    assert [row["id"] for row in good(world, "list_jobs", tag="x")] == [paused.id]
    assert not do(world, "list_jobs", page=0).ok


def test_a_triggered_job_runs_and_is_in_the_history(world: World) -> None:
    job = world.scheduler.add("Export", status="failed", error="disk full", failures=3)
    world.scheduler.run(job, world.moment(-1, 2), status="failed", error="disk full")
    world.workspace.begin()
    ran = good(world, "trigger_job", job_id=job.id)
    assert ran["status"] == "success"
    runs = good(world, "job_history", job_id=job.id)
    assert [run["status"] for run in runs] == ["success", "failed"]
    assert runs[0]["trigger"] == "manual"
    shown = good(world, "get_job", job_id=job.id)
    assert (shown["last_status"], shown["error"], shown["consecutive_failures"]) == ("success", "", 0)
    assert {change.table for change in world.workspace.diff()} == {"job", "job_run"}


def test_a_job_fails_while_what_it_depends_on_has_not_succeeded(world: World) -> None:
    first = world.scheduler.add("Load", status="failed", error="x")
    second = world.scheduler.add("Report", status="upstream_failed", depends_on=(first.id,))
    world.workspace.begin()
    assert good(world, "trigger_job", job_id=second.id)["status"] == "upstream_failed"
    assert good(world, "trigger_job", job_id=first.id)["status"] == "success"
    assert good(world, "trigger_job", job_id=second.id)["status"] == "success"


def test_a_job_fails_with_the_error_of_its_integration_until_that_is_mended(world: World) -> None:
    shop = world.config.add("Shop", "shop", "key", api_version="v2", served="v3")
    job = world.scheduler.add("Sync", status="failed", integration=shop.id)
    world.workspace.begin()
    assert good(world, "trigger_job", job_id=job.id)["error"] == "410 Gone: API version v2 is no longer served"
    good(world, "update_integration", integration_id=shop.id, api_version="v3")
    assert good(world, "trigger_job", job_id=job.id)["status"] == "success"


def test_a_passing_failure_goes_after_as_many_runs_as_it_was_given(world: World) -> None:
    job = world.scheduler.add("Sync", status="failed", coming=("timeout", "timeout"))
    world.workspace.begin()
    assert [good(world, "trigger_job", job_id=job.id)["error"] for _ in range(3)] == ["timeout", "timeout", ""]


def test_paused_running_and_locked_jobs_are_not_triggered(world: World) -> None:
    paused = world.scheduler.add("A", paused=True)
    running = world.scheduler.add("B", status="running")
    locked = world.scheduler.add("C", locked="change freeze", owner="ann@office.example")
    world.workspace.begin()
    for job, word in ((paused, "paused"), (running, "running"), (locked, "change freeze")):
        result = do(world, "trigger_job", job_id=job.id)
        assert not result.ok
        assert word in result.text
    assert world.workspace.diff() == ()


def test_a_job_is_paused_and_resumed_once(world: World) -> None:
    job = world.scheduler.add("A", schedule="30 2 * * *")
    world.workspace.begin()
    assert good(world, "pause_job", job_id=job.id)["paused"] is True
    assert not do(world, "pause_job", job_id=job.id).ok
    assert good(world, "resume_job", job_id=job.id)["next_run"] == f"{world.day(1)} 02:30"
    assert not do(world, "resume_job", job_id=job.id).ok
    assert world.workspace.diff() == ()


def test_a_new_schedule_moves_the_next_run(world: World) -> None:
    job = world.scheduler.add("A")
    running = world.scheduler.add("B", status="running")
    world.workspace.begin()
    assert good(world, "update_job", job_id=job.id, schedule=" 15  4 * * * ")["next_run"] == f"{world.day(1)} 04:15"
    assert not do(world, "update_job", job_id=running.id, schedule="15 4 * * *").ok


@pytest.mark.parametrize(
    ("schedule", "following"),
    [
        ("30 2 * * *", "2026-03-03 02:30"),
        ("30 9 * * *", "2026-03-02 09:30"),
        ("*/15 * * * *", "2026-03-02 09:15"),
        ("0 0 1 * *", "2026-04-01 00:00"),
        ("0 8 * * 5", "2026-03-06 08:00"),
        ("0 8 * * 7", "2026-03-08 08:00"),
        ("0 8 29 2 *", "2028-02-29 08:00"),
        ("0 8 13 * 5", "2026-03-06 08:00"),
        ("5-7,50 9,22 * * 1-5", "2026-03-02 09:05"),
    ],
)
def test_the_next_run_follows_the_schedule(schedule: str, following: str) -> None:
    assert next_run(schedule, datetime(2026, 3, 2, 9, 0)) == following


@pytest.mark.parametrize(
    "schedule",
    ["", "x", "* * * *", "60 * * * *", "* 24 * * *", "*/0 * * * *", "5-1 * * * *", "0 0 30 2 *", "9" * 500, "* * * * 8"],
)
def test_a_bad_schedule_is_refused(world: World, schedule: str) -> None:
    job = world.scheduler.add("A")
    assert not do(world, "update_job", job_id=job.id, schedule=schedule).ok
    with pytest.raises(ToolError):
        next_run(schedule, datetime(2026, 3, 2, 9, 0))


def test_wrong_ids_and_limits_are_refused(world: World) -> None:
    job = world.scheduler.add("A")
    for name in ("get_job", "trigger_job", "pause_job", "resume_job", "job_history"):
        assert not do(world, name, job_id="job-0").ok
    for limit in (0, -1, 51, 10**30):
        assert not do(world, "job_history", job_id=job.id, limit=limit).ok


@pytest.mark.parametrize("language", ["en", "zh"])
def test_noise_runs_well(language: Language) -> None:
    world = World("test/2", language, "train")
    jobs = world.scheduler.noise(30)
    assert len({job.id for job in jobs}) == 30
    assert good(world, "list_jobs", status="failed") == []
