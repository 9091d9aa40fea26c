"""What words say of a value: those it contains, those about its topic, initials, family names, domains."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from ec2_env.cloud.inference.lexicon import TOPICS
from ec2_env.cloud.inference.sent import Sent
from ec2_env.workspace import words

_COMMON = frozenset("and the for with until about example office above then from are has was its not any all".split())
TOPIC_WEIGHT = 1.2
MOST_TOPIC_WORDS = 3


def shared_words(candidates: Sequence[str], sent: Sent) -> list[float]:
    """Returns for each candidate what of its words crossed, a word counted by how few candidates have it."""
    parts = [_parts(candidate) for candidate in candidates]
    return _weighted(parts, lambda part: _holds(part, sent))


def topic(kind: str, candidates: Sequence[str], sent: Sent) -> list[float]:
    """Returns for each candidate how much was said about its topic."""
    entries = TOPICS.get(kind, ())
    of = [frozenset(index for index, (value, _) in enumerate(entries) if value.search(one.casefold())) for one in candidates]
    shared = Counter(index for found in of for index in found)
    heard = {index: min(len(set(entries[index][1].findall(sent.lower))), MOST_TOPIC_WORDS) for index in shared}
    return [TOPIC_WEIGHT * sum(heard[index] * math.log(len(of) / shared[index]) for index in sorted(found)) for found in of]


def people(kind: str, candidates: Sequence[str], sent: Sent) -> list[float]:
    """Returns for each name or e-mail address what points to it: initials, a title with the family name, pinyin, a firm."""
    patterns = [tuple(_pointers(kind, candidate)) for candidate in candidates]
    return _weighted(patterns, lambda pattern: bool(_compiled(pattern).search(sent.joined)))


def _weighted(features: Sequence[Iterable[str]], present: Callable[[str], bool]) -> list[float]:
    """Returns for each candidate the sum of its features that are present, each by the logarithm of how rare it is."""
    own = [tuple(dict.fromkeys(feature)) for feature in features]
    shared = Counter(one for feature in own for one in feature)
    weight = {one: math.log(len(own) / count) if count < len(own) and present(one) else 0.0 for one, count in shared.items()}
    return [sum(weight[one] for one in feature) for feature in own]


def _parts(value: str) -> list[str]:
    """Returns the stems of the English words of a value, its pairs of Chinese characters, and pairs of words."""
    lower = value.casefold()
    stems = [stem(word) for word in re.findall(r"[a-z]{3,}", lower) if word not in _COMMON]
    pairs = [f"{a} {b}" for a, b in pairwise(stems)]
    han = [run[i : i + 2] for run in re.findall(r"[\u4e00-\u9fff]+", lower) for i in range(len(run) - 1)]
    return [*stems, *pairs, *han]


def stem(word: str) -> str:
    """Returns an English word without its commonest endings."""
    return re.sub(r"(?:ations?|ingly|ings?|edly|ed|ies|ical|al|ic|es|s|y|e)$", "", word) if len(word) > 5 else word


def _holds(part: str, sent: Sent) -> bool:
    if "\u4e00" <= part[0] <= "\u9fff":
        return part in sent.lower
    first, _, second = part.partition(" ")
    if second:
        return bool(_compiled(rf"(?i)\b{first}\w{{0,6}}\W{{1,4}}(?:\w{{1,20}}\W{{1,4}})?{second}").search(sent.joined))
    return part in _stems(tuple(sent.words))


@lru_cache(maxsize=32)
def _stems(found: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(stem, found))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_FAMILY_OF: dict[str, str] = {}
for _char, _latin in words.PINYIN.items():
    _FAMILY_OF[_latin] = _FAMILY_OF.get(_latin, "") + _char
_GIVEN_OF = {latin: name for name, latin in words.GIVEN_PINYIN.items()}
_FIRM_OF = dict(zip((head.lower() for head in words.FIRM_HEAD["en"]), words.FIRM_HEAD["zh"], strict=False))


def _pointers(kind: str, value: str) -> Iterable[str]:
    """Yields regular expressions for what points to a name or an address, over text as it was written."""
    if kind == "email":
        local, _, domain = value.partition("@")
        head = domain.partition(".")[0]
        yield rf"(?i)(?<![a-z]){re.escape(head)}(?![a-z])"
        if head in _FIRM_OF:
            yield re.escape(_FIRM_OF[head])
        names = re.findall(r"[a-z]+", local.lower())
        if len(names) == 2:
            yield from _of_name(*names)
            family, given = _FAMILY_OF.get(names[1]), _GIVEN_OF.get(names[0])
            if family and given:
                yield rf"[{family}]{given}"
                yield given
    elif re.fullmatch(r"[\u4e00-\u9fff]{2,4}", value):
        family, given = value[0], value[1:]
        yield rf"{family}(?:某|总|经理|工|先生|女士|老师|姐|哥|主任|氏)|姓{family}|[小老]{family}"
        yield given
        latin, spoken = words.PINYIN.get(family), words.GIVEN_PINYIN.get(given)
        if latin and spoken:
            yield rf"(?i)(?<![a-z])(?:{spoken}\W?{latin}|{latin}\W?{spoken})(?![a-z])"
            yield rf"(?i)(?<![a-z]){latin}(?![a-z])"
            yield rf"(?<![A-Za-z]){latin[0].upper()}\.?\s?{spoken[0].upper()}[A-Z]?(?![A-Za-z])"
    else:
        parts = value.lower().split()
        if len(parts) >= 2:
            yield from _of_name(parts[0], parts[-1])


def _of_name(given: str, family: str) -> Iterable[str]:
    first, last = given[0].upper(), family[0].upper()
    yield rf"(?i:(?<![a-z]){first}\.\s?(?:[a-z]\.\s?)?{last}\.)|(?<![A-Za-z]){first}\.?{last}(?![A-Za-z])"
    yield rf"(?i)(?<![a-z]){re.escape(given)}(?![a-z])"
    yield rf"(?i)(?<![a-z]){re.escape(family)}(?![a-z])"
    yield rf"(?i:(?:surname|family name|last name)\W+(?:\w+\W+){{0,3}}(?:begin|start)\w*\W+with\W+(?:an?\W+)?){last}\b"
