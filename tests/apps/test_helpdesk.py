"""The helpdesk: what a tool does is what another look shows; closed tickets stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import World

BOX = toolbox(("helpdesk",))


@pytest.fixture
def world() -> World:
    world = World("helpdesk/1", "en", "train")
    firm = world.firm()
    customer = world.person(firm=firm)
    first = world.helpdesk.ticket(
        customer, "Zebra outage", "The portal shows stripes.", category="software", phone="555", customer_id="account-1",
        at=world.moment(0, 8, 30), tags=("web",),
    )  # fmt: skip
    world.helpdesk.comment(first, customer, "Still striped.", at=world.moment(0, 8, 50))
    world.helpdesk.ticket(customer, "Old matter", "Done.", status="closed", resolution="fixed", at=world.moment(-9))
    world.helpdesk.noise(25, status="solved")
    world.workspace.begin()
    return world


def do(world: World, tool: str, /, **arguments: Any) -> Result:
    return BOX.run(world.workspace, ToolCall(tool, arguments))


def good(world: World, tool: str, /, **arguments: Any) -> Any:
    """Returns what a call that has to succeed brings."""
    result = do(world, tool, **arguments)
    assert result.ok, result.text
    return result.value


def zebra(world: World) -> str:
    return str(good(world, "search_tickets", query="ZEBRA stripes")[0]["id"])


def closed(world: World) -> str:
    return str(good(world, "list_tickets", status="closed")[0]["id"])


def test_lists_hide_what_opening_a_ticket_shows(world: World) -> None:
    hit = good(world, "list_tickets", status="open")[0]
    assert not {"description", "requester_email", "requester_phone", "customer_id", "tags"} & set(hit)
    shown = good(world, "get_ticket", ticket_id=hit["id"])
    assert (shown["description"], shown["requester_phone"], shown["customer_id"]) == (
        "The portal shows stripes.",
        "555",
        "account-1",
    )
    assert [comment["body"] for comment in shown["comments"]] == ["Still striped."]


def test_tickets_are_filtered_newest_first_and_paged(world: World) -> None:
    pages = [good(world, "list_tickets", page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 7, 0]
    times = [ticket["created_at"] for page in pages for ticket in page]
    assert times == sorted(times, reverse=True)
    assert {t["status"] for t in good(world, "list_tickets", status="solved")} == {"solved"}
    assert [t["id"] for t in good(world, "list_tickets", category="software", status="open")] == [zebra(world)]
    assert not good(world, "list_tickets", priority="urgent")
    assert not do(world, "list_tickets", page=0).ok


def test_an_update_changes_only_the_given_fields(world: World) -> None:
    before = good(world, "get_ticket", ticket_id=zebra(world))
    new = good(world, "update_ticket", ticket_id=zebra(world), priority="urgent", tags=["VIP Customer", "web"])
    assert (new["priority"], new["tags"]) == ("urgent", ["vip_customer", "web"])
    after = good(world, "get_ticket", ticket_id=zebra(world))
    assert {key for key in after if after[key] != before[key]} == {"priority", "tags"}
    assert len(world.workspace.diff()) == 1


def test_a_ticket_is_assigned_to_agents_only_and_taken_back(world: World) -> None:
    assert (
        good(world, "update_ticket", ticket_id=zebra(world), assignee=" Ann@office.example ")["assignee"] == "ann@office.example"
    )
    assert [t["id"] for t in good(world, "list_tickets", assignee="ann@office.example")] == [zebra(world)]
    assert not do(world, "update_ticket", ticket_id=zebra(world), assignee="ann@elsewhere.example").ok
    assert not do(world, "update_ticket", ticket_id=zebra(world), assignee="Ann").ok
    good(world, "update_ticket", ticket_id=zebra(world), assignee="")
    assert world.workspace.diff() == ()


def test_a_new_ticket_is_open_once_it_has_an_assignee(world: World) -> None:
    number = good(world, "create_ticket", subject="Desk", description="It wobbles.")["id"]
    assert good(world, "update_ticket", ticket_id=number, assignee="ann@office.example")["status"] == "open"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("update_ticket", {"priority": "low"}),
        ("comment_ticket", {"body": "Hello", "public": False}),
        ("close_ticket", {"resolution": "fixed"}),
        ("merge_tickets", {"into_ticket_id": "ticket-0"}),
    ],
)
def test_closed_tickets_refuse_everything(world: World, tool: str, arguments: dict[str, Any]) -> None:
    result = do(world, tool, ticket_id=closed(world), **arguments)
    assert not result.ok
    assert "closed" in result.text
    assert world.workspace.diff() == ()


def test_a_public_comment_reaches_the_requester_and_a_note_does_not(world: World) -> None:
    ticket = good(world, "get_ticket", ticket_id=zebra(world))
    public = good(world, "comment_ticket", ticket_id=zebra(world), body="We look into it.", public=True)
    note = good(world, "comment_ticket", ticket_id=zebra(world), body="Cable again.", public=False)
    assert (public["sent_to"], note["sent_to"]) == (ticket["requester_email"], None)
    rows = world.workspace.rows("ticket_comment")
    assert ticket["requester_email"] in rows[public["id"]].reaches
    assert ticket["requester_email"] not in rows[note["id"]].reaches
    assert rows[public["id"]].lasting
    assert [c["body"] for c in good(world, "get_ticket", ticket_id=zebra(world))["comments"]][1:] == [
        "We look into it.",
        "Cable again.",
    ]
    assert not do(world, "comment_ticket", ticket_id=zebra(world), body=" ", public=True).ok


def test_closing_says_how_it_ended(world: World) -> None:
    number = zebra(world)
    good(world, "close_ticket", ticket_id=number, resolution="declined")
    shown = good(world, "get_ticket", ticket_id=number)
    assert (shown["status"], shown["resolution"]) == ("closed", "declined")
    assert not do(world, "close_ticket", ticket_id=number, resolution="fixed").ok
    assert not do(world, "close_ticket", ticket_id=number, resolution="whatever").ok


def test_a_new_ticket_is_mine_and_a_follow_up_needs_a_closed_one(world: World) -> None:
    made = good(world, "create_ticket", subject=" Desk ", description="It wobbles.", priority="high", tags=["Desk"])
    assert (made["subject"], made["status"], made["priority"], made["tags"]) == ("Desk", "new", "high", ["desk"])
    assert good(world, "get_ticket", ticket_id=made["id"])["description"] == "It wobbles."
    assert good(world, "create_ticket", subject="x", description="y", follow_up_of=closed(world))["id"] != made["id"]
    assert not do(world, "create_ticket", subject="x", description="y", follow_up_of=zebra(world)).ok
    assert not do(world, "create_ticket", subject=" ", description="y").ok


def test_a_merged_ticket_is_closed_and_names_the_other(world: World) -> None:
    number = zebra(world)
    other = good(world, "create_ticket", subject="Zebra again", description="Stripes.")["id"]
    good(world, "merge_tickets", ticket_id=other, into_ticket_id=number)
    shown = good(world, "get_ticket", ticket_id=other)
    assert (shown["status"], shown["resolution"], shown["merged_into"]) == ("closed", "duplicate", number)
    assert not do(world, "merge_tickets", ticket_id=number, into_ticket_id=number).ok
    assert not do(world, "merge_tickets", ticket_id=number, into_ticket_id=closed(world)).ok


@pytest.mark.parametrize("text", ["", " ", "\x00", "ticket-0", "x" * 15_000, "∑⁴", "../x", "ticket-1\n"])
def test_odd_arguments_are_refused_without_a_trace(world: World, text: str) -> None:
    for tool, arguments in (
        ("get_ticket", {"ticket_id": text}),
        ("update_ticket", {"ticket_id": text, "priority": "low"}),
        ("update_ticket", {"ticket_id": zebra(world)}),
        ("update_ticket", {"ticket_id": zebra(world), "tags": [text, " "]}),
        ("merge_tickets", {"ticket_id": zebra(world), "into_ticket_id": text}),
        ("create_ticket", {"subject": text * 300 if text else "", "description": "", "follow_up_of": text}),
        ("close_ticket", {"ticket_id": zebra(world), "resolution": text}),
    ):
        assert not do(world, tool, **arguments).ok, (tool, arguments)
    assert world.workspace.diff() == ()


def test_noise_is_in_the_language_of_the_world() -> None:
    world = World("helpdesk/2", "zh", "train")
    tickets = world.helpdesk.noise(12)
    assert len({ticket.id for ticket in tickets}) == 12
    assert all(any("\u4e00" <= c <= "\u9fff" for c in ticket.subject) for ticket in tickets)
    assert all("{" not in ticket.subject + ticket.description for ticket in tickets)
