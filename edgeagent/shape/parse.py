"""Which JSON value a text is, read strictly: what two readers could understand differently is refused.

Refused: duplicate keys, lone surrogates, NaN and Infinity, numbers outside a float or nearer to zero than it can say,
more than `DEPTH_MAX` levels, anything after the value. Integers keep every digit. It knows nothing of types.
"""

from __future__ import annotations

import re
from typing import Any, Never

import msgspec

from edgeagent.errors import ShapeError
from edgeagent.shape.near_zero import SHORT, why_not_held

# Brackets inside brackets. A call needs fewer than ten; Python's own recursion limit is a thousand.
DEPTH_MAX = 64
# Digits of one integer: converting more takes Python quadratic time, and it refuses at 4,300 by itself.
DIGITS_MAX = 400

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_MANY_DIGITS = re.compile(rf"[0-9]{{{DIGITS_MAX + 1}}}")
_KEY = re.compile(r'("(?:[^"\\]|\\.)*")[ \t\n\r]*:', re.DOTALL)


def parse(text: str | bytes) -> Any:
    """Return the JSON value that the text spells; raise `ShapeError` saying what is wrong and at which byte."""
    content = _as_text(text)
    is_short = len(content) <= SHORT and "e-" not in content and "E-" not in content
    if is_short and content.count("{") + content.count("[") <= DEPTH_MAX:
        value = _decoded(content)
        if content.count(":") == _keys(value):
            return value  # Short, flat and one colon a key: nothing below could find anything.
    bare = _STRING.sub('""', content)  # Outside of strings, so that brackets and colons are structure.
    if _depth(bare) > DEPTH_MAX:
        _refuse(f"nested deeper than {DEPTH_MAX} levels")
    if _MANY_DIGITS.search(bare):
        _refuse(f"a number of more than {DIGITS_MAX} digits")
    value = _decoded(content)
    if why := why_not_held(bare):
        _refuse(why)
    if bare.count(":") != _keys(value):
        _refuse(f"the key {_first_duplicate(content)} appears twice in one object")
    return value


def _decoded(content: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        _refuse(str(error))


def _as_text(text: str | bytes) -> str:
    try:
        content = text if isinstance(text, str) else text.decode()
        content.encode()
    except UnicodeError as error:
        _refuse(f"not UTF-8: {error}")
    return content


def _refuse(reason: str) -> Never:
    raise ShapeError(f"not readable as JSON: {reason}")


def _depth(bare: str) -> int:
    depth = deepest = 0
    for char in bare:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _keys(value: Any) -> int:
    """Return how many keys all objects inside hold together: one colon of the text belongs to each."""
    if isinstance(value, dict):
        return len(value) + sum(_keys(item) for item in value.values())
    if isinstance(value, list):
        return sum(_keys(item) for item in value)
    return 0


def _first_duplicate(content: str) -> str:
    """Return a key that the text spells twice, to be named; the level it stands on is not looked at."""
    seen: set[Any] = set()
    for match in _KEY.finditer(content):
        key = msgspec.json.decode(match[1])
        if key in seen:
            return str(match[1])
        seen.add(key)
    return "of an object"
