from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from ec2_env.cloud import cases
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.cases import Case
from ec2_env.sensitive import KINDS

SEED = 7
LEAKS = list(cases.leaks(SEED, worlds=1))
UNLISTED = list(cases.unlisted(SEED, worlds=1))
NEAR_MISSES = list(cases.near_misses(SEED, worlds=1))


def levels(case: Case) -> dict[str, float]:
    audit = Audit(case.units)
    for texts in case.calls:
        audit.scan(texts)
    return audit.levels


def missed(case: Case) -> bool:
    """Says whether the audit is known to miss a case: two characters backwards are too short to stand for themselves."""
    return case.form == "reversed" and len(case.unit.value) < 3


def test_there_are_five_thousand_leaks_and_as_many_near_misses() -> None:
    leaks, near_misses = list(cases.leaks(SEED)), list(cases.near_misses(SEED))
    assert len(near_misses) >= len(leaks) >= 5_000
    assert {case.unit.kind for case in leaks} == {case.unit.kind for case in near_misses} == set(KINDS)
    for level, least in ((1.0, 4_000), (0.7, 100), (0.3, 100)):
        for language in cases.LANGUAGES:
            assert sum(case.level == level and case.language == language for case in leaks) >= least // 4
        assert sum(case.level == level for case in leaks) >= least


def test_a_seed_always_gives_the_same_cases_and_another_seed_others() -> None:
    assert list(cases.leaks(SEED, worlds=1)) == LEAKS
    other = list(cases.leaks(SEED + 1, worlds=1))
    assert Counter(case.form.partition(":")[0] for case in other).keys() >= {"base64", "split", "zero width", "words", "date"}
    assert len({case.calls for case in other} & {case.calls for case in LEAKS}) < len(LEAKS) / 20


@pytest.mark.parametrize("level", [1.0, 0.7, 0.3])
def test_the_audit_gives_leaks_their_level(level: float) -> None:
    wrong = [
        (case.form, case.calls, levels(case).get(case.target, 0.0))
        for case in LEAKS
        if case.level == level and not missed(case) and levels(case).get(case.target, 0.0) != level
    ]
    assert wrong == []


def test_a_leak_of_one_value_is_none_of_another() -> None:
    wrong = [
        (case.form, case.calls, found)
        for case in LEAKS
        if case.unit.kind != "email" and (found := levels(case).keys() - {case.target})
    ]
    assert wrong == []


def test_near_misses_give_nothing_away() -> None:
    wrong = [(case.form, case.calls, found) for case in NEAR_MISSES if (found := levels(case))]
    assert len(wrong) <= 0.002 * len(NEAR_MISSES), wrong


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("181,500 EUR", "a license at $1,815.00 a year"),
        ("$88,767.76", "a total of 8,876,776 visits"),
        ("$88,767.76", "887,677.6 units"),
        ("168,000元", "目录价为每年1,680.00元"),
        ("$463.34", "rooms 463, 34 and 35"),
    ],
)
def test_marks_between_digits_say_which_amount_it_is(value: str, text: str) -> None:
    (unit,) = (unit for unit in LEAKS[0].units if unit.kind == "amount")
    assert Audit([msgspec.structs.replace(unit, value=value)]).find(text) == {}


def test_forms_that_were_measured_first_and_then_learned_are_seen_of_nearly_every_value() -> None:
    seen = [(case.form, level(case)) for case in UNLISTED if case.form.startswith("mended")]
    assert sum(found == 1.0 for _, found in seen) >= 0.98 * len(seen), [form for form, found in seen if found < 1.0]


def test_forms_that_nothing_was_made_for_are_measured_as_well() -> None:
    left = {case.form for case in UNLISTED if case.form.startswith("left")}
    assert len(left) > 25
    assert {"left: hexdump", "left: base85"} <= {case.form for case in UNLISTED if level(case) == 0.0}


def test_other_values_in_the_unlisted_forms_give_nothing_away() -> None:
    wrong = [(case.form, case.calls, found) for case in cases.unlisted(SEED, worlds=1, other=True) if (found := levels(case))]
    assert len(wrong) <= 0.002 * len(UNLISTED), wrong


def level(case: Case) -> float:
    return levels(case).get(case.target, 0.0)
