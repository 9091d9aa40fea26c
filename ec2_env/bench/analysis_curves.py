"""Tables of cost-performance and privacy-performance curves, and of Pareto fronts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ec2_env.bench.curves import OperatingPoint, aiq, apgr, area, call_performance_threshold, family_of
from ec2_env.bench.layout import Table
from ec2_env.bench.pareto import hypervolume, pareto_front
from ec2_env.bench.run_data import Row, RunData

ENDS = ("edge_only", "cloud_only")
AXES = {"cost": "share of cloud-only's USD", "exposure": "share of cloud-only's exposure"}


class _Place(NamedTuple):
    """Where a row stands: completion, cost as a share of cloud-only's, share of the sensitive values that stayed."""

    completion: float
    cost: float
    privacy: float


def _places(run: RunData, rows: Sequence[Row]) -> dict[Row, _Place]:
    """Returns the places of the rows that were played. Without a cloud-only row, cost is a share of the dearest row's."""
    played = [row for row in rows if row.keys]
    usd = {row: row.estimate("cloud_usd", run.tasks).mean or 0.0 for row in played}
    cloud = next((usd[row] for row in played if row.cell.strategy == "cloud_only"), max(usd.values(), default=0.0))
    found = {}
    for row in played:
        privacy = row.estimate("privacy", run.tasks).mean
        completion = row.estimate("completion", run.tasks).mean or 0.0
        found[row] = _Place(completion, usd[row] / cloud if cloud else 0.0, 1.0 if privacy is None else privacy)
    return found


def curve_tables(run: RunData) -> list[Table]:
    """Returns the scores of every family of strategies, for cost and for exposure."""
    data: list[Mapping[str, Any]] = []
    sections = []
    for edge in run.edges():
        places = _places(run, run.section(edge))
        ends = {row.cell.strategy: place for row, place in places.items() if row.cell.strategy in ENDS}
        if len(ends) < 2:
            continue
        families: dict[str, list[_Place]] = {"(mixture of the two ends)": []}
        for row, place in places.items():
            if row.cell.edge == edge and row.cell.strategy not in ENDS:
                families.setdefault(family_of(row.cell.strategy), []).append(place)
        rows = []
        for name, members in families.items():
            scores = {axis: _scores(axis, ends["edge_only"], ends["cloud_only"], members) for axis in AXES}
            rows.append([name, str(len(members)), *(_shown(value) for axis in AXES for value in scores[axis].values())])
            data += [{"edge": edge, "family": name, "points": len(members), "axis": axis, **scores[axis]} for axis in AXES]
        sections.append((f"edge {edge}", rows))
    if not sections:
        return []
    heads = [heading for _ in AXES for heading in ("area", "AIQ", "APGR", "CPT50", "CPT80")]
    notes = [
        "Each curve leads from edge_only by way of the family's rows (its settings) to cloud_only; completion against cost "
        "(first five columns: share of cloud-only's USD) and against exposure (last five: share of what cloud-only exposes), "
        "both from 0 to 1. area: mean completion along the curve. AIQ: along the non-decreasing convex hull (RouterBench, "
        "arXiv 2403.12031). APGR: mean part of the gap from edge_only to cloud_only that is recovered, in percent; 50 for "
        "mixing the two ends. CPT50, CPT80: share of the cost at which 50 or 80 percent of the gap is recovered (RouteLLM, "
        "arXiv 2406.18665; there, share of queries). All in percent.",
        "A row that costs more than cloud_only, or exposes more, is on no curve. A family of one row is a curve with one bend.",
    ]
    head = ("family", "rows", *heads)
    title = f"Cost-performance (left) and privacy-performance (right), run {run.path.name}"
    return [Table(name="curves", title=title, head=head, sections=sections, notes=notes, data=data)]


def _scores(axis: str, edge: _Place, cloud: _Place, members: Sequence[_Place]) -> dict[str, float | None]:
    """Returns the scores on one axis; all None where the cloud alone is not dearer, or exposes nothing."""
    names = ("area", "aiq", "apgr", "cpt50", "cpt80")
    whole = cloud.cost if axis == "cost" else 1 - cloud.privacy
    if whole <= 0:
        return dict.fromkeys(names)
    points = [
        OperatingPoint((place.cost if axis == "cost" else 1 - place.privacy) / whole, place.completion)
        for place in (edge, *members, cloud)
    ]
    inside = sorted(point for point in points if point.cost <= 1)
    thresholds = [call_performance_threshold(inside, edge.completion, cloud.completion, part) for part in (0.5, 0.8)]
    found = [area(inside, 0.0, 1.0), aiq(inside, 0.0, 1.0), apgr(inside, edge.completion, cloud.completion), *thresholds]
    return dict(zip(names, found, strict=True))


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def front_tables(run: RunData) -> list[Table]:
    """Returns which rows no other beats in completion, cost and privacy at once, and the volume that each adds."""
    sections, data, volumes = [], list[Mapping[str, Any]](), []
    for edge in run.edges():
        places = _places(run, run.section(edge))
        points = [(place.completion, max(0.0, 1 - place.cost), place.privacy) for place in places.values()]
        front = pareto_front([(place.completion, -place.cost, place.privacy) for place in places.values()])
        whole = hypervolume(points)
        fixed = hypervolume([p for row, p in zip(places, points, strict=True) if row.cell.strategy in ENDS])
        volumes.append(f"{f'edge {edge}: ' if edge else ''}{whole:.3f} (edge_only and cloud_only alone: {fixed:.3f})")
        rows = []
        for place, (row, at) in enumerate(places.items()):
            added = whole - hypervolume([point for other, point in enumerate(points) if other != place])
            on = place in front
            rows.append([row.cell.strategy, _shown(at.completion), _shown(at.cost), _shown(at.privacy), "yes" if on else ""])
            rows[-1].append(f"{added:.3f}")
            data.append({**row.cell._asdict(), **at._asdict(), "front": on, "adds": added, "hypervolume": whole})
        sections.append((f"edge {edge}" if edge else "no edge model", rows))
    notes = [
        f"Hypervolume: {'; '.join(volumes)}.",
        "Cost: percent of cloud-only's USD. front: no other row is as good in all three and better in one. The volume is "
        "that of all (completion, saving, privacy) that some row reaches, saving being 1 - cost, so 1 is perfect; adds: what "
        "would be missing without the row. A row as dear as cloud-only spans none. Means only: see the paired comparisons "
        "for what is certain.",
    ]
    title = f"Pareto fronts in completion, cost and privacy, run {run.path.name}"
    head = ("strategy", "completion", "cost", "privacy", "front", "adds")
    return [Table(name="fronts", title=title, head=head, sections=sections, notes=notes, data=data)]
