"""The study's published figures beside ours: apart, marked, and never in one mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ec2_env.bench.report import Report
from ec2_env.bench.statistics import Summary
from ec2_env.models.loading import load_model

OURS = ("completion", "Pass^3", "privacy", "USD %", "tokens %", "FLOP %")
HEAD = ("strategy", *(heading for figure in OURS for heading in (figure, "publ.")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A second table: each of our figures with the published one to its right.

    `data` is what was published, as it ships.
    """

    title: str
    head: Sequence[str]
    sections: Sequence[tuple[str, Sequence[Sequence[str]]]]
    notes: Sequence[str]
    data: dict[str, Any]


@cache
def published() -> dict[str, Any]:
    """Returns the published rows; see the file for units."""
    text = resources.files("ec2_env.bench").joinpath("published.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def compare(report: Report) -> Comparison:
    """Returns the rows that the study has published, too, with its figures."""
    data = published()
    clouds = {load_model(report.config.cloud).card.name, None}
    theirs = {(row["edge"], row["strategy"]): row for row in data["rows"] if row["cloud"] in clouds}
    their_unit = theirs.get((None, "cloud_only"))
    ours = [summary for _, rows in report.sections for summary in rows]
    unit = next((summary for summary in ours if summary.cell.strategy == "cloud_only"), None)
    sections = []
    for heading, summaries in report.sections:
        rows = [
            _row(summary, theirs[key], unit, their_unit) + _flops(summary, summaries, theirs, key)
            for summary in summaries
            if (key := (_edge(summary), summary.cell.strategy)) in theirs and their_unit is not None
        ]
        sections += [(heading, rows)] if rows else []
    used = {load_model(spec).card.simulated for summary in ours for spec in (summary.cell.edge, summary.cell.cloud) if spec}
    kind = "simulated" if used == {True} else "real" if used == {False} else "partly simulated"
    return Comparison(
        title=f"Ours ({kind} models, suite {report.config.name}) and published. {data['source']}.",
        head=HEAD,
        sections=sections,
        notes=([] if sections else ["None of these rows has been published."])
        + [
            "Left of each pair: ours. Right: published, for other tasks: the order of the strategies can be compared, levels "
            "cannot. USD and cloud tokens (all kinds) in percent of cloud-only; operations of the edge model in percent of "
            "edge-only, ours without the work of probes, since the study's figures show no trace of it.",
        ],
        data=data,
    )


def _edge(summary: Summary) -> str | None:
    return load_model(summary.cell.edge).card.name if summary.cell.edge else None


def _row(ours: Summary, theirs: dict[str, Any], our_unit: Summary | None, their_unit: dict[str, Any]) -> list[str]:
    cells = [ours.cell.strategy]
    for figure, column in (("completion", "completion"), ("pass_hat_3", "pass3"), ("privacy", "privacy")):
        mean = ours.figures[figure].mean
        cells += ["-" if mean is None else f"{mean * 100:.1f}", f"{theirs[column]:.1f}"]
    cells += [_share(_usd(ours), _usd(our_unit) if our_unit else None), _share(theirs["usd"], their_unit["usd"])]
    cells += [
        _share(_tokens(ours), _tokens(our_unit) if our_unit else None),
        _share(sum(theirs["tokens"]), sum(their_unit["tokens"])),
    ]
    return cells


def _flops(
    ours: Summary, section: Sequence[Summary], theirs: dict[tuple[str | None, str], dict[str, Any]], key: tuple[str | None, str]
) -> list[str]:
    """Returns the edge model's operations without probes as a share of those of edge-only; ours, and published."""
    if key[0] is None:
        return ["-", "-"]
    alone = next((summary for summary in section if summary.cell.strategy == "edge_only"), None)
    name = "edge_pflops_without_probes"
    return [
        _share(ours.figures[name].mean or 0.0, alone.figures[name].mean if alone else None),
        _share(theirs[key]["edge_pflops"], theirs[(key[0], "edge_only")]["edge_pflops"]),
    ]


def _usd(summary: Summary) -> float:
    return summary.figures["cloud_usd"].mean or 0.0


def _tokens(summary: Summary) -> float:
    return sum(summary.figures[name].mean or 0.0 for name in ("tokens_raw", "tokens_cached", "tokens_out"))


def _share(value: float, unit: float | None) -> str:
    return f"{100 * value / unit:.1f}" if unit else "-"
