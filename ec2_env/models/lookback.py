"""What a simulated cloud does about a transcript that was cut down: it utters nothing of what was left out, and looks again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ec2_env.actions import Finish, ToolCall, action_text, parse_action
from ec2_env.facts import as_number
from ec2_env.progress import Record
from ec2_env.prompts import LEFT_OUT

_FIGURE = re.compile(r"\d[\d.,:/-]*\d")
"""Numbers, dates and times of two digits or more."""
_LINKED = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[a-z]+-\d{4,5}|\d[\d.,:/-]*\d", re.ASCII)
"""Figures, addresses and ids: what has to be looked up if it is not there."""
LOOKS = 2
"""How often it makes a call once more in order to see a result again."""


@lru_cache(maxsize=2_000)
def figures(text: str) -> frozenset[str]:
    """Returns the figures of a text."""
    return frozenset(_FIGURE.findall(text))


@lru_cache(maxsize=2_000)
def linked(text: str) -> tuple[str, ...]:
    """Returns the figures, addresses and ids of a text, in order."""
    return tuple(_LINKED.findall(text))


def lost_figures(payload: str, results: Sequence[str]) -> frozenset[str]:
    """Returns the figures that stand in earlier results and not in a payload from which something was left out."""
    if LEFT_OUT not in payload:
        return frozenset()
    return frozenset[str]().union(*map(figures, results)) - figures(payload)


def withheld(text: str, lost: frozenset[str], mark: str) -> str:
    """Returns a text with a mark for every figure that was left out."""
    return _FIGURE.sub(lambda found: mark if found[0] in lost else found[0], text) if lost else text


def is_lost(value: float, lost: frozenset[str]) -> bool:
    """Says whether a number was left out. It may still be worked out where it stood nowhere."""
    return any(as_number(figure) == round(float(value), 2) for figure in lost)


def look_again(action: ToolCall | Finish, payload: str, records: Sequence[Record], results: Sequence[str]) -> ToolCall | None:
    """Returns the earlier read that showed what a call takes and a payload lacks; None if there is none that is worth it.

    Args:
        action: The call that was meant.
        payload: What crossed.
        records: Calls so far, oldest first.
        results: The texts of their results.
    """
    missing = [found for found in linked(action_text(action)) if found not in payload]
    for record, result in zip(reversed(records), reversed(results), strict=True):
        if record.ok and not record.wrote and any(found in result for found in missing):
            if sum(other.key == record.key for other in records) > LOOKS:
                return None
            call = parse_action(record.key)
            return call if isinstance(call, ToolCall) else None
    return None
