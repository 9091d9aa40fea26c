"""What a table shows, before it is laid out: the figures of a run, its title and its notes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import ec2_env
from ec2_env.bench.grid import BenchConfig
from ec2_env.bench.runner import Outcome
from ec2_env.bench.statistics import DRAWS, Summary
from ec2_env.bench.trivial import TrivialRow, trivial_rows
from ec2_env.cloud.prices import price
from ec2_env.models.loading import load_model

FORMAT = 1
"""Version of the JSON report."""
TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that is shown of a run. Holds nothing that depends on when, where or with how many processes it was run.

    Attributes:
        title: What was run.
        models: Which models are simulated and which are real.
        sections: Rows under one heading each: those without an edge model, then by edge model.
        notes: Errors, missing episodes, units, the command.
        command: Gives the same report.
        trivial: Agents without a model on the same episodes; none in a table without the row of random decisions.
    """

    title: str
    models: str
    sections: tuple[tuple[str, tuple[Summary, ...]], ...]
    notes: tuple[str, ...]
    command: str
    config: BenchConfig
    trivial: tuple[TrivialRow, ...] = ()


def make_report(config: BenchConfig, outcome: Outcome) -> Report:
    """Returns the report of a run, whole or stopped early."""
    summaries = outcome.totals.summaries()
    edges = tuple(dict.fromkeys(summary.cell.edge for summary in summaries))
    cloud = f"cloud {_label(config.cloud)}"
    trivial = trivial_rows(config.suite) if "random" in config.strategies else ()
    headings = {edge: f"edge {_label(edge)}, {cloud}" if edge else f"no edge model, {cloud}" for edge in edges}
    return Report(
        title=_title(config),
        models=_models(config, [edge for edge in edges if edge]),
        sections=tuple((headings[edge], tuple(s for s in summaries if s.cell.edge == edge)) for edge in edges),
        notes=(
            *_problems(summaries, len(outcome.totals.grid)),
            *_gap(summaries),
            *_reading(config, outcome),
            *_about_trivial(trivial),
        ),
        command=config.command(),
        config=config,
        trivial=trivial,
    )


def _title(config: BenchConfig) -> str:
    suite = config.suite
    pairs = suite.pairs()
    tasks, languages = len({task for task, _ in pairs}), " and ".join(dict.fromkeys(language for _, language in pairs))
    seeds = "seed 0" if suite.seeds == 1 else f"seeds 0-{suite.seeds - 1}"
    return (
        f"EC2-Env {ec2_env.__version__}, suite {config.name}: {count(tasks, 'task')} ({languages}), {suite.split} split, "
        f"{seeds}, {count(suite.trials, 'trial')}; {count(len(pairs) * suite.seeds * suite.trials, 'episode')} a row"
    )


def _models(config: BenchConfig, edges: list[str]) -> str:
    specs = [*edges, config.cloud]
    simulated = [_label(spec) for spec in specs if load_model(spec).card.simulated]
    real = [_label(spec) for spec in specs if not load_model(spec).card.simulated]
    parts = [f"Simulated models: {', '.join(simulated)}; these are no measurements of the real ones."] if simulated else []
    parts += [f"Real models: {', '.join(real)}."] if real else []
    return " ".join(parts)


def _label(spec: str) -> str:
    return load_model(spec).card.name


def _problems(summaries: tuple[Summary, ...], whole: int) -> list[str]:
    notes = []
    if missing := sum(summary.missing for summary in summaries):
        notes.append(f"PARTIAL: {missing:,} of {whole:,} episodes have not been played; rows are not comparable.")
    for kind, meaning in (
        ("errors", "ended in an infrastructure error, in no mean"),
        ("invalid", "without one valid call, in the means"),
    ):
        found = [(summary, getattr(summary, kind)) for summary in summaries if getattr(summary, kind)]
        if found:
            where = ", ".join(f"{number} in {_row_name(summary)}" for summary, number in found)
            notes.append(f"Episodes {meaning}: {where}.")
    return notes


def _gap(summaries: tuple[Summary, ...]) -> list[str]:
    """Says by how much reported usage differs from the package's own count, if an endpoint reported any."""

    def total(figure: str) -> float:
        return sum((summary.figures[figure].mean or 0.0) * summary.episodes for summary in summaries)

    usd, tokens = total("usage_gap_usd"), total("usage_gap_tokens")
    if abs(usd) < TINY and abs(tokens) < TINY:
        return []
    own = total("cloud_usd") - usd
    share = f" ({100 * usd / own:+.1f}%)" if own > TINY else ""
    return [
        f"Billed is the usage that the endpoint reports: {tokens:+,.0f} tokens and {usd:+.4f} USD{share} beside the package's "
        "own count, over all rows."
    ]


def _row_name(summary: Summary) -> str:
    return summary.cell.strategy + (f" ({_label(summary.cell.edge)})" if summary.cell.edge else "")


def _reading(config: BenchConfig, outcome: Outcome) -> list[str]:
    weights, rates = config.weights, price(str(load_model(config.cloud).card.price))
    notes = [
        f"In brackets: 95% intervals by a bootstrap over tasks ({DRAWS:,} draws). Completion, Pass^3 and privacy in percent; "
        "privacy 100: nothing sensitive reached the cloud.",
        "Tokens, USD and edge PFLOPs are means per episode. Return = "
        f"{weights.task:g} x completion - {weights.cost:g} x cost (1: as cloud-only) - {weights.privacy:g} x exposure (1: all).",
        f"Prices as of {rates.as_of}. Suite digest {str(outcome.settings['suite_digest'])[:12]}.",
    ]
    if config.suite.trials < 3:
        notes.append("Pass^3 needs at least 3 trials.")
    return notes


def _about_trivial(rows: tuple[TrivialRow, ...]) -> list[str]:
    if not rows:
        return []
    return [
        f"Trivial agents: {count(rows[0].instances, 'instance')}, one trial each; under Pass^3 the share that passes. They "
        "finish at once, report all that they can read in every slot, or make valid calls and a report at random."
    ]


def count(number: int, noun: str) -> str:
    """Returns "1 task", "1,200 tasks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_data(report: Report, compared: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the report as JSON-able data, with the published figures in a part of their own if they are wanted."""
    config, suite = report.config, report.config.suite
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": ec2_env.__version__,
        "title": report.title,
        "models": {
            spec: {"name": load_model(spec).card.name, "simulated": load_model(spec).card.simulated}
            for spec in (*config.edges, config.cloud)
        },
        "suite": {"name": config.name, "split": suite.split, "seeds": suite.seeds, "trials": suite.trials},
        "weights": asdict(config.weights),
        "notes": list(report.notes),
        "command": report.command,
        "rows": [_row(summary) for _, rows in report.sections for summary in rows],
        "trivial": [asdict(row) for row in report.trivial],
    }
    return data if compared is None else {**data, "published": dict(compared)}


def _row(summary: Summary) -> dict[str, Any]:
    figures = {name: asdict(estimate) for name, estimate in sorted(summary.figures.items())}
    counts = {name: getattr(summary, name) for name in ("episodes", "errors", "invalid", "missing")}
    return {**summary.cell._asdict(), **counts, "figures": figures}
