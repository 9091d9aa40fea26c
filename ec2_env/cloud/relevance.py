"""Minimisation by a stated rule: which parts of a transcript a request needs, judged by nothing but the transcript's own words.

The rule knows neither the task's solution nor what is sensitive. Of an episode, `share="relevant"` sends

1. the instruction, the advice and plans that came from the cloud, every call that was made, and the results of the last `TURNS`
   calls in full;
2. of each earlier result the records that are linked to the instruction, the request or the arguments of the last calls. A record
   is a row of a list or a table, a paragraph of a long text, or what is left of an object without these. It is linked if it
   shares a telling term. Long arguments of earlier calls are treated alike;
3. for everything else a stub that says what was left out and how much.

A term is a word of three letters or more (but no function word), a number, an id, or two neighboring Chinese characters. It tells
something if it stands in at most a `RARE` share of the earlier records, or in at most `FEW`. If what is kept is longer than
`MAX_CHARS`, the oldest results are left out whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

import msgspec

from ec2_env.models.base import Message
from ec2_env.prompts import LEFT_OUT

TURNS = 2
"""Calls whose results cross in full."""
FEW = 3
RARE = 0.2
"""A term tells something if it stands in at most `FEW` earlier records, or in at most this share of them."""
LONG = 600
"""Characters of a text from which it is judged paragraph by paragraph; shorter ones belong to their record."""
MAX_CHARS = 16_000
"""Characters of earlier results that may cross at most."""

_WORD = re.compile(r"[A-Za-z0-9À-ɏ]{3,}(?![A-Za-z0-9À-ɏ]|-\d)")
"""Words and numbers; of an id such as mail-1042 only the number, because its word stands in every row."""
_NUMBER = re.compile(r"\d[\d.,:/-]*\d")
_CHINESE = re.compile(r"[㐀-鿿]{2,}")
_FUNCTION_WORDS = frozenset(
    "the and for with from into that this these those are was were has have had will would can could may not but all any each "
    "our your you his her its their who what when which where how than then there here out about under over after before".split()
)
_PARAGRAPH = re.compile(r"\n\s*\n")
_ROW = re.compile(r"(?<=\}),(?=\{)")
"""Where rows of a list meet in JSON text that cannot be read, because redaction has put placeholders for its numbers."""


@lru_cache(maxsize=20_000)
def terms_of(text: str) -> frozenset[str]:
    """Returns the terms of a text, in lower case."""
    text = text.lower()
    found = set(_WORD.findall(text))
    found.update(_NUMBER.findall(text))
    for run in _CHINESE.findall(text):
        found.update(map("".join, pairwise(run)))
    return frozenset(found) - _FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class Part:
    """Records that can be left out one by one: the rows of a list, or the paragraphs of a text.

    Attributes:
        key: Where they stand in their object; None if they are the whole result.
        records: Rows as JSON values, or paragraphs.
        terms: Of each record.
        table: Whether the first row is the heading of the others.
    """

    key: str | None
    records: tuple[Any, ...]
    terms: tuple[frozenset[str], ...]
    table: bool = False

    @property
    def rows(self) -> str:
        return "paragraphs" if self.records and isinstance(self.records[0], str) else "rows"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text that is JSON or prose, taken apart.

    Attributes:
        head: The object without its parts; None if the text is a list or prose.
        terms: Of the head's values.
        parts: What can be left out in pieces.
        glue: What joins the pieces of a text that is no JSON.
    """

    head: dict[str, Any] | None
    terms: frozenset[str]
    parts: tuple[Part, ...] = field(default=())
    glue: str = ""

    def records(self) -> Iterator[frozenset[str]]:
        """Yields the terms of each record: the head first, then those of the parts."""
        yield self.terms
        for part in self.parts:
            yield from part.terms


@lru_cache(maxsize=5_000)
def parsed(text: str) -> Parsed:
    """Returns a tool's result, or a call's arguments, taken apart. A text is taken apart once, however often it is asked for."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = text
    if isinstance(value, dict):
        return _of_object(value)
    if isinstance(value, list):
        return Parsed(None, frozenset(), (_rows(None, value),))
    glue, pieces = ("\n\n", _PARAGRAPH.split(text)) if "\n" in text else (",", _ROW.split(text))
    return Parsed(None, frozenset(), (Part(None, tuple(pieces), tuple(map(terms_of, pieces))),), glue)


def _of_object(value: dict[str, Any]) -> Parsed:
    parts = []
    for key, item in value.items():
        if isinstance(item, list) and len(item) > 1 and isinstance(item[0], dict | list):
            parts.append(_rows(key, item))
        elif isinstance(item, str) and len(item) > LONG:
            pieces = _PARAGRAPH.split(item)
            parts.append(Part(key, tuple(pieces), tuple(map(terms_of, pieces))))
    taken = {part.key for part in parts}
    terms = frozenset[str]().union(*(_value_terms(item) for key, item in value.items() if key not in taken))
    return Parsed(value, terms, tuple(parts))


def _rows(key: str | None, items: list[Any]) -> Part:
    table = len(items) > 1 and all(isinstance(item, list) for item in items)
    return Part(key, tuple(items), tuple(map(_value_terms, items)), table)


def _value_terms(value: Any) -> frozenset[str]:
    """Returns the terms of a JSON value, without the names of its fields."""
    if isinstance(value, str):
        return terms_of(value)
    if isinstance(value, dict):
        return frozenset[str]().union(*map(_value_terms, value.values()))
    if isinstance(value, list):
        return frozenset[str]().union(*map(_value_terms, value))
    return terms_of(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else frozenset()


def relevant(messages: Sequence[Message], asked: str = "") -> list[Message]:
    """Returns a transcript reduced to what a request needs, one message for each.

    Args:
        messages: The instruction, then the turns, as they may cross.
        asked: The agent's own words.
    """
    results = [i for i, message in enumerate(messages) if message["role"] == "tool"]
    old = results[:-TURNS] if len(results) > TURNS else []
    if not old:
        return list(messages)
    recent = old[-1] + 1
    telling = _telling(messages, old, recent, asked)
    names = {call["id"]: call["function"]["name"] for message in messages[:recent] for call in message.get("tool_calls") or ()}
    left, kept = MAX_CHARS, list(messages)
    for i in range(recent - 1, 0, -1):
        message = messages[i]
        if message["role"] == "tool":
            text = str(message["content"])
            short = _reduced(text, telling) or _stub(names.get(message["tool_call_id"], "a tool"), text)
            if len(short) > left:
                short = _stub(names.get(message["tool_call_id"], "a tool"), text)
            left -= len(short)
            kept[i] = message if short == text else {**message, "content": short}
        elif message.get("tool_calls"):
            kept[i] = _shorter_calls(message, telling)
    return kept


def _telling(messages: Sequence[Message], old: Sequence[int], recent: int, asked: str) -> frozenset[str]:
    """Returns the terms that link: those of the request and its surroundings that stand in few of the earlier records."""
    wanted = terms_of(asked) | terms_of(str(messages[0]["content"]))
    for message in messages[recent:]:
        for call in message.get("tool_calls") or ():
            wanted = wanted.union(*parsed(call["function"]["arguments"]).records())
    hits = [record & wanted for i in old for record in parsed(str(messages[i]["content"])).records()]
    most = max(FEW, RARE * len(hits))
    return frozenset(term for term, count in Counter(chain.from_iterable(hits)).items() if count <= most)


def _reduced(text: str, telling: frozenset[str]) -> str:
    """Returns the linked records of a text, in its own form; "" if there are none, the text itself if nothing is left out."""
    whole = parsed(text)
    kept = [[not telling.isdisjoint(terms) for terms in part.terms] for part in whole.parts]
    if not any(map(any, kept)) and telling.isdisjoint(whole.terms):
        return ""
    if all(map(all, kept)):
        return text
    if whole.head is None:
        part, keep = whole.parts[0], kept[0]
        pieces = _kept(part, keep)
        return whole.glue.join(pieces) if whole.glue else msgspec.json.encode(pieces).decode()
    shown = dict(whole.head)
    for part, keep in zip(whole.parts, kept, strict=True):
        assert part.key is not None
        pieces = _kept(part, keep)
        shown[part.key] = "\n\n".join(pieces) if part.rows == "paragraphs" else pieces
    return msgspec.json.encode(shown).decode()


def _kept(part: Part, keep: Sequence[bool]) -> list[Any]:
    """Returns the records that stay and a stub for the others."""
    flags = [True, *keep[1:]] if part.table and any(keep) else keep
    pieces = [record for record, stays in zip(part.records, flags, strict=True) if stays]
    gone = len(part.records) - len(pieces)
    return [*pieces, f"[{gone} of {len(part.records)} {part.rows} {LEFT_OUT}"] if gone else pieces


def _stub(name: str, text: str) -> str:
    """Returns what stands for a whole result."""
    rows = sum(len(part.records) for part in parsed(text).parts if part.rows == "rows")
    return f"[result of {name}: {f'{rows} rows' if rows else f'{len(text)} characters'}, {LEFT_OUT}"


def _shorter_calls(message: Message, telling: frozenset[str]) -> Message:
    """Returns a message whose calls have their long arguments reduced."""
    calls = []
    for call in message["tool_calls"]:
        text = call["function"]["arguments"]
        if len(text) > LONG and (whole := parsed(text)).head is not None and whole.parts:
            shown = dict(whole.head)
            for part in whole.parts:
                assert part.key is not None
                pieces = _kept(part, [not telling.isdisjoint(terms) for terms in part.terms])
                shown[part.key] = "\n\n".join(pieces) if part.rows == "paragraphs" else pieces
            call = {**call, "function": {**call["function"], "arguments": msgspec.json.encode(shown).decode()}}
        calls.append(call)
    return {**message, "tool_calls": calls}
