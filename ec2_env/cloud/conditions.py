"""What stands around a match, and inside it: whether folded text that agrees with a value is the value as it was written."""

from __future__ import annotations

import re
from itertools import pairwise

from ec2_env.cloud.folding import BLOCK, View
from ec2_env.cloud.forms import CALLING_CODES, SENTENCE_END, Pattern, is_cjk

_MASK = re.compile(r"(?:[*xX•·●#…]|(?<!\d)[_.-]|\.\.\.)[\s-]?$")
_CUE = re.compile(
    r"(?i:\b(?:end(?:s|ing)?|last (?:four|4|digits)|digits|card|iban|account|acct|phone|tel|mobile|ssn)\b)"
    r"|尾号|尾数|结尾|末四位|后四位|卡号|账号|账户|电话|手机|证号"
)
_CUE_AFTER = re.compile(r"\s?(?:结尾|收尾)")
_TIME = re.compile(r"T\d\d:?\d\d")
_INDENT = re.compile(r"\n[ \t>#]+")
"""What a new line may begin with: an indent, marks of a comment or of quoted mail."""
_JOINTS = " .-,/\u00a0\u202f()"


def word(text: str, index: int) -> bool:
    """Says whether a letter of an alphabet or a digit stands at `index`: a neighbor that makes a match part of a longer word."""
    return 0 <= index < len(text) and text[index].isalnum() and not is_cjk(text[index]) and not _masking(text, index)


def _letter(text: str, index: int) -> bool:
    return index >= 0 and text[index].isalnum() and not is_cjk(text[index])


def _masking(text: str, index: int) -> bool:
    """Says whether the letter at `index` is one of several x that stand for digits."""
    return text[index] in "xX" and any(text[near : near + 1] in ("x", "X") for near in (index - 1, index + 1) if near >= 0)


_CODES = frozenset((*CALLING_CODES, *(f"00{code}" for code in CALLING_CODES)))


def satisfied(pattern: Pattern, view: View, start: int, end: int) -> tuple[int, int] | None:
    """Returns the range in the text of the view that the match `start`, `end` comes from, or None if the match does not count."""
    if not pattern.code:
        return _satisfied(pattern, view, start, end)
    begins = (start - size for size in range(1, 6) if view.folded[max(0, start - size) : start] in _CODES)
    ranges = (_satisfied(pattern, view, begin, end) for begin in begins if begin >= 0)
    return next((found for found in ranges if found is not None), None)


def _satisfied(pattern: Pattern, view: View, start: int, end: int) -> tuple[int, int] | None:
    text, lead = view.text, min(start, 1)
    offsets = view.origins(start - lead, end + 1)
    size = end - start
    first, last, after = offsets[lead], offsets[lead + size - 1], offsets[lead + size :]
    if (lead and offsets[0] == first) or after == [last]:
        return None  # begins or ends inside a character that folds to several
    offsets = offsets[lead : lead + size]
    if not _stands_alone(pattern, text, first, last, end - start) or not tight(text, offsets, pattern.gap):
        return None
    if pattern.separated and (last - first + 1 == end - start or "%" in text[first:last]):
        return None
    if pattern.decimals >= 0 and not _decimals_agree(pattern, text, offsets):
        return None
    if pattern.capital >= 0 and not text[offsets[pattern.capital]].isupper():
        return None
    if pattern.name and SENTENCE_END.search(text, first, last):
        return None
    if not text.startswith(pattern.after, last + 1) or (pattern.own_code and other_code(text, first, pattern.own_code)):
        return None
    if pattern.token and not _AT.search(text, first, last) and _SPACE.search(text, first, last):
        return None
    if pattern.written and text[first : last + 1].lower() != pattern.written:
        return None
    return first, last + 1


_AT = re.compile("[@\uff20]")
_SPACE = re.compile(r"\s")
_CALLING_CODE = re.compile(r"[+\uff0b](\d{1,3})[\s.()/-]{0,3}$")


def other_code(text: str, first: int, code: str) -> bool:
    """Says whether a calling code other than `code` stands before `first`."""
    before = _CALLING_CODE.search(text, max(0, first - 8), first)
    return before is not None and before[1] != code


_POINT = re.compile(r"[.,\uff0e\uff0c]")
_POINT_ONLY = re.compile(r"[.,\uff0e\uff0c]{1,3}|\s[.,]\s")


def _decimals_agree(pattern: Pattern, text: str, offsets: list[int]) -> bool:
    """Says whether the marks between the digits allow their last two to be the cents, or forbid it where there are none."""
    digits = [offset for offset in offsets if text[offset].isdigit()]
    gaps = [text[left + 1 : right] for left, right in pairwise(digits)]
    cents = gaps[-2] if len(gaps) > 1 else ""
    if pattern.pointed:
        return bool(_POINT_ONLY.fullmatch("".join(filter(str.isprintable, _INDENT.sub("", cents)))))
    if pattern.decimals == 0:
        return not _POINT.search(cents) or all(map(_POINT.search, gaps))
    return bool(_POINT.search(cents)) or not any(map(_POINT.search, gaps))


def _stands_alone(pattern: Pattern, text: str, first: int, last: int, size: int) -> bool:
    """Says whether what stands before and after the match allows it to count."""
    if pattern.left and not is_cjk(text[first]) and (word(text, first - 1) or (pattern.mail and _letter(text, first - 1))):
        return False
    if pattern.right and not is_cjk(text[last]) and word(text, last + 1) and not (pattern.number and _TIME.match(text, last + 1)):
        return False
    if pattern.number and inside_number(text, first, last, grouped=size < 9):
        return False
    if pattern.amount and not (free_left(text, first) and free_right(text, last + 1)):
        return False
    if pattern.mail and not _own_address(text, first, last):
        return False
    if not pattern.cue:
        return True
    before = _MASK.search(text, max(0, first - 4), first) or _CUE.search(text, max(0, first - 32), first)
    return bool(before or _CUE_AFTER.match(text, last + 1))


def _own_address(text: str, first: int, last: int) -> bool:
    """Says whether no longer local part begins before the match, and no other domain follows it."""
    if first > 1 and text[first - 1] in "._+-" and text[first - 2].isalnum():
        return False
    return not (text[last + 1 : last + 2] == "@" and text[last + 2 : last + 3].isalnum())


def tight(text: str, offsets: list[int], gap: int) -> bool:
    """Says whether at most `gap` visible characters were dropped between neighbors; invisible ones and indents do not count."""
    for left, right in pairwise(offsets):
        if right - left > 1 + gap:
            between = _INDENT.sub("\n", text[left + 1 : right])
            if sum(char.isprintable() or char in "\n\t" for char in between) > gap:
                return False
    return True


def inside_number(text: str, first: int, last: int, *, grouped: bool) -> bool:
    """Says whether the digits go on beyond the match, directly or (for short numbers) after one separator."""
    if text[first].isdigit():
        if first and text[first - 1].isdigit():
            return True
        before = text[max(0, first - 3) : first].replace(")", "")
        if grouped and len(before) > 1 and before[-1] in _JOINTS and before[-2].isdigit():
            return True
    if text[last].isdigit():
        if text[last + 1 : last + 2].isdigit():
            return True
        if grouped and text[last + 1 : last + 2] in _JOINTS and text[last + 2 : last + 3].isdigit():
            return True
    return False


_ATTACHED = re.compile(r"(?i:usd|eur|gbp|cny|rmb|jpy|chf|us|k|m|mn|w|pa)(?![A-Za-z0-9])")
_ATTACHED_BEFORE = re.compile(r"(?i:usd|eur|gbp|cny|rmb|jpy|chf|us)$")


def free_left(text: str, start: int) -> bool:
    """Says whether a number may begin here: not inside a word, an id such as INV-4321, a date or a time."""
    before = text[start - 1] if start else " "
    if before.isalpha() and not is_cjk(before):
        return bool(_ATTACHED_BEFORE.search(text, max(0, start - 3), start))
    return not before.isdigit() and not (
        before in "-/:_#." and start > 1 and text[start - 2].isalnum() and text[start - 2] != BLOCK
    )


def free_right(text: str, end: int) -> bool:
    after = text[end : end + 1]
    if after.isalpha() and not is_cjk(after):
        return bool(_ATTACHED.match(text, end))
    return not (after and after in "-/:" and text[end + 1 : end + 2].isdigit())
