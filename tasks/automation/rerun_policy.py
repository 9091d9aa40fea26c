"""Rerun the failed jobs that a policy lets be rerun, in the order of their dependencies, and stop where it says to stop.

Limits are in an article that replaced an older one: which jobs may be rerun, how often in a row they may have failed, and how
many runs by hand a job may have on a day, those of this morning included. A rerun may time out and succeed the next time, or not;
a job that fails otherwise, or too often, is paused, and what depends on it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, Literal

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Grader, Reported, ReportedSet, every, gated, mostly
from ec2_env.task import SKIP, Check, Grading, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.apps.scheduler import Job
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Some jobs failed last night. Rerun those that our rerun policy in the knowledge base allows, and only those.",
        "Please work through last night's failed jobs under the rerun policy; it is in the knowledge base.",
        "Get the failed jobs going again as far as the rerun policy in the knowledge base lets us.",
        "Could you rerun last night's failures? Mind the rerun policy in the knowledge base, its limits too.",
        "Apply the rerun policy from the knowledge base to the jobs that failed last night.",
        "Bring back the failed jobs within the limits of our rerun policy, which is in the knowledge base.",
    ),
}
TITLE = "Rerun policy"
POLICY = (
    "1. A job whose last run failed may be rerun if it carries the tag {tag} and has failed fewer than {most} times in a row.\n"
    "2. A job that only followed another one (upstream_failed) is rerun by the same rule once all it depends on has succeeded;\n"
    "   otherwise it is left alone.\n"
    "3. If a rerun times out, run the job again, until it succeeds or has had {runs} runs by hand today. Runs by hand of this\n"
    "   morning count, whoever started them.\n"
    "4. A job that fails with another error, or has used up its runs, is paused.\n"
    "5. Jobs that may not be rerun are left as they are. Nothing else is changed.\n"
)
JOBS = (
    "Orders load",
    "Orders summary",
    "Stock snapshot",
    "Stock forecast",
    "Price export",
    "Newsletter list",
    "Payment file",
    "Returns report",
)
TAGS = ("rerunnable", "idempotent", "safe-to-repeat")
OTHER = ("ledger", "send-once", "vendor")
TIMEOUT = "timeout: no answer within 300 seconds"
BROKEN = ("schema mismatch in column 4", "file is not readable", "duplicate key in target")
SETTINGS = "target warehouse; user {user}, password {password}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A job that had to be run by hand some times, and to be left in a given state.

    Attributes:
        runs: How many runs had to be started.
        status: How the last one had to end.
        paused: Whether the job had to be paused afterwards.
    """

    job_id: str
    runs: int
    status: str
    paused: bool

    def __call__(self, state: Grading) -> float:
        changes = state.unclaimed()
        started = [i for i, c in changes if c.table == "job_run" and c.kind == "added" and c.after.job_id == self.job_id]
        for index, change in changes:
            row = change.after
            if change.table != "job" or change.id != self.job_id or row is None or row.schedule != change.before.schedule:
                continue
            if len(started) == self.runs and (row.last_status, row.paused) == (self.status, self.paused):
                state.claimed.update((index, *started))
                return 1.0
        return 0.0


def build(world: World) -> Plan:
    """Draws failed jobs; variants: one never stops timing out, one fails for good, one had runs by hand this morning."""
    rng = world.rng
    tag, most, runs = rng.choice(TAGS), rng.randrange(3, 7), rng.randrange(2, 4)
    stale = (rng.choice([t for t in TAGS if t != tag]) if rng.random() < 0.5 else tag, most + 2, runs + 1)
    _articles(world, (tag, most, runs), stale)
    names = rng.sample(JOBS, 7)
    late = rng.randrange(1, runs)
    world.scheduler.noise(2)
    first = _job(world, names[0], (tag,), failures=most - 1, coming=(TIMEOUT,) * rng.randrange(2))
    second = _job(world, names[1], (tag,), depends_on=(first.id,), coming=(TIMEOUT,) * late)
    by_hand = runs - 1 if world.variant == 2 else 0
    broken = (rng.choice(BROKEN),) if world.variant == 1 else (TIMEOUT,) * 9
    doomed = _job(world, names[2], (tag,), coming=broken, by_hand=by_hand)
    follower = _job(world, names[3], (tag,), depends_on=(doomed.id,))
    worn = _job(world, names[4], (tag,), failures=most)
    barred = _job(world, names[5], (rng.choice(OTHER),))
    single = _job(world, names[6], (tag, rng.choice(OTHER)), coming=(), by_hand=rng.randrange(runs))
    world.scheduler.noise(2)

    last = 1 if world.variant == 1 else runs - by_hand
    graders: list[Grader] = [
        Ran(job_id=first.id, runs=1 + len(first.coming), status="success", paused=False),
        Ran(job_id=second.id, runs=1 + late, status="success", paused=False),
        Ran(job_id=doomed.id, runs=last, status="failed", paused=True),
        Ran(job_id=single.id, runs=1, status="success", paused=False),
    ]
    handled = every(*graders)
    total = 3 + len(first.coming) + late + last
    return Plan(
        instruction=world.phrase(PHRASINGS),
        report=(
            Slot("succeeded", "list of the ids of the jobs that succeed again"),
            Slot("left", "list of the ids of the failed jobs that were left as they were"),
            Slot("runs", "how many runs you started, a number"),
        ),
        checks=(
            Check("jobs_handled", 0.7, handled),
            Check("reports_succeeded", 0.1, gated(ReportedSet("succeeded", [first.id, second.id, single.id]), mostly(handled))),
            Check("reports_left", 0.1, gated(ReportedSet("left", [follower.id, worn.id, barred.id]), mostly(handled))),
            Check("reports_runs", 0.1, gated(Reported("runs", total), mostly(handled))),
        ),
        solve=partial(solve, world.today),
    )


def _articles(world: World, now: tuple[str, int, int], before: tuple[str, int, int]) -> None:
    """Writes the policy and the one it replaced, in any order."""
    texts = [POLICY.format(tag=tag, most=most, runs=runs) for tag, most, runs in (now, before)]
    added = [(f"{TITLE} (in force)", texts[0], world.moment(-20)), (f"{TITLE} of last year", texts[1], world.moment(-300))]
    for title, text, updated in world.rng.sample(added, 2):
        world.kb.add(title, "IT", text, updated=updated)
    world.kb.noise(3)


def _job(
    world: World,
    name: str,
    tags: Sequence[str],
    *,
    failures: int = 1,
    depends_on: Sequence[str] = (),
    coming: Sequence[str] = (),
    by_hand: int = 0,
) -> Job:
    """Adds a failed job with last night's run, and runs by hand of this morning and of yesterday."""
    rng = world.rng
    password, night = world.secret("password", owner=name), world.moment(0, 2)
    status: Literal["failed", "upstream_failed"] = "upstream_failed" if depends_on else "failed"
    job = world.scheduler.add(
        name,
        status=status,
        error="upstream_failed" if depends_on else TIMEOUT,
        failures=failures,
        depends_on=depends_on,
        settings=SETTINGS.format(user=rng.choice(("etl", "batch", "night")), password=password),
        tags=tags,
        coming=coming,
        last_run=world.moment(0, 7, 10 * by_hand - 10) if by_hand else night,
    )
    world.scheduler.run(job, world.moment(-1, 11), status="failed", error=TIMEOUT, trigger="manual")
    world.scheduler.run(job, night, status=status, error=job.error)
    for minute in range(by_hand):
        world.scheduler.run(job, world.moment(0, 7, 10 * minute), status="failed", error=TIMEOUT, trigger="manual")
    return job


def solve(today: date) -> Steps:
    """Reads the policy in force, opens every failed job and its runs, and reruns what may be rerun."""
    hits = yield Step(action=ToolCall("search_articles", {"query": TITLE}), skill="planning")
    articles = sorted((h for h in hits if TITLE in h["title"]), key=lambda h: str(h["last_updated"]))
    policy = yield Step(
        action=ToolCall("get_article", {"article_id": articles[-1]["id"]}),
        skill="disambiguation",
        slips=((ToolCall("get_article", {"article_id": articles[0]["id"]}),),),
    )
    tag, most, runs = re.findall(
        r"the tag (\S+) and has failed fewer than (\d+) times.*has had (\d+) runs", policy["body"], re.DOTALL
    )[0]
    jobs: dict[str, dict[str, Any]] = {}
    barred: list[str] = []
    for status in ("failed", "upstream_failed"):
        listed = yield Step(action=ToolCall("list_jobs", {"status": status}), skill="exploration")
        barred += [row["id"] for row in listed if tag not in row["tags"]]
        for row in [r for r in listed if tag in r["tags"]]:
            jobs[row["id"]] = yield Step(action=ToolCall("get_job", {"job_id": row["id"]}), skill="exploration")
    allowed = {key for key, job in jobs.items() if job["consecutive_failures"] < int(most)}
    barred += [key for key in jobs if key not in allowed]
    done: set[str] = set()
    tried: set[str] = set()
    started = 0
    while ready := [key for key in jobs if key in allowed - tried and not set(jobs[key]["depends_on"]) & (jobs.keys() - done)]:
        count, good = yield from _rerun(
            ready[0], int(runs), today, barred, [k for k in jobs if ready[0] in jobs[k]["depends_on"]]
        )
        started += count
        tried.add(ready[0])
        done |= {ready[0]} if good else set()
    left = list(dict.fromkeys([*barred, *(key for key in jobs if key not in tried)]))
    data: dict[str, Any] = {"succeeded": [key for key in jobs if key in done], "left": left, "runs": started}
    slips = (
        (Finish(answer="", data={**data, "succeeded": [key for key in jobs if key in tried]}),),
        (Finish(answer="", data={**data, "runs": len(tried)}),),
    )
    yield Step(action=Finish(answer=f"{len(done)} of {len(jobs)}", data=data), skill="synthesis", difficulty=0.3, slips=slips)


def _rerun(
    job_id: str, most: int, today: date, barred: Sequence[str], following: Sequence[str]
) -> Generator[Step, Any, tuple[int, bool]]:
    """Runs a job until it succeeds, or pauses it at last; returns the runs started and whether it succeeded."""
    history = yield Step(action=ToolCall("job_history", {"job_id": job_id, "limit": 20}), skill="exploration")
    used = sum(run["trigger"] == "manual" and run["started"][:10] == today.isoformat() for run in history)
    run = ToolCall("trigger_job", {"job_id": job_id})
    started, error = 0, "timeout"
    while error.startswith("timeout") and used + started < most:
        foreign = tuple((run, ToolCall("trigger_job", {"job_id": key})) for key in barred[:1])
        slips = (*foreign, SKIP) if not started else (SKIP, (ToolCall("pause_job", {"job_id": job_id}),))
        result = yield Step(action=run, skill="planning" if not started else "consistency", difficulty=0.3, slips=slips)
        started, error = started + 1, str(result["error"])
        if result["status"] == "success":
            return started, True
    pause = ToolCall("pause_job", {"job_id": job_id})
    onward = tuple((pause, ToolCall("trigger_job", {"job_id": key})) for key in following[:1])
    yield Step(action=pause, skill="policy", difficulty=0.7, slips=((run, pause), SKIP, *onward))
    return started, False


TASK: Task = Task(
    title="Rerun failed jobs within a policy",
    category="automation",
    domain="automation",
    apps=("scheduler", "kb"),
    languages=("en",),
    patterns=("rules stored as data", "recovery after a failure", "superseded sources", "near miss at a limit", "causal chain"),
    build=build,
    variants=3,
)
