"""Everything that crossed in an episode, prepared so that many candidates can be looked up in it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ec2_env.cloud.folding import PLACEHOLDER, fold
from ec2_env.cloud.inference.numbers import Number, exact_pairs, numbers

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
MAX_P = 0.25
"""Agreement that chance brings about more often than this counts as none."""
_DIGIT_WORDS = {
    **{word: str(digit) for digit, word in enumerate("zero one two three four five six seven eight nine".split())},
    **{word: str(digit) for digit, word in enumerate("零一二三四五六七八九")},
    "oh": "0",
    "〇": "0",
}
_SPOKEN = re.compile(r"\b(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b|[零〇一二三四五六七八九]", re.IGNORECASE)


def surprise(p: float) -> float:
    """Returns how much an agreement says, in nats, that chance brings about with probability `p`; 0 if that is often."""
    return -math.log(max(p, 1e-12)) if p < MAX_P else 0.0


class Grams(NamedTuple):
    """The runs of a given length in the digits, or letters and digits, of a text, and how many there are."""

    found: frozenset[str]
    total: int


class Sent:
    """The texts that crossed, in order.

    Args:
        texts: The texts. Placeholders of redaction in them say nothing.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(PLACEHOLDER.sub(" … ", text) for text in texts)
        self._grams: dict[tuple[int, bool], Grams] = {}

    def __bool__(self) -> bool:
        return any(text.strip() for text in self.texts)

    @cached_property
    def joined(self) -> str:
        """All texts, one after the other."""
        return "\n".join(self.texts)

    @cached_property
    def lower(self) -> str:
        """All texts in lower case."""
        return self.joined.casefold()

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences and lines of all texts."""
        return tuple(part for text in self.texts for part in _SENTENCE.split(text) if part.strip())

    @cached_property
    def words(self) -> Counter[str]:
        """How often each English word occurs, in lower case."""
        return Counter(re.findall(r"[a-z]{2,}", self.lower))

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """Every number, in digits or words."""
        return tuple(number for sentence in self.sentences for number in numbers(sentence))

    def numbers_about(self, cue: re.Pattern[str]) -> tuple[Number, ...]:
        """Returns the numbers of the sentences in which a pattern is found."""
        about = {sentence for sentence in {number.sentence for number in self.numbers} if cue.search(sentence)}
        return tuple(number for number in self.numbers if number.sentence in about)

    @cached_property
    def pairs(self) -> tuple[frozenset[int], int]:
        """The sums and differences of two numbers, in hundredths, and how many there are."""
        return exact_pairs(self.numbers)

    @cached_property
    def runs(self) -> Counter[str]:
        """How often each run of digits stands by itself."""
        return Counter(re.findall(r"(?<![a-z0-9_.,])\d+(?![a-z0-9_]|[.,]\d)", self.lower))

    @cached_property
    def spelled(self) -> tuple[str, ...]:
        """What is read otherwise: initials of lines and words, lone characters, digits in words; and all that backwards."""
        lines = [line.strip() for line in self.joined.splitlines() if line.strip()]
        heads = fold("".join(line[0] for line in lines))
        initials = fold("".join(word[0] for word in self.joined.split()))
        lone = fold("".join(re.findall(r"(?<!\w)\w(?!\w)", self.joined)))
        spoken = "".join(_DIGIT_WORDS[match[0].lower()] for match in _SPOKEN.finditer(self.joined))
        pieces = [text.strip()[-24:] for text in self.texts if len(text.strip()) < 80]
        short = fold("".join(pieces)) if len(pieces) > 1 else ""
        straight = [view for view in (heads, initials, lone, spoken, short) if len(view) > 2]
        return (*straight, *(view[::-1] for view in straight))

    def grams(self, length: int, *, digits: bool) -> Grams:
        """Returns the runs of `length` characters in the folded texts; those of digits only if told so."""
        key = length, digits
        if key not in self._grams:
            parts = re.findall(r"\d+", self._folded) if digits else [self._folded]
            every = [part[i : i + length] for part in parts for i in range(len(part) - length + 1)]
            self._grams[key] = Grams(frozenset(every), len(every))
        return self._grams[key]

    @cached_property
    def _folded(self) -> str:
        return fold("\n".join(self.texts))

    def about(self, owner: str) -> Sent:
        """Returns what was said of somebody: the sentences that mention the owner, each with the one that follows."""
        marks = tuple(mentions(owner))
        picked = [
            " ".join(self.sentences[index : index + 2])
            for index, sentence in enumerate(self.sentences)
            if any(mark in sentence.casefold() for mark in marks)
        ]
        return Sent(picked)


def mentions(owner: str) -> Iterator[str]:
    """Yields what, in lower case, points to an owner: the whole name, and its words of four letters or more."""
    name = owner.casefold().strip()
    if name:
        yield name
        yield from (word for word in re.findall(r"[a-z]{4,}", name) if word not in _FIRM_WORDS)
        if re.fullmatch(r"[\u4e00-\u9fff]{5,}", name):
            yield name[:2]


_FIRM_WORDS = frozenset(
    "logistics components software foods printing textiles instruments consulting media energy office team services".split()
)
