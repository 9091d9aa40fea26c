"""Lays the figures of a landscape out as Markdown, which also reads well on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ec2_env.bench.landscape_episodes import DEFAULT, FIXED, RANDOM
from ec2_env.bench.landscape_figures import Figures, Mean, Standing, shown

TARGETS = {
    "lead": "oracle's lead at least 15% of the range from random to oracle",
    "shares": "each decision the best one in at least 3% of states",
    "tree": "tree recovers at least half of the lead",
    "free": "no weight on cost and privacy: cloud_only leads",
    "dear": "heavy weights: edge_only leads",
}


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a Markdown table of a head and rows, its columns padded."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def report(found: Sequence[Figures], tree: str) -> str:
    """Returns all tables of a landscape; the last of the figures are those of all domains together.

    Args:
        found: Figures of each domain, then of all.
        tree: The tree of the default weights, in words.
    """
    whole = found[-1]
    parts = [
        "At the default weights (* the 95% interval leaves the verdict open):",
        *table([HEAD, *(domain_row(one) for one in found)]),
        f"Decisions at the default weights, {whole.name}:",
        *table(decision_rows(whole)),
        f"Return at all weights, {whole.name}:",
        *table(weight_rows(whole)),
        f"Return of every strategy, {whole.name}:",
        *table(strategy_rows(whole)),
        f"Tree at the default weights: `{tree}`",
        *verdict_lines(found),
    ]
    return "\n".join(
        "\n" + part + "\n" if not part.startswith("|") and not part.startswith("-") else part for part in parts
    ).strip()


HEAD = (
    "domain",
    "random",
    "best fixed",
    "",
    "oracle",
    "lead",
    "share",
    "tree",
    "recovered",
    "best decisions 0-5, %",
    "matters",
    "without weights",
    "heavy weights",
    "lead shares tree free dear",
)


def domain_row(one: Figures) -> list[str]:
    """Returns a domain's line."""
    at = one.default
    return [
        one.name,
        *standing_cells(at, one.shares[DEFAULT]),
        percent(one.matters),
        one.standings[0].best,
        one.standings[-1].best,
        " ".join(("yes" if v.reached else "no") + ("" if v.settled else "*") for v in one.verdicts.values()),
    ]


def standing_cells(at: Standing, shares: Sequence[float]) -> list[str]:
    """Returns the columns from "random" to "best decisions"."""
    return [
        cell(at, RANDOM),
        at.best,
        cell(at, at.best),
        f"{at.oracle:.3f}",
        shown(at.lead),
        percent(at.lead_share),
        f"{at.tree.mean:.3f}",
        percent(at.recovered),
        " ".join(f"{100 * share:.0f}" for share in shares),
    ]


def percent(value: float | None) -> str:
    """Returns a share in percent, "-" for none."""
    return "-" if value is None else f"{100 * value:.0f}%"


def decision_rows(one: Figures) -> list[list[str]]:
    """Returns how each decision does."""
    rows = [["decision", "best in states", "lead over the next best, other lucks", "oracle takes", "tree takes"]]
    for name, found in one.decisions.items():
        lead = "-" if found.lead is None else shown(found.lead)
        rows.append([name, f"{found.best:.1%}", lead, f"{found.oracle:.1%}", f"{found.tree:.1%}"])
    return rows


def weight_rows(one: Figures) -> list[list[str]]:
    """Returns a line for each weights of the grid."""
    rows = [
        ["cost", "privacy", "random", "best fixed", "", "oracle", "lead", "share", "tree", "recovered", "best decisions 0-5, %"]
    ]
    for at, shares in zip(one.standings, one.shares, strict=True):
        rows.append([f"{at.cost:g}", f"{at.privacy:g}", *standing_cells(at, shares)])
    return rows


def strategy_rows(one: Figures) -> list[list[str]]:
    """Returns the return of every fixed strategy and of random decisions at all weights."""
    head = ["cost/privacy", *(f"{at.cost:g}/{at.privacy:g}" for at in one.standings)]
    return [head, *([spec, *(cell(at, spec) for at in one.standings)] for spec in (*FIXED, RANDOM))]


def cell(at: Standing, spec: str) -> str:
    """Returns the return of a strategy."""
    found: Mean = at.returns[spec]
    return f"{found.mean:.3f}"


def verdict_lines(found: Sequence[Figures]) -> list[str]:
    """Returns what is said to each target, and which domains miss it."""
    lines = []
    for target, wanted in TARGETS.items():
        verdict = found[-1].verdicts[target]
        missing = [one.name for one in found[:-1] if not one.verdicts[target].reached]
        where = f"; missed in {', '.join(missing)}" if missing else ""
        word = ("reached" if verdict.reached else "NOT reached") + ("" if verdict.settled else ", not settled")
        lines.append(f"- {wanted}: {word} ({verdict.text}){where}")
    return lines
