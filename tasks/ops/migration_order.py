"""Run exactly the database migrations that may run, each after what it needs.

The table of migrations is of last night and the scheduler knows better: one has been applied since, another failed. Holds end or
are lifted, backups age or fail, some exactly at the limit, and what needs a stopped migration waits with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import ReportedMap, ReportedSet, Reran, gated, mostly
from ec2_env.task import SKIP, Check, Grading, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please run the migrations of {system} that may run today; the rules are in the database.",
        "Apply today's migrations of {system}, in the right order, by the rules in the database.",
        "Some migrations of {system} are waiting. Start those that the rules in the database allow, and no others.",
        "Could you work through the pending {system} migrations? What may run, and when, follows from the database.",
        "Bring {system} as far as today's rules for migrations let you; the database has the rules.",
        "Run whatever migrations of {system} are due, obeying the rules in the database, and tell me what waits.",
    ),
}
RULES = (
    "A migration counts as applied if the last run of its job in the scheduler succeeded; the column state is of last night.",
    "Whatever is not applied may run if all it needs is applied, or may run as well and is run before it.",
    "A hold stops a migration up to and including its last day, unless it was lifted.",
    "A migration of kind data is stopped unless its target has a backup with status ok taken at most {days} days before today.",
    "Whatever needs a stopped migration, directly or through others, waits.",
    "Run the job of each migration that may run once, after the jobs of all that it needs. Change nothing else.",
)
TITLES = (
    "split address lines",
    "add order channel",
    "index invoices",
    "fill region codes",
    "rename stock places",
    "drop old sessions",
    "add tax classes",
    "merge price lists",
    "convert weights",
    "link shipments",
    "add audit columns",
    "fill return reasons",
)
TARGETS = ("orders", "invoices", "stock", "sessions", "prices", "shipments", "returns")


@dataclass(frozen=True, slots=True)
class InOrder:
    """Jobs that had to run after others; earns the share of the pairs that did, first job first."""

    pairs: Sequence[tuple[str, str]]

    def __call__(self, state: Grading) -> float:
        started: dict[str, str] = {}
        for change in state.changes:
            if change.table == "job_run" and change.after is not None:
                started.setdefault(change.after.job_id, change.after.started)
        right = [one in started and two in started and started[one] < started[two] for one, two in self.pairs]
        return float(sum(right) / len(right))


def build(world: World) -> Plan:
    """Draws twelve migrations; variants: a hold stops a chain, the other hold and a failed run, a failed backup in the chain."""
    rng, variant = world.rng, world.variant
    system, days = rng.choice(("warehouse", "billing", "catalog", "crm core")), rng.randrange(3, 8)
    roles = ("done", "early", "stale", "redo", "root", "middle", "leaf", "after", "held", "under", "copied", "eased")
    codes = dict(zip(roles, (f"M{n}" for n in rng.sample(range(110, 990), len(roles))), strict=True))
    titles = dict(zip(roles, rng.sample(TITLES, len(TITLES)), strict=True))
    targets = {role: rng.choice(TARGETS) for role in roles}
    targets["leaf"], targets["copied"] = rng.sample(TARGETS, 2)
    needs = [("early", "done"), ("middle", "root"), ("leaf", "middle"), ("leaf", "stale"), ("after", "leaf"), ("under", "held")]
    needs += [("middle", "redo"), ("copied", "early"), ("after", "eased" if variant == 1 else "root"), ("root", "done")]
    applied = {"done", "early", "stale", *(() if variant == 1 else ("redo",))}
    stopped = {
        0: {"held": "hold", "copied": "backup"},
        1: {"eased": "hold", "copied": "backup"},
        2: {"held": "hold", "leaf": "backup"},
    }[variant]
    waiting = waits([(codes[a], codes[b]) for a, b in needs], {codes[role] for role in stopped})
    left = [role for role in roles if role not in applied]
    runs = [role for role in left if role not in stopped and codes[role] not in waiting]

    jobs: dict[str, str] = {}
    for role in ("root", *(role for role in rng.sample(roles, len(roles)) if role != "root")):
        failed = role == "redo" and variant == 1
        job = world.scheduler.add(
            f"Migration: {titles[role]}",
            schedule="0 3 * * 0",
            status="success" if role in applied else "failed" if failed else "upstream_failed",
            last_run=world.moment(0, 6) if role in ("stale", "redo") else world.moment(-rng.randrange(2, 9), 5),
            error="" if role in applied else "connection lost" if failed else "not started: its turn has not come",
            tags=("migration", system),
            depends_on=(jobs["root"],) if role == "middle" else (),
        )
        jobs[role] = job.id
    world.scheduler.noise(3)
    kinds = {role: "data" if role in ("leaf", "copied", rng.choice(("done", "early"))) else "schema" for role in roles}
    _tables(world, days, codes, titles, targets, kinds, needs, stopped)

    ran = Reran({jobs[role]: 1 for role in runs})
    order = InOrder([(jobs[b], jobs[a]) for a, b in needs if a in runs and b in runs])
    return Plan(
        instruction=world.phrase(PHRASINGS, system=system),
        report=(
            Slot("ran", "list of the codes of the migrations that were run, such as M100"),
            Slot("stopped", 'mapping from the code of each migration that is stopped itself to "hold" or "backup"'),
            Slot("waiting", "list of the codes of the migrations that wait for a stopped one"),
        ),
        checks=(
            Check("ran", 0.55, ran),
            Check("in_order", 0.15, gated(order, mostly(ran))),
            Check("reports_ran", 0.1, gated(ReportedSet("ran", [codes[role] for role in runs]), mostly(ran))),
            Check("reports_stopped", 0.1, gated(ReportedMap("stopped", {codes[r]: w for r, w in stopped.items()}), mostly(ran))),
            Check("reports_waiting", 0.1, gated(ReportedSet("waiting", sorted(waiting)), mostly(ran))),
        ),
        solve=partial(solve, world.today),
    )


def waits(needs: Sequence[tuple[str, str]], stopped: Collection[str]) -> set[str]:
    """Returns what needs one of the stopped migrations, directly or through others."""
    found: set[str] = set()
    while more := {a for a, b in needs if (b in stopped or b in found) and a not in found}:
        found |= more
    return found


def _tables(
    world: World,
    days: int,
    codes: Mapping[str, str],
    titles: Mapping[str, str],
    targets: Mapping[str, str],
    kinds: Mapping[str, str],
    needs: Sequence[tuple[str, str]],
    stopped: Mapping[str, str],
) -> None:
    """Declares the tables: rules, migrations as of last night, what they need, holds and backups."""
    rng = world.rng
    roles = rng.sample(list(codes), len(codes))
    state = {role: "applied" if role in ("done", "early", "redo") else "pending" for role in roles}
    text = {"code": "TEXT", "title": "TEXT", "kind": "TEXT", "target": "TEXT", "state": "TEXT"}
    world.sql.table(
        "migration_rules", {"number": "INTEGER", "rule": "TEXT"}, [(n, r.format(days=days)) for n, r in enumerate(RULES, 1)]
    )
    rows = [(codes[role], titles[role], kinds[role], targets[role], state[role]) for role in roles]
    world.sql.table("migrations", text, rows, notes={"title": 'its job is called "Migration: title"', "state": "of last night"})
    pairs = rng.sample([(codes[a], codes[b]) for a, b in needs], len(needs))
    world.sql.table("migration_needs", {"code": "TEXT", "needs": "TEXT"}, pairs)
    holds: list[tuple[str, str, str | None]] = [(codes["root"], f"{world.day(rng.randrange(3, 9))}", f"{world.day(-1)}")]
    for role in ("held", "eased"):
        last = world.day(rng.choice((0, 0, 1, 4))) if role in stopped else world.day(-1)
        holds.append((codes[role], f"{last}", None))
    world.sql.table("holds", {"code": "TEXT", "last_day": "TEXT", "lifted_on": "TEXT"}, rng.sample(holds, len(holds)))
    backups = [(target, f"{world.day(-days - rng.randrange(5, 20))}", "ok") for target in TARGETS]
    for role in ("leaf", "copied"):
        if role not in stopped:
            backups.append((targets[role], f"{world.day(-days)}", "ok"))
        elif rng.random() < 0.5:
            backups.append((targets[role], f"{world.day(-days - 1)}", "ok"))
        backups.append((targets[role], f"{world.day(-rng.randrange(days))}", "failed"))
    table = {"target": "TEXT", "taken": "TEXT", "status": "TEXT"}
    world.sql.table("backups", table, rng.sample(backups, len(backups)))


def solve(today: date) -> Steps:
    """Reads rules and tables, asks the scheduler what is applied, and runs the rest in order of need."""
    yield Step(action=ToolCall("list_tables", {}), skill="planning")
    rules = yield Step(action=select("SELECT number, rule FROM migration_rules ORDER BY number"), skill="exploration")
    days = int(re.findall(r"at most (\d+) days", str(rules["rows"]))[0])
    listed = yield Step(action=select("SELECT code, title, kind, target, state FROM migrations"), skill="exploration")
    pairs = yield Step(action=select("SELECT code, needs FROM migration_needs"), skill="exploration")
    holds = yield Step(action=select("SELECT code, last_day, lifted_on FROM holds"), skill="exploration")
    backups = yield Step(
        action=select("SELECT target, MAX(taken) FROM backups WHERE status = 'ok' GROUP BY target"),
        skill="exploration",
        difficulty=0.3,
        slips=((select("SELECT target, MAX(taken) FROM backups GROUP BY target"),),),
    )
    jobs = yield Step(action=ToolCall("list_jobs", {"tag": "migration"}), skill="exploration")
    by_title = {job["name"].removeprefix("Migration: "): job for job in jobs}
    job_of = {code: by_title[title] for code, title, *_ in listed["rows"]}
    needs = [(a, b) for a, b in pairs["rows"]]
    left = [code for code, *_ in listed["rows"] if job_of[code]["last_status"] != "success"]
    limit = f"{today - timedelta(days=days)}"
    fresh = {target for target, taken in backups["rows"] if taken >= limit}
    stopped = {code: "hold" for code, last, lifted in holds["rows"] if not lifted and last >= f"{today}" and code in left}
    for code, _, kind, target, _ in listed["rows"]:
        if kind == "data" and code in left and target not in fresh:
            stopped.setdefault(code, "backup")
    waiting = sorted(waits(needs, stopped))
    runs = ordered([code for code in left if code not in stopped and code not in waiting], needs)
    done = next(code for code, *_, state in listed["rows"] if state == "pending" and code not in left)

    def call(code: str) -> ToolCall:
        return ToolCall("trigger_job", {"job_id": job_of[code]["id"]})

    blocked = sorted(stopped)
    for index, code in enumerate(runs):
        follower = next((a for a, b in needs if b == code and a in runs), None)
        slips: list[tuple[ToolCall, ...]] = [(call(follower), call(code))] if follower else []
        slips += [(call(code), call([*blocked, *waiting][index]))] if index < 2 else []
        slips += [(call(code), call(done))] if index == 0 else []
        yield Step(
            action=call(code), skill="planning" if follower else "policy", difficulty=-0.3 if index else 0.5, slips=(*slips, SKIP)
        )
    data = {"ran": runs, "stopped": stopped, "waiting": waiting}
    all_stopped = {**data, "stopped": {**stopped, **dict.fromkeys(waiting, "hold")}, "waiting": []}
    slip = Finish(answer="", data=all_stopped)
    yield Step(action=Finish(answer=", ".join(runs), data=data), skill="synthesis", difficulty=0.3, slips=((slip,),))


def ordered(codes: Collection[str], needs: Sequence[tuple[str, str]]) -> list[str]:
    """Returns codes so that each stands after those that it needs."""
    found: list[str] = []
    while ready := [c for c in sorted(codes) if c not in found and all(b in found for a, b in needs if a == c and b in codes)]:
        found.append(ready[0])
    return found


def select(query: str) -> ToolCall:
    return ToolCall("query_sql", {"query": query})


TASK: Task = Task(
    title="Run the migrations that may run, in order",
    category="operations",
    domain="ops",
    apps=("sql", "scheduler"),
    languages=("en",),
    patterns=("causal chain", "rules stored as data", "superseded sources", "near miss at a limit", "join under different keys"),
    build=build,
    variants=3,
    annotated=False,
)
