"""Draws what the findings rest on: a figure for each, as PNG and as SVG. Needs the extra `plots`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ec2_env.bench.findings_abilities import STRATEGIES, gain, oracle_lead
from ec2_env.bench.findings_balance import keys
from ec2_env.bench.findings_plan import COLLABORATIONS, STRONG, WEAK, Played, abilities, asking_edge_at, raised
from ec2_env.bench.findings_rules import AXIS, COMPLETION, COST, PRIVACY, Array, lead, returns, spread
from ec2_env.bench.findings_sweep import advantage, column, key_at, preferred
from ec2_env.registry import require

COLORS: Mapping[str, str] = {
    "edge_only": "#7f7f7f",
    "cloud_only": "#000000",
    "sketch_guided": "#e69f00",
    "task_routing": "#56b4e9",
    "step_routing": "#0072b2",
    "adaptive_assistance": "#d55e00",
    "on_demand_query": "#009e73",
}
"""Colors that people with any color vision tell apart (Okabe and Ito)."""
MARKS: Mapping[str, str] = dict(zip(COLORS, "osDv^P*", strict=True))
SETTINGS: Mapping[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.titlepad": 13,
    "font.size": 9,
    "legend.frameon": False,
    "svg.hashsalt": "ec2-env",
}
Drawing = Callable[[Any, Played], None]


def draw(played: Played, folder: Path) -> list[Path]:
    """Draws a figure for each finding of the plan.

    Args:
        played: What was played.
        folder: Where the files go; those of an earlier call are replaced.

    Returns:
        The files.

    Raises:
        MissingExtra: if matplotlib is not installed.
    """
    matplotlib = require("matplotlib", extra="plots")
    figure = require("matplotlib.figure", extra="plots").Figure
    files = []
    with matplotlib.rc_context(dict(SETTINGS)):
        for number in sorted(set(played.plan.findings)):
            width, height, drawn = DRAWINGS[number]
            page = figure(figsize=(width, height), layout="constrained")
            drawn(page, played)
            for kind, about in (("png", {}), ("svg", {"Date": None})):
                files.append(folder / f"finding-{number}.{kind}")
                page.savefig(files[-1], dpi=130, metadata=about)
    return files


def ends(values: Array) -> tuple[float, float]:
    """Returns the ends of a 95% interval."""
    low, high = np.percentile(values[1:], [2.5, 97.5])
    return float(low), float(high)


def _line(axis: Any, x: Sequence[float], values: Sequence[Array], name: str, color: str, mark: str = "o") -> None:
    """Draws estimates over x with a band for their intervals."""
    bounds = [ends(one) for one in values]
    axis.plot(x, [one[0] for one in values], color=color, marker=mark, markersize=5, linewidth=1.6, label=name)
    axis.fill_between(x, [low for low, _ in bounds], [high for _, high in bounds], color=color, alpha=0.13, linewidth=0)


# -- finding 1


def _balance(page: Any, played: Played) -> None:
    grid = page.subplots(2, 3)
    for row, edge in zip(grid, (WEAK, STRONG), strict=True):
        _scatter(row[0], played, edge, COST, "cost (1: as cloud-only)")
        _scatter(row[1], played, edge, PRIVACY, "privacy")
        _lead_map(page, row[2], played, edge)
    handles, names = grid[0][0].get_legend_handles_labels()
    page.legend(handles, names, loc="outside lower center", ncols=4)
    page.suptitle("Finding 1: strategies, mixtures of the extremes, and who leads at which weights")


def _scatter(axis: Any, played: Played, edge: str, figure: int, label: str) -> None:
    """Draws completion over a figure, with intervals, and the line of mixtures."""
    found = played.parts["balance"]
    extremes, ours = keys(f"sim:{edge}")
    line = [found[key][0] for key in extremes]
    axis.plot(
        [one[figure] for one in line],
        [one[COMPLETION] for one in line],
        color="#999999",
        linestyle="--",
        linewidth=1,
        label="mixtures of the extremes",
    )
    for key in (*extremes, *ours):
        mean = found[key][0]
        across, up = ends(found[key][:, figure]), ends(found[key][:, COMPLETION])
        axis.errorbar(
            mean[figure],
            mean[COMPLETION],
            xerr=[[max(0.0, mean[figure] - across[0])], [max(0.0, across[1] - mean[figure])]],
            yerr=[[max(0.0, mean[COMPLETION] - up[0])], [max(0.0, up[1] - mean[COMPLETION])]],
            color=COLORS[key[0]],
            marker=MARKS[key[0]],
            markersize=7,
            linestyle="none",
            elinewidth=0.8,
            label=key[0],
        )
    axis.set(xlabel=label, ylabel="completion", title=f"edge {edge}")


def _lead_map(page: Any, axis: Any, played: Played, edge: str) -> None:
    """Draws by how much the best collaboration leads the better extreme at all weights."""
    extremes, ours = keys(f"sim:{edge}")
    leads = lead(played.parts["balance"], ours, extremes)[0]
    limit = max(0.01, float(np.abs(leads).max()))
    half = float(AXIS[1] - AXIS[0]) / 2
    box = (AXIS[0] - half, AXIS[-1] + half, AXIS[0] - half, AXIS[-1] + half)
    image = axis.imshow(leads, origin="lower", cmap="RdBu", vmin=-limit, vmax=limit, extent=box, aspect="auto")
    axis.plot(0.25, 0.15, marker="x", color="black", markersize=7)
    axis.annotate("default", (0.25, 0.15), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axis.set(xlabel="weight of exposure", ylabel="weight of cost", title="best collaboration less better extreme")
    page.colorbar(image, ax=axis, label="return")


# -- findings 2 and 3


def _convergence(page: Any, played: Played) -> None:
    found, at = played.parts["sweep"], abilities()
    left, middle, right = page.subplots(1, 3)
    for name in ("edge_only", *COLLABORATIONS, "cloud_only"):
        for axis, figure in ((left, COMPLETION), (middle, PRIVACY)):
            _line(axis, at, [column(one, figure, found, (name,))[0] for one in at], name, COLORS[name], MARKS[name])
    for figure, name, color in ((COMPLETION, "of completion", "#0072b2"), (PRIVACY, "of privacy", "#d55e00")):
        _line(right, at, [spread(column(one, figure, found, COLLABORATIONS)) for one in at], name, color)
    left.set(ylabel="completion", title="approach to cloud-only")
    middle.set(ylabel="privacy", title="privacy by strategy", ylim=(-0.02, 1.04))
    right.set(ylabel="highest less lowest", title="range among collaborations", ylim=(0, None))
    right.legend(loc="best")
    _end_abilities(page, (left, middle, right), columns=6)
    page.suptitle("Finding 2: strategies over the ability of the edge (bands: 95% intervals)")


def _end_abilities(page: Any, axes: Sequence[Any], columns: int) -> None:
    """Marks the study's edge models in all drawings, and names the lines of the first below the page."""
    for axis in axes:
        _mark_models(axis)
    handles, names = axes[0].get_legend_handles_labels()
    page.legend(handles, names, loc="outside lower center", ncols=columns)


def _mark_models(axis: Any) -> None:
    """Marks the abilities of the study's edge models."""
    at = abilities()
    axis.set_xlabel("ability of the edge, logits")
    for ability, name in ((at[1], "9B"), (at[3], "27B")):
        axis.axvline(ability, color="#bbbbbb", linewidth=0.8, linestyle=":", zorder=0)
        axis.annotate(
            name,
            (ability, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=7,
            ha="center",
        )


def _preference(page: Any, played: Played) -> None:
    found, at = played.parts["help"], abilities()
    left, middle, right = page.subplots(1, 3)
    for name in COLORS:
        values = [returns(found[key_at(name, one)]) for one in at]
        left.plot(at, [one[0] for one in values], color=COLORS[name], marker=MARKS[name], markersize=5, label=name)
    _line(middle, at, [advantage(found, one) for one in at], "readiness to ask constant", "#d55e00")
    _line(middle, at, [advantage(found, one, asking_edge_at) for one in at], "readiness falls with ability", "#0072b2", "s")
    _line(right, at, [preferred(found, one) for one in at], "readiness to ask constant", "#d55e00")
    _line(right, at, [preferred(found, one, asking_edge_at) for one in at], "readiness falls with ability", "#0072b2", "s")
    middle.axhline(0, color="#999999", linewidth=0.8)
    left.set(ylabel="return at the default weights", title="strategies")
    middle.set(ylabel="return", title="best edge-controlled less best external")
    right.set(ylabel="share of the weights", title="edge-controlled preferred", ylim=(-0.02, 1.25))
    right.set_yticks(np.linspace(0, 1, 6))
    right.legend(loc="upper left")
    _end_abilities(page, (left, middle, right), columns=7)
    page.suptitle("Finding 3: who is preferred, over the ability of the edge (bands: 95% intervals)")


# -- finding 4


def _marginal(page: Any, played: Played) -> None:
    found = played.parts["abilities"]
    names = sorted((name for name in raised() if name != "nothing"), key=lambda name: float(gain(found, name)[0]))
    axis = page.subplots()
    rows: list[tuple[str, list[Array]]] = [(name, [gain(found, name, (one,)) for one in STRATEGIES]) for name in names]
    places = np.arange(len(rows))
    for number, strategy in enumerate(STRATEGIES):
        values = [each[number] for _, each in rows]
        bounds = np.array([ends(one) for one in values])
        means = np.array([one[0] for one in values])
        errors = np.abs(np.stack([means - bounds[:, 0], bounds[:, 1] - means]))
        axis.barh(places + 0.38 * (number - 0.5), means, 0.36, color=COLORS[strategy], label=strategy)
        axis.errorbar(means, places + 0.38 * (number - 0.5), xerr=errors, color="#333333", linestyle="none", linewidth=0.9)
    oracle = oracle_lead(played)
    low, high = ends(oracle)
    place = len(rows)
    axis.barh(place, oracle[0], 0.5, color="#cc79a7", label="oracle decision, less the mean of the two")
    axis.errorbar(
        oracle[0], place, xerr=[[oracle[0] - low], [high - oracle[0]]], color="#333333", linestyle="none", linewidth=0.9
    )
    axis.axvline(0, color="#333333", linewidth=0.8)
    axis.set_yticks([*places, place], [*(name for name, _ in rows), "perfect invocation decisions"])
    axis.set(xlabel="gain in return at the default weights (95% intervals)")
    axis.set_title(f"Finding 4: what raising one thing is worth, edge {WEAK}")
    handles, labels = axis.get_legend_handles_labels()
    page.legend(handles, labels, loc="outside lower center", ncols=3)


DRAWINGS: Mapping[int, tuple[float, float, Drawing]] = {
    1: (12, 7.5, _balance),
    2: (12, 4.4, _convergence),
    3: (13, 4.4, _preference),
    4: (8, 6, _marginal),
}
"""Width and height in inches, and what draws, by finding."""
