"""Sensitive units: the values whose way to the cloud is counted."""

from __future__ import annotations

from typing import Literal

import msgspec

Necessity = Literal["none", "copy", "reason"]

KINDS: dict[str, tuple[str, float]] = {
    # kind: (dimension, weight); weights follow the study's scale: 1 by default, 3 for a national id, 2.5 for a bank account.
    "name": ("personal", 0.5),
    "email": ("personal", 0.5),
    "phone": ("personal", 1.0),
    "home_address": ("personal", 1.0),
    "birth_date": ("personal", 1.0),
    "national_id": ("personal", 3.0),
    "health": ("personal", 2.0),
    "iban": ("financial", 2.5),
    "card_number": ("financial", 2.5),
    "salary": ("employment", 2.0),
    "hr_case": ("employment", 2.0),
    "amount": ("business", 1.0),
    "price": ("business", 1.0),
    "contract_terms": ("business", 1.0),
    "code_name": ("business", 1.0),
    "password": ("credential", 3.0),
    "api_key": ("credential", 3.0),
}
"""Every kind of sensitive value a world can draw, with the family it belongs to and its default weight."""


class SensitiveUnit(msgspec.Struct, frozen=True, kw_only=True):
    """One value that should not reach the cloud without need.

    Attributes:
        id: Unique in its episode, stable for a seed ("iban-1").
        kind: One of `KINDS`.
        value: The value as it is written in the workspace.
        owner: Whom it is about.
        weight: Relative harm of exposure, above 0.
        necessity: What the work needs of it: nothing, that it is copied (a placeholder serves), or that it is reasoned
            about (compared, summed, matched: a placeholder does not serve).
        dimension: Family of the kind ("personal", "financial", "employment", "business", "credential").
    """

    id: str
    kind: str
    value: str
    owner: str
    weight: float
    necessity: Necessity
    dimension: str
