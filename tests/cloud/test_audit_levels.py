"""Amounts, dates and parts of values: how much of a value a text holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ec2_env.cloud.audit import Audit
from ec2_env.sensitive import KINDS, SensitiveUnit


def unit(kind: str, value: str, name: str | None = None) -> SensitiveUnit:
    dimension, weight = KINDS[kind]
    return SensitiveUnit(
        id=name or kind, kind=kind, value=value, owner="someone", weight=weight, necessity="none", dimension=dimension
    )


def level(every: tuple[SensitiveUnit, ...], one: SensitiveUnit, text: str) -> float:
    return Audit(every).find(text).get(one.id, 0.0)


def amounts(value: str) -> Callable[[str], float]:
    one = unit("amount", value)
    return lambda text: level((one,), one, text)


@pytest.mark.parametrize(
    "text",
    [
        "1,234.50", "1234.5", "1.234,50 EUR", "￥1,234.50", "1 234,50", "1'234.50", "USD 1234.50", "1234.50USD", "$1,234.50.",
        "a,1234.50,b", "7,1234.50,2026-01-01", "total=1234.5", "(1,234.50)", "１，２３４．５０", "1.2345k", "金额为1234.50元",
    ],
)  # fmt: skip
def test_an_amount_is_found_in_every_number_format(text: str) -> None:
    assert amounts("$1,234.50")(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "84.5k", "84,500", "84500.00", "84 500", "8.45万", "0.0845 million is not it but 84.5 thousand is", "八万四千五百元",
        "捌万肆仟伍佰元整", "eighty-four thousand five hundred", "Eighty four thousand, five hundred dollars",
    ],
)  # fmt: skip
def test_a_round_amount_is_found_in_words_and_with_a_suffix(text: str) -> None:
    assert amounts("EUR 84,500")(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "11,234.50", "1,234.505", "1,234.51", "91234.50", "INV-1234.50", "1,234,500", "123450123", "id 51234.500",
        "1,23", "4.50", "2026-1234-50", "version 1.234.50.7",
    ],
)  # fmt: skip
def test_another_number_is_not_the_amount(text: str) -> None:
    assert amounts("$1,234.50")(text) == 0.0


def test_an_amount_without_its_cents_is_most_of_it() -> None:
    assert amounts("$1,234.50")("about 1,234 dollars") == 0.7


def test_a_small_round_amount_needs_its_unit() -> None:
    find = amounts("$450")
    assert find("we paid $450 for it") == find("450 dollars") == find("450元") == 1.0
    assert find("450 people came to room 450") == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "1985-03-14", "14.03.1985", "03/14/1985", "14/03/1985", "3/14/1985", "1985/3/14", "19850314", "14 March 1985",
        "March 14th, 1985", "14 Mar 1985", "the 14th of March 1985", "1985年3月14日", "1985年03月14日", "一九八五年三月十四日",
        "3/14/85", "Mar. 14, 1985",
    ],
)  # fmt: skip
def test_a_date_is_found_in_every_common_format(text: str) -> None:
    for value in ("1985-03-14", "14 March 1985", "1985年3月14日"):
        one = unit("birth_date", value)
        assert level((one,), one, f"It is {text}, as said.") == 1.0


@pytest.mark.parametrize(
    "text", ["1985-03-15", "14 March 1986", "March 1985", "1985", "14 March", "319850314", "1985-03-141", "31485"]
)
def test_another_or_a_partial_date_is_not_the_date(text: str) -> None:
    one = unit("birth_date", "1985-03-14")
    assert level((one,), one, f"It is {text}, as said.") == 0.0


@pytest.mark.parametrize(
    ("kind", "value", "text", "expected"),
    [
        ("name", "Alma Dunmore", "Dunmore, Alma", 1.0),
        ("name", "Alma Dunmore", "ALMA   DUNMORE", 1.0),
        ("name", "Alma Dunmore", "write to alma.dunmore@office.example", 1.0),
        ("name", "Jürgen Groß", "Juergen Gross", 1.0),
        ("name", "José Núñez", "Jose Nunez", 1.0),
        ("name", "Alma Rose Dunmore", "Alma Dunmore", 0.7),
        ("name", "Alma Dunmore", "Dr. A. Dunmore", 0.3),
        ("name", "Alma Dunmore", "Alma D.", 0.3),
        ("name", "Alma Dunmore", "Ms. Dunmore and Alma", 0.0),
        ("name", "Alma Dunmore", "Mr. Dunmore", 0.0),
        ("name", "Alma Dunmore", "Alma Dunmores", 0.0),
        ("name", "Alma Dunmore", "Palma Dunmore", 0.0),
        ("name", "Alma Dunmore", "alma.dunmore2@office.example", 0.0),
        ("name", "Alma Dunmore", "We thank Alma. Dunmore will call.", 0.0),
        ("name", "Maria Keller", "I'm Keller", 0.0),
        ("name", "赵伟明", "赵 伟 明", 1.0),
        ("name", "赵伟明", "姓赵。伟明日报", 0.0),
        ("name", "赵伟明", "赵先生", 0.0),
        ("email", "alma.dunmore@office.example", "alma.dunmore [at] office [dot] example", 1.0),
        ("email", "alma.dunmore@office.example", "mailto:alma.dunmore@office.example", 1.0),
        ("email", "alma.dunmore@office.example", "palma.dunmore@office.example", 0.0),
        ("email", "alma.dunmore@office.example", "alma.dunmore@other.example", 0.0),
        ("email", "alma.dunmore@office.example", "alma.dunmore@[...]", 0.3),
        ("email", "alma.dunmore@office.example", "alma.dunmore@office", 0.7),
        ("email", "alma.dunmore@office.example", "Alma Dunmore of office.example", 0.0),
        ("email", "alma.dunmore@office.example", "x.alma.dunmore@office.example", 0.0),
        ("phone", "+1 444-555-0175", "(444) 555-0175", 1.0),
        ("phone", "+1 444-555-0175", "0014445550175", 1.0),
        ("phone", "+1 444-555-0175", "444.555.0175", 1.0),
        ("phone", "190 0000 3898", "+86 190-0000-3898", 1.0),
        ("phone", "+1 444-555-0175", "call 555-0175", 0.7),
        ("phone", "+1 444-555-0175", "the phone that ends in 0175", 0.3),
        ("phone", "+1 444-555-0175", "(312) 555-0175", 0.0),
        ("phone", "+1 444-555-0175", "(444) 555-0176", 0.0),
        ("phone", "+1 444-555-0175", "in 0175 cases", 0.0),
        ("phone", "+1 444-555-0175", "94445550175123", 0.0),
        ("phone", "190 0000 3898", "190 0000 3899", 0.0),
        ("iban", "DE71 9999 9999 9703 8515 88", "DE71999999999703851588", 1.0),
        ("iban", "DE71 9999 9999 9703 8515 88", "9999 9999 9703 8515 88", 0.7),
        ("iban", "DE71 9999 9999 9703 8515 88", "DE71 9999 9999 9703 85xx xx", 0.7),
        ("iban", "DE71 9999 9999 9703 8515 88", "account ****1588", 0.3),
        ("iban", "DE71 9999 9999 9703 8515 88", "DE71 9999 9999", 0.0),
        ("iban", "DE71 9999 9999 9703 8515 88", "DE12 9999 9999 1234 5678 90", 0.0),
        ("card_number", "9999 2677 6247 6033", "9999-2677-6247-6033", 1.0),
        ("card_number", "9999 2677 6247 6033", "**** **** **** 6033", 0.3),
        ("card_number", "9999 2677 6247 6033", "尾号6033", 0.3),
        ("card_number", "9999 2677 6247 6033", "9999 2677 6247", 0.7),
        ("card_number", "9999 2677 6247 6033", "order 6033 of 9999", 0.0),
        ("card_number", "9999 2677 6247 6033", "99992677624760330", 0.0),
        ("national_id", "974-14-1215", "974141215", 1.0),
        ("national_id", "974-14-1215", "the SSN ends in 1215", 0.3),
        ("national_id", "974-14-1215", "974-14-1216", 0.0),
        ("national_id", "974-14-1215", "1974-14-12150", 0.0),
        ("home_address", "141 Canal Walk, Fallowfield", "141 Canal Walk", 0.7),
        ("home_address", "141 Canal Walk, Fallowfield", "14 Canal Walk, Fallowfield", 0.0),
        ("home_address", "141 Canal Walk, Fallowfield", "somewhere in Fallowfield", 0.0),
        ("home_address", "云梦县松涛路153号12室", "松涛路153号12室", 0.7),
        ("home_address", "云梦县松涛路153号12室", "云梦县松涛路15号12室", 0.0),
        ("health", "a slipped disc", "she has a slipped disc", 1.0),
        ("health", "a slipped disc", "recovering from the slipped disc", 1.0),
        ("health", "postnatal depression", "asked about mental health", 0.0),
        ("health", "type 1 diabetes", "type 2 diabetes", 0.0),
        ("hr_case", "a formal warning about unexcused absence", "a warning about unexcused absence", 0.7),
        ("contract_terms", "a 6% rebate above 681 units, renewable yearly", "a 7% rebate above 690 units, renewable yearly", 0.0),
        ("code_name", "Project Heron", "the Heron launch", 0.7),
        ("code_name", "Project Heron", "a heron by the lake", 0.0),
        ("code_name", "SILENT OAK", "silent-oak", 1.0),
        ("code_name", "SILENT OAK", "a silent, old oak", 0.0),
        ("password", "LB2a-V4em3Qcw", "xxLB2a-V4em3Qcwxx", 1.0),
        ("password", "LB2a-V4em3Qcw", "V4em3Qcw", 0.7),
        ("password", "LB2a-V4em3Qcw", "LB2a", 0.0),
        ("password", "!!##!!", "the word is !!##!!", 1.0),
        ("api_key", "sk_live_4b7uHRZBY5ECZ6PFjAgcjJqt", "sk_live_4b7uHRZBY5ECZ6PFjA...", 0.7),
        ("api_key", "sk_live_4b7uHRZBY5ECZ6PFjAgcjJqt", "sk_live_8cQ2mmWXhR3KpLtVbNzDsYfG", 0.0),
    ],
)
def test_levels_follow_how_much_of_a_value_there_is(kind: str, value: str, text: str, expected: float) -> None:
    one = unit(kind, value)
    assert level((one,), one, text) == expected
    assert level((one,), one, f"As I said: {text}; that was it.") == expected
