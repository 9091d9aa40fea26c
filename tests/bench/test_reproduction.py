"""The reproduced table: rows in their order, errors as they are, and verdicts that can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ec2_env.bench import reproduction, reproduction_table
from ec2_env.bench.progress import Quiet
from ec2_env.bench.reproduction import Pair, Row, configs, predicted, rank_correlation, ranks, rows, study_privacy
from ec2_env.bench.statistics import Estimate, Summary
from ec2_env.bench.suites import load_suite


def row(strategy: str, edge: str | None = "qwen3.5-9b", cloud: str | None = "gpt-5.4", **figures: Pair) -> Row:
    known = {name: Pair(50.0, 50.0) for name in reproduction.FIGURES}
    return Row(strategy=strategy, edge=edge, cloud=cloud, fitted=edge is None or cloud is None, figures={**known, **figures})


def test_fourteen_rows_are_played_in_four_runs() -> None:
    runs = configs()
    assert {name: len(config.cells()) for name, config in runs.items()} == {
        "gpt-5.4": 11,
        "deepseek-v4-flash": 1,
        "deepseek-v4-pro": 1,
        "glm-5.1": 1,
    }
    assert all(config.suite.trials == 3 and len(config.suite.pairs()) == 128 for config in runs.values())


def test_stand_ins_take_the_place_of_the_models() -> None:
    runs = configs({"qwen3.5-9b": "sim:qwen3.5-9b@repair=0.5"}, "sim:gpt-5.4@follow=1")
    assert runs["gpt-5.4"].edges == ("sim:qwen3.5-9b@repair=0.5", "sim:qwen3.5-27b")
    assert (runs["gpt-5.4"].cloud, runs["glm-5.1"].cloud) == ("sim:gpt-5.4@follow=1", "sim:glm-5.1")


def test_a_played_table_has_the_published_rows_with_shares_of_the_cloud_alone(tmp_path: Path) -> None:
    small = {
        name: on_one_task(config)
        for name, config in configs({"qwen3.5-9b": "sim:qwen3.5-9b@repair=0.2"}).items()
        if name in ("gpt-5.4", "glm-5.1")
    }
    found = rows(reproduction.play(tmp_path, workers=1, watch=Quiet(silent=True), runs=small))
    assert [(one.edge, one.cloud, one.strategy) for one in found[:2]] == [
        (None, "gpt-5.4", "cloud_only"),
        (None, "glm-5.1", "cloud_only"),
    ]
    assert len(found) == 12 and len(predicted(found)) == 8
    assert found[0].figures["usd"].ours == pytest.approx(100.0) == found[0].figures["usd"].published
    alone = next(one for one in found if one.strategy == "edge_only")
    assert alone.figures["edge_flops"].ours == pytest.approx(100.0)
    assert alone.figures["privacy"].ours == 100.0
    for text in (reproduction_table.as_terminal(found), reproduction_table.as_markdown(found)):
        assert "predicted" in text and "fitted" in text and "Spearman" in text
    assert len(json.loads(reproduction_table.as_json(found))["rows"]) == 12


def on_one_task(config: reproduction.BenchConfig) -> reproduction.BenchConfig:
    """Returns the run on one short task."""
    suite = msgspec.structs.replace(load_suite("email-smoke"), trials=3)
    return reproduction.BenchConfig(
        name="email-smoke", suite=suite, strategies=config.strategies, edges=config.edges, cloud=config.cloud
    )


def test_a_prediction_is_near_enough_in_points_and_for_money_in_percent_of_the_published_share() -> None:
    near = row("sketch_guided", completion=Pair(54.0, 50.0), usd=Pair(1.2, 1.0))
    far = row("sketch_guided", completion=Pair(54.2, 50.0), usd=Pair(1.4, 1.0))
    assert (near.within("completion"), near.within("usd")) == (True, True)
    assert (far.within("completion"), far.within("usd")) == (False, False)
    assert near.within("tokens_raw") is None
    lines = reproduction_table.verdicts([near, far])
    assert lines[0].startswith("completion: 1 of 2 predicted rows within 4 points; mean absolute error 4.1")
    assert "USD %: 1 of 2" in lines[3] and "mean absolute error 30.0" in lines[3]


def test_stars_mark_predictions_only() -> None:
    off = Pair(90.0, 50.0)
    assert "90.0*" in reproduction_table.cells(row("step_routing", completion=off))
    assert "90.0" in reproduction_table.cells(row("edge_only", cloud=None, completion=off))


def test_equal_values_share_a_rank_and_order_is_what_counts() -> None:
    assert list(ranks([3.0, 1.0, 3.0])) == [2.5, 1.0, 2.5]
    upward = [row("a", usd=Pair(float(n), float(n**3))) for n in range(5)]
    downward = [row("a", usd=Pair(float(-n), float(n))) for n in range(5)]
    assert rank_correlation(upward, "usd") == pytest.approx(1.0)
    assert rank_correlation(downward, "usd") == pytest.approx(-1.0)
    assert rank_correlation(upward, "completion") is None


def test_privacy_is_mixed_as_the_study_counts_it() -> None:
    summary = Summary(
        cell=configs()["gpt-5.4"].cells()[0],
        episodes=1,
        errors=0,
        invalid=0,
        missing=0,
        figures={"privacy": Estimate(0.2, 0.1, 0.3), "privacy_all": Estimate(0.7, 0.6, 0.8)},
    )
    assert study_privacy(summary).mean == pytest.approx(0.66 * 0.2 + 0.34 * 0.7)
    assert study_privacy(summary).low == pytest.approx(0.66 * 0.1 + 0.34 * 0.6)
