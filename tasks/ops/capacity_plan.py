"""Work out when storage pools run full at their trend, and order shelves for those that the planning rules name.

Measurements were corrected, a move may shift the date, shelves may be on the way or cancelled, a pool is being closed, and two
pools lie exactly at the limit and one week beyond. Which supplier gets the order turns on the weeks left and on whole packs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Added, Reported, ReportedMap, every, gated, mostly
from ec2_env.task import SKIP, Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.apps.inventory import Offer
from ec2_env.workspace.books import Line
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please check how long the storage pools in {site} last and order the shelves that our planning rules ask for.",
        "Do this week's capacity planning for {site}: the rules are in the database, shelves are ordered in the inventory.",
        "Which pools in {site} run full too early? Order what the planning rules in the database say, and nothing else.",
        "Make sure no storage pool in {site} runs full before new shelves arrive. Go by the planning rules in the database.",
        "It is time for the capacity review of {site}. Apply the planning rules in the database and place the orders.",
        "Plan the storage of {site} by the rules in the database and order the shelves that are due.",
    ),
}
RULES = (
    "A correction of a weekly measurement replaces it.",
    "Used now: the newest measurement, plus the planned moves of the pool that are approved (minus for those that leave).",
    "Trend per week: the newest measurement minus the one {span} weeks before it, divided by {span}. Moves are no part of it.",
    "Capacity: that of the pool, and of its shelves on the way unless they were cancelled. A pool is full at {share}% of it.",
    "Weeks left: what is free until the pool is full, divided by the trend, rounded down to whole weeks.",
    "A pool is due if the weeks left are at most {margin} more than the lead time of its shelf's quickest active supplier.",
    "No shelves are ordered for pools that are closing or whose trend is not above 0.",
    "Order as few shelves as keep the pool from being over full after {cover} weeks, raised to the offer's minimum and pack.",
    "Of the active suppliers whose lead time is at most the weeks left, take the one with the lowest total; if there is none, "
    "the quickest. One order for each pool that is due. Pieces in stock are spare parts and do not count.",
)
POOLS = ("atlas", "boreas", "castor", "dione", "europa", "fornax", "galena", "hydra", "iapetus", "janus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What is known of one pool; sizes in TB, the trend in TB per week."""

    newest: int
    moves: int
    trend: int
    capacity: int
    shelf: int

    def weeks(self, share: int) -> int:
        """Returns the whole weeks until the pool is full, which is at `share` percent of its capacity."""
        return (self.capacity * share - 100 * (self.newest + self.moves)) // (100 * self.trend)

    def shelves(self, share: int, cover: int) -> int:
        """Returns how many shelves keep the pool from being more than full after `cover` weeks."""
        missing = 100 * (self.newest + self.moves + cover * self.trend) - self.capacity * share
        return -(-missing // (self.shelf * share))


class Purchase(NamedTuple):
    """What to order: of whom, how many pieces, and what they cost."""

    supplier: str
    pieces: int
    total: float


def choose(offers: Sequence[Offer], days: Mapping[str, int], weeks: int, wanted: int) -> Purchase:
    """Returns the cheapest purchase that arrives in time, or that of the quickest supplier; `days` has active suppliers only."""
    known = [offer for offer in offers if offer.supplier in days]
    in_time = [offer for offer in known if days[offer.supplier] <= 7 * weeks]
    plans = []
    for offer in in_time or [min(known, key=lambda offer: days[offer.supplier])]:
        pieces = -(-max(wanted, offer.minimum) // offer.pack) * offer.pack
        plans.append(Purchase(offer.supplier, pieces, round(pieces * offer.unit_price, 2)))
    return min(plans, key=lambda plan: plan.total)


def build(world: World) -> Plan:
    """Draws seven pools; variants: a move brings one forward; one relieves it, and shelves are cancelled; a correction counts."""
    rng, variant = world.rng, world.variant
    site = rng.choice(("Hall North", "Hall South", "Hall West"))
    share, span, margin, cover = rng.choice((75, 80, 85, 90)), rng.randrange(3, 6), rng.randrange(3, 6), rng.randrange(26, 40)
    quick = rng.randrange(2, 4)
    limit = quick + margin
    relieved, corrected = variant == 1, variant == 2
    cancelled = variant == 1 or (variant == 2 and rng.random() < 0.5)
    weeks = {
        "early": rng.choice((quick - 1, limit - 2)),
        "limit": limit,
        "beyond": limit - 1 if corrected else limit + 1,
        "moved": limit + 3 if relieved else limit - 1,
        "coming": limit - 1 if cancelled else limit + 2,
        "closing": rng.randrange(1, limit),
        "falling": rng.randrange(1, limit),
    }
    names = dict(zip(weeks, rng.sample(POOLS, len(weeks)), strict=True))
    pools = {role: _pool(world, share, count, small=role == "coming") for role, count in weeks.items()}
    move = pools["moved"].trend * (-7 if relieved else 5)
    pools["moved"] = replace(pools["moved"], newest=pools["moved"].newest - move, moves=move)

    stock = world.inventory
    leads = {"slow": limit + 2, "middle": limit - 1, "quick": quick}
    suppliers = {kind: stock.supplier(_supplier(world), category="Storage", lead_days=7 * lead) for kind, lead in leads.items()}
    suppliers["former"] = stock.supplier(_supplier(world), category="Storage", lead_days=7, status="suspended")
    products = {}
    for role in rng.sample(list(weeks), len(weeks)):
        base = rng.randrange(900, 2600)
        offers = []
        for kind, factor in (("former", 0.7), ("slow", 0.8), ("middle", 0.95), ("quick", 1.1)):
            pack = rng.randrange(2, 5) if kind == "middle" else 1
            offers.append(Offer(suppliers[kind].id, round(base * factor) + 0.5, pack * rng.randrange(1, 3), pack))
        products[role] = stock.product(
            f"Shelf {names[role].title()} {pools[role].shelf}",
            category="Storage",
            supplier=suppliers["slow"],
            offers=tuple(rng.sample(offers, len(offers))),
        )
    stock.noise(2, but="Storage")
    rules = (share, span, margin, cover)
    _tables(world, rules, names, pools, {role: product.sku for role, product in products.items()}, (cancelled, corrected))

    days = {suppliers[kind].id: 7 * lead for kind, lead in leads.items()}
    by_id = {supplier.id: supplier.name for supplier in suppliers.values()}
    orders, total, left = [], 0.0, {}
    for role in [role for role in weeks if role not in ("closing", "falling") and weeks[role] <= limit]:
        offered = {offer.supplier: offer for offer in products[role].offers}
        plan = choose(tuple(offered.values()), days, weeks[role], pools[role].shelves(share, cover))
        line = Line(products[role].id, products[role].name, plan.pieces, offered[plan.supplier].unit_price)
        orders.append(Added(table="order", fields={"kind": "purchase", "party": by_id[plan.supplier], "lines": (line,)}))
        total += plan.total
        left[names[role]] = weeks[role]
    placed = every(*orders)
    return Plan(
        instruction=world.phrase(PHRASINGS, site=site),
        report=(
            Slot("weeks_left", "mapping from each pool that is due to the weeks left, whole numbers"),
            Slot("total", "total of all orders that you placed, a number"),
        ),
        checks=(
            Check("ordered", 0.7, placed),
            Check("reports_weeks", 0.2, gated(ReportedMap("weeks_left", left), mostly(placed))),
            Check("reports_total", 0.1, gated(Reported("total", round(total, 2)), mostly(placed))),
        ),
        solve=solve,
    )


def _supplier(world: World) -> str:
    return f"{world.firm().name.split()[0]} Storage"


def _pool(world: World, share: int, weeks: int, *, small: bool) -> Pool:
    """Returns a pool that has so many weeks left; with small shelves, so that those on the way do not last for long."""
    rng = world.rng
    trend = rng.randrange(6, 13)
    capacity = 20 * rng.randrange(20, 60)
    used = capacity * share // 100 - trend * weeks - rng.randrange(trend)
    return Pool(newest=used, moves=0, trend=trend, capacity=capacity, shelf=24 if small else rng.choice((36, 48, 60, 96)))


def _tables(
    world: World,
    rules: tuple[int, int, int, int],
    names: Mapping[str, str],
    pools: Mapping[str, Pool],
    skus: Mapping[str, str],
    facts: tuple[bool, bool],
) -> None:
    """Declares the tables: rules, pools, measurements and their corrections, planned moves, shelves on the way."""
    rng, sql = world.rng, world.sql
    (share, span, margin, cover), (cancelled, corrected) = rules, facts
    texts = [rule.format(share=share, span=span, margin=margin, cover=cover) for rule in RULES]
    sql.table("planning_rules", {"number": "INTEGER", "rule": "TEXT"}, list(enumerate(texts, 1)))
    coming = pools["coming"]
    pieces = -(-3 * coming.trend * 100 // (coming.shelf * share))
    rows: list[tuple[str | int, ...]] = []
    weekly: list[tuple[str | int, ...]] = []
    fixes = []
    for role in rng.sample(list(pools), len(pools)):
        pool, name = pools[role], names[role]
        capacity = pool.capacity - (pieces * pool.shelf if role == "coming" and not cancelled else 0)
        rows.append((name, capacity, skus[role], pool.shelf, "closing" if role == "closing" else "open"))
        trend = -pool.trend if role == "falling" else pool.trend
        wrong = {"falling": 2 * span * pool.trend, "beyond": -2 * pool.trend if corrected else 0}.get(role, 0)
        for back in range(span + 2, -1, -1):
            shaken = rng.randrange(1 - pool.trend, pool.trend) if back not in (0, span) else 0
            value = pool.newest - back * trend + shaken
            if wrong and not back:
                fixes.append((name, f"{world.day(-1)}", value))
            weekly.append((name, f"{world.day(-1 - 7 * back)}", value + (0 if back else wrong)))
    sizes = {"pool": "TEXT", "capacity_tb": "INTEGER", "shelf_sku": "TEXT", "shelf_tb": "INTEGER", "status": "TEXT"}
    sql.table("pools", sizes, rows, description="Storage pools")
    measured = {"pool": "TEXT", "measured": "TEXT", "used_tb": "INTEGER"}
    sql.table("usage_weekly", measured, weekly, description="Used space, measured once a week")
    sql.table("usage_corrections", measured, fixes, description="Corrected measurements")
    moves = [
        (names["moved"], pools["moved"].moves, "approved"),
        (names["limit"], -4 * pools["limit"].trend, "proposed"),
        (names["early"], rng.randrange(2, 9), "rejected"),
    ]
    sql.table("planned_moves", {"pool": "TEXT", "tb": "INTEGER", "status": "TEXT"}, rng.sample(moves, len(moves)))
    way = [(names["coming"], pieces, "cancelled" if cancelled else "shipped"), (names["early"], 2, "cancelled")]
    sql.table("shelves_on_the_way", {"pool": "TEXT", "shelves": "INTEGER", "status": "TEXT"}, rng.sample(way, len(way)))


MEASURED = (
    "SELECT u.pool, u.measured, COALESCE(c.used_tb, u.used_tb) AS used_tb FROM usage_weekly u "
    "LEFT JOIN usage_corrections c ON c.pool = u.pool AND c.measured = u.measured ORDER BY u.pool, u.measured"
)


def solve() -> Steps:
    """Reads the rules and the tables, computes weeks left, compares offers, and orders for each pool that is due."""
    yield Step(action=ToolCall("list_tables", {}), skill="planning")
    rules = str((yield Step(action=select("SELECT rule FROM planning_rules ORDER BY number"), skill="exploration"))["rows"])
    share, span = int(re.findall(r"full at (\d+)%", rules)[0]), int(re.findall(r"one (\d+) weeks before", rules)[0])
    margin, cover = int(re.findall(r"at most (\d+) more", rules)[0]), int(re.findall(r"after (\d+) weeks", rules)[0])
    rows = (yield Step(action=select("SELECT * FROM pools"), skill="exploration"))["rows"]
    plain = select("SELECT pool, measured, used_tb FROM usage_weekly ORDER BY pool, measured")
    measured = yield Step(action=select(MEASURED), skill="consistency", difficulty=0.4, slips=((plain,),))
    moves = yield Step(
        action=select("SELECT pool, SUM(tb) FROM planned_moves WHERE status = 'approved' GROUP BY pool"),
        skill="policy",
        slips=((select("SELECT pool, SUM(tb) FROM planned_moves GROUP BY pool"),),),
    )
    way = yield Step(
        action=select("SELECT pool, SUM(shelves) FROM shelves_on_the_way WHERE status <> 'cancelled' GROUP BY pool"),
        skill="policy",
        slips=((select("SELECT pool, SUM(shelves) FROM shelves_on_the_way GROUP BY pool"),),),
    )
    listed = yield Step(action=ToolCall("list_suppliers", {"status": "active"}), skill="exploration")
    days = {}
    for row in [row for row in listed["suppliers"] if row["category"] == "Storage"]:
        supplier = yield Step(action=ToolCall("get_supplier", {"supplier_id": row["id"]}), skill="exploration")
        days[row["id"]] = int(supplier["lead_days"])
    found = yield Step(action=ToolCall("list_products", {"category": "Storage"}), skill="exploration")
    ids = {product["sku"]: product["id"] for product in found["products"]}
    left: dict[str, int] = {}
    total = 0.0
    spared: list[ToolCall] = []
    plans: list[tuple[str, str, Purchase, list[Purchase]]] = []
    for name, capacity, sku, shelf, status in rows:
        used = [int(value) for pool, _, value in measured["rows"] if pool == name]
        trend = (used[-1] - used[-1 - span]) // span
        if status == "closing" or trend <= 0:
            continue
        more = int(dict(way["rows"]).get(name, 0)) * shelf
        pool = Pool(
            newest=used[-1], moves=int(dict(moves["rows"]).get(name, 0)), trend=trend, capacity=capacity + more, shelf=shelf
        )
        product = yield Step(action=ToolCall("get_product", {"product_id": ids[sku]}), skill="exploration")
        offers = [Offer(**offer) for offer in product["offers"]]
        weeks, wanted = pool.weeks(share), pool.shelves(share, cover)
        plan = choose(offers, days, weeks, wanted)
        others = [choose(offers, days, 99, wanted), choose(offers, days, weeks, pool.shelves(share, cover - weeks))]
        if 7 * weeks > min(days[offer.supplier] for offer in offers if offer.supplier in days) + 7 * margin:
            spared.append(order(product["id"], plan))
            continue
        left[name] = weeks
        total += plan.total
        plans.append((name, product["id"], plan, others))
    for index, (_, product_id, plan, others) in enumerate(plans):
        call = order(product_id, plan)
        slips: list[tuple[ToolCall, ...]] = [(order(product_id, other),) for other in others if other != plan]
        slips += [(call, spared[index])] if index < len(spared) else []
        yield Step(action=call, skill="calculation", difficulty=0.7, slips=(*slips, SKIP))
    data = {"weeks_left": left, "total": round(total, 2)}
    slip = Finish(answer="", data={**data, "weeks_left": {name: weeks + 1 for name, weeks in left.items()}})
    yield Step(action=Finish(answer=", ".join(left), data=data), skill="synthesis", slips=((slip,),))


def order(product_id: str, plan: Purchase) -> ToolCall:
    return ToolCall("create_purchase_order", {"supplier_id": plan.supplier, "product_id": product_id, "quantity": plan.pieces})


def select(query: str) -> ToolCall:
    return ToolCall("query_sql", {"query": query})


TASK: Task = Task(
    title="Order storage before pools run full",
    category="operations",
    domain="ops",
    apps=("sql", "inventory"),
    languages=("en",),
    patterns=("rules stored as data", "near miss at a limit", "superseded sources", "join under different keys", "distractors"),
    build=build,
    variants=3,
    annotated=False,
)
