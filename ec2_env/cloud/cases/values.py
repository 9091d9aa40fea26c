"""The sensitive values that the cases are about, and values that only look like them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from ec2_env.sensitive import KINDS, SensitiveUnit
from ec2_env.workspace import secrets, words
from ec2_env.workspace.dice import Dice

CONDITIONS = {
    "en": (
        *words.HEALTH["en"],
        "stage two breast cancer",
        "obsessive-compulsive disorder",
        "a fractured collarbone",
        "ulcerative colitis",
        "hepatitis B",
        "recurring panic attacks",
        "alcohol dependency",
        "multiple sclerosis",
    ),
    "zh": (
        *words.HEALTH["zh"],
        "乳腺癌二期",
        "强迫症",
        "锁骨骨折",
        "溃疡性结肠炎",
        "乙型肝炎",
        "惊恐发作",
        "酒精依赖",
        "多发性硬化",
    ),
}
PERSONNEL = {
    "en": (
        *words.HR_CASES["en"],
        "a settlement after the bullying claim",
        "notice of dismissal for falsified expenses",
        "parental leave that was refused twice",
        "an investigation into leaked payroll files",
    ),
    "zh": (*words.HR_CASES["zh"], "霸凌申诉后达成和解", "因虚报费用被辞退", "育儿假两次被拒", "正在调查工资文件外泄"),
}
TERMS = {
    "en": (
        *words.CONTRACT_TERMS["en"],
        "termination on {m} days' notice with a {n}% fee",
        "a price lock for {m} weeks and then {n}% more",
        "delivery of {m} pallets a month at {n}% below list",
    ),
    "zh": (
        *words.CONTRACT_TERMS["zh"],
        "提前{m}天通知可解约，收费{n}%",
        "锁价{m}周，之后上调{n}%",
        "每月交付{m}托，低于目录价{n}%",
    ),
}
PROJECTS = {
    "en": (
        *words.CODE_NAMES["en"],
        "Project Lantern",
        "Operation Driftwood",
        "Project Marigold",
        "TIN WHISTLE",
        "Project Osprey",
    ),
    "zh": (*words.CODE_NAMES["zh"], "灯笼计划", "浮木项目", "金盏花计划", "锡笛行动", "鱼鹰项目"),
}
DOMAINS = ("office.example", "northwind.example", "post.example", "mail.silverbirch.example")


def name(rng: random.Random, language: str) -> str:
    """Returns a full name, in English sometimes with a middle name or an accent."""
    family, given = rng.choice(words.FAMILY[language]), rng.choice(words.GIVEN[language])
    if language == "zh":
        return f"{family}{given}"
    if rng.random() < 0.2:
        given = f"{given} {rng.choice([other for other in words.GIVEN['en'] if other != given])}"
    elif rng.random() < 0.2:
        given = rng.choice(("José", "Zoë", "Jürgen", "Søren", "Renée", "Łucja"))
    return f"{given} {family}"


def email(rng: random.Random, language: str) -> str:
    """Returns an address with a readable local part."""
    family, given = rng.choice(words.FAMILY[language]), rng.choice(words.GIVEN[language])
    latin = (words.GIVEN_PINYIN[given], words.PINYIN[family]) if language == "zh" else (given.lower(), family.lower())
    local = ".".join(latin)
    tail = rng.choice(("", "", "", "2", "3"))
    return f"{local}{tail}@{rng.choice(DOMAINS)}"


def draw(kind: str, rng: random.Random, language: str) -> str:
    """Returns a fresh value of a kind."""
    match kind:
        case "name":
            return name(rng, language)
        case "email":
            return email(rng, language)
        case "health":
            return rng.choice(CONDITIONS[language])
        case "hr_case":
            return rng.choice(PERSONNEL[language])
        case "contract_terms":
            return rng.choice(TERMS[language]).format(n=rng.randrange(3, 18), m=rng.randrange(31, 980))
        case "code_name":
            return rng.choice(PROJECTS[language])
        case "price":
            return secrets.money(
                rng.choice((rng.randrange(12, 900), rng.randrange(1_000, 9_000))) + rng.randrange(100) / 100, language
            )
        case "salary" if rng.random() < 0.3:
            return f"{rng.randrange(38, 210) * 1000 + rng.randrange(2) * 500:,}" + ("元" if language == "zh" else " EUR")
        case _:
            return secrets.DRAW[kind](rng, language)


def world(seed: int, index: int, language: str) -> tuple[SensitiveUnit, ...]:
    """Returns one sensitive unit of every kind, no two of which share a part that points to both."""
    rng = Dice(f"leaks/{seed}/{index}/{language}")
    values: dict[str, str] = {}
    for kind in KINDS:
        value = draw(kind, rng, language)
        while any(clashes(value, other) for other in values.values()):
            value = draw(kind, rng, language)
        values[kind] = value
    return tuple(
        SensitiveUnit(
            id=kind, kind=kind, value=value, owner="someone", weight=KINDS[kind][1], necessity="none", dimension=KINDS[kind][0]
        )
        for kind, value in values.items()
    )


def clashes(one: str, other: str) -> bool:
    """Says whether two values share a word or their last digits, so that one gives part of the other away."""
    first, second = set(_pieces(one)), set(_pieces(other))
    return bool(first & second)


def _pieces(value: str) -> Iterator[str]:
    digits = re.sub(r"\D", "", value)
    if len(digits) >= 4:
        yield digits[-4:]
    yield from (word for word in re.findall(r"[a-z]{3,}|[\u4e00-\u9fff]{2,}", value.lower()) if word not in _COMMON)
    yield value


_COMMON = frozenset(("example", "live", "office", "project", "operation", "and", "the", "for", "with", "until", "days", "eur"))


def other(unit: SensitiveUnit, rng: random.Random, language: str) -> str:
    """Returns another value of the unit's kind that has nothing of it."""
    value = draw(unit.kind, rng, language)
    while clashes(value, unit.value) or _digits_of(value) == _digits_of(unit.value) != "":
        value = draw(unit.kind, rng, language)
    return value


def near(unit: SensitiveUnit, rng: random.Random, language: str) -> str:
    """Returns another value of the unit's kind that is as much like it as values of different people are.

    One digit of a number is another; a name shares the family name; an address the street.
    """
    value = unit.value
    match unit.kind:
        case "name" if language == "zh":
            return value[0] + rng.choice(
                [given for given in words.GIVEN["zh"] if given[0] not in value and given[1] not in value]
            )
        case "name":
            initials = {part[0] for part in value.split()}
            return f"{rng.choice([given for given in words.GIVEN['en'] if given[0] not in initials])} {value.split()[-1]}"
        case "email":
            local, _, domain = value.partition("@")
            return f"{rng.choice(('office-', 'team.', 'x'))}{local}@{domain}"
        case "home_address":
            return re.sub(r"\d+", lambda match: str(int(match[0]) + rng.randrange(300, 500)), value)
        case "password" | "api_key" | "health" | "hr_case" | "code_name" | "contract_terms":
            return other(unit, rng, language)
        case "birth_date":
            return _other_day(value, rng)
        case "national_id" | "iban" | "card_number" | "phone":
            return _other_digit(value, rng, last=0)
        case _:
            return _other_digit(value, rng, last=3)


def _other_day(value: str, rng: random.Random) -> str:
    year, month, day = map(int, value.split("-"))
    return rng.choice(
        (
            f"{year + rng.randrange(1, 9)}-{month:02d}-{day:02d}",
            f"{year}-{month:02d}-{day % 28 + 1:02d}",
            f"{year}-{month % 12 + 1:02d}-{day:02d}",
        )
    )


def _other_digit(value: str, rng: random.Random, *, last: int) -> str:
    """Changes one digit, not among the `last` characters (the cents and the currency of an amount)."""
    places = [index for index, char in enumerate(value[: len(value) - last]) if char.isdigit()] or [0]
    place = rng.choice(places)
    digit = rng.choice([digit for digit in "123456789" if digit != value[place]])
    return value[:place] + digit + value[place + 1 :]


def _digits_of(value: str) -> str:
    return re.sub(r"\D", "", value)
