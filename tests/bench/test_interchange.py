"""Results of the study's harness: read with tolerance, marked as imported, in no way mixed with ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ec2_env import cli
from ec2_env.bench.harness_folder import read_folder
from ec2_env.bench.interchange import imported, report, write
from ec2_env.bench.run_data import load_run
from ec2_env.bench.stored_runs import open_run, records_in
from ec2_env.bench.table import as_markdown, as_terminal
from ec2_env.errors import ConfigurationError, UnknownName

EDGE, CLOUD = "server/Qwen/Qwen3.5-27B", "provider/gpt-5.4"
ZH, EN = "07_Privacy_task_34_expense_zh", "07_Privacy_task_42_summary"
USAGE = {
    "input_tokens": 4_000,
    "output_tokens": 900,
    "cache_read_tokens": 9_000,
    "cache_write_tokens": 0,
    "request_count": 7,
    "n_turns": 7,
    "elapsed_time": 55.5,
}
AUDIT = {"prompt_tokens": 3_000, "cache_read_tokens": 1_000, "cache_write_tokens": 200, "completion_tokens": 100}
FIELDS = [
    {"entity_id": "E1", "field": "phone", "value": "139-2288-3366", "leak_score": 1.0, "weight": 2.0},
    {"entity_id": "E1", "field": "id", "value": "secret-value", "leak_score": 0.0, "weight": 1.0},
]


def score(overall: float, privacy: float | None, source: str = "cloud_assistant_audit", **more: Any) -> dict[str, Any]:
    return {"part": 0.1, "overall_score": overall, "privacy_score": privacy, "privacy_source": source, **more}


class Harness:
    """Writes result folders as the harness does."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(
        self,
        folder: str,
        mode: str,
        scores: object,
        *,
        task: str = ZH,
        run: int = 1,
        usage: object = None,
        lines: Mapping[str, Sequence[object]] | None = None,
        route: str | None = None,
        command: bool = True,
        redact: bool = False,
        name: str | None = None,
    ) -> Path:
        main, other = (CLOUD, None) if mode == "cloud-only" else (EDGE, None if mode == "local-only" else CLOUD)
        suffix = name or f"Qwen3.5-27B_20260601_1200_abc{run:03d}" + (f"_run{run}" if run else "")
        place = self.root / folder / "Bench" / task / suffix
        place.mkdir(parents=True)
        if command:
            arguments = {"run_mode": mode, "model": main, "cloud_model": other, "no_redact": not redact}
            (self.root / folder / "run_command.json").write_text(json.dumps({"args": arguments}), encoding="utf-8")
        for file, held in (("score.json", scores), ("usage.json", USAGE if usage is None else usage)):
            if held is not None:
                (place / file).write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
        for file, entries in (lines or {}).items():
            text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in entries)
            (place / file).write_text(text, encoding="utf-8")
        if route is not None:
            (place / "task_route.json").write_text(json.dumps({"decision": route}), encoding="utf-8")
        return place


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path / "output")


def turn(raw: int, cached: int, output: int) -> dict[str, Any]:
    usage = {"input": raw, "cacheRead": cached, "output": output}
    return {"type": "message", "message": {"role": "assistant", "usage": usage}}


def audit(*entries: object) -> dict[str, Sequence[object]]:
    return {"cloud_assistant_audit.jsonl": entries}


def full(harness: Harness) -> None:
    """Writes two tasks, two repeats, three modes."""
    for task, base in ((ZH, 0.5), (EN, 0.75)):
        for run in (1, 2):
            harness.put("edge", "local-only", score(base - 0.25, None, "disabled"), task=task, run=run)
            chat = {"chat.jsonl": [turn(3_000, 0, 300), {"type": "other"}, turn(1_000, 9_000, 600)]}
            harness.put("cloud", "cloud-only", score(base + 0.25, 0.25, "chat_jsonl"), task=task, run=run, lines=chat)
            step = score(base, 2 / 3, privacy_details=FIELDS)
            harness.put("step", "step-router", step, task=task, run=run, lines=audit(AUDIT))


def test_modes_models_and_repeats_become_rows_and_trials(harness: Harness) -> None:
    full(harness)
    found = imported([harness.root])
    settings = found.settings
    assert settings["strategies"] == ["cloud_only", "edge_only", "step_routing"]
    assert (settings["edges"], settings["cloud"], settings["trials"]) == (["qwen3.5-27b"], "gpt-5.4", 2)
    assert settings["tasks"] == [f"{ZH}/zh", f"{EN}/en"]
    assert len(found.records) == 12
    assert {record.edge for record in found.records if record.strategy == "cloud_only"} == {None}
    means = {one.cell.strategy: one.figures for one in found.totals().summaries()}
    assert [means[name]["completion"].mean for name in ("edge_only", "step_routing", "cloud_only")] == [0.375, 0.625, 0.875]
    assert means["edge_only"]["privacy"].mean == 1.0
    assert means["step_routing"]["privacy"].mean == pytest.approx(2 / 3)


def test_tokens_are_taken_from_where_the_harness_takes_them(harness: Harness) -> None:
    full(harness)
    by_strategy = {record.strategy: record.result for record in imported([harness.root]).records}
    cloud, step, edge = by_strategy["cloud_only"], by_strategy["step_routing"], by_strategy["edge_only"]
    assert [cloud[f"tokens_{kind}"] for kind in ("raw", "cached", "out")] == [4_000, 9_000, 900]
    assert cloud["cloud_calls"] == 2
    assert cloud["cloud_usd"] == pytest.approx((4_000 * 2.5 + 9_000 * 0.25 + 900 * 15) / 1e6)
    assert [step[f"tokens_{kind}"] for kind in ("raw", "cached", "out")] == [1_800, 1_000, 100]
    assert step["edge_flops"] == 2 * 27e9 * (4_000 - 2_000 + 900 - 100)
    assert edge["edge_flops"] == 2 * 27e9 * 4_900 and cloud["edge_flops"] == 0
    assert edge["cloud_usd"] == 0 and edge["latency_s"] == 55.5 and edge["steps"] == 7


def test_a_routed_task_is_counted_on_the_side_that_did_it(harness: Harness) -> None:
    chat = {"chat.jsonl": [turn(10, 20, 30)]}
    harness.put("route", "query-router", score(1.0, 0.5), task=ZH, route="CLOUD", lines=chat)
    harness.put("route", "query-router", score(0.5, 1.0, "query_router_local"), task=EN, route="LOCAL", lines=chat)
    left, right = imported([harness.root]).records
    assert (left.strategy, left.result["tokens_cached"], left.result["edge_flops"]) == ("task_routing", 20, 0)
    assert (right.result["tokens_cached"], right.result["cloud_calls"]) == (0, 0) and right.result["edge_flops"] > 0


def test_without_the_transcript_the_sum_is_billed_at_the_price_of_short_requests(harness: Harness) -> None:
    usage = {**USAGE, "input_tokens": 400_000, "cache_read_tokens": 0, "output_tokens": 0}
    harness.put("cloud", "cloud-only", score(1.0, 0.0), usage=usage)
    (record,) = imported([harness.root]).records
    assert record.result["cloud_usd"] == pytest.approx(1.0) and record.result["cloud_calls"] == 7


def test_values_that_the_judge_wrote_down_are_not_taken_over(harness: Harness, tmp_path: Path) -> None:
    harness.put(
        "step", "step-router", score(0.5, 1 / 3, privacy_details=FIELDS), lines=audit({**AUDIT, "messages": ["139-2288-3366"]})
    )
    write(imported([harness.root]), tmp_path / "run")
    text = (tmp_path / "run" / "results.jsonl").read_text(encoding="utf-8")
    assert "E1/phone" in text and "139-2288-3366" not in text and "secret-value" not in text
    ((_, record),) = records_in(tmp_path / "run" / "results.jsonl")
    assert record.result["privacy_unweighted"] == 0.5 and record.result["exposed"] == [{"unit": "E1/phone", "level": 1.0}]


def test_return_needs_cloud_only_runs_of_the_same_tasks(harness: Harness) -> None:
    full(harness)
    with_unit, without = imported([harness.root]), imported([harness.root / "edge", harness.root / "step"])
    assert "return" not in with_unit.settings["not_measured"] and "return" in without.settings["not_measured"]
    record = next(one for one in with_unit.records if one.strategy == "cloud_only")
    assert record.reward["cost"] == pytest.approx(1.0) and record.total == pytest.approx(
        record.reward["task"] - 0.15 - 0.25 * 0.75
    )
    rows = [row for _, section in report(without, "x").sections for row in section]
    assert all(row.figures["return"].mean is None and row.figures["privacy_all"].mean is None for row in rows)


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        (None, "no score.json"),
        ("{not json", "no score.json"),
        ('{"overall_score": NaN}', "no number"),
        ("[" * 100_000, "no score.json"),
        ({"error": "json parse failed"}, "grading failed"),
        ({"note": "text only"}, "no number"),
    ],
)
def test_a_run_without_a_score_is_an_error_or_counts_as_0_as_in_the_harness(
    harness: Harness, scores: object, problem: str
) -> None:
    harness.put("edge", "local-only", scores)
    harness.put("edge", "local-only", score(1.0, None, "disabled"), run=2)
    ours, theirs = imported([harness.root]), imported([harness.root], as_harness=True)
    assert ours.records[0].result["status"] == "error" and problem in ours.records[0].result["problem"]
    assert ours.totals().summaries()[0].figures["completion"].mean == 1.0
    assert theirs.totals().summaries()[0].figures["completion"].mean == 0.5
    assert "1 run without a score: in no mean." in ours.notes and "1 run without a score: completion 0." in theirs.notes


def test_a_judge_that_failed_is_no_leak_unless_one_counts_as_the_harness_does(harness: Harness) -> None:
    failed = score(0.5, 0.0, privacy_reason="privacy_judge_failed: timeout", privacy_details=[])
    harness.put("step", "step-router", failed, lines=audit(AUDIT))
    ours, theirs = imported([harness.root]), imported([harness.root], as_harness=True)
    assert ours.totals().summaries()[0].figures["privacy"].mean is None
    assert theirs.totals().summaries()[0].figures["privacy"].mean == 0.0
    assert any("judge failed" in note for note in ours.notes)


def test_scores_without_an_overall_one_are_averaged_and_tasks_without_annotation_have_no_privacy(harness: Harness) -> None:
    harness.put("step", "step-router", {"a": 0.5, "b": True, "c": "text"}, redact=True)
    (record,) = imported([harness.root]).records
    assert (record.strategy, record.result["completion"], record.result["units"]) == ("step_routing:redacted", 0.75, 0)


@pytest.mark.parametrize(
    ("name", "strategy", "edge", "cloud"),
    [
        ("Qwen3.5-9B_20260601_1200_abcdef_run2", "edge_only", "qwen3.5-9b", "none"),
        ("gpt-5.4_cloud-only_run2", "cloud_only", None, "gpt-5.4"),
        ("Qwen3.5-9B_ec_advisor-gpt-5.4_20260601_1200_abcdef_run2", "adaptive_assistance", "qwen3.5-9b", "gpt-5.4"),
        ("gpt-5.4_ec_orchestrator-v1-Qwen3.5-9B_run2", "orchestrator_v1", "qwen3.5-9b", "gpt-5.4"),
    ],
)
def test_without_the_recorded_command_the_name_of_the_folder_says_how_it_was_run(
    harness: Harness, name: str, strategy: str, edge: str | None, cloud: str
) -> None:
    harness.put("x", "advisor", score(1.0, None), name=name, command=False)
    found = imported([harness.root])
    (record,) = found.records
    assert (record.strategy, record.edge, record.cloud, record.trial) == (strategy, edge, cloud, 1)


def test_damaged_lines_and_numbers_are_passed_over(harness: Harness) -> None:
    wild = {"prompt_tokens": -5, "cache_read_tokens": "many", "completion_tokens": 1e999}
    lines = audit("{broken", [1, 2], AUDIT, wild, "")
    harness.put("step", "step-router", score(7.0, -3.0, privacy_details=["x", {"leak_score": 9}]), usage=[1], lines=lines)
    (record,) = imported([harness.root]).records
    assert record.result["completion"] == 1.0 and record.result["privacy"] == 0.0
    assert record.result["tokens_raw"] == 1_800 and record.result["cloud_calls"] == 2


def test_what_an_agent_left_is_not_taken_for_a_result(harness: Harness) -> None:
    place = harness.put("edge", "local-only", score(0.25, None, "disabled"))
    (place.parent / "other" / "task_output").mkdir(parents=True)
    (place.parent / "other" / "task_output" / "score.json").write_text('{"overall_score": 1}', encoding="utf-8")
    assert [one.completion for one in read_folder(harness.root)] == [0.25]


def test_batches_without_numbers_are_repeats_and_a_number_given_twice_is_an_error(harness: Harness) -> None:
    for batch in ("aaaaaa", "bbbbbb"):
        harness.put("edge", "local-only", score(1.0, None, "disabled"), name=f"Qwen3.5-27B_20260601_1200_{batch}")
    assert [record.trial for record in imported([harness.root]).records] == [0, 1]
    for batch in ("cccccc", "dddddd"):
        harness.put("edge", "local-only", score(1.0, None), name=f"Qwen3.5-27B_20260601_1200_{batch}_run1", task=EN)
    with pytest.raises(ConfigurationError, match="both repeat 1"):
        imported([harness.root])


def test_what_cannot_be_imported_is_an_error(harness: Harness, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder"):
        imported([tmp_path / "nothing"])
    with pytest.raises(ConfigurationError, match="holds no result"):
        imported([tmp_path])
    harness.put("cloud", "cloud-only", score(1.0, 0.0), lines={"chat.jsonl": [turn(1, 1, 1)]})
    with pytest.raises(UnknownName, match="dearest"):
        imported([harness.root], entry="dearest")
    (harness.root / "cloud" / "run_command.json").write_text(
        '{"args": {"run_mode": "telepathy", "model": "m"}}', encoding="utf-8"
    )
    with pytest.raises(ConfigurationError, match="telepathy"):
        imported([harness.root])


def test_an_imported_run_is_shown_like_ours_and_never_taken_for_one(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full(harness)
    out = tmp_path / "run"
    assert cli.main(["import", str(harness.root), "--out", str(out)]) == 0
    first = capsys.readouterr().out
    assert first.startswith("Imported runs of the study's harness: 2 tasks, 2 repeats") and "Not measured" in first
    assert cli.main(["import", str(harness.root), "--out", str(out)]) == 0
    assert capsys.readouterr().out == first and len(list(records_in(out / "results.jsonl"))) == 12
    assert len(load_run(out).rows) == 3
    with pytest.raises(ConfigurationError, match="imported, not played"):
        open_run(out, "replayed")
    found = imported([harness.root])
    assert found.settings["suite_digest"].startswith("imported:")
    assert max(map(len, as_terminal(report(found, "x"), None, color=False).splitlines())) <= 120
    assert "| cloud_only |" in as_markdown(report(found, "x"), None)
    assert cli.main(["import", str(harness.root / "edge"), "--out", str(out)]) == 2
