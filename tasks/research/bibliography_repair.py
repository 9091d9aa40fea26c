"""Match messy references with the right records of an index, and write the clean list that a style sheet asks for.

One entry cites a preprint that has been published under another title, one paper was retracted, an erratum turns the order of two
authors round, an abstract and an article have one title, and two entries are the same paper. Which version is to be cited is
another rule in each variant.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, ReportedSet, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.words import FAMILY
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "The references of our {topic} paper are a mess. Clean them up as {folder}/style.md says; the web index has the records.",
        "Please repair {folder}/references_raw.txt for the {topic} paper: find the records in the index and follow the style.",
        "Write the clean reference list of the {topic} manuscript in {folder}, as its style sheet asks, from the web index.",
        "Match every entry of {folder}/references_raw.txt ({topic} paper) with the index and write the clean file by our style.",
        "We submit the {topic} paper soon: turn the raw references in {folder} into the clean file that style.md describes.",
        "Could you fix the bibliography in {folder} for the {topic} paper, going by the style sheet and the index on the web?",
    )
}
TOPICS = ("tide-gauge", "night-shift", "heat-pump", "street-noise", "seed-bank", "ferry-traffic")
TITLES = (
    "Anchored Estimates of Slow Drift",
    "Bounded Memory in Field Recorders",
    "Coupled Models of Harbor Traffic",
    "Delayed Reports and Their Repair",
    "Echo Removal without Reference Signals",
    "Frugal Sampling along the Coast",
    "Gradual Change in Dense Networks",
    "Hybrid Clocks for Remote Stations",
)
LATER = "Robust Clocks at Unattended Sites"
VENUES = ("Journal of Field Systems", "Measurement Letters", "Annals of Sensing", "Coastal Engineering Review")
PREPRINTS = "OpenDraft"
RULES = (
    "Cite the published version of a paper, with its own year and venue; a preprint only if nothing was published.",
    "Cite the published version of a paper, with its venue and DOI, but with the year of its preprint if there is one; "
    "a preprint only if nothing was published.",
    "Cite the published version of a paper if it appeared in {cutoff} or earlier; otherwise its preprint, if there is one.",
)
STYLE = (
    "# References\n\nWrite {folder}/references.txt, one line an entry: key | first author | year | venue | DOI. "
    "The first author as in the index (Surname, X.).\n\n"
    "- {rule}\n- What an erratum corrects holds, but the DOI is that of the paper.\n- Leave out what was retracted.\n"
    "- If two entries cite one paper, keep the one that comes first in the raw file and leave out the other.\n"
    "- Years, initials and spelling in the raw file are not to be trusted; pages are.\n"
)
INDEX = "https://index.example"
RAW = re.compile(r"\[(\w+)\] (.+)")
FORMS = (
    "[{key}] {name}, {title}. {venue} {year}, pp. {pages}",
    "[{key}] {title} / {name} et al. - {venue}, {year}; {pages}",
    "[{key}] {name} ({year}). {title}, {pages}.",
)
READ = (
    re.compile(r"(?P<name>\w+), (?P<title>[a-z -]+)\. .* pp\. (?P<pages>.+)"),
    re.compile(r"(?P<title>[a-z -]+) / (?P<name>\w+) et al\. - .*; (?P<pages>.+)"),
    re.compile(r"(?P<name>\w+) \(\d+\)\. (?P<title>[a-z -]+), (?P<pages>.+)\."),
)


@dataclass(frozen=True, slots=True)
class Record:
    """One paper's record in the index."""

    title: str
    first: str
    second: str
    year: int
    venue: str
    pages: str
    doi: str

    def row(self, key: str) -> tuple[str, str, int, str, str]:
        return key, self.first, self.year, self.venue, self.doi


def build(world: World) -> Plan:
    """Draws seven papers and their records, the messy entries, and one of the three rules about versions."""
    rng = world.rng
    topic, variant = rng.choice(TOPICS), world.variant
    folder = f"{topic.split('-')[0]}_paper"
    surnames, dois = rng.sample(FAMILY["en"], 14), rng.sample(range(1000, 10_000), 14)
    titles = rng.sample(TITLES, 7)
    cutoff = world.today.year - rng.randrange(2, 6)

    def record(number: int, year: int) -> Record:
        first, second = (f"{name}, {rng.choice('ABCDEGHJKLMPRST')}." for name in surnames[2 * number : 2 * number + 2])
        start = rng.randrange(20, 700)
        pages, doi = f"{start}-{start + rng.randrange(9, 30)}", f"10.5555/{dois[number]}"
        return Record(titles[number], first, second, year, rng.choice(VENUES), pages, doi)

    plain, moved, swapped, gone, article, close, only = (record(n, cutoff - rng.randrange(1, 9)) for n in range(7))
    moved, close = replace(moved, year=cutoff, title=LATER), replace(close, year=cutoff + 1)
    drafts = {
        moved: _draft(moved, titles[1], dois[7], rng.choice((1, 2))),
        close: _draft(close, close.title, dois[8], rng.choice((1, 2))),
    }
    only = _draft(only, only.title, dois[6], 0)
    abstract = replace(article, pages=f"{article.year % 100 + 3}-{article.year % 100 + 4}", doi=f"10.5555/{dois[9]}")
    abstract = replace(abstract, venue="Book of Abstracts", year=article.year - 1)
    right = replace(swapped, first=swapped.second, second=swapped.first)
    _index(world, (plain, gone, article, abstract, only), swapped, drafts, gone, dois[10:])

    entries = [plain, drafts[moved], swapped, gone, plain, rng.choice((article, abstract)), drafts[close], only]
    if rng.random() < 0.5:
        entries[6] = close
    keys = [f"{entry.first[:3].lower()}{number}" for entry, number in zip(entries, rng.sample(range(10, 100), 8), strict=True)]
    order = rng.sample(range(8), 8)
    raw = [_messy(world, keys[i], entries[i]) for i in order]
    twin = max((0, 4), key=order.index)
    versions = [plain, moved, right, gone, plain, entries[5], close, only]
    if variant == 1:
        versions[1], versions[6] = replace(moved, year=drafts[moved].year), replace(close, year=drafts[close].year)
    elif variant == 2:
        versions[6] = drafts[close]
    dropped = [keys[3], keys[twin]]
    rows = [versions[i].row(keys[i]) for i in order if keys[i] not in dropped]
    replaced = [keys[i] for i in (1, 6) if entries[i].venue == PREPRINTS != versions[i].venue]

    rule = RULES[variant].format(cutoff=cutoff)
    world.files.write(f"{folder}/style.md", STYLE.format(folder=folder, rule=rule), days_ago=3)
    world.files.write(f"{folder}/references_raw.txt", "\n".join(raw) + "\n", days_ago=2)
    world.files.write("old_project/style.md", STYLE.format(folder="old_project", rule=RULES[(variant + 1) % 2]), days_ago=400)
    written = FileLines(path=f"{folder}/references.txt", rows=rows)
    return Plan(
        instruction=world.phrase(PHRASINGS, topic=topic, folder=folder),
        report=(
            Slot("dropped", "list of the keys that are left out"),
            Slot("replaced", "list of the keys that cited a preprint and now cite its published version"),
        ),
        checks=(
            Check("clean_file", 0.7, written),
            Check("dropped", 0.15, gated(ReportedSet("dropped", dropped), mostly(written))),
            Check("replaced", 0.15, gated(ReportedSet("replaced", replaced), mostly(written))),
        ),
        solve=partial(solve, folder),
    )


def _draft(paper: Record, title: str, number: int, years: int) -> Record:
    """Returns the preprint of a paper."""
    doi = f"10.5555/{number}"
    return replace(paper, title=title, year=paper.year - years, venue=PREPRINTS, pages="preprint", doi=doi)


def _index(
    world: World, papers: Sequence[Record], swapped: Record, drafts: Mapping[Record, Record], gone: Record, dois: Sequence[int]
) -> None:
    """Writes the records: papers, preprints linked with what they became, an erratum and a retraction."""

    def show(paper: Record, *links: tuple[str, str]) -> None:
        text = f"Authors: {paper.first}; {paper.second}\nYear: {paper.year}\nVenue: {paper.venue}\nDOI: {paper.doi}"
        world.web.page(url(paper.doi), paper.title, f"{text}\nPages: {paper.pages}", links=links)

    def url(doi: str) -> str:
        return f"{INDEX}/r/{doi.partition('/')[2]}"

    erratum, notice = (f"10.5555/{number}" for number in dois[:2])
    for paper in papers:
        show(paper, *([("retraction notice", url(notice))] if paper is gone else []))
    show(swapped, ("erratum", url(erratum)))
    for paper, draft in drafts.items():
        show(paper, ("preprint", url(draft.doi)))
        show(draft, ("published version", url(paper.doi)))
    text = f"Corrects {swapped.doi}: the first author is {swapped.second}, the second {swapped.first} DOI: {erratum}"
    world.web.page(url(erratum), f"Erratum: {swapped.title}", text)
    world.web.page(url(notice), f"Retracted: {gone.title}", f"{gone.doi} was retracted by its editors. DOI: {notice}")
    world.web.noise(2)


def _messy(world: World, key: str, paper: Record) -> str:
    """Writes an entry as a careless author would: lower case, one slip of the keys, a wrong year."""
    rng, words = world.rng, paper.title.lower().split()
    at = rng.randrange(1, len(words[-1]) - 1)
    words[-1] = words[-1][:at] + words[-1][at + 1 :]
    venue, year = "".join(word[0] for word in paper.venue.split()), paper.year + rng.choice((-1, 0, 1))
    name = paper.first.partition(",")[0]
    return rng.choice(FORMS).format(key=key, name=name, title=" ".join(words), venue=venue, year=year, pages=paper.pages)


def solve(folder: str) -> Steps:
    """Reads the style and the raw entries, finds each record and what hangs on it, and writes the clean list."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="planning")
    old = [file["path"] for file in listed if file["path"].endswith("style.md") and not file["path"].startswith(folder)]
    style = yield Step(
        action=ToolCall("read_file", {"path": f"{folder}/style.md"}),
        skill="policy",
        slips=tuple((ToolCall("read_file", {"path": path}),) for path in old),
    )
    rule = next(n for n, text in enumerate(RULES) if text.split("{")[0] in style["content"])
    cutoff = int((re.findall(r"appeared in (\d+)", style["content"]) or ["0"])[0])
    raw = yield Step(action=ToolCall("read_file", {"path": f"{folder}/references_raw.txt"}), skill="exploration")
    rows: list[str] = []
    seen: dict[str, str] = {}
    dropped: list[str] = []
    replaced: list[str] = []
    naive: dict[str, str] = {}
    for key, text in RAW.findall(raw["content"]):
        cited = next(match for form in READ if (match := form.fullmatch(text)))
        paper = yield from _find(cited["name"], cited["title"], cited["pages"], seen)
        if paper is None or paper["doi"] in seen.values():
            dropped.append(key)
            continue
        seen[f"{cited['name']} {cited['title'].split()[0]} {cited['pages']}"] = paper["doi"]
        links = paper["links"]
        line = f"{key} | {paper['first']} | {paper['year']} | {paper['venue']} | {paper['doi']}"
        first = paper["naive"]
        naive[key] = f"{key} | {first['first']} | {first['year']} | {first['venue']} | {first['doi']}"
        if "retraction notice" in links:
            dropped.append(key)
            continue
        if "erratum" in links:
            page = yield Step(action=ToolCall("open_page", {"url": links["erratum"]}), skill="consistency")
            author = re.findall(r"the first author is (\w+, \w\.)", page["text"])[0]
            line = f"{key} | {author} | {paper['year']} | {paper['venue']} | {paper['doi']}"
        other = links.get("published version") or links.get("preprint")
        if other:
            page = yield Step(action=ToolCall("open_page", {"url": other}), skill="exploration")
            second = _record(page)
            draft, final = (paper, second) if "published version" in links else (second, paper)
            best = draft if rule == 2 and int(final["year"]) > cutoff else final
            year = draft["year"] if rule == 1 else best["year"]
            line = f"{key} | {best['first']} | {year} | {best['venue']} | {best['doi']}"
            replaced += [key] if best is final and paper is draft else []
        rows.append(line)
    kept = {line.split(" | ")[0]: line for line in rows}
    path = f"{folder}/references.txt"
    changed = [key for key in kept if kept[key] != naive[key]]
    one = {**kept, changed[0]: naive[changed[0]]}
    gone = [naive[key] for key in dropped if key in naive]
    yield Step(
        action=ToolCall("write_file", {"path": path, "content": "\n".join(rows) + "\n"}),
        skill="synthesis",
        difficulty=0.8,
        slips=(
            (ToolCall("write_file", {"path": path, "content": "\n".join(one.values())}),),
            (ToolCall("write_file", {"path": path, "content": "\n".join([*rows, *gone])}),),
            (ToolCall("write_file", {"path": path, "content": "\n".join(naive[key] for key in kept)}),),
            SKIP,
        ),
    )
    data = {"dropped": dropped, "replaced": replaced}
    yield Step(
        action=Finish(answer=f"{len(rows)} entries", data=data),
        skill="synthesis",
        slips=((Finish(answer="", data={**data, "dropped": dropped[:1]}),),),
    )


def _find(name: str, title: str, pages: str, seen: Mapping[str, str]) -> Generator[Step, Any, dict[str, Any] | None]:
    """Looks an entry up and opens its record; of two with one title, that with the pages. None if it was found before."""
    word = title.split()[0]
    if f"{name} {word} {pages}" in seen:
        return None
    found = yield Step(action=ToolCall("search_web", {"query": f"{name} {word} site:index.example"}), skill="exploration")
    hits = [hit for hit in found["results"] if not re.match("Erratum|Retracted", hit["title"])]
    opened = []
    for hit in hits:
        page = yield Step(action=ToolCall("open_page", {"url": hit["url"]}), skill="disambiguation")
        opened.append(_record(page))
        if opened[-1]["pages"] == pages:
            break
    paper: dict[str, Any] = {**opened[-1], "naive": opened[0]}
    return paper


def _record(page: Mapping[str, Any]) -> dict[str, Any]:
    """Reads a record's page."""
    fields = dict(line.split(": ", 1) for line in page["text"].splitlines())
    links = {link["text"]: link["url"] for link in page["links"]}
    first = fields["Authors"].split("; ")[0]
    named = {name.lower(): fields[name] for name in ("Year", "Venue", "DOI", "Pages")}
    return {"first": first, "links": links, **named}


TASK: Task = Task(
    title="Repair a bibliography from an index",
    category="search",
    domain="research",
    apps=("files", "web"),
    languages=("en",),
    patterns=("rules stored as data", "join under different keys", "superseded sources", "near miss at a limit", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
