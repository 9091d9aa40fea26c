"""Say which calls of a client break under a new version of an API, and what replaces them.

The changelog has a page for each version; errata postpone or bring forward a removal and correct a replacement, the newest of
them counts. Names change twice, a parameter becomes required where one call lacks it, other calls are switched off by date. The
client names some calls that it does not make, and a mirror shows the changelog as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import ReportedMap, ReportedSet, gated, mostly
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "On {day} we switch {path} to version v{target} of the {api} API. Which of its calls break, and what replaces them?",
        "{path} moves to v{target} of the {api} API on {day}. Please go through their documentation and list what will break.",
        "We plan to run {path} against v{target} of the {api} API from {day} on. Find the calls that no longer work.",
        "Check {path} against the {api} API's changes up to v{target}; we switch on {day}. What has to be rewritten, and how?",
        "Before {path} goes to v{target} of the {api} API on {day}: which calls will fail, and what is to be called instead?",
        "Please prepare the move of {path} to the {api} API v{target} on {day}: name each call that breaks and its replacement.",
    ),
}
INTRO = (
    "One page for each version. A call breaks if it is removed, renamed, or made without a parameter that is required. New calls "
    "and other answers break nothing. The errata change what the pages say; the newest of them on a call counts. Deprecated "
    "calls work until the day on which they are switched off, and from that day on not at all, whatever the version."
)
APIS = ("Parcelway", "Stockhub", "Mailriver", "Ledgerly", "Formfield")
NOUNS = ("orders", "parcels", "labels", "rates", "pickups", "returns", "depots", "quotes", "claims", "routes")
VERBS = ("list", "create", "cancel", "fetch", "print", "check", "merge")
USED = ("removed", "twice", "postponed", "forward", "lacking", "given", "dated", "later", "stable", "plain")
REPLACED = ("removed", "misprint", "former", "twice", "between", "postponed", "forward", "dated", "later", "dead", "unused")
METHODS = (
    "open_day",
    "close_day",
    "sync",
    "recount",
    "hand_over",
    "catch_up",
    "tidy",
    "warm_up",
    "audit",
    "start_tour",
    "end_tour",
)
PARAMETERS = ("region", "currency", "channel", "unit")


def build(world: World) -> Plan:
    """Draws a client and changes of four versions; variants: a removal is postponed, not after all, another one comes early."""
    rng, variant = world.rng, world.variant
    api, base = rng.choice(APIS), rng.randrange(3, 9)
    path, target = f"client/{api.lower()}_client.py", base + 3
    drawn = iter(rng.sample([f"{noun}.{verb}" for noun in NOUNS for verb in VERBS], 30))
    call = {role: next(drawn) for role in (*USED, "dead", "unused")}
    new = {role: next(drawn) for role in REPLACED}
    needs = dict(zip(("lacking", "given"), rng.sample(PARAMETERS, 2), strict=True))
    switch = world.day(rng.randrange(15, 40))
    off = {"dated": switch - timedelta(days=rng.choice((0, 0, 3, 9))), "later": switch + timedelta(days=rng.choice((1, 1, 5)))}

    pages: dict[int, list[str]] = {base + step: [f"Added: `{next(drawn)}`."] for step in range(5)}
    pages[base] += [f"Renamed: `{call['stable']}_v1` is now `{call['stable']}`.", _removed(call["dead"], new["dead"])]
    pages[base + 1] += [_removed(call["removed"], new["misprint"]), f"Renamed: `{call['twice']}` is now `{new['between']}`."]
    pages[base + 2] += [_removed(call["postponed"], new["postponed"]), _required(call["lacking"], needs["lacking"])]
    pages[base + 2] += [_removed(call["unused"], new["unused"])]
    pages[base + 3] += [f"Renamed: `{new['between']}` is now `{new['twice']}`.", _required(call["given"], needs["given"])]
    pages[base + 3] += [f"Changed: `{call['plain']}` answers with the newest first."]
    pages[base + 4] += [_removed(call["forward"], new["forward"])]
    errata = [(60, f"the replacement of `{call['removed']}` is `{new['former']}`."), (45, _moved(call["postponed"], base + 4))]
    errata.append((rng.randrange(5, 30), f"the replacement of `{call['removed']}` is `{new['removed']}`."))
    errata += [(20, _moved(call["postponed"], base + 3))] if variant == 1 else []
    errata += [(10, _moved(call["forward"], base + 3))] if variant == 2 else [(10, _moved(call["forward"], base + 4))]
    dated = [f"`{call[role]}` is switched off on {day}. Use `{new[role]}`." for role, day in off.items()]
    dated.append(f"`{next(drawn)}` is switched off on {switch - timedelta(days=60)}. Use `{next(drawn)}`.")
    _site(world, api, pages, [f"{world.day(-ago)}: {text}" for ago, text in rng.sample(errata, len(errata))], dated, base)
    _client(world, path, api, base, call, needs)

    breaks = {call["removed"]: new["removed"], call["twice"]: new["twice"], call["dated"]: new["dated"]}
    breaks[call["lacking"]] = f"+{needs['lacking']}"
    if variant == 1:
        breaks[call["postponed"]] = new["postponed"]
    if variant == 2:
        breaks[call["forward"]] = new["forward"]
    soon = [call[role] for role in ("postponed", "forward", "later") if call[role] not in breaks]
    reported = ReportedMap("breaking", breaks)
    return Plan(
        instruction=world.phrase(PHRASINGS, path=path, target=target, api=api, day=switch),
        report=(
            Slot(
                "breaking", 'mapping from each call that breaks to the call to make instead, or to "+name" of a missing parameter'
            ),
            Slot("soon", "list of the calls made that work on that day, but whose removal or end is announced for later"),
        ),
        checks=(
            Check("breaking", 0.75, reported),
            Check("soon", 0.25, gated(ReportedSet("soon", soon), mostly(reported))),
        ),
        solve=partial(solve, path, api, target, f"{switch}"),
    )


def _removed(name: str, other: str) -> str:
    return f"Removed: `{name}`. Use `{other}`."


def _required(name: str, parameter: str) -> str:
    return f"Required: `{name}` needs the parameter `{parameter}`."


def _moved(name: str, version: int) -> str:
    return f"`{name}` is removed in v{version}."


def _site(
    world: World, api: str, pages: Mapping[int, Sequence[str]], errata: Sequence[str], dated: Sequence[str], base: int
) -> None:
    """Writes the documentation, and a mirror that has the pages but neither errata nor dates."""
    rng, web = world.rng, world.web
    host, mirror = f"https://docs.{api.lower()}.example", "https://docs-mirror.example"
    for site, name in ((host, f"{api} API"), (mirror, f"{api} API (mirror)")):
        links = [(f"v{number}", f"{site}/{api.lower()}/v{number}") for number in pages]
        if site == host:
            links += [("Errata", f"{host}/errata"), ("Deprecations", f"{host}/deprecations")]
        web.page(f"{site}/{api.lower()}/changelog", f"{name}: changelog", INTRO if site == host else "Copied.", links=links)
        for number, lines in pages.items():
            text = "\n".join(f"- {line}" for line in rng.sample(lines, len(lines)))
            web.page(f"{site}/{api.lower()}/v{number}", f"{name}: version v{number}", text)
    web.page(f"{host}/errata", f"{api} API: errata", "\n".join(f"- {line}" for line in errata))
    web.page(f"{host}/deprecations", f"{api} API: deprecations", "\n".join(f"- {line}" for line in dated))
    web.noise(4)
    world.files.write("client/changes.txt", f"Moved to v{base} without problems.\n")


def _client(world: World, path: str, api: str, version: int, call: Mapping[str, str], needs: Mapping[str, str]) -> None:
    """Writes the client: some calls by a table of routes, one only in a comment, one route that nobody uses."""
    rng = world.rng
    routed = rng.sample(USED, 3)
    routes = {f"r{number}": call[role] for number, role in enumerate((*routed, "unused"), 1)}
    named = {name: key for key, name in routes.items()}
    lines = ['"""Client of the ' + f'{api} API."""', "", f'VERSION = "v{version}"', "ROUTES = {"]
    lines += [f'    "{key}": "{name}",' for key, name in routes.items()] + ["}", "", "", "class Client:"]
    methods = []
    for role in rng.sample(USED, len(USED)):
        name = call[role]
        shown = f'ROUTES["{named[name]}"]' if name in named else f'"{name}"'
        more = f", {needs['given']}=self.{needs['given']}" if role == "given" else ", page=1"
        methods.append(f"return self.call({shown}{more})")
        if role == "lacking":
            methods.append(f"return self.call({shown}, {needs[role]}=self.{needs[role]})")
    for method, text in zip(rng.sample(METHODS, len(methods)), rng.sample(methods, len(methods)), strict=True):
        lines += [f"    def {method}(self):", f"        {text}", ""]
    lines.insert(-9, f'    # self.call("{call["dead"]}") was used until v{version - 1}.')
    world.files.write(path, "\n".join(lines) + "\n")
    world.files.write("client/README.md", "Each method of the client makes one call.\n")


def solve(path: str, api: str, target: int, day: str) -> Steps:
    """Reads the client, then the changelog page by page, errata and deprecations, and follows every name to its end."""
    source = (yield Step(action=ToolCall("read_file", {"path": path}), skill="planning"))["content"]
    routes = dict(re.findall(r'^    "(\w+)": "([\w.]+)",$', source, re.MULTILINE))
    made = re.findall(r'^ +return self\.call\((?:"([\w.]+)"|ROUTES\["(\w+)"\])(.*)\)$', source, re.MULTILINE)
    calls = [(name or routes[key], rest) for name, key, rest in made]
    base = int(re.findall(r'VERSION = "v(\d+)"', source)[0])
    found = yield Step(action=ToolCall("search_web", {"query": f"{api} API changelog"}), skill="exploration")
    hits = sorted(found["results"], key=lambda hit: "mirror" in hit["title"])
    start = yield Step(
        action=ToolCall("open_page", {"url": hits[0]["url"]}),
        skill="disambiguation",
        difficulty=0.2,
        slips=((ToolCall("open_page", {"url": hits[-1]["url"]}),),),
    )
    links = {link["text"]: link["url"] for link in start["links"]}
    again = (ToolCall("open_page", {"url": hits[0]["url"]}),)
    texts: dict[int, str] = {}
    for number in sorted(int(text[1:]) for text in links if re.fullmatch(r"v\d+", text)):
        if number > base:
            page = yield Step(action=ToolCall("open_page", {"url": links[f"v{number}"]}), skill="exploration")
            texts[number] = page["text"]
    errata = yield Step(
        action=ToolCall("open_page", {"url": links.get("Errata", hits[0]["url"])}),
        skill="consistency",
        difficulty=0.5,
        slips=(again,),
    )
    ends = yield Step(
        action=ToolCall("open_page", {"url": links.get("Deprecations", hits[0]["url"])}),
        skill="consistency",
        difficulty=0.3,
        slips=(again,),
    )
    notes = sorted(re.findall(r"- ([\d-]+): (.*)", errata["text"]))
    moved = {name: int(number) for _, text in notes for name, number in re.findall(r"`(\S+)` is removed in v(\d+)", text)}
    better = dict(pair for _, text in notes for pair in re.findall(r"replacement of `(\S+)` is `(\S+)`", text))
    gone: dict[str, tuple[int, str]] = {}
    needed: dict[str, tuple[int, str]] = {}
    for number, text in texts.items():
        pairs = re.findall(r"Removed: `(\S+)`\. Use `(\S+)`", text) + re.findall(r"Renamed: `(\S+)` is now `(\S+)`", text)
        gone |= {old: (moved.get(old, number), better.get(old, new)) for old, new in pairs}
        needed |= {name: (number, parameter) for name, parameter in re.findall(r"Required: `(\S+)` needs .* `(\w+)`", text)}
    off = {name: (end, new) for name, end, new in re.findall(r"`(\S+)` is switched off on ([\d-]+)\. Use `(\S+)`", ends["text"])}
    breaking: dict[str, str] = {}
    soon: list[str] = []
    for name, rest in calls:
        last = name
        while last in gone and gone[last][0] <= target:
            last = gone[last][1]
        if last != name:
            breaking[name] = last
        elif name in off and off[name][0] <= day:
            breaking[name] = off[name][1]
        elif name in needed and needed[name][0] <= target and f"{needed[name][1]}=" not in rest:
            breaking[name] = f"+{needed[name][1]}"
        elif name in gone or name in off:
            soon.append(name)
    twice = next((name for name in breaking if name in gone and gone[name][1] != breaking[name]), None)
    wrong = [{**breaking, twice: gone[twice][1]}] if twice else []
    wrong += [{**breaking, soon[0]: (off.get(soon[0]) or gone[soon[0]])[1]}] if soon else []
    wrong.append({name: new for name, new in breaking.items() if not new.startswith("+")})
    slips = tuple((Finish(answer="", data={"breaking": other, "soon": soon}),) for other in wrong)
    data = {"breaking": breaking, "soon": soon}
    yield Step(action=Finish(answer=", ".join(breaking), data=data), skill="synthesis", difficulty=0.7, slips=slips)


TASK: Task = Task(
    title="Find the calls that a new API version breaks",
    category="search",
    domain="research",
    apps=("web", "files"),
    languages=("en",),
    patterns=("superseded sources", "near miss at a limit", "causal chain", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
