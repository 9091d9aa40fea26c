"""Write the card of a dataset: count with the shell what the template defines, and decide whether it may be released.

Only the parts of the manifest of the current version count, headers and comments are no rows, one label looks like the mark for a
missing one, duplicates have different ids, and a text that leaked into the test split may stand there twice. The readme names
another license. Leaks block a release, too many missing labels send it to review, both with values at their limits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import FileLines, Reported, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please write the card of the dataset {name} to {path}, as the card template says.",
        "The dataset {name} needs its card. Work out the figures with the shell and write {path} by the template.",
        "Could you make {path} for the dataset {name}? The template in the templates folder defines every line.",
        "Count what the card template asks for in the dataset {name}, and file the card as {path}.",
        "We want to release {name}. Prepare {path} by the card template and tell me what it says about the release.",
        "Fill in the card template for the dataset {name} and save it as {path}.",
    )
}
TEMPLATE = """# Card template

Write one line for each of these keys, as key: value, and nothing else.

- name: name of the dataset
- version: the version that data/<name>/CURRENT names; all figures are about it
- license: first line of its LICENSE file (a README does not count)
- rows_train: rows of the train split; its parts are those that MANIFEST lists, other files are left over. Lines that begin with #
  and the header are no rows
- missing_labels: train rows whose label is empty or NA
- duplicate_rows: train rows whose text stands in an earlier train row
- leaked_texts: different texts that are both in the train split and in the test split
- top_label: most frequent label of the train split
- release: blocked if there are more than {leaks} leaked texts; otherwise review if more than {share}% of the train rows have no
  label; otherwise ready
"""
KEYS = (
    "name", "version", "license", "rows_train", "missing_labels", "duplicate_rows", "leaked_texts", "top_label", "release",
)  # fmt: skip
NAMES = ("voice_intents", "kitchen_commands", "car_requests", "lamp_phrases")
LABELS = ("ALARM", "TIMER", "NAP", "MUSIC", "LIGHT")
FIRST = ("please set", "can you start", "stop", "i want", "turn on", "give me", "switch off", "wake me with", "remind me of")
SECOND = ("the alarm", "a timer", "soft music", "the lamp", "a short nap", "the radio", "my playlist", "the news")
THIRD = ("now", "at seven", "in an hour", "tonight", "in the kitchen", "for ten minutes", "at noon", "after lunch", "in the car")
LICENSES = ("CC BY-SA 4.0", "CC BY-NC 4.0", "ODC-By 1.0", "CDLA Permissive 2.0", "CC0 1.0")
PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The splits as pairs of text and label, and the part of the train split that the manifest leaves out."""

    train: Sequence[tuple[str, str]]
    test: Sequence[tuple[str, str]]
    left_over: Sequence[tuple[str, str]]


def build(world: World) -> Plan:
    """Draws a dataset; variants: ready, blocked by leaks, and (held out) to be reviewed for missing labels."""
    rng = world.rng
    name, version = rng.choice(NAMES), rng.randrange(2, 5)
    limit, share = rng.randrange(2, 5), rng.choice((5, 6, 8))
    leaks = limit + 1 + rng.randrange(2) if world.variant == 1 else limit - rng.randrange(2)
    drawn = _draw(world, leaks, share)
    texts = [text for text, _ in drawn.train]
    missing = sum(label in ("", "NA") for _, label in drawn.train)
    counts = Counter(label for _, label in drawn.train)
    license_name, readme = rng.sample(LICENSES, 2)
    values: dict[str, object] = {
        "name": name,
        "version": f"v{version}",
        "license": license_name,
        "rows_train": len(texts),
        "missing_labels": missing,
        "duplicate_rows": len(texts) - len(set(texts)),
        "leaked_texts": leaks,
        "top_label": counts.most_common(1)[0][0],
        "release": "blocked" if leaks > limit else "review" if missing * 100 > share * len(texts) else "ready",
    }
    _files(world, name, version, drawn, (license_name, readme))
    world.files.write("templates/card.md", TEMPLATE.format(leaks=limit, share=share))
    world.files.write("templates/poster.md", "One picture, three numbers, one sentence.\n")
    path = f"cards/{name}.md"
    world.files.write("cards/bird_songs.md", "\n".join(f"{key}: -" for key in KEYS))

    card = FileLines(path=path, rows=list(values.items()), separator=":")
    return Plan(
        instruction=world.phrase(PHRASINGS, name=name, path=path),
        report=(
            Slot("release", "ready, review or blocked"),
            Slot("leaked_texts", "number of leaked texts"),
        ),
        checks=(
            Check("card", 0.8, card),
            Check("reports_release", 0.1, gated(Reported("release", values["release"]), mostly(card))),
            Check("reports_leaks", 0.1, gated(Reported("leaked_texts", leaks), mostly(card))),
        ),
        solve=partial(solve, name, path),
    )


def _draw(world: World, leaks: int, share: int) -> Drawn:
    """Draws the splits, with the leaks asked for and a share of missing labels at its limit or, in variant 2, above it."""
    rng = world.rng
    pool = rng.sample(range(len(FIRST) * len(SECOND) * len(THIRD)), 115)
    texts = [f"{FIRST[n % 9]} {SECOND[n // 9 % 8]} {THIRD[n // 72]}" for n in pool]
    shift, distinct, doubled = rng.randrange(1, 5), rng.randrange(55, 68), rng.randrange(3, 8)
    chosen = [*texts[:distinct], *rng.sample(texts[:distinct], doubled)]
    top = rng.choice(LABELS)
    labels = [top if index % 5 == 4 or index % 10 == 3 else LABELS[(index * 3 + shift) % 5] for index in range(len(chosen))]
    most = len(chosen) * share // 100
    missing = most + 1 + rng.randrange(2) if world.variant == 2 else most - rng.randrange(2)
    for count, position in enumerate(rng.sample(range(len(chosen)), missing)):
        labels[position] = ("NA", "")[count % 2]
    order = rng.sample(range(len(chosen)), len(chosen))
    train = [(chosen[n], labels[n]) for n in order]
    leaked = rng.sample(texts[:distinct], leaks)
    tested = [*texts[70:88], *leaked, leaked[0], texts[70]]
    left = [(text, LABELS[n % 5]) for n, text in enumerate([*texts[90:104], texts[71], texts[0]])]
    test = [(text, LABELS[n % 5]) for n, text in enumerate(tested)]
    return Drawn(train=train, test=rng.sample(test, len(test)), left_over=left)


def _files(world: World, name: str, version: int, drawn: Drawn, licenses: tuple[str, str]) -> None:
    """Writes the versions of the dataset; one train part of the current one is not in the manifest."""
    rng, files = world.rng, world.files
    base = f"data/{name}/v{version}"
    size = -(-len(drawn.train) // (PARTS - 1))
    pieces = [drawn.train[start : start + size] for start in range(0, len(drawn.train), size)]
    unlisted = rng.randrange(PARTS)
    listed = []
    for number in range(PARTS):
        rows = drawn.left_over if number == unlisted else pieces.pop(0)
        files.write(f"{base}/train-{number}.tsv", _table(rows, 1000 * (number + 1)))
        listed += [] if number == unlisted else [f"train-{number}.tsv"]
    files.write(f"{base}/test.tsv", _table(drawn.test, 8000))
    files.write(f"{base}/MANIFEST", f"train: {' '.join(listed)}\ntest: test.tsv\n")
    files.write(f"{base}/LICENSE", f"{licenses[0]}\n\nThe full text is on the site of the license.\n")
    files.write(f"{base}/README", f"{name}: short commands. License: {licenses[1]}. Rows: {rng.randrange(200, 900)}.\n")
    for other in (version - 1, version + 1):
        files.write(f"data/{name}/v{other}/MANIFEST", "train: train-0.tsv\ntest: test.tsv\n")
        files.write(f"data/{name}/v{other}/train-0.tsv", _table(drawn.left_over, 1000))
        files.write(f"data/{name}/v{other}/LICENSE", f"{licenses[1]}\n")
    files.write(f"data/{name}/CURRENT", f"v{version}\n")


def _table(rows: Sequence[tuple[str, str]], first: int) -> str:
    lines = [f"r{first + n}\t{text}\t{label}" for n, (text, label) in enumerate(rows)]
    return "\n".join(["# exported for annotation", "id\ttext\tlabel", *lines, ""])


def solve(name: str, path: str) -> Steps:
    """Reads the template and the manifest, counts with the shell, writes the card and reports."""
    base = f"data/{name}"
    yield from _run("find data templates -type f", "planning")
    template = yield from _run("cat templates/card.md")
    version = (yield from _run(f"cat {base}/CURRENT")).strip()
    folder = f"{base}/{version}"
    manifest = yield from _run(f"cat {folder}/MANIFEST")
    listed = {line.split(":")[0]: line.split(":")[1].split() for line in manifest.splitlines()}
    rows = f"cd {folder} && cat {' '.join(listed['train'])} | grep -v '^#' | grep -v '^id'"
    loose = f"cd {folder} && cat train-*.tsv | grep -v '^#' | grep -v '^id'"
    tested = f"cd {folder} && cat {' '.join(listed['test'])} | grep -v '^#' | grep -v '^id'"
    count = int((yield from _run(f"{rows} | wc -l", "consistency", f"{loose} | wc -l")))
    missing = int((yield from _run(f"{rows} | cut -f 3 | grep -cE '^(NA)?$'", "policy", f"{rows} | grep -c NA")))
    distinct = int((yield from _run(f"{rows} | cut -f 2 | sort -u | wc -l", "calculation", f"{rows} | sort -u | wc -l")))
    in_test = int((yield from _run(f"{tested} | cut -f 2 | sort -u | wc -l", "calculation", f"{tested} | wc -l")))
    together = f"cd {folder} && cat {' '.join([*listed['train'], *listed['test']])} | grep -v '^#' | grep -v '^id'"
    union = int((yield from _run(f"{together} | cut -f 2 | sort -u | wc -l", "calculation", f"{together} | wc -l")))
    top = (yield from _run(f"{rows} | cut -f 3 | sort | uniq -c | sort -rn | head -1")).split()[1]
    readme = f"cat {folder}/README"
    license_name = (yield from _run(f"cat {folder}/LICENSE", "policy", readme)).splitlines()[0]
    leaks = distinct + in_test - union
    limit, share = (int(found) for found in re.findall(r"more than (\d+)", template))
    release = "blocked" if leaks > limit else "review" if missing * 100 > share * count else "ready"
    values = [name, version, license_name, count, missing, count - distinct, leaks, top, release]
    call = _card(path, values)
    other = "ready" if release != "ready" else "review"
    wrong = ((_card(path, [*values[:-1], other]),), (_card(path, [*values[:6], leaks + 1, *values[7:]]),), SKIP)
    yield Step(action=call, skill="calculation", difficulty=1.0, slips=wrong)
    data: dict[str, Any] = {"release": release, "leaked_texts": leaks}
    yield Step(
        action=Finish(answer=release, data=data),
        skill="synthesis",
        slips=((Finish(answer=other, data={**data, "release": other}),),),
    )


def _run(command: str, skill: Any = "exploration", slip: str = "") -> Generator[Step, Any, str]:
    """Runs a line and returns what it printed."""
    slips = ((ToolCall("run_command", {"command": slip}),),) if slip else ()
    result = yield Step(action=ToolCall("run_command", {"command": command}), skill=skill, slips=slips)
    return str(result["output"])


def _card(path: str, values: Sequence[object]) -> ToolCall:
    content = "\n".join(f"{key}: {value}" for key, value in zip(KEYS, values, strict=True))
    return ToolCall("write_file", {"path": path, "content": f"{content}\n"})


TASK: Task = Task(
    title="Write the card of a dataset",
    category="search",
    domain="research",
    apps=("shell", "files"),
    languages=("en",),
    patterns=("rules stored as data", "near miss at a limit", "superseded sources", "distractors", "counting with tools"),
    build=build,
    variants=3,
    annotated=False,
)
