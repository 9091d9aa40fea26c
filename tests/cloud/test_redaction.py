from __future__ import annotations

import base64
import copy
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.actions import InvokeCloud
from ec2_env.cloud.audit import Audit
from ec2_env.cloud.detection import card_length, chinese_id_length, detect, iban_length
from ec2_env.cloud.gateway import CloudSettings
from ec2_env.cloud.payload import Transcript
from ec2_env.cloud.redaction import TYPES, NoRedactor, OracleRedactor, Redactor, RuleRedactor
from ec2_env.errors import ConfigurationError
from ec2_env.models.base import ModelCard
from ec2_env.models.scripted import ScriptedModel
from ec2_env.sensitive import KINDS, SensitiveUnit
from ec2_env.session import Session
from ec2_env.task import build_episode
from ec2_env.testing import play as solve

VALUES = {
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
    "amount": "73,141.60元",
    "code_name": "SILENT OAK",
    "password": "LB2a-V4em3Qcw",
    "api_key": "sk_live_4b7uHRZBY5ECZ6PFjAgcjJqt",
}


def unit(kind: str, value: str, name: str) -> SensitiveUnit:
    dimension, weight = KINDS[kind]
    return SensitiveUnit(id=name, kind=kind, value=value, owner="someone", weight=weight, necessity="none", dimension=dimension)


UNITS = tuple(unit(kind, value, kind) for kind, value in VALUES.items())
ODD = st.text(st.sampled_from("a1 .-[]_\x1e\x1f%!"), min_size=1, max_size=6)
DIRECTORY = (("name", "Alma Dunmore"), ("name", "赵伟明"), ("firm", "Bluefjord Foods"), ("firm", "Bluefjord"))

REDACTORS: dict[str, Callable[[], Redactor]] = {
    "none": NoRedactor,
    "rules": lambda: RuleRedactor(DIRECTORY),
    "oracle": lambda: OracleRedactor(UNITS),
}
PIECES = st.one_of(
    st.sampled_from(
        [*VALUES.values(), "赵伟明", "Bluefjord Foods", "password: hunter22", "born 1 May 1980", "€ 5,000", "555-0123"]
    ),
    st.sampled_from(
        ["[PHONE_001]", "[phone_ 001 ]", "[LITERAL_001]", "[NAME_", "[", "]", "001]", "_001", "[EMAIL 002]", "[FIRM_0001]"]
    ),
    st.text(st.characters(exclude_categories=()), max_size=12),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join) | st.lists(PIECES, max_size=8).map(" ".join)


@settings(max_examples=200)
@pytest.mark.parametrize("name", REDACTORS)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_restoring_gives_back_every_text_of_the_session_exactly(name: str, texts: list[str]) -> None:
    redactor = REDACTORS[name]()
    redacted = [redactor.redact(text) for text in texts]
    assert [redactor.restore(text) for text in redacted] == texts
    again = [redactor.redact(text) for text in texts]
    assert [redactor.restore(text) for text in again] == texts
    assert [redactor.redact(text) for text in texts] == again


@settings(max_examples=150)
@given(values=st.lists(ODD, min_size=1, max_size=4), text=TEXTS)
def test_the_oracle_ends_and_restores_whatever_the_values_are(values: list[str], text: str) -> None:
    redactor = OracleRedactor([unit("password", value, str(index)) for index, value in enumerate(values)])
    text = f"{text}{''.join(values)} {' '.join(values)}"
    assert redactor.restore(redactor.redact(text)) == text


@settings(max_examples=100)
@given(text=TEXTS)
def test_nothing_that_the_oracle_redacted_is_exposed(text: str) -> None:
    redacted = OracleRedactor(UNITS).redact(f"{text} and {text}")
    assert Audit(UNITS).find(redacted) == {}


@pytest.mark.parametrize(
    "write",
    [
        str,
        str.upper,
        " ".join,
        "\u200b".join,
        lambda value: base64.b64encode(value.encode()).decode(),
        lambda value: value.encode().hex(),
        lambda value: "".join(f"%{byte:02x}" for byte in value.encode()),
        lambda value: "".join(f"&#{ord(char)};" for char in value),
        lambda value: value[: len(value) * 3 // 4],
    ],
)
def test_the_oracle_redacts_every_form_that_the_audit_knows(write: Callable[[str], str]) -> None:
    for one in UNITS:
        text = f"First {write(one.value)} and then {write(one.value)} again."
        assert Audit((one,)).find(OracleRedactor((one,)).redact(text)) == {}


@pytest.mark.parametrize("kind", sorted(set(VALUES) - {"health", "code_name", "birth_date", "salary"}))
def test_rules_find_values_that_have_a_pattern(kind: str) -> None:
    redactor = RuleRedactor(DIRECTORY)
    written = f"password: {VALUES[kind]}" if kind == "password" else VALUES[kind]
    assert f"[{kind.upper()}_001]" in redactor.redact(f"Here it is ({written}), as asked.")
    assert VALUES[kind] not in redactor.redact(f"请看：{written}，谢谢。")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call 555-0123 now", "call [PHONE_001] now"),
        ("电话190 0000 3898，谢谢", "电话[PHONE_001]，谢谢"),
        ("+86 138-0000-1111", "[PHONE_001]"),
        ("born on 14 March 1985.", "born on [BIRTH_DATE_001]."),
        ("出生日期：1985年3月14日", "出生日期：[BIRTH_DATE_001]"),
        ("the meeting is on 14 March 1985", "the meeting is on 14 March 1985"),
        ("id 999999199502200133 ok", "id [NATIONAL_ID_001] ok"),
        ("密码：Xk29-abc。", "密码：[PASSWORD_001]。"),
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "[PASSWORD_001]"}'),
        ("the password is not here", "the password is not here"),
        ("the password is blue-42x.", "the password is [PASSWORD_001]."),
        ("pay $1,200, or 300 EUR.", "pay [AMOUNT_001], or [AMOUNT_002]."),
        ("住在云梦县松涛路153号12室。", "住[HOME_ADDRESS_001]。"),
        ("Bluefjord Foods and Bluefjord", "[FIRM_001] and [FIRM_002]"),
        ("ALMA DUNMORE, not Palma Dunmore", "[NAME_001], not Palma Dunmore"),
        ("card 9999 2677 6247 6034", "card 9999 2677 6247 6034"),
        ("invoice INV-2023 of 12 items at 10:30 on 2026-03-14", "invoice INV-2023 of 12 items at 10:30 on 2026-03-14"),
    ],
)
def test_rules_replace_what_they_should_and_leave_the_rest(text: str, expected: str) -> None:
    assert RuleRedactor(DIRECTORY).redact(text) == expected


def test_a_value_keeps_its_placeholder_for_the_session() -> None:
    redactor = RuleRedactor()
    assert redactor.redact("a@b.example, c@d.example") == "[EMAIL_001], [EMAIL_002]"
    assert redactor.redact("c@d.example then a@b.example") == "[EMAIL_002] then [EMAIL_001]"


RETURNING = [
    ("password: Xk29-abc", "the code is Xk29-abc", "the code is [PASSWORD_001]"),
    ("password: Xk29-abc", '{"value":"Xk29-abc","url":"https://a.example/?c=Xk29-abc&x=1"}', None),
    ("passcode = 48213", "type 48213, not 482137", "type [PASSWORD_001], not 482137"),
    ("born on 14 March 1985", "since 14 March 1985 she", "since [BIRTH_DATE_001] she"),
    ("card 9999 2677 6247 6033", "1234 9999 2677 6247 6033", "1234 [CARD_NUMBER_001]"),
    ("密码：Xk29-abc", "门禁代码就是Xk29-abc，别外传。", "门禁代码就是[PASSWORD_001]，别外传。"),
    ("口令是春风十里桃花", "请说春风十里桃花即可", "请说[PASSWORD_001]即可"),
    ("出生日期：1985年3月14日", "他1985年3月14日入职", "他[BIRTH_DATE_001]入职"),
]


@pytest.mark.parametrize(("first", "later", "expected"), RETURNING)
def test_a_hidden_value_is_hidden_when_it_returns_without_its_cue(first: str, later: str, expected: str | None) -> None:
    redactor = RuleRedactor()
    redactor.redact(first)
    redacted = redactor.redact(later)
    assert "Xk29-abc" not in redacted
    assert expected is None or redacted == expected
    assert redactor.restore(redacted) == later


@pytest.mark.parametrize(("first", "later", "expected"), RETURNING)
@pytest.mark.parametrize("copied", [lambda r: r.fork(), copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_copies_of_a_session_hide_what_returns(
    copied: Callable[[RuleRedactor], RuleRedactor], first: str, later: str, expected: str | None
) -> None:
    redactor = RuleRedactor()
    redactor.redact(first)
    assert copied(redactor).redact(later) == redactor.redact(later)
    assert copied(RuleRedactor()).redact(later) == RuleRedactor().redact(later)


def test_a_value_is_hidden_before_its_cue_in_the_same_text_and_in_texts_redacted_earlier() -> None:
    redactor = RuleRedactor()
    assert redactor.redact("try Xk29-abc") == "try Xk29-abc"
    assert redactor.redact("Xk29-abc is it. password: Xk29-abc") == "[PASSWORD_001] is it. password: [PASSWORD_001]"
    assert redactor.redact("try Xk29-abc") == "try [PASSWORD_001]"


def test_a_plain_word_after_a_cue_is_hidden_there_and_nowhere_else() -> None:
    redactor = RuleRedactor()
    assert redactor.redact("The password is required; secret: null") == "The password is [PASSWORD_001]; secret: [PASSWORD_002]"
    assert redactor.redact('{"required":true,"value":null}') == '{"required":true,"value":null}'


def test_values_are_hidden_on_the_edges_of_tokens_however_many_there_are() -> None:
    redactor = RuleRedactor()
    values = [f"Zq{number}#w{number}" for number in range(1_000, 1_200)]
    for value in values:
        redactor.redact(f"password: {value}")
    text = " and ".join(values)
    assert not any(value in redactor.redact(text) for value in values)
    assert redactor.restore(redactor.redact(text)) == text
    inside = "the ab1199x of ab1199"
    redactor.redact("password: ab1199")
    assert redactor.redact(inside) == "the ab1199x of [PASSWORD_201]"


def test_replies_are_restored_whatever_case_and_spacing_the_model_uses() -> None:
    redactor = RuleRedactor()
    redactor.redact("write to a@b.example")
    assert (
        redactor.restore("Write to [email_001], [ EMAIL_001 ] or [Email 001].")
        == "Write to a@b.example, a@b.example or a@b.example."
    )
    assert redactor.restore("[EMAIL_007] and [NOTE_001] are unknown") == "[EMAIL_007] and [NOTE_001] are unknown"


@pytest.mark.parametrize("name", ["rules", "oracle"])
def test_a_fork_numbers_on_by_itself(name: str) -> None:
    redactor = REDACTORS[name]()
    first = redactor.redact("alma.dunmore@office.example")
    copy = redactor.fork()
    redacted = copy.redact("alma.dunmore@office.example and +1 444-555-0175")
    assert redacted.startswith(first)
    assert copy.restore(redacted) == "alma.dunmore@office.example and +1 444-555-0175"
    assert redactor.restore("[PHONE_001]") == "[PHONE_001]"


def test_an_unknown_kind_in_the_directory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown kind 'person'"):
        RuleRedactor([("person", "Alma Dunmore")])
    assert {kind.upper() for kind in KINDS} < set(TYPES)


def test_checksums_tell_real_numbers_from_others() -> None:
    assert card_length("9999 2677 6247 6033") and not card_length("9999 2677 6247 6043")
    assert iban_length("DE71 9999 9999 9703 8515 88 AND") == 27
    assert not iban_length("DE72 9999 9999 9703 8515 88")
    assert chinese_id_length("999999199502200133") and not chinese_id_length("999999199502200134")


@pytest.mark.parametrize(
    "text",
    [
        "1" * 40_000,
        "a" * 40_000,
        "1 " * 20_000,
        "A1 " * 13_000,
        "a@" * 20_000,
        "1 Ab Ab " * 5_000,
        "+1 " * 13_000,
        "路1号" * 13_000,
    ],
)
def test_hostile_texts_are_detected_in_bounded_work(text: str) -> None:
    assert all(0 <= found.start < found.end <= len(text) for found in detect(text))
    redactor = RuleRedactor()
    assert redactor.restore(redactor.redact(text)) == text


CLOUD = ScriptedModel(["ok"], ModelCard(name="cloud", family="o200k", price="gpt-5.4"))


class Broken(NoRedactor):
    """An engine that fails on every text, or on all but the first few, or returns no text."""

    def __init__(self, result: object, after: int = 0) -> None:
        self.result = result
        self.left = after

    def redact(self, text: str) -> str:
        self.left -= 1
        if self.left >= 0:
            return text
        if isinstance(self.result, Exception):
            raise self.result
        return [text] if self.result is list else self.result  # type: ignore[return-value]  # on purpose


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize(
    "result", [ValueError("bad"), RecursionError(), MemoryError(), TimeoutError(), KeyError(1), None, b"raw", 7, list]
)
@pytest.mark.parametrize("request_text", ["", "What now?"])
def test_nothing_crosses_when_an_engine_raises_or_returns_no_text(result: object, after: int, request_text: str) -> None:
    session = Session(build_episode("forward_invoice", 0, "en"), cloud=CLOUD, settings=CloudSettings())
    assert session.gateway is not None
    for step in solve(session.episode).actions[:3]:
        session.call(step, "agent")
    session.gateway._redactor = Broken(result, after)
    for _ in range(2):
        answer = session.invoke(InvokeCloud(request=request_text, mode="act", share="transcript", redact=True))
        assert answer is not None
        assert answer.event.status == "refused"
        assert "redaction failed" in answer.text
        assert (answer.event.sent, session.levels, session.meter.cloud_usd) == ((), {}, 0)


def test_a_session_goes_on_with_an_engine_that_works_again() -> None:
    session = Session(build_episode("forward_invoice", 0, "en"), cloud=CLOUD, settings=CloudSettings())
    assert session.gateway is not None
    session.gateway._redactor = engine = Broken(None, 1)
    request = InvokeCloud(mode="advise", share="transcript", redact=True)
    assert session.invoke(request).event.status == "refused"  # type: ignore[union-attr]  # there is a cloud
    engine.left = 1_000
    assert session.invoke(request).event.status == "ok"  # type: ignore[union-attr]  # there is a cloud


def test_a_value_in_an_earlier_message_is_hidden_by_its_cue_in_a_later_one() -> None:
    transcript = Transcript(RuleRedactor().redact)
    transcript.catch_up([{"role": "user", "content": "try Xk29-abc"}, {"role": "tool", "content": "password: Xk29-abc"}])
    assert transcript.texts == ["try [PASSWORD_001]", "password: [PASSWORD_001]"]
