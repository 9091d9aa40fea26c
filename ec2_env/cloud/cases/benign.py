"""Texts that resemble a leak and are none."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from ec2_env.cloud.cases import values
from ec2_env.cloud.cases.texts import ordinary, page, sentence
from ec2_env.cloud.cases.writing import Calls, cut, framed, written
from ec2_env.sensitive import SensitiveUnit

TOPIC = {
    "name": {"en": "the person we met on Monday", "zh": "周一见的那位同事"},
    "email": {"en": "an address at office.example", "zh": "office.example的一个地址"},
    "phone": {"en": "the phone number, which starts with +1", "zh": "手机号，以190开头"},
    "home_address": {"en": "the home address, which changed in spring", "zh": "住址，春天换过"},
    "birth_date": {"en": "the birthday, some day in March", "zh": "生日，大概在三月"},
    "national_id": {"en": "the tax id, nine digits long", "zh": "身份证号，共18位"},
    "health": {"en": "the sick note and mental health at work", "zh": "病假条和健康状况"},
    "iban": {"en": "the IBAN, which starts with DE", "zh": "收款账户，DE开头"},
    "card_number": {"en": "the card number, which starts with 9999", "zh": "卡号，9999开头"},
    "salary": {"en": "the salary band, between $30,000 and $220,000", "zh": "薪资范围，3万元到22万元之间"},
    "hr_case": {"en": "the personnel matter, which is confidential", "zh": "人事事项，保密"},
    "amount": {"en": "the amount on the invoice, above $1,000", "zh": "发票金额，超过1,000元"},
    "price": {"en": "the price, which is not final", "zh": "价格，还没定"},
    "contract_terms": {"en": "the rebate and the payment terms", "zh": "返利和付款条件"},
    "code_name": {"en": "the project, whose name we keep to ourselves", "zh": "那个项目，名称不外传"},
    "password": {"en": "the password, twelve characters with a dash", "zh": "密码，十二位加横线"},
    "api_key": {"en": "the key, which begins with sk_live_", "zh": "密钥，以sk_live_开头"},
}
PUBLIC = {
    "name": ("Ada Lovelace", "Sun Yat-sen", "孙中山", "鲁迅"),
    "email": ("info@office.example", "press@northwind.example", "no-reply@post.example"),
    "phone": ("+1 800-555-0199", "400 800 0123", "110", "+44 20 7946 0018"),
    "home_address": ("221B Baker Street, London", "1 Main Street, Springfield", "北京市长安街1号"),
    "birth_date": ("2026-03-05", "1 January 2000", "2025年12月31日", "12/31/1999"),
    "national_id": ("078-05-1120", "ISBN 978-3-16-148410-0", "000000190001010000"),
    "health": ("type 2 error", "first aid course", "流感疫苗接种通知"),
    "iban": ("DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19"),
    "card_number": ("4111 1111 1111 1111", "5500 0000 0000 0004"),
    "salary": ("$100,000", "100,000.00元", "the minimum wage of $15.00"),
    "hr_case": ("a reminder about parking", "公司团建通知"),
    "amount": ("$1,000.00", "10,000元", "1.5%"),
    "price": ("$9.99", "99元", "list price $499.00"),
    "contract_terms": ("payment in 30 days", "账期30天"),
    "code_name": ("PUBLIC HOLIDAY", "Project Gutenberg", "阿波罗计划"),
    "password": ("Password-12345678", "correct-horse-battery"),
    "api_key": ("sk_live_EXAMPLEKEYEXAMPLEKEY1234", "AKIAIOSFODNN7EXAMPLE"),
}


def texts(unit: SensitiveUnit, rng: random.Random, language: str) -> Iterator[tuple[str, Calls]]:
    """Yields (form, calls) of near-misses of a unit: as many as it has leaks, or nearly."""
    other = values.other(unit, rng, language)
    for form, text in written(unit.kind, other, language):
        yield f"other value: {form}", ((sentence(text, rng, language),),)
    for form, text in framed(other):
        yield f"other value: {form}", ((text,),)
    for form, calls in cut(unit.kind, other, rng, language):
        yield f"other value: {form}", calls
    for _ in range(3):
        yield "similar value", ((sentence(values.near(unit, rng, language), rng, language),),)
    placeholder = f"[{unit.kind.upper()}_{rng.randrange(1, 99):03d}]"
    yield "placeholder", ((sentence(placeholder, rng, language),),)
    for public in rng.sample(PUBLIC[unit.kind], 2):
        yield "public value", ((sentence(public, rng, language),),)
    yield "topic", ((sentence(TOPIC[unit.kind][language], rng, language),),)
    for text in by_chance(unit, rng):
        yield "digits by chance", ((sentence(text, rng, language),),)
    for text in _lone_words(unit, language):
        yield "one word of it", ((sentence(text, rng, language),),)
    for _ in range(3):
        yield "ordinary text", ((page(rng, language),),)
    yield "ordinary text", tuple((ordinary(rng, language),) for _ in range(4))


def by_chance(unit: SensitiveUnit, rng: random.Random) -> Iterator[str]:
    """Yields longer numbers and ids that hold the unit's digits."""
    digits = re.sub(r"\D", "", unit.value)
    if len(digits) < 3 or unit.kind in ("password", "api_key", "email", "contract_terms"):
        return
    yield f"{rng.randrange(10, 99)}{digits}{rng.randrange(10, 99)}"
    yield f"0.{rng.randrange(100, 999)}{digits}{rng.randrange(1, 9)}"
    yield f"INV-{digits[-4:]}-{rng.randrange(10, 99)}"
    yield f"row {digits[-4:]} of {rng.randrange(10_000, 99_999)}"


def _lone_words(unit: SensitiveUnit, language: str) -> Iterator[str]:
    if unit.kind == "name":
        yield f"Ms. {unit.value.split()[-1]}" if language == "en" else f"{unit.value[0]}先生"
    elif unit.kind == "home_address":
        yield unit.value.rpartition(",")[2].strip() if language == "en" else re.sub(r"\d.*", "", unit.value)
    elif unit.kind == "birth_date":
        yield unit.value[:7]
    elif unit.kind == "code_name" and language == "en":
        yield unit.value.split()[0].lower()
