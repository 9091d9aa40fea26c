"""Inventory: products, stock and suppliers. Lists show what there is; opening a record shows cost, safety stock and terms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as calendar_date
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ec2_env.errors import ToolError
from ec2_env.workspace.books import LARGEST, PAGE, Line, Order, details, money
from ec2_env.workspace.store import Row, Workspace
from ec2_env.workspace.tools import App, tool

if TYPE_CHECKING:
    from ec2_env.workspace.world import Firm, World

ProductStatus = Literal["active", "on_hold", "discontinued"]
SupplierStatus = Literal["active", "suspended", "terminated"]
Reason = Literal["count", "damage", "return", "transfer", "correction"]
MOST = 1_000_000
"""Largest quantity of one order or adjustment."""


class Movement(NamedTuple):
    """A change of stock: receipts and returns are positive, sales and losses negative."""

    date: str
    kind: str
    quantity: int
    reference: str


class Offer(NamedTuple):
    """What a supplier asks for a product. `pack` is the multiple in which it is sold."""

    supplier: str
    unit_price: float
    minimum: int
    pack: int


class Product(Row, frozen=True, kw_only=True):
    """A product in stock. `unit_cost` is its cost in the books; `supplier` is the id of its usual supplier."""

    sku: str
    name: str
    category: str
    quantity: int
    safety_stock: int
    unit_cost: float
    supplier: str = ""
    status: str = "active"
    location: str = ""
    last_sync: str = ""
    tags: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    movements: tuple[Movement, ...] = ()
    note: str = ""


class Supplier(Row, frozen=True, kw_only=True):
    """A supplier. `aliases` are former names and trade names, under which orders may be booked."""

    name: str
    category: str
    status: str = "active"
    aliases: tuple[str, ...] = ()
    email: str = ""
    phone: str = ""
    bank_account: str = ""
    terms: str = ""
    lead_days: int = 7
    note: str = ""


@tool(opens="get_product")
def list_products(
    workspace: Workspace, category: str | None = None, status: ProductStatus | None = None, page: int = 1
) -> dict[str, Any]:
    """Lists products with the quantity on hand, by SKU, without cost, safety stock and supplier.

    Args:
        category: Only this category.
        status: Only products in this state.
        page: Page number, from 1; a page has 20 records.
    """
    found = [
        p
        for p in workspace.rows("product").values()
        if (category is None or p.category.lower() == category.strip().lower()) and (status is None or p.status == status)
    ]
    return listed("products", [brief(p) for p in sorted(found, key=lambda p: (p.sku, p.id))], page)


@tool(opens="get_product")
def search_products(workspace: Workspace, query: str, page: int = 1) -> dict[str, Any]:
    """Finds products whose name, SKU or category contain every word of the query.

    Args:
        query: Words to look for, separated by spaces; upper and lower case are the same.
        page: Page number, from 1; a page has 20 records.
    """
    wanted = query.lower().split()
    if not wanted:
        raise ToolError("query is empty; give at least one word")
    rows = sorted(workspace.rows("product").values(), key=lambda p: (p.sku, p.id))
    return listed(
        "products", [brief(p) for p in rows if all(word in f"{p.name} {p.sku} {p.category}".lower() for word in wanted)], page
    )


@tool()
def get_product(workspace: Workspace, product_id: str) -> dict[str, Any]:
    """Shows one product in full: cost, safety stock, supplier, suppliers' offers and latest movements of stock.

    Args:
        product_id: Id of the product, as shown by list_products.
    """
    row = workspace.get("product", product_id)
    shown = details(row)
    for name in ("offers", "movements"):
        if name in shown:
            shown[name] = [item._asdict() for item in shown[name]]
    return shown


@tool(write=True)
def adjust_stock(workspace: Workspace, product_id: str, change: int, reason: Reason, reference: str = "") -> dict[str, Any]:
    """Adds to the quantity on hand, or takes from it, outside of orders. Refused if more would be taken than there is.

    Args:
        product_id: Id of the product.
        change: Pieces to add; below 0 to take away.
        reason: Why: count, damage, return, transfer or correction.
        reference: Number of the document it goes back to, such as an order number.
    """
    row = workspace.get("product", product_id)
    if change == 0 or abs(change) > MOST:
        raise ToolError(f"change must not be 0 and at most {MOST} pieces")
    if row.quantity + change < 0:
        raise ToolError(f"insufficient_stock: {row.id} has {row.quantity} pieces, and {-change} would be taken")
    if len(reference) > 200:
        raise ToolError("reference must have at most 200 characters")
    moved = Movement(workspace.now.date().isoformat(), reason, change, reference)
    workspace.put(
        "product", msgspec.structs.replace(row, quantity=row.quantity + change, movements=(*row.movements[-50:], moved))
    )
    return {"id": row.id, "quantity": row.quantity + change}


@tool(write=True)
def update_product(
    workspace: Workspace,
    product_id: str,
    unit_cost: float | None = None,
    safety_stock: int | None = None,
    status: ProductStatus | None = None,
    tag: str | None = None,
) -> dict[str, Any]:
    """Changes a product's record; what is not given stays as it is. Quantities are changed by adjust_stock.

    Args:
        product_id: Id of the product.
        unit_cost: New cost of one piece in the books.
        safety_stock: New safety stock, in pieces.
        status: New state.
        tag: Tag to add, such as "cost-review".
    """
    row = workspace.get("product", product_id)
    if safety_stock is not None and not 0 <= safety_stock <= MOST:
        raise ToolError(f"safety_stock must be between 0 and {MOST}")
    if tag is not None and not 0 < len(tag.strip()) <= 40:
        raise ToolError("tag must have 1 to 40 characters")
    changed = msgspec.structs.replace(
        row,
        unit_cost=row.unit_cost if unit_cost is None else money("unit_cost", unit_cost),
        safety_stock=row.safety_stock if safety_stock is None else safety_stock,
        status=row.status if status is None else status,
        tags=row.tags if tag is None else tuple(sorted({*row.tags, tag.strip()})),
    )
    workspace.put("product", changed)
    state = ("id", "unit_cost", "safety_stock", "status", "tags")
    return {name: list(v) if isinstance(v := getattr(changed, name), tuple) else v for name in state}


@tool(write=True)
def create_purchase_order(workspace: Workspace, supplier_id: str, product_id: str, quantity: int) -> dict[str, Any]:
    """Orders a product at the supplier's offered price, or at its unit cost from the usual supplier. The order is sent at once.

    Args:
        supplier_id: Id of the supplier.
        product_id: Id of the product.
        quantity: Pieces to order; at least the offer's minimum and a multiple of its pack.
    """
    supplier, product = workspace.get("supplier", supplier_id), workspace.get("product", product_id)
    if supplier.status != "active":
        raise ToolError(f"supplier_{supplier.status}: {supplier.id} accepts no orders; choose another supplier")
    if product.status != "active":
        raise ToolError(f"product_{product.status}: {product.id} cannot be ordered")
    usual = (Offer(product.supplier, product.unit_cost, 1, 1),)
    offer = next((o for o in (*product.offers, *usual) if o.supplier == supplier.id), None)
    if offer is None:
        raise ToolError(f"not_offered: {supplier.id} does not supply {product.id}; get_product shows who does")
    if not offer.minimum <= quantity <= MOST or quantity % offer.pack:
        raise ToolError(f"quantity must be at least {offer.minimum} and a multiple of {offer.pack} at {supplier.id}")
    total = round(quantity * offer.unit_price, 2)
    if total > LARGEST:
        raise ToolError("the total is more than the books accept; order less")
    order = Order(
        id=workspace.new_id("order"),
        kind="purchase",
        number=workspace.new_id("PO"),
        date=workspace.now.date().isoformat(),
        party=supplier.name,
        status="open",
        lines=(Line(product.id, product.name, quantity, offer.unit_price),),
        total=total,
        sent_to=supplier.email or supplier.id,
    )
    workspace.put("order", order)
    return {"id": order.id, "number": order.number, "status": "open", "supplier": supplier.name, "total": total}


@tool(opens="get_supplier")
def list_suppliers(workspace: Workspace, status: SupplierStatus | None = None, page: int = 1) -> dict[str, Any]:
    """Lists suppliers by name, without other names, contact, terms and bank details.

    Args:
        status: Only suppliers in this state.
        page: Page number, from 1; a page has 20 records.
    """
    found = [s for s in workspace.rows("supplier").values() if status is None or s.status == status]
    rows = [
        {"id": s.id, "name": s.name, "category": s.category, "status": s.status}
        for s in sorted(found, key=lambda s: (s.name, s.id))
    ]
    return listed("suppliers", rows, page)


@tool()
def get_supplier(workspace: Workspace, supplier_id: str) -> dict[str, Any]:
    """Shows one supplier in full: other names, contact, terms and bank details.

    Args:
        supplier_id: Id of the supplier, as shown by list_suppliers.
    """
    return details(workspace.get("supplier", supplier_id))


def brief(row: Product) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("id", "sku", "name", "category", "status", "quantity")}


def listed(key: str, rows: Sequence[dict[str, Any]], page: int) -> dict[str, Any]:
    """Returns one page of records and the number of all that fit."""
    if page < 1:
        raise ToolError("page must be 1 or more")
    part = rows[(page - 1) * PAGE : page * PAGE] if page <= len(rows) else []
    found: dict[str, Any] = {key: list(part), "total_count": len(rows)}
    if page * PAGE < len(rows):
        found["next_page"] = page + 1
    return found


class InventorySeeder:
    """Fills the stock while a world is built."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._goods = [*FLAT[world.language]]

    def good(self, category: str | None = None, *, but: str | None = None) -> tuple[str, str]:
        """Returns the category and name of a product that this world does not have yet, for orders and products alike.

        Args:
            category: Its category; drawn if not given.
            but: A category that it must not have.
        """
        world = self.world
        left, start = self._goods, world.rng.randrange(len(self._goods)) if self._goods else 0
        for step in range(len(left)):
            index = (start + step) % len(left)
            if category in (None, left[index][0]) and left[index][0] != but:
                return left.pop(index)
        fitting = [good for good in GOODS[world.language] if category in (None, good[0]) and good[0] != but]
        chosen, names = world.rng.choice(fitting or GOODS[world.language])
        return category or chosen, world.fresh(lambda: f"{world.rng.choice(names)} {world.rng.randrange(200, 900)}")

    def supplier(
        self, firm: Firm | str, *, status: SupplierStatus = "active", category: str = "", lead_days: int = 7, **fields: Any
    ) -> Supplier:
        """Adds a supplier and returns it. `fields` are others of `Supplier`, such as aliases, phone, bank_account and terms."""
        world = self.world
        name = firm if isinstance(firm, str) else firm.name
        fields.setdefault("email", "" if isinstance(firm, str) else f"orders@{firm.domain}")
        row = Supplier(
            id=world.new_id("supplier"),
            name=name,
            category=category or world.rng.choice(GOODS[world.language])[0],
            status=status,
            lead_days=lead_days,
            **fields,
        )
        world.workspace.put("supplier", row)
        return row

    def product(
        self,
        name: str | None = None,
        *,
        category: str | None = None,
        quantity: int | None = None,
        safety_stock: int | None = None,
        unit_cost: float | None = None,
        supplier: Supplier | None = None,
        last_sync: calendar_date | None = None,
        **fields: Any,
    ) -> Product:
        """Adds a product and returns it; what is not given is drawn.

        `fields` are other fields of `Product`, such as offers, movements and status.
        """
        world, rng = self.world, self.world.rng
        drawn_category, drawn_name = (category or "", name) if name is not None and category is not None else self.good(category)
        safe = rng.randrange(10, 90) if safety_stock is None else safety_stock
        fields.setdefault("sku", f"{rng.choice('ABCDEFGHKLMN')}{rng.choice('PQRSTVWXZ')}-{rng.randrange(100_000, 999_999)}")
        row = Product(
            id=fields.pop("id", None) or world.new_id("product"),
            name=name or drawn_name,
            category=category or drawn_category,
            quantity=safe + rng.randrange(5, 200) if quantity is None else quantity,
            safety_stock=safe,
            unit_cost=rng.randrange(200, 24_000) / 100 if unit_cost is None else round(unit_cost, 2),
            supplier=supplier.id if supplier is not None else "",
            last_sync=f"{(last_sync or world.today).isoformat()} 06:00",
            **fields,
        )
        world.workspace.put("product", row)
        return row

    def noise(self, count: int, *, but: str | None = None) -> list[Product]:
        """Adds products that have nothing to do with the task, all well in stock, and none of the category `but`."""
        return [self.product(name, category=category) for category, name in (self.good(but=but) for _ in range(count))]


GOODS = {
    "en": (
        ("Lighting", ("Desk lamp Orla", "Floor lamp Tarn", "Ceiling light Mica", "LED strip Vero", "Torch Pike")),
        ("Furniture", ("Office chair Brent", "Side table Holm", "Bookshelf Aster", "Footrest Lune", "Coat stand Rook")),
        ("Kitchen", ("Kettle Sorrel", "Mug set Fenn", "Chopping board Yew", "Thermos Gale", "Toaster Pell")),
        ("Garden", ("Hose Willow", "Pruning shears Thorn", "Watering can Brook", "Planter Moss", "Lantern Ember")),
        ("Electronics", ("Headset Quill", "Keyboard Slate", "Webcam Iris", "Charger Volt", "Speaker Drum")),
        ("Packaging", ("Carton box medium", "Bubble wrap roll", "Packing tape clear", "Mailing bag large", "Label roll")),
    ),
    "zh": (
        ("灯具", ("台灯晨曦", "落地灯远山", "吸顶灯云母", "灯带流光", "手电筒锐芒")),
        ("家具", ("办公椅稳坐", "边几圆融", "书架长卷", "脚凳轻踏", "衣帽架松枝")),
        ("厨具", ("电水壶清泉", "马克杯四季", "砧板楠竹", "保温瓶暖阳", "烤面包机麦香")),
        ("园艺", ("水管青藤", "修枝剪利叶", "洒水壶细雨", "花盆陶然", "提灯萤火")),
        ("电子", ("耳机听涛", "键盘落子", "摄像头明眸", "充电器疾电", "音箱空谷")),
        ("包装", ("中号纸箱", "气泡膜卷", "透明胶带", "大号快递袋", "标签卷")),
    ),
}
FLAT = {language: [(category, name) for category, names in goods for name in names] for language, goods in GOODS.items()}
"""The same as pairs of category and name."""

APP = App(
    "inventory",
    (
        list_products,
        search_products,
        get_product,
        adjust_stock,
        update_product,
        create_purchase_order,
        list_suppliers,
        get_supplier,
    ),
    InventorySeeder,
)
