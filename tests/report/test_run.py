"""What is read of a run folder, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ec2_env.bench.grid import Cell
from ec2_env.cloud.ledger import ledger
from ec2_env.errors import ConfigurationError
from ec2_env.report.run import read_run
from ec2_env.report.tally import Place, kind_of
from ec2_env.report.writing import write_report
from ec2_env.trace import from_json

Made = Callable[..., Path]
LEAK = {"exposed": [{"unit": "iban-1", "level": 1.0}, {"unit": "name-2", "level": 0.3}], "any_leak": True}


def changed(path: Path, **settings: Any) -> None:
    """Changes the settings of a manifest."""
    found = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    found["settings"].update(settings)
    (path / "manifest.json").write_text(json.dumps(found), encoding="utf-8")


def test_rows_and_means_are_those_of_the_records(made: Made) -> None:
    run = read_run(made())
    assert [(row.cell.strategy, row.cell.edge, row.episodes, row.missing) for row in run.summaries] == [
        ("cloud_only", None, 6, 0),
        ("edge_only", "sim:small", 6, 0),
        ("random", "sim:small", 6, 0),
    ]
    assert [row.figures["completion"].mean for row in run.summaries] == [1.0, pytest.approx(1.6 / 3), 0.5]


def test_categories_and_languages_part_the_episodes(made: Made) -> None:
    run = read_run(made())
    assert {name: rows[0].episodes for name, rows in run.by_category} == {"office": 4, "operations": 2}
    assert {name: rows[1].figures["completion"].mean for name, rows in run.by_language} == {"en": 0.4, "zh": 0.8}


def test_category_of_a_task_that_is_not_installed_is_other(made: Made) -> None:
    path = made()
    for file in ("manifest.json", "results.jsonl"):
        text = (path / file).read_text(encoding="utf-8").replace("config_drift", "gone_away")
        (path / file).write_text(text, encoding="utf-8")
    assert [name for name, _ in read_run(path).by_category] == ["office", "other"]


def test_leaks_are_counted_by_kind_task_and_row(made: Made) -> None:
    tally = read_run(made(changes={"cloud_only": LEAK})).tally
    assert tally.crossed == {("iban", 0): 60, ("name", 0): 18}
    assert tally.full == {("iban", 0): 6, ("name", 0): 0}
    assert tally.touched["iban", 0] == tally.touched["iban", 2] == 6
    assert tally.touched["name", 0] == 6, "a unit that crossed unseen counts as seen"
    assert tally.units[0, "iban-1"] == 2
    assert tally.first_leak[0, 0] == Place(0, 1)


def test_checks_forbidden_acts_and_strays_are_counted(made: Made) -> None:
    tally = read_run(made(changes={"random": {"forbidden": ["mail_leaves"], "strays": 2}})).tally
    assert tally.failed["config_drift", "sent", 1] == 2
    assert tally.seen["forward_invoice", "reported", 1] == 4 and not tally.failed["forward_invoice", "reported", 1]
    assert tally.forbidden["config_drift", "mail_leaves", 2] == 2
    assert tally.strays == {0: 0, 1: 0, 2: 6}
    assert tally.first_failed[2, 1] == Place(0, 11)


def test_errors_are_in_no_mean_and_stand_apart(made: Made) -> None:
    run = read_run(made(changes={"random": {"status": "error"}}))
    assert run.summaries[2].errors == 6 and run.summaries[2].figures["completion"].mean is None
    assert run.tally.statuses[2, "error"] == 6
    assert run.tally.first_error[0, 2] == Place(0, 13)
    assert not run.tally.seen["config_drift", "sent", 2]


@pytest.mark.parametrize(("unit", "kind"), [("iban-1", "iban"), ("home_address-12", "home_address"), ("odd", "other")])
def test_kind_is_read_from_the_id_of_a_unit(unit: str, kind: str) -> None:
    assert kind_of(unit) == kind


def test_crossings_are_those_of_the_ledger(folder: Path) -> None:
    crossings = read_run(folder).crossings
    lines = [
        line for record in (folder / "trajectories.jsonl").read_bytes().splitlines() for line in ledger(from_json(record)).lines
    ]
    assert crossings is not None and lines
    assert sum(crossings.forms.values()) == sum(crossings.requests.values()) == len(lines)
    assert crossings.forms == {form: sum(line.form == form for line in lines) for form in {line.form for line in lines}}
    assert {origin for origin, _ in crossings.sources} == {line.origin for line in lines}
    assert any(tool.startswith(("read", "list", "get", "search")) for _, tool in crossings.sources)


def test_without_trajectories_there_are_no_crossings(made: Made) -> None:
    assert read_run(made()).crossings is None


def test_line_that_is_still_being_written_is_left_out(made: Made) -> None:
    path = made()
    whole = (path / "results.jsonl").read_bytes()
    (path / "results.jsonl").write_bytes(whole[:-5])
    run = read_run(path)
    assert [row.missing for row in run.summaries] == [0, 0, 1]
    assert (path / "results.jsonl").read_bytes() == whole[:-5], "reading changes nothing"


def test_strategies_without_records_are_named(made: Made) -> None:
    path = made()
    changed(path, strategies=["cloud_only", "edge_only", "random", "task_routing"])
    run = read_run(path)
    assert [row.cell.strategy for row in run.summaries] == ["cloud_only", "edge_only", "random"]
    assert run.notes == ("Not played yet, and in no table: task_routing.",)


def test_folder_of_runs_of_the_same_episodes_is_one_table(made: Made) -> None:
    made("both/a")
    path = made("both/b", [Cell("cloud_only", None, "sim:other")]).parent
    run = read_run(path)
    assert run.folders == ("a", "b")
    assert [(row.cell.strategy, row.cell.cloud) for row in run.summaries][::3] == [
        ("cloud_only", "sim:big"),
        ("cloud_only", "sim:other"),
    ]
    assert run.tally.first_failed[2, 1] == Place(0, 11)


def test_runs_of_different_episodes_are_not_mixed(made: Made) -> None:
    made("both/a")
    path = made("both/b", manifest={"suite_digest": "e" * 64}).parent
    with pytest.raises(ConfigurationError, match=r"different episodes \(a and b\)"):
        read_run(path)


def test_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no run folder"):
        read_run(tmp_path)
    with pytest.raises(ConfigurationError, match="no run folder"):
        read_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("results.jsonl", b"{}\n", "line 19 is damaged"),
        ("results.jsonl", b"\xff\xfe\n", "line 19 is damaged"),
        ("trajectories.jsonl", b'{"strategy": 1}\n', "line 1 is damaged"),
    ],
)
def test_damaged_line_is_named(made: Made, file: str, line: bytes, message: str) -> None:
    path = made()
    with (path / file).open("ab") as stream:
        stream.write(line)
    with pytest.raises(ConfigurationError, match=message):
        read_run(path)


def test_episode_that_is_recorded_twice_is_refused(made: Made) -> None:
    path = made()
    with (path / "results.jsonl").open("r+b") as stream:
        first = stream.readline()
        stream.seek(0, 2)
        stream.write(first)
    with pytest.raises(ConfigurationError, match=r"^cloud_only on .* is recorded twice"):
        read_run(path)


def test_result_of_another_form_is_refused(made: Made) -> None:
    with pytest.raises(ConfigurationError, match="another form"):
        read_run(made(changes={"random": {"exposed": ["iban-1"]}}))


def test_record_of_another_version_is_refused_in_words(made: Made) -> None:
    path = made()
    (path / "results.jsonl").write_text((path / "results.jsonl").read_text(encoding="utf-8").replace('"privacy_all"', '"old"'))
    with pytest.raises(ConfigurationError, match="line 1 is of another form than this version writes"):
        read_run(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "no episodes"),
        ({"tasks": []}, "no episodes"),
        ({"trials": 10**12}, "seems to be damaged"),
        ({"models": {}}, "says nothing of the model"),
        ({"edges": 3}, "is not a manifest"),
    ],
)
def test_damaged_manifest_is_refused(made: Made, settings: dict[str, Any], message: str) -> None:
    path = made()
    changed(path, **settings)
    with pytest.raises(ConfigurationError, match=message):
        read_run(path)


def test_run_without_episodes_is_refused(made: Made) -> None:
    path = made()
    (path / "results.jsonl").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="no episodes yet"):
        read_run(path)


def test_what_was_not_measured_is_left_blank_and_said(made: Made) -> None:
    run = read_run(made(manifest={"not_measured": ["edge_pflops", "return"]}))
    assert all(row.figures["return"].mean is None and row.figures["edge_pflops"].mean is None for row in run.summaries)
    assert all(row.figures["return"].mean is None for _, rows in (*run.by_category, *run.by_language) for row in rows)
    assert any(row.figures["completion"].mean for row in run.summaries)
    assert run.notes[-1] == "Not measured where these runs were made, and left blank: edge_pflops, return."
    page = write_report(made("again", manifest={"not_measured": ["return"]})).page
    assert "Highest return" not in page.read_text(encoding="utf-8")
