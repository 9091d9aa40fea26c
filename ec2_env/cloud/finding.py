"""What the parts of detection share: a found range, and what a secret and a person's name look like."""

from __future__ import annotations

import re
from typing import NamedTuple


class Found(NamedTuple):
    """A detected value: half-open character range and kind."""

    start: int
    end: int
    kind: str


MONEY = frozenset({"amount", "price", "salary"})
_ESCAPES = re.compile(r"\\[nrt\"]")
_UNESCAPED = {"\\n": " \n", "\\r": "  ", "\\t": " \t", '\\"': ' "'}

SURNAMES = (
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章云苏潘葛奚范彭郎鲁韦昌马苗凤花方俞任袁柳"
    "鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元卜顾孟平黄和穆萧尹姚邵湛汪祁毛禹狄米贝明臧计伏成戴谈宋茅庞熊"
    "纪舒屈项祝董梁杜阮蓝闵席季麻强贾路娄危江童颜郭梅盛林刁钟徐邱骆高夏蔡田樊胡凌霍虞万支柯管卢莫经房裘缪干解应宗丁宣邓郁单"
    "洪包诸左石崔吉钮龚程嵇邢裴陆荣翁荀羊甄曲家封芮储靳段富巫乌焦巴弓牧隗山谷车侯宓蓬全班仰秋仲伊宫宁仇栾甘厉祖武符刘景詹龙"
)
"""The first characters of the usual Chinese family names, in the order of the Hundred Family Surnames."""
_CHINESE_NAME = re.compile(rf"[{SURNAMES}][\u4e00-\u9fff]{{1,2}}(?![\u4e00-\u9fff])")
_WESTERN_NAME = re.compile(
    r"[A-Z][a-z]+(?:[-'][A-Z][a-z]+)?(?: [A-Z]\.)?(?: (?:van|von|de|da|del|di|la|le|bin|al))?"
    r"(?: [A-Z](?:[a-z]+|')(?:[-']?[A-Z][a-z]+)?){1,2}(?![A-Za-z])"
)
_ORGANIZATION = re.compile(
    r"Team|Group|Office|Department|Support|Service|Project|Company|Limited|Inc|Ltd|Bank|Finance|Sales|Engineering|Human|Board|Desk"
    r"|Software|Logistics|Foods|Energy|Media|Consulting|Holding|Instruments|Textiles|Printing|Components|North|South|East|West|New"
    r"|Street|Road|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
)
_CLASSES = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"), re.compile(r"[!@#$%^&*+=?~]"))
_WORDS = re.compile(r"[A-Za-z]?[a-z]{3,}")
_MIXED_CASE = re.compile(r"[a-z][A-Z]")
_ID = re.compile(
    r"[A-Za-z]{1,12}[-_]?\d{1,8}[a-z]?|[A-Za-z]+(?:-[A-Za-z]+)*-\d{1,8}|\d{4}-?[QqWwHh]\d{1,2}|[\d.,:/-]+[A-Za-z]{0,4}"
    r"|[a-z0-9]+(?:_[a-z0-9]+)+|[A-Z0-9]+(?:_[A-Z0-9]+)+|[a-z]+(?:/[a-z0-9._-]+)+"
)
_NO_SECRET = re.compile(
    r"://|^/|/\w+/|@|\.(?:md|txt|csv|json|conf|py|sh|com|example|internal|org|net)\b|[()<>{}]|^\[|\]$", re.IGNORECASE
)


def unescaped(text: str) -> str:
    """Returns a JSON text with the line ends, tabs and quotes inside its strings as such; every character keeps its place."""
    if text.lstrip()[:1] not in ("{", "[") or "\\" not in text:
        return text
    return _ESCAPES.sub(lambda match: _UNESCAPED[match[0]], text)


def person_length(text: str) -> int:
    """Returns the length of the person's name that `text` begins with, or 0."""
    match = _CHINESE_NAME.match(text) or _WESTERN_NAME.match(text)
    return 0 if match is None or _ORGANIZATION.search(match[0]) else match.end()


def secret_length(text: str, *, cued: bool) -> int:
    """Returns the length of `text` if it looks like a password, else 0.

    Args:
        text: One token.
        cued: Whether something right beside it says that it is a password. Then any token with a digit and a letter will do that
            is no id and no date; without, it has to look random.
    """
    token = text.rstrip(".,;:!?)\"'`")
    if not 4 <= len(token) <= 80 or _NO_SECRET.search(token) or not token.isascii():
        return 0
    classes = [bool(each.search(token)) for each in _CLASSES]
    letters = classes[0] or classes[1]
    if cued:
        mixed = (letters and classes[2]) or (letters and classes[3])
        plain_id = _ID.fullmatch(token) is not None and not (
            token.isalnum() and classes[0] and len(token) >= 4 and "-" not in token
        )
        return len(token) if mixed and not plain_id else 0
    if len(token) < 10 or not (classes[0] and classes[1]) or not (classes[2] or len(_MIXED_CASE.findall(token)) > 1):
        return 0
    known = sum(len(word) for word in _WORDS.findall(token))
    return len(token) if 2 * known < sum(char.isalpha() for char in token) else 0
