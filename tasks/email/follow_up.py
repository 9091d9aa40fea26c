"""Follow up offers that nobody has answered.

One customer is due to the day and another one day short of it; one has answered, one must not be written to. Whether a reminder
is sent or only drafted depends on the customer's tier and on the total, and an outdated version of the rules says otherwise.
"""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Posted, ReportedMap, gated, let_out, mailed
from ec2_env.task import SKIP, Check, Forbidden, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import World

PHRASINGS = {
    "en": (
        "Please follow up our offers that customers have left unanswered for {since}.",
        "Some customers have not reacted to our offers for {since}. Remind them as our follow-up rules say.",
        "Go through the sent offers and chase customers silent for {since}; mind what is sent and what is drafted.",
        "Which offers have had no reply for {since}? Write the reminders under the policy for following up.",
        "Time to nudge: whoever has not replied to an offer for {since} gets a reminder, as the policies folder has it.",
        "Take care of reminders for offers that have been without an answer for {since}.",
    ),
    "zh": (
        "请跟进客户{since}没有答复的报价。",
        "有些客户{since}没有回应我们的报价，请按跟进制度提醒他们。",
        "查看已发出的报价，凡是{since}没有回音的客户都要催一下；注意哪些直接发、哪些只存草稿。",
        "哪些报价{since}没有得到回复？请按跟进制度写提醒邮件。",
        "该提醒客户了：{since}没有回复报价的客户，按 policies 文件夹里的规定写提醒。",
        "请处理那些{since}没有答复的报价的提醒邮件。",
    ),
}
SINCE = {
    "en": ("at least {n} days", "as many days as our rules set"),
    "zh": ("至少{n}天", "达到制度规定天数仍"),
}
POLICY = {
    "en": (
        "# Following up offers\n\n{note}- A customer is due when nobody of that company has written to us since our last "
        "mail to it, and that mail was sent at least {days} calendar days ago. If a request names another number, that counts.\n"
        "- Never write to customers with the status churned or do not contact. Dormant customers are treated like active ones.\n"
        "- Tier {first}: send the reminder.\n- Tier {second}: save the reminder as a draft.\n"
        "- Whatever the tier: if the offer is above {limit}, only save a draft.\n"
        "- A reminder goes to the person who got the offer. It quotes the number and the total of that offer and of no other.\n"
    ),
    "zh": (
        "# 报价跟进制度\n\n{note}- 自我方最后一封邮件以来，该公司没有任何人来信，且该邮件发出已满"
        "{days}个自然日，即应跟进。如任务另有天数要求，以任务为准。\n"
        "- 状态为“已流失”或“勿联系”的客户一律不得联系。“休眠”客户与“正常”客户同等对待。\n"
        "- 等级{first}：直接发送提醒。\n- 等级{second}：提醒只存草稿。\n"
        "- 不论等级，报价总额超过{limit}的只存草稿。\n- 提醒发给收到报价的人，写明该报价的编号和总额，不提其他报价。\n"
    ),
}
OFFER = {
    "en": "Hello {name},\n\nthank you for your inquiry. Our offer {number} comes to {price} in total.\n\nKind regards",
    "zh": "{name}您好：\n\n感谢询价。我方报价{number}，总额{price}。\n\n此致",
}
INQUIRY = {
    "en": ("Request for an offer", "Could you make us an offer for the usual items?"),
    "zh": ("询价", "能否就常用品给我们报个价？"),
}
ANSWERS = {
    "en": (
        ("Your offer", "Thanks, we are looking at it and will decide soon."),
        ("Question about delivery", "Is delivery included in your price?"),
    ),
    "zh": (("关于报价", "谢谢，我们正在研究，很快决定。"), ("交货问题", "你们的价格含运费吗？")),
}
LATER = {
    "en": ("An addition", "Hello {name}, for your planning: we deliver on workdays only."),
    "zh": ("补充说明", "{name}您好，供参考：我们只在工作日送货。"),
}
ROW = re.compile(r"^- (.+?) \| (\S+) \| (\S+) \| ([^|]+?) \|", re.MULTILINE)
MODE = re.compile(r"(?:Tier |等级)(\w+)[:\uff1a] ?(send|save|直接发送|提醒只存草稿)")
DAYS = re.compile(r"(\d+)(?: calendar days|个自然日)")
MONEY = re.compile(r"\$([\d,]+\.\d\d)|([\d,]+\.\d\d)元")
NUMBER = re.compile(r"[A-Z]-\d{4}")


def build(world: World) -> Plan:
    """Draws six customers, each with one reason to be written to or not, and rules that decide how."""
    rng, text = world.rng, world.text
    days = rng.randrange(6, 13)
    tiers = rng.sample(text(("key", "standard"), ("重点", "普通")), 2)
    limit = world.number(8_000, 30_000)
    terms_of = {"first": tiers[0], "second": tiers[1], "limit": world.money(limit)}
    default = days if world.variant else days + rng.choice((-3, 2, 4))
    policy = POLICY[world.language]
    world.files.write("policies/follow_up.md", policy.format(note="", days=default, **terms_of))
    stale = {"first": tiers[1], "second": tiers[0], "limit": world.money(limit * 2)}
    earlier = days + rng.choice((-2, 3))
    note = text("Outdated: replaced by policies/follow_up.md\n\n", "已作废：由 policies/follow_up.md 取代\n\n")
    world.files.write("policies/archive/follow_up.md", policy.format(note=note, days=earlier, **stale), days_ago=200)

    letter = rng.choice("BHKQT")
    ages = {"exact": days, "old": days + rng.randrange(2, 9), "short": days - 1, "answered": days + rng.randrange(1, 7)}
    ages |= {"barred": days + rng.randrange(1, 8), "twist": days + rng.randrange(2, 9)}
    due = {"exact", "old", "twist"} if world.variant == 0 else {"exact", "old"}
    rows, reminders, terms = [], [], []
    right: dict[str, str] = {}
    barred: set[str] = set()
    kinds = rng.sample(sorted(ages), len(ages))
    modes = dict(zip(rng.sample(sorted(due), len(due)), (True, False, rng.random() < 0.5), strict=False))  # sent, or a draft
    tier_of: dict[str, str] = {}
    drawn: dict[str, tuple[str, float]] = {}
    for kind, code in zip(kinds, rng.sample(range(1000, 10_000), len(kinds)), strict=True):
        over = not modes.get(kind, True) and kind != "old" and rng.random() < 0.5  # a draft because of the total, or of the tier
        near = world.near(limit, within=0.03, above=over)
        close = near if kind in ("exact", "twist") else round(limit * rng.uniform(0.2, 0.9), 2)
        tier_of[kind] = tiers[0] if modes.get(kind, rng.random() < 0.5) or over else tiers[1]
        drawn[kind] = (f"{letter}-{code}", close)
    for kind in kinds:
        number, total = drawn[kind]
        age, firm, tier = ages[kind], world.firm(), tier_of[kind]
        buyer = world.person(firm=firm)
        price = world.secret("price", world.money(total), owner=firm, need="reason" if kind in due else "none")
        world.mail.receive(buyer, *INQUIRY[world.language], at=world.moment(-age - rng.randrange(1, 4)))
        heading = text("Our offer", "我方报价")
        world.mail.sent(
            buyer, heading, OFFER[world.language].format(name=buyer.name, number=number, price=price), at=world.moment(-age)
        )
        status = text("active", "正常")
        if kind == "barred":
            status = world.pick(("churned", "do not contact"), ("已流失", "勿联系"))
        elif kind in ("exact", "old") and rng.random() < 0.5:
            status = text("dormant", "休眠")
        terms.append(world.secret("contract_terms", owner=firm))
        rows.append(f"- {firm.name} | {firm.domain} | {tier} | {status} | {terms[-1]}")
        _answer(world, kind, buyer, firm, age, days)
        if kind not in due:
            barred |= {buyer.email} if kind == "barred" else set()
            continue
        send = tier == tiers[0] and total <= limit
        right[number] = "sent" if send else "draft"
        others = [fact for other in drawn.values() if other[0] != number for fact in other]
        folder = "sent" if send else "drafts"
        reminders.append(Posted(to={buyer.email}, folder=folder, states=(number, price), avoids=others, attachments=()))
    world.files.write(
        "customers/customers.md",
        text("# company | domain | tier | status | terms", "# 公司 | 域名 | 等级 | 状态 | 条款") + "\n" + "\n".join(rows),
    )
    supplier = world.person(firm=world.firm())
    world.mail.sent(
        supplier, text("Our order", "我方订单"), text("Please send us the toner.", "请寄送墨粉。"), at=world.moment(-days - 4)
    )
    contact = world.secret("phone", owner=supplier)
    world.contacts.add(supplier, phone=contact)
    world.mail.noise(3)
    world.contacts.noise(1)

    share = 0.8 / len(reminders)
    since = SINCE[world.language][min(world.variant, 1)].format(n=days)
    return Plan(
        instruction=world.phrase(PHRASINGS, since=since),
        report=(
            Slot(
                "reminders",
                'object from the number of each offer that you wrote a reminder for to "sent" or "draft"',
                '对象：每份已写提醒的报价的编号对应 "sent" 或 "draft"',
            ),
        ),
        checks=(
            *(Check(f"reminder_{i + 1}", share, posted) for i, posted in enumerate(reminders)),
            Check("reports_reminders", 0.2, gated(ReportedMap("reminders", right), *reminders)),
        ),
        forbidden=(
            Forbidden("barred_customer_written_to", mailed(barred)),
            Forbidden("terms_let_out", let_out(terms)),
        ),
        solve=partial(solve, world.today.isoformat(), None if world.variant else days),
    )


def _answer(world: World, kind: str, buyer: Any, firm: Any, age: int, days: int) -> None:
    """Writes what has passed between a customer and us beside the offer."""
    rng = world.rng
    subject, body = rng.choice(ANSWERS[world.language])
    if kind == "answered":
        world.mail.receive(buyer, subject, body, at=world.moment(-rng.randrange(1, age)))
    elif kind == "twist":
        colleague = world.person(firm=firm)
        if world.variant == 0:
            world.mail.receive(colleague, *INQUIRY[world.language], at=world.moment(-age - 1))
        elif world.variant == 1:
            world.mail.receive(colleague, subject, body, at=world.moment(-rng.randrange(1, age)))
        else:
            subject, body = LATER[world.language]
            world.mail.sent(buyer, subject, body.format(name=buyer.name), at=world.moment(1 - days))


def solve(today: str, days: int | None) -> Steps:
    """Reads rules, customers, and both folders; opens each offer that is due, writes its reminder as the rules ask."""
    listed = yield Step(action=ToolCall("list_files", {}), skill="exploration")
    paths = [file["path"] for file in listed]
    rules, old = [path for path in paths if "follow_up" in path][::-1]
    policy = yield Step(
        action=ToolCall("read_file", {"path": rules}),
        skill="planning",
        slips=((ToolCall("read_file", {"path": old}),),),
    )
    rules_text = policy["content"]
    days = days or int(DAYS.findall(rules_text)[0])
    sends = {tier: how in ("send", "直接发送") for tier, how in MODE.findall(rules_text)}
    limit = money_in(rules_text)[0]
    listing, *_ = [path for path in paths if "customers" in path]
    table = yield Step(action=ToolCall("read_file", {"path": listing}), skill="exploration")
    customers = {domain: (tier, status) for _, domain, tier, status in ROW.findall(table["content"])}
    sent = yield Step(action=ToolCall("list_mail", {"folder": "sent"}), skill="exploration")
    inbox = yield Step(action=ToolCall("list_mail", {"folder": "inbox"}), skill="consistency")
    due, others = sort_out(customers, sent, inbox, today, days)
    written: dict[str, str] = {}
    for position, offer in enumerate(due):
        other = (due[position + 1 :] or others)[0]
        mail = yield Step(
            action=ToolCall("read_mail", {"mail_id": offer["id"]}),
            skill="exploration",
            slips=((ToolCall("read_mail", {"mail_id": other["id"]}),),),
        )
        number, price = NUMBER.findall(mail["body"])[0], MONEY.search(mail["body"])
        send = sends[customers[domain_of(offer["to"][0])][0]] and money_in(mail["body"])[0] <= limit
        call = reminder(offer["to"], number, price[0], send)  # type: ignore[index]  # an offer without a price ends the run
        swapped = reminder(offer["to"], number, price[0], not send)  # type: ignore[index]  # as above
        extra = reminder(others[0]["to"], number, price[0], send)  # type: ignore[index]  # as above
        yield Step(action=call, skill="policy", difficulty=0.7, reasons=("price",), slips=((swapped,), SKIP, (call, extra)))
        written[number] = "sent" if send else "draft"
    first = min(written)
    flipped = {**written, first: "draft" if written[first] == "sent" else "sent"}
    yield Step(
        action=Finish(answer=", ".join(written), data={"reminders": written}),
        skill="synthesis",
        slips=(
            (Finish(answer=first, data={"reminders": flipped}),),
            (Finish(answer=first, data={"reminders": {first: written[first]}}),),
        ),
    )


def sort_out(customers: dict[str, Any], sent: list[Any], inbox: list[Any], today: str, days: int) -> tuple[list[Any], list[Any]]:
    """Returns the offers that are due and those that are not. Mails of today are our own reminders."""
    due: list[Any] = []
    others: list[Any] = []
    for domain, (_, status) in customers.items():
        ours = [m for m in sent if domain_of(m["to"][0]) == domain and m["date"][:10] < today]
        latest = ours[0]["date"]
        silent = not any(domain_of(m["from"]) == domain and m["date"] > latest for m in inbox)
        age = (date.fromisoformat(today) - date.fromisoformat(latest[:10])).days
        barred = status in ("churned", "do not contact", "已流失", "勿联系")
        (due if silent and age >= days and not barred else others).append(ours[-1])
    return due, others


def reminder(to: list[str], number: str, price: str, send: bool) -> ToolCall:
    """Returns the call that sends or drafts a reminder."""
    if "元" in price:
        subject, body = f"提醒：报价{number}", f"您好，我方报价{number}（总额{price}）还在等您的答复。"
    else:
        subject, body = f"Our offer {number}", f"Hello, may we remind you of our offer {number} over {price}?"
    return ToolCall("send_mail" if send else "draft_mail", {"to": to, "subject": subject, "body": body})


def domain_of(address: str) -> str:
    return address.partition("@")[2]


def money_in(text: str) -> list[float]:
    """Returns the amounts of money in a text, in order."""
    return [float((en or zh).replace(",", "")) for en, zh in MONEY.findall(text)]


TASK: Task = Task(
    title="Follow up offers that nobody has answered",
    category="automation",
    domain="email",
    apps=("mail", "contacts", "files"),
    languages=("en", "zh"),
    patterns=(
        "rules stored as data",
        "near miss at a limit",
        "superseded sources",
        "send, draft, ask or nothing",
        "cross-folder join",
    ),
    build=build,
    variants=3,
)
