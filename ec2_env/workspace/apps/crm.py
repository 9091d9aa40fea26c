"""CRM: customers' accounts, their opportunities and what was done for them. Lists show who they are; only an account's page
shows contract, contact person and private details.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.apps.mail import addresses, stamp
from ec2_env.workspace.crm_rows import (
    INDUSTRIES,
    NOISE,
    Account,
    AccountExport,
    AccountStatus,
    Activity,
    Column,
    Opportunity,
    Stage,
    Tier,
)
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Firm, Person, World

PAGE = 20
"""Accounts on one page of a list."""


@tool(opens="get_account")
def list_accounts(
    workspace: Workspace,
    tier: Tier | None = None,
    status: AccountStatus | None = None,
    industry: str | None = None,
    page: int = 1,
) -> list[dict[str, Any]]:
    """Lists accounts by name, without contract, contact person and notes.

    Args:
        tier: Show only accounts of this tier.
        status: Show only accounts with this status.
        industry: Show only accounts of this industry.
        page: Page number, from 1; a page has 20 accounts.
    """
    wanted = {"tier": tier, "status": status, "industry": industry}
    conditions = [(name, value) for name, value in wanted.items() if value is not None]
    return _headers((a for a in _live(workspace) if all(getattr(a, name) == value for name, value in conditions)), page)


@tool(opens="get_account")
def search_accounts(workspace: Workspace, query: str, page: int = 1) -> list[dict[str, Any]]:
    """Finds accounts whose id, name, other names, website, industry or contact person contain every word of the query.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        page: Page number, from 1; a page has 20 accounts.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    return _headers((a for a in _live(workspace) if _contains(a, wanted)), page)


@tool()
def get_account(workspace: Workspace, account_id: str) -> dict[str, Any]:
    """Shows one account in full, with its opportunities and its five latest activities.

    Args:
        account_id: Id of the account, as shown by list_accounts or search_accounts.
    """
    account = workspace.get("account", account_id)
    family = {account_id, *(a.id for a in workspace.rows("account").values() if a.merged_into == account_id)}
    done = sorted((a for a in workspace.rows("activity").values() if a.account_id in family), key=lambda a: (a.date, a.id))
    deals = [o for o in workspace.rows("opportunity").values() if o.account_id in family]
    shown = {name: getattr(account, name) for name in account.__struct_fields__}
    shown["last_contact"] = max([account.last_contact, *(a.date for a in done)])
    shown = {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items() if value or value == 0.0}
    if not account.locked:
        shown.pop("locked", None)
    shown["opportunities"] = [{"id": o.id, "name": o.name, "stage": o.stage, "close_date": o.close_date} for o in deals]
    shown["activities"] = [
        {"id": a.id, "kind": a.kind, "date": a.date, "subject": a.subject, "notes": a.notes} for a in reversed(done[-5:])
    ]
    return shown


@tool(write=True)
def update_account(
    workspace: Workspace,
    account_id: str,
    tier: Tier | None = None,
    status: AccountStatus | None = None,
    industry: str | None = None,
    owner: str | None = None,
    contact_name: str | None = None,
    contact_email: str | None = None,
    contact_phone: str | None = None,
    contract_end: str | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """Changes the given fields of an account, and leaves the others as they are.

    Args:
        account_id: Id of the account.
        tier: New tier.
        status: New status.
        industry: New industry.
        owner: Address of the colleague who looks after it.
        contact_name: Name of the contact person.
        contact_email: Address of the contact person.
        contact_phone: Telephone number of the contact person.
        contract_end: Last day of the contract, YYYY-MM-DD.
        notes: New notes; earlier ones are replaced.
    """
    account = _editable(workspace, account_id)
    for field, value in (("owner", owner), ("contact_email", contact_email)):
        if value is not None:
            addresses(field, [value])
    if contract_end is not None:
        _day("contract_end", contract_end)
    given = {
        "tier": tier, "status": status, "industry": industry, "owner": owner, "contact_name": contact_name,
        "contact_email": contact_email, "contact_phone": contact_phone, "contract_end": contract_end, "notes": notes,
    }  # fmt: skip
    changes = {name: value.strip() for name, value in given.items() if value is not None}
    if not changes:
        raise ToolError("nothing to change; give at least one field")
    edited = msgspec.structs.replace(account, **changes)
    workspace.put("account", edited)
    return {"id": account_id, **{name: getattr(edited, name) for name in changes}}


@tool(write=True)
def merge_accounts(workspace: Workspace, master_id: str, duplicate_id: str) -> dict[str, Any]:
    """Merges a duplicate into the account that stays. It cannot be undone: the duplicate's own fields are lost; its activities
    and opportunities move to the account that stays.

    Args:
        master_id: Id of the account that stays, with its fields as they are.
        duplicate_id: Id of the account that goes.
    """
    if master_id == duplicate_id:
        raise ToolError("an account cannot be merged into itself; give two different ids")
    master, duplicate = _editable(workspace, master_id), _editable(workspace, duplicate_id)
    workspace.put("account", msgspec.structs.replace(duplicate, merged_into=master.id))
    return {"id": master.id, "name": master.name, "merged": duplicate.id}


@tool(write=True)
def log_activity(
    workspace: Workspace,
    account_id: str,
    kind: Literal["call", "email", "meeting", "note"],
    subject: str,
    notes: str = "",
    activity_date: str | None = None,
) -> dict[str, Any]:
    """Notes on an account's page what was done; its last contact moves to that date.

    Args:
        account_id: Id of the account.
        kind: What it was.
        subject: In a few words.
        notes: What was said or agreed.
        activity_date: When, YYYY-MM-DD and not in the future; today if left out.
    """
    account = workspace.get("account", account_id)
    if account.merged_into:
        raise ToolError(f"ENTITY_IS_DELETED: {account_id} was merged into {account.merged_into}; use that one")
    if not subject.strip() or len(subject) > 200:
        raise ToolError("subject must have 1 to 200 characters")
    today = stamp(workspace.now)[:10]
    day = _day("activity_date", activity_date or today)
    if day > today:
        raise ToolError(f"activity_date: {day} is in the future; today is {today}")
    activity = Activity(
        id=workspace.new_id("activity"),
        account_id=account_id,
        kind=kind,
        subject=subject.strip(),
        notes=notes,
        date=day,
        author=_me(workspace),
    )
    workspace.put("activity", activity)
    return {"id": activity.id, "account_id": account_id, "kind": kind, "date": day}


@tool()
def get_opportunity(workspace: Workspace, opportunity_id: str) -> dict[str, Any]:
    """Shows one opportunity in full, with its amount.

    Args:
        opportunity_id: Id of the opportunity, as shown by get_account.
    """
    deal = workspace.get("opportunity", opportunity_id)
    shown = {name: getattr(deal, name) for name in deal.__struct_fields__}
    return {name: value for name, value in shown.items() if value}


@tool(write=True)
def create_opportunity(
    workspace: Workspace, account_id: str, name: str, amount: float, close_date: str, stage: Stage = "prospecting"
) -> dict[str, Any]:
    """Adds an opportunity to an account. An account has no two open opportunities of the same name.

    Args:
        account_id: Id of the account.
        name: What is to be sold.
        amount: Expected value, above 0.
        close_date: When it should be closed, YYYY-MM-DD.
        stage: How far it is.
    """
    account = _editable(workspace, account_id)
    if not name.strip() or len(name) > 120:
        raise ToolError("name must have 1 to 120 characters")
    if not 0 < amount < 1e12:
        raise ToolError("amount must be above 0 and below 1,000,000,000,000")
    _day("close_date", close_date)
    for deal in workspace.rows("opportunity").values():
        same = deal.account_id == account_id and deal.name.lower() == name.strip().lower()
        if same and not deal.stage.startswith("closed"):
            raise ToolError(f"DUPLICATES_DETECTED: {deal.id} has that name and is open; change the name or leave it")
    deal = Opportunity(
        id=workspace.new_id("opportunity"),
        account_id=account_id,
        name=name.strip(),
        stage=stage,
        amount=f"{amount:,.2f}",
        close_date=close_date,
        owner=account.owner,
    )
    workspace.put("opportunity", deal)
    return {"id": deal.id, "account_id": account_id, "name": deal.name, "stage": stage, "amount": deal.amount}


@tool(write=True)
def export_accounts(
    workspace: Workspace, title: str, account_ids: list[str], columns: list[Column], recipients: list[str]
) -> dict[str, Any]:
    """Sends a table with the chosen columns of the chosen accounts to somebody by mail.

    Args:
        title: Title of the table.
        account_ids: Ids of the accounts, at most 100.
        columns: Fields to show for each account.
        recipients: Addresses that get it.
    """
    if not account_ids or len(account_ids) > 100:
        raise ToolError("account_ids must have 1 to 100 ids")
    receivers, chosen = addresses("recipients", recipients), tuple(dict.fromkeys(columns))
    if not receivers or not chosen:
        raise ToolError("give at least one column and one recipient")
    accounts = [workspace.get("account", account_id) for account_id in dict.fromkeys(account_ids)]
    export = AccountExport(
        id=workspace.new_id("export"),
        title=title,
        account_ids=tuple(account.id for account in accounts),
        columns=chosen,
        recipients=receivers,
        lines=tuple(" | ".join(str(getattr(account, name) or "-") for name in chosen) for account in accounts),
    )
    workspace.put("account_export", export)
    return {"id": export.id, "rows": len(accounts), "columns": list(chosen), "recipients": list(receivers)}


def _live(workspace: Workspace) -> Iterable[Account]:
    return (account for account in workspace.rows("account").values() if not account.merged_into)


def _headers(accounts: Iterable[Account], page: int) -> list[dict[str, Any]]:
    """Returns one page of summaries, by name."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    ordered = sorted(accounts, key=lambda a: (a.name, a.id))[(page - 1) * PAGE : page * PAGE]
    names = ("id", "name", "tier", "status", "industry", "owner")
    return [{name: getattr(account, name) for name in names} for account in ordered]


def _contains(account: Account, wanted: Sequence[str]) -> bool:
    names = " ".join(account.aliases)
    text = f"{account.id} {account.name} {names} {account.website} {account.industry} {account.contact_name}".lower()
    return all(word in text for word in wanted)


def _editable(workspace: Workspace, account_id: str) -> Account:
    account: Account = workspace.get("account", account_id)
    if account.merged_into:
        raise ToolError(f"ENTITY_IS_DELETED: {account_id} was merged into {account.merged_into}; use that one")
    if account.locked:
        raise ToolError(f"ENTITY_IS_LOCKED: {account_id} is locked for an approval; it can only be read and logged on")
    return account


def _day(field: str, text: str) -> str:
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            raise ValueError
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ToolError(f"{field}: {text[:40]!r} is not a date; expected YYYY-MM-DD") from None


def _me(workspace: Workspace) -> str:
    return next(iter(workspace.rows("mailbox")), "me@office.example")


class CrmSeeder:
    """Fills the CRM while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world

    def account(self, firm: Firm | str, contact: Person | None = None, *, owner: Person | str = "", **fields: Any) -> Account:
        """Adds an account and returns it.

        Args:
            firm: The customer, or its name.
            contact: Whom one talks to there.
            owner: The colleague who looks after it, or that address.
            fields: Any other fields of `Account`.
        """
        account = Account(
            id=self.world.new_id("account"),
            name=firm if isinstance(firm, str) else firm.name,
            website=fields.pop("website", "" if isinstance(firm, str) else f"www.{firm.domain}"),
            owner=owner if isinstance(owner, str) else owner.email,
            contact_name=contact.name if contact else fields.pop("contact_name", ""),
            contact_email=contact.email if contact else fields.pop("contact_email", ""),
            **fields,
        )
        self.world.workspace.put("account", account)
        return account

    def opportunity(
        self, account: Account, name: str, *, amount: str, close_date: str, stage: Stage = "proposal", notes: str = ""
    ) -> Opportunity:
        """Adds an opportunity to an account and returns it."""
        deal = Opportunity(
            id=self.world.new_id("opportunity"),
            account_id=account.id,
            name=name,
            stage=stage,
            amount=amount,
            close_date=close_date,
            owner=account.owner,
            notes=notes,
        )
        self.world.workspace.put("opportunity", deal)
        return deal

    def activity(self, account: Account, kind: str, subject: str, *, days_ago: int, notes: str = "") -> Activity:
        """Adds something that was done for an account and returns it."""
        activity = Activity(
            id=self.world.new_id("activity"),
            account_id=account.id,
            kind=kind,
            subject=subject,
            notes=notes,
            date=self.world.day(-days_ago).isoformat(),
            author=account.owner,
        )
        self.world.workspace.put("activity", activity)
        return activity

    def noise(self, count: int, *, status: AccountStatus | None = None) -> list[Account]:
        """Adds accounts of customers who have nothing to do with the task; drawn statuses are prospects and former customers."""
        world, rng = self.world, self.world.rng
        names = rng.sample(NOISE[world.language], min(count, len(NOISE[world.language])))
        added = []
        for index in range(count):
            name = names[index % len(names)]
            added.append(
                self.account(
                    name if index < len(names) else f"{name} {index}",
                    tier=rng.choice(("standard", "standard", "silver")),
                    status=status or rng.choice(("prospect", "churned")),
                    industry=rng.choice(INDUSTRIES[world.language]),
                    last_contact=world.day(-rng.randrange(60, 400)).isoformat(),
                    satisfaction=rng.randrange(40, 95) / 10,
                )
            )
        return added


APP = App(
    "crm",
    (
        list_accounts, search_accounts, get_account, update_account, merge_accounts, log_activity, get_opportunity,
        create_opportunity, export_accounts,
    ),
    CrmSeeder,
)  # fmt: skip
