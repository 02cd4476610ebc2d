"""Constants, integers and numbers as engines read them."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from edgeagent.shape.admits import admits
from edgeagent.shape.decode import same_json
from edgeagent.shape.lowering.work import NEVER, Work
from edgeagent.shape.merge import Plain

# What a bound may be: llguidance reads bounds as doubles, and this is the last double below 2^63.
INTEGER_MAX = 2**63 - 1024
# llguidance reads decimals by multiplying with powers of ten: exact only for so many digits and places.
DIGITS_EXACT = 15
PLACES_EXACT = 20
# Beyond it llguidance cannot make a range of floats.
FLOAT_MAX = 1e18
# Multiples between two bounds that are written out one by one.
MULTIPLES_MAX = 1_024
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def constants(work: Work, plain: Plain, path: str) -> Any:
    """Return the constants that the other keywords let through."""
    rest = {key: value for key, value in plain.items() if key != "enum"}
    options: list[Any] = []
    texts: set[str] = set()  # Words of a user are up to 2,000 constants: too many to compare each with each.
    for value in plain["enum"]:
        known = value in texts if isinstance(value, str) else any(same_json(value, option) for option in options)
        if not known and admits(rest, value, work.document):
            options.append(_constant(work, value, path))
            texts.update((value,) if isinstance(value, str) else ())
    return {"enum": options} if options else NEVER


def _constant(work: Work, value: Any, path: str) -> Any:
    if isinstance(value, float) and value.is_integer():
        return _constant(work, int(value), path)
    if isinstance(value, int) and not isinstance(value, bool) and (abs(value) > INTEGER_MAX or float(value) != value):
        raise work.refuse(path, f"the constant {value} has more digits than a double: write it as a string")
    if isinstance(value, float) and _inward(value, ROUND_CEILING) != value:
        raise work.refuse(path, f"the constant {value} has more digits than engines read: write it as a string")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise work.refuse(path, f"the constant {value!a} holds half of a surrogate pair") from None
    if isinstance(value, list):
        return [_constant(work, item, path) for item in value]
    if isinstance(value, dict):
        return {key: _constant(work, item, path) for key, item in value.items()}
    return value


def integer(work: Work, plain: Plain, path: str) -> Any:
    """Return the range of an integer, both ends given."""
    low, high = plain.get("minimum", -math.inf), plain.get("maximum", math.inf)
    low = math.ceil(low) if math.isfinite(low) else low
    high = math.floor(high) if math.isfinite(high) else high
    if "exclusiveMinimum" in plain:
        low = max(low, math.floor(plain["exclusiveMinimum"]) + 1)
    if "exclusiveMaximum" in plain:
        high = min(high, math.ceil(plain["exclusiveMaximum"]) - 1)
    least, most = _as_double(max(low, -INTEGER_MAX), up=True), _as_double(min(high, INTEGER_MAX), up=False)
    if (least, most) != (low, high):
        work.restrict(path, "integer", f"only {least} to {most} is written")
    step = None if "multipleOf" not in plain else Fraction(Decimal(repr(plain["multipleOf"]))).numerator
    if least > most or (step and -(-least // step) * step > most):
        return NEVER
    return {
        "type": "integer",
        "minimum": least,
        "maximum": most,
        **({"multipleOf": step} if step not in (None, 1) else {}),
    }


def number(work: Work, plain: Plain, path: str) -> Any:
    """Return the range of a number; the multiples of a step as constants, if they are not too many."""
    step = plain.get("multipleOf")
    if step is not None and step == int(step):
        return integer(work, plain, path)  # Its multiples are whole; they are written so.
    if step is not None:
        multiples = _multiples(plain, step)
        if multiples is not None:
            return constants(work, {**plain, "enum": multiples}, path)
        work.relax(path, "multipleOf", f"a grammar does not count in steps of {step}")
    bounds = {key: plain[key] for key in _BOUNDS if key in plain}
    for key in [key for key, bound in bounds.items() if abs(bound) > FLOAT_MAX]:
        del bounds[key]
        work.relax(path, key, f"bounds beyond {FLOAT_MAX:g} are left to the decoder")
    for key, bound in bounds.items():
        bounds[key] = _inward(bound, ROUND_CEILING if "inimum" in key else ROUND_FLOOR)
        if bounds[key] != bound:
            work.restrict(path, key, f"held as {bounds[key]}: engines read 15 digits, and 20 places after the point")
    sharper = _sharper(bounds)
    if sharper is None:
        return NEVER
    if sharper:
        work.restrict(path, "number", "written without an exponent")
        for key in sharper.keys() & {"exclusiveMinimum", "exclusiveMaximum"}:
            work.relax(path, key, "more digits than a double has may round onto the bound itself")
    else:
        work.relax(path, "number", "many digits or an exponent may leave the range of a float")
    return {"type": "number", **sharper}


def _as_double(number: float, *, up: bool) -> int:
    """Return the nearest integer inside the bound that a double holds exactly."""
    whole = int(number)
    near = int(float(whole))
    if up and near < whole:
        near = int(math.nextafter(float(whole), math.inf))
    if not up and near > whole:
        near = int(math.nextafter(float(whole), -math.inf))
    return near


def _inward(number: float, rounding: str) -> float:
    """Return the number with as many digits as llguidance reads exactly, rounded as told."""
    short = Context(prec=DIGITS_EXACT, rounding=rounding).create_decimal(repr(number))
    if int(short.as_tuple().exponent) < -PLACES_EXACT:
        short = short.quantize(Decimal(1).scaleb(-PLACES_EXACT), rounding=rounding)
    return number if float(short) == number else float(short)


def _multiples(plain: Plain, step: float) -> list[float] | None:
    """Return the multiples between two bounds, in the decimals they are written as; None if they are too many."""
    lows = [plain[key] for key in ("minimum", "exclusiveMinimum") if key in plain]
    highs = [plain[key] for key in ("maximum", "exclusiveMaximum") if key in plain]
    if not lows or not highs:
        return None
    exact = Fraction(Decimal(repr(step)))
    first = math.ceil(Fraction(Decimal(repr(max(lows)))) / exact)
    last = math.floor(Fraction(Decimal(repr(min(highs)))) / exact)
    if last - first >= MULTIPLES_MAX:
        return None
    return [float(count * exact) for count in range(first, last + 1)]  # An open bound is taken out by `_constants`.


def _sharper(bounds: dict[str, float]) -> dict[str, float] | None:
    """Return at most one lower and one upper bound, or None when nothing lies between."""
    low, low_open = bounds.get("minimum", -math.inf), False
    if bounds.get("exclusiveMinimum", -math.inf) >= low and "exclusiveMinimum" in bounds:
        low, low_open = bounds["exclusiveMinimum"], True
    high, high_open = bounds.get("maximum", math.inf), False
    if bounds.get("exclusiveMaximum", math.inf) <= high and "exclusiveMaximum" in bounds:
        high, high_open = bounds["exclusiveMaximum"], True
    if low > high or (low == high and (low_open or high_open)):
        return None
    kept: dict[str, float] = {}
    if math.isfinite(low):
        kept["exclusiveMinimum" if low_open else "minimum"] = low
    if math.isfinite(high):
        kept["exclusiveMaximum" if high_open else "maximum"] = high
    return kept
