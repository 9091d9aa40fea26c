"""Finance: the books. Lists show dates, parties and amounts; opening a record shows lines, references and bank details.

Amounts are positive numbers; the kind of a transaction says in which direction the money went.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date as calendar_date
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.books import (
    BOOKS,
    CHART,
    LARGEST,
    NOISE,
    Account,
    Application,
    Books,
    ExpenseReport,
    JournalEntry,
    Line,
    Order,
    Transaction,
    balance,
    check_open,
    details,
    ledger_code,
    ledger_name,
    money,
    paged,
    paid,
    parse_date,
    refundable,
    report_of,
    span,
    unapplied,
)
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Firm, Person, World

Kind = Literal["expense", "bill_payment", "credit", "payment", "refund", "transfer", "payroll", "fee"]
Status = Literal["pending", "posted", "failed", "reversed"]
OrderKind = Literal["sale", "purchase"]


@tool(opens="get_transaction")
def list_transactions(
    workspace: Workspace,
    start_date: str | None = None,
    end_date: str | None = None,
    kind: Kind | None = None,
    status: Status | None = None,
    account: str | None = None,
    party: str | None = None,
    page: int = 1,
) -> dict[str, Any]:
    """Lists transactions, newest first, without description, reference and bank details.

    Args:
        start_date: First date, YYYY-MM-DD.
        end_date: Last date, YYYY-MM-DD.
        kind: expense and bill_payment are money spent, credit is a vendor's credit note or money back, payment is a
            customer's payment, refund is money given back to a customer.
        status: Only transactions in this state.
        account: Only this bank or card account, such as "checking".
        party: Only parties whose name contains this text.
        page: Page number, from 1; a page has 20 records.
    """
    first, last = span(start_date, end_date)
    rows = workspace.rows("transaction").values()
    if account is not None and rows and account.strip().lower() not in (names := {t.account.lower(): t.account for t in rows}):
        raise ToolError(f"no account {account[:60]!r}; the accounts are {', '.join(sorted(names.values()))}")
    found = [
        t
        for t in rows
        if first <= t.date <= last
        and (kind is None or t.kind == kind)
        and (status is None or t.status == status)
        and (account is None or t.account.lower() == account.strip().lower())
        and (party is None or party.strip().lower() in t.party.lower())
    ]
    return paged("transactions", found, ("id", "date", "kind", "account", "party", "amount", "status", "category"), page)


@tool()
def get_transaction(workspace: Workspace, transaction_id: str) -> dict[str, Any]:
    """Shows one transaction in full, with what of a payment is not yet applied to orders.

    Args:
        transaction_id: Id of the transaction, as shown by list_transactions.
    """
    row = workspace.get("transaction", transaction_id)
    shown = details(row)
    if row.category:
        shown["category_name"] = ledger_name(workspace, row.category)
    if row.kind == "payment":
        shown["unapplied"] = unapplied(workspace, row)
    return shown


@tool(write=True)
def categorize_transaction(workspace: Workspace, transaction_id: str, category: str) -> dict[str, Any]:
    """Assigns a transaction to an account of the ledger. Refused in a closed period and after it was put on a report.

    Args:
        transaction_id: Id of the transaction.
        category: Code or name of the ledger account, such as "6100".
    """
    row = workspace.get("transaction", transaction_id)
    code = ledger_code(workspace, category)
    check_open(workspace, row.date)
    if report_of(workspace, row):
        raise ToolError(f"{row.id} is locked: it is on expense report {report_of(workspace, row)}")
    workspace.put("transaction", msgspec.structs.replace(row, category=code))
    return {"id": row.id, "category": code, "category_name": ledger_name(workspace, code)}


@tool(opens="get_order")
def list_orders(
    workspace: Workspace,
    kind: OrderKind | None = None,
    party: str | None = None,
    status: str | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
    page: int = 1,
) -> dict[str, Any]:
    """Lists sales orders (which are invoiced under their number) and purchase orders, newest first, without lines.

    Args:
        kind: sale or purchase.
        party: Only customers or suppliers whose name contains this text.
        status: Only orders in this state, such as open, fulfilled, received or cancelled.
        start_date: First date, YYYY-MM-DD.
        end_date: Last date, YYYY-MM-DD.
        page: Page number, from 1; a page has 20 records.
    """
    first, last = span(start_date, end_date)
    found = [
        o
        for o in workspace.rows("order").values()
        if first <= o.date <= last
        and (kind is None or o.kind == kind)
        and (party is None or party.strip().lower() in o.party.lower())
        and (status is None or o.status == status.strip().lower())
    ]
    return paged("orders", found, ("id", "kind", "number", "date", "party", "status", "total"), page)


@tool()
def get_order(workspace: Workspace, order_id: str) -> dict[str, Any]:
    """Shows one order in full: lines, what was paid, the open balance, notes and bank details.

    Args:
        order_id: Id of the order, as shown by list_orders.
    """
    row = workspace.get("order", order_id)
    shown = {**details(row), "paid": paid(workspace, row), "balance": balance(workspace, row)}
    shown["lines"] = [line._asdict() for line in row.lines]
    return shown


@tool(write=True)
def apply_payment(workspace: Workspace, transaction_id: str, order_id: str, amount: float) -> dict[str, Any]:
    """Applies a customer's payment, or a part of it, to the open balance of a sales order.

    Args:
        transaction_id: Id of the payment.
        order_id: Id of the sales order.
        amount: How much of the payment to apply.
    """
    row, order, value = workspace.get("transaction", transaction_id), workspace.get("order", order_id), money("amount", amount)
    if row.kind != "payment" or row.status != "posted":
        raise ToolError(f"{row.id} is a {row.status} {row.kind}; only a posted payment can be applied")
    if order.kind != "sale" or order.status == "cancelled":
        raise ToolError(f"{order.id} is a {order.status} {order.kind} order; a payment can only be applied to a live sales order")
    check_open(workspace, row.date)
    if value > (left := unapplied(workspace, row)) + 0.001:
        raise ToolError(f"amount_too_large: {left:.2f} of {row.id} is not yet applied")
    if value > (due := balance(workspace, order)) + 0.001:
        raise ToolError(f"amount_too_large: the open balance of {order.id} is {due:.2f}")
    new = Application(id=workspace.new_id("application"), transaction=row.id, order=order.id, amount=value)
    workspace.put("application", new)
    return {"id": new.id, "unapplied": unapplied(workspace, row), "balance": balance(workspace, order)}


@tool(write=True)
def create_refund(workspace: Workspace, transaction_id: str, amount: float, reason: str = "") -> dict[str, Any]:
    """Gives a customer's payment back, whole or in part. This cannot be undone.

    Args:
        transaction_id: Id of the payment.
        amount: How much to refund; at most what has not been refunded yet.
        reason: Why, for the books.
    """
    row, value = workspace.get("transaction", transaction_id), money("amount", amount)
    if row.kind != "payment" or row.status != "posted":
        raise ToolError(f"{row.id} is a {row.status} {row.kind}; only a posted payment can be refunded")
    if (left := refundable(workspace, row)) <= 0:
        raise ToolError(f"charge_already_refunded: {row.id} has been refunded in full")
    if value > left + 0.001:
        raise ToolError(f"amount_too_large: {left:.2f} of {row.id} can still be refunded")
    new = Transaction(
        id=workspace.new_id("txn"),
        date=workspace.now.date().isoformat(),
        kind="refund",
        account=row.account,
        party=row.party,
        amount=value,
        status="pending",
        memo=reason,
        source=row.id,
    )
    workspace.put("transaction", new)
    return {"id": new.id, "status": new.status, "amount": value, "source": row.id}


@tool(write=True)
def post_journal_entry(
    workspace: Workspace, date: str, memo: str, accounts: list[str], debits: list[float], credits: list[float]
) -> dict[str, Any]:
    """Posts a balanced journal entry. The three lists have one item for each line; a line is either a debit or a credit.

    Args:
        date: Posting date, YYYY-MM-DD; not in a closed period, not in the future.
        memo: What it is for.
        accounts: Code or name of the ledger account of each line.
        debits: Debit of each line; 0 for a credit line.
        credits: Credit of each line; 0 for a debit line.
    """
    day = parse_date("date", date)
    if day > workspace.now.date().isoformat():
        raise ToolError(f"date: {day} is in the future")
    check_open(workspace, day)
    if not 2 <= len(accounts) == len(debits) == len(credits):
        raise ToolError("accounts, debits and credits must have the same number of items, at least 2")
    lines = []
    for account, debit, credit in zip(accounts, debits, credits, strict=True):
        if (debit == 0) == (credit == 0):
            raise ToolError(f"the line of {account[:40]!r} must have either a debit or a credit, and 0 for the other")
        entry = (money("debits", debit) if debit else 0.0, money("credits", credit) if credit else 0.0)
        lines.append((ledger_code(workspace, account), *entry))
    left, right = round(sum(line[1] for line in lines), 2), round(sum(line[2] for line in lines), 2)
    if left != right:
        raise ToolError(f"unbalanced: the debits are {left:.2f} and the credits {right:.2f}")
    new = JournalEntry(id=workspace.new_id("journal"), date=day, memo=memo, lines=tuple(lines))
    workspace.put("journal_entry", new)
    return {"id": new.id, "date": day, "total": left}


@tool(write=True)
def submit_expense_report(workspace: Workspace, title: str, transaction_ids: list[str], total: float) -> dict[str, Any]:
    """Submits expenses (and vendors' credits, which count against them) for reimbursement. This cannot be undone.

    Args:
        title: Title of the report.
        transaction_ids: Ids of its expenses and credits; each must be posted, categorized, and on no other report.
        total: Expenses less credits. It is not checked here: the approvers compare it.
    """
    if not title.strip() or len(title) > 200:
        raise ToolError("title must have 1 to 200 characters")
    if not transaction_ids or len(set(transaction_ids)) < len(transaction_ids):
        raise ToolError("transaction_ids must name at least one transaction, each once")
    if not math.isfinite(total) or abs(total) > LARGEST:
        raise ToolError("total is not a usable amount")
    new_id = workspace.new_id("report")
    rows = [workspace.get("transaction", key) for key in transaction_ids]
    for row in rows:
        if row.kind not in ("expense", "credit") or row.status != "posted":
            raise ToolError(f"not_reportable: {row.id} is a {row.status} {row.kind}; only posted expenses and credits are")
        if report_of(workspace, row):
            raise ToolError(f"already_reported: {row.id} is on report {report_of(workspace, row)}")
        if not row.category:
            raise ToolError(f"uncategorized: {row.id} has no category; use categorize_transaction first")
    report = ExpenseReport(
        id=new_id,
        title=title,
        transactions=tuple(transaction_ids),
        total=round(total, 2),
        date=workspace.now.date().isoformat(),
    )
    workspace.put("expense_report", report)
    return {"id": new_id, "status": report.status, "transactions": len(rows), "total": report.total}


class FinanceSeeder:
    """Fills the books while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world
        for code, en, zh in CHART:
            world.workspace.put("ledger_account", Account(id=code, name=world.text(en, zh)))

    def close_books(self, through: calendar_date) -> None:
        """Closes the periods up to a date, which is included."""
        self.world.workspace.put("books", Books(id=BOOKS, closed_through=through.isoformat()))

    def account(self, code: str, name: str, *, active: bool = True) -> Account:
        """Adds an account to the ledger, or replaces the one with this code."""
        row = Account(id=code, name=name, active=active)
        self.world.workspace.put("ledger_account", row)
        return row

    def transaction(
        self,
        party: Firm | Person | str,
        amount: float,
        *,
        kind: Kind = "expense",
        day: calendar_date | None = None,
        account: str = "checking",
        status: Status = "posted",
        **fields: str,
    ) -> Transaction:
        """Adds a transaction and returns it; its date is drawn from the last 60 days if not given.

        `fields` are the other fields of `Transaction`, such as description, reference, bank_account and card.
        """
        world = self.world
        row = Transaction(
            id=world.new_id("txn"),
            date=(day or world.day(-world.rng.randrange(1, 60))).isoformat(),
            kind=kind,
            account=account,
            party=party if isinstance(party, str) else party.name,
            amount=round(amount, 2),
            status=status,
            **fields,
        )
        world.workspace.put("transaction", row)
        return row

    def order(
        self,
        party: Firm | Person | str,
        lines: Iterable[tuple[str, str, int, float]],
        *,
        kind: OrderKind = "sale",
        number: str | None = None,
        day: calendar_date | None = None,
        status: str = "open",
        total: float | None = None,
        paid: float = 0.0,
        due: calendar_date | None = None,
        **fields: str,
    ) -> Order:
        """Adds an order and returns it.

        Lines are (product, description, quantity, unit price); their sum is the total if none is given. `fields` are the other
        fields of `Order`, such as reference, bank_account and note.
        """
        world = self.world
        items = tuple(Line(product, what, pieces, round(price, 2)) for product, what, pieces, price in lines)
        row = Order(
            id=world.new_id("order"),
            kind=kind,
            number=number or f"{'INV' if kind == 'sale' else 'PO'}-{world.rng.randrange(20_000, 90_000)}",
            date=(day or world.day(-world.rng.randrange(1, 60))).isoformat(),
            party=party if isinstance(party, str) else party.name,
            status=status,
            lines=items,
            total=round(sum(item.quantity * item.unit_price for item in items), 2) if total is None else total,
            paid=paid,
            due=due.isoformat() if due else "",
            **fields,
        )
        world.workspace.put("order", row)
        return row

    def noise(self, count: int) -> list[Transaction]:
        """Adds transactions that have nothing to do with the task: rent, insurance, postage and the like."""
        rng, rows = self.world.rng, []
        for party, what, code, low, high in (rng.choice(NOISE[self.world.language]) for _ in range(count)):
            rows.append(self.transaction(party, rng.randrange(low * 100, high * 100) / 100, category=code, description=what))
        return rows


APP = App(
    "finance",
    (
        list_transactions,
        get_transaction,
        categorize_transaction,
        list_orders,
        get_order,
        apply_payment,
        create_refund,
        post_journal_entry,
        submit_expense_report,
    ),
    FinanceSeeder,
)
