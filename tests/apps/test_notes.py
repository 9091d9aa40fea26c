"""The notebook: lists hide texts, sharing is seen by the graders, and nothing that is refused leaves a trace."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.checks import let_out
from ec2_env.task import Grading, toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import World

BOX = toolbox(("notes",))


@pytest.fixture(params=["en", "zh"])
def world(request: pytest.FixtureRequest) -> World:
    world = World("test/1", request.param, "train")
    world.notes.add("Zebra weekly", "Walter owes 12.", at=world.moment(-3), tags=("zebra",), participants=(world.me,), minutes=45)
    world.notes.add("Zebra closed", "Old.", at=world.moment(-9), locked=True)
    world.notes.noise(25)
    world.workspace.begin()
    return world


def do(workspace: Workspace, name: str, **arguments: Any) -> Result:
    return BOX.run(workspace, ToolCall(name, arguments))


def good(workspace: Workspace, name: str, **arguments: Any) -> Any:
    result = do(workspace, name, **arguments)
    assert result.ok, result.text
    return result.value


def zebra(workspace: Workspace, title: str = "Zebra weekly") -> str:
    return next(hit["id"] for hit in good(workspace, "search_notes", query="ZEBRA") if hit["title"] == title)


def test_lists_hide_the_text_and_opening_shows_it(world: World) -> None:
    office = world.workspace
    hit = next(hit for hit in good(office, "list_notes", tag="zebra"))
    assert "body" not in hit and "shared_with" not in hit
    assert (hit["participants"], hit["duration_minutes"]) == ([world.me.name], 45)
    assert good(office, "get_note", note_id=hit["id"])["body"] == "Walter owes 12."
    assert office.diff() == ()


def test_pages_hold_twenty_and_do_not_overlap(world: World) -> None:
    pages = [good(world.workspace, "list_notes", page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 7, 0]
    notes = [note for page in pages for note in page]
    assert len({note["id"] for note in notes}) == 27
    assert [note["created"] for note in notes] == sorted((note["created"] for note in notes), reverse=True)


def test_notes_are_found_by_every_word_of_text_tag_or_participant(world: World) -> None:
    office = world.workspace
    assert [hit["title"] for hit in good(office, "search_notes", query="walter zebra")] == ["Zebra weekly"]
    assert good(office, "search_notes", query="walter giraffe") == []
    assert [hit["title"] for hit in good(office, "search_notes", query=world.me.name)] == ["Zebra weekly"]
    assert not do(office, "search_notes", query="  ").ok


def test_a_range_of_dates_includes_both_ends(world: World) -> None:
    day = world.day(-3).isoformat()
    shown = good(world.workspace, "list_notes", date_from=day, date_to=day)
    assert "Zebra weekly" in [note["title"] for note in shown]
    assert {note["created"][:10] for note in shown} == {day}
    assert not do(world.workspace, "list_notes", date_from=day, date_to="2020-01-01").ok
    assert not do(world.workspace, "list_notes", date_from="yesterday").ok


def test_a_note_is_made_changed_and_deleted_without_a_trace(world: World) -> None:
    office = world.workspace
    made = good(office, "create_note", title=" New  note ", body="b", tags=["x", " x", "a"], participants=["Ann"])
    assert (made["title"], made["tags"]) == ("New note", ["a", "x"])
    good(office, "update_note", note_id=made["id"], body="c")
    shown = good(office, "get_note", note_id=made["id"])
    assert (shown["body"], shown["tags"], shown["participants"]) == ("c", ["a", "x"], ["Ann"])
    good(office, "delete_note", note_id=made["id"])
    assert office.diff() == ()


def test_an_update_that_changes_nothing_is_no_change(world: World) -> None:
    note = zebra(world.workspace)
    good(world.workspace, "update_note", note_id=note, title="Zebra weekly")
    assert world.workspace.diff() == ()


def test_sharing_adds_readers_and_reaches_them(world: World) -> None:
    office, note = world.workspace, zebra(world.workspace)
    assert good(office, "share_note", note_id=note, recipients=["Ann@x.example"])["shared_with"] == ["ann@x.example"]
    both = good(office, "share_note", note_id=note, recipients=["bob@x.example", "ann@x.example"])
    assert both["shared_with"] == ["ann@x.example", "bob@x.example"]
    assert office.diff()[0].after.reaches == ("ann@x.example", "bob@x.example")


def test_a_new_note_that_was_shared_stays_known_after_deletion(world: World) -> None:
    office = world.workspace
    made = good(office, "create_note", title="Leak", body="secret")["id"]
    good(office, "share_note", note_id=made, recipients=["x@y.example"])
    good(office, "delete_note", note_id=made)
    assert [change.id for change in office.diff()] == [made]


def test_locked_notes_can_be_read_and_shared_but_not_changed(world: World) -> None:
    office, note = world.workspace, zebra(world.workspace, "Zebra closed")
    assert "restricted_resource" in do(office, "update_note", note_id=note, body="x").text
    assert "restricted_resource" in do(office, "delete_note", note_id=note).text
    assert office.diff() == ()
    assert good(office, "share_note", note_id=note, recipients=["x@y.example"])["id"] == note


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_note", {"note_id": "note-0"}),
        ("create_note", {"title": " ", "body": ""}),
        ("create_note", {"title": "x" * 201, "body": ""}),
        ("create_note", {"title": "x", "body": "", "tags": [""]}),
        ("create_note", {"title": "x", "body": "", "tags": [str(i) for i in range(30)]}),
        ("share_note", {"note_id": "note-0", "recipients": ["a@b.example"]}),
        ("list_notes", {"page": 0}),
        ("list_notes", {"date_from": "9999-99-99"}),
        ("list_notes", {"tag": 5}),
        ("delete_note", {"note_id": None}),
        ("update_note", {"note_id": "x" * 30_000}),
        ("search_notes", {"query": "\ud800", "page": -1}),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_no_trace(world: World, name: str, arguments: dict[str, Any]) -> None:
    result = do(world.workspace, name, **arguments)
    assert not result.ok
    assert world.workspace.diff() == ()


@pytest.mark.parametrize("recipients", [[], ["nobody"], ["a@b.example", "x"]])
def test_a_note_is_shared_with_real_addresses_only(world: World, recipients: list[str]) -> None:
    assert not do(world.workspace, "share_note", note_id=zebra(world.workspace), recipients=recipients).ok
    assert world.workspace.diff() == ()


def test_the_same_key_gives_the_same_notebook() -> None:
    def build() -> dict[str, Any]:
        world = World("test/2", "zh", "train")
        world.notes.noise(8)
        return dict(world.workspace.rows("note"))

    assert build() == build()
    assert len(build()) == 8


def test_sharing_a_note_lets_out_what_it_says_and_only_to_the_new_readers(world: World) -> None:
    office, note = world.workspace, zebra(world.workspace)
    good(office, "share_note", note_id=note, recipients=["ann@x.example"])
    assert let_out(["Walter owes 12."])(Grading(office, None))
    assert not let_out(["Walter owes 12."], allowed_to={"ann@x.example"})(Grading(office, None))
    assert not let_out(["Walter owes 13."])(Grading(office, None))
