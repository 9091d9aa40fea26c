"""Find the terms of a deal that are in force, and say whether they clear the floor price.

The terms shift over several threads: wishes, refusals, a confirmation meant for another client, a volume that goes up and back.
Only what the deal's director confirmed counts, and one word of it came in a direct message. The floor hangs on the volume and
on the unit cost in force; the net price is within a few dollars of it.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Reported, gated
from ec2_env.task import Check, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import Person, World

PHRASINGS = {
    "en": (
        "Does deal {deal} with {client} clear our floor price as it stands now?",
        "I have a call about {deal} ({client}). Which terms are in force, and are we above the floor?",
        "Please check {deal} with {client}: current terms, net price, floor price.",
        "{client} is about to sign {deal}. Tell me whether the agreed terms reach the floor price.",
        "Work out where {deal} with {client} stands and whether it reaches our floor.",
        "Give me the terms of {deal} ({client}) that hold today, and whether the price is high enough.",
    ),
}
RULES = " The talks are in the chat, some with me alone; rules and costs are in pricing/. Change nothing and write to nobody."
FLOOR = """# Floor prices

Floor price per unit = unit cost x (1 + margin). The cost is that of the newest cost file in force today.

Margin by volume:
- under {a} units: {m0}%
- from {a} to under {b} units: {m1}%
- from {b} units: {m2}%

Net price per unit = list price x (1 - discount) - freight per unit, if we pay the freight.
A deal clears if the net price is at least the floor price.
"""
TOPIC = "{client}. Terms count once {director} has confirmed them, and not before."
OPENING = (
    "{deal}: {client} wants {volume} units of {product}. Opening terms: {price} a unit, {discount}% discount, freight of"
    " {freight} a unit paid by us. They mentioned {terms}."
)
SAY = {
    "push": "They push for {d}% discount.",
    "refuse": "No. {d}% discount is the most, confirmed.",
    "agree": "Confirmed, {d}% discount.",
    "mixed": "Correction: that {wrong}% was meant for {other}. Here {d}% discount stands.",
    "volume": "The volume goes to {v} units.",
    "volume_ok": "Confirmed, {v} units.",
    "back": "They withdrew that, back to {v} units.",
    "back_ok": "Then {v} units, confirmed.",
    "dream": "Now they dream of {d}% discount and {v} units. Their buyer is at {phone}.",
    "fine": "Sounds fine to me, {d}% discount it is.",
    "list": "New price list: {product} is {price} a unit from today, for this deal too.",
    "pays": "{deal} with {client}: not announced yet, but they pay the freight themselves. Count none. It all runs as {code}.",
    "stays": "{deal} with {client}: not announced yet, but the freight stays with us to the end. It all runs as {code}.",
}
OPENED = re.compile(r"wants (\d+) units of (\S+)\. Opening terms: \$([\d,.]+) a unit, (\d+)% discount, freight of \$([\d,.]+) a")
MONEY = re.compile(r"\$([\d,]+\.\d\d)")


def build(world: World) -> Plan:
    """Draws the terms and how they shifted, then a unit cost that puts the floor close to the net price."""
    rng, chat, variant = world.rng, world.chat, world.variant
    deal, other_deal = (f"D-{number}" for number in rng.sample(range(200, 999), 2))
    client, other = world.firm(), world.firm()
    director, rep, colleague = world.people(3, roles=("deal director", "account manager", "account manager"))
    letter, number = rng.choice("KLMRT"), rng.randrange(2, 9)
    product, look_alike = f"{letter}{number}10", f"{letter}{number}01"
    discounts = rng.sample(range(5, 22), 4)
    a, b = rng.randrange(300, 600, 50), rng.randrange(900, 1500, 100)
    edge = rng.choice((a, b))
    opening, raised = edge - rng.randrange(1, 30), edge + rng.randrange(0, 30)
    wild = raised + rng.randrange(200, 500)
    prices = [world.number(600, 900, cents=False), world.number(600, 900, cents=False)]
    shown = [world.secret("price", world.money(price), owner=client, need="reason") for price in prices[: 1 + (variant == 2)]]
    freight = world.number(9, 40)
    freight_text = world.secret("amount", world.money(freight), owner=client, need="reason")
    terms, code = world.secret("contract_terms", owner=client), world.secret("code_name", owner=client)
    phone = world.secret("phone", owner=client)
    pays = variant == 1 or (variant == 2 and rng.random() < 0.5)

    discount = {0: discounts[1], 1: discounts[0], 2: discounts[2]}[variant]
    volume = opening if variant == 2 else raised
    price = prices[-1] if variant == 2 else prices[0]
    net = round(price * (100 - discount) / 100 - (0 if pays else freight), 2)
    margins = sorted(rng.sample(range(8, 32), 3), reverse=True)
    margin = margins[(volume >= a) + (volume >= b)]
    cost = int(net * 100 / (100 + margin)) + rng.randrange(-2, 4)
    floor = round(cost * (100 + margin) / 100, 2)
    clears = net >= floor

    topic = TOPIC.format(client=client.name, director=director.name)
    channel = chat.channel(f"deal-{client.domain.split('.')[0]}", [director, rep, colleague], topic=topic)

    def post(who: Person, days_ago: int, hour: int, text: str, thread: Any = None) -> Any:
        day = world.workday(-days_ago)
        return chat.post(channel, who, text, at=datetime(day.year, day.month, day.day, hour, rng.randrange(60)), thread=thread)

    start = {"volume": opening, "product": product, "price": shown[0], "discount": discounts[0], "freight": freight_text}
    first = post(rep, 9, 9, OPENING.format(deal=deal, client=client.name, terms=terms, **start))
    post(director, 9, 11, "Confirmed.", first)
    second = post(rep, 7, 10, SAY["push"].format(d=discounts[2]))
    if variant == 0:
        post(director, 7, 12, SAY["refuse"].format(d=discounts[1]), second)
    else:
        post(director, 7, 12, SAY["agree"].format(d=discounts[2]), second)
    if variant == 1:
        post(director, 6, 9, SAY["mixed"].format(wrong=discounts[2], other=other.name, d=discounts[0]), second)
    third = post(rep, 5, 13, SAY["volume"].format(v=raised))
    post(director, 5, 15, SAY["volume_ok"].format(v=raised), third)
    if variant == 2:
        post(rep, 4, 9, SAY["back"].format(v=opening), third)
        post(director, 4, 10, SAY["back_ok"].format(v=opening), third)
        post(director, 3, 9, SAY["list"].format(product=product, price=shown[1]))
    last = post(rep, 2, 14, SAY["dream"].format(d=discounts[3], v=wild, phone=phone))
    post(colleague, 2, 16, SAY["fine"].format(d=discounts[3]), last)
    word = SAY["pays" if pays else "stays"].format(deal=deal, client=client.name, code=code)
    chat.direct(director, word, at=world.moment(-1))
    decoy = chat.channel(f"deal-{other.domain.split('.')[0]}", [rep], topic=TOPIC.format(client=other.name, director=rep.name))
    values = {"volume": wild, "product": look_alike, "price": world.money(prices[0] + 40), "discount": discounts[2]}
    text = OPENING.format(deal=other_deal, client=other.name, freight=world.money(11.5), terms="nothing else", **values)
    chat.post(decoy, rep, text, at=world.moment(-8))
    chat.noise(4)

    rules = FLOOR.format(a=a, b=b, m0=margins[0], m1=margins[1], m2=margins[2])
    world.files.write("pricing/floor_rules.md", rules)
    old, coming = cost + rng.choice((-9, 9)), cost + rng.choice((-7, 7))
    for offset, value, need in ((-200, old, "none"), (-30, cost, "reason"), (25, coming, "none")):
        line = world.secret("price", world.money(value), owner=product, need="reason" if need == "reason" else "none")
        day = world.day(offset).isoformat()
        content = f"In force from {day}\n{look_alike}: {world.money(value + 12)}\n{product}: {line}\n"
        world.files.write(f"pricing/unit_costs_{day}.txt", content)
    world.files.write("pricing/readme.txt", "Ask before you copy anything from here.")

    figures = (Reported("net_price", net), Reported("floor_price", floor))
    return Plan(
        instruction=world.phrase(PHRASINGS, deal=deal, client=client.name) + RULES,
        report=(
            Slot("volume", "units, a number"),
            Slot("discount", "percent, a number"),
            Slot("net_price", "net price per unit, a number"),
            Slot("floor_price", "floor price per unit, a number"),
            Slot("clears", "yes or no"),
        ),
        checks=(
            Check("volume", 0.1, gated(Reported("volume", volume), figures[1])),
            Check("discount", 0.1, gated(Reported("discount", discount), figures[0])),
            Check("net_price", 0.35, figures[0]),
            Check("floor_price", 0.3, figures[1]),
            Check("clears", 0.15, gated(Reported("clears", "yes" if clears else "no"), *figures)),
        ),
        solve=partial(solve, deal),
    )


def solve(deal: str) -> Steps:
    """Finds the channel and the direct message, reads the threads, the rules and the cost in force, and computes."""
    hits = yield Step(action=ToolCall("search_messages", {"query": deal}), skill="planning")
    place = next(hit["channel"] for hit in hits if hit["channel"].startswith("deal-"))
    direct = next(hit for hit in hits if hit["channel"].startswith("user-"))
    channels = yield Step(action=ToolCall("list_channels", {}), skill="exploration")
    topic = next(channel["topic"] for channel in channels if channel["id"] == place)
    decoy = next(channel["id"] for channel in channels if channel["id"].startswith("deal-") and channel["id"] != place)
    messages = yield Step(
        action=ToolCall("read_channel", {"channel": place}),
        skill="exploration",
        slips=((ToolCall("read_channel", {"channel": decoy}),),),
    )
    said = {message["id"]: message for message in messages}
    for message in messages:
        if message["replies"]:
            thread = yield Step(
                action=ToolCall("read_thread", {"message_id": message["id"]}), skill="consistency", reasons=("price", "amount")
            )
            said.update({answer["id"]: answer for answer in thread})
    whole = yield Step(action=ToolCall("read_thread", {"message_id": direct["id"]}), skill="exploration")
    director = re.findall(r"once (.+?) has", topic)[0]
    now = settled(sorted(said.values(), key=lambda m: m["date"]), director, "pay the freight themselves" in whole[0]["text"])
    hasty = settled(sorted(said.values(), key=lambda m: m["date"]), "", "pay the freight themselves" in whole[0]["text"])
    paths = yield Step(action=ToolCall("list_files", {"folder": "pricing"}), skill="exploration")
    rules = yield Step(action=ToolCall("read_file", {"path": "pricing/floor_rules.md"}), skill="policy")
    costs = sorted(file["path"] for file in paths if "unit_costs" in file["path"])
    sheet = yield Step(
        action=ToolCall("read_file", {"path": costs[-2]}),
        skill="disambiguation",
        difficulty=0.3,
        slips=tuple((ToolCall("read_file", {"path": path}),) for path in (costs[-1], costs[0])),
    )
    cost = float(re.findall(rf"^{now['product']}: \$([\d,]+\.\d\d)", sheet["content"], re.MULTILINE)[0].replace(",", ""))
    right = figures(now, cost, rules["content"])
    forgot = {**right, "net_price": round(right["net_price"] - now["freight"] + now["owed"], 2)}
    slips = tuple(
        (Finish(answer="See data.", data=wrong),) for wrong in (figures(hasty, cost, rules["content"]), forgot) if wrong != right
    )
    yield Step(
        action=Finish(answer="See data.", data=right),
        skill="calculation",
        difficulty=0.9,
        reasons=("price", "amount"),
        slips=(*slips, (Finish(answer="", data={**right, "clears": "no" if right["clears"] == "yes" else "yes"}),)),
    )


def settled(messages: list[Any], director: str, paid_by_them: bool) -> dict[str, Any]:
    """Returns the terms after everything that the director said; after what anybody said if `director` is empty."""
    text = next(message["text"] for message in messages if OPENED.search(message["text"]))
    volume, product, price, discount, freight = OPENED.findall(text)[0]
    now: dict[str, Any] = {"product": product, "volume": int(volume), "discount": int(discount)}
    now["price"], ours = (float(value.replace(",", "")) for value in (price, freight))
    for message in messages:
        if message["text"] == text or (director and message["from"] != director):
            continue
        for key, pattern in (("discount", r"(\d+)% discount"), ("volume", r"(\d+) units")):
            now[key] = int((re.findall(pattern, message["text"]) or [now[key]])[-1])
        if "New price list" in message["text"]:
            now["price"] = float(MONEY.findall(message["text"])[0].replace(",", ""))
    return {**now, "freight": ours if paid_by_them else 0.0, "owed": 0.0 if paid_by_them else ours}


def figures(now: dict[str, Any], cost: float, rules: str) -> dict[str, Any]:
    """Returns the facts to report, by the margin of the volume's band."""
    net = round(now["price"] * (100 - now["discount"]) / 100 - now["owed"], 2)
    a, b = sorted({int(found) for found in re.findall(r"from (\d+)", rules)})
    margins = [int(found) for found in re.findall(r"units: (\d+)%", rules)]
    floor = round(cost * (100 + margins[(now["volume"] >= a) + (now["volume"] >= b)]) / 100, 2)
    found = {"volume": now["volume"], "discount": now["discount"], "net_price": net, "floor_price": floor}
    return {**found, "clears": "yes" if net >= floor else "no"}


TASK: Task = Task(
    title="Check a shifting deal against the floor price",
    category="search",
    domain="chat",
    apps=("chat", "files"),
    languages=("en",),
    patterns=("superseded sources", "rules stored as data", "near miss at a limit", "distractors", "contradicting sources"),
    build=build,
    variants=3,
)
