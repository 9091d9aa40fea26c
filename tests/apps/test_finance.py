"""Finance: lists hide what records show, closed periods refuse, and nothing is paid, refunded or reported twice."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Language, World

BOX = toolbox(("finance",))


class Office:
    """Books with an old and a new expense, a payment, a pending charge, and three orders."""

    def __init__(self, language: Language = "en") -> None:
        world = World("test/1", language, "train")
        books = world.finance
        self.old = books.transaction("Aldo", 120.5, day=world.day(-70), card="9999 0000", description="Taxi to the fair")
        self.new = books.transaction("Aldo", 80.25, day=world.day(-3), account="corporate card")
        self.back = books.transaction("Aldo", 20.25, day=world.day(-2), kind="credit", category="6100")
        self.pending = books.transaction("Berta", 15.0, day=world.day(-1), status="pending", category="6100")
        self.payment = books.transaction("Carlo", 500.0, day=world.day(-4), kind="payment", reference="INV-1")
        self.sale = books.order("Carlo", [("P1", "Lamp", 3, 100.0), ("P2", "Bulb", 10, 5.5)], day=world.day(-9), paid=55.0)
        self.gone = books.order("Carlo", [("P1", "Lamp", 1, 100.0)], day=world.day(-8), status="cancelled")
        self.purchase = books.order("Dora", [("P1", "Lamp", 9, 60.0)], kind="purchase", status="received", bank_account="DE 1")
        books.close_books(world.day(-40))
        books.noise(25)
        self.today = world.today.isoformat()
        self.workspace: Workspace = world.workspace
        self.workspace.begin()

    def do(self, name: str, **arguments: Any) -> Result:
        return BOX.run(self.workspace, ToolCall(name, arguments))

    def good(self, name: str, **arguments: Any) -> Any:
        """Returns what a call that has to succeed brings."""
        result = self.do(name, **arguments)
        assert result.ok, result.text
        return result.value

    def bad(self, name: str, **arguments: Any) -> str:
        """Returns the error of a call that has to be refused, and checks that it left no trace."""
        before = self.workspace.journal
        result = self.do(name, **arguments)
        assert not result.ok
        assert self.workspace.journal == before
        return str(result.value["error"])


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_list_hides_what_a_record_shows(office: Office) -> None:
    found = office.good("list_transactions", party="aldo")
    assert [row["id"] for row in found["transactions"]] == [office.back.id, office.new.id, office.old.id]
    assert "9999" not in str(found) and "Taxi" not in str(found)
    shown = office.good("get_transaction", transaction_id=office.old.id)
    assert (shown["card"], shown["description"], shown["amount"]) == ("9999 0000", "Taxi to the fair", 120.5)


def test_lists_filter_by_date_kind_status_and_account(office: Office) -> None:
    assert office.good("list_transactions", kind="payment")["total_count"] == 1
    assert office.good("list_transactions", status="pending")["transactions"][0]["id"] == office.pending.id
    assert office.good("list_transactions", account="Corporate Card")["transactions"][0]["id"] == office.new.id
    assert office.good("list_transactions", end_date=office.old.date)["total_count"] == 1
    assert "checking" in office.bad("list_transactions", account="petty cash")


def test_lists_come_in_pages(office: Office) -> None:
    first = office.good("list_transactions")
    assert (len(first["transactions"]), first["total_count"], first["next_page"]) == (20, 30, 2)
    second = office.good("list_transactions", page=2)
    assert len(second["transactions"]) == 10 and "next_page" not in second
    assert office.good("list_transactions", page=10**30)["transactions"] == []
    office.bad("list_transactions", page=0)


@pytest.mark.parametrize("day", ["", "2026-02-30", "today", "９", "9" * 400])
def test_what_is_no_date_is_refused(office: Office, day: str) -> None:
    assert "expected YYYY-MM-DD" in office.bad("list_transactions", start_date=day)
    assert "expected YYYY-MM-DD" in office.bad("list_orders", end_date=day)


def test_a_transaction_is_categorized_by_code_or_name(office: Office) -> None:
    assert office.good("categorize_transaction", transaction_id=office.new.id, category="travel")["category"] == "6100"
    office.good("categorize_transaction", transaction_id=office.new.id, category="6200")
    assert office.good("get_transaction", transaction_id=office.new.id)["category_name"] == "Meals"
    assert "6300 Office supplies" in office.bad("categorize_transaction", transaction_id=office.new.id, category="fun")


def test_closed_periods_refuse(office: Office) -> None:
    assert "period_closed" in office.bad("categorize_transaction", transaction_id=office.old.id, category="6100")
    lines: dict[str, Any] = {"accounts": ["6100", "1000"], "debits": [10, 0], "credits": [0, 10], "memo": ""}
    assert "period_closed" in office.bad("post_journal_entry", date=office.old.date, **lines)
    assert office.good("post_journal_entry", date=office.new.date, **lines)["total"] == 10


@pytest.mark.parametrize(
    ("debits", "credits", "problem"),
    [
        ([10, 0], [0, 9.99], "unbalanced"),
        ([10, 10], [0, 10], "either a debit or a credit"),
        ([10], [0, 10], "same number"),
        ([-10, 0], [0, -10], "not an amount"),
        ([10.001, 0], [0, 10.001], "two decimals"),
        ([1e300, 0], [0, 1e300], "not an amount"),
    ],
)
def test_only_balanced_entries_are_posted(office: Office, debits: list[float], credits: list[float], problem: str) -> None:
    arguments = {"date": office.today, "memo": "x", "accounts": ["6100", "1000"], "debits": debits, "credits": credits}
    assert problem in office.bad("post_journal_entry", **arguments)


def test_entries_go_to_known_active_accounts_and_not_into_the_future(office: Office) -> None:
    lines: dict[str, Any] = {"debits": [10, 0], "credits": [0, 10], "memo": "x"}
    assert "no ledger account" in office.bad("post_journal_entry", date=office.today, accounts=["6100", "x"], **lines)
    assert "future" in office.bad("post_journal_entry", date="9999-12-31", accounts=["6100", "1000"], **lines)


def test_a_report_takes_posted_and_categorized_expenses_once(office: Office) -> None:
    pair = [office.new.id, office.back.id]
    assert "uncategorized" in office.bad("submit_expense_report", title="Trip", transaction_ids=pair, total=60)
    office.good("categorize_transaction", transaction_id=office.new.id, category="6100")
    assert "not_reportable" in office.bad("submit_expense_report", title="Trip", transaction_ids=[office.pending.id], total=15)
    assert "not_reportable" in office.bad("submit_expense_report", title="Trip", transaction_ids=[office.payment.id], total=15)
    assert "each once" in office.bad("submit_expense_report", title="Trip", transaction_ids=[office.new.id] * 2, total=160.5)
    done = office.good("submit_expense_report", title="Trip", transaction_ids=pair, total=60)
    assert (done["status"], done["transactions"], done["total"]) == ("submitted", 2, 60)
    assert "already_reported" in office.bad("submit_expense_report", title="Again", transaction_ids=pair, total=60)
    assert "locked" in office.bad("categorize_transaction", transaction_id=office.new.id, category="6200")
    row = office.workspace.get("expense_report", done["id"])
    assert row.lasting and row.reaches


def test_an_order_shows_lines_and_balance_only_when_opened(office: Office) -> None:
    listed = office.good("list_orders", kind="sale", party="carl")
    assert listed["total_count"] == 2 and "lines" not in listed["orders"][0]
    shown = office.good("get_order", order_id=office.sale.id)
    assert (shown["total"], shown["paid"], shown["balance"]) == (355.0, 55.0, 300.0)
    assert shown["lines"][1] == {"product": "P2", "description": "Bulb", "quantity": 10, "unit_price": 5.5}
    assert "DE 1" not in str(office.good("list_orders")) and "DE 1" in str(office.good("get_order", order_id=office.purchase.id))
    assert office.good("list_orders", status="cancelled")["orders"][0]["id"] == office.gone.id


def test_payments_are_applied_up_to_balance_and_payment(office: Office) -> None:
    pay, sale = office.payment.id, office.sale.id
    assert "300.00" in office.bad("apply_payment", transaction_id=pay, order_id=sale, amount=300.01)
    done = office.good("apply_payment", transaction_id=pay, order_id=sale, amount=300)
    assert (done["unapplied"], done["balance"]) == (200, 0)
    assert office.good("get_transaction", transaction_id=pay)["unapplied"] == 200
    assert "cancelled" in office.bad("apply_payment", transaction_id=pay, order_id=office.gone.id, amount=1)
    assert "purchase" in office.bad("apply_payment", transaction_id=pay, order_id=office.purchase.id, amount=1)
    assert "only a posted payment" in office.bad("apply_payment", transaction_id=office.new.id, order_id=sale, amount=1)


def test_refunds_never_exceed_the_payment_and_last(office: Office) -> None:
    done = office.good("create_refund", transaction_id=office.payment.id, amount=450.5, reason="late")
    assert done["status"] == "pending"
    assert "49.50" in office.bad("create_refund", transaction_id=office.payment.id, amount=50)
    office.good("create_refund", transaction_id=office.payment.id, amount=49.5)
    assert "charge_already_refunded" in office.bad("create_refund", transaction_id=office.payment.id, amount=1)
    assert office.workspace.get("transaction", done["id"]).lasting


@pytest.mark.parametrize("amount", [0, -1, 1e9 + 1, 0.001, float("inf"), float("nan"), "x", None, 10**400])
def test_what_is_no_amount_is_refused(office: Office, amount: Any) -> None:
    assert office.bad("create_refund", transaction_id=office.payment.id, amount=amount)
    assert office.bad("apply_payment", transaction_id=office.payment.id, order_id=office.sale.id, amount=amount)
    assert office.bad("submit_expense_report", title="", transaction_ids=[office.new.id], total=amount)


def test_unknown_ids_are_refused(office: Office) -> None:
    for name in ("txn-0", "", "\x00", "中" * 500):
        assert "there is no transaction" in office.bad("get_transaction", transaction_id=name)
        assert "there is no order" in office.bad("get_order", order_id=name)


def test_reading_changes_nothing(office: Office) -> None:
    before = dict(office.workspace.tables())
    office.good("list_transactions")
    office.good("get_transaction", transaction_id=office.payment.id)
    office.good("list_orders")
    assert office.workspace.journal == () and before == office.workspace.tables()


def test_the_ledger_and_the_noise_are_in_the_language_of_the_world() -> None:
    office = Office("zh")
    done = office.good("categorize_transaction", transaction_id=office.new.id, category="差旅费")
    assert done["category"] == "6100"
    assert "房租水电" in office.bad("categorize_transaction", transaction_id=office.new.id, category="无")
    assert not any(t.party.isascii() for t in [*office.workspace.rows("transaction").values()][5:])
