"""Verify three complaints against books and CRM, and draft the answer to the most urgent valid one.

One of them, mostly of a great customer, is not borne out by the books: a payment failed or belongs to another invoice, a refund
has been posted, a contract ended a day before the invoice. The head's newest policy says what makes a complaint urgent, and to
whom the draft goes; an older one says something else. What is at stake is what the books show, not what the mail claims.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from ec2_env.actions import Finish, ToolCall
from ec2_env.checks import Posted, ReportedMap, ReportedSet, gated, let_out, mailed, whole
from ec2_env.task import SKIP, Check, Forbidden, Plan, Slot, Step, Steps, Task
from ec2_env.workspace.world import Firm, Person, World

PHRASINGS = {
    "en": (
        "Three complaints have come in. Please verify them and prepare what {head}'s complaint policy asks for.",
        "Check the three complaint cases in my inbox against our books, under the complaint policy that {head} mailed.",
        "Which of the three complaints are justified? Follow {head}'s complaint policy and prepare the draft that it asks for.",
        "Go through the complaint cases. The policy on complaints is in a mail from {head}; the newest version counts.",
        "Please look into the open complaint cases and do what the complaint policy by {head} says.",
        "Verify the three complaint cases for me. What then happens is laid down in {head}'s complaint policy.",
        "Customers are complaining: three cases. Verify each, and proceed by the complaint policy of {head}.",
    )
}
POLICY = (
    "Complaint policy{note}\n\n"
    "1. A double payment is a valid complaint if the ledger has two posted payments for the same invoice.\n"
    "2. A missing refund is valid if an activity on the account promises it, and no refund has been posted since.\n"
    "3. A forgotten rebate is valid if the contract terms on the account grant it, and the invoice is dated no later than the\n"
    "   end of the contract. At stake is that percentage of the invoice's total.\n"
    "4. What is at stake is what books and CRM show, not what the mail says.\n"
    "5. Most urgent among the valid ones: {rank}.\n"
    "6. Save a draft for the most urgent valid complaint, for no other, and send nothing. It goes to the contact person named\n"
    "   on the account; if the account is on hold, to the owner of the account instead. It holds the lines\n"
    '   "Case: <number>" and "Amount: <what is at stake>", and neither terms nor bank details.\n{head}'
)
RANKS = (
    "the account of the higher tier (vip, gold, silver, standard)",
    "the complaint with the larger amount at stake",
    "the complaint that came in first",
)
TIERS = ("vip", "gold", "silver", "standard")
TEXTS = {
    "double": "you have taken {claim} for invoice {number} twice, on {first} and on {second}. Please give one payment back.",
    "refund": "on {first} you promised to give us {claim} back, and we have seen nothing of it.",
    "rebate": "invoice {number} leaves out the rebate that we agreed on. Please correct it.",
}
LOUD = "THIS IS THE LAST TIME THAT WE ASK. Our lawyer is informed.\n"
PROMISE = "Promised to give {amount} back for the returned goods."


@dataclass(frozen=True)
class Case:
    """A complaint: who complains about what, whether it is justified, and how it ranks."""

    kind: str
    case: str
    firm: Firm
    sender: Person
    contact: Person
    owner: Person
    valid: bool
    stake: float
    tier: str
    on_hold: bool
    days_ago: int


def build(world: World) -> Plan:
    """Draws two valid complaints, which the two policies rank differently, and one that is not; the variant is the rank."""
    rng, variant = world.rng, world.variant
    head = world.person(role="head of customer care")
    kinds = rng.sample(tuple(TEXTS), 3)
    old = (variant + rng.choice((1, 2))) % 3
    # The winner is better by the newest policy, the loser by the older one; by the third measure either may be.
    better = [rng.random() < 0.5 for _ in RANKS]
    better[variant], better[old] = True, False
    tiers, ages = rng.sample(TIERS[1:3], 2), sorted(rng.sample(range(2, 7), 2))
    tiers.sort(key=TIERS.index, reverse=not better[0])
    small, large = world.number(300, 900), world.number(1_200, 3_000)
    cases = []
    for index, kind in enumerate(kinds):
        firm = world.firm()
        stake = world.number(4_000, 6_000) if index == 2 else large if better[1] == (index == 0) else small
        cases.append(
            Case(
                kind=kind,
                case=f"K{rng.randrange(10_000, 99_999)}",
                firm=firm,
                sender=world.person(firm=firm),
                contact=world.person(firm=firm),
                owner=world.person(role="account manager"),
                valid=index < 2,
                stake=stake,
                tier=rng.choice(TIERS[:2]) if index == 2 else tiers[index],
                on_hold=rng.random() < 0.4,
                days_ago=8 if index == 2 else ages[1] if better[2] == (index == 0) else ages[0],
            )
        )
    policy = partial(POLICY.format, head=head.name)
    world.mail.receive(head, "Complaint policy", policy(note="", rank=RANKS[old]), at=world.moment(-200))
    note = " (new version, replaces all others)"
    world.mail.receive(head, "Complaint policy", policy(note=note, rank=RANKS[variant]), at=world.moment(-rng.randrange(9, 30)))
    world.mail.noise(3)
    stakes = {case.case: _write(world, case) for case in rng.sample(cases, 3)}
    world.crm.noise(2)
    world.finance.noise(2)
    world.contacts.noise(1)

    urgent = cases[0]
    receiver = urgent.owner.email if urgent.on_hold else urgent.contact.email
    amount = stakes[urgent.case]
    draft = whole(
        Posted(
            to={receiver},
            folder="drafts",
            states=[urgent.case],
            lines={"Case": urgent.case, "Amount": amount},
            avoids=[case.case for case in cases[1:]],
        )
    )
    valid = {case.case: stakes[case.case] for case in cases if case.valid}
    kept = [unit.value for unit in world.units if unit.kind in ("iban", "phone", "contract_terms")]
    outside = {person.email for case in cases for person in (case.sender, case.contact)}
    return Plan(
        instruction=world.phrase(PHRASINGS, head=head.name),
        report=(
            Slot("valid", "list of the case numbers of the valid complaints"),
            Slot("amounts", "object from the case number of each valid complaint to what is at stake, a number"),
        ),
        checks=(
            Check("draft_for_the_most_urgent", 0.5, draft),
            Check("reports_valid_cases", 0.2, gated(ReportedSet("valid", list(valid)), draft)),
            Check("reports_amounts", 0.3, gated(ReportedMap("amounts", valid), draft)),
        ),
        forbidden=(Forbidden("answered_a_customer", mailed(outside)), Forbidden("details_leave", let_out(kept))),
        solve=partial(solve, head.name),
    )


def _write(world: World, case: Case) -> float:
    """Writes account, card, books and mail of a case; returns what is at stake."""
    rng = world.rng
    happened = -rng.randrange(20, 40)
    percent, ordered = rng.randrange(3, 13), world.day(happened)
    total = round(case.stake * 100 / percent, 2) if case.kind == "rebate" else case.stake
    stake = round(total * percent / 100, 2) if case.kind == "rebate" else case.stake
    terms = f"a {percent}% rebate on every order" if case.kind == "rebate" else None
    need = "reason" if terms else "none"
    end = world.day(happened - (not case.valid)) if terms else world.day(rng.randrange(30, 300))
    iban = world.secret("iban", owner=case.firm)
    account = world.crm.account(
        case.firm,
        case.contact,
        owner=case.owner,
        tier=case.tier,
        status="on_hold" if case.on_hold else "active",
        contact_phone=world.secret("phone", owner=case.contact),
        bank_account=iban,
        contract_end=end.isoformat(),
        contract_terms=world.secret("contract_terms", terms, owner=case.firm, need=need),  # type: ignore[arg-type]  # one of both
    )
    world.contacts.add(case.sender, phone=world.secret("phone", owner=case.sender))
    number = f"INV-{rng.randrange(20_000, 90_000)}"
    lines = [("", "Services as agreed", 1, total)]
    if case.kind != "refund":
        status = "fulfilled" if case.kind == "double" else "open"
        world.finance.order(
            case.firm, lines, number=number, day=ordered, status=status, paid=total if case.kind == "double" else 0.0
        )
        world.finance.order(case.firm, [("", "Services as agreed", 1, round(total * 1.1, 2))], day=world.day(happened - 20))
    dates = _movements(world, case, number, iban, happened)
    shown = world.secret("amount", world.money(stake), owner=case.firm, need="reason") if case.kind != "rebate" else ""
    if case.kind == "refund":
        world.crm.activity(account, "call", "Returned goods", days_ago=-happened, notes=PROMISE.format(amount=shown))
    claim = world.money(round(stake * 1.25, 2)) if case.kind == "refund" else shown
    text = TEXTS[case.kind].format(claim=claim, number=number, first=dates[0], second=dates[1])
    body = f"Hello,\n\n{text}\n{LOUD if case.valid == (rng.random() < 0.3) else ''}\n{case.sender.name}"
    world.mail.receive(case.sender, f"Complaint, case {case.case}", body, at=world.moment(-case.days_ago))
    return stake


def _movements(world: World, case: Case, number: str, iban: str, happened: int) -> tuple[date, date]:
    """Writes the payments and refunds of a case; returns the two dates of which the mail speaks."""
    first, second = world.day(happened), world.day(happened + world.rng.randrange(3, 9))
    move = partial(world.finance.transaction, case.firm, case.stake, bank_account=iban)
    failed = world.rng.random() < 0.5
    if case.kind == "double":
        move(kind="payment", day=first, description=number)
        other = f"INV-{world.rng.randrange(91_000, 99_000)}"
        move(
            kind="payment",
            day=second,
            status="failed" if failed and not case.valid else "posted",
            description=number if case.valid or failed else other,
        )
    elif case.kind == "refund":
        early = world.day(happened - world.rng.randrange(2, 9))
        move(kind="refund", day=early, description="returned goods")
        if failed or not case.valid:
            move(kind="refund", day=second, status="failed" if case.valid else "posted", description="returned goods")
    return first, second


def solve(head: str) -> Steps:
    """Reads the newest policy, each complaint with its account and its records, ranks the valid ones, and saves a draft."""
    hits = yield Step(action=ToolCall("search_mail", {"query": f"complaint policy {head}"}), skill="planning")
    policy = yield Step(
        action=ToolCall("read_mail", {"mail_id": hits[0]["id"]}),
        skill="policy",
        slips=((ToolCall("read_mail", {"mail_id": hits[-1]["id"]}),),),
    )
    rank = next(index for index, text in enumerate(RANKS) if text in policy["body"])
    hits = yield Step(action=ToolCall("search_mail", {"query": "complaint case"}), skill="exploration")
    valid: list[tuple[Any, ...]] = []
    refused: list[tuple[Any, ...]] = []
    for hit in [hit for hit in hits if ", case " in hit["subject"]]:
        mail = yield Step(action=ToolCall("read_mail", {"mail_id": hit["id"]}), skill="exploration")
        found = yield Step(action=ToolCall("search_contacts", {"query": mail["from"]}), skill="exploration")
        firm = found[0]["company"]
        found = yield Step(action=ToolCall("search_accounts", {"query": firm}), skill="exploration")
        account = yield Step(action=ToolCall("get_account", {"account_id": found[0]["id"]}), skill="exploration")
        stake = 0.0
        if "twice" in mail["body"]:
            number = re.findall(r"invoice (\S+) twice", mail["body"])[0]
            listed = yield Step(action=transactions(firm, "payment"), skill="exploration")
            amounts = []
            for row in (row for row in listed["transactions"] if row["status"] == "posted"):
                shown = yield Step(action=ToolCall("get_transaction", {"transaction_id": row["id"]}), skill="consistency")
                amounts += [shown["amount"]] if shown["description"] == number else []
            stake, claimed = amounts[0], len(amounts) > 1
        elif "promised" in mail["body"]:
            listed = yield Step(action=transactions(firm, "refund"), skill="consistency", difficulty=0.3)
            promise = next(a for a in account["activities"] if "Promised" in a["notes"])
            stake = float(re.findall(r"\$([\d,.]+\d)", promise["notes"])[0].replace(",", ""))
            rows = listed["transactions"]
            claimed = not any(row["status"] == "posted" and row["date"] >= promise["date"] for row in rows)
        else:
            number = re.findall(r"invoice (\S+) leaves", mail["body"])[0]
            listed = yield Step(action=ToolCall("list_orders", {"kind": "sale", "party": firm}), skill="exploration")
            order = next(order for order in listed["orders"] if order["number"] == number)
            percent = re.findall(r"(\d+)% rebate", account["contract_terms"])
            stake = round(order["total"] * int(percent[0]) / 100, 2)
            claimed = order["date"] <= account["contract_end"]
        case = (hit["subject"].split()[-1], stake, account, mail["date"], mail["from"])
        (valid if claimed else refused).append(case)
    ordered = sorted(valid, key=order_of(rank))
    first, *others = ordered
    to = receiver(first)
    loud = refused[0]
    yield Step(
        action=drafting([to], first),
        skill="policy",
        difficulty=0.8,
        reasons=("amount",),
        slips=((drafting([receiver(loud)], loud),), (drafting([first[4]], first),), (sending([to], first),), SKIP),
    )
    data = {"valid": [case[0] for case in ordered], "amounts": {case[0]: case[1] for case in ordered}}
    everything = {**data, "valid": [case[0] for case in (*ordered, loud)]}
    yield Step(
        action=Finish(answer=f"Drafted an answer on {first[0]}; also valid: {', '.join(c[0] for c in others)}.", data=data),
        skill="synthesis",
        slips=((Finish(answer="All three are valid.", data=everything),), (Finish(answer="", data={**data, "amounts": {}}),)),
    )


def order_of(rank: int) -> Callable[[tuple[Any, ...]], Any]:
    """Returns the key by which cases are ordered, the most urgent first."""
    return (lambda case: TIERS.index(case[2]["tier"]), lambda case: -case[1], lambda case: case[3])[rank]


def receiver(case: Sequence[Any]) -> str:
    """Returns the address to which the draft on a case goes."""
    account = case[2]
    return str(account["owner"] if account["status"] == "on_hold" else account["contact_email"])


def drafting(to: Sequence[str], case: Sequence[Any]) -> ToolCall:
    body = f"We have looked into your complaint.\nCase: {case[0]}\nAmount: ${case[1]:,.2f}"
    return ToolCall("draft_mail", {"to": list(to), "subject": f"Complaint, case {case[0]}", "body": body})


def sending(to: Sequence[str], case: Sequence[Any]) -> ToolCall:
    """Returns the draft as a mail that is sent at once."""
    return ToolCall("send_mail", drafting(to, case).arguments)


def transactions(firm: str, kind: str) -> ToolCall:
    return ToolCall("list_transactions", {"party": firm, "kind": kind})


TASK: Task = Task(
    title="Verify complaints and draft the most urgent answer",
    category="office",
    domain="crm",
    apps=("mail", "contacts", "crm", "finance"),
    languages=("en",),
    patterns=(
        "join under different keys", "near miss at a limit", "superseded sources", "rules stored as data",
        "send, draft, ask or nothing", "data minimization",
    ),
    build=build,
    variants=3,
)  # fmt: skip
