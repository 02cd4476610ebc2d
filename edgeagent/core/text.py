"""Text from outside, made fit: `readable` before it becomes an event, `shown` before a person sees it.

Everything that becomes an event passes `cleaned`, in the inbox; so step, trace and exports meet only Unicode.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

TEXT_BYTES_MAX = 1 << 20
"""The most of one text of an event, in UTF-8: more than a model reads at once, and far below what a record may have."""

_SURROGATE = re.compile("[\\ud800-\\udfff]")
_LONE = re.compile("[\\ud800-\\udfff]+")
_PAIR = re.compile("[\\ud800-\\udbff][\\udc00-\\udfff]")
_NO_ESCAPE = re.compile("[\\ud800-\\udc7f\\udd00-\\udfff]")

_NOTHING_TO_CLEAN = frozenset({int, bool, float, bytes, type(None)})

V = TypeVar("V")


def readable(text: str | bytes) -> str:
    """The text as Unicode: bytes read as UTF-8, and U+FFFD for what is none.

    A lone surrogate that stands for a byte (as in a command line or a file's name) is read as this byte.
    """
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    text = str.__str__(text)  # A subclass may say of itself what it likes.
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    if _NO_ESCAPE.search(text) is None:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _LONE.sub(lambda m: "\ufffd" * len(m[0]), _PAIR.sub(_joined, text))


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def error_text(error: BaseException) -> str:
    """An exception's type and what it says, readable; only the type if it cannot be asked."""
    name = type(error).__name__
    try:
        said = str(error)
    except BaseException:  # its __str__ is outside code like the rest of it
        return readable(f"{name}, which cannot say why")
    return readable(f"{name}: {said}" if said else name)


def shortened(text: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The text, or its beginning with a note how much is left out."""
    if len(text) * 4 <= bytes_max:
        return text
    content = text.encode()
    if len(content) <= bytes_max:
        return text
    return f"{content[:bytes_max].decode(errors='ignore')}… ({len(content) - bytes_max} more bytes not kept)"


def cleaned(value: V) -> V:
    """An event, or any value of its fields, with every text in it readable and of bounded length."""
    return _cleaned(value)  # type: ignore[no-any-return] # the same type comes out


def _cleaned(value: Any) -> Any:
    if type(value) in _NOTHING_TO_CLEAN:
        return value
    if isinstance(value, str):
        return shortened(readable(value))
    if isinstance(value, tuple | list):
        return type(value)(_cleaned(each) for each in value) if value else value
    if isinstance(value, msgspec.Struct):
        return _cleaned_struct(value)
    return value


def _cleaned_struct(value: msgspec.Struct) -> msgspec.Struct:
    """Every event passes here, so fields that are as they should be cost a look and no call."""
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        kind = type(old)
        if kind in _NOTHING_TO_CLEAN or (kind is str and old.isascii() and len(old) <= TEXT_BYTES_MAX):
            continue
        if (new := _cleaned(old)) is not old:
            changed[name] = new
    return msgspec.structs.replace(value, **changed) if changed else value


# -- for a person's eyes -------------------------------------------------------------------------------------------

_HIDDEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800") | {chr(c) for c in range(0xFE00, 0xFE0F)}
"""What fonts draw as nothing, though Unicode calls it a letter or a mark."""

_SPACES = frozenset("\u00a0\u1680\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
"""Wide and narrow spaces: Python does not count them as printable, and they only are what they look like."""


def shown(text: str, *, lines: bool = False) -> str:
    """The text with everything escaped that moves, hides or turns round what stands beside it.

    With `lines` line feeds and tabs stay. No byte of the result is a command to a terminal.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_plain(c, lines) else _escaped(c) for c in text)


def _is_plain(char: str, lines: bool) -> bool:
    if lines and char in "\n\t":
        return True
    if char in _HIDDEN or 0xE0100 <= ord(char) <= 0xE01EF:
        return False
    return char.isprintable() or char in _SPACES


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
