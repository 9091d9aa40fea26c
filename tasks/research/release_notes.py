"""Find out which releases of a library behave in a certain way, and pin a project to the right one.

The user describes the behavior, an issue knows it by a number, and the changelogs by the number of the change that closed the
issue: it came with one version, was taken out by a later one and perhaps brought back, and was back-ported. The async client has
the same story with other numbers, versions were withdrawn or want a newer Python, and whether the newest or the oldest version
is to be taken stands in the project's own rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileBecame, Reported, gated
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "The sync client of {lib} {what}. Find out since when, and pin {folder} as its UPGRADES.md says: {wish}.",
        "In {lib}, the sync client {what}. Which versions do? Then set the pin in {folder} by its own rules; {wish}.",
        "Some versions of {lib} have a sync client that {what}. {wish}: pin {folder} to the version that its UPGRADES.md allows.",
        "Please look up which {lib} versions have a sync client that {what}, and pin {folder} by its rules, as {wish}.",
        "Update the {lib} pin in {folder} by its UPGRADES.md. It matters that the sync client {what}: {wish}.",
        "We need the history of this in {lib}: its sync client {what}. Pin {folder} accordingly, by its own rules; {wish}.",
    )
}
LIBRARIES = ("plumline", "quayside", "tallyho", "wicket", "brambles", "sextant")
BEHAVIORS = (
    ("retries a refused request by itself", "Retry refused requests", "refused"),
    ("closes idle connections after a minute", "Close idle connections", "idle"),
    ("reads times without a zone as UTC", "Read zoneless times as UTC", "zone"),
    ("follows redirects to other hosts", "Follow redirects to other hosts", "redirects"),
)
WISHES = {True: "we rely on it", False: "we cannot have it"}
RULES = (
    "Pin {lib} to one version with ==. Of the versions that do what the project needs, take the one with the {end} number that\n"
    "- is {low} or later and below {high},\n- runs on Python {python},\n- was not yanked and is no pre-release.\n"
    "Leave every other line of requirements.txt as it is.\n"
)
OTHERS = ("anvilkit==4.2.0", "moorhen==0.9.13", "sandglass==2.2.1", "teasel==7.1.0", "corncrake==1.9.2")
NOISE = ("Faster start", "Clearer error for a missing file", "Documentation of the cache", "Fewer allocations", "Type hints")
MAIN = ("2.0.0", "2.1.0", "2.2.0", "2.2.1", "2.3.0", "2.4.0", "2.4.1", "2.5.0", "2.6.0", "2.6.1", "2.7.0", "2.8.0rc1")
KEPT = ("1.9.0", "1.9.1", "1.9.2", "1.9.3", "1.9.4", "1.9.5", "1.9.6")
RELEASE = re.compile(r"^(\S+) \| \S+ \| Python (\S+)\+ \| (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a project allows: bounds (low inclusive, high exclusive), its Python, and whether the newest version is taken."""

    low: str
    high: str
    python: str
    newest: bool


@cache
def order(version: str) -> tuple[int, ...]:
    """Returns what versions are sorted by; a pre-release like the release that it precedes."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("rc")[0]))


def fitting(
    having: Collection[str], releases: Mapping[str, tuple[str, str]], rules: Rules, wanted: bool, out: str = "yanked"
) -> str:
    """Returns the version to pin: `releases` gives each version's least Python and state; empty if none fits."""
    fits = [
        version
        for version, (python, state) in releases.items()
        if (version in having) == wanted
        and order(rules.low) <= order(version) < order(rules.high)
        and order(python) <= order(rules.python)
        and state != out
        and "rc" not in version
    ]
    return (max if rules.newest else min)(fits, key=order, default="")


def build(world: World) -> Plan:
    """Draws the story of a behavior and a project's rules; variants: newest with it, newest without it, oldest with it."""
    rng = world.rng
    lib, (what, title, word) = rng.choice(LIBRARIES), rng.choice(BEHAVIORS)
    wanted, newest = world.variant != 1, world.variant != 2
    numbers = rng.sample(range(200, 1000), 14)
    sync, twin = (_story(world, came) for came in rng.sample(range(2, 5), 2))
    changes = {version: [(rng.choice(numbers[8:]), rng.choice(NOISE))] for version in (*MAIN, *KEPT)}
    for (came, gone, again, ported), first, suffix in ((sync, 0, "sync"), (twin, 4, "async")):
        change, back, out, anew = numbers[first : first + 4]
        changes[MAIN[came]].append((change, f"{title} ({suffix})"))
        changes[KEPT[ported]].append((back, f"Back-port of #{change}"))
        if gone:
            changes[MAIN[gone]].append((out, f"Revert #{change}: it surprised too many"))
        if again:
            changes[MAIN[again]].append((anew, f"Bring #{change} back, with a warning"))
    came, gone, again, ported = sync
    having = [v for n, v in enumerate(MAIN) if came <= n < (gone or 99) or (again and n >= again)] + [*KEPT[ported:]]

    rules = Rules(rng.choice(("1.9.0", "1.9.2", "2.0.0")), rng.choice(("2.5.0", "2.6.1", "2.7.0", "3.0.0")), "3.10", newest)
    newer = rng.randrange(7, 12)
    releases = {v: ("3.11" if v in MAIN[newer:] else "3.9", "pre-release" if "rc" in v else "released") for v in (*MAIN, *KEPT)}
    for version in (KEPT[ported], fitting(having, releases, rules, wanted)):
        yanked = {**releases, version: (releases[version][0], "yanked")} if version else releases
        if rng.random() < 0.6 and fitting(having, yanked, rules, wanted):
            releases = yanked
    pin = fitting(having, releases, rules, wanted)
    backport = next(v for v in KEPT[ported:] if releases[v][1] == "released")

    issues = rng.sample(range(1000, 2000), 4)
    _web(world, lib, title, changes, releases, issues, numbers, MAIN[came - 1])
    folder = rng.choice(("billing", "gateway", "mapper", "intake"))
    lines = [*rng.sample(OTHERS, 3), f"{lib}==1.8.{rng.randrange(9)}"]
    rng.shuffle(lines)
    lines.insert(0, "# pinned by hand, see UPGRADES.md")
    bounds = {"low": rules.low, "high": rules.high, "python": rules.python, "end": "highest" if newest else "lowest"}
    world.files.write(f"{folder}/UPGRADES.md", RULES.format(lib=lib, **bounds))
    world.files.write(f"{folder}/requirements.txt", "\n".join(lines) + "\n")
    world.files.write(f"{folder}_old/requirements.txt", f"{lib}==1.7.0\n")
    content = "\n".join(f"{lib}=={pin}" if line.startswith(f"{lib}==") else line for line in lines) + "\n"
    found = Reported("introduced", MAIN[came])
    return Plan(
        instruction=world.phrase(PHRASINGS, lib=lib, what=what, wish=WISHES[wanted], folder=folder),
        report=(
            Slot("introduced", "2.x version with which it came"),
            Slot("removed", "2.x version that first took it out, or none"),
            Slot("backported", "first 1.9.x version with it that was not yanked"),
            Slot("pin", "version that is pinned now"),
        ),
        checks=(
            Check("pinned", 0.4, FileBecame(f"{folder}/requirements.txt", content)),
            Check("introduced", 0.2, found),
            Check("removed", 0.1, gated(Reported("removed", MAIN[gone] if gone else "none"), found)),
            Check("backported", 0.2, gated(Reported("backported", backport), found)),
            Check("pin", 0.1, gated(Reported("pin", pin), FileBecame(f"{folder}/requirements.txt", content))),
        ),
        solve=partial(solve, lib, word, wanted, folder),
    )


def _story(world: World, came: int) -> tuple[int, int, int, int]:
    """Draws when a behavior came, was taken out, brought back (0: never) and back-ported, as positions of versions."""
    rng = world.rng
    gone = rng.choice((0, came + 2, came + 3))
    again = rng.choice((0, gone + 2)) if gone else 0
    return came, gone, again, rng.randrange(1, 5)


def _web(
    world: World,
    lib: str,
    title: str,
    changes: Mapping[str, Sequence[tuple[int, str]]],
    releases: Mapping[str, tuple[str, str]],
    issues: Sequence[int],
    numbers: Sequence[int],
    guess: str,
) -> None:
    """Writes the project's site: issues, one of them a duplicate, two changelogs, the list of releases, a hasty blog."""
    base, page = f"https://{lib}.example", world.web.page
    sync, twin, duplicate, other = (f"{base}/issues/{number}" for number in issues)
    logs = [
        ("changelog 2.x", f"{base}/changelog/2"),
        ("changelog 1.9", f"{base}/changelog/1.9"),
        ("releases", f"{base}/releases"),
    ]
    text = "Closed by change #{n}. A back-port to 1.9 was asked for.\nComment: it is in {guess}, I believe."
    page(sync, f"{lib} issue: {title} [sync]", text.format(n=numbers[0], guess=guess), links=logs)
    page(twin, f"{lib} issue: {title} [async]", text.format(n=numbers[4], guess=guess), links=logs)
    page(duplicate, f"{lib} issue: {title} please", "Closed as a duplicate.", links=[("duplicate of", sync)])
    page(other, f"{lib} issue: wrong color in logs", "Closed: works as designed.")
    for versions, (_, url) in zip((MAIN, KEPT), logs, strict=False):
        blocks = [f"## {v}\n" + "\n".join(f"- #{n} {note}" for n, note in changes[v]) for v in reversed(versions)]
        page(url, f"{lib} {_}", "\n\n".join(blocks))
    stamps = [world.day(-900 + 40 * n) for n in range(len(releases))]
    rows = [f"{v} | {stamp} | Python {p}+ | {state}" for (v, (p, state)), stamp in zip(releases.items(), stamps, strict=True)]
    page(f"{base}/releases", f"{lib} releases", "version | date | Python | state\n" + "\n".join(rows))
    page(f"https://blog.example/{lib}", f"What is new in {lib} 2", f"{title}: coming with {guess}, as we hear.")
    world.web.noise(2)


def solve(lib: str, word: str, wanted: bool, folder: str) -> Steps:
    """Finds the issue and its change, reads both changelogs and the releases, and pins by the project's rules."""
    found = yield Step(action=ToolCall("search_web", {"query": f"{lib} issue {word}"}), skill="planning")
    hits = {hit["title"].rpartition(" ")[2]: hit["url"] for hit in found["results"]}
    issue = yield Step(
        action=ToolCall("open_page", {"url": hits["[sync]"]}),
        skill="disambiguation",
        slips=((ToolCall("open_page", {"url": hits["[async]"]}),),),
    )
    change, guess = re.findall(r"#(\d+)", issue["text"])[0], re.findall(r"in (\S+), I", issue["text"])[0]
    links = {link["text"]: link["url"] for link in issue["links"]}
    main = yield Step(action=ToolCall("open_page", {"url": links["changelog 2.x"]}), skill="exploration")
    kept = yield Step(action=ToolCall("open_page", {"url": links["changelog 1.9"]}), skill="exploration")
    table = yield Step(action=ToolCall("open_page", {"url": links["releases"]}), skill="exploration")
    releases = {version: (python, state) for version, python, state in RELEASE.findall(table["text"])}
    having, first, removed = history(main["text"], change)
    ported = history(kept["text"], change)[0]
    backport = next(v for v in ported if releases[v][1] == "released")

    yield Step(action=ToolCall("list_files", {"folder": folder}), skill="exploration")
    text = (yield Step(action=ToolCall("read_file", {"path": f"{folder}/UPGRADES.md"}), skill="policy"))["content"]
    low, high = re.findall(r"is (\S+) or later and below (\S+),", text)[0]
    rules = Rules(low, high, re.findall(r"Python (\S+),", text)[0], "highest" in text)
    path = f"{folder}/requirements.txt"
    old = (yield Step(action=ToolCall("read_file", {"path": path}), skill="exploration"))["content"]

    def pinned(version: str) -> ToolCall:
        return ToolCall("write_file", {"path": path, "content": re.sub(rf"^{lib}==.*$", f"{lib}=={version}", old, flags=re.M)})

    pin = fitting([*having, *ported], releases, rules, wanted)
    wide = Rules("0", "9", "9", rules.newest)
    ends = Rules(low, high, rules.python, not rules.newest)
    wrong = [
        fitting([*having, *ported], releases, rules, wanted, out=""),
        fitting([*having, *ported], releases, wide, wanted),
        fitting([*having, *ported], releases, ends, wanted),
        fitting([*having, *ported], releases, rules, not wanted),
        guess,
    ]
    yield Step(
        action=pinned(pin),
        skill="calculation",
        difficulty=0.8,
        slips=(*((pinned(version),) for version in dict.fromkeys(wrong) if version not in ("", pin)), SKIP),
    )
    data = {"introduced": first, "removed": removed, "backported": backport, "pin": pin}
    early = {**data, "backported": ported[0]} if ported[0] != backport else {**data, "removed": guess}
    yield Step(
        action=Finish(answer=f"{lib} {pin}", data=data),
        skill="synthesis",
        slips=((Finish(answer="", data={**data, "introduced": guess}),), (Finish(answer="", data=early),)),
    )


def history(changelog: str, change: str) -> tuple[list[str], str, str]:
    """Returns the versions that hold a change, oldest first, the first of them, and the first that takes it out or "none"."""
    having, removed, on, version = [], "none", False, ""
    blocks = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for block in reversed(blocks):
        version = block.split()[0]
        for number, note in re.findall(r"^- #(\d+) (.+)$", block, re.MULTILINE):
            if number == change or f"#{change}" in note:
                on = not note.startswith("Revert")
                removed = version if not on and removed == "none" else removed
        having += [version] if on else []
    return having, having[0] if having else "none", removed


TASK: Task = Task(
    title="Pin a library by the history of a behavior",
    category="search",
    domain="research",
    apps=("web", "files"),
    languages=("en",),
    patterns=("join under different keys", "rules stored as data", "superseded sources", "near miss at a limit", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
