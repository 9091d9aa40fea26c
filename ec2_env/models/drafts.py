"""What a model has begun to write, read before it is whole: the tool of its next call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ec2_env.actions import clean
from ec2_env.models.calltext import read_call, split_thoughts
from ec2_env.models.jsoncalls import ARGUMENT_KEYS, as_call, completed, objects, parse
from ec2_env.models.payload import function_of

PROBE_TOKENS = 16
"""Tokens that a probe of a real model writes at most: enough to begin a call of any tool of this package."""
_LONGEST_TEXT = 4_000
_LONGEST_NAME = 120
_ARGUMENTS_FIRST = re.compile(rf"""[^{{]*\{{\s*["'](?:{"|".join(ARGUMENT_KEYS)})["']\s*:""")
_PYTHONIC = re.compile(r"\s*(?:<\|python_start\|>)?\[?\s*([A-Za-z_][\w.]{0,119})\(")


def drafted_tool(text: str, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the name of the tool that a text calls, as soon as the name is there; None if it is not.

    Understands what `ec2_env.models.calltext` does, whole or cut off anywhere: `{"name": "send_mail", "argu` is enough. The name
    need not be that of a tool; models make up names, too. Never raises.

    Args:
        text: The beginning of an answer; only its first 4,000 characters are read.
        tools: Schemas that were offered.
    """
    text = completed(split_thoughts(text[:_LONGEST_TEXT])[1])
    if _ARGUMENTS_FIRST.match(text) and not _names_a_tool(text):
        return None
    call = read_call(text, tools)
    if call is not None:
        return called(call)
    begun = _PYTHONIC.match(text)
    names = {function_of(tool).get("name") for tool in tools}
    return begun[1] if begun and begun[1] in names else None


def called(call: Mapping[str, Any]) -> str | None:
    """Returns the name that an unvalidated call gives its tool, short and without lone surrogates; None if it gives none."""
    name = call.get("name")
    return clean(name[:_LONGEST_NAME]) if isinstance(name, str) and name else None


def _names_a_tool(text: str) -> bool:
    """Says whether the first object is a call already; a name inside its arguments is none."""
    first = next(iter(objects(text)), None)
    return first is not None and as_call(parse(text[first[0] : first[1]])) is not None
