"""Priors are moved one at a time, and a fit to other rows stays within their ranges."""

from __future__ import annotations

import numpy as np
import pytest

from ec2_env.bench import ablation
from ec2_env.bench.ablation import FIGURES, RANGES, Effect, Move, config, figures, leave_one_out, moves
from ec2_env.bench.ablation_table import as_terminal, defaults
from ec2_env.bench.reproduction import FIGURES as ALL
from ec2_env.bench.reproduction import Pair, Row
from ec2_env.models.profile import load_profile

PUBLISHED = ({"completion": 50.0, "privacy": 60.0, "usd": 20.0}, {"completion": 55.0, "privacy": 70.0, "usd": 30.0})


def table(repair: float = 0.0, follow: float = 0.0) -> tuple[Row, ...]:
    """Returns rows in which two priors move completion and privacy, and nothing else does anything."""
    alone = [
        Row(strategy=name, edge=edge, cloud=cloud, fitted=True, figures={n: Pair(40.0, 40.0) for n in ALL})
        for name, edge, cloud in (
            ("cloud_only", None, "gpt-5.4"),
            ("edge_only", "qwen3.5-9b", None),
            ("edge_only", "qwen3.5-27b", None),
        )
    ]
    rows = []
    for published in PUBLISHED:
        ours = {
            "completion": published["completion"] + 6.0 + 10.0 * repair,
            "privacy": published["privacy"] - 20.0 + 30.0 * follow,
            "usd": published["usd"],
        }
        pairs = {name: Pair(ours.get(name, 0.0), published.get(name, 0.0)) for name in ALL}
        rows.append(Row(strategy="step_routing", edge="qwen3.5-9b", cloud="gpt-5.4", fitted=False, figures=pairs))
    return (*alone, *rows)


def effects() -> list[Effect]:
    found = []
    for move in moves():
        own = {"repair": 0.0, "follow": 0.0, move.prior: move.value - PRESENT[move.prior]}
        moved = table(own["repair"], own["follow"])
        found.append(Effect(move=move, rows=moved, change=figures(moved) - figures(table())))
    return found


PRESENT = {name: (low + high) / 2 for name, (low, high) in RANGES.items()}


def test_every_prior_is_moved_to_both_ends_and_stands_inside_its_range() -> None:
    assert len(moves()) == 2 * len(RANGES) == len(set(moves()))
    for name in ("qwen3.5-9b", "qwen3.5-27b", "gpt-5.4"):
        for prior, (low, high) in RANGES.items():
            assert low <= getattr(load_profile(name), prior) <= high, (name, prior)


def test_a_move_changes_all_models_of_a_run_and_nothing_else() -> None:
    moved, plain = config(Move("repair", 0.5)), config(None)
    assert moved.edges == ("sim:qwen3.5-9b@repair=0.5", "sim:qwen3.5-27b@repair=0.5")
    assert moved.cloud == "sim:gpt-5.4@repair=0.5"
    assert (moved.strategies, moved.suite) == (plain.strategies, plain.suite)
    assert plain.suite.trials == 1


def test_a_fit_uses_the_priors_that_help_and_stays_within_their_ranges() -> None:
    found = leave_one_out(table(), effects(), PRESENT)
    assert len(found) == 2
    for one in found:
        assert set(one.priors) <= {"repair", "follow"}
        assert abs(one.after[0]) < abs(one.before[0]) and abs(one.after[1]) < abs(one.before[1])
        assert one.after[FIGURES.index("usd")] == pytest.approx(0.0, abs=1e-9)
        assert all(RANGES[name][0] - 1e-9 <= value <= RANGES[name][1] + 1e-9 for name, value in one.priors.items())


def test_the_row_that_is_left_out_is_not_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far off a row is, its own fit does not know it."""
    base = table()
    spoiled = list(base)
    off = {**base[-1].figures, "completion": Pair(500.0, 55.0)}
    spoiled[-1] = Row(strategy="step_routing", edge="qwen3.5-9b", cloud="gpt-5.4", fitted=False, figures=off)
    monkeypatch.setattr(ablation, "RIDGE", 0.1)
    assert leave_one_out(base, effects(), PRESENT)[-1].priors == leave_one_out(spoiled, effects(), PRESENT)[-1].priors


def test_the_table_says_which_prior_matters_and_that_a_fit_was_made() -> None:
    text = as_terminal(table(), effects(), PRESENT)
    lines = text.splitlines()
    assert lines[4].split()[0] == "repair"
    assert "FITTED TO ROWS WITH TWO MODELS" in text and "mean absolute error" in lines[-1]
    assert defaults(table())["repair"] == load_profile("qwen3.5-9b").repair
    assert np.isfinite(figures(table())).all()
