"""Rank correlations of the project, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest

from ec2_env.bench.reproduction import ranks
from ec2_env.training.router_evaluation import spearman


@pytest.mark.parametrize("seed", range(3))
def test_rank_correlations_are_those_of_scipy_with_ties(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    one, other = rng.integers(6, size=20).astype(float), rng.integers(6, size=20).astype(float)
    theirs = stats.spearmanr(one, other).statistic
    assert spearman(one, other) == pytest.approx(theirs)
    assert list(ranks(one.tolist())) == pytest.approx(stats.rankdata(one).tolist())
    assert np.corrcoef(ranks(one.tolist()), ranks(other.tolist()))[0, 1] == pytest.approx(theirs)
