"""Write a workflow of three nodes as JSON, from sources that contradict one another.

A guide says in which order the sources count, setting by setting. Change requests count only when they are approved and in force;
a runbook gives times in minutes where the file wants seconds; addresses come from the list of integrations, which knows a test
system of the same name. A workflow whose target does not answer is exported as switched off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import JsonWritten, Reported, ReportedSet, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please export the {title} workflow as JSON; docs/export.md says how.",
        "Write the JSON file of the {title} workflow. The rules for it are in docs/export.md.",
        "We need the workflow file for {title}. Its settings are all over the place; docs/export.md says which one holds.",
        "Put the {title} workflow together from its documents as docs/export.md has it.",
        "Could you produce the export of {title}? Follow docs/export.md where the documents disagree.",
        "Build the workflow file for {title} by docs/export.md, please.",
    ),
}
GUIDE = """# Exporting a workflow

1. The export of NAME is `workflows/NAME.json`, in this form (types and edges are always these):

{{"name": "NAME", "enabled": true, "nodes": [
  {{"id": "start", "type": "schedule", "settings": {{"cron": "", "timezone": ""}}}},
  {{"id": "fetch", "type": "request", "settings": {{"integration": "", "url": "", "timeout_s": 0, "retries": 0}}}},
  {{"id": "deliver", "type": "push", "settings": {{"integration": "", "url": "", "batch_size": 0, "on_error": ""}}}}
], "edges": [["start", "fetch"], ["fetch", "deliver"]]}}

2. The documents disagree. Each setting is decided by itself, by the first of these that gives it:
   (1) approved change requests, changes/; if several give it, the one approved last
   (2) {second}
   (3) {third}
   (4) the defaults, docs/defaults.md
3. A change request counts only if its state is "approved" and it is in force today; its first day counts.
4. timeout_s is in seconds, whatever unit a document uses.
5. integration and url come from the list of integrations and from nowhere else: the id, and the endpoint followed by the node's
   path. Of two integrations of one name, take the one whose notes say "production".
6. enabled is true only if both integrations answer a test now.
"""
RUNBOOK, SPEC = "the runbook, runbooks/", "the specification, specs/"
TITLES = ("order-mirror", "stock-feed", "parcel-sync", "rate-import", "catalog-push", "survey-pull", "meter-relay", "menu-copy")
SERVICES = ("Brightcart", "Paperlane", "Stockhub", "Mailriver", "Ledgerly", "Parcelway", "Chatnest", "Formfield")
POOLS: Mapping[str, Sequence[str]] = {
    "start.cron": ("15 5 * * *", "30 6 * * 1-5", "0 4 * * *", "45 22 * * *", "10 7 * * 1", "20 */6 * * *", "5 1 * * 0"),
    "start.timezone": ("UTC", "Europe/Berlin", "Asia/Shanghai", "America/Chicago", "Asia/Tokyo", "Europe/Lisbon"),
    "fetch.path": ("/v2/records", "/v3/records", "/export/daily", "/items/changed", "/v3/changes", "/feed"),
    "fetch.timeout_s": ("60", "120", "180", "240", "300", "480", "600"),
    "fetch.retries": ("0", "1", "2", "3", "5", "8"),
    "deliver.path": ("/inbound", "/v1/rows", "/v2/rows", "/hooks/batch", "/import", "/queue"),
    "deliver.batch_size": ("25", "50", "80", "100", "200", "500"),
    "deliver.on_error": ("stop", "continue", "retry", "skip", "hold"),
}
NUMBERS = ("timeout_s", "retries", "batch_size")
SOURCES = ("spec", "runbook", "defaults")
CHANGE = "# {key}\n\nWorkflow: {title}\nState: {state}\nDecided on: {decided}\nIn force from: {start}\n\n{lines}\n"


def build(world: World) -> Plan:
    """Draws contradicting sources; variants: both targets answer, one does not, one requested change is taken back."""
    rng, variant = world.rng, world.variant
    title, other = rng.sample(TITLES, 2)
    first, second = rng.sample(SERVICES, 2)
    order = [RUNBOOK, SPEC]
    rng.shuffle(order)
    given: dict[str, dict[str, str]] = {source: {} for source in SOURCES}
    spare: dict[str, Sequence[str]] = {}
    for setting, pool in POOLS.items():
        drawn = rng.sample(pool, len(pool))
        for source in SOURCES:
            given[source][setting] = drawn.pop()
        spare[setting] = drawn
    order_of = ["runbook", "spec"] if order[0] == RUNBOOK else ["spec", "runbook"]
    disputed, *settings = rng.sample(list(POOLS), len(POOLS))
    for source, count in ((order_of[0], 4), (order_of[1], 2)):
        for setting in rng.sample(settings, count):
            del given[source][setting]
    del given["defaults"][disputed]

    changed = rng.sample(settings, 5)
    late, early = sorted(rng.sample(range(4, 40), 2))
    values = {setting: spare[setting] for setting in changed}
    requests: list[tuple[int, int, str, dict[str, str]]] = [
        (late, -rng.randrange(0, 4), "approved", {changed[0]: values[changed[0]][0], changed[1]: values[changed[1]][0]}),
        (early, -3, "approved", {changed[0]: values[changed[0]][1], changed[2]: values[changed[2]][0]}),
        (2, rng.randrange(1, 9), "approved", {changed[3]: values[changed[3]][0], changed[1]: values[changed[1]][1]}),
        (1, -1, "withdrawn" if variant == 2 else rng.choice(("rejected", "draft")), {changed[4]: values[changed[4]][0]}),
    ]
    if variant == 2:
        requests[0] = (late, requests[0][1], "withdrawn", requests[0][3])
    keys = rng.sample(range(100, 999), len(requests))
    names = [f"CR-{key}" for key in keys]
    final = dict(given["defaults"])
    for source in reversed(order_of):
        final.update(given[source])
    counted = sorted((i for i in range(4) if requests[i][2] == "approved" and requests[i][1] <= 0), key=lambda i: -requests[i][0])
    decided: dict[str, int] = {}
    for number in counted:
        for setting, value in requests[number][3].items():
            final[setting], decided[setting] = value, number

    _documents(world, title, other, given, order)
    for name, (ago, start, state, lines) in zip(names, requests, strict=True):
        text = "\n".join(f"- {setting}: {value}" for setting, value in lines.items())
        text = CHANGE.format(key=name, title=title, state=state, lines=text, decided=world.day(-ago), start=world.day(start))
        world.files.write(f"changes/{name}.md", text, days_ago=ago)
    broken = (first, second)[rng.randrange(2)] if variant == 1 else ""
    hosts = {service: _integrations(world, service, service == broken) for service in (first, second)}
    world.files.write(
        f"docs/{title}.md",
        f"# {title}\n\nfetch reads from {first}, deliver writes to {second}.\nExport: workflows/{title}.json\n",
    )
    world.config.noise(2)

    nodes = _nodes(final, hosts[first], hosts[second])
    right = JsonWritten(
        path=f"workflows/{title}.json",
        content=_workflow(title, not broken, nodes),
        frame=("name", "id", "type", "edges"),
    )
    used = sorted({names[number] for number in decided.values()})
    return Plan(
        instruction=world.phrase(PHRASINGS, title=title),
        report=(
            Slot("change_requests", "list of the change requests that decided a setting, such as CR-123"),
            Slot("enabled", "whether the workflow is enabled, true or false"),
        ),
        checks=(
            Check("workflow_file", 0.8, right),
            Check("reports_change_requests", 0.1, gated(ReportedSet("change_requests", used), mostly(right))),
            Check("reports_enabled", 0.1, gated(Reported("enabled", not broken), mostly(right))),
        ),
        solve=partial(solve, title, world.today.isoformat()),
    )


def _documents(world: World, title: str, other: str, given: Mapping[str, Mapping[str, str]], order: Sequence[str]) -> None:
    """Writes the guide, the defaults, and each workflow's specification (a table) and runbook (with minutes)."""
    world.files.write("docs/export.md", GUIDE.format(second=order[0], third=order[1]))
    world.files.write("docs/defaults.md", "# Defaults\n\n" + "".join(f"- {s}: {v}\n" for s, v in given["defaults"].items()))
    rows = "".join(f"| {setting} | {value} |\n" for setting, value in given["spec"].items())
    world.files.write(f"specs/{title}.md", f"# {title}\n\n| setting | value |\n|---|---|\n{rows}")
    lines = ""
    for setting, value in given["runbook"].items():
        lines += f"- fetch.timeout: {int(value) // 60} min\n" if setting == "fetch.timeout_s" else f"- {setting}: {value}\n"
    world.files.write(f"runbooks/{title}.md", f"# Running {title}\n\n{lines}")
    wrong = "".join(f"| {setting} | {world.rng.choice(pool)} |\n" for setting, pool in POOLS.items())
    world.files.write(f"specs/{other}.md", f"# {other}\n\n| setting | value |\n|---|---|\n{wrong}")


def _integrations(world: World, service: str, broken: bool) -> tuple[str, str]:
    """Adds the production and the test system of a service in any order; returns id and endpoint of the first."""
    rng = world.rng
    zone = rng.choice(("api", "gate", "core", "hub"))
    kinds = [("production", f"https://{zone}.{service.lower()}.example"), ("test", f"https://test.{service.lower()}.example")]
    rng.shuffle(kinds)
    found = {}
    for kind, endpoint in kinds:
        notes = rng.choice((f"{kind} system", f"use: {kind}", f"{kind}, asked daily"))
        outage = "503 Service Unavailable: moved without notice" if broken and kind == "production" else ""
        row = world.config.add(service, service, "(in the vault)", endpoint=endpoint, notes=notes, outage=outage)
        found[kind] = (row.id, endpoint)
    return found["production"]


def _nodes(final: Mapping[str, str], source: tuple[str, str], target: tuple[str, str]) -> dict[str, dict[str, Any]]:
    """Returns the settings of each node."""
    nodes: dict[str, dict[str, Any]] = {"start": {}}
    for node, (row_id, endpoint) in (("fetch", source), ("deliver", target)):
        nodes[node] = {"integration": row_id, "url": endpoint + final[f"{node}.path"]}
    for setting, value in final.items():
        node, _, key = setting.partition(".")
        if key != "path":
            nodes[node][key] = int(value) if key in NUMBERS else value
    return nodes


def _workflow(title: str, enabled: bool, nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    types = {"start": "schedule", "fetch": "request", "deliver": "push"}
    listed = [{"id": node, "type": types[node], "settings": dict(settings)} for node, settings in nodes.items()]
    return {"name": title, "enabled": enabled, "nodes": listed, "edges": [["start", "fetch"], ["fetch", "deliver"]]}


def solve(title: str, today: str) -> Steps:
    """Reads the guide, every source and every change request, then looks up and tests both integrations."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="planning")
    guide = yield read("docs/export.md")
    about = yield read(f"docs/{title}.md")
    services: tuple[str, str] = re.findall(r"reads from (\w+), deliver writes to (\w+)", about["content"])[0]
    defaults = yield read("docs/defaults.md")
    texts = {"specs": (yield read(f"specs/{title}.md")), "runbooks": (yield read(f"runbooks/{title}.md"))}
    order = re.findall(r"\([23]\) .*, (\w+)/", guide["content"])
    requests: list[tuple[str, str, str, str, dict[str, str]]] = []
    for path in [file["path"] for file in listed if file["path"].startswith("changes/")]:
        text = (yield read(path))["content"]
        state, decided, start = re.findall(r"State: (\w+)\nDecided on: (\S+)\nIn force from: (\S+)", text)[0]
        requests.append((decided, path[8:-3], state, start, settings_in(text)))
    requests.sort()
    found = yield Step(action=ToolCall("list_integrations", {}), skill="exploration")
    ends: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {}
    for service in services:
        rows = []
        for row_id in [row["id"] for row in found if row["service"] == service]:
            rows.append((yield Step(action=ToolCall("get_integration", {"integration_id": row_id}), skill="disambiguation")))
        rows.sort(key=lambda row: "production" not in row["notes"])
        ends[service] = ((rows[0]["id"], rows[0]["endpoint"]), (rows[-1]["id"], rows[-1]["endpoint"]))
    works = True
    for service in services:
        tested = yield Step(action=ToolCall("test_integration", {"integration_id": ends[service][0][0]}), skill="consistency")
        works = works and tested["ok"]

    def export(names: Sequence[str], counted: Sequence[Mapping[str, str]], which: int, enabled: bool) -> ToolCall:
        final = settings_in(defaults["content"])
        for name in reversed(names):
            final |= settings_in(texts[name]["content"])
        for lines in counted:
            final |= lines
        content = _workflow(title, enabled, _nodes(final, *(ends[service][which] for service in services)))
        return ToolCall("write_file", {"path": f"workflows/{title}.json", "content": json.dumps(content, indent=1)})

    counted = [request for request in requests if request[2] == "approved" and request[3] <= today]
    right = [lines for *_, lines in counted]
    slips = (
        (export(order, [lines for *_, lines in requests], 0, works),),
        (export(order[::-1], right, 0, works),),
        (export(order, right[::-1] if len(right) > 1 else [], 0, works),),
        (export(order, right, 1, works),),
        (export(order, right, 0, not works),),
        SKIP,
    )
    yield Step(action=export(order, right, 0, works), skill="policy", difficulty=0.9, slips=slips)
    decided_by = {setting: key for _, key, _, _, lines in counted for setting in lines}
    data: dict[str, Any] = {"change_requests": sorted(set(decided_by.values())), "enabled": works}
    named = [key for _, key, *_ in requests]
    yield Step(
        action=Finish(answer=f"{title}: {works}", data=data),
        skill="synthesis",
        slips=((Finish(answer=title, data={**data, "change_requests": named}),), (Finish(answer=title),)),
    )


def read(path: str) -> Step:
    return Step(action=ToolCall("read_file", {"path": path}), skill="exploration")


def settings_in(text: str) -> dict[str, str]:
    """Returns the settings that a table or a list gives, times in seconds."""
    found = {key: value.strip() for key, value in re.findall(r"^(?:- |\| )(\w+\.\w+)(?::| \|) ([^|\n]+)", text, re.MULTILINE)}
    minutes = found.pop("fetch.timeout", None)
    if minutes is not None:
        found["fetch.timeout_s"] = str(60 * int(minutes.split()[0]))
    return found


TASK: Task = Task(
    title="Write a workflow file from contradicting documents",
    category="automation",
    domain="automation",
    apps=("files", "config"),
    languages=("en",),
    patterns=("rules stored as data", "superseded sources", "distractors", "near miss at a limit"),
    build=build,
    variants=3,
    annotated=False,
)
