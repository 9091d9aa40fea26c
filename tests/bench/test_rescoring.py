"""Scores recomputed from trajectories: as recorded, or with other weights, prices, graders and audits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from ec2_env import cli
from ec2_env.bench.records import EpisodeRecord
from ec2_env.bench.rescoring import Rescored, Rescoring, audited, rescore, result_of, write
from ec2_env.bench.stored_runs import open_run, records_in
from ec2_env.bench.table import as_json, as_terminal
from ec2_env.cloud.ledger import units_of
from ec2_env.cloud.prices import load_prices
from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.reward import RewardWeights
from ec2_env.trace import CloudCall, Trajectory, from_json


def trajectories(stored: Path) -> list[Trajectory]:
    return [from_json(line) for line in (stored / "trajectories.jsonl").read_bytes().splitlines()]


def records(stored: Path) -> list[EpisodeRecord]:
    return [record for _, record in records_in(stored / "results.jsonl")]


def scored(stored: Path, how: Rescoring) -> Rescored:
    return rescore(open_run(stored, "scored again"), how, "ec2-env rescore RUN")


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def test_every_figure_follows_from_the_events(stored: Path) -> None:
    for one in trajectories(stored):
        assert result_of(one, units_of(one)) == one.result


def test_a_fresh_audit_finds_what_the_first_one_found(stored: Path) -> None:
    found = trajectories(stored)
    assert sum(len(event.exposures) for one in found for event in one.events if isinstance(event, CloudCall)) > 3
    for one in found:
        assert audited(one, units_of(one)) == one


def test_a_fresh_audit_finds_what_was_taken_out_of_a_record(stored: Path) -> None:
    leaky = next(one for one in trajectories(stored) if one.result["any_leak"])
    bare = tuple(msgspec.structs.replace(e, exposures=()) if isinstance(e, CloudCall) else e for e in leaky.events)
    emptied = msgspec.structs.replace(leaky, events=bare)
    assert result_of(emptied, units_of(leaky))["any_leak"] is False
    assert audited(emptied, units_of(leaky)) == leaky


def test_without_a_setting_nothing_differs_and_the_run_is_not_changed(stored: Path) -> None:
    before = digests(stored)
    found = scored(stored, Rescoring(audit=True, grade=True))
    assert found.changed == 0 and "All figures are as recorded." in found.report.notes[0]
    assert list(found.records) == records(stored)
    assert digests(stored) == before


def test_other_weights_change_the_return_and_nothing_else(stored: Path) -> None:
    weights = RewardWeights(task=2.0, cost=0.5, privacy=1.0)
    found = scored(stored, Rescoring(weights=weights))
    for old, new in zip(records(stored), found.records, strict=True):
        assert new.result == old.result and new.reward == old.reward
        reward = new.reward
        assert new.total == pytest.approx(2 * reward["task"] - 0.5 * reward["cost"] - reward["exposure"])
    assert found.settings["weights"] == {"task": 2.0, "cost": 0.5, "privacy": 1.0}
    assert any("return" in note and "recorded to rescored" in note for note in found.report.notes)


def test_unweighted_counts_every_value_alike(stored: Path) -> None:
    found = scored(stored, Rescoring(unweighted=True))
    for old, new in zip(records(stored), found.records, strict=True):
        assert new.result["privacy"] == pytest.approx(old.result["privacy_unweighted"])
        assert new.reward["exposure"] == pytest.approx(1 - old.result["privacy_all_unweighted"])
        assert new.result["completion"] == old.result["completion"]


def test_doubled_prices_double_the_bill_and_leave_the_cost_as_it_is(stored: Path, tmp_path: Path) -> None:
    book = tmp_path / "prices.toml"
    book.write_text(
        '["gpt-5.4"]\ninput = "5.00"\ncached_input = "0.50"\noutput = "30.00"\nas_of = "2026-11-30"\nsource = "twice"\n',
        encoding="utf-8",
    )
    found = scored(stored, Rescoring(prices=load_prices(book)))
    assert any(record.result["cloud_usd"] for record in found.records)
    for old, new in zip(records(stored), found.records, strict=True):
        assert new.result["cloud_usd"] == pytest.approx(2 * old.result["cloud_usd"])
        assert new.reward["cost"] == pytest.approx(old.reward["cost"])


def test_a_price_book_without_the_model_is_an_error(stored: Path) -> None:
    with pytest.raises(UnknownName, match=r"gpt-5\.4"):
        scored(stored, Rescoring(prices={}))


def test_rescored_records_are_kept_apart_and_marked(stored: Path, tmp_path: Path) -> None:
    found = scored(stored, Rescoring(unweighted=True))
    for _ in range(2):
        write(found, tmp_path / "out")
    assert len(records(tmp_path / "out")) == 14
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]["source"] == "rescored"
    with pytest.raises(ConfigurationError, match="rescored, not played"):
        open_run(tmp_path / "out", "submitted")
    with pytest.raises(ConfigurationError, match="other settings"):
        write(scored(stored, Rescoring()), tmp_path / "out")


def test_a_run_without_its_trajectories_cannot_be_scored_again(stored: Path, tmp_path: Path) -> None:
    for name in ("manifest.json", "results.jsonl"):
        (tmp_path / name).write_bytes((stored / name).read_bytes())
    with pytest.raises(ConfigurationError, match="kept no trajectories"):
        scored(tmp_path, Rescoring())
    lines = (stored / "trajectories.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "trajectories.jsonl").write_bytes(b"".join(reversed(lines)))
    with pytest.raises(ConfigurationError, match="is not the trajectory of line"):
        scored(tmp_path, Rescoring())


def test_table_of_a_rescored_run_is_laid_out_like_any_other(stored: Path) -> None:
    report = scored(stored, Rescoring()).report
    assert as_terminal(report, None, color=False).rstrip().endswith("Reproduce: ec2-env rescore RUN")
    assert len(json.loads(as_json(report, None))["rows"]) == 7


def test_command_takes_weights_and_refuses_to_write_into_the_run(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rescore", str(stored), "--weights", "1,0,0", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("strategy,")
    assert cli.main(["rescore", str(stored), "--weights", "1,2"]) == 2
    assert "three numbers" in capsys.readouterr().err
    assert cli.main(["rescore", str(stored), "--out", str(stored)]) == 2
    assert "never changed" in capsys.readouterr().err
