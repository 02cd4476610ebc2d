"""JSON of remote models: written by orjson; read by it, and leniently where a server was careless. Raises nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from edgeagent.core.text import readable
from edgeagent.shape.near_zero import why_not_held

DEPTH_MAX = 200
"""The deepest nesting that is read: orjson writes no deeper than 254."""

_OTHER_NUMBER = re.compile(rb"\d{19}|[eE]-\d|\.0{19}")
"""A number that may have more digits than orjson keeps, or be nearer to zero than a float can say."""


def write(value: Any) -> bytes:
    """Return the JSON bytes of a value in its own order; integers with every digit, lone surrogates replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:  # An integer of more than 64 bits, or half a surrogate pair.
        return json.dumps(_whole(value), ensure_ascii=False, separators=(",", ":")).encode()


def write_text(value: Any) -> str:
    """Return the same as text."""
    return write(value).decode()


def write_body(fields: Mapping[str, Any], extra: Mapping[str, Any]) -> bytes:
    """Return the body of a request: a field that is None is left out; what is extra comes last and wins."""
    return write({name: each for name, each in fields.items() if each is not None} | dict(extra))


def read_object(content: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object, or None where it is none or nested too deep."""
    value = read_any(content)
    return value if isinstance(value, dict) else None


def read_any(content: bytes | str) -> Any:
    """Return the value, or None where there is none.

    Half a surrogate pair, NaN and bytes that are not UTF-8 are what careless servers write into good JSON: such a text
    is read with U+FFFD or null in their place.
    """
    content = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    try:
        value = orjson.loads(content)
        if _OTHER_NUMBER.search(content):
            value = json.loads(content, parse_float=_float)
    except (ValueError, RecursionError):
        try:
            value = _whole(json.loads(content.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            return None
    is_flat = content.count(b"{") + content.count(b"[") <= DEPTH_MAX
    return value if is_flat or _fits(value, DEPTH_MAX) else None


def _float(text: str) -> float | str:
    """The number; as text if it is none that can be kept, so that whoever wants a number refuses it."""
    return text if why_not_held(text) else float(text)


def _fits(value: Any, depth: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_fits(each, depth - 1) for each in inner if isinstance(each, dict | list))


def _whole(value: Any) -> Any:
    match value:
        case str():
            return readable(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case dict():
            return {_whole(name): _whole(each) for name, each in value.items()}
        case list() | tuple():
            return [_whole(each) for each in value]
        case _:
            return value
