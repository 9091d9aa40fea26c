"""Quarantine exactly the tests that are flaky by the rule, take healed ones off the list, and report real regressions.

A test is flaky if it both passed and failed on enough commits of main within some days. Aborted runs and other branches do not
count, one commit lies at the limit of days, a test was renamed in between, and critical tests go to a list for review instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, ReportedMap, ReportedSet, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please bring the quarantine list of the {suite} tests up to date from the run logs, by {suite}/ci/flaky.md.",
        "Which {suite} tests are flaky, and which are really broken? Apply {suite}/ci/flaky.md to the run logs.",
        "Update the quarantine of {suite} by the rules in {suite}/ci/flaky.md and tell me the real regressions.",
        "The {suite} builds are noisy. Quarantine what is flaky by {suite}/ci/flaky.md and report what is really broken.",
        "Do this week's review of unstable {suite} tests as {suite}/ci/flaky.md describes.",
        "Go through the run logs of {suite} and set the quarantine list right; {suite}/ci/flaky.md has the rules.",
    ),
}
RULES = """# Unstable tests

1. Runs count if their branch is main, their state is complete, and their date is at most {days} days before today.
2. A test is flaky if there are at least two commits on which it both passed and failed in runs that count.
3. `renames.txt` says which tests were renamed; results under the old name belong to the new one.
4. Flaky tests go on `quarantine.txt`, one a line, by their present name. Tests on it that passed in all runs that count come off;
   the others on it stay.
5. Tests that begin with `{critical}::` are never quarantined. Flaky ones go into `{folder}/review.txt`, one a line; without any
   there is no such file.
6. A regression is a test that failed in all runs that count from some commit on until the newest, and passed in all before. It is
   not quarantined, but reported with the first commit on which it failed.
"""
AREAS = ("pay", "cart", "search", "login", "export", "stock", "mail")
MIXED = ("flaky", "renamed", "aborted", "old", "branch", "listed", "shaky", "critical")
PARTS = ("rounding", "merge", "ranking", "expiry", "columns", "reserve", "retry", "paging", "limits", "dates", "labels", "totals")


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: its header, and its results by test."""

    commit: str
    branch: str
    day: date
    state: str
    passed: Mapping[str, bool]


def build(world: World) -> Plan:
    """Draws runs of five commits; variants: plain, the oldest commit still counts, a critical test and a second regression."""
    rng, variant = world.rng, world.variant
    suite = rng.choice(("web", "mobile", "billing", "portal"))
    folder, days = f"{suite}/ci", rng.randrange(9, 16)
    critical, *areas = rng.sample(AREAS, len(AREAS))
    parts = iter(rng.sample(PARTS, len(PARTS)))
    roles = (
        "flaky",
        "renamed",
        "aborted",
        "old",
        "branch",
        "broken",
        "recovered",
        "healed",
        "listed",
        "shaky",
        "critical",
        "late",
    )
    names = {role: f"{critical if role == 'critical' else rng.choice(areas)}::{next(parts)}" for role in roles}
    former = f"{names['renamed']}_v1"
    ids = [f"{rng.randrange(16**7):07x}" for _ in range(5)]
    # Commits on which a test both passed and failed; 4 is the branch, 3 the newest of main, 0 the one at the limit of days.
    mixed = {
        "flaky": (1, 3),
        "renamed": (1, rng.choice((2, 3))),
        "aborted": (1,),
        "old": (2, 0),
        "branch": (2, 4),
        "listed": rng.choice(((1, 2), (2, 3))),
        "shaky": (rng.choice((1, 2)),),
        "critical": (1, 3) if variant else (3, 4),
    }
    broken = {"broken": (rng.choice((2, 3)), 4), "recovered": (2, 3)}
    if variant == 2:
        broken["late"] = (rng.choice((2, 3)), 4)
    ages = (days if variant == 1 else days + 1, *sorted(rng.sample(range(2, days), 2), reverse=True), 1, 1)
    number, topic = rng.randrange(2000, 8000), f"topic-{rng.randrange(100, 999)}"
    for index, (commit, count) in enumerate(zip(ids, (2, 3, 2, 3, 2), strict=True)):
        bad = {role: rng.randrange(count - (index == 3)) for role in mixed}
        for turn in range(count):
            state = "aborted" if (index, turn) == (3, 2) else "complete"
            lines = []
            for role in rng.sample(roles, len(roles)):
                first, stop = broken.get(role, (9, 9))
                failed = first <= index < stop or (index in mixed.get(role, ()) and bad[role] == turn)
                failed = role in ("aborted", "healed", "late") if state == "aborted" else failed
                name = former if role == "renamed" and index < 2 else names[role]
                lines.append(f"{'FAIL' if failed else 'PASS'} {name}\n")
            branch = "main" if index < 4 else topic
            head = f"commit {commit}\nbranch {branch}\ndate {world.day(-ages[index])}\nstate {state}\n\n"
            number += rng.randrange(1, 30)
            world.files.write(f"{folder}/runs/{number}.log", head + "".join(lines), days_ago=ages[index])
    world.files.write(f"{folder}/flaky.md", RULES.format(days=days, critical=critical, folder=folder), days_ago=90)
    world.files.write(f"{folder}/renames.txt", f"{former} -> {names['renamed']}\n", days_ago=5)
    held = rng.sample([names[role] for role in ("healed", "listed", "shaky")], 3)
    world.files.write(f"{folder}/quarantine.txt", "".join(f"{name}\n" for name in held), days_ago=8)
    world.files.write(f"{folder}/owners.md", "Runs are started by the build server after each push.\n")

    added = [names["flaky"], names["renamed"], *([names["old"]] if variant == 1 else [])]
    listed = FileLines(path=f"{folder}/quarantine.txt", rows=[(name,) for name in (*added, names["listed"], names["shaky"])])
    review = FileLines(path=f"{folder}/review.txt", rows=[(names["critical"],)])
    regressions = {names[role]: ids[broken[role][0]] for role in ("broken", "late") if role in broken}
    return Plan(
        instruction=world.phrase(PHRASINGS, suite=suite),
        report=(
            Slot("regressions", "mapping from each regression to the first commit on which it failed"),
            Slot("added", "list of the tests that were put on the quarantine list"),
            Slot("removed", "list of the tests that came off the quarantine list"),
        ),
        checks=(
            Check("listed", 0.4 if variant else 0.55, listed),
            *([Check("reviewed", 0.15, gated(review, mostly(listed)))] if variant else []),
            Check("reports_regressions", 0.25, gated(ReportedMap("regressions", regressions), mostly(listed))),
            Check("reports_added", 0.1, gated(ReportedSet("added", added), mostly(listed))),
            Check("reports_removed", 0.1, gated(ReportedSet("removed", [names["healed"]]), mostly(listed))),
        ),
        solve=partial(solve, folder, world.today),
    )


def mixed_on(runs: Sequence[Ran], test: str) -> int:
    """Returns the number of commits on which a test both passed and failed."""
    results: dict[str, set[bool]] = {}
    for one in runs:
        if test in one.passed:
            results.setdefault(one.commit, set()).add(one.passed[test])
    return sum(len(seen) == 2 for seen in results.values())


def first_broken(runs: Sequence[Ran], test: str) -> str | None:
    """Returns the commit from which on a test failed in all runs, having passed in all before; runs are in order of time."""
    found = [(one.commit, one.passed[test]) for one in runs if test in one.passed]
    failed = [index for index, (_, passed) in enumerate(found) if not passed]
    if not failed or failed[0] == 0 or len(failed) < len(found) - failed[0] or found[failed[0]][0] == found[failed[0] - 1][0]:
        return None
    return found[failed[0]][0]


def solve(folder: str, today: date) -> Steps:
    """Reads rules and logs, drops the runs that do not count, joins the renamed test, and writes both lists."""
    listing = yield run(f"find {folder} -type f", "planning")
    paths = sorted(listing["output"].split())
    rules = (yield run(f"cat {folder}/flaky.md {folder}/renames.txt {folder}/quarantine.txt", "exploration"))["output"]
    days, critical = int(re.findall(r"at most (\d+) days", rules)[0]), re.findall(r"begin with `(\w+)::`", rules)[0]
    names = dict(re.findall(r"^(\S+) -> (\S+)$", rules, re.MULTILINE))
    held = [line for line in rules.splitlines() if re.fullmatch(r"\w+::\w+", line)]
    logs = [path for path in paths if "/runs/" in path]
    everything: list[Ran] = []
    plain: list[Ran] = []
    for start in range(0, len(logs), 3):
        text = (yield run(f"cat {' '.join(logs[start : start + 3])}", "exploration"))["output"]
        pattern = r"commit (\w+)\nbranch (\S+)\ndate (\S+)\nstate (\w+)\n\n((?:(?:PASS|FAIL) \S+\n)+)"
        for commit, branch, day, state, lines in re.findall(pattern, text):
            results = {name: word == "PASS" for word, name in re.findall(r"(\w+) (\S+)\n", lines)}
            plain.append(Ran(commit, branch, date.fromisoformat(day), state, results))
            joined = {names.get(name, name): passed for name, passed in results.items()}
            everything.append(Ran(commit, branch, date.fromisoformat(day), state, joined))

    def counts(one: Ran) -> bool:
        return one.branch == "main" and one.state == "complete" and one.day >= today - timedelta(days=days)

    runs = [one for one in everything if counts(one)]
    tests = sorted(runs[-1].passed)
    flaky = [test for test in tests if mixed_on(runs, test) >= 2]
    off = [test for test in held if all(one.passed.get(test, True) for one in runs)]
    stay = [test for test in held if test not in off]
    added = [test for test in flaky if test not in held and not test.startswith(f"{critical}::")]
    review = [test for test in flaky if test.startswith(f"{critical}::")]
    broken = {test: commit for test in tests if (commit := first_broken(runs, test))}
    careless = [test for test in tests if mixed_on(everything, test) >= 2 and test not in held]
    unjoined = [test for test in added if mixed_on([one for one in plain if counts(one)], test) >= 2]

    def written(kept: Sequence[str], path: str = "quarantine.txt") -> ToolCall:
        return ToolCall("write_file", {"path": f"{folder}/{path}", "content": "".join(f"{name}\n" for name in kept)})

    wrong = [[*stay, *careless], [*stay, *unjoined], [*held, *added], [*stay, *added, *review, *broken]]
    right = [*stay, *added]
    yield Step(
        action=written(right),
        skill="consistency",
        difficulty=0.9,
        slips=tuple((written(kept),) for kept in wrong if set(kept) != set(right)),
    )
    if review:
        yield Step(
            action=written(review, "review.txt"),
            skill="instruction",
            difficulty=0.3,
            slips=((written([*review, *added], "review.txt"),), SKIP),
        )
    data = {"regressions": broken, "added": added, "removed": off}
    last = {**data, "regressions": dict.fromkeys(broken, runs[-1].commit + "0")}
    none = {**data, "removed": []}
    yield Step(
        action=Finish(answer=", ".join(broken), data=data),
        skill="synthesis",
        difficulty=0.4,
        slips=tuple((Finish(answer="", data=other),) for other in (last, none)),
    )


def run(command: str, skill: Any) -> Step:
    return Step(action=ToolCall("run_command", {"command": command}), skill=skill)


TASK: Task = Task(
    title="Quarantine flaky tests and report regressions",
    category="operations",
    domain="ops",
    apps=("shell", "files"),
    languages=("en",),
    patterns=("rules stored as data", "near miss at a limit", "distractors", "superseded sources"),
    build=build,
    variants=3,
    annotated=False,
)
