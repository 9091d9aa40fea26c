"""What leaked where: kinds of values, tasks with their units, and ways by which values crossed. Units are named by id only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ec2_env.report.markup import Content, Markup, Viewer, joined, table, tag
from ec2_env.report.naming import Naming
from ec2_env.report.run import Run
from ec2_env.report.tally import ELSE, TENTHS, Tally
from ec2_env.sensitive import KINDS

TASKS, UNITS, WAYS = 15, 4, 12
"""Most lines of the table of tasks, units named in one of them, and lines of a table of ways."""


def leaks(run: Run, naming: Naming, viewer: Viewer) -> Markup:
    """Returns the tables below the plot."""
    if not run.tally.touched:
        return tag("p", "The episodes hold no sensitive values, or their records do not say which were seen.")
    if not run.tally.crossed:
        return tag("p", "Nothing sensitive crossed in any episode.")
    return joined(_kinds(run), _tasks(run, naming, viewer), _ways(run))


def _kinds(run: Run) -> Markup:
    tally, rows = run.tally, list[Sequence[Content] | str]()
    exposing = sorted({row for (_, row), tenths in tally.crossed.items() if tenths})
    redacting = [row for row in exposing if _redacts(run.summaries[row].cell.strategy)]
    groups = [("rows that redact", redacting), ("other rows", [row for row in exposing if row not in redacting])]
    groups = [group for group in groups if group[1]] if redacting else []
    everywhere = range(len(run.summaries))
    for kind in (*KINDS, ELSE):
        touched, full = (sum(counts[kind, row] for row in everywhere) for counts in (tally.touched, tally.full))
        if touched:
            shares = [_share(tally, kind, everywhere), *(_share(tally, kind, group) for _, group in groups)]
            rows.append([kind, KINDS.get(kind, (ELSE, 0.0))[0], f"{touched:,}", f"{full:,}", *shares])
    head = ["kind", "family", "seen", "crossed in full", "share crossed, %", *(f"{words}, %" for words, _ in groups)]
    about = " Rows in which nothing crossed are in neither of the last two columns." if groups else ""
    return table(
        f"Sensitive values over all rows: how many episodes showed, and how much of them crossed.{about}", head, rows, words=2
    )


def _redacts(strategy: str) -> bool:
    """Says whether a strategy has the option that replaces what a redactor finds."""
    return "redacted" in strategy.partition(":")[2].split(",")


def _share(tally: Tally, kind: str, rows: Sequence[int]) -> str:
    touched, crossed = (sum(counts[kind, row] for row in rows) for counts in (tally.touched, tally.crossed))
    return f"{100 * crossed / TENTHS / touched:.1f}" if touched else "-"


def _tasks(run: Run, naming: Naming, viewer: Viewer) -> Markup:
    tally, pairs = run.tally, run.totals.grid.pairs
    crossed, touched = Counter[int](), Counter[int]()
    for (pair, _), tenths in tally.by_pair.items():
        crossed[pair] += tenths
    for (pair, _), number in tally.touched_by_pair.items():
        touched[pair] += number
    ordered = sorted(crossed, key=lambda pair: (-crossed[pair] / touched[pair], pairs[pair]))[:TASKS]
    rows: list[Sequence[Content] | str] = []
    for pair in ordered:
        units = sorted((-number, unit) for (one, unit), number in tally.units.items() if one == pair)
        rest = f", and {len(units) - UNITS} more" if len(units) > UNITS else ""
        row, place = min((row, place) for (one, row), place in tally.first_leak.items() if one == pair)
        rows.append(
            [
                f"{pairs[pair][0]} ({pairs[pair][1]})",
                ", ".join(unit for _, unit in units[:UNITS]) + rest,
                f"{100 * crossed[pair] / TENTHS / touched[pair]:.1f}",
                f"{len([1 for one, _ in tally.first_leak if one == pair])} of {len(run.summaries)}",
                joined(viewer.link(place), f", {naming.row(run.summaries[row].cell)}"),
            ]
        )
    head = ["task", "units that crossed most often", "share crossed, %", "rows that exposed any", "first episode"]
    return table(f"Tasks that expose most, over all rows: {len(ordered)} of {len(crossed)}", head, rows, words=2)


def _ways(run: Run) -> Markup:
    found = run.crossings
    if found is None:
        return tag(
            "p",
            "Forms, requests and sources are recorded only in runs with ",
            tag("code", "--trajectories"),
            "; this run has none.",
            class_="soft",
        )
    requests = Counter[str](
        {
            f"{mode}, {share}{', redacted' if redacted else ''}": number
            for (mode, share, redacted), number in found.requests.items()
        }
    )
    sources = Counter[str]()
    for (origin, tool), number in found.sources.items():
        sources[f"{origin} {tool}".strip()] += number
    tables = (
        ("By which request", "request", requests),
        ("In which form", "form", found.forms),
        ("What had brought them there", "source", sources),
    )
    whole = f"{sum(found.forms.values()):,} exposures in {found.episodes:,} recorded episodes"
    return joined(
        tag("h3", "How values crossed"),
        tag("p", f"{whole}. A unit counts again when it crosses more fully than before."),
        tag("div", *(_way(caption, head, counts) for caption, head, counts in tables), class_="beside"),
    )


def _way(caption: str, head: str, counts: Counter[str]) -> Markup:
    whole = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows: list[Sequence[Content] | str] = [[name, f"{n:,}", f"{100 * n / whole:.1f}"] for name, n in ordered[:WAYS]]
    more = f"; {len(ordered) - WAYS} rarer ones left out" if len(ordered) > WAYS else ""
    return table(f"{caption}{more}", [head, "exposures", "%"], rows)
