"""The CRM: what a tool does is what another look shows; locked and merged accounts refuse edits."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import World

BOX = toolbox(("crm",))


@pytest.fixture
def world() -> World:
    world = World("crm/1", "en", "train")
    contact = world.person(firm=world.firm())
    vip = world.crm.account(
        "Zebra Works", contact, owner=world.me, tier="vip", industry="textiles", aliases=("ZW Group",), contact_phone="555",
        contract_end="2026-12-01", contract_value="$9,000.00", last_contact="2026-01-02", satisfaction=0.0, notes="Stripes.",
    )  # fmt: skip
    world.crm.account("Zebra Locked", tier="gold", locked=True)
    world.crm.opportunity(vip, "More stripes", amount="$1,000.00", close_date="2026-06-01")
    world.crm.activity(vip, "call", "Said hello", days_ago=30)
    world.crm.noise(25)
    world.workspace.begin()
    return world


def do(world: World, tool: str, /, **arguments: Any) -> Result:
    return BOX.run(world.workspace, ToolCall(tool, arguments))


def good(world: World, tool: str, /, **arguments: Any) -> Any:
    """Returns what a call that has to succeed brings."""
    result = do(world, tool, **arguments)
    assert result.ok, result.text
    return result.value


def found(world: World, query: str) -> str:
    return str(good(world, "search_accounts", query=query)[0]["id"])


def test_lists_hide_what_an_account_page_shows(world: World) -> None:
    hit = good(world, "list_accounts", tier="vip", status="active", industry="textiles")[0]
    assert set(hit) == {"id", "name", "tier", "status", "industry", "owner"}
    shown = good(world, "get_account", account_id=hit["id"])
    assert (shown["contact_phone"], shown["contract_value"], shown["satisfaction"]) == ("555", "$9,000.00", 0.0)
    assert [deal["name"] for deal in shown["opportunities"]] == ["More stripes"]
    assert "amount" not in shown["opportunities"][0]
    assert good(world, "get_opportunity", opportunity_id=shown["opportunities"][0]["id"])["amount"] == "$1,000.00"


def test_accounts_are_found_by_other_names_and_paged_by_name(world: World) -> None:
    assert found(world, "zw GROUP") == found(world, "zebra works")
    pages = [good(world, "list_accounts", page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 7, 0]
    names = [account["name"] for page in pages for account in page]
    assert names == sorted(names)
    assert not do(world, "search_accounts", query=" ").ok
    assert not do(world, "list_accounts", page=-1).ok


def test_an_update_changes_only_the_given_fields(world: World) -> None:
    number = found(world, "works")
    before = good(world, "get_account", account_id=number)
    good(world, "update_account", account_id=number, tier="gold", contract_end="2027-01-31")
    after = good(world, "get_account", account_id=number)
    assert {key for key in after if after[key] != before[key]} == {"tier", "contract_end"}
    assert not do(world, "update_account", account_id=number).ok
    assert not do(world, "update_account", account_id=number, contract_end="2027-02-30").ok
    assert not do(world, "update_account", account_id=number, contact_email="nobody").ok
    assert len(world.workspace.diff()) == 1


def test_locked_accounts_can_be_read_and_logged_on_only(world: World) -> None:
    number, other = found(world, "locked"), found(world, "works")
    assert good(world, "get_account", account_id=number)["locked"] is True
    for tool, arguments in (
        ("update_account", {"account_id": number, "tier": "vip"}),
        ("merge_accounts", {"master_id": other, "duplicate_id": number}),
        ("create_opportunity", {"account_id": number, "name": "x", "amount": 1.0, "close_date": "2026-06-01"}),
    ):
        assert "ENTITY_IS_LOCKED" in do(world, tool, **arguments).text
    good(world, "log_activity", account_id=number, kind="note", subject="Looked at it")


def test_what_was_done_moves_the_last_contact(world: World) -> None:
    number, today = found(world, "works"), world.today.isoformat()
    good(world, "log_activity", account_id=number, kind="call", subject="Called", notes="They are fine.")
    shown = good(world, "get_account", account_id=number)
    assert (shown["last_contact"], shown["activities"][0]["subject"]) == (today, "Called")
    assert [change.table for change in world.workspace.diff()] == ["activity"]
    for day in (world.day(1).isoformat(), "yesterday", "2026-13-01", "２０２６-01-01"):
        assert not do(world, "log_activity", account_id=number, kind="call", subject="x", activity_date=day).ok
    assert not do(world, "log_activity", account_id=number, kind="call", subject=" ").ok


def test_a_merged_account_vanishes_from_lists_and_leaves_its_history(world: World) -> None:
    keep = found(world, "works")
    twin = world.crm.account("Zebra Works Ltd")
    world.crm.activity(twin, "meeting", "Tea", days_ago=1)
    merged = good(world, "merge_accounts", master_id=keep, duplicate_id=twin.id)
    assert merged == {"id": keep, "name": "Zebra Works", "merged": twin.id}
    assert [hit["id"] for hit in good(world, "search_accounts", query="zebra works")] == [keep]
    assert good(world, "get_account", account_id=keep)["activities"][0]["subject"] == "Tea"
    assert good(world, "get_account", account_id=twin.id)["merged_into"] == keep
    assert "ENTITY_IS_DELETED" in do(world, "update_account", account_id=twin.id, tier="vip").text
    assert "ENTITY_IS_DELETED" in do(world, "log_activity", account_id=twin.id, kind="note", subject="x").text
    assert not do(world, "merge_accounts", master_id=twin.id, duplicate_id=keep).ok
    assert not do(world, "merge_accounts", master_id=keep, duplicate_id=keep).ok


def test_open_opportunities_have_different_names(world: World) -> None:
    number = found(world, "works")
    clash = do(world, "create_opportunity", account_id=number, name="MORE stripes ", amount=5.0, close_date="2026-05-01")
    assert "DUPLICATES_DETECTED" in clash.text
    made = good(world, "create_opportunity", account_id=number, name="Dots", amount=1234.5, close_date="2026-05-01")
    assert good(world, "get_opportunity", opportunity_id=made["id"])["amount"] == "1,234.50"
    for amount in (0.0, -1.0, 1e300):
        arguments = {"account_id": number, "name": "n", "amount": amount, "close_date": "2026-05-01"}
        assert not do(world, "create_opportunity", **arguments).ok
    assert len(world.workspace.diff()) == 1


def test_an_export_reaches_its_recipients_with_the_chosen_columns_only(world: World) -> None:
    number = found(world, "works")
    columns = ["name", "contract_value"]
    sent = good(world, "export_accounts", title="t", account_ids=[number, number], columns=columns, recipients=["A@x.example"])
    row = world.workspace.rows("account_export")[sent["id"]]
    assert (row.lines, row.reaches, row.lasting) == (("Zebra Works | $9,000.00",), ("a@x.example",), True)
    assert not do(world, "export_accounts", title="t", account_ids=[number], columns=columns, recipients=[]).ok
    assert not do(world, "export_accounts", title="t", account_ids=["account-0"], columns=columns, recipients=["a@x.example"]).ok
    assert not do(world, "export_accounts", title="t", account_ids=[number], columns=["iban"], recipients=["a@x.example"]).ok
    assert len(world.workspace.diff()) == 1


@pytest.mark.parametrize("text", ["", " ", "\x00", "account-0", "x" * 15_000, "∑⁴", "account-1\n"])
def test_odd_arguments_are_refused_without_a_trace(world: World, text: str) -> None:
    number = found(world, "works")
    for tool, arguments in (
        ("get_account", {"account_id": text}),
        ("get_opportunity", {"opportunity_id": text}),
        ("update_account", {"account_id": number, "contract_end": text}),
        ("update_account", {"account_id": number, "owner": text}),
        ("merge_accounts", {"master_id": number, "duplicate_id": text}),
        ("log_activity", {"account_id": text, "kind": "call", "subject": text}),
        ("create_opportunity", {"account_id": number, "name": "x", "amount": 1.0, "close_date": text}),
        ("export_accounts", {"title": text, "account_ids": [text], "columns": ["name"], "recipients": [text]}),
    ):
        assert not do(world, tool, **arguments).ok, (tool, arguments)
    assert world.workspace.diff() == ()


def test_noise_is_in_the_language_of_the_world_and_never_repeats_a_name() -> None:
    world = World("crm/2", "zh", "train")
    accounts = world.crm.noise(20)
    assert len({account.name for account in accounts}) == 20
    assert all("\u4e00" <= account.name[0] <= "\u9fff" for account in accounts)
    assert {account.status for account in accounts} <= {"prospect", "churned"}
