"""Values of cells: how they convert, compare, join, and fit a criterion, as in the common spreadsheets."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ec2_env.workspace.formulas import Fault, FaultRaised, Value, as_number, typed

MAX_TEXT = 5_000
"""Longest text that a formula may make."""
MAX_PATTERN = 100
"""Longest criterion that is looked at."""
STEPS_PER_CELL = 20
"""How many steps of a comparison with wildcards count as looking at one cell."""

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def sound(value: Value) -> Value:
    """Returns a value that is no error.

    Raises:
        FaultRaised: if it is one.
    """
    if isinstance(value, Fault):
        raise FaultRaised(value.code)
    return value


def as_float(value: Value) -> float:
    """Returns a value as a number: empty is 0, TRUE is 1, and a text has to look like a number."""
    if value is None or isinstance(value, bool | float):
        return float(value or 0)
    number = as_number(value) if isinstance(value, str) else None
    if number is None:
        raise FaultRaised("#VALUE!")
    return number


def as_text(value: Value) -> str:
    """Returns a value as a cell shows it."""
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            value += 0.0
            return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.13g}"
        case Fault(code):
            return code
    return value


def as_bool(value: Value) -> bool:
    if isinstance(value, str):
        if value.upper() in ("TRUE", "FALSE"):
            return value.upper() == "TRUE"
        raise FaultRaised("#VALUE!")
    return bool(value)


def combined(symbol: str, left: Value, right: Value) -> Value:
    """Returns the value of two values joined by an operator."""
    if symbol == "&":
        joined = as_text(left) + as_text(right)
        if len(joined) > MAX_TEXT:
            raise FaultRaised("#VALUE!")
        return joined
    if symbol in _ORDER:
        return compared(symbol, left, right)
    return arithmetic(symbol, as_float(left), as_float(right))


def arithmetic(symbol: str, left: float, right: float) -> float:
    """Returns the result of one of + - * / ^.

    Raises:
        FaultRaised: #DIV/0! for a division by 0, #NUM! for what is no finite real number.
    """
    try:
        match symbol:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/":
                result = left / right
            case _:
                result = math.pow(left, right)
    except ZeroDivisionError:
        raise FaultRaised("#DIV/0!") from None
    except (OverflowError, ValueError):
        raise FaultRaised("#NUM!") from None
    if not math.isfinite(result):
        raise FaultRaised("#NUM!")
    return result


def compared(symbol: str, left: Value, right: Value) -> bool:
    """Compares two values: numbers come before texts, texts before truth values; case makes no difference."""
    return _ORDER[symbol](_rank(left, right), _rank(right, left))


def _rank(value: Value, other: Value) -> tuple[int, float | str]:
    if value is None:
        value = "" if isinstance(other, str) else False if isinstance(other, bool) else 0.0
    if isinstance(value, bool):
        return (2, float(value))
    return (0, round(value, 9)) if isinstance(value, float) else (1, as_text(value).casefold())


def criterion(wanted: Value, spend: Callable[[int], None]) -> Callable[[Value], bool]:
    """Returns the test that a criterion such as 5, "north", ">=10", "<>x" or "A*" stands for; * and ? are wildcards.

    Args:
        wanted: The criterion.
        spend: Is told how much work each comparison with wildcards takes, in cells; raises when there has been too much.
    """
    if not isinstance(wanted, str):
        return lambda value: value is not None and same_value(value, wanted)
    symbol = next((s for s in ("<=", ">=", "<>", "<", ">", "=") if wanted.startswith(s)), "")
    operand = typed(wanted.removeprefix(symbol)[:MAX_PATTERN])
    if symbol in ("", "=", "<>"):
        wild = isinstance(operand, str) and ("*" in operand or "?" in operand)
        pattern = as_text(operand).casefold()

        def equal(value: Value) -> bool:
            if not (wild and isinstance(value, str)):
                return not wild and same_value(value, operand)
            spend(len(value) * len(pattern) // STEPS_PER_CELL)
            return wildcard(value.casefold(), pattern)

        return (lambda value: not equal(value)) if symbol == "<>" else equal
    return lambda value: type(value) is type(operand) and not isinstance(value, Fault) and compared(symbol, value, operand)


def same_value(value: Value, wanted: Value) -> bool:
    """Says whether two values are equal and of one kind; an empty cell equals only an empty one."""
    if value is None or wanted is None:
        return value is wanted
    return not isinstance(value, Fault) and type(value) is type(wanted) and compared("=", value, wanted)


def wildcard(text: str, pattern: str) -> bool:
    """Says whether a whole text fits a pattern with * (anything) and ? (one character); takes len(text) * len(pattern) steps."""
    position = place = 0
    star, resume = -1, 0
    while position < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, resume = place, position
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", text[position]):
            position, place = position + 1, place + 1
        elif star >= 0:
            resume += 1
            position, place = resume, star + 1
        else:
            return False
    return not pattern[place:].strip("*")
