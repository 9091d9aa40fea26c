"""Work out when storage pools run full at their trend, and order shelves for those that the planning rules name.

Measurements were corrected, a move may shift the date, shelves may be on the way or cancelled, a pool is being closed, and two
pools lie exactly at the limit and one week beyond. Which suppliers may be used turns on the weeks left; the cheapest way to
cover a need mixes their packs against a charge for each order. What keeps the rules earns the lowest cost as a share of its own,
what breaks one of them earns nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, ReportedMap, gated, mostly
from ec2_env.task import SKIP, Check, Forbidden, Grading, Plan, Slip, Slot, Step, Steps, Task
from ec2_env.workspace.apps.inventory import Offer
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
    "A pool that is due gets at least the shelves that keep it from being over full after {cover} weeks; more only cost more.",
    "They come from active suppliers whose lead time is at most the weeks left, all from one or some from each; if no lead time "
    "is that short, all from the quickest. Pieces in stock are spare parts and do not count.",
    "Each order costs {fee} of handling on top. The less all orders cost in the end, handling included, the better.",
)
DRAWS = 40
"""Times that terms are drawn until orders from two suppliers are the cheapest way for the pool at the limit."""
SHELVES = {"coming": (24,), "limit": (36,)}
"""Sizes in TB of the shelves of pools that have to need many of them."""
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
    """One order: of whom, how many pieces, and what they cost without handling."""

    supplier: str
    pieces: int
    total: float


class Need(NamedTuple):
    """What a pool that is due needs: pieces, the names of the suppliers that may deliver them, and the lowest cost."""

    wanted: int
    parties: frozenset[str]
    lowest: float


def usable(offers: Sequence[Offer], days: Mapping[str, int], weeks: int) -> list[Offer]:
    """Returns the offers that may be used: those that arrive in time, or the quickest; `days` has active suppliers only."""
    known = [offer for offer in offers if offer.supplier in days]
    return [o for o in known if days[o.supplier] <= 7 * weeks] or [min(known, key=lambda offer: days[offer.supplier])]


def quantity(offer: Offer, wanted: int) -> int:
    """Returns the smallest quantity that an offer allows and that is enough."""
    return -(-max(wanted, offer.minimum) // offer.pack) * offer.pack


def ways(offers: Sequence[Offer], wanted: int, fee: float) -> list[tuple[float, tuple[int, ...]]]:
    """Returns what the ways to cover a need cost with handling, and the pieces of each offer in them, cheapest first."""
    *others, last = offers
    found: list[tuple[float, int, tuple[int, ...]]] = [(0.0, wanted, ())]
    for offer in others:
        price, sizes = offer.unit_price, range(quantity(offer, 1), quantity(offer, wanted) + 1, offer.pack)
        more = [(c + n * price + fee, rest - n, (*pieces, n)) for c, rest, pieces in found if rest > 0 for n in sizes]
        found = [(c, rest, (*pieces, 0)) for c, rest, pieces in found] + more
    filled = [(c, quantity(last, rest) if rest > 0 else 0, pieces) for c, rest, pieces in found]
    return sorted((c + n * last.unit_price + fee * (n > 0), (*pieces, n)) for c, n, pieces in filled)


def cheapest(offers: Sequence[Offer], wanted: int, fee: float) -> tuple[float, list[Purchase]]:
    """Returns what the cheapest way to cover a need costs with handling, and its orders."""
    cost, pieces = ways(offers, wanted, fee)[0]
    return round(cost, 2), [Purchase(o.supplier, n, round(n * o.unit_price, 2)) for o, n in zip(offers, pieces, strict=True) if n]


@dataclass(frozen=True, slots=True)
class Score:
    """Earns, for each pool that is due, the lowest cost of its need as a share of what the orders for it cost."""

    needs: Mapping[str, Need]
    fee: float

    def bought(self, state: Grading) -> Iterator[tuple[str, int, float, set[str]]]:
        """Yields each product that was ordered, with the pieces, their cost with handling, and the suppliers."""
        orders = [c.after for c in state.changes if c.table == "order" and c.kind == "added"]
        for key in dict.fromkeys(order.lines[0].product for order in orders):
            own = [order for order in orders if order.lines[0].product == key]
            pieces, total = sum(order.lines[0].quantity for order in own), sum(order.total for order in own)
            yield key, pieces, total + self.fee * len(own), {order.party for order in own}

    def __call__(self, state: Grading) -> float:
        state.claimed |= {i for i, c in enumerate(state.changes) if c.table == "order" and c.kind == "added"}
        shares = [self.needs[key].lowest / cost for key, _, cost, _ in self.bought(state) if key in self.needs]
        return sum(shares) / len(self.needs)

    def broken(self, state: Grading) -> bool:
        """Says whether something was ordered that is not due, not enough, or from a supplier that may not be used."""
        return any(
            key not in self.needs or pieces < self.needs[key].wanted or not parties <= self.needs[key].parties
            for key, pieces, _, parties in self.bought(state)
        )

    def reported(self, state: Grading) -> float:
        """Earns the same share if the cost of what was ordered was reported right."""
        total = round(sum(cost for _, _, cost, _ in self.bought(state)), 2)
        return self(state) * Reported("total", total)(state)


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
    pools = {role: _pool(world, share, count, SHELVES.get(role, (48, 60, 96))) for role, count in weeks.items()}
    move = pools["moved"].trend * (-7 if relieved else 5)
    pools["moved"] = replace(pools["moved"], newest=pools["moved"].newest - move, moves=move)

    stock = world.inventory
    leads = {"slow": limit + 2, "middle": limit - 1, "steady": quick + 1, "quick": quick}
    suppliers = {kind: stock.supplier(_supplier(world), category="Storage", lead_days=7 * lead) for kind, lead in leads.items()}
    suppliers["former"] = stock.supplier(_supplier(world), category="Storage", lead_days=7, status="suspended")
    days = {suppliers[kind].id: 7 * lead for kind, lead in leads.items()}
    for _ in range(DRAWS):
        terms, fee = _terms(world, [supplier.id for supplier in suppliers.values()]), rng.randrange(300, 1000) + 0.5
        mixed = _offers(world, terms)
        if _mixed(usable(mixed, days, limit), pools["limit"].shelves(share, cover), fee):
            break
    products = {}
    for role in rng.sample(list(weeks), len(weeks)):
        products[role] = stock.product(
            f"Shelf {names[role].title()} {pools[role].shelf}",
            category="Storage",
            supplier=suppliers["slow"],
            offers=mixed if role == "limit" else _offers(world, terms),
        )
    stock.noise(1, but="Storage")
    rules: dict[str, int | str] = {"share": share, "span": span, "margin": margin, "cover": cover, "fee": f"{fee:.2f}"}
    _tables(world, rules, names, pools, {role: product.sku for role, product in products.items()}, (cancelled, corrected))

    by_id = {supplier.id: supplier.name for supplier in suppliers.values()}
    needs, left = {}, {}
    for role in [role for role in weeks if role not in ("closing", "falling") and weeks[role] <= limit]:
        offered, wanted = usable(products[role].offers, days, weeks[role]), pools[role].shelves(share, cover)
        lowest = round(ways(offered, wanted, fee)[0][0], 2)
        needs[products[role].id] = Need(wanted, frozenset(by_id[offer.supplier] for offer in offered), lowest)
        left[names[role]] = weeks[role]
    score = Score(needs, fee)
    return Plan(
        instruction=world.phrase(PHRASINGS, site=site),
        report=(
            Slot("weeks_left", "mapping from each pool that is due to the weeks left, whole numbers"),
            Slot("total", "what all your orders cost, handling included, a number"),
        ),
        checks=(
            Check("ordered", 0.7, score),
            Check("reports_weeks", 0.15, gated(ReportedMap("weeks_left", left), mostly(score))),
            Check("reports_total", 0.15, score.reported),
        ),
        forbidden=(Forbidden("rules_broken", score.broken),),
        solve=solve,
    )


def _supplier(world: World) -> str:
    return f"{world.firm().name.split()[0]} Storage"


def _terms(world: World, suppliers: Sequence[str]) -> list[tuple[str, float, int]]:
    """Draws supplier, price as a share of the usual one, and pack, for suppliers given from the slowest to the quickest."""
    rng, (slow, middle, steady, quick, former) = world.rng, suppliers
    terms = [(slow, 0.75, 1), (middle, 0.85, rng.randrange(4, 7)), (steady, rng.uniform(0.92, 1.0), rng.randrange(2, 4))]
    terms += [(quick, rng.uniform(1.05, 1.25), 1), (former, 0.7, 1)]
    return rng.sample(terms, len(terms))


def _offers(world: World, terms: Sequence[tuple[str, float, int]]) -> tuple[Offer, ...]:
    """Draws the offers for a shelf."""
    rng, base = world.rng, world.rng.randrange(900, 2600)
    twice = rng.randrange(len(terms))
    return tuple(
        Offer(supplier, round(base * factor) + rng.randrange(1, 100) / 100, pack * (1 + (index == twice)), pack)
        for index, (supplier, factor, pack) in enumerate(terms)
    )


def _mixed(offers: Sequence[Offer], wanted: int, fee: float) -> bool:
    """Says whether no single one of the offers is the cheapest way to cover a need."""
    (best, pieces), (second, _) = ways(offers, wanted, fee)[:2]
    return sum(n > 0 for n in pieces) > 1 and best < second - 1


def _pool(world: World, share: int, weeks: int, shelves: Sequence[int]) -> Pool:
    """Returns a pool that has so many weeks left, with shelves of one of the sizes in TB."""
    rng = world.rng
    trend = rng.randrange(6, 13)
    capacity = 20 * rng.randrange(20, 60)
    used = capacity * share // 100 - trend * weeks - rng.randrange(trend)
    return Pool(newest=used, moves=0, trend=trend, capacity=capacity, shelf=rng.choice(shelves))


def _tables(
    world: World,
    rules: Mapping[str, int | str],
    names: Mapping[str, str],
    pools: Mapping[str, Pool],
    skus: Mapping[str, str],
    facts: tuple[bool, bool],
) -> None:
    """Declares the tables: rules, pools, measurements and their corrections, planned moves, shelves on the way."""
    rng, sql = world.rng, world.sql
    share, span, (cancelled, corrected) = int(rules["share"]), int(rules["span"]), facts
    texts = [rule.format(**rules) for rule in RULES]
    sql.table("planning_rules", {"number": "INTEGER", "rule": "TEXT"}, list(enumerate(texts, 1)))
    coming = pools["coming"]
    pieces = -(-3 * coming.trend * 100 // (coming.shelf * share))
    rows: list[tuple[str | int, ...]] = []
    weekly: list[tuple[str | int, ...]] = []
    fixes, dates = [], [f"{world.day(-1 - 7 * back)}" for back in range(span + 2)]
    for role in rng.sample(list(pools), len(pools)):
        pool, name = pools[role], names[role]
        capacity = pool.capacity - (pieces * pool.shelf if role == "coming" and not cancelled else 0)
        rows.append((name, capacity, skus[role], pool.shelf, "closing" if role == "closing" else "open"))
        trend = -pool.trend if role == "falling" else pool.trend
        wrong = {"falling": 2 * span * pool.trend, "beyond": -2 * pool.trend if corrected else 0}.get(role, 0)
        for back in range(span + 1, -1, -1):
            shaken = rng.randrange(1 - pool.trend, pool.trend) if back not in (0, span) else 0
            value = pool.newest - back * trend + shaken
            if wrong and not back:
                fixes.append((name, dates[0], value))
            weekly.append((name, dates[back], value + (0 if back else wrong)))
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
    fee = float(re.findall(r"costs ([\d.]+\d) of handling", rules)[0])
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
    plans: list[tuple[str, list[Purchase], list[Purchase]]] = []
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
        offered = usable(offers, days, weeks)
        cost, plan = cheapest(offered, wanted, fee)
        if 7 * weeks > min(days[offer.supplier] for offer in offers if offer.supplier in days) + 7 * margin:
            spared.append(order(product["id"], plan[0]))
            continue
        left[name] = weeks
        total += cost
        few = cheapest(offered, max(1, pool.shelves(share, cover - weeks)), fee)
        single = min(cheapest([offer], wanted, fee) for offer in offered)
        late = cheapest(usable(offers, days, 99), wanted, fee)
        plans.append((product["id"], plan, [orders[0] for _, orders in (single, late, few)]))
    for index, (product_id, plan, others) in enumerate(plans):
        for number, part in enumerate(plan):
            call = order(product_id, part)
            wrong = [other for other in others if number == 0 and other != part]
            slips: list[Slip] = [(order(product_id, other),) for other in dict.fromkeys(wrong)]
            slips += [(call, spared[index])] if index < len(spared) and not number else []
            yield Step(action=call, skill="calculation", difficulty=0.7, slips=(*slips, SKIP))
    data = {"weeks_left": left, "total": round(total, 2)}
    later = {**data, "weeks_left": {name: weeks + 1 for name, weeks in left.items()}}
    bare = {**data, "total": round(sum(part.total for _, plan, _ in plans for part in plan), 2)}
    wrongs = tuple((Finish(answer="", data=wrong),) for wrong in (bare, later))
    yield Step(action=Finish(answer=", ".join(left), data=data), skill="synthesis", slips=wrongs)


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
    patterns=(
        "optimum ratio",
        "rules stored as data",
        "near miss at a limit",
        "superseded sources",
        "join under different keys",
        "distractors",
    ),
    build=build,
    variants=3,
    annotated=False,
)
