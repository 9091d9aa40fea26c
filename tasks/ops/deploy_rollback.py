"""Find the release that broke a region, take exactly that back on the region's branch, and run the check again.

Deployments are in UTC and logs in local time; a deployment failed, another went to the other region only, and the error occurred
once before without meaning anything. A later release may need the broken one, which takes both back; one that holds a migration
is never reverted, but switched off by its flag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, Reran, gated
from ec2_env.checks.repositories import BranchHolds
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.repo import remote_heads
from ec2_env.workspace.store import Change, Reaction, Workspace
from ec2_env.workspace.world import Person, World

PHRASINGS = {
    "en": (
        "A production check of {repo} is red since yesterday. Take back the release that broke it, by docs/rollback.md.",
        "Yesterday a release of {repo} broke one region. Please roll it back as docs/rollback.md in the repository says.",
        "One region of {repo} throws errors. Find the release behind it and undo it by the rules in docs/rollback.md.",
        "Please get the failing production check of {repo} green again; docs/rollback.md says what may be done.",
        "Something we rolled out of {repo} yesterday was bad. Work out what, and follow docs/rollback.md.",
        "The check of a region of {repo} fails. Find the guilty release, handle it by docs/rollback.md and check again.",
    ),
}
RULES = """# Rolling back

1. Region `{one}` runs the branch `{one_branch}`, region `{two}` runs `{two_branch}`, staging runs `main`.
2. The error of the region's check job in the scheduler names a code. The fault begins with the first of at least three lines
   with this code within ten minutes in the region's log. Single lines mean nothing.
3. Logs are in local time, which is UTC{offset:+d}. `deploys/history.log` is in UTC.
4. The broken release is the last one whose deployment to that region was done before the fault began. Failed ones never ran.
5. Revert its commit on the region's branch. Commits on that branch whose message says that they need it (`Needs:`) are reverted
   first, deployed or not. Nothing else is reverted.
6. A release that holds a file in `migrations/` is never reverted, and neither is what needs it: set its flag (`Flag:`) to `off`
   in `config/flags.conf` on that branch and commit only this.
7. Push the branch, then run the check job of the region once. Leave the other jobs alone.
"""
TOPICS = (
    ("faster totals", "totals"),
    ("keep the filter", "filter"),
    ("read empty carts", "carts"),
    ("export as table", "export"),
    ("sort by date", "sorting"),
    ("show the owner", "owner"),
)
REGIONS = ("east", "west", "north", "south")
TEAM = Person(name="Release Team", email="releases@office.example", role="team", department="Operations")
BOT = Person(name="Rollback Desk", email="rollback@office.example", role="team", department="Operations")


def build(world: World) -> Plan:
    """Draws six releases of two regions; variants: one to revert, two to revert, one to be switched off by its flag."""
    rng, variant = world.rng, world.variant
    repo, (one, two) = rng.choice(("checkout", "catalog", "booking", "search")), rng.sample(REGIONS, 2)
    branch, other = f"live-{one}", f"live-{two}"
    topics = rng.sample(TOPICS, len(TOPICS))
    names = [f"R-{number}" for number in rng.sample(range(2000, 9900), len(topics))]
    offset = rng.choice((-4, -3, 2, 3))
    start = datetime(world.today.year, world.today.month, world.today.day) - timedelta(hours=rng.randrange(9, 13))
    start += timedelta(minutes=rng.randrange(60))
    code = f"E-{rng.randrange(200, 900)}"

    regions = rng.sample([(one, branch), (two, other)], 2)
    files = {f"src/{topic}.py": f"# {topic}\nLIMIT = {rng.randrange(10, 99)}\n" for _, topic in topics}
    files["config/flags.conf"] = "".join(f"{topic} = on\n" for _, topic in topics)
    files["docs/rollback.md"] = RULES.format(
        one=regions[0][0], one_branch=regions[0][1], two=regions[1][0], two_branch=regions[1][1], offset=offset
    )
    first = world.shell.repository(repo, files, author=TEAM, message="Start", protected=("main",), user=BOT)
    needing = rng.choice((4, 5))
    needs = {needing: names[2] if variant == 1 or (variant == 2 and rng.random() < 0.5) else names[1]}
    releases = []
    for index, (subject, topic) in enumerate(topics):
        changes = {f"src/{topic}.py": f"# {topic}\nLIMIT = {rng.randrange(100, 999)}\n"}
        if index != needing:
            changes[f"src/{topic}_view.py"] = f"# view of {topic}\nROWS = {rng.randrange(5, 60)}\n"
        if index == (2 if variant == 2 else rng.choice((1, 3))):
            changes[f"migrations/{rng.randrange(100, 999)}_{topic}.sql"] = f"ALTER TABLE {topic} ADD COLUMN note TEXT;\n"
        message = f"{names[index]}: {subject}\n\nFlag: {topic}"
        message += f"\nNeeds: {needs[index]}" if index in needs else ""
        releases.append((message, changes))
    # Both regions share the first two releases with main, and the other region never gets the third.
    for name, carried in (("main", (0, 1)), (branch, (2, 3, 4, 5)), (other, (3, 4, 5))):
        for index in carried:
            message, changes = releases[index]
            world.shell.commit(repo, dict(changes), author=TEAM, message=message, branch=name, days_ago=7 - index)
        world.shell.pushed(repo, branch=name)
    head = dict(world.workspace.get("repo", repo).branches)[branch]

    _history(world, names, (one, two), start)
    _logs(world, (one, two), code, start + timedelta(hours=offset))
    check = world.scheduler.add(
        f"{repo} check {one}",
        status="failed",
        error=f"{code} rate above the limit",
        failures=3,
        tags=(repo,),
        coming=(f"{code} rate above the limit",) * 20,
    )
    world.scheduler.add(f"{repo} check {two}", tags=(repo,))
    world.scheduler.add(
        f"{repo} check staging",
        status="failed",
        error="E-101 test data is missing",
        tags=(repo,),
        coming=("E-101 test data",) * 9,
    )
    world.scheduler.noise(2)

    expected: dict[str, str | None] = {}
    if variant == 2:
        topic = topics[2][1]
        expected["config/flags.conf"] = files["config/flags.conf"].replace(f"{topic} = on", f"{topic} = off")
    else:
        before = dict(first.tree)
        for index in (2, needing) if variant == 1 else (2,):
            expected |= {path: before.get(path) for path in releases[index][1]}
    fixed = BranchHolds(repo=repo, branch=f"origin/{branch}", base=head, changes=expected)
    reran = Reran({check.id: 1})
    began = (start + timedelta(hours=offset)).isoformat(" ", "minutes")
    return Plan(
        instruction=world.phrase(PHRASINGS, repo=repo),
        report=(
            Slot("release", "number of the broken release, such as R-1234"),
            Slot("fault_began", "when the fault began by the log, YYYY-MM-DD HH:MM"),
            Slot("branch", "name of the branch that you pushed"),
        ),
        checks=(
            Check("taken_back", 0.5, fixed),
            Check("checked_again", 0.2, gated(reran, fixed)),
            Check("reports_release", 0.1, gated(Reported("release", names[2]), fixed)),
            Check("reports_begin", 0.1, gated(Reported("fault_began", began), fixed)),
            Check("reports_branch", 0.1, gated(Reported("branch", branch), fixed)),
        ),
        reactions=(Reaction(partial(_mended, repo, branch, expected), partial(_recover, check.id)),),
        solve=partial(solve, repo),
    )


def _mended(repo: str, branch: str, expected: Mapping[str, str | None], workspace: Workspace, change: Change) -> bool:
    """Says whether a push made the region's branch hold what it has to."""
    if change.table != "push":
        return False
    head = remote_heads(workspace, workspace.get("repo", repo))[f"origin/{branch}"]
    tree = dict(workspace.get("commit", head).tree)
    return all(tree.get(path) == text for path, text in expected.items())


def _recover(job_id: str, workspace: Workspace) -> None:
    workspace.put("job", msgspec.structs.replace(workspace.get("job", job_id), coming=()))


def _history(world: World, names: list[str], regions: tuple[str, str], start: datetime) -> None:
    """Writes the deployments in order of time; the third is the last one that was done before the fault began."""
    rng = world.rng
    near = [-1700, -rng.randrange(140, 170), -rng.randrange(25, 55), -rng.randrange(6, 20), rng.randrange(20, 50), 80]
    rows = []
    for index, (name, minutes) in enumerate(zip(names, near, strict=True)):
        rows.append((minutes, name, regions[0], "failed" if index == 3 else "done"))
        if index != 2:
            rows.append((minutes - rng.randrange(1, 5), name, regions[1], "done"))
    lines = [
        f"{(start + timedelta(minutes=minutes)).isoformat(' ', 'minutes')} {name} {region} {state}\n"
        for minutes, name, region, state in sorted(rows)
    ]
    world.files.write("deploys/history.log", "".join(lines), days_ago=0)


def _logs(world: World, regions: tuple[str, str], code: str, start: datetime) -> None:
    """Writes the logs of both regions and of staging; the code stands alone once before the fault, and in the other logs too."""
    rng = world.rng
    noise = [f"E-{rng.randrange(901, 999)}", "I-100", "I-204"]
    alone = rng.randrange(70, 120)
    hits = {regions[0]: [-alone, 0, 2, 5, 9, 16, 30, 48], regions[1]: [-alone - 90, 75], "staging": [-400, -398, -395, -393]}
    for name, minutes in hits.items():
        rows = [(minute, f"{code} request failed") for minute in minutes]
        rows += [(rng.randrange(-420, 100), f"{rng.choice(noise)} slow answer, retried") for _ in range(9)]
        lines = [f"{(start + timedelta(minutes=at)).isoformat(' ', 'minutes')} {text}\n" for at, text in sorted(rows)]
        world.files.write(f"logs/{name}.log", "".join(lines), days_ago=0)


def solve(repo: str) -> Steps:
    """Reads the rules and the failed check, times the fault, finds the release, takes it back, and checks again."""
    rules = (yield run(f"find logs deploys -type f; cd {repo} && cat docs/rollback.md", "planning"))["output"]
    jobs = yield Step(action=ToolCall("list_jobs", {"status": "failed", "tag": repo}), skill="exploration")
    job = next(row for row in jobs if not row["name"].endswith("staging"))
    staging = next((row for row in jobs if row["name"].endswith("staging")), job)
    shown = yield Step(action=ToolCall("get_job", {"job_id": job["id"]}), skill="exploration")
    region, code = job["name"].split()[-1], shown["error"].split()[0]
    branch = re.findall(rf"egion `{region}` runs (?:the branch )?`([\w-]+)`", rules)[0]
    offset = int(re.findall(r"UTC([+-]\d+)", rules)[0])
    log = (yield run(f"grep -- {code} logs/{region}.log", "exploration"))["output"]
    times = [datetime.fromisoformat(line[:16]) for line in log.splitlines()]
    began = next(a for a, c in zip(times, times[2:], strict=False) if c - a <= timedelta(minutes=10))
    history = (yield run("cat deploys/history.log", "exploration"))["output"]
    done = [
        (datetime.fromisoformat(line[:16]), line.split()[2])
        for line in history.splitlines()
        if line.split()[3:] == [region, "done"]
    ]

    def running(moment: datetime) -> str:
        return str([name for at, name in done if at < moment][-1])

    release = running(began - timedelta(hours=offset))
    wrong = list(dict.fromkeys([running(began), running(times[0] - timedelta(hours=offset))]))
    yield run(f"cd {repo} && git checkout {branch}", "instruction")
    commits = yield run(f"cd {repo} && git log", "exploration")
    found = re.findall(r"commit (\w{7}).*?\n\n    (R-\d+):(.*?)(?=\ncommit |\Z)", commits["output"], re.DOTALL)
    ids = {name: commit for commit, name, _ in found}
    stat = (yield run(f"cd {repo} && git show --name-only {ids[release]}", "exploration"))["output"]
    needing = [name for _, name, text in found if f"Needs: {release}" in text]
    others = [line(f"cd {repo} && git revert {ids[name]}") for name in wrong if name != release]
    together = line(f"cd {repo} && git revert {' '.join(ids[name] for name in [*needing, release])}")
    if "migrations/" in stat:
        flag = re.findall(r"Flag: (\w+)", stat)[0]
        yield run(
            f"cd {repo} && sed -i 's/^{flag} = on$/{flag} = off/' config/flags.conf && git commit -am 'Switch off {flag}'",
            "policy",
            0.8,
            ((together,), *((call,) for call in others)),
        )
    else:
        slips = [(call,) for call in others]
        slips += [(line(f"cd {repo} && git revert {ids[release]}"),)] if needing else []
        yield Step(action=together, skill="consistency", difficulty=0.8, slips=tuple(slips))
    push, check = line(f"cd {repo} && git push origin {branch}"), ToolCall("trigger_job", {"job_id": job["id"]})
    wild = line(f"cd {repo} && git push origin {branch}:rollback")
    yield Step(action=push, skill="instruction", slips=((check, push), (wild,), SKIP))
    red = ToolCall("trigger_job", {"job_id": staging["id"]})
    yield Step(action=check, skill="instruction", slips=((check, red), SKIP))
    data = {"release": release, "fault_began": began.isoformat(" ", "minutes"), "branch": branch}
    single = {**data, "fault_began": times[0].isoformat(" ", "minutes")}
    yield Step(action=Finish(answer=release, data=data), skill="synthesis", slips=((Finish(answer=release, data=single),),))


def line(command: str) -> ToolCall:
    return ToolCall("run_command", {"command": command})


def run(command: str, skill: Any, difficulty: float = 0.0, slips: tuple[Any, ...] = ()) -> Step:
    return Step(action=line(command), skill=skill, difficulty=difficulty, slips=slips)


TASK: Task = Task(
    title="Take back the release that broke a region",
    category="operations",
    domain="ops",
    apps=("shell", "files", "scheduler"),
    languages=("en",),
    patterns=("causal chain", "rules stored as data", "join under different keys", "distractors", "near miss at a limit"),
    build=build,
    variants=3,
    annotated=False,
)
