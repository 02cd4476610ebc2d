"""Decimals that llguidance leaves out of a bounded number: up to 0.25 it takes 0.19 and 0.20, and no 0.2.

Seen in llguidance 1.9: of a bound's own digits the beginnings are missing. They are put beside the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Any

from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def with_short_decimals(schema: Any) -> Any:
    """The schema, with what llguidance leaves out beside each bounded number at any depth."""
    if isinstance(schema, list):
        return [with_short_decimals(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {key: value if key in ("enum", "const") else with_short_decimals(value) for key, value in schema.items()}
    short = _beginnings(schema) if schema.get("type") == "number" else []
    return {"anyOf": [inner, {"enum": short}]} if short else inner


def _beginnings(schema: Mapping[str, Any]) -> list[float]:
    """The decimals that a bound begins with, as far as they are within the bounds."""
    found = {
        bound.quantize(Decimal(1).scaleb(-places), rounding=ROUND_DOWN)
        for bound in (Decimal(repr(schema[key])) for key in _BOUNDS if key in schema)
        for places in range(1, -int(bound.as_tuple().exponent))
    }
    return sorted(float(each) for each in found if each and admits(schema, float(each), Document(schema)))
