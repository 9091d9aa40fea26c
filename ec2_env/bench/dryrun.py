"""What a run will use before it starts: a sample of its episodes is played in place, with simulated models for the real ones."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache

from ec2_env.bench.grid import BenchConfig, Cell, Grid, strategy_of
from ec2_env.cloud.metering import EDGE_LATENCY, edge_flops
from ec2_env.cloud.prices import Price, price
from ec2_env.envs import DecisionEnv
from ec2_env.models.base import ModelCard
from ec2_env.models.drafts import PROBE_TOKENS
from ec2_env.models.loading import load_model, loader
from ec2_env.rollout import EpisodeKey, play
from ec2_env.strategy import Prepared, Strategy
from ec2_env.trace import EdgeTurn, Trajectory

SAMPLE = 24
"""Episodes played for each row, spread evenly over its tasks; all of them where there are no more."""
HEAVY_SAMPLE = 2
"""The same for strategies that are themselves slow models."""
LARGE_EDGE = 20e9
"""Number of weights from which an edge model is stood in for by the larger simulated one."""
FIGURES = (
    "cloud_calls",
    "tokens_raw",
    "tokens_cached",
    "tokens_out",
    "cloud_usd",
    "edge_requests",
    "edge_in",
    "edge_out",
    "edge_pflops",
    "edge_hours",
)
"""What is estimated: sums over all episodes of a row."""
Gaps = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one row of the table is expected to use.

    Attributes:
        name: The strategy, or what is scored for offline routers.
        edge: Specification of its edge model; None if it has none.
        episodes: Episodes that will be played.
        sampled: Episodes that the means are taken from.
        totals: Sums over `episodes` by the names of `FIGURES`.
        usd_error: Standard error of the sum of US dollars, from the sampling alone; 0 where all episodes were played.
    """

    name: str
    edge: str | None
    episodes: int
    sampled: int
    totals: Mapping[str, float]
    usd_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a whole run is expected to use, and on which assumptions."""

    title: str
    rows: tuple[Row, ...]
    assumptions: tuple[str, ...]

    @property
    def all(self) -> Row:
        """The sum of the rows."""
        totals = {name: math.fsum(row.totals[name] for row in self.rows) for name in FIGURES}
        return Row(
            name="all",
            edge=None,
            episodes=sum(row.episodes for row in self.rows),
            sampled=sum(row.sampled for row in self.rows),
            totals=totals,
            usd_error=math.sqrt(math.fsum(row.usd_error**2 for row in self.rows)),
        )


def dry_run(config: BenchConfig, sample: int = SAMPLE) -> DryRun:
    """Estimates what a run will use; sends nothing anywhere and writes nothing.

    Args:
        config: The run.
        sample: Most episodes to play for each row.

    Raises:
        UnknownName: for a strategy, model or task that does not exist.
        ConfigurationError: for a cloud model without a price.
    """
    rows: list[Row] = []
    gaps: dict[str | None, dict[tuple[str, str], float]] = {}
    if config.prepared():
        grid = config.calibration()
        scores: dict[str | None, dict[tuple[str, str], float]] = {}
        for number, cell in enumerate(grid.cells):
            row, scores[cell.edge] = _row(config, grid, number, sample, {}, name=f"scoring: {cell.strategy}")
            rows.append(row)
        gaps = {edge: {pair: scores[None][pair] - value for pair, value in found.items()} for edge, found in scores.items()}
    grid = config.grid()
    for number, cell in enumerate(grid.cells):
        rows.append(_row(config, grid, number, sample, gaps.get(cell.edge, {}))[0])
    tasks = f"{len(grid.tasks)} task{'s' if len(grid.tasks) > 1 else ''}"
    title = f"suite {config.name}: {tasks}, {len(grid):,} episodes in {len(grid.cells)} rows"
    if config.prepared():
        title += f", and {len(config.calibration()):,} to score tasks for offline routers"
    return DryRun(title=title, rows=tuple(rows), assumptions=tuple(_assumptions(config, rows)))


def _row(
    config: BenchConfig, grid: Grid, number: int, sample: int, gaps: Gaps, name: str = ""
) -> tuple[Row, dict[tuple[str, str], float]]:
    """Returns a row's estimate, and the mean completion of each sampled pair of task and language."""
    cell = grid.cells[number]
    strategy = strategy_of(cell.strategy)
    if getattr(strategy, "heavy", False):
        sample = min(sample, HEAVY_SAMPLE)
    if isinstance(strategy, Prepared):
        strategy = strategy.prepare(gaps)
    count = min(sample, grid.row)
    keys = [grid.episode(number * grid.row + place * grid.row // count)[1] for place in range(count)]
    played = [_played(cell, key, strategy, config.suite.max_steps) for key in keys]
    used = [_used(trajectory, cell) for trajectory in played]
    mean = {figure: math.fsum(one[figure] for one in used) / count for figure in FIGURES}
    spread = math.fsum((one["cloud_usd"] - mean["cloud_usd"]) ** 2 for one in used) / max(1, count - 1)
    unseen = 1 - count / grid.row
    row = Row(
        name=name or cell.strategy,
        edge=cell.edge,
        episodes=grid.row,
        sampled=count,
        totals={figure: value * grid.row for figure, value in mean.items()},
        usd_error=grid.row * math.sqrt(spread / count * unseen),
    )
    return row, {(one.task, one.language): one.result["completion"] for one in played}


def _played(cell: Cell, key: EpisodeKey, strategy: Strategy, max_steps: int | None) -> Trajectory:
    edge = stand_in(cell.edge, edge=True) if cell.edge else None
    env = _env(edge, stand_in(cell.cloud, edge=False), max_steps)
    return play(env, strategy, key)


@cache
def _env(edge: str | None, cloud: str, max_steps: int | None) -> DecisionEnv:
    return DecisionEnv(edge=edge, cloud=cloud, max_episode_steps=max_steps)


@cache
def stand_in(spec: str, *, edge: bool) -> str:
    """Returns the simulated model that stands in for a model; a simulated one stands for itself."""
    card = load_model(spec).card
    if card.simulated:
        return spec
    if edge:
        return "sim:qwen3.5-27b" if (card.parameters or 0) >= LARGE_EDGE else "sim:qwen3.5-9b"
    return f"sim:{card.price}" if card.price in loader("sim").names() else "sim:gpt-5.4"


def _used(trajectory: Trajectory, cell: Cell) -> dict[str, float]:
    """Returns an episode's figures, for the real models' prices and sizes."""
    result = trajectory.result
    work = [event for event in trajectory.events if isinstance(event, EdgeTurn)]
    turns = [turn for turn in work if not turn.redaction]
    real = cell.edge is not None and not load_model(cell.edge).card.simulated
    drafted = (
        (PROBE_TOKENS - 1) * sum(turn.probe for turn in turns) if real else 0
    )  # a simulated model tells its tool in one token
    tokens_in, tokens_out = sum(turn.tokens_in for turn in turns), sum(turn.tokens_out for turn in turns) + drafted
    redaction = math.fsum(turn.flops for turn in work if turn.redaction)
    parameters = (load_model(cell.edge).card.parameters or 0.0) if cell.edge else 0.0
    found = {name: float(result[name]) for name in ("cloud_calls", "tokens_raw", "tokens_cached", "tokens_out", "cloud_usd")}
    own, other = load_model(cell.cloud).card.price, load_model(stand_in(cell.cloud, edge=False)).card.price
    if own != other:
        found["cloud_usd"] = _usd(found, price(str(own)))
    return {
        **found,
        "edge_requests": float(sum(turn.tokens_out > 0 for turn in turns)),
        "edge_in": float(tokens_in),
        "edge_out": float(tokens_out),
        "edge_pflops": (edge_flops(parameters, tokens_in + tokens_out) + redaction) / 1e15,
        "edge_hours": (math.fsum(turn.latency_s for turn in work) + drafted / EDGE_LATENCY.decode_tokens_per_s) / 3600,
    }


def _usd(tokens: Mapping[str, float], rates: Price) -> float:
    """Returns the price of an episode's tokens; long requests are not told apart."""
    raw = tokens["tokens_raw"] * float(rates.input_usd_per_mtok)
    cached = tokens["tokens_cached"] * float(rates.cached_input_usd_per_mtok)
    return (raw + cached + tokens["tokens_out"] * float(rates.output_usd_per_mtok)) / 1e6


def _assumptions(config: BenchConfig, rows: Sequence[Row]) -> list[str]:
    cloud = load_model(config.cloud).card
    rates = price(str(cloud.price))
    most = max(row.sampled for row in rows)
    notes = [
        f"Taken from at most {most} episode(s) of each row, played in place; nothing was sent and nothing was written.",
        *(_substitution(spec, edge=True) for spec in config.edges),
        _substitution(config.cloud, edge=False),
        f"Prices of {cloud.price} as of {rates.as_of}, per million tokens: ${rates.input_usd_per_mtok} raw input, "
        f"${rates.cached_input_usd_per_mtok} cached, ${rates.output_usd_per_mtok} output, thinking included. Requests that fail "
        "and are repeated are not reckoned with.",
        "In brackets: 95% interval of the sampling of episodes alone.",
    ]
    if any(row.edge for row in rows):
        notes.append(
            "Edge input is what is not in the edge's prefix cache; requests include probes, those of real models of "
            f"{PROBE_TOKENS} tokens. Edge hours: one request after the other, "
            f"{EDGE_LATENCY.prefill_tokens_per_s:,.0f} tokens read and "
            f"{EDGE_LATENCY.decode_tokens_per_s:,.0f} written a second."
        )
    return [note for note in notes if note]


def _substitution(spec: str, *, edge: bool) -> str:
    card: ModelCard = load_model(spec).card
    if card.simulated:
        return ""
    size = "" if not edge or card.parameters else " Its parameters are not given, so its operations count as 0."
    return (
        f"{stand_in(spec, edge=edge)} stands in for {card.name}: a model that works or thinks otherwise may use half, or several "
        f"times, as much.{size}"
    )


def as_text(found: DryRun) -> str:
    """Returns the estimate as a table with its assumptions."""
    head = ["strategy", "episodes", "calls", "raw in", "cached", "out", "USD", "requests", "in", "out", "PFLOP", "hours"]
    lines: list[str] = []
    last: str | None = None
    cells = [_cells(row) for row in (*found.rows, found.all)]
    widths = [max(len(line[column]) for line in [head, *cells]) for column in range(len(head))]
    side = " " * (widths[0] + widths[1] + 4)
    cloud, edge = (sum(widths[part]) + 2 * (len(widths[part]) - 1) for part in (slice(2, 7), slice(7, 12)))
    lines += [
        f"EC2-Env dry run, {found.title}",
        "",
        f"{side}{' cloud, all episodes ':-^{cloud}}  {' edge, all episodes ':-^{edge}}",
    ]
    lines.append(_line(head, widths))
    for row, line in zip((*found.rows, found.all), cells, strict=True):
        if row.edge != last and row.edge is not None:
            lines.append(f"-- edge {load_model(row.edge).card.name}")
        last = row.edge
        lines.append(_line(line, widths))
    return "\n".join([*lines, "", *(line for note in found.assumptions for line in textwrap.wrap(note, 120))]) + "\n"


def as_json(found: DryRun) -> str:
    """Returns the estimate with its assumptions as JSON."""
    rows = [asdict(row) for row in (*found.rows, replace(found.all, edge=None))]
    return json.dumps({"title": found.title, "rows": rows, "assumptions": found.assumptions}, indent=2, ensure_ascii=False) + "\n"


def in_a_line(found: DryRun) -> str:
    """Returns the estimate in one line, for the start of a run that costs money."""
    total = found.all
    episodes = f"{total.episodes:,} episode{'s' if total.episodes > 1 else ''}"
    tokens = sum(total.totals[name] for name in ("tokens_raw", "tokens_cached", "tokens_out"))
    return (
        f"expected of the whole run: {episodes}, {_short(total.totals['cloud_calls'])} cloud calls, "
        f"{_short(tokens)} cloud tokens, about ${_dollars(total)} by simulated models; --dry-run shows the assumptions, "
        "--max-usd caps the bill"
    )


def _cells(row: Row) -> list[str]:
    shown = [_short(row.totals[name]) for name in FIGURES]
    shown[4] = _dollars(row)
    shown[8], shown[9] = (_decimal(row.totals[name]) for name in FIGURES[8:])
    return [row.name, f"{row.episodes:,}", *shown]


def _dollars(row: Row) -> str:
    usd, error = row.totals["cloud_usd"], 1.96 * row.usd_error
    if not usd or not error:
        return _amount(usd)
    return f"{_amount(usd)} [{_amount(max(0.0, usd - error))},{_amount(usd + error)}]"


def _amount(usd: float) -> str:
    """Returns US dollars with three digits at least; a whole number from 100 on."""
    return f"{usd:,.0f}" if usd >= 100 else f"{usd:.1f}" if usd >= 10 else f"{usd:.2f}" if usd >= 1 else f"{usd:.3g}"


def _short(value: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:,.1f}{name}"
    return f"{value:.0f}"


def _decimal(value: float) -> str:
    return f"{value:,.1f}" if value >= 1 else f"{value:.2g}" if value else "0"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    return "  ".join(
        [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True))]
    ).rstrip()
