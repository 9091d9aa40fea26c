"""What cloud tokens cost: a frozen, dated price book and exact arithmetic.

Live price lists depend on the day and even on the hour, so a figure computed from them cannot be reproduced. The book is a file
of this package; whoever needs other prices gives a file of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ec2_env.errors import ConfigurationError, UnknownName
from ec2_env.models.base import Usage

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Prices of a request whose input, cached tokens included, is longer than `above_tokens`. They apply to the whole request."""

    above_tokens: int
    input_usd_per_mtok: Decimal
    cached_input_usd_per_mtok: Decimal
    output_usd_per_mtok: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices of one model in USD per million tokens.

    Attributes:
        input_usd_per_mtok: Input that was not served from a prompt cache.
        cached_input_usd_per_mtok: Input served from the prompt cache.
        output_usd_per_mtok: Output, thinking included.
        as_of: Day the price was in force, as YYYY-MM-DD.
        source: Where the price comes from, in words.
        long_context: Prices of long requests, or None if length does not matter.
    """

    input_usd_per_mtok: Decimal
    cached_input_usd_per_mtok: Decimal
    output_usd_per_mtok: Decimal
    as_of: str
    source: str
    long_context: Tier | None = None


def price(name: str, book: Mapping[str, Price] | None = None) -> Price:
    """Returns the price of the model called `name`, from `book` or from the package's own price book.

    Raises:
        UnknownName: if the model has no price. An unpriced call is an error, never free.
    """
    book = _own_book() if book is None else book
    if name not in book:
        raise UnknownName("priced model", name, book)
    return book[name]


def load_prices(path: str | Path) -> Mapping[str, Price]:
    """Returns the package's price book with the entries of a TOML file of the same form added, or put in their place.

    Raises:
        ConfigurationError: if the file cannot be read, or an entry is incomplete or not a price.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"price file {path} cannot be read: {error}") from error
    return MappingProxyType({**_own_book(), **_parse(text, str(path))})


def cost_usd(usage: Usage, price: Price) -> Decimal:
    """Returns what one request costs in USD: each of the three disjoint token counts times its price, summed without rounding."""
    rates: Price | Tier = price
    if price.long_context is not None and usage.raw + usage.cached > price.long_context.above_tokens:
        rates = price.long_context
    millionths = (
        usage.raw * rates.input_usd_per_mtok
        + usage.cached * rates.cached_input_usd_per_mtok
        + usage.output * rates.output_usd_per_mtok
    )
    return millionths.scaleb(-6)


@cache
def _own_book() -> Mapping[str, Price]:
    text = resources.files("ec2_env.cloud").joinpath("prices.toml").read_text(encoding="utf-8")
    return MappingProxyType(_parse(text, "prices.toml"))


_RATES = ("input", "cached_input", "output")


def _parse(text: str, where: str) -> dict[str, Price]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where} is not valid TOML: {error}") from error
    return {name: _entry(table, f"{where}: {name}") for name, table in tables.items()}


def _entry(table: Any, where: str) -> Price:
    known = {*_RATES, "as_of", "source", "long_context"}
    table = _checked(table, where, known, required={*_RATES, "as_of", "source"})
    tier = table.get("long_context")
    if tier is not None:
        tier = _checked(tier, f"{where}.long_context", {*_RATES, "above_tokens"}, required={*_RATES, "above_tokens"})
        if not isinstance(tier["above_tokens"], int) or tier["above_tokens"] < 0:
            raise ConfigurationError(f"{where}.long_context.above_tokens must be a whole number, got {tier['above_tokens']!r}")
        tier = Tier(above_tokens=tier["above_tokens"], **_rates(tier, where))
    return Price(**_rates(table, where), as_of=str(table["as_of"]), source=str(table["source"]), long_context=tier)


def _checked(table: Any, where: str, known: set[str], required: set[str]) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where} must be a table with {', '.join(sorted(required))}")
    missing, extra = sorted(required - set(table)), sorted(set(table) - known)
    if missing or extra:
        problem = f"lacks {missing[0]!r}" if missing else f"has the unknown key {extra[0]!r}"
        raise ConfigurationError(f"{where} {problem}; it takes {', '.join(sorted(known))}")
    return table


def _rates(table: dict[str, Any], where: str) -> dict[str, Decimal]:
    rates = {}
    for key in _RATES:
        try:
            value = Decimal(str(table[key]))
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or value < 0:
            raise ConfigurationError(f'{where}.{key} must be USD per million tokens such as "2.50", got {table[key]!r}')
        rates[f"{key}_usd_per_mtok"] = value
    return rates
