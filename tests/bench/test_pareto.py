"""Fronts and hypervolumes, against counting and against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ec2_env.bench.pareto import dominates, hypervolume, pareto_front, segment_hypervolume


def test_a_point_dominates_what_is_worse_somewhere_and_better_nowhere() -> None:
    assert dominates((1, 1), (1, 0))
    assert not dominates((1, 1), (1, 1))
    assert not dominates((1, 0), (0, 1))


def test_front_leaves_out_what_is_dominated_and_keeps_equals() -> None:
    assert pareto_front([(1, 0), (0, 1), (0.5, 0.5), (0.4, 0.5), (1, 0)]) == (0, 1, 2, 4)
    assert pareto_front([]) == ()


def test_volume_of_one_point_is_its_box_and_overlap_counts_once() -> None:
    assert hypervolume([(0.5, 0.4, 0.3)]) == pytest.approx(0.06)
    assert hypervolume([(1, 0.5), (0.5, 1)]) == pytest.approx(0.75)
    assert hypervolume([(1, 0.5), (0.5, 1)], reference=(0.5, 0.5)) == 0.0
    assert hypervolume([]) == 0.0


def test_dominated_points_add_nothing_whatever_the_order() -> None:
    points = [(0.9, 0.2, 0.5), (0.3, 0.8, 0.6), (0.2, 0.2, 0.2), (0.5, 0.5, 0.9)]
    whole = hypervolume(points)
    assert hypervolume([points[n] for n in pareto_front(points)]) == pytest.approx(whole)
    assert all(hypervolume(order) == pytest.approx(whole) for order in itertools.permutations(points))


def test_volume_is_the_share_of_the_cube_that_counting_finds() -> None:
    random = np.random.default_rng(3)
    points, cube = random.random((7, 3)), (np.indices((24, 24, 24)).reshape(3, -1).T + 0.5) / 24
    counted = (cube[:, None, :] <= points[None, :, :]).all(axis=2).any(axis=1).mean()
    assert hypervolume(points.tolist()) == pytest.approx(counted, abs=0.02)


def test_mismatched_coordinates_are_refused() -> None:
    with pytest.raises(ValueError, match=r"zip\(\)"):
        hypervolume([(1, 1)], reference=(0, 0, 0))
    with pytest.raises(ValueError, match="three coordinates"):
        segment_hypervolume((1, 1), (0, 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0.4, 1.0, 1.0), (0.7, 0.0, 0.2)),
        ((0.7, 0.0, 0.2), (0.4, 1.0, 1.0)),
        ((0.4, 0.2, 1.0), (0.7, 0.9, 0.1)),
        ((0.4, 0.5, 0.6), (0.3, 0.5, 0.6)),
    ],
)
def test_mixtures_dominate_what_many_of_them_do(one: tuple[float, ...], other: tuple[float, ...]) -> None:
    shares = np.linspace(0, 1, 101)
    mixed = [tuple((1 - s) * np.array(one) + s * np.array(other)) for s in shares]
    assert segment_hypervolume(one, other) == pytest.approx(hypervolume(mixed), abs=6e-3)
    assert segment_hypervolume(one, other) >= hypervolume(mixed) - 1e-12
