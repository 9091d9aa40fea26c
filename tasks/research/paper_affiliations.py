"""Count a conference's papers for an institute, by the counting rules that the proceedings' site states.

The institute has changed its name, a laboratory became part of it just before or just after the conference, another institute is
called almost the same, one paper was withdrawn and another one withdrawn and reinstated. Whose affiliation counts stands on a
page of rules, which is another one in each variant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedSet, gated, mostly
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.words import FAMILY, GIVEN
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "How many papers of {conf} count for the {asked}? Apply the counting rules on the proceedings site.",
        "Please count the {conf} papers of the {asked} by the counting rules that the proceedings publish.",
        "We need the number of {conf} papers that belong to the {asked}; the proceedings site says how papers are counted.",
        "Find out which papers of {conf} are counted for the {asked} under the official counting rules.",
        "Which {conf} papers may the {asked} claim, going by the counting rules of the proceedings?",
        "Go through the {conf} proceedings and tell me which papers count for the {asked}, by their own rules.",
    )
}
CONFERENCES = ("SYNTOP", "CORAIL", "MEDSYS", "GRIDCON", "VISTEX", "LANTERNA")
PLACES = ("Norwell", "Estbury", "Karlsvik", "Montrose Bay", "Talverne", "Oderin", "Sandhaven", "Brightmoor")
FIELDS = ("Applied Acoustics", "Polar Robotics", "Marine Systems", "Urban Hydrology", "Soft Materials", "Signal Theory")
TOPICS = (
    "Adaptive Sampling for Sparse Sensors",
    "A Bound on Delayed Feedback",
    "Calibration without Targets",
    "Drift in Long Deployments",
    "Energy Budgets at the Node",
    "Fast Replay of Field Logs",
    "Graph Cuts under Noise",
    "Hidden Costs of Retries",
    "Inference from Partial Tides",
    "Joint Scheduling of Buoys",
    "Kernel Choices Revisited",
    "Learning to Skip Frames",
    "Mapping with Few Anchors",
    "Noise Floors in Practice",
)
WHOSE = (
    "A paper counts for the first affiliation of its first author, and for no other.",
    "A paper counts for every affiliation of its first author, and for no affiliation of the others.",
    "A paper counts for the first affiliation of its first author and for the first affiliation of every author marked * "
    "(equal contribution).",
)
COMMON = (
    " Only papers of the main program count; workshop papers do not. Withdrawn papers do not count unless a later notice "
    "reinstates them. An institute that was renamed or became part of another one before the first day of the conference counts "
    "under the name that the register of institutes gives; a later change makes no difference."
)
AUTHOR = re.compile(r"([A-Z][\w.]* [\w]+)(\*?) \[([\d, ]+)\]")
CHANGE = re.compile(r"^(.+?): since (\d{4}-\d\d-\d\d) .*? (?:name|part of) the (.+?)\.$", re.MULTILINE)
NOTICE = re.compile(r"(\d{4}-\d\d-\d\d): paper (\d+) (withdrawn|reinstated)")


@dataclass(frozen=True, slots=True)
class Byline:
    """An author: whether marked as an equal contributor, and the affiliations in their order."""

    equal: bool
    places: tuple[str, ...]


def counts(bylines: Sequence[Byline], rule: int, institute: str, current: Mapping[str, str]) -> bool:
    """Says whether a paper counts for an institute under one of the rules in `WHOSE`; `current` maps old names to new ones."""
    first = bylines[0]
    places = set(first.places if rule == 1 else first.places[:1])
    if rule == 2:
        places |= {author.places[0] for author in bylines if author.equal}
    return institute in {current.get(place, place) for place in places}


def build(world: World) -> Plan:
    """Draws an institute and its past, papers around each rule, and last year's proceedings beside this year's."""
    rng = world.rng
    conf = rng.choice(CONFERENCES)
    town, other_town, lab_town = rng.sample(PLACES, 3)
    field, old_field, third = rng.sample(FIELDS, 3)
    institute, old = f"{town} Institute of {field}", f"{town} College of {old_field}"
    lab, namesake = f"{lab_town} Laboratory for {field}", f"{town} Institute for {third}"
    others = (f"{other_town} University", f"{lab_town} Polytechnic", namesake)
    opening = date(world.today.year - 1, 9, 1) + timedelta(days=rng.randrange(40))
    merged = opening + timedelta(days=rng.choice((-1, 0, 1, 2)))
    register = [
        f"{old}: since {opening.replace(year=opening.year - 2)} it has had the name the {institute}.",
        f"{lab}: since {merged} it has been part of the {institute}.",
        f"{other_town} Academy: since {opening.replace(year=opening.year - 4)} it has had the name the {other_town} University.",
    ]
    current = {old: institute, **({lab: institute} if merged < opening else {})}

    def someone(*places: str, equal: bool = False) -> Byline:
        return Byline(equal, places)

    a, b, c = others
    shapes = [
        (someone(institute), someone(a)),
        (someone(old), someone(b), someone(c)),
        (someone(a, institute), someone(c)),
        (someone(b, equal=True), someone(institute, equal=True)),
        (someone(a), someone(c), someone(institute)),
        (someone(c), someone(b)),
        (someone(lab), someone(a)),
        (someone(institute), someone(b)),
        (someone(institute, a), someone(c)),
        (someone(a, equal=True), someone(b, institute, equal=True)),
    ]
    shapes += [rng.choice(((someone(institute), someone(institute)), (someone(b), someone(a)), (someone(old), someone(c))))]
    numbers, titles = rng.sample(range(100, 1000), 14), rng.sample(TOPICS, 14)
    gone, back = numbers[7], numbers[8]
    dates = sorted(opening - timedelta(days=offset) for offset in rng.sample(range(5, 60), 3))
    notices = f"{dates[0]}: paper {gone} withdrawn by its authors.\n{dates[1]}: paper {back} withdrawn by its authors."
    later = f"\n{dates[2]}: paper {back} reinstated after an inquiry."

    base, label = f"https://{conf.lower()}{opening.year}.example", f"{conf} {opening.year}"
    order = rng.sample(range(11), 11)
    listed = [(numbers[i], titles[i], shapes[i]) for i in order]
    workshop = [(numbers[11], titles[11], shapes[0]), (numbers[12], titles[12], shapes[1])]
    _site(
        world,
        base,
        label,
        f"It was held from {opening} on.",
        world.variant,
        "\n".join(register),
        listed,
        workshop,
        notices + later,
    )
    _site(
        world,
        f"https://{conf.lower()}{opening.year - 1}.example",
        f"{conf} {opening.year - 1}",
        f"It was held from {opening.replace(year=opening.year - 1)} on.",
        (world.variant + 1) % 3,
        register[-1],
        [(numbers[13], titles[13], shapes[0])],
        [],
        "",
    )
    world.web.page(f"{base}/notices-early", f"{label}: notices, mailed edition", notices)
    world.web.noise(3)

    chosen = [number for number, _, bylines in listed if number != gone and counts(bylines, world.variant, institute, current)]
    papers = ReportedSet("papers", chosen)
    asked = rng.choice((institute, old))
    return Plan(
        instruction=world.phrase(PHRASINGS, conf=label, asked=asked),
        report=(
            Slot("institute", "the institute's current name in full, without an article"),
            Slot("papers", "list of the numbers of the papers that count"),
            Slot("count", "how many, a number"),
        ),
        checks=(
            Check("papers", 0.6, papers),
            Check("count", 0.25, gated(Reported("count", len(chosen)), mostly(papers))),
            Check("institute", 0.15, gated(Reported("institute", institute), mostly(papers))),
        ),
        solve=partial(solve, label, asked),
    )


def _site(
    world: World,
    base: str,
    label: str,
    held: str,
    rule: int,
    register: str,
    papers: Sequence[tuple[int, str, Sequence[Byline]]],
    workshop: Sequence[tuple[int, str, Sequence[Byline]]],
    notices: str,
) -> None:
    """Writes the proceedings of one year: home, rules, register, notices, programs and papers."""
    rng, page = world.rng, world.web.page
    programs = {"main": papers, "workshop": workshop}
    for track, entries in programs.items():
        for number, title, bylines in entries:
            known = list(dict.fromkeys(place for author in bylines for place in author.places))
            authors = ", ".join(
                f"{rng.choice(GIVEN['en'])[0]}. {rng.choice(FAMILY['en'])}{'*' if author.equal else ''} "
                f"[{', '.join(str(known.index(place) + 1) for place in author.places)}]"
                for author in bylines
            )
            places = "\n".join(f"({index}) {place}" for index, place in enumerate(known, 1))
            page(f"{base}/paper/{number}", f"{title} ({label})", f"Paper {number}, {track}\nAuthors: {authors}\n{places}")
        links = [(f"{number} {title}", f"{base}/paper/{number}") for number, title, _ in entries]
        page(f"{base}/{track}", f"{label}: {track} program", f"{len(entries)} papers.", links=links)
    page(f"{base}/rules", f"{label}: counting rules", WHOSE[rule] + COMMON)
    page(f"{base}/register", f"{label}: register of institutes", register)
    page(f"{base}/notices", f"{label}: notices", notices or "There are no notices.")
    names = ("main", "workshop", "rules", "register", "notices")
    page(base, f"{label}: proceedings", held, links=[(name, f"{base}/{name}") for name in rng.sample(names, 5)])


def solve(conf: str, asked: str) -> Steps:
    """Reads rules, register and notices, opens every paper of the main program, and counts."""
    found = yield Step(action=ToolCall("search_web", {"query": f"{conf.split()[0]} proceedings"}), skill="planning")
    hits = {hit["title"]: hit["url"] for hit in found["results"]}
    wrong = [url for title, url in hits.items() if not title.startswith(conf)]
    home = yield Step(
        action=ToolCall("open_page", {"url": hits[f"{conf}: proceedings"]}),
        skill="disambiguation",
        slips=tuple((ToolCall("open_page", {"url": url}),) for url in wrong[:1]),
    )
    links = {link["text"]: link["url"] for link in home["links"]}
    opening = re.findall(r"\d{4}-\d\d-\d\d", home["text"])[0]
    rules = yield Step(action=ToolCall("open_page", {"url": links["rules"]}), skill="policy")
    rule = next(index for index, text in enumerate(WHOSE) if rules["text"].startswith(text))
    register = yield Step(action=ToolCall("open_page", {"url": links["register"]}), skill="exploration")
    changes = CHANGE.findall(register["text"])
    current = {name: new for name, since, new in changes if since < opening}
    institute = current.get(asked, asked)
    hits = yield Step(action=ToolCall("search_web", {"query": f"{conf} notices"}), skill="exploration")
    early = [hit["url"] for hit in hits["results"] if "mailed" in hit["title"]]
    notices = yield Step(
        action=ToolCall("open_page", {"url": links["notices"]}),
        skill="consistency",
        slips=tuple((ToolCall("open_page", {"url": url}),) for url in early),
    )
    states = {int(number): state for _, number, state in sorted(NOTICE.findall(notices["text"]))}
    program = yield Step(
        action=ToolCall("open_page", {"url": links["main"]}),
        skill="exploration",
        slips=((ToolCall("open_page", {"url": links["workshop"]}),),),
    )
    papers: dict[int, list[Byline]] = {}
    for link in program["links"]:
        paper = yield Step(action=ToolCall("open_page", {"url": link["url"]}), skill="exploration", difficulty=-0.5)
        places = dict(re.findall(r"^\((\d)\) (.+)$", paper["text"], re.MULTILINE))
        papers[int(link["text"].split()[0])] = [
            Byline(bool(star), tuple(places[number] for number in listed.split(", ")))
            for _, star, listed in AUTHOR.findall(paper["text"])
        ]
    alive = [number for number in papers if states.get(number) != "withdrawn"]

    def chosen(numbers: Sequence[int], rule: int, known: Mapping[str, str]) -> dict[str, object]:
        picked = [number for number in numbers if counts(papers[number], rule, institute, known)]
        return {"institute": institute, "papers": picked, "count": len(picked)}

    right = chosen(alive, rule, current)
    yield Step(
        action=Finish(answer=f"{right['count']} papers", data=right),
        skill="policy",
        difficulty=0.8,
        slips=(
            (Finish(answer="", data=chosen(alive, (rule + 1) % 3, current)),),
            (Finish(answer="", data=chosen(alive, rule, {})),),
            (Finish(answer="", data=chosen(list(papers), rule, current)),),
            (Finish(answer="", data=chosen([n for n in alive if n not in states], rule, current)),),
        ),
    )


TASK: Task = Task(
    title="Count an institute's papers by the conference's rules",
    category="search",
    domain="research",
    apps=("web",),
    languages=("en",),
    patterns=("rules stored as data", "join under different keys", "superseded sources", "near miss at a limit", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
