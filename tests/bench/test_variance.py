"""Components of variance, against simulated data with known ones."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ec2_env.bench.planning import PRIOR, expected, trials_for
from ec2_env.bench.suites import Suite
from ec2_env.bench.variance import Components, crossed_components, nested_components
from ec2_env.cli import main
from ec2_env.errors import ConfigurationError
from ec2_env.task import task_domains


def nested(rng: np.random.Generator, shape: tuple[int, int, int], spread: tuple[float, float, float]) -> NDArray[np.float64]:
    tasks, instances, trials = shape
    found = rng.normal(0, spread[0], (tasks, 1, 1)) + rng.normal(0, spread[1], (tasks, instances, 1))
    result: NDArray[np.float64] = found + rng.normal(0, spread[2], (tasks, instances, trials))
    return result


def split(values: NDArray[np.float64]) -> Components:
    tasks, instances, trials = np.indices(values.shape)
    found = nested_components(values.ravel(), tasks.ravel().tolist(), instances.ravel().tolist())
    assert found is not None and trials is not None
    return found


def test_components_are_those_of_a_case_worked_out_by_hand() -> None:
    # Two tasks, two instances each, two trials each. Mean squares: tasks 32, instances 8.5, trials 2.5.
    found = split(np.array([[[1.0, 3.0], [4.0, 8.0]], [[5.0, 5.0], [8.0, 10.0]]]))
    assert found.trial == pytest.approx((2 + 8 + 0 + 2) / 4)
    middle = (2 * ((2 - 4) ** 2 + (6 - 4) ** 2) + 2 * ((5 - 7) ** 2 + (9 - 7) ** 2)) / 2
    assert found.instance == pytest.approx((middle - 3) / 2)
    assert found.task == pytest.approx(max(0.0, (4 * ((4 - 5.5) ** 2 + (7 - 5.5) ** 2) - middle) / 4))


def test_components_are_found_again_in_simulated_data() -> None:
    rng = np.random.default_rng(1)
    found = [split(nested(rng, (60, 4, 3), (0.3, 0.2, 0.4))) for _ in range(60)]
    assert np.mean([one.task for one in found]) == pytest.approx(0.09, rel=0.08)
    assert np.mean([one.instance or 0 for one in found]) == pytest.approx(0.04, rel=0.08)
    assert np.mean([one.trial or 0 for one in found]) == pytest.approx(0.16, rel=0.03)


def test_components_are_not_biased_by_episodes_that_are_missing() -> None:
    rng = np.random.default_rng(2)
    found = []
    for _ in range(80):
        values = nested(rng, (50, 3, 3), (0.3, 0.2, 0.4))
        kept = rng.random(values.shape) > 0.4
        places = np.argwhere(kept)
        found.append(nested_components(values[kept], places[:, 0].tolist(), places[:, 1].tolist()))
    assert all(one is not None for one in found)
    assert np.mean([one.task for one in found if one]) == pytest.approx(0.09, rel=0.1)
    assert np.mean([one.instance or 0 for one in found if one]) == pytest.approx(0.04, rel=0.15)
    assert np.mean([one.trial or 0 for one in found if one]) == pytest.approx(0.16, rel=0.05)


def test_trial_component_is_the_one_way_mean_square_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = nested(np.random.default_rng(3), (12, 1, 4), (0.5, 0.0, 1.0))
    found = split(values)
    f = stats.f_oneway(*values[:, 0, :]).statistic
    assert found.instance is None and found.trial is not None
    assert (found.trial + 4 * found.task) / found.trial == pytest.approx(f)


def test_one_trial_leaves_its_spread_in_the_instances_and_one_task_has_no_components() -> None:
    found = split(nested(np.random.default_rng(4), (200, 3, 1), (0.3, 0.3, 0.4)))
    assert found.trial is None and found.instance == pytest.approx(0.25, rel=0.15)
    assert nested_components(np.array([1.0, 2.0]), ["a", "a"], [0, 1]) is None
    assert nested_components(np.array([]), [], []) is None


def test_models_tasks_and_trials_are_told_apart() -> None:
    rng, found = np.random.default_rng(5), []
    for _ in range(40):
        model, task = rng.normal(0, 0.3, (25, 1, 1)), rng.normal(0, 0.2, (1, 25, 1))
        values = model + task + rng.normal(0, 0.15, (25, 25, 1)) + rng.normal(0, 0.4, (25, 25, 3))
        found.append(crossed_components([[values[m, t] for t in range(25)] for m in range(25)]))
    means = [np.mean([getattr(one, name) or 0 for one in found]) for name in ("model", "task", "both", "trial")]
    assert means == pytest.approx([0.09, 0.04, 0.0225, 0.16], rel=0.1)
    assert crossed_components([[np.zeros(2)] * 3]) is None


def test_margin_is_that_of_simulated_means() -> None:
    rng = np.random.default_rng(6)
    components = Components(task=0.09, instance=0.04, trial=0.16)
    means = [nested(rng, (30, 2, 3), (0.3, 0.2, 0.4)).mean() for _ in range(3_000)]
    assert components.margin(30, 2, 3) == pytest.approx(1.96 * np.std(means), rel=0.05)


def test_trials_for_a_margin_are_the_fewest_that_reach_it() -> None:
    components = Components(task=0.04, instance=0.03, trial=0.1)
    for margin in (0.06, 0.05, 0.048):
        needed = components.trials_for(margin, 128, 1)
        assert needed is not None and components.margin(128, 1, needed) <= margin + 1e-12
        assert needed == 1 or components.margin(128, 1, needed - 1) > margin
    assert components.trials_for(0.02, 128, 1) is None


@pytest.fixture
def suite() -> Suite:
    return Suite(about="for tests", tasks=task_domains()["email"][:4], languages=("en",), seeds=2, trials=3)


def test_expected_margin_is_said_from_the_stated_variance(suite: Suite) -> None:
    said = expected(suite)
    assert f"4 tasks x 2 instances x 3 trials: +-{100 * PRIOR.margin(4, 2, 3):.1f} points" in said
    alone = expected(msgspec.structs.replace(suite, tasks=suite.tasks[:1]))
    assert "no margin" in alone


def test_trials_are_computed_or_what_is_needed_instead_is_said(suite: Suite) -> None:
    wanted = 100 * PRIOR.margin(4, 2, 5)
    assert trials_for(wanted, suite) == 5
    with pytest.raises(ConfigurationError, match=r"no number of trials reaches.*take more --seeds, or about \d+ tasks"):
        trials_for(5, suite)
    with pytest.raises(ConfigurationError, match="above 0"):
        trials_for(0, suite)


def test_bench_takes_the_trials_that_a_margin_needs_or_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--trials-for", "5", "--trials", "2"]) == 2
    assert "leave --trials out" in capsys.readouterr().err
    assert main(["bench", "--suite", "email-smoke", "--trials-for", "5"]) == 2
    assert "no number of trials reaches +-5 points with 1 task" in capsys.readouterr().err
    assert main(["bench", "--suite", "email-smoke", "--strategy", "edge_only", "--trials-for", "70", "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("ec2-env: one task: no margin") and "1 task, 2 episodes" in shown.out
