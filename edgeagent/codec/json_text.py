"""JSON of remote models: written by orjson; read by it, and leniently where a server was careless. Raises nothing."""

from __future__ import annotations

import json
from typing import Any

import orjson

from edgeagent.core.text import readable

UNREADABLE: Any = object()
"""What is returned for bytes that are no JSON at all."""


def write(value: Any) -> bytes:
    """Return the JSON bytes of a value in its own order; integers with every digit, lone surrogates replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:  # An integer of more than 64 bits, or half a surrogate pair.
        return json.dumps(_whole(value), ensure_ascii=False, separators=(",", ":")).encode()


def write_text(value: Any) -> str:
    """Return the same as text."""
    return write(value).decode()


def read_any(content: bytes | str) -> Any:
    """Return the value, or UNREADABLE.

    Half a surrogate pair, NaN and bytes that are not UTF-8 are what careless servers write into good JSON: such a text
    is read with U+FFFD in their place.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return _whole(json.loads(readable(content)))
    except (ValueError, RecursionError):
        return UNREADABLE


def read_object(content: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object, or None where it is no object."""
    value = read_any(content)
    return value if isinstance(value, dict) else None


def _whole(value: Any) -> Any:
    match value:
        case str():
            return readable(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case dict():
            return {readable(name) if isinstance(name, str) else name: _whole(each) for name, each in value.items()}
        case list() | tuple():
            return [_whole(each) for each in value]
        case _:
            return value
