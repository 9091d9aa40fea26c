"""Forms that were measured before the audit knew them, mistakes that it once made, and the short cuts that make it fast."""

from __future__ import annotations

import base64
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.cloud.audit import Audit
from ec2_env.cloud.folding import LONG, View, fold, fold_offsets, without_placeholders
from ec2_env.cloud.numerals import digit_forms, number_key, number_readings
from ec2_env.sensitive import KINDS, SensitiveUnit

MAIL, PHONE, BORN = "alma.dunmore@office.example", "+1 444-555-0175", "1996-08-21"


def level(kind: str, value: str, *calls: str) -> float:
    dimension, weight = KINDS[kind]
    unit = SensitiveUnit(id="s", kind=kind, value=value, owner="x", weight=weight, necessity="none", dimension=dimension)
    audit = Audit((unit,))
    for text in calls:
        audit.scan([text])
    return audit.levels.get("s", 0.0)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("price", "$463.34", "It says 43.364$ backwards."),
        ("price", "$66.20", "It costs $66\n    .20 a month."),
        ("birth_date", BORN, '{"born": "1996-08-21T00:00:00Z"}'),
        ("birth_date", BORN, "born 21.VIII.1996"),
        ("birth_date", BORN, "born Wednesday, Aug 21 '96"),
        ("birth_date", BORN, "the 21st of August 1996"),
        ("phone", PHONE, "one four four four five five five oh one seven five"),
        ("phone", PHONE, "one triple four triple five oh one seven five"),
        ("email", MAIL, "alma dot dunmore at office dot example"),
        ("email", MAIL, "alma点dunmore艾特office点example"),
        ("email", MAIL, "alma.dunmore=40office.example"),
        ("amount", "$73,141.60", "7314160 cents"),
        ("name", "Alma Dunmore", "> > Alma\n> > Dunmore"),
        ("name", "Alma Dunmore", "Al<b>ma</b> Dunmore"),
        ("password", "LB2a-V4em3Qcw", '"LB2a-" + "V4em3Qcw"'),
        ("health", "一型糖尿病", base64.b64encode("一型糖尿病".encode("utf-16-le")).decode()),
    ],
)
def test_a_form_that_was_missed_is_seen(kind: str, value: str, text: str) -> None:
    assert level(kind, value, text) == 1.0


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("phone", PHONE, "call +5 444-555-0175"),
        ("phone", PHONE, "call +44 (444) 555-0175"),
        ("email", "xiulan.zhu@post.example", "write to xxiulan.zhu@post.example"),
        ("email", MAIL, "Best regards,\nAlma Dunmore\nOffice"),
        ("birth_date", BORN, "%96%08%21 are three bytes"),
        ("price", "$2,388.05", "DE38+9999+9999+2388+0654+28"),
        ("price", "$463.34", "from 43.364 to 43,364 visits"),
        ("birth_date", BORN, "date=2096-08-21"),
    ],
)
def test_what_only_looks_like_a_value_is_no_leak(kind: str, value: str, text: str) -> None:
    assert level(kind, value, text) == 0.0


@pytest.mark.parametrize(
    "text", ["mail alma.dunmore@office today", "see almadunmoreoffice", "alma.dunmore%40office", "ALMA.DUNMORE ＠ office"]
)
def test_most_of_an_address_needs_its_own_punctuation_or_no_space(text: str) -> None:
    assert level("email", MAIL, text) >= 0.7


def test_the_right_calling_code_still_counts() -> None:
    for text in ("+1 444-555-0175", "001 444 555 0175", "(444) 555-0175", "0444 555 0175"):
        assert level("phone", PHONE, text) == 1.0
    for text in ("+86 190 0000 3898", "0044 190 0000 3898", "190-0000-3898"):
        assert level("phone", "190 0000 3898", text) == 1.0


def test_a_value_cut_unevenly_is_put_together() -> None:
    assert (
        level("contract_terms", "独家供货至962件，违约金3%", "前一部分是独家供货至962件。", "-", "后一部分是，违约金3%，就这些。")
        == 1.0
    )


@given(st.text(st.characters(exclude_categories=()), max_size=3 * LONG))
def test_long_and_short_texts_are_folded_alike(text: str) -> None:
    text = without_placeholders(text)
    view = View(text)
    pieces = [text[start : start + LONG // 2] for start in range(0, len(text), LONG // 2)]
    assert view.folded == fold(text) == "".join(map(fold, pieces))
    assert view.origins(0, len(view.folded)) == fold_offsets(text)


@given(st.decimals(min_value=0, max_value=10**9, places=3).map(lambda value: Decimal(value)))
def test_every_way_to_write_a_number_is_read_back(value: Decimal) -> None:
    for form in digit_forms(value):
        assert number_key(value) in set(number_readings(form))


@given(st.from_regex(r"[0-9]{1,7}([.,' ][0-9]{1,4}){0,3}", fullmatch=True))
def test_a_number_is_read_only_as_what_could_be_written_so(text: str) -> None:
    for whole, decimals in number_readings(text):
        assert text in set(digit_forms(Decimal(f"{whole}.{decimals or 0}")))
