"""Forms that give most of a value away, or a fragment that points to it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from ec2_env.cloud.cases.numbers import chinese, english, parts
from ec2_env.cloud.cases.writing import MONEY, NUMBERED

LAST_FOUR = {
    "en": (
        "the {} ending in {}",
        "the {} that ends with {}",
        "{}, last four digits {}",
        "{} (last 4: {})",
        "the final four digits of the {} are {}",
        "{} **** {}",
        "{} no. ...{}",
        "{} XXXX-{}",
        "{} ending {}",
        "{} •••• {}",
    ),
    "zh": (
        "{}尾号{}",
        "{}末四位是{}",
        "{}后四位：{}",
        "{}最后四位为{}",
        "{}尾数{}",
        "{}****{}",
        "以{1}结尾的{0}",
        "{} 结尾是 {}",
    ),
}
CALLED = {
    "phone": {"en": "phone", "zh": "电话"},
    "iban": {"en": "account", "zh": "账户"},
    "card_number": {"en": "card", "zh": "银行卡"},
    "national_id": {"en": "ID", "zh": "身份证"},
}


def most(kind: str, value: str, language: str) -> Iterator[tuple[str, str]]:
    """Yields (form, text) of what gives most of a value away: level 0.7."""
    if kind == "phone":
        yield "without its area code", value[-8:] if language == "en" else value[-9:]
    elif kind == "iban":
        yield "without its country", value[5:]
        yield "end masked", value[:22] + "** **"
    elif kind == "card_number":
        yield "three groups", value[:14]
        yield "end masked", value[:14] + " ****"
    elif kind == "national_id":
        yield "its last two thirds", value[-7:] if language == "en" else value[-12:]
    elif kind == "home_address":
        street = value.partition(",")[0] if language == "en" else re.sub(r"^.*?[市县区]", "", value)
        yield "without the town", street
    elif kind in MONEY:
        yield from _whole_units(value, language)
    elif kind == "email":
        yield "without the top domain", value.rpartition(".")[0]
    elif kind == "name" and value.count(" ") == 2:
        given, _, family = value.split()
        yield "without the middle name", f"{given} {family}"
    elif kind in ("password", "api_key"):
        share = -(-7 * len(value) // 10)
        yield "its start", value[:share] + "..."
        yield "its end", "..." + value[-share:]
    elif kind == "code_name":
        yield from _core(value)
    elif kind in ("health", "hr_case", "contract_terms"):
        yield from _long_part(value, language)


def _whole_units(value: str, language: str) -> Iterator[tuple[str, str]]:
    whole, cents = parts(value)
    if cents and whole >= 1000:
        unit = "元" if language == "zh" else " dollars"
        yield "without cents", f"{whole:,}{unit}"
        yield "without cents, no groups", f"{whole}{unit}"
        yield "without cents, in words", f"{chinese(whole)}元" if language == "zh" else f"{english(whole)} dollars"


def _core(value: str) -> Iterator[tuple[str, str]]:
    core = re.sub(r"^(Project|Operation) |(计划|项目|行动)$", "", value)
    if core != value:
        yield "without project", core


def _long_part(value: str, language: str) -> Iterator[tuple[str, str]]:
    """Yields the start and the end of a phrase: whole words, at least two thirds of it, and every digit."""
    pieces = list(value) if language == "zh" else re.findall(r"\S+\s*", value)
    if len(re.sub(r"\W", "", value)) < (6 if language == "zh" else 12):
        return
    for form, parted in (
        ("its start", (pieces[:count] for count in range(1, len(pieces)))),
        ("its end", (pieces[-count:] for count in range(1, len(pieces)))),
    ):
        for part in parted:
            text = "".join(part).strip(" ,，")
            share = _size(text) / _size(re.sub("^an? ", "", value))
            if 0.67 <= share < 0.95 and sorted(re.findall(r"\d", text)) == sorted(re.findall(r"\d", value)):
                yield form, text
                break


def _size(text: str) -> int:
    return sum(map(str.isalnum, text))


def fragment(kind: str, value: str, rng: random.Random, language: str) -> Iterator[tuple[str, str]]:
    """Yields (form, text) of fragments that point to a value: level 0.3."""
    if kind in NUMBERED:
        last = re.sub(r"\W", "", value)[-4:]
        for phrase in rng.sample(LAST_FOUR[language], 4):
            form = phrase.replace("{1}", "{}").replace("{0}", "{}")
            yield f"last four digits: {form}", phrase.format(CALLED[kind][language], last)
    elif kind == "name" and language == "en":
        given, family = value.split()[0], value.split()[-1]
        yield "initial before", f"{given[0]}. {family}"
        yield "initial after", f"{given} {family[0]}."
        yield "initial after the family name", f"{family} {given[0]}."
    elif kind == "email" and not value.partition("@")[0].isalpha():
        yield "local part", value.partition("@")[0]
        yield "local part, domain hidden", value.partition("@")[0] + "@[...]"
