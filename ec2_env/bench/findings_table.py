"""Lays the tested findings out: for a terminal, as Markdown, or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import ec2_env
from ec2_env.bench.findings_plan import FindingsPlan
from ec2_env.bench.findings_rules import Exhibit, Finding, Tested
from ec2_env.bench.suites import DEFAULT_SUITE, load_suite

WIDTH = 130
FEW = 10
HEAD = ("", "hypothesis", "must exceed", "estimate", "95% interval", "verdict")


def notes(plan: FindingsPlan) -> list[str]:
    """Returns what has to be known to read the verdicts."""
    whole = len(load_suite(DEFAULT_SUITE).tasks)
    part = f"all {whole} tasks" if plan.tasks == whole else f"{plan.tasks} of the {whole} tasks, evenly spaced by name,"
    trials = "once" if plan.trials == 1 else f"{plan.trials} times"
    words = [
        f"Simulated models, on {part} of {DEFAULT_SUITE}, each {trials}, test split; EC2-Env {ec2_env.__version__}.",
        "A hypothesis is reproduced if the 95% interval of its statistic (bootstrap over tasks, differences paired) lies above "
        "what it must exceed, contradicted if it lies below, and not reproduced if it includes it. Where a statistic takes the "
        "best or the spread of several means, the bootstrap's estimate of its bias is taken off. Each hypothesis is tested by "
        "itself: one in forty is found reproduced by chance where nothing is there. Those in brackets are checks and decide "
        "nothing.",
    ]
    fewest = plan.oracle_tasks if 4 in plan.findings else plan.tasks
    if fewest < FEW:
        words.append(f"A bootstrap over fewer than {FEW} tasks, here {fewest}, gives intervals that are too narrow.")
    if plan.tasks < whole:
        words.append(
            "Fewer tasks than the suite has: intervals are wide, and what is not reproduced here may be with all of them."
        )
    return words


def cells(one: Tested) -> list[str]:
    """Returns a tested hypothesis as text; a check in brackets."""
    asked = one.hypothesis
    name = asked.name if asked.counts else f"({asked.name})"
    return [
        name,
        asked.text,
        f"{asked.above:g}",
        f"{one.estimate:+.3f}",
        f"[{one.low:+.3f}, {one.high:+.3f}]",
        one.verdict if one.verdict != "not reproduced" else f"not reproduced (interval includes {asked.above:g})",
    ]


def as_terminal(found: Sequence[Finding], plan: FindingsPlan) -> str:
    """Returns claims, verdicts, hypotheses and tables for a terminal."""
    lines = []
    for finding in found:
        lines += [*textwrap.wrap(f"Finding {finding.number}. {finding.claim}", WIDTH), f"  => {finding.verdict}", ""]
        lines += [*textwrap.wrap(finding.setup, WIDTH), ""]
        lines += [*_aligned(HEAD, [cells(one) for one in finding.tested], left=(0, 1, 5)), ""]
        lines += [f"  {names}: {statistic}" for statistic, names in _statistics(finding).items()]
        lines += [""]
        for table in finding.exhibits:
            lines += [f"{table.title}:", *_aligned(table.head, table.rows, left=(0,)), ""]
    return "\n".join([*lines, *(line for note in notes(plan) for line in textwrap.wrap(note, WIDTH))]) + "\n"


def _statistics(finding: Finding) -> dict[str, str]:
    """Returns what the hypotheses measure, each with the names of those that measure it."""
    found: dict[str, str] = {}
    for one in finding.tested:
        asked = one.hypothesis
        found[asked.statistic] = ", ".join(filter(None, (found.get(asked.statistic), asked.name)))
    return found


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return [
        "  ".join(
            text.ljust(width) if n in left else text.rjust(width) for n, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def as_markdown(found: Sequence[Finding], plan: FindingsPlan) -> str:
    """Returns the same for a page."""
    lines = []
    for finding in found:
        lines += [f"### Finding {finding.number}: {finding.verdict}", "", f"> {finding.claim}", "", finding.setup, ""]
        rows = []
        for one in finding.tested:
            name, text, *rest = cells(one)
            rows.append([name, f"{text}: {one.hypothesis.statistic}", *rest])
        lines += [*_markdown(HEAD, rows, left=(0, 1, 5)), ""]
        for table in finding.exhibits:
            lines += [f"{table.title}:", "", *_markdown(table.head, table.rows, left=(0,)), ""]
    return "\n".join([*lines, *(f"{note}  " for note in notes(plan))]) + "\n"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    rule = ["---" if n in left else "---:" for n in range(len(head))]
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)]


def as_json(found: Sequence[Finding], plan: FindingsPlan) -> str:
    """Returns every figure."""
    data: dict[str, Any] = {
        "version": ec2_env.__version__,
        "plan": asdict(plan),
        "notes": notes(plan),
        "findings": [
            {
                "number": finding.number,
                "claim": finding.claim,
                "verdict": finding.verdict,
                "setup": finding.setup,
                "hypotheses": [_tested(one) for one in finding.tested],
                "tables": [_table(table) for table in finding.exhibits],
            }
            for finding in found
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def _tested(one: Tested) -> dict[str, Any]:
    figures = {"estimate": one.estimate, "low": one.low, "high": one.high, "verdict": one.verdict}
    return {**asdict(one.hypothesis), **figures}


def _table(table: Exhibit) -> dict[str, Any]:
    return {"title": table.title, "head": list(table.head), "rows": [list(row) for row in table.rows]}
