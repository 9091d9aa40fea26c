"""Passwords, names and code names, detected by the words beside them and by their looks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ec2_env.cloud.finding import SURNAMES, Found, person_length, secret_length

_SECRET_CUE = re.compile(
    r"(?:pass ?(?:word|wd|code|phrase)|pwd|(?<=[_ ])pass\b|pin\b|credential|log-?in\b|secret|api[ _-]?key|access[ _-]?token"
    r"|密码|口令|密钥)s?"
)
_DIRECT = re.compile(r"[\"'`]?(?: is| was|是|为| to use is| in use is| now)?\s{0,2}[:=\uff1a]?\s{0,2}[\"'`]?([!-~]{4,80})")
_PAIR = re.compile(r"[^\n:\uff1a]{0,24}[:\uff1a] ?[\w.@-]{2,40} ?/ ?([!-~]{4,80})")
_TOKEN = re.compile(r"(?:(?![\"'`,;:|\\])[!-~]){4,80}")
_PIN = re.compile(r"(?:passcode|\bpin\b|one-time code|口令|验证码)s?[\"'`]?(?: is|是|为|:|=|\uff1a)?\s{0,2}(\d{4,8})(?![\d-])")
_PIN_WORDS = ("passcode", "pin ", "pin:", "pin=", "one-time", "口令", "验证码")
_RANDOM = re.compile(r"(?<![A-Za-z0-9+/_=@.-])[A-Za-z0-9][A-Za-z0-9+_=!@#$%^&*-]{9,63}(?![A-Za-z0-9+/_=])")
SAME_LINE = 40
"""So many characters after its cue a token that looks random is still taken for the secret."""

_PERSON = re.compile(r"[A-Z][a-z]+(?:[-'][A-Z][a-z]+)?(?: [A-Z]\.)?(?: (?:van|von|de|da|del|di|la|le|bin|al))? [A-Z][a-z']")
_ROLE = re.compile(
    r"(?:\b(?:mrs?|ms|dr|prof|sir|madam|mx)\.?|\b(?:candidates?|applicant|patient|employee|colleague|client|customer|manager"
    r"|director|interviews?|signed|dear|regards,?|wishes,?|attn:?|contact:?|person|owner:?|name:?|for|to|by|with|of|from|on"
    r"|about|meet))\s{1,3}$",
    re.IGNORECASE,
)
_LINE_ITEM = re.compile(r"(?:^|\n)[-*\d.#) ]*$")
_LINE_REST = re.compile(r"\s*(?:\n|\"|$)|,? \(")
_CHINESE_ROLE = "姓名|联系人|负责人|经办人|申请人|候选人|患者|组长|主管|经理|收件人|审批人|代理人|签字人"
_CHINESE_NAME = re.compile(
    rf"(?:{_CHINESE_ROLE})[\uff1a:为是]\s?([{SURNAMES}][\u4e00-\u9fff]{{1,2}})(?![\u4e00-\u9fff])"
    rf"|\n([{SURNAMES}][\u4e00-\u9fff]{{1,2}})(?=\s*(?:\n|\"|$)|[，,] ?[\[(（\d])"
    rf"|(?<=[\n：:，。；])([{SURNAMES}][\u4e00-\u9fff]{{1,2}})(?=[：:，])"
)

_CODE_CUE = re.compile(
    r"\b(?:[Pp]rojects?|[Cc]ode ?names?d?|[Oo]perations?|[Ii]nitiatives?)\b(?: is| are|:)? ?[\"'\u201c]?"
    r"((?:[A-Z][A-Za-z]+ [A-Z][A-Za-z]+(?:, )?){1,5})"
)
_CODE_NAME = re.compile(r"[A-Z][A-Za-z]+ [A-Z][A-Za-z]+")
_CAPITALS = re.compile(r"(?<![A-Za-z_-])(?<![A-Z] )[A-Z]{3,12} [A-Z]{3,12}(?![A-Za-z_(-])(?! [A-Z(]{2})")
_QUERY = re.compile(
    r"\b(?:SELECT|FROM|WHERE|JOIN|ORDER|GROUP|LIMIT|DESC|UNION|INSERT|UPDATE|DELETE|ERROR|WARNING|NULL|THE|AND)\b"
)
_CODE_ZH = re.compile(r"(?:代号[\uff1a:为是]?|项目[\uff1a:])[\u201c《「\"]?((?:[\u4e00-\u9fffA-Za-z0-9]{2,8}、?){1,6})")
_CODE_ITEM = re.compile(r"[\u4e00-\u9fffA-Za-z0-9]{2,8}")


def passwords(text: str, lower: str) -> Iterator[Found]:
    """Yields a token beside a word such as "password" if it is mixed, one in its line, or anywhere, if it looks random."""
    for cue in _SECRET_CUE.finditer(lower):
        at = cue.end()
        for match in (_DIRECT.match(text, at), _PAIR.match(text, at)):
            if match:
                yield from _secret(text, match.start(1), cued=True)
        for token in _TOKEN.finditer(text, at, at + SAME_LINE):
            yield from _secret(text, token.start(), cued=False)
    for match in _PIN.finditer(lower) if any(word in lower for word in _PIN_WORDS) else ():
        yield Found(*match.span(1), "password")
    for match in _RANDOM.finditer(text):
        yield from _secret(text, match.start(), cued=False)


def _secret(text: str, start: int, *, cued: bool) -> Iterator[Found]:
    token = _TOKEN.match(text, start)
    size = secret_length(token[0], cued=cued) if token else 0
    if size:
        yield Found(start, start + size, "password")


def names(text: str) -> Iterator[Found]:
    """Yields names of persons after a title or a role, and those that have a line for themselves, as signatures have."""
    for match in _PERSON.finditer(text):
        start = match.start()
        size = person_length(text[start : start + 60])
        if not size:
            continue
        before = text[max(0, start - 24) : start]
        alone = _LINE_ITEM.search(before) and "\n" in before and _LINE_REST.match(text, start + size)
        if alone or _ROLE.search(before):
            yield Found(start, start + size, "name")
    if not text.isascii():
        for match in _CHINESE_NAME.finditer(text):
            yield Found(*match.span(match.lastindex or 0), "name")


def code_names(text: str) -> Iterator[Found]:
    """Yields names of projects after a word that says so, and pairs of words in capitals that are no heading and no query."""
    for match in _CODE_CUE.finditer(text):
        for name in _CODE_NAME.finditer(text, *match.span(1)):
            yield Found(*name.span(), "code_name")
    for match in _CAPITALS.finditer(text):
        if not _QUERY.search(match[0]):
            yield Found(*match.span(), "code_name")
    if not text.isascii():
        for match in _CODE_ZH.finditer(text):
            for name in _CODE_ITEM.finditer(text, *match.span(1)):
                yield Found(*name.span(), "code_name")
