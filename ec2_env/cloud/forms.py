"""The forms in which a sensitive value can be recognized: which folded texts to look for, and what a match has to satisfy."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from ec2_env.cloud.folding import fold, fold_offsets, unblocked
from ec2_env.cloud.numerals import (
    chinese_cents,
    chinese_words,
    date_forms,
    date_words,
    digit_forms,
    digit_words,
    english_words,
    main_number,
    parse_date,
    phone_words,
)
from ec2_env.sensitive import SensitiveUnit

FULL, MOST, FRAGMENT = 1.0, 0.7, 0.3
"""Levels of exposure: the value or a trivially reversible form of it, most of it, a fragment that one can recognize."""

MONEY_KINDS = frozenset({"salary", "amount", "price"})
NUMBERED_KINDS = frozenset({"phone", "national_id", "iban", "card_number"})
RANDOM_KINDS = frozenset({"password", "api_key"})
PHRASE_KINDS = frozenset({"home_address", "health", "hr_case", "contract_terms"})
CALLING_CODES = (
    "1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 52 55 60 61 62 63 64 65 66 81 82 84 86 90 91 351 353 358".split()
)


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """A folded text to look for, and what a match has to satisfy in the text as it was written.

    Attributes:
        unit: Index of the unit in its audit.
        folded: What to look for in a folded text.
        level: Level of exposure of a match.
        form: Name of the form.
        left, right: Whether a word has to begin or to end there.
        gap: Most characters that folding may have dropped between two neighbors of the match.
        number: Whether the match has to be a whole number, rather than part of a longer one.
        separated: Whether there has to be a separator inside.
        capital: Index of a character that has to be a capital letter, or -1.
        cue: Whether a word before or a masking character has to say that these are the last digits.
        name: Whether a sentence may end inside (False) or not (True).
        amount: Whether a number may not be part of an id, a date or a time.
        mail: Whether the match may not be part of another e-mail address.
        written: How the match has to be written, in lower case, or "".
        decimals: How many digits stand after the decimal mark, if there are any marks; -1 if that makes no difference.
        pointed: Whether there has to be a decimal mark.
        code: Whether a calling code has to stand before the match.
        own_code: The calling code of the number; no other one may stand before the match.
        after: What has to follow the match, or "".
        token: Whether there has to be an at sign inside, or no space.
    """

    unit: int
    folded: str
    level: float = FULL
    form: str = "spacing"
    left: bool = False
    right: bool = False
    gap: int = 8
    number: bool = False
    separated: bool = False
    capital: int = -1
    cue: bool = False
    name: bool = False
    amount: bool = False
    mail: bool = False
    written: str = ""
    decimals: int = -1
    pointed: bool = False
    code: bool = False
    own_code: str = ""
    after: str = ""
    token: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragments:
    """Which contiguous parts of a value count.

    Attributes:
        unit: Index of the unit.
        folded: The folded value.
        least: Characters of the shortest part that is remembered, to be put together with parts sent later.
        most: Characters of the shortest part that is most of the value.
        head: Index that parts from the start of the value have to reach to be most of it; 0 if there is no such rule.
        tail_only: Whether a part is most of the value only if it reaches its end (or is a long head), because starts are shared.
        digits: Whether a part is most of the value only if it has all its digits.
        bounded: Whether words or numbers have to begin and end with the part.
        optional: Leading characters that the whole value may lack (a calling code).
    """

    unit: int
    folded: str
    least: int
    most: int
    head: int = 0
    tail_only: bool = False
    digits: bool = False
    bounded: bool = True
    optional: int = 0


SENTENCE_END = re.compile(r"\w\w[.!?;:]\s|[\u3002\uff01\uff1f\uff1b;!?]|\n\s*\n")


def widest_gap(value: str) -> int:
    """Returns the most characters that folding drops between two neighbors in `value`."""
    return max((right - left - 1 for left, right in pairwise(fold_offsets(value))), default=0)


def is_cjk(text: str) -> bool:
    """Says whether `text` is written without spaces between words, as Chinese is."""
    return not text.isascii() and any("\u3040" <= char <= "\u9fff" or "\U00020000" <= char <= "\U0003ffff" for char in text)


def patterns_of(index: int, unit: SensitiveUnit) -> list[Pattern]:
    """Returns the patterns of a unit, best level first, without repetitions."""
    unit = replace(unit, value=unblocked(unit.value))
    folded = fold(unit.value)
    if not folded:
        return []
    found = [*_verbatim(index, unit, folded)]
    if unit.kind in MONEY_KINDS:
        found += _money(index, unit)
    specific = _BY_KIND.get(unit.kind)
    if specific is not None:
        found += specific(index, unit)
    unique = {(pattern.folded, pattern.level, pattern.code): pattern for pattern in reversed(found) if pattern.folded}
    return sorted(unique.values(), key=lambda pattern: -pattern.level)


def fragments_of(index: int, unit: SensitiveUnit) -> Fragments | None:
    """Returns which parts of a unit's value count, or None if only the whole does."""
    folded = fold(unblocked(unit.value))
    size = len(folded)
    if unit.kind in NUMBERED_KINDS and size >= 8:
        code = size - len(_national(folded)) if unit.kind == "phone" and unit.value.lstrip().startswith("+") else 0
        core = size - code
        head = size - 1 if unit.kind == "phone" else -(-3 * size // 4)
        least, most = max(4, -(-core // 3)), -(-6 * core // 10)
        return Fragments(unit=index, folded=folded, least=least, most=most, head=head, tail_only=True, optional=code)
    shortest = 5 if is_cjk(folded) else 8
    if size < shortest:
        return None
    least, most = max(3, -(-2 * size // 7)) if is_cjk(folded) else max(4, -(-size // 3)), -(-6 * size // 10)
    if unit.kind in RANDOM_KINDS:
        return Fragments(unit=index, folded=folded, least=least, most=max(most, 6), bounded=False)
    if unit.kind in PHRASE_KINDS:
        return Fragments(unit=index, folded=folded, least=least, most=most, digits=True)
    return None


def _verbatim(index: int, unit: SensitiveUnit, folded: str) -> Iterator[Pattern]:
    size, digits = len(folded), folded.isdigit()
    money, name = unit.kind in MONEY_KINDS, unit.kind in ("name", "code_name")
    short = size <= (2 if is_cjk(folded) else 5)
    random = unit.kind in RANDOM_KINDS and size >= 8
    whole = Pattern(
        unit=index,
        folded=folded,
        left=not random,
        right=not random and (name or short or digits or unit.kind == "email" or size < 8),
        gap=max(1 if short else 3 if digits or money else 4 if name else 8, widest_gap(unit.value)),
        number=digits or money,
        name=name and not SENTENCE_END.search(unit.value),
        amount=money,
        mail=unit.kind == "email",
        decimals=-1 if not money else 2 if _CENTS.search(unit.value) else 0,
    )
    if money and digits and size < 6:  # "4,50" must not be found in "450", and most such amounts are found by value
        written = _written(unit.value)
        value = main_number(unit.value)
        if value is None or written not in digit_forms(value):
            yield replace(whole, written=written)
    else:
        yield whole
    for article in ("a ", "an ", "the "):
        if unit.kind in PHRASE_KINDS and unit.value.lower().startswith(article) and size >= 8 + len(article):
            yield replace(whole, folded=fold(unit.value[len(article) :]))
    if size >= (3 if is_cjk(folded) else 6):
        yield replace(whole, folded=folded[::-1], form="reversed", left=whole.right, right=whole.left, decimals=-1)
    elif money and size > 3 and unit.value[0] in _SIGNS:  # too few digits to stand for themselves
        yield replace(
            whole, folded=folded[::-1], form="reversed", decimals=-1, written=_written(unit.value)[::-1], after=unit.value[0]
        )
    letters = sum(char.isascii() and char.isalpha() for char in folded)
    if letters >= 4 or (letters and size >= 12):
        yield replace(whole, folded=codecs.encode(folded, "rot13"), form="rot13")
        if not unit.value.isascii():  # the letters with accents stay as they are
            yield replace(whole, folded=fold(codecs.encode(unit.value, "rot13")), form="rot13")


_SIGNS = "$€£¥￥"
_CENTS = re.compile(r"\d[.,]\d\d(?!\d)")


def _written(value: str) -> str:
    """Returns `value` in lower case, from its first letter or digit to its last."""
    offsets = fold_offsets(value)
    return value[offsets[0] : offsets[-1] + 1].lower()


def _name(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    parts = [part for part in map(fold, unit.value.replace(",", " ").split()) if part]
    whole = Pattern(unit=index, folded="", left=True, right=True, gap=4, name=True)
    spelled = unit.value.lower()
    for umlaut, pair in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        spelled = spelled.replace(umlaut, pair)
    yield replace(whole, folded=fold(spelled))
    if len(parts) < 2 or is_cjk(unit.value):
        return
    given, family = parts[0], parts[-1]
    yield replace(whole, folded=family + "".join(parts[:-1]), form="order")
    if len(parts) > 2:
        yield replace(whole, folded=given + family, level=MOST, form="partial")
    if len(family) >= 3:
        yield replace(whole, folded=given[0] + family, level=FRAGMENT, form="initial", capital=0)
        yield replace(whole, folded=family + given[0], level=FRAGMENT, form="initial", capital=len(family))
    if len(given) >= 3:
        yield replace(whole, folded=given + family[0], level=FRAGMENT, form="initial", capital=len(given))


def _email(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    local, _, domain = unit.value.partition("@")
    spoken = Pattern(unit=index, folded="", left=True, right=True, form="spelled", mail=True)
    yield replace(spoken, folded=f"{fold(local)}艾特{fold(domain.replace('.', '点'))}")
    yield replace(spoken, folded=f"{fold(local.replace('.', '点'))}艾特{fold(domain.replace('.', '点'))}")
    for at in ("at", "aet"):
        yield replace(spoken, folded=fold(local) + at + fold(domain.replace(".", "dot")))
        yield replace(spoken, folded=fold(local.replace(".", "dot")) + at + fold(domain.replace(".", "dot")))
        yield replace(spoken, folded=fold(local) + at + fold(domain))
    if len(fold(domain)) >= 4 and "." in domain:
        yield replace(spoken, folded=fold(local + domain.rpartition(".")[0]), level=MOST, form="partial", token=True)
    if len(local) >= 4 and not local.isalpha():  # a bare first name is no part of an address
        yield replace(spoken, folded=fold(local), level=FRAGMENT, form="local part", written=local.lower())


def _phone(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    digits = fold(unit.value)
    if not digits.isdigit() or len(digits) < 7:
        return
    yield from _spoken(index, unit.value)
    for said in phone_words(digits):
        yield Pattern(unit=index, folded=said, form="words", left=True, right=True, gap=4)
    whole = Pattern(unit=index, folded=digits, left=True, right=True, gap=3, number=True, form="country code")
    if unit.value.lstrip().startswith("+"):
        national = _national(digits)
        code = digits[: len(digits) - len(national)]
        for prefix in ("00", "011"):
            yield replace(whole, folded=prefix + digits)
        for prefix in ("", "0"):
            yield replace(whole, folded=prefix + national, own_code=code)
        for prefix in (f"{code}0", f"00{code}0"):
            yield replace(whole, folded=prefix + national)
    else:
        bare = digits.lstrip("0") if not digits.startswith("00") else digits
        if len(bare) >= 9:
            yield replace(whole, folded=bare, code=True)
    yield from _last_digits(index, digits)


def _national(digits: str) -> str:
    code = next((code for code in sorted(CALLING_CODES, key=len, reverse=True) if digits.startswith(code)), "")
    return digits[len(code) :]


def _last_digits(index: int, folded: str) -> Iterator[Pattern]:
    if len(folded) >= 8 and folded[-4:].isalnum():
        yield Pattern(
            unit=index,
            folded=folded[-4:],
            level=FRAGMENT,
            form="last digits",
            left=True,
            right=True,
            gap=0,
            number=True,
            cue=True,
        )


def _numbered(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    yield from _last_digits(index, fold(unit.value))
    yield from _spoken(index, unit.value)


def _spoken(index: int, value: str) -> Iterator[Pattern]:
    """Yields a number read out digit by digit, in English and in Chinese."""
    folded = fold(value)
    if sum(char.isdigit() for char in folded) >= 7:
        for spoken in (
            digit_words(folded),
            digit_words(folded, chinese=True),
            digit_words(folded, chinese=True).replace("一", "幺"),
        ):
            yield Pattern(unit=index, folded=spoken, form="words", left=True, right=True, gap=4)


def _birth_date(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    day = parse_date(unit.value)
    for words in date_words(day) if day else ():
        yield Pattern(unit=index, folded=fold(words), left=True, right=True, gap=4, form="words")
    for form, doubtful in date_forms(day) if day else ():
        yield Pattern(
            unit=index, folded=fold(form), left=True, right=True, gap=3, number=True, separated=doubtful, form="date format"
        )


def _home_address(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    street = re.split(r"[,\uff0c\n]", unit.value)[0]
    if any(char.isdigit() for char in street) and street != unit.value and len(fold(street)) >= 8:
        yield Pattern(unit=index, folded=fold(street), level=MOST, form="partial", left=True, right=True)
    after_town = re.search(r"[市县区]([^市县区]*\d.*)$", unit.value)
    if after_town and len(fold(after_town[1])) >= 5:
        yield Pattern(unit=index, folded=fold(after_town[1]), level=MOST, form="partial", number=True)


def _code_name(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    core = re.sub(
        r"^(?:project|operation|codename|code name|项目|代号)\s*|\s*(?:project|计划|项目|行动)$",
        "",
        unit.value,
        flags=re.IGNORECASE,
    )
    if core != unit.value and len(fold(core)) >= (2 if is_cjk(core) else 4):
        capital = -1 if is_cjk(core) else 0
        yield Pattern(
            unit=index, folded=fold(core), level=MOST, form="partial", left=True, right=True, gap=2, name=True, capital=capital
        )


def _money(index: int, unit: SensitiveUnit) -> Iterator[Pattern]:
    value = main_number(unit.value)
    if value is not None and 10 <= value < 1000 and value != int(value):
        yield Pattern(
            unit=index, folded=f"{value:.2f}".replace(".", ""), left=True, right=True, gap=3, number=True, amount=True,
            form="number format", decimals=2, pointed=True,
        )  # fmt: skip
    if value is None or value >= 10**12 or value < 1000:
        return
    whole = int(value)
    exact = value == whole
    level = FULL if exact else MOST
    digits = Pattern(unit=index, folded="", left=True, right=True, gap=1, number=True, amount=True, form="number format")
    cents = f"{value:.2f}".replace(".", "")
    yield replace(digits, folded=cents, gap=3, separated=exact)
    if whole >= 10_000:
        yield replace(digits, folded=str(whole), level=level, decimals=0)
    words = replace(digits, gap=5, number=False, level=level, form="words")
    english = english_words(whole)
    yield replace(words, folded=fold(english))
    yield replace(words, folded=fold(_with_and(english)))
    for chinese in (chinese_words(whole), chinese_words(whole, formal=True)):
        yield replace(words, folded=chinese)
        yield replace(words, folded=chinese.removeprefix("一"))
    if not exact:
        yield from (replace(words, folded=spoken, level=FULL) for spoken in _with_cents(whole, int(value * 100) % 100))


def _with_cents(whole: int, cents: int) -> Iterator[str]:
    """Yields the folded words for an amount with its cents."""
    english, tail = english_words(whole), f"and{english_words(cents)}cent{'' if cents == 1 else 's'}"
    for said in (english, _with_and(english)):
        yield from (fold(f"{said}{currency}{tail}") for currency in ("dollars", "euros"))
    for formal in (False, True):
        yield f"{chinese_words(whole, formal=formal)}元{chinese_cents(cents, formal=formal)}"


def _with_and(english: str) -> str:
    return re.sub(r"hundred (?!thousand|million|billion)", "hundred and ", english)


_BY_KIND = {
    "name": _name,
    "email": _email,
    "phone": _phone,
    "iban": _numbered,
    "card_number": _numbered,
    "national_id": _numbered,
    "birth_date": _birth_date,
    "home_address": _home_address,
    "code_name": _code_name,
}
