"""Spelling for llama.cpp's grammars: literals, classes, repeats; and constants as we write them in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from edgeagent.shape import pattern

_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def literal(text: str) -> str:
    """Return the text as a literal of a grammar; nothing for no text."""
    return '"' + "".join(_quoted(ord(char), '"\\') for char in text) + '"' if text else ""


def one_of(ranges: pattern.Ranges) -> str:
    """Return a set of characters, negated where that is shorter."""
    gaps = pattern.complement(ranges)
    if not gaps:
        return r"[\x00-\U0010FFFF]"
    if ranges and ranges[-1][1] == pattern.UNICODE_LAST:
        return f"[^{_class_ranges(gaps)}]"
    return f"[{_class_ranges(ranges)}]"


def _class_ranges(ranges: pattern.Ranges) -> str:
    special = '[]\\^-"'
    return "".join(
        _quoted(low, special) if low == high else f"{_quoted(low, special)}-{_quoted(high, special)}"
        for low, high in ranges
    )


def _quoted(code: int, special: str) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08X}"
    if code > 126:
        return f"\\u{code:04X}"
    if code < 32 or chr(code) in special:
        return f"\\x{code:02X}"
    return chr(code)


def escaped(code: int, *, key: bool = False) -> str:
    """Return one character as it stands inside a JSON string; keys hold DEL as it is, values escape it."""
    if code in _SHORT:
        return _SHORT[code]
    if code < 32 or (code == 127 and not key):
        return f"\\u{code:04x}"
    return chr(code)


def spelled(value: Any, item_separator: str = ", ", key_separator: str = ": ") -> str:
    """Return a constant as we write it: the one spelling that grammars of both engines hold."""
    if isinstance(value, str):
        return '"' + "".join(escaped(ord(char)) for char in value) + '"'
    if isinstance(value, list):
        return "[" + item_separator.join(spelled(item, item_separator, key_separator) for item in value) + "]"
    if isinstance(value, dict):
        members = (
            spelled_key(key) + key_separator + spelled(item, item_separator, key_separator)
            for key, item in value.items()
        )
        return "{" + item_separator.join(members) + "}"
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").removesuffix(".") if "." in text else text
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return {None: "null", True: "true", False: "false"}[value]


def spelled_key(key: str) -> str:
    """Return the key of an object as we write it."""
    return '"' + "".join(escaped(ord(char), key=True) for char in key) + '"'


def commonprefix(texts: Sequence[str]) -> str:
    """Return what all the texts begin with."""
    low, high = min(texts), max(texts)
    length = next((index for index, char in enumerate(low) if char != high[index]), len(low))
    return low[:length]


def group(options: Sequence[str]) -> str:
    if len(options) == 1:
        return options[0]
    return "(" + " | ".join(options) + ")"


def times(item: str, least: int, most: int | None) -> str:
    """Return a short repeat: nothing, the item, or the item with a count."""
    if most == 0:
        return ""
    if (least, most) == (1, 1):
        return item
    if (least, most) in ((0, 1), (0, None), (1, None)):
        return item + {(0, 1): "?", (0, None): "*", (1, None): "+"}[(least, most)]
    if least == most:
        return f"{item}{{{least}}}"
    return f"{item}{{{least},{'' if most is None else most}}}"
