from __future__ import annotations

import base64
import codecs
import html
import json
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.cloud.audit import Audit, Exposure
from ec2_env.cloud.folding import fold, fold_offsets
from ec2_env.cloud.matching import Matcher
from ec2_env.sensitive import KINDS, SensitiveUnit

ENGLISH = {
    "name": "Alma Dunmore",
    "email": "alma.dunmore@office.example",
    "phone": "+1 444-555-0175",
    "home_address": "141 Canal Walk, Fallowfield",
    "birth_date": "1996-08-21",
    "national_id": "974-14-1215",
    "health": "postnatal depression",
    "iban": "DE71 9999 9999 9703 8515 88",
    "card_number": "9999 2677 6247 6033",
    "salary": "$184,881.00",
    "hr_case": "a formal warning about unexcused absence",
    "amount": "$73,141.60",
    "price": "$2,318.05",
    "contract_terms": "a 6% rebate above 681 units, renewable yearly",
    "code_name": "SILENT OAK",
    "password": "LB2a-V4em3Qcw",
    "api_key": "sk_live_4b7uHRZBY5ECZ6PFjAgcjJqt",
}
CHINESE = {
    **ENGLISH,
    "name": "赵伟明",
    "phone": "190 0000 3898",
    "home_address": "云梦县松涛路153号12室",
    "national_id": "999999199502200133",
    "health": "一型糖尿病",
    "salary": "184,881.00元",
    "hr_case": "有争议的降职决定",
    "amount": "73,141.60元",
    "price": "2,318.05元",
    "contract_terms": "超过681件返利6%,每年续签",
    "code_name": "静橡计划",
}


def unit(kind: str, value: str, name: str | None = None) -> SensitiveUnit:
    dimension, weight = KINDS[kind]
    return SensitiveUnit(
        id=name or kind, kind=kind, value=value, owner="someone", weight=weight, necessity="none", dimension=dimension
    )


def units(values: dict[str, str]) -> tuple[SensitiveUnit, ...]:
    return tuple(unit(kind, value) for kind, value in values.items())


EN, ZH = units(ENGLISH), units(CHINESE)
CASES = [pytest.param(every, one, id=f"{language}-{one.kind}") for language, every in (("en", EN), ("zh", ZH)) for one in every]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=120)

SURFACES: dict[str, Callable[[str], str]] = {
    "as it is": lambda value: value,
    "upper case": str.upper,
    "lower case": str.lower,
    "full width": lambda value: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in value),
    "spaced out": " ".join,
    "zero-width characters inside": "\u200b".join,
    "other separators": lambda value: value.replace(" ", "-"),
    "no separators": lambda value: value.replace(" ", "").replace("-", ""),
    "look-alike letters": lambda value: value.translate(str.maketrans("aeo", "аео")),
    "combining marks": lambda value: value.replace("e", "e\u0301"),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 inside more": lambda value: base64.b64encode(f"value={value};".encode()).decode(),
    "base64 twice": lambda value: base64.b64encode(base64.b64encode(value.encode())).decode(),
    "hex": lambda value: value.encode().hex(),
    "spaced hex": lambda value: value.encode().hex(" "),
    "url encoding": urllib.parse.quote,
    "url encoding of every byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "html entities": lambda value: "".join(f"&#{ord(char)};" for char in value),
    "html escape": html.escape,
    "json escapes": lambda value: "".join(f"\\u{ord(char):04x}" for char in value),
    "json text": lambda value: json.dumps({"note": f"first\n{value}\nlast"}),
}


def level(every: tuple[SensitiveUnit, ...], one: SensitiveUnit, text: str) -> float:
    return Audit(every).find(text).get(one.id, 0.0)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("every", "one"), CASES)
def test_a_value_is_found_however_it_is_written(every: tuple[SensitiveUnit, ...], one: SensitiveUnit, surface: str) -> None:
    written = SURFACES[surface](one.value)
    assert level(every, one, f"Please look at this: {written} and answer.") == 1.0
    assert level(every, one, f"请看：{written}，谢谢。") == 1.0


@pytest.mark.parametrize(("every", "one"), CASES)
def test_a_reversed_value_is_found(every: tuple[SensitiveUnit, ...], one: SensitiveUnit) -> None:
    assert level(every, one, f"Backwards: {one.value[::-1]} is what it says.") == 1.0


@pytest.mark.parametrize("kind", ["name", "email", "home_address", "health", "hr_case", "code_name", "password", "api_key"])
def test_a_rotated_value_is_found(kind: str) -> None:
    one = unit(kind, ENGLISH[kind])
    assert level((one,), one, f"Rot13: {codecs.encode(one.value, 'rot13')}.") == 1.0


@settings(max_examples=60)
@pytest.mark.parametrize(("every", "one"), CASES)
@given(before=ANY_TEXT, after=ANY_TEXT)
def test_a_value_is_found_inside_any_text(every: tuple[SensitiveUnit, ...], one: SensitiveUnit, before: str, after: str) -> None:
    text = f"{before}\n{one.value}\n{after}"
    fresh = Audit(every).scan([text])
    found = [exposure for exposure in fresh if exposure.unit == one.id]
    assert [exposure.level for exposure in found] == [1.0]
    assert all(0 <= exposure.span[0] < exposure.span[1] <= len(text) for exposure in fresh)


@settings(max_examples=300)
@given(texts=st.lists(ANY_TEXT, max_size=4))
def test_no_text_makes_the_audit_fail(texts: list[str]) -> None:
    assert all(exposure.level in (0.3, 0.7, 1.0) for exposure in Audit((*EN, *ZH)).scan(texts))


@settings(max_examples=400)
@given(value=ANY_TEXT.filter(str.strip), kind=st.sampled_from(sorted(KINDS)), text=ANY_TEXT)
def test_any_value_of_any_kind_is_found_where_it_stands_by_itself(value: str, kind: str, text: str) -> None:
    one = unit(kind, value)
    assert level((one,), one, text) in (0.0, 0.3, 0.7, 1.0)
    assert level((one,), one, f"see:\n{value}\nthere") == 1.0


@settings(max_examples=200)
@given(text=ANY_TEXT)
def test_folding_twice_changes_nothing_and_offsets_lead_back(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    offsets = fold_offsets(text)
    assert len(offsets) == len(folded)
    assert offsets == sorted(offsets)
    assert "".join(fold(text[index]) for index in dict.fromkeys(offsets)) == folded


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


@settings(max_examples=100)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    number=st.integers(0, 10**6),
    text=st.sampled_from(["Write to {}.", "{}", "{} and {}", "请转给{}。"]),
)
def test_a_placeholder_never_counts(kind: str, number: int, text: str) -> None:
    placeholder = f"[{kind.upper()}_{number:03d}]"
    every = (*EN, unit("phone", f"{number:03d}", "short"), unit("code_name", kind.upper(), "kind"))
    assert Audit(every).find(text.replace("{}", placeholder)) == {}


def test_no_match_reaches_across_a_placeholder() -> None:
    assert level(EN, EN[7], "DE71 9999 [X_1] 8515 88") < 1.0
    assert level(EN, EN[0], "Alma [X_1] Dunmore") == 0.0
    assert level(EN, EN[0], "&lt;Alma [X_1] Dunmore&gt;") == 0.0
    assert level(EN, EN[0], "Al\x1ema Dun%1emore") == 1.0


def test_no_value_is_taken_for_another() -> None:
    for every, others in ((EN, ZH), (ZH, EN)):
        for one in every:
            found = Audit(every).find(f"See {one.value} there.")
            assert {name for name, found_level in found.items() if found_level} <= {
                one.id,
                "name" if one.kind == "email" else one.id,
            }
        assert len(others) == len(every)


def test_a_text_is_counted_in_the_call_that_first_sends_it() -> None:
    audit = Audit(EN)
    assert audit.scan(["You are helpful.", "Who is Alma Dunmore?"]) == [Exposure("name", 1.0, 1, (7, 19), "verbatim")]
    assert audit.scan(["You are helpful.", "Who is Alma Dunmore?", "And alma dunmore again?"]) == []
    assert audit.levels == {"name": 1.0}


def test_a_level_can_only_rise() -> None:
    audit = Audit(EN)
    assert [exposure.level for exposure in audit.scan(["A. Dunmore"])] == [0.3]
    assert [exposure.level for exposure in audit.scan(["B. Dunmore or A. Dunmore"])] == []
    assert [exposure.level for exposure in audit.scan(["Alma Dunmore"])] == [1.0]
    assert [exposure.level for exposure in audit.scan(["A. Dunmore, again"])] == []


@pytest.mark.parametrize("kind", ["name", "email", "phone", "iban", "card_number", "birth_date", "password", "api_key", "health"])
def test_a_value_cut_in_two_is_found_where_the_pieces_meet(kind: str) -> None:
    one = unit(kind, ENGLISH[kind])
    for cut in range(3, len(one.value) - 2):
        left, right = f"The first is {one.value[:cut]}", f"{one.value[cut:]} was the rest."
        within = Audit((one,))
        within.scan([left, right])
        assert within.levels == {one.id: 1.0}
        across = Audit((one,))
        across.scan([left])
        last = across.scan(["You are helpful.", right])
        assert across.levels == {one.id: 1.0}
        assert all(exposure.span[1] <= len(right) for exposure in last)


@pytest.mark.parametrize("kind", ["iban", "card_number", "phone", "password", "api_key"])
def test_a_value_sent_in_two_pieces_inside_other_text_is_found(kind: str) -> None:
    one = unit(kind, ENGLISH[kind])
    half = len(one.value) // 2 + 1
    audit = Audit((one,))
    first = audit.scan([f"The first half of it is {one.value[:half]} I think."])
    assert all(exposure.level < 1.0 for exposure in first)
    audit.scan(["Nothing here."])
    assert [exposure.form for exposure in audit.scan([f"And {one.value[half:]} is the second half."])] == ["split"]
    assert audit.levels == {one.id: 1.0}


def test_other_numbers_of_the_same_range_never_add_up_to_a_value() -> None:
    one = unit("phone", "+1 444-555-0175")
    audit = Audit((one,))
    audit.scan([f"+1 {area}-555-01{last:02d}" for area in (443, 444, 445) for last in range(60)])
    assert audit.levels == {}


@settings(max_examples=60)
@given(
    texts=st.lists(
        st.sampled_from([f"Text {kind}: {value}." for kind, value in ENGLISH.items()] + ["", "nothing", "ends 0175"]), max_size=6
    )
)
def test_scanning_step_by_step_finds_what_scanning_at_once_finds(texts: list[str]) -> None:
    stepwise, at_once = Audit(EN), Audit(EN)
    found = [exposure for index in range(len(texts)) for exposure in stepwise.scan(texts[: index + 1])]
    at_once.scan(texts)
    assert stepwise.levels == at_once.levels
    highest: dict[str, float] = {}
    for exposure in found:
        assert exposure.level > highest.get(exposure.unit, 0.0)
        highest[exposure.unit] = exposure.level
    assert highest == stepwise.levels


def test_a_fork_leaves_the_original_as_it_was() -> None:
    audit = Audit(EN)
    audit.scan(["The first half is DE71 9999 9999 I think."])
    copy = audit.fork()
    copy.scan(["Alma Dunmore", "and 9703 8515 88 is the rest"])
    assert copy.levels == {"iban": 1.0, "name": 1.0}
    assert audit.levels == {}
    audit.scan(["and 9703 8515 88 is the rest"])
    assert audit.levels == {"iban": 1.0}


def test_find_leaves_the_session_as_it_was() -> None:
    audit = Audit(EN)
    assert audit.find("Alma Dunmore") == {"name": 1.0}
    assert audit.levels == {}


def test_an_audit_without_units_finds_nothing() -> None:
    assert Audit(()).scan(["anything", "at all"]) == []


def test_equal_units_share_one_matcher_and_units_may_share_a_value() -> None:
    twins = (unit("name", "Alma Dunmore", "first"), unit("name", "Alma Dunmore", "second"))
    assert Audit(twins)._matcher is Audit(list(twins))._matcher
    assert Audit(twins).find("Alma Dunmore") == {"first": 1.0, "second": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        "1" * 30_000, "9 " * 15_000, "99999999 " * 4_000, "%41" * 10_000, "&#65;" * 6_000, "\\u0041" * 5_000, "QUFB" * 8_000,
        "[" * 30_000, "41" * 15_000, "41 " * 10_000, "1,1" * 10_000, "DE71" * 8_000, "x" * 30_000,
    ],
)  # fmt: skip
def test_hostile_texts_are_scanned_in_bounded_work(text: str) -> None:
    assert isinstance(Matcher((*EN, *ZH)).findings(text).hits, tuple)


def test_spans_lead_back_through_decoding() -> None:
    encoded = base64.b64encode(b"Alma Dunmore").decode()
    text = f"Decode {encoded} please"
    (exposure,) = Audit(EN[:1]).scan([text])
    assert (text[slice(*exposure.span)], exposure.form) == (encoded, "base64")
    escaped = "a&amp;b: Alma&#32;Dunmore!"
    (exposure,) = Audit(EN[:1]).scan([escaped])
    assert (escaped[slice(*exposure.span)], exposure.form) == ("Alma&#32;Dunmore", "html")
