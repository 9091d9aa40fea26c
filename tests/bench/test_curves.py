"""Areas under cost curves, and the published scores made of them."""

from __future__ import annotations

import numpy as np
import pytest

from ec2_env.bench.curves import OperatingPoint, aiq, apgr, area, call_performance_threshold, family_of, upper_hull

ENDS = [OperatingPoint(0.0, 0.4), OperatingPoint(1.0, 0.8)]


def test_area_of_a_line_is_its_mean_height() -> None:
    assert area(ENDS, 0.0, 1.0) == pytest.approx(0.6)
    assert area([*ENDS, OperatingPoint(0.5, 0.8)], 0.0, 1.0) == pytest.approx(0.7)
    assert area([OperatingPoint(0.3, 0.5)], 0.0, 1.0) == pytest.approx(0.5)
    assert area(ENDS, 0.25, 0.75) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="low < high"):
        area(ENDS, 1.0, 1.0)


def test_area_is_numpys_trapezoid_of_random_curves() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        costs, qualities = np.sort([0.0, 1.0, *rng.random(5)]), rng.random(7)
        points = [OperatingPoint(*pair) for pair in zip(costs, qualities, strict=True)]
        assert area(points, 0.0, 1.0) == pytest.approx((np.diff(costs) * (qualities[1:] + qualities[:-1]) / 2).sum())


def test_hull_leaves_out_what_a_mixture_beats_and_what_costs_more_for_less() -> None:
    points = [
        OperatingPoint(*pair) for pair in ((0, 0.4), (0.2, 0.45), (0.4, 0.75), (0.6, 0.7), (1, 0.8), (1.2, 0.78), (0.4, 0.1))
    ]
    assert upper_hull(points) == [(0, 0.4), (0.4, 0.75), (1, 0.8)]


def test_hull_is_that_of_scipy() -> None:
    spatial = pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(2)
    for _ in range(10):
        held = rng.random((12, 2))
        held = held[np.argsort(held[:, 0])]
        rising = held[: held[:, 1].argmax() + 1]
        below = np.array([[held[0, 0], -1.0], [rising[-1, 0], -1.0]])  # so that no point is on the lower boundary
        if len(rising) < 2:
            continue
        theirs = spatial.ConvexHull(np.vstack([rising, below])).vertices
        ours = upper_hull([OperatingPoint(*pair) for pair in held])
        assert {tuple(point) for point in ours} == {tuple(rising[place]) for place in theirs if place < len(rising)}


def test_aiq_counts_the_hull_and_a_bad_router_falls_back_to_mixing() -> None:
    assert aiq([*ENDS, OperatingPoint(0.5, 0.3)], 0.0, 1.0) == pytest.approx(0.6)
    assert aiq([*ENDS, OperatingPoint(0.5, 0.8)], 0.0, 1.0) == pytest.approx(0.7)


def test_apgr_is_half_for_mixing_and_one_for_a_perfect_router() -> None:
    assert apgr(ENDS, 0.4, 0.8) == pytest.approx(0.5)
    assert apgr([ENDS[0], OperatingPoint(1e-12, 0.8), ENDS[1]], 0.4, 0.8) == pytest.approx(1.0)
    assert apgr([*ENDS, OperatingPoint(0.5, 0.3)], 0.4, 0.8) == pytest.approx((0.45 - 0.4) / 0.4)
    assert apgr(ENDS, 0.5, 0.5) is None


def test_threshold_is_the_cost_at_which_the_gap_is_closed_so_far() -> None:
    curve = [*ENDS, OperatingPoint(0.2, 0.6)]
    assert call_performance_threshold(curve, 0.4, 0.8, 0.5) == pytest.approx(0.2)
    assert call_performance_threshold(curve, 0.4, 0.8, 0.75) == pytest.approx(0.6)
    assert call_performance_threshold(curve, 0.4, 0.8, 0.0) == 0.0
    assert call_performance_threshold([ENDS[0]], 0.4, 0.8, 0.5) is None


@pytest.mark.parametrize(
    ("spec", "family"),
    [
        ("step_routing", "step_routing"),
        ("step_routing:threshold=1.5", "step_routing"),
        ("step_routing:redacted,threshold=1.5", "step_routing:redacted"),
        ("learned:runs/policy", "learned:runs/policy"),
    ],
)
def test_settings_of_a_strategy_are_one_family(spec: str, family: str) -> None:
    assert family_of(spec) == family
