"""Inventory: stock never falls below nothing, and orders go only to suppliers that may have them."""

from __future__ import annotations

from typing import Any

import pytest

from ec2_env.actions import ToolCall
from ec2_env.task import toolbox
from ec2_env.workspace.apps.inventory import Offer
from ec2_env.workspace.store import Workspace
from ec2_env.workspace.tools import Result
from ec2_env.workspace.world import Firm, Language, World

BOX = toolbox(("inventory", "finance"))


class Stock:
    """Two suppliers, one of them suspended, and products of theirs."""

    def __init__(self, language: Language = "en") -> None:
        world = World("test/1", language, "train")
        stock = world.inventory
        self.usual = stock.supplier(Firm(name="Aldo", domain="aldo.example"), phone="+1 555", aliases=("Old Aldo",))
        self.other = stock.supplier("Berta", terms="5% rebate")
        self.barred = stock.supplier("Carlo", status="suspended")
        offers = (Offer(self.other.id, 9.5, 20, 10), Offer(self.barred.id, 5.0, 1, 1))
        self.lamp = stock.product("Blue Lamp", category="Light", quantity=12, unit_cost=10.0, supplier=self.usual, offers=offers)
        self.held = stock.product("Red Lamp", category="Light", supplier=self.usual, status="on_hold")
        stock.noise(40)
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
def stock() -> Stock:
    return Stock()


def test_a_list_hides_what_a_record_shows(stock: Stock) -> None:
    found = stock.good("list_products", category="light")
    assert {row["id"] for row in found["products"]} == {stock.lamp.id, stock.held.id}
    assert all("unit_cost" not in row and "safety_stock" not in row for row in found["products"])
    shown = stock.good("get_product", product_id=stock.lamp.id)
    assert (shown["unit_cost"], shown["supplier"], shown["offers"][0]["pack"]) == (10.0, stock.usual.id, 10)
    assert shown["last_sync"].endswith("06:00")


def test_products_are_found_by_name_sku_and_state(stock: Stock) -> None:
    assert [row["id"] for row in stock.good("search_products", query="LAMP blue")["products"]] == [stock.lamp.id]
    assert [row["id"] for row in stock.good("search_products", query=stock.held.sku)["products"]] == [stock.held.id]
    assert [row["id"] for row in stock.good("list_products", status="on_hold")["products"]] == [stock.held.id]
    assert stock.good("search_products", query="zebra")["products"] == []
    stock.bad("search_products", query="  ")


def test_lists_come_in_pages(stock: Stock) -> None:
    pages = [stock.good("list_products", page=number) for number in (1, 2, 3, 10**20)]
    assert [len(page["products"]) for page in pages] == [20, 20, 2, 0]
    assert [page.get("next_page") for page in pages] == [2, 3, None, None]
    stock.bad("list_products", page=-1)


def test_stock_is_adjusted_and_the_movement_noted(stock: Stock) -> None:
    done = stock.good("adjust_stock", product_id=stock.lamp.id, change=-12, reason="damage", reference="R-1")
    assert done["quantity"] == 0
    shown = stock.good("get_product", product_id=stock.lamp.id)
    assert shown["quantity"] == 0
    assert (shown["movements"][-1]["quantity"], shown["movements"][-1]["reference"]) == (-12, "R-1")


def test_more_than_there_is_cannot_be_taken(stock: Stock) -> None:
    assert "insufficient_stock" in stock.bad("adjust_stock", product_id=stock.lamp.id, change=-13, reason="count")


@pytest.mark.parametrize("change", [0, 10**7, -(10**7), 10**400, 1.5, "x", None])
def test_what_is_no_quantity_is_refused(stock: Stock, change: Any) -> None:
    assert stock.bad("adjust_stock", product_id=stock.lamp.id, change=change, reason="count")
    assert stock.bad("create_purchase_order", supplier_id=stock.other.id, product_id=stock.lamp.id, quantity=change)


def test_a_product_is_updated_in_the_given_fields_only(stock: Stock) -> None:
    done = stock.good("update_product", product_id=stock.lamp.id, unit_cost=11.25, tag="cost-review")
    assert (done["unit_cost"], done["tags"], done["status"]) == (11.25, ["cost-review"], "active")
    assert stock.workspace.get("product", stock.lamp.id).safety_stock == stock.lamp.safety_stock
    stock.bad("update_product", product_id=stock.lamp.id, unit_cost=-1)
    stock.bad("update_product", product_id=stock.lamp.id, safety_stock=-1)
    stock.bad("update_product", product_id=stock.lamp.id, tag=" ")
    stock.bad("update_product", product_id=stock.lamp.id, status="gone")


def test_an_order_is_sent_at_the_offered_price_and_is_in_the_books(stock: Stock) -> None:
    done = stock.good("create_purchase_order", supplier_id=stock.other.id, product_id=stock.lamp.id, quantity=30)
    assert (done["total"], done["status"], done["supplier"]) == (285.0, "open", "Berta")
    shown = stock.good("get_order", order_id=done["id"])
    assert (shown["kind"], shown["lines"][0]["product"], shown["lines"][0]["quantity"]) == ("purchase", stock.lamp.id, 30)
    row = stock.workspace.get("order", done["id"])
    assert row.lasting and row.reaches == (stock.other.id,)


def test_the_usual_supplier_sells_at_the_unit_cost(stock: Stock) -> None:
    done = stock.good("create_purchase_order", supplier_id=stock.usual.id, product_id=stock.lamp.id, quantity=3)
    assert done["total"] == 30.0
    assert stock.workspace.get("order", done["id"]).reaches == ("orders@aldo.example",)


def test_orders_that_cannot_be_are_refused(stock: Stock) -> None:
    lamp = {"product_id": stock.lamp.id}
    assert "supplier_suspended" in stock.bad("create_purchase_order", supplier_id=stock.barred.id, quantity=5, **lamp)
    assert "multiple of 10" in stock.bad("create_purchase_order", supplier_id=stock.other.id, quantity=25, **lamp)
    assert "at least 20" in stock.bad("create_purchase_order", supplier_id=stock.other.id, quantity=10, **lamp)
    held = {"product_id": stock.held.id}
    assert "product_on_hold" in stock.bad("create_purchase_order", supplier_id=stock.usual.id, quantity=5, **held)
    spare = [*stock.workspace.rows("product")][-1]
    assert "not_offered" in stock.bad("create_purchase_order", supplier_id=stock.usual.id, product_id=spare, quantity=5)


def test_suppliers_show_other_names_and_terms_only_when_opened(stock: Stock) -> None:
    listed = stock.good("list_suppliers")
    assert [row["name"] for row in listed["suppliers"]] == ["Aldo", "Berta", "Carlo"]
    assert "Old Aldo" not in str(listed) and "rebate" not in str(listed)
    assert [row["id"] for row in stock.good("list_suppliers", status="suspended")["suppliers"]] == [stock.barred.id]
    assert stock.good("get_supplier", supplier_id=stock.usual.id)["aliases"] == ["Old Aldo"]


def test_unknown_ids_are_refused(stock: Stock) -> None:
    for name in ("product-0", "", "\x00", "中" * 500):
        assert "there is no product" in stock.bad("get_product", product_id=name)
        assert "there is no supplier" in stock.bad("get_supplier", supplier_id=name)


def test_goods_are_in_the_language_of_the_world_and_never_twice() -> None:
    stock = Stock("zh")
    names = [p.name for p in stock.workspace.rows("product").values()][2:]
    assert not any(name.isascii() for name in names)
    assert len(set(names[:30])) == 30
