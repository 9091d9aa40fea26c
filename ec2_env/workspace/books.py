"""The books of a workspace: rows of the finance app, and the rules that its tools share with those of the inventory app."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date as calendar_date
from typing import Any, NamedTuple

from ec2_env.errors import ToolError
from ec2_env.workspace.store import Row, Workspace

PAGE = 20
"""Records on one page of a list."""
LARGEST = 1e9
"""Largest amount that the books accept."""
BOOKS = "books"


class Transaction(Row, frozen=True, kw_only=True):
    """One movement of money.

    "expense" and "bill_payment" are money spent, "credit" is money that a vendor gave back, "payment" is a customer's payment,
    "refund" is money given back to a customer. `category` is the code of a ledger account, empty until somebody assigns one.
    `report` is the expense report that holds it. `source` is the transaction that it reverses or refunds.
    """

    date: str
    kind: str
    account: str
    party: str
    amount: float
    status: str = "posted"
    category: str = ""
    description: str = ""
    reference: str = ""
    bank_account: str = ""
    card: str = ""
    memo: str = ""
    source: str = ""
    report: str = ""

    @property
    def lasting(self) -> bool:
        return self.kind == "refund"


class Line(NamedTuple):
    """One line of an order. `product` is a product's id or SKU."""

    product: str
    description: str
    quantity: int
    unit_price: float


class Order(Row, frozen=True, kw_only=True):
    """A sales order (invoiced under its number) or a purchase order. `paid` is what was paid before the episode began."""

    kind: str
    number: str
    date: str
    party: str
    status: str
    lines: tuple[Line, ...]
    total: float
    paid: float = 0.0
    due: str = ""
    reference: str = ""
    bank_account: str = ""
    note: str = ""
    sent_to: str = ""

    @property
    def lasting(self) -> bool:
        return bool(self.sent_to)

    @property
    def reaches(self) -> tuple[str, ...]:
        return (self.sent_to,) if self.sent_to else ()


class Application(Row, frozen=True, kw_only=True):
    """A part of a payment that was applied to a sales order."""

    transaction: str
    order: str
    amount: float


class JournalEntry(Row, frozen=True, kw_only=True):
    """A balanced entry: (account, debit, credit) by line."""

    date: str
    memo: str
    lines: tuple[tuple[str, float, float], ...]


class ExpenseReport(Row, frozen=True, kw_only=True):
    """A submitted expense report. `total` is what the submitter stated; nobody has checked it yet."""

    title: str
    transactions: tuple[str, ...]
    total: float
    date: str
    status: str = "submitted"

    @property
    def lasting(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[str, ...]:
        return ("finance:approvals",)


class Account(Row, frozen=True, kw_only=True):
    """An account of the ledger; `id` is its code."""

    name: str
    active: bool = True


class Books(Row, frozen=True, kw_only=True):
    """The state of the books; the only row has the id "books"."""

    closed_through: str = ""


# -- what the tools share


def details(row: Row) -> dict[str, Any]:
    """Returns the fields of a row that are not empty."""
    shown = {name: value for name in row.__struct_fields__ if (value := getattr(row, name)) not in ("", ())}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}


def paged(key: str, rows: Iterable[Any], shown: Sequence[str], page: int) -> dict[str, Any]:
    """Returns one page of records, newest first, and the number of all that fit."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    ordered = sorted(rows, key=lambda row: (row.date, row.id), reverse=True)
    part = ordered[(page - 1) * PAGE : page * PAGE] if page <= len(ordered) else []
    found: dict[str, Any] = {key: [{name: getattr(row, name) for name in shown} for row in part], "total_count": len(ordered)}
    if page * PAGE < len(ordered):
        found["next_page"] = page + 1
    return found


def parse_date(field: str, text: str) -> str:
    """Returns a date in ISO form, or raises ToolError."""
    try:
        return calendar_date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise ToolError(f"{field}: {text[:40]!r} is not a date; expected YYYY-MM-DD") from None


def span(start_date: str | None, end_date: str | None) -> tuple[str, str]:
    """Returns the bounds of a range of dates; a bound that is not given is open."""
    first = "0000" if start_date is None else parse_date("start_date", start_date)
    last = "9999-99" if end_date is None else parse_date("end_date", end_date)
    if first > last:
        raise ToolError("start_date must not be after end_date")
    return first, last


def money(field: str, value: float) -> float:
    """Returns a positive amount with whole cents, or raises ToolError."""
    if not math.isfinite(value) or not 0 < value <= LARGEST or abs(value - round(value, 2)) > 1e-6:
        raise ToolError(f"{field}: {value!r} is not an amount; expected a number above 0 with at most two decimals")
    return round(value, 2)


def check_open(workspace: Workspace, day: str) -> None:
    """Raises ToolError for a date in a closed period."""
    books = workspace.rows("books").get(BOOKS)
    if books is not None and day <= books.closed_through:
        raise ToolError(f"period_closed: the books are closed through {books.closed_through}, and the date is {day}")


def ledger_code(workspace: Workspace, text: str) -> str:
    """Returns the code of an active ledger account named by code or by name, or raises ToolError."""
    wanted, accounts = text.strip().lower(), workspace.rows("ledger_account")
    for code, account in accounts.items():
        if wanted in (code, account.name.lower(), f"{code} {account.name}".lower()):
            if not account.active:
                raise ToolError(f"account {code} {account.name} is inactive; choose another one")
            return code
    known = ", ".join(f"{code} {account.name}" for code, account in accounts.items() if account.active)
    raise ToolError(f"no ledger account {text[:60]!r}; the accounts are {known}")


def ledger_name(workspace: Workspace, code: str) -> str:
    """Returns the name of a ledger account, or its code if there is no such account."""
    account: Account | None = workspace.rows("ledger_account").get(code)
    return account.name if account is not None else code


def unapplied(workspace: Workspace, row: Transaction) -> float:
    """Returns what of a payment is neither applied to orders nor refunded."""
    used = sum(float(a.amount) for a in workspace.rows("application").values() if a.transaction == row.id)
    return max(0.0, round(refundable(workspace, row) - used, 2))


def refundable(workspace: Workspace, row: Transaction) -> float:
    """Returns what of a payment has not been refunded."""
    back = sum(float(t.amount) for t in workspace.rows("transaction").values() if t.kind == "refund" and t.source == row.id)
    return round(row.amount - back, 2)


def paid(workspace: Workspace, order: Order) -> float:
    """Returns what was paid of an order, before the episode and in it."""
    applied = sum(float(a.amount) for a in workspace.rows("application").values() if a.order == order.id)
    return round(order.paid + applied, 2)


def balance(workspace: Workspace, order: Order) -> float:
    """Returns what is still to be paid of an order."""
    return round(order.total - paid(workspace, order), 2)


def report_of(workspace: Workspace, row: Transaction) -> str:
    """Returns the id of the expense report that holds a transaction, or an empty text."""
    later = (report.id for report in workspace.rows("expense_report").values() if row.id in report.transactions)
    return row.report or next(later, "")


CHART = (
    ("1000", "Cash at bank", "银行存款"),
    ("1100", "Accounts receivable", "应收账款"),
    ("1200", "Inventory", "库存商品"),
    ("1300", "Suspense", "待处理财产损溢"),
    ("2000", "Accounts payable", "应付账款"),
    ("4000", "Sales", "主营业务收入"),
    ("5000", "Cost of goods sold", "主营业务成本"),
    ("5100", "Inventory shrinkage", "存货盘亏"),
    ("6100", "Travel", "差旅费"),
    ("6200", "Meals", "餐饮招待费"),
    ("6300", "Office supplies", "办公用品"),
    ("6400", "Software", "软件服务费"),
    ("6500", "Telephone and internet", "通讯费"),
    ("6600", "Training", "培训费"),
    ("6700", "Rent and utilities", "房租水电"),
    ("6800", "Postage and freight", "邮寄运输费"),
    ("6900", "Bank fees", "银行手续费"),
)
"""The ledger of every world: code and name in both languages."""
NOISE = {
    "en": (
        ("Harbor Court Estates", "Office rent", "6700", 2100, 6400),
        ("City Power and Water", "Electricity and water", "6700", 180, 900),
        ("Parcel Post", "Postage", "6800", 12, 240),
        ("Shield Mutual", "Liability insurance", "6700", 300, 1800),
        ("Green Leaf Cleaning", "Cleaning of the office", "6700", 140, 620),
        ("Clearline Telecom", "Telephone and internet", "6500", 60, 380),
        ("Copper Kettle", "Coffee and tea", "6300", 25, 180),
    ),
    "zh": (
        ("海湾物业", "办公室租金", "6700", 2100, 6400),
        ("市水电公司", "水电费", "6700", 180, 900),
        ("通达邮政", "邮寄费", "6800", 12, 240),
        ("盾牌保险", "责任险保费", "6700", 300, 1800),
        ("绿叶保洁", "办公室保洁", "6700", 140, 620),
        ("清线通信", "电话与宽带", "6500", 60, 380),
        ("铜壶咖啡", "咖啡与茶", "6300", 25, 180),
    ),
}
"""Parties that every office pays: name, what for, account, and the lowest and highest amount."""
