"""Which parts of a text are to be seen: sensitive values by level, and placeholders with what they hid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from ec2_env.cloud.matching import Matcher
from ec2_env.cloud.placeholders import TYPES
from ec2_env.trace import CloudCall, Exposed, ToolRan, Trajectory

MAX_SEARCHED = 200_000
"""Characters up to which a text is searched for values that crossed before."""
PLACEHOLDER = re.compile(rf'"?\[(?:{"|".join(sorted(TYPES, key=len, reverse=True))})_\d{{3,9}}\]"?', re.ASCII)
"""A placeholder with the quotation marks around it: a number that was hidden in JSON got them."""


class Mark(NamedTuple):
    """A range of a text, half-open, and what is said of it: plain data."""

    start: int
    end: int
    about: dict[str, Any]


def pieces(text: str, marks: Iterable[Mark]) -> list[Any]:
    """Returns a text in pieces, in order: plain ones as texts, marked ones as `{"t": text, "m": [what is said of it]}`.

    Marks may overlap: a piece bears all that hold it. The pieces together are the text.
    """
    kept = [mark for mark in marks if 0 <= mark.start < mark.end <= len(text)]
    cuts = sorted({0, len(text), *(mark.start for mark in kept), *(mark.end for mark in kept)})
    found: list[Any] = []
    for start, end in pairwise(cuts):
        about = [mark.about for mark in kept if mark.start <= start and end <= mark.end]
        found.append({"t": text[start:end], "m": about} if about else text[start:end])
    return found


def value_marks(text: str, position: int, exposures: Sequence[Exposed], matcher: Matcher) -> Iterator[Mark]:
    """Yields the sensitive values in a text that was sent: what newly crossed with the call, and what the cloud knew already.

    Args:
        text: The text.
        position: Its position in the payload.
        exposures: What the call exposed.
        matcher: Looks for the episode's units.
    """
    marks = [
        Mark(line.start, line.end, _said(line.unit, line.level, line.form, True)) for line in exposures if line.text == position
    ]
    new = {line.unit for line in exposures}
    for hit in matcher.occurrences(text) if len(text) <= MAX_SEARCHED else ():
        unit = matcher.units[hit.unit].id
        marks.append(Mark(*hit.span, _said(unit, hit.level, hit.form, unit in new)))
    marks.sort(key=lambda mark: (-mark.about["level"], mark.start - mark.end, mark.start))
    kept: list[Mark] = []
    for mark in marks:  # of two places of one value, one within the other, the larger says it all
        unit = mark.about["unit"]
        if not any(one.about["unit"] == unit and one.start <= mark.start and mark.end <= one.end for one in kept):
            kept.append(mark)
    yield from kept


def _said(unit: str, level: float, form: str, new: bool) -> dict[str, Any]:
    return {"unit": unit, "level": level, "form": form, "new": new}


def placeholder_marks(text: str, hidden: Mapping[str, str]) -> Iterator[Mark]:
    """Yields the placeholders in a redacted text, each with the value that it hid where that is known."""
    for match in PLACEHOLDER.finditer(text):
        name = match[0].strip('"')
        start = match.start() + match[0].index("[")
        yield Mark(start, start + len(name), {"placeholder": name, "hid": hidden.get(name)})


def hidden_values(trajectory: Trajectory) -> dict[str, str]:
    """Returns what each placeholder of an episode hid, of those for which it can be told.

    Each redacted text is laid over every text of the episode: what stands between its placeholders has to stand there too. A
    placeholder hides one value throughout an episode, so one for which two are found is left out.
    """
    calls = [event for event in trajectory.events if isinstance(event, ToolRan)]
    made = (f"{call.name}({msgspec.json.encode(call.arguments).decode()})" for call in calls)
    originals = list(dict.fromkeys((trajectory.instruction, *(call.result for call in calls), *made)))
    found: dict[str, set[str]] = {}
    for event in trajectory.events:
        if isinstance(event, CloudCall) and event.redact:
            for _, text in event.sent:
                names = [match[0].strip('"') for match in PLACEHOLDER.finditer(text)]
                for name, value in zip(names, _hidden(text, originals), strict=False):
                    found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _hidden(redacted: str, originals: Sequence[str]) -> list[str]:
    """Returns what each placeholder of a redacted text hid; nothing if no text, or several, can have been the original."""
    literals = PLACEHOLDER.split(redacted)
    if len(literals) == 1:
        return []
    fits = [values for text in originals if text != redacted and (values := _between(text, literals)) is not None]
    return fits[0] if fits and all(one == fits[0] for one in fits) else []


def _between(text: str, literals: Sequence[str]) -> list[str] | None:
    """Returns what stands in a text between literals that follow each other in it, or None if they do not."""
    first, *inner, last = literals
    if not text.startswith(first) or not text.endswith(last) or not all(inner):
        return None
    values, at = [], len(first)
    for literal in inner:
        found = text.find(literal, at + 1)
        if found < 0:
            return None
        values.append(text[at:found])
        at = found + len(literal)
    end = len(text) - len(last)
    if end <= at:
        return None
    return [value.strip('"') for value in (*values, text[at:end])]
