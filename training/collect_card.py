"""The card of a collected dataset: how it was made, what is in it, and what it must not be used for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ec2_env.strategy import Decision

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))
TITLES = {
    "sft": "conversations with tool calls",
    "decisions": "decisions about the cloud",
    "preference": "pairs of decisions about the cloud",
    "kto": "wanted and unwanted decisions about the cloud",
}
TRAINERS = {"sft": "SFTTrainer", "decisions": "SFTTrainer", "preference": "DPOTrainer", "kto": "KTOTrainer"}


class Tally:
    """Counts rows and their figures while they are written.

    Attributes:
        tasks: Rows of each task and language.
        groups: Count, sum, sum of squares, least and greatest figure of each group of rows.
    """

    def __init__(self) -> None:
        self.tasks: Counter[tuple[str, str]] = Counter()
        self.groups: dict[str, list[float]] = {}

    def add(self, kind: str, row: Mapping[str, Any]) -> None:
        """Takes a row in."""
        self.tasks[row["task"], row["language"]] += 1
        for group, figure in _figures(kind, row):
            seen = self.groups.setdefault(group, [0, 0.0, 0.0, math.inf, -math.inf])
            seen[:3] = seen[0] + 1, seen[1] + figure, seen[2] + figure * figure
            seen[3:] = min(seen[3], figure), max(seen[4], figure)

    def table(self) -> str:
        """Returns the figures of the groups as a Markdown table."""
        lines = ["| rows | number | mean | sd | least | greatest |", "|---|---|---|---|---|---|"]
        for group, (count, total, squares, least, greatest) in sorted(self.groups.items()):
            mean = total / count
            spread = math.sqrt(max(0.0, squares / count - mean * mean))
            lines.append(f"| {cell(group)} | {count:,.0f} | {mean:.3f} | {spread:.3f} | {least:.3f} | {greatest:.3f} |")
        return "\n".join(lines)

    def task_table(self) -> str:
        """Returns the rows of each task as a Markdown table."""
        lines = ["| task | language | rows |", "|---|---|---|"]
        return "\n".join([*lines, *(f"| {task} | {language} | {n:,} |" for (task, language), n in sorted(self.tasks.items()))])


def _figures(kind: str, row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Returns the groups that a row counts in, and its return there: of the episode, or from the state on."""
    match kind:
        case "sft":
            return [(f"{row['strategy']}, {row['source']}", row["episode_return"])]
        case "preference":
            pair = (("chosen", row["chosen_decision"]), ("rejected", row["rejected_decision"]))
            return [(f"{part}: {_named(decision)}", row["values"][decision]) for part, decision in pair]
        case "kto":
            return [(f"{'wanted' if row['label'] else 'unwanted'}: {_named(row['decision'])}", row["values"][row["decision"]])]
        case _:
            return [(f"{row['strategy']}: {_named(row['decision'])}", row["values"][row["decision"]])]


def _named(decision: int) -> str:
    return f"{decision} {Decision(decision).name.lower()}"


def cell(text: str) -> str:
    """Returns a text that stands in a table without breaking it or making a link or markup."""
    return "".join(f"\\{sign}" if sign in "\\|`*_[]<>#&" else sign for sign in text if sign.isprintable())


def card(settings: Mapping[str, Any], tally: Tally, left_out: Mapping[str, int], files: str) -> str:
    """Returns the text of README.md.

    Args:
        settings: What the dataset was made with, as `ec2_env.training.collect` states it.
        tally: What is in it.
        left_out: Number of what was left out, by the reason.
        files: Pattern of the data files.
    """
    kind, rows = settings["kind"], sum(tally.tasks.values())
    out = [f"- {count:,} {reason}" for reason, count in sorted(left_out.items())] or ["- nothing"]
    languages = sorted({language for _, language in tally.tasks})
    unit = "return of the episode" if kind == "sft" else "look-ahead return from the state on"
    parts = [
        *front_matter(settings, rows, languages, files),
        f"# EC2-Env: {TITLES[kind]}",
        "",
        f"{rows:,} rows for TRL's `{TRAINERS[kind]}`, of episodes of the split `{settings['split']}` of EC2-Env",
        f"{settings['version']}. The columns are in docs/data.md of the package.",
        "",
        "## How it was made",
        "",
        f"    {settings['command']}",
        "",
        *(f"- {name}: {text}" for name, text in _facts(settings)),
        "",
        "The same command with the same version gives the same rows in the same order.",
        "",
        "Left out:",
        "",
        *out,
        "",
        "## What is in it",
        "",
        f"Figures are the {unit}.",
        "",
        tally.table(),
        "",
        tally.task_table(),
        "",
        "## Warnings",
        "",
        *warnings(settings),
        "",
    ]
    return "\n".join(parts)


def front_matter(settings: Mapping[str, Any], rows: int, languages: Sequence[str], files: str) -> list[str]:
    """Returns the lines of YAML that a hub and `datasets` read."""
    size = next((name for bound, name in SIZES if rows < bound), "10M<n<100M")
    return [
        "---",
        f"pretty_name: 'EC2-Env: {TITLES[settings['kind']]}'",
        f"license: {'mit' if settings['simulated'] else 'other'}",
        *(["language:", *(f"- {language}" for language in languages)] if languages else []),
        "task_categories:",
        "- text-generation",
        "size_categories:",
        f"- {size}",
        "tags:",
        *(f"- {tag}" for tag in ("ec2-env", "trl", "agents", "tool-use", "synthetic", f"trl-{settings['kind']}")),
        "configs:",
        "- config_name: default",
        "  data_files:",
        f"  - split: {settings['split']}",
        f"    path: {files}",
        "---",
        "",
    ]


def _facts(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [
        ("EC2-Env", f"version {settings['version']}, code {settings['code'][:16]}"),
        ("episodes", settings["episodes"]),
        ("digest of all that these episodes hold", settings["suite_digest"] or "not computed: they come from a run"),
        ("edge model", ", ".join(cell(name) for name in settings["edges"])),
        ("cloud model", cell(settings["cloud"])),
        ("models", "simulated" if settings["simulated"] else "not all simulated"),
        ("strategies", ", ".join(cell(name) for name in settings["strategies"]) or "none; the teacher decides"),
    ]
    return [*found, *settings["rules"].items()]


def warnings(settings: Mapping[str, Any]) -> list[str]:
    """Returns what a user has to know, as lines of a list."""
    found = [
        "- **Secrets in it are made up.** Names, mails, amounts, passwords and keys are drawn by a generator and belong "
        "to nobody; scanners for secrets may report them.",
        f"- **Never evaluate on these episodes.** They are instances of the split `{settings['split']}`; a model trained on "
        "them has seen their answers. Judge it on the other split, or on other seeds.",
    ]
    if settings["split"] == "test":
        found.append("- **This is the test split.** What was trained on it cannot be compared with anybody's results.")
    if settings["simulated"]:
        found.append("- **The models are simulated.** What they get wrong, and when they doubt, follows stated rules.")
    else:
        found.append("- **Real models wrote part of it.** Their providers' terms apply to what they wrote.")
    if settings["kind"] != "sft":
        found.append("- **Values look ahead in the simulator.** They are means of a few rollouts, and so partly luck.")
    return found
