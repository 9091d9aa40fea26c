"""The apps of the workspace: what one does is what another look shows, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import build_episode, tasks, toolbox
from ec2_env.workspace.tools import Result, apps

BOX = toolbox(apps.names())


@pytest.fixture
def office() -> Any:
    return build_episode("forward_invoice", 0, "en").workspace.fork()


def do(office: Any, name: str, **arguments: Any) -> Result:
    return BOX.run(office, ToolCall(name, arguments))


def good(office: Any, name: str, **arguments: Any) -> Any:
    """Returns what a call that has to succeed brings."""
    result = do(office, name, **arguments)
    assert result.ok, result.text
    return result.value


def test_every_app_offers_documented_tools_and_fills_a_world() -> None:
    for name in apps.names():
        app = apps.get(name)
        assert app.name == name
        assert app.tools
        assert app.seeder.__doc__


# -- mail


def test_a_sent_mail_is_found_read_and_deleted_but_stays_sent(office: Any) -> None:
    sent = good(
        office, "send_mail", to=["Ann@Firm.example"], subject="Zebra crossing", body="Black and white.", cc=["bob@x.example"]
    )
    assert sent["to"] == ["ann@firm.example"]
    assert [hit["id"] for hit in good(office, "search_mail", query="zebra WHITE")] == [sent["id"]]
    shown = good(office, "read_mail", mail_id=sent["id"])
    assert (shown["subject"], shown["body"], shown["cc"]) == ("Zebra crossing", "Black and white.", ["bob@x.example"])
    assert sent["id"] in [mail["id"] for mail in good(office, "list_mail", folder="sent")]
    good(office, "delete_mail", mail_id=sent["id"])
    assert good(office, "search_mail", query="zebra") == []
    assert [change.id for change in office.diff()] == [sent["id"]], "what has been sent cannot be taken back by deleting the copy"


def test_answers_and_forwards_name_their_source(office: Any) -> None:
    first = good(office, "list_mail")[0]
    answer = good(office, "reply_mail", mail_id=first["id"], body="Thanks.")
    shown = good(office, "read_mail", mail_id=answer["id"])
    assert (shown["to"], shown["source"]) == ([first["from"]], first["id"])
    assert shown["subject"].startswith("Re: ")
    passed = good(office, "forward_mail", mail_id=first["id"], to=["x@office.example"], note="See below.")
    whole = good(office, "read_mail", mail_id=passed["id"])
    assert whole["body"].startswith("See below.")
    assert good(office, "read_mail", mail_id=first["id"])["body"] in whole["body"]
    again = good(office, "forward_mail", mail_id=passed["id"], to=["y@office.example"])
    assert good(office, "read_mail", mail_id=again["id"])["subject"].count("Fwd: ") == 1


def test_drafts_are_not_sent(office: Any) -> None:
    before = good(office, "list_mail", folder="sent")
    good(office, "draft_mail", to=["x@office.example"], subject="s", body="b")
    assert good(office, "list_mail", folder="sent") == before
    assert len(good(office, "list_mail", folder="drafts")) == 1
    assert not do(office, "draft_mail", to=["x@office.example"], subject="s", body="b", reply_to="mail-0").ok


def test_labels_add_up_and_filter(office: Any) -> None:
    first = good(office, "list_mail")[0]["id"]
    good(office, "label_mail", mail_id=first, label="urgent")
    assert good(office, "label_mail", mail_id=first, label=" new ")["labels"] == ["new", "urgent"]
    assert [mail["id"] for mail in good(office, "list_mail", label="urgent")] == [first]
    assert not do(office, "label_mail", mail_id=first, label=" ").ok
    assert not do(office, "label_mail", mail_id=first, label="x" * 41).ok


def test_pages_do_not_overlap_and_lists_show_no_text(office: Any) -> None:
    for number in range(45):
        good(office, "send_mail", to=["x@office.example"], subject=f"n{number}", body="b")
    pages = [good(office, "list_mail", folder="sent", page=page) for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [20, 20, 5, 0]
    ids = [mail["id"] for page in pages for mail in page]
    assert len(set(ids)) == 45
    assert all("body" not in mail for page in pages for mail in page)


@pytest.mark.parametrize("address", ["x", "@x.y", "x@", "x@y", "a@b@c.de", "a b@c.de", "a@c.de,d@c.de", "<a@c.de>", "a@c.de\n"])
def test_addresses_are_checked(office: Any, address: str) -> None:
    result = do(office, "send_mail", to=[address], subject="s", body="b")
    assert result.ok == (address == "a@c.de\n"), result.text


def test_attachments_must_exist(office: Any) -> None:
    assert not do(office, "send_mail", to=["x@office.example"], subject="s", body="b", attachments=["no.md"]).ok
    path = good(office, "list_files")[0]["path"]
    assert good(office, "send_mail", to=["x@office.example"], subject="s", body="b", attachments=[path])["id"]


# -- files


def test_a_file_is_written_found_moved_and_deleted(office: Any) -> None:
    good(office, "write_file", path="./notes//a.md", content="zebra")
    assert good(office, "read_file", path="notes/a.md")["content"] == "zebra"
    assert [hit["path"] for hit in good(office, "search_files", query="zebra")] == ["notes/a.md"]
    assert [hit["path"] for hit in good(office, "list_files", folder="notes")] == ["notes/a.md"]
    good(office, "move_file", path="notes/a.md", new_path="notes/b.md")
    assert not do(office, "read_file", path="notes/a.md").ok
    good(office, "write_file", path="notes/a.md", content="other")
    assert not do(office, "move_file", path="notes/a.md", new_path="notes/b.md").ok
    good(office, "delete_file", path="notes/b.md")
    good(office, "delete_file", path="notes/a.md")
    assert office.diff() == ()


def test_long_files_are_read_in_pieces(office: Any) -> None:
    text = "".join(f"{number:05d}" for number in range(3_000))
    good(office, "write_file", path="long.txt", content=text)
    read, offset = "", 0
    while offset is not None:
        piece = good(office, "read_file", path="long.txt", offset=offset)
        read, offset = read + piece["content"], piece.get("next_offset")
    assert read == text


# -- calendar and contacts


def test_an_event_is_made_seen_changed_and_deleted(office: Any) -> None:
    made = good(
        office, "create_event", title="Zebra", start="2026-03-02 10:00", end="2026-03-02 11:00", attendees=["A@office.example"]
    )
    listed = good(office, "list_events", start_date="2026-03-02", end_date="2026-03-02")
    assert [event["id"] for event in listed] == [made["id"]]
    shown = good(office, "get_event", event_id=made["id"])
    assert (shown["title"], shown["start"]) == ("Zebra", "2026-03-02 10:00")
    good(office, "update_event", event_id=made["id"], start="2026-03-02 14:00", end="2026-03-02 15:00")
    assert good(office, "get_event", event_id=made["id"])["start"] == "2026-03-02 14:00"
    busy = good(office, "free_busy", emails=["a@b.example"], start_date="2026-03-02", end_date="2026-03-03")
    assert set(busy) == {"a@b.example"}
    good(office, "delete_event", event_id=made["id"])
    assert office.diff() == ()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-03-02 11:00", "2026-03-02 10:00"),
        ("2026-02-30 10:00", "2026-03-02 10:00"),
        ("soon", "later"),
        ("2026-03-02", "2026-03-03"),
    ],
)
def test_times_are_checked(office: Any, start: str, end: str) -> None:
    assert not do(office, "create_event", title="x", start=start, end=end).ok


@pytest.mark.parametrize("days", [("2026-03-02", "2026-03-01"), ("2026-01-01", "2030-01-01"), ("9999-12-31", "9999-12-31")])
def test_ranges_of_days_are_checked(office: Any, days: tuple[str, str]) -> None:
    result = do(office, "list_events", start_date=days[0], end_date=days[1])
    assert result.ok == (days[0] == "9999-12-31")


def test_contacts_show_details_only_when_opened() -> None:
    for name in tasks.names():
        workspace = build_episode(name, 0).workspace.fork()
        cards = list(workspace.rows("contact").values())
        if not cards:
            continue
        hits = good(workspace, "search_contacts", query=cards[0].name)
        assert cards[0].id in [hit["id"] for hit in hits]
        assert all("email" not in hit and "phone" not in hit for hit in hits)
        assert good(workspace, "get_contact", contact_id=cards[0].id)["email"] == cards[0].email
        assert not do(workspace, "search_contacts", query=" ").ok
        assert not do(workspace, "get_contact", contact_id="contact-0").ok
