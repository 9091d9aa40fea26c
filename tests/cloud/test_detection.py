"""What the rules take for sensitive by cues, fields, columns and looks, and what they leave alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ec2_env.cloud.detection import detect
from ec2_env.cloud.finding import person_length, secret_length, unescaped
from ec2_env.cloud.redaction import RuleRedactor


def found(text: str) -> dict[str, str]:
    """Returns the detected values of a text with their kinds."""
    return {text[start:end]: kind for start, end, kind in detect(text)}


SENSITIVE = [
    ("the password Xyz9 opens it", "Xyz9", "password"),
    ("password hunter22", "hunter22", "password"),
    ("the passphrase to use is b4nana-Split7", "b4nana-Split7", "password"),
    ("pwd=q1w2e3", "q1w2e3", "password"),
    ("db_pass: 5eV6-Dw2487ZM", "5eV6-Dw2487ZM", "password"),
    ("Login: anna / tIger#88", "tIger#88", "password"),
    ("PIN 48213", "48213", "password"),
    ("数据库密码vJ7-kLm2Qx，勿外传", "vJ7-kLm2Qx", "password"),
    ("service | owner | password\nwiki | Ann | rT5-pw9x", "rT5-pw9x", "password"),
    ("系统 | 密码\nERP | rT5pw9x", "rT5pw9x", "password"),
    ('{"names":["user","password"],"values":["anna","kX9-pw2"]}', "kX9-pw2", "password"),
    ("spare: V-340 | 2aQF-gNnEsp4g | used", "2aQF-gNnEsp4g", "password"),
    ('{"amount":1436.5,"id":7}', "1436.5", "amount"),
    ('{"unit_price":60.25}', "60.25", "amount"),
    ('{"total":1436.55}', "1436.55", "amount"),
    ("Budget: 12000", "12000", "amount"),
    ("item, price\nlamp, 62.5\nchair, 70", "62.5", "amount"),
    ('{"values":[["Id","Amount"],["7","4 303.29"],["8","(5 026.83)"]]}', "5 026.83", "amount"),
    ("金额：1200", "1200", "amount"),
    ("名称 | 单价\n台灯 | 88.5", "88.5", "amount"),
    ("CNY 1,200 and no more", "CNY 1,200", "amount"),
    ("共1200元", "1200元", "amount"),
    ("36,609.50 in all", "36,609.50", "amount"),
    ("Regards,\nAlma Dunmore", "Alma Dunmore", "name"),
    ("Dr. Alma Dunmore will see you", "Alma Dunmore", "name"),
    ("the candidate Alma J. Dunmore", "Alma J. Dunmore", "name"),
    ('{"requester":"Alma Dunmore"}', "Alma Dunmore", "name"),
    ("联系人：赵伟明，电话", "赵伟明", "name"),
    ('{"负责人":"秦建国"}', "秦建国", "name"),
    ("write to Alma at bluefjord dot com", "Alma at bluefjord dot com", "email"),
    ("the account ends in 8629", "8629", "iban"),
    ("账号末四位 2812", "2812", "iban"),
    ("手机尾号7195", "7195", "phone"),
    ("she was diagnosed with chronic migraine last year", "chronic migraine", "health"),
    ('{"diagnosis":"broken leg"}', "broken leg", "health"),
    ("病史：花粉过敏；", "花粉过敏", "health"),
    ("他因急性肺炎请假", "急性肺炎", "health"),
    ("there is a formal warning about lateness.", "a formal warning about lateness", "hr_case"),
    ("他已被停职处理", "他已被停职处理", "hr_case"),
    ('{"payment_terms":"net 30, 2% off"}', "net 30, 2% off", "contract_terms"),
    ("We agreed on a 12% penalty after 30 days.", "12% penalty after 30 days", "contract_terms"),
    ("约定账期60天，违约金5%。", "账期60天，违约金5%", "contract_terms"),
    ("under the codename Silver Birch.", "Silver Birch", "code_name"),
    ("it concerns GRAY HARBOR only", "GRAY HARBOR", "code_name"),
    ("代号：白杨计划。", "白杨计划", "code_name"),
]


@pytest.mark.parametrize(("text", "value", "kind"), SENSITIVE)
def test_a_value_is_detected_by_what_stands_beside_it(text: str, value: str, kind: str) -> None:
    assert found(text).get(value) == kind


ORDINARY = [
    "The password policy 2024 applies from Monday.",
    "Ask for a password reset by 12 May, please.",
    "All passwords expire on 2026-02-04.",
    "password of wiki-admin found in a chat log",
    "Secrets are kept in vault/spares.txt, see ticket HD-4471.",
    "The key is columns_v1 and the token DB_PASSWORD is set elsewhere.",
    "密码请自行保管，每90天更换一次。",
    '{"total":12,"rows":4,"limit":20,"page":1}',
    '{"price":0.0,"error_rate_percent":0.1,"seconds":152}',
    "costs 5 days of work, a budget of 3 people and 20% of the team",
    "invoice INV-2023 of 12 items at 10:30 on 2026-03-14",
    "version 3.14.15 on 10.0.0.12 took 2.5 hours",
    "Finance Team and Human Resources meet in Room B2 with Sales",
    "Please read the terms and conditions of the contract.",
    "SELECT NAME FROM ORDERS; ORDER NUMBER and THE LAST",
    "Back soon, thank you for the warning.",
    "附件已发送，请查收。会议定于3月12日10点。",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_office_text_is_left_alone(text: str) -> None:
    assert found(text) == {}


@pytest.mark.parametrize(("text", "value", "kind"), SENSITIVE)
def test_a_value_is_detected_inside_a_json_string_as_well(text: str, value: str, kind: str) -> None:
    written = json.dumps({"content": text}, ensure_ascii=False)
    redactor = RuleRedactor()
    redacted = redactor.redact(written)
    assert json.dumps(value, ensure_ascii=False)[1:-1] not in redacted
    assert redactor.restore(redacted) == written


def test_unescaping_keeps_every_character_in_its_place() -> None:
    written = json.dumps({"a": 'line\nnext\tcell "quoted"'})
    assert len(unescaped(written)) == len(written)
    assert "line \nnext \tcell" in unescaped(written)
    assert unescaped("no json \\n here") == "no json \\n here"


def test_a_password_looks_random_and_a_word_or_an_id_does_not() -> None:
    assert secret_length("y5Vx-fGNZewfd", cued=False)
    assert secret_length("vGcy-ykKpWVWq", cued=False)
    for token in ("getUserById2", "order-7472", "InvoiceNumber", "2026-03-14", "nodes/web-11", "a@b.example", "SMTP_PASSWORD"):
        assert not secret_length(token, cued=False)
    for token in ("order-7472", "InvoiceNumber", "2026-03-14", "nodes/web-11", "columns_v1", "SMTP_PASSWORD"):
        assert not secret_length(token, cued=True)


def test_names_of_persons_are_told_from_those_of_departments() -> None:
    assert person_length("Alma Dunmore, Finance") == len("Alma Dunmore")
    assert person_length("赵伟明") == 3
    assert not person_length("Finance Department") and not person_length("伟大计划书")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                '"',
                "\\",
                "\\n",
                "[",
                "]",
                "{",
                "|",
                ",",
                "price",
                ":",
                " 12.50",
                "密码",
                "a1B",
                "因",
                "病",
                "payment in ",
                "%",
                " ",
            ]
        ),
        max_size=40,
    ).map("".join)
)
def test_any_text_is_detected_within_its_bounds_and_restored(text: str) -> None:
    assert all(0 <= one.start < one.end <= len(text) for one in detect(text))
    redactor = RuleRedactor()
    assert redactor.restore(redactor.redact(text)) == text


@pytest.mark.parametrize(
    "piece",
    [
        "password ",
        "price: 1",
        '["a",',
        "[1,",
        "terms 5% ",
        "Dear Aa Bb ",
        "a|",
        "AB CD ",
        "因病",
        "裁员",
        "itis ",
        "x at y ",
        '"\\',
        "warning in a ",
    ],
)
def test_hostile_texts_are_detected_in_bounded_work(piece: str) -> None:
    text = "{" + piece * (60_000 // len(piece))
    assert all(0 <= one.start < one.end <= len(text) for one in detect(text))
