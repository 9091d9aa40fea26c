"""What the page is told of an episode follows from its record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ec2_env.bench.records import EpisodeRecord
from ec2_env.task import Grading, build_episode, tasks
from ec2_env.testing.play import play
from ec2_env.trace import CloudCall, Exposed, Trajectory
from ec2_env.view.episodes import episode_data
from ec2_env.view.listing import listing
from ec2_env.view.reasons import reason
from ec2_env.view.runs import Run, open_run

Changed = Callable[..., Path]


def joined(text: list[object]) -> str:
    return "".join(piece["t"] if isinstance(piece, dict) else str(piece) for piece in text)


def test_every_text_that_crossed_is_there_in_full(small: Run) -> None:
    for number in small.records:
        calls = [event for event in small.trajectory(number).events if isinstance(event, CloudCall)]
        shown = [event for step in episode_data(small, number)["steps"] for event in step["events"] if event["type"] == "cloud"]
        assert [[(one["position"], joined(one["text"])) for one in event["sent"]] for event in shown] == [
            list(c.sent) for c in calls
        ]
        assert [[line["unit"] for line in event["exposures"]] for event in shown] == [
            [e.unit for e in c.exposures] for c in calls
        ]


def test_every_exposure_is_marked_in_the_text_it_names(small: Run) -> None:
    marked = 0
    for number in small.records:
        for step in episode_data(small, number)["steps"]:
            for event in step["events"]:
                for line in event.get("exposures", ()):
                    marks = [
                        mark for one in event["sent"] for piece in one["text"] if isinstance(piece, dict) for mark in piece["m"]
                    ]
                    assert any(m.get("unit") == line["unit"] and m["level"] == line["level"] and m["new"] for m in marks), line
                    marked += 1
    assert marked > 4


def test_redacted_calls_show_placeholders_with_what_they_hid(small: Run) -> None:
    found: dict[str, set[str]] = {"hidden": set(), "sensitive": set()}
    for number in [n for n, record in small.records.items() if record.strategy.endswith("redacted")]:
        data = episode_data(small, number)
        pieces = [p for step in data["steps"] for event in step["events"] for one in event.get("sent", ()) for p in one["text"]]
        marks = [mark for piece in pieces if isinstance(piece, dict) for mark in piece["m"]]
        found["hidden"] |= {mark["hid"] for mark in marks if mark.get("hid")}
        found["sensitive"] |= {unit["value"] for unit in data["units"]}
    assert found["hidden"] & found["sensitive"]


def test_step_rewards_add_up_to_the_return(small: Run) -> None:
    for number, record in small.records.items():
        data = episode_data(small, number)
        assert data["notes"] == []
        assert sum(step["terms"]["reward"] for step in data["steps"]) == pytest.approx(record.total)
        for name, whole in record.reward.items():
            assert sum(step["terms"][name] for step in data["steps"]) == pytest.approx(whole)


def test_checks_and_changes_are_those_of_the_grading(small: Run) -> None:
    kinds = set()
    for number, record in small.records.items():
        data = episode_data(small, number)
        assert {check["name"]: check["score"] for check in data["checks"]} == pytest.approx(record.result["checks"])
        mine = [change for change in data["changes"] if change["by"] == "agent"]
        assert sum(change["check"] is None for change in mine) == record.result["strays"]
        assert all(index < len(mine) for check in data["checks"] for index in check["changes"])
        kinds |= {(change["table"], change["kind"]) for change in mine}
    assert {("mail", "added"), ("file", "changed")} <= kinds


def test_file_that_changed_is_shown_line_by_line(small: Run) -> None:
    number = next(n for n, r in small.records.items() if r.task == "config_drift" and r.result["completion"] == 1)
    changes = [change for change in episode_data(small, number)["changes"] if change["kind"] == "changed"]
    lines = next(field["lines"] for field in changes[0]["fields"] if field["name"] == "content")
    assert (
        lines[0].startswith("@@") and any(line.startswith("-") for line in lines) and any(line.startswith("+") for line in lines)
    )


def test_failed_check_says_what_it_expected_and_what_was_reported(changed: Changed) -> None:
    def forget(record: EpisodeRecord, trajectory: Trajectory) -> tuple[EpisodeRecord, Trajectory]:
        *events, end = trajectory.events
        return record, msgspec.structs.replace(trajectory, events=(*events, msgspec.structs.replace(end, data={"mended": 99})))

    data = episode_data(open_run(changed(forget)), 1)
    assert "graded again, the checks earn something else than recorded" in data["notes"]
    check = next(check for check in data["checks"] if check["name"] == "reports_mended")
    (part,) = check["reason"]["parts"]
    assert part["expects"]["key"] == "mended" and part["reported"] == 99 and part["score"] < 1
    assert [need["score"] for need in check["reason"]["needs"]] == [1.0]


def test_every_grader_of_every_task_can_be_asked_why() -> None:
    for name in tasks.names():
        episode = build_episode(name, 0)
        done = play(episode)
        state = Grading(done.workspace, done.finish)
        for check in episode.checks:
            claimed = set(state.claimed)
            found = json.dumps(reason(check.grade, state), ensure_ascii=False)
            assert " at 0x" not in found, f"{name}: {check.name} shows an address of memory"
            assert state.claimed == claimed, f"{name}: asking {check.name} changed the grading"
            check.grade(state)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"task": "gone"}, "could not be built again"),
        ({"language": "xx"}, "could not be built again"),
        ({"instruction": "Do something else."}, "asks something else"),
        ({"version": "0.0.1"}, "written by version 0.0.1"),
    ],
)
def test_what_cannot_be_rebuilt_is_said_and_the_rest_is_shown(change: dict[str, str], note: str, changed: Changed) -> None:
    path = changed(lambda record, trajectory: (record, msgspec.structs.replace(trajectory, **change)))
    data = episode_data(open_run(path), 1)
    assert any(note in one for one in data["notes"])
    assert data["steps"]


def test_value_that_the_episode_does_not_have_is_said(changed: Changed) -> None:
    def expose(record: EpisodeRecord, trajectory: Trajectory) -> tuple[EpisodeRecord, Trajectory]:
        events = [
            msgspec.structs.replace(event, exposures=(Exposed("nobody-1", 1.0, "verbatim", 0, 0, 5),))
            if isinstance(event, CloudCall)
            else event
            for event in trajectory.events
        ]
        return record, msgspec.structs.replace(trajectory, events=tuple(events))

    assert any("does not have" in note for note in episode_data(open_run(changed(expose)), 1)["notes"])


def test_price_that_is_no_number_is_said(changed: Changed) -> None:
    def spoil(record: EpisodeRecord, trajectory: Trajectory) -> tuple[EpisodeRecord, Trajectory]:
        events = [msgspec.structs.replace(e, usd="much") if isinstance(e, CloudCall) else e for e in trajectory.events]
        return record, msgspec.structs.replace(trajectory, events=tuple(events))

    data = episode_data(open_run(changed(spoil)), 1)
    assert any("are no numbers" in note for note in data["notes"]) and data["checks"]


def test_list_has_a_row_for_each_episode_and_the_same_ones_together(small: Run) -> None:
    found = listing((small, small))
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert {row["id"] for row in rows} == {f"{run}{number}" for number in small.records for run in ("", "B")}
    same = [(row["task"], row["language"], row["seed"], row["trial"]) for row in rows]
    assert same == sorted(same)
    assert found["runs"][0] == {**found["runs"][1]} and found["runs"][0]["simulated"] and found["runs"][0]["same_code"]
