"""Detecting sensitive values that nobody annotated: patterns with checksums. Used by rule-based redaction, never by the audit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ec2_env.cloud.cues import code_names, names, passwords
from ec2_env.cloud.fields import by_column, by_field
from ec2_env.cloud.finding import Found, unescaped
from ec2_env.cloud.lexicon import health, personnel, terms


class Rule(NamedTuple):
    """One pattern. Group 1, where there is one, is the value.

    `triggers` are lower-case texts of which one has to occur, `hint` is a cheaper pattern that has to occur.
    """

    kind: str
    pattern: re.Pattern[str]
    triggers: tuple[str, ...] = ()
    hint: re.Pattern[str] | None = None
    valid: Callable[[str], int] = len
    """Returns how many characters of the match are the value; 0 refuses it."""


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if char.isdigit()]


def card_length(text: str) -> int:
    """Returns the length of `text` if its digits pass the Luhn check (ISO/IEC 7812-1), else 0."""
    digits = _digits(text)
    doubled = (digit * 2 - 9 * (digit > 4) if index % 2 else digit for index, digit in enumerate(reversed(digits)))
    return len(text) if 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0 else 0


def iban_length(text: str) -> int:
    """Returns the length of the longest leading part of `text` that passes the mod 97 check (ISO 13616), else 0."""
    end = len(text)
    while end >= 15:
        compact = text[:end].replace(" ", "")
        if 15 <= len(compact) <= 34:
            rearranged = compact[4:] + compact[:4]
            if int("".join(str(int(char, 36)) for char in rearranged)) % 97 == 1:
                return end
        end = text.rfind(" ", 0, end)
    return 0


def chinese_id_length(text: str) -> int:
    """Returns 18 if `text` is an identity number whose last character passes the mod 11-2 check (GB 11643), else 0."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    check = sum(digit * weight for digit, weight in zip(_digits(text[:17]), weights, strict=True)) % 11
    return 18 if "10X98765432"[check] == text[17].upper() else 0


def _secret_length(text: str) -> int:
    return len(text.rstrip(_PUNCTUATION))


def _from(first: str) -> str:
    """Returns a pattern for a character of `first` with no letter or digit before it, beginning with a set, which scans fast."""
    return f"{first}(?<![0-9A-Za-z]{first})"


_PUNCTUATION = ".,;:!?)]}\"'\u3002\uff0c\uff1b\uff1a"
_END = r"(?![0-9A-Za-z])"
_DATE = (
    r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?|\d{1,2}[./]\d{1,2}[./]\d{4}"
    r"|\d{1,2} [A-Za-z]{3,9} \d{4}|[A-Za-z]{3,9} \d{1,2}, \d{4}"
)
_STREET = (
    "Street|St|Road|Rd|Lane|Ln|Close|Walk|Grove|Terrace|View|Mews|Rise|Avenue|Ave|Drive|Way|Court|Place|Square|Boulevard|Blvd"
)
_TOWN = r"(?:, [A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20})?)?"
_CODES = "USD|EUR|GBP|CNY|RMB|CHF|JPY"
_CURRENCY = f"{_CODES}|dollars|euros|yuan|万元|亿元|元|美元|欧元"
_LONG_NUMBER = re.compile(r"[0-9][0-9 ()./-]{5,}[0-9]")
_LAST_DIGITS = (
    r"[^\n\d]{0,30}?(?i:ends? (?:in|with)|ending(?: in| with)?|last (?:four|4|digits)(?: digits)?(?: are| is|:)?"
    r"|尾号|[末后][四4]位)"
    r"[^\n\d]{0,6}?(\d{3,6})(?!\d)"
)
_LAST_TRIGGERS = ("end", "last", "尾号", "末", "后四", "后4")

RULES: tuple[Rule, ...] = (
    Rule(
        "email",
        re.compile(
            r"[A-Za-z0-9._%+-](?<![A-Za-z0-9._%+-]{2})[A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}"
        ),
        ("@",),
        valid=lambda text: len(text.rstrip(".-")),
    ),
    Rule(
        "iban",
        re.compile(rf"{_from('[A-Z]')}[A-Z]\d{{2}}(?: ?[0-9A-Z]{{4}}){{2,7}}(?: ?[0-9A-Z]{{1,3}})?{_END}"),
        hint=_LONG_NUMBER,
        valid=iban_length,
    ),
    Rule(
        "card_number",
        re.compile(rf"{_from('[0-9]')}\d{{3}}(?:[ -]?\d{{4}}){{2}}[ -]?\d{{1,7}}{_END}"),
        hint=_LONG_NUMBER,
        valid=card_length,
    ),
    Rule("national_id", re.compile(rf"{_from('[0-9]')}\d{{16}}[\dXx]{_END}"), hint=_LONG_NUMBER, valid=chinese_id_length),
    Rule("national_id", re.compile(rf"{_from('[0-9]')}\d{{2}}-\d{{2}}-\d{{4}}{_END}"), hint=_LONG_NUMBER),
    Rule("phone", re.compile(rf"\+\d{{1,3}}(?:[ .-]?\(?\d{{1,5}}\)?){{2,5}}{_END}"), ("+",)),
    Rule("phone", re.compile(rf"{_from('[(0-9]')}\d{{2,3}}\)?[ .-]{{1,2}}\d{{3}}[.-]\d{{4}}{_END}"), hint=_LONG_NUMBER),
    Rule("phone", re.compile(rf"5(?<![0-9A-Za-z]5)55-01\d\d{_END}"), ("555-01",)),
    Rule("phone", re.compile(rf"1(?<![0-9A-Za-z]1)[3-9]\d[ -]?\d{{4}}[ -]?\d{{4}}{_END}"), hint=_LONG_NUMBER),
    Rule("phone", re.compile(rf"0(?<![0-9A-Za-z]0)\d{{2,3}}-\d{{7,8}}{_END}"), hint=_LONG_NUMBER),
    Rule(
        "api_key",
        re.compile(r"(?<![0-9A-Za-z])(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|AKIA|AIza|key|tok)[-_]?[A-Za-z0-9_-]{16,}"),
        hint=re.compile(r"[A-Za-z0-9_-]{18,}"),
    ),
    Rule(
        "password",
        re.compile(
            r"(?i:password|passwd|passcode|passphrase|pwd|secret|api[ _-]?key|access[ _-]?token|密码|口令|密钥)[\"'`]?"
            r"\s{0,3}(?:[:=\uff1a]|(?<=\s)is(?=\s)|为|是)\s{0,3}[\"'`]?([^\s\"'`,\uff0c\u3002]{4,80})"
        ),
        ("passw", "passc", "passp", "pwd", "secret", "key", "token", "密码", "口令", "密钥"),
        valid=_secret_length,
    ),
    Rule(
        "amount",
        re.compile(r"[$€£¥\uffe5] ?\d[\d,.]*(?: ?(?:k|m|万|亿|million|thousand)\b)?"),
        valid=lambda text: len(text.rstrip(".,")),
    ),
    Rule("amount", re.compile(rf"[0-9](?<![0-9A-Za-z.,][0-9])[\d,.]{{0,18}} ?(?:{_CURRENCY})(?![A-Za-z])")),
    Rule(
        "amount",
        re.compile(rf"{_from('[UEGCRJ]')}(?:{'|'.join(code[1:] for code in _CODES.split('|'))}) ?\d[\d,.]*"),
        valid=_secret_length,
    ),
    Rule(
        "amount",
        re.compile(
            r"[0-9](?<![0-9A-Za-z.,/-][0-9])(?:\d{0,2}(?:[,'\u00a0\u202f ]\d{3}){1,4}[.,]\d{2}|\d{2,11}\.\d{2})"
            r"(?![0-9A-Za-z%]|[.,:/-]\d)"
        ),
        hint=re.compile(r"\d[.,]\d\d(?!\d)"),
    ),
    Rule(
        "email",
        re.compile(
            r"[A-Za-z0-9](?<![A-Za-z0-9]{2})[A-Za-z0-9._+-]{0,40} ?(?:\(at\)|\[at\]| at ) ?[A-Za-z0-9-]{2,40}"
            r"(?: ?(?:\(dot\)|\[dot\]| dot ) ?[A-Za-z]{2,12}){1,3}(?![A-Za-z])"
        ),
        ("at ", "at)", "at]"),
        hint=re.compile(r"\bdot\b"),
    ),
    Rule("iban", re.compile(rf"(?i:account|iban|账户|账号|银行){_LAST_DIGITS}"), _LAST_TRIGGERS),
    Rule("card_number", re.compile(rf"(?i:card|卡){_LAST_DIGITS}"), _LAST_TRIGGERS),
    Rule("phone", re.compile(rf"(?i:phone|mobile|cell|手机|电话|号码){_LAST_DIGITS}"), _LAST_TRIGGERS),
    Rule(
        "birth_date",
        re.compile(rf"(?i:born|birth|dob|出生|生日)[^\n\d]{{0,24}}?((?:{_DATE}))"),
        ("born", "birth", "dob", "出生", "生日"),
    ),
    Rule(
        "home_address",
        re.compile(rf"{_from('[0-9]')}\d{{0,4}} (?:[A-Z][\w'.-]{{0,20}} ){{1,4}}(?:{_STREET})\b{_TOWN}"),
    ),
    Rule(
        "home_address",
        re.compile(
            r"(?:[\u4e00-\u9fff]{2,3}[省市县区]){0,3}[\u4e00-\u9fff]{2,5}?[路街巷道弄]\d{1,5}号(?:\d{1,5}[室栋楼单元]{1,2}){0,3}"
        ),
        hint=re.compile(r"[路街巷道弄][0-9]{1,5}号"),
    ),
)


@lru_cache(maxsize=1_024)
def detect(text: str) -> tuple[Found, ...]:
    """Returns everything in `text` that a rule takes for sensitive; ranges may overlap. Takes time linear in the text."""
    return tuple(found for found in _detect(text) if found.end > found.start)


def _detect(text: str) -> Iterator[Found]:
    text = unescaped(text)
    lower = text.lower()
    if len(lower) != len(text):
        lower = text
    hints: dict[re.Pattern[str], bool] = {}
    for rule in RULES:
        if rule.triggers and not any(trigger in lower for trigger in rule.triggers):
            continue
        if rule.hint is not None:
            if rule.hint not in hints:
                hints[rule.hint] = rule.hint.search(text) is not None
            if not hints[rule.hint]:
                continue
        group = 1 if rule.pattern.groups else 0
        for match in rule.pattern.finditer(text):
            size = rule.valid(match[group])
            if size:
                yield Found(match.start(group), match.start(group) + size, rule.kind)
    yield from by_field(text, lower)
    yield from by_column(text)
    yield from passwords(text, lower)
    yield from names(text)
    yield from code_names(text)
    yield from health(lower)
    yield from personnel(lower)
    yield from terms(lower)
