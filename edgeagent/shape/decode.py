"""A JSON value to a value of the declared type, strictly; every refusal names the place and what was found.

Nothing is coerced: "5" is no number, 1 is no true, an unknown key is an error. The one leniency is JSON Schema's own:
1.0 is an integer. It knows nodes only, no annotations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Never, assert_never

from edgeagent.errors import ShapeError
from edgeagent.shape import formats, pattern
from edgeagent.shape.nodes import (
    Anything,
    Boolean,
    Choice,
    Coded,
    Dictionary,
    Either,
    Fixed,
    Foreign,
    Integer,
    Many,
    Named,
    Node,
    Noted,
    Null,
    Number,
    Record,
    Table,
    Text,
    limits_text,
)

EXACT_MAX = 2**53  # From here on a float stands for several integers.
SHOWN_MAX = 60  # Characters of a wrong value that a message repeats: enough to recognise it.
_WIDE = Context(prec=1400)  # A float has at most 309 digits before and 1,074 after the point.


def decode(node: Node, value: Any, path: str, table: Table) -> Any:
    """Return the typed value; raise `ShapeError` naming the path."""
    match node:
        case Anything():
            return json_of(value, path)
        case Foreign():
            return foreign_of(node, value, path)
        case Null():
            return None if value is None else wrong(path, value, "null")
        case Boolean():
            return value if isinstance(value, bool) else wrong(path, value, "true or false")
        case Integer():
            return _integer(node, value, path)
        case Number():
            return _number(node, value, path)
        case Text():
            return _text(node, value, path)
        case Coded():
            return _coded(node, value, path)
        case Choice():
            return _choice(node, value, path)
        case Many():
            return _many(node, value, path, table)
        case Fixed():
            return _fixed(node, value, path, table)
        case Dictionary():
            return _dictionary(node, value, path, table)
        case Record():
            return _record(node, value, path, table)
        case Either():
            return _either(node, value, path, table)
        case Noted():
            return decode(node.inner, value, path, table)
        case Named():
            return decode(table[node.name], value, path, table)
        case _:
            assert_never(node)


def foreign_of(node: Foreign, value: Any, path: str) -> Any:
    """Return the value as it is, if its own schema lets it through."""
    reason = node.why_not(json_of(value, path), path)
    return value if not reason else refuse("", reason)


# --- scalars -------------------------------------------------------------------------------------------------------


def _integer(node: Integer, value: Any, path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        if abs(value) >= EXACT_MAX:
            refuse(path, f"{shown(value)} is no integer that is kept exactly: write all its digits, without exponent")
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        wrong(path, value, "an integer")
    _within(value, node.low, False, node.high, False, path)
    if node.multiple_of is not None and value % node.multiple_of:
        refuse(path, f"{shown(value)} is not a multiple of {node.multiple_of}")
    return int(value)


def _number(node: Number, value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        wrong(path, value, "a number")
    _within(value, node.low, node.low_open, node.high, node.high_open, path)
    try:
        number = float(value)
    except OverflowError:
        refuse(path, "an integer outside the range of a float")
    if not math.isfinite(number):
        refuse(path, f"{number} is not a finite number")
    if isinstance(value, int) and int(number) != value:
        refuse(path, f"{shown(value)} has more digits than a number here keeps; {number:.0f} is the nearest")
    # By their decimal texts: 0.3 is a multiple of 0.1, though not in binary.
    if node.multiple_of is not None and not is_multiple(number, node.multiple_of):
        refuse(path, f"{shown(value)} is not a multiple of {node.multiple_of}")
    return number


def is_multiple(value: float, of: float) -> bool:
    """Return whether the number is a multiple, both read as the decimals they are written as."""
    left, right = Decimal(repr(value)), Decimal(repr(of))
    scale = max(0, -_exponent(left), -_exponent(right))
    return int(left.scaleb(scale, _WIDE)) % int(right.scaleb(scale, _WIDE)) == 0


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _within(value: Any, low: Any, low_open: bool, high: Any, high_open: bool, path: str) -> None:
    if low is not None and (value < low or (low_open and value == low)):
        refuse(path, f"{shown(value)} is {'not above' if low_open else 'below'} the minimum {low}")
    if high is not None and (value > high or (high_open and value == high)):
        refuse(path, f"{shown(value)} is {'not below' if high_open else 'above'} the maximum {high}")


def _text(node: Text, value: Any, path: str) -> str:
    if not isinstance(value, str):
        wrong(path, value, "a string")
    check_count(len(value), node.least, node.most, "characters", path)
    if node.pattern is not None and not matches(node.pattern, value):
        refuse(path, f"{shown(value)} does not match the pattern {node.pattern}")
    if node.format in formats.PATTERNS and not fits(formats.PATTERNS[node.format], value):
        refuse(path, f"{shown(value)} is not of the format {node.format}")
    return str(value)


def matches(searched: str, text: str) -> bool:
    """Return whether a pattern of a schema, which is searched for, lets the text through."""
    return _compiled(searched, True).fullmatch(text) is not None


def fits(whole: str, text: str) -> bool:
    """Return whether the whole text is of the pattern."""
    return _compiled(whole, False).fullmatch(text) is not None


@lru_cache(maxsize=512)
def _compiled(text: str, searched: bool) -> re.Pattern[str]:
    return re.compile(pattern.regex(pattern.parse(text)) if searched else text)


def _coded(node: Coded, value: Any, path: str) -> Any:
    if not isinstance(value, str):
        wrong(path, value, f"a string that holds a {node.coding.python.__name__}")
    if not fits(node.coding.pattern, value):
        refuse(path, f"{shown(value)} is not a {node.coding.format or node.coding.python.__name__}")
    try:
        typed = node.coding.decode(value)
    except (ValueError, ArithmeticError) as error:
        refuse(path, f"{shown(value)} is not a {node.coding.python.__name__}: {error}")
    check_limits(node, typed, path)
    return typed


def check_limits(node: Coded, typed: Any, path: str) -> None:
    """Refuse a value outside the limits of its node."""
    try:
        _within(typed, node.low, node.low_open, node.high, node.high_open, path)
    except TypeError as error:
        refuse(path, f"{shown(typed)} cannot be compared with its limits ({limits_text(node)}): {error}")
    if node.least or node.most is not None:
        check_count(len(typed), node.least, node.most, "bytes", path)


def _choice(node: Choice, value: Any, path: str) -> Any:
    for allowed, python in node.options:
        if same_json(allowed, value):
            return python
    words = ", ".join(shown(allowed) for allowed, _ in node.options)
    return refuse(path, f"{shown(value)} is not one of {words}")


def same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal as JSON Schema means it: 1 is 1.0, but not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    return type(left) is type(right) and bool(left == right)


def json_of(value: Any, path: str) -> Any:
    """Return a value that is JSON through and through."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else refuse(path, f"{value} is not a finite number")
    if isinstance(value, list):
        return [json_of(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: json_of(item, below(path, key)) for key, item in value.items()}
    return wrong(path, value, "a JSON value")


# --- containers ----------------------------------------------------------------------------------------------------


def _many(node: Many, value: Any, path: str, table: Table) -> Any:
    if not isinstance(value, list):
        wrong(path, value, "an array")
    check_count(len(value), node.least, node.most, "items", path)
    if node.unique:
        _all_different(value, path)
    items = [decode(node.item, item, f"{path}[{index}]", table) for index, item in enumerate(value)]
    try:
        return node.build(items)
    except TypeError as error:  # Only a set can do that, of something that does not hash.
        refuse(path, str(error))


def _all_different(items: list[Any], path: str) -> None:
    for index, item in enumerate(items):
        if any(same_json(item, earlier) for earlier in items[:index]):
            refuse(path, f"{shown(item)} appears twice")


def _fixed(node: Fixed, value: Any, path: str, table: Table) -> tuple[Any, ...]:
    if not isinstance(value, list):
        wrong(path, value, "an array")
    if len(value) != len(node.items):
        refuse(path, f"{len(value)} items instead of {len(node.items)}")
    pairs = zip(node.items, value, strict=True)
    return tuple(decode(item, part, f"{path}[{index}]", table) for index, (item, part) in enumerate(pairs))


def _dictionary(node: Dictionary, value: Any, path: str, table: Table) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        wrong(path, value, "an object")
    check_count(len(value), node.least, node.most, "keys", path)
    typed: dict[Any, Any] = {}
    for key, item in value.items():
        place = below(path, str(key))
        typed[decode(node.key, key, place, table)] = decode(node.value, item, place, table)
    return typed


def _record(node: Record, value: Any, path: str, table: Table) -> Any:
    members = members_of(node, value, path, table)
    try:
        return node.build(**members)
    except ShapeError:
        raise
    except (ValueError, TypeError) as error:  # The class's own check: __post_init__, a validator.
        refuse(path, f"{node.name} refuses it: {error}")


def members_of(node: Record, value: Any, path: str, table: Table) -> dict[str, Any]:
    """Return the typed members by the keywords of their class; those with a default may be absent."""
    if not isinstance(value, Mapping):
        wrong(path, value, "an object")
    known = {field.key for field in node.fields}
    if node.tag is not None:
        _check_tag(node.tag, value, path)
        known.add(node.tag[0])
    for key in value:
        if key not in known:
            names = ", ".join(field.key for field in node.fields) or "none"
            refuse(below(path, str(key)), f"unknown key; the keys are: {names}")
    members: dict[str, Any] = {}
    for field in node.fields:
        if field.key in value:
            members[field.argument] = decode(field.node, value[field.key], below(path, field.key), table)
        elif field.required:
            refuse(below(path, field.key), "missing")
    return members


def _check_tag(tag: tuple[str, str | int], value: Mapping[str, Any], path: str) -> None:
    key, expected = tag
    if key not in value:
        refuse(below(path, key), f"missing; it must be {shown(expected)}")
    if not same_json(expected, value[key]):
        refuse(below(path, key), f"{shown(value[key])} is not {shown(expected)}")


def _either(node: Either, value: Any, path: str, table: Table) -> Any:
    options = [resolved(option, table) for option in node.options]
    if isinstance(value, float):  # 1.0 is an integer too, but a number first if that is offered.
        options.sort(key=lambda option: not isinstance(option, Number))
    elif isinstance(value, int):
        options.sort(key=lambda option: isinstance(option, Number))
    reasons: list[str] = []
    meant: ShapeError | None = None
    for option in options:
        try:
            return decode(option, value, path, table)
        except ShapeError as error:
            if _is_meant(option, value):
                meant = error
            reasons.append(str(error))
    if meant is not None:
        raise meant
    return refuse(path, "nothing fits: " + "; ".join(dict.fromkeys(reasons)))


def resolved(node: Node, table: Table) -> Node:
    """Return what a named or noted node stands for."""
    while isinstance(node, Named | Noted):
        node = table[node.name] if isinstance(node, Named) else node.inner
    return node


def _is_meant(option: Node, value: Any) -> bool:
    """Return whether the tag of an object says that it is this option, so that its error is the one to tell."""
    return (
        isinstance(option, Record)
        and option.tag is not None
        and isinstance(value, Mapping)
        and same_json(option.tag[1], value.get(option.tag[0]))
    )


# --- words ---------------------------------------------------------------------------------------------------------


def check_count(count: int, least: int, most: int | None, what: str, path: str) -> None:
    """Refuse too few or too many."""
    if count < least:
        refuse(path, f"{count} {what}, {least} is the least")
    if most is not None and count > most:
        refuse(path, f"{count} {what}, {most} is the most")


def below(path: str, key: str) -> str:
    """Return the place of a member."""
    return f"{path}.{key}" if path else key


def wrong(path: str, value: Any, expected: str) -> Never:
    """Refuse a value that is not what was expected."""
    refuse(path, f"{shown(value)} is not {expected}")


def refuse(path: str, reason: str) -> Never:
    """Raise the error that names the place."""
    raise ShapeError(f"{path}: {reason}" if path else reason)


def shown(value: Any) -> str:
    """Return a value as a message repeats it."""
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    text = f'"{value}"' if isinstance(value, str) else str(value) if isinstance(value, int) else repr(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
