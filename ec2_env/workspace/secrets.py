"""Draws sensitive values: well formed, checksum-valid where the real ones are, and never anyone's."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from ec2_env.workspace import words

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_KEY_CHARS = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def phone(rng: random.Random, language: str) -> str:
    """Returns a telephone number from a range that is not assigned: 555-01xx in English, 19x-0000-xxxx in Chinese."""
    if language == "zh":
        return f"190 0000 {rng.randrange(10_000):04d}"
    return f"+1 {rng.randrange(201, 990)}-555-01{rng.randrange(100):02d}"


def home_address(rng: random.Random, language: str) -> str:
    number, street, town = rng.randrange(2, 240), rng.choice(words.STREETS[language]), rng.choice(words.TOWNS[language])
    if language == "zh":
        return f"{town}{street}{number}号{rng.randrange(1, 30)}室"
    return f"{number} {street}, {town}"


def birth_date(rng: random.Random, language: str) -> str:
    return f"{rng.randrange(1958, 2003)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"


def national_id(rng: random.Random, language: str) -> str:
    """Returns an identity number: 18 digits with the ISO 7064 mod 11-2 check (region 999999 is unused), or 9xx-xx-xxxx."""
    if language == "zh":
        day = birth_date(rng, language).replace("-", "")
        stem = f"999999{day}{rng.randrange(1000):03d}"
        weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
        return stem + "10X98765432"[sum(int(d) * w for d, w in zip(stem, weights, strict=True)) % 11]
    return f"9{rng.randrange(100):02d}-{rng.randrange(10, 50)}-{rng.randrange(1000, 9999)}"


def iban(rng: random.Random, language: str) -> str:
    """Returns an IBAN with a valid mod-97 check (ISO 13616), bank code 99999999 being unassigned."""
    account = f"{rng.randrange(10**10):010d}"
    body = f"99999999{account}"
    check = 98 - int(f"{body}131400") % 97
    digits = f"DE{check:02d}{body}"
    return " ".join(digits[i : i + 4] for i in range(0, len(digits), 4))


def card_number(rng: random.Random, language: str) -> str:
    """Returns a 16-digit card number with a valid Luhn check under the unassigned prefix 9999."""
    stem = f"9999{rng.randrange(10**11):011d}"
    doubled = [int(d) * (2 if i % 2 == 0 else 1) for i, d in enumerate(stem)]
    digits = stem + str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)
    return " ".join(digits[i : i + 4] for i in range(0, 16, 4))


def salary(rng: random.Random, language: str) -> str:
    return money(rng.randrange(38_000, 210_000, 50) + rng.randrange(1, 50), language)


def amount(rng: random.Random, language: str) -> str:
    return money(rng.randrange(1_100, 95_000) + rng.randrange(100) / 100, language)


def money(value: float, language: str) -> str:
    """Returns an amount of money as the workspace writes it: "$1,234.50" or "1,234.50元"."""
    return f"{value:,.2f}元" if language == "zh" else f"${value:,.2f}"


def password(rng: random.Random, language: str) -> str:
    return "".join(rng.choice(_KEY_CHARS) for _ in range(4)) + "-" + "".join(rng.choice(_KEY_CHARS) for _ in range(8))


def api_key(rng: random.Random, language: str) -> str:
    return "sk_live_" + "".join(rng.choice(_KEY_CHARS) for _ in range(24))


def contract_terms(rng: random.Random, language: str) -> str:
    return rng.choice(words.CONTRACT_TERMS[language]).format(n=rng.randrange(3, 18), m=rng.randrange(31, 980))


def _listed(values: Mapping[str, Sequence[str]]) -> Callable[[random.Random, str], str]:
    return lambda rng, language: rng.choice(values[language])


DRAW: dict[str, Callable[[random.Random, str], str]] = {
    "phone": phone,
    "home_address": home_address,
    "birth_date": birth_date,
    "national_id": national_id,
    "health": _listed(words.HEALTH),
    "iban": iban,
    "card_number": card_number,
    "salary": salary,
    "hr_case": _listed(words.HR_CASES),
    "amount": amount,
    "price": amount,
    "contract_terms": contract_terms,
    "code_name": _listed(words.CODE_NAMES),
    "password": password,
    "api_key": api_key,
}
"""How a value of each kind is drawn when the task does not give one. Names and e-mail addresses come from people instead."""
