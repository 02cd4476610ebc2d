"""A tool's result as JSON: every value as it is, and what has no such form is refused with the reason.

NaN and the infinities, of which JSON knows nothing, are said in words; bytes are told as kind, size and digest, and
handed out; numbers of other libraries become Python's own. A generator is not run: it may have no end.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from edgeagent.core.text import error_text, readable
from edgeagent.core.values import canonical_json

BYTES = (bytes, bytearray, memoryview)

_MAGIC = {
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"%PDF": "application/pdf",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"OggS": "audio/ogg",
    b"RIFF": "audio/wav",
    b"\x7fELF": "application/x-elf",
}


class CannotShow(Exception):
    """The result has no JSON form; the text says why. Never leaves driver/."""


class Told(NamedTuple):
    """A result as values that JSON has, as canonical JSON text, and the bytes in it of which only is told."""

    plain: Any
    json: str
    blobs: tuple[bytes, ...]


def told_of(value: Any) -> Told:
    """A tool's result as it is told. Raises CannotShow."""
    blobs: list[bytes] = []
    try:
        plain = _plain(value, blobs)
        return Told(plain, canonical_json(plain), tuple(blobs))
    except RecursionError:
        raise CannotShow("it is nested too deep, or holds itself") from None
    # The value's own code runs here, so it may raise anything, SystemExit included; the tool has done its work.
    except BaseException as error:
        raise CannotShow(_why(value, error)) from None


def told_of_bytes(content: bytes) -> dict[str, Any]:
    """What is told of bytes: nobody can read them, but who has them can see that they are the same."""
    kind = next((name for magic, name in _MAGIC.items() if content.startswith(magic)), None)
    if kind is None:
        kind = "text/plain" if content.isascii() and b"\0" not in content else "application/octet-stream"
    return {"bytes": len(content), "kind": kind, "sha256": hashlib.sha256(content).hexdigest()}


def _why(value: Any, error: BaseException) -> str:
    if isinstance(error, ValueError) and "integer string conversion" in str(error):
        return f"it holds an integer of more than {sys.get_int_max_str_digits()} digits"
    if isinstance(error, CannotShow | TypeError | NotImplementedError):
        return str(error) or f"a {type(value).__name__} has no JSON form"
    return error_text(error)


def _foreign(value: Any) -> Any:
    """Values of other libraries: numbers and arrays say themselves what they are in Python."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, os.PathLike):
        return readable(os.fspath(value))
    if type(value).__module__ == "ipaddress":
        return str(value)
    as_list = getattr(value, "tolist", None)
    if callable(as_list):
        return as_list()
    raise CannotShow(f"a {type(value).__name__} has no JSON form")


_AS_IT_IS = frozenset((int, bool, type(None)))


def _plain(value: Any, blobs: list[bytes]) -> Any:
    """The value in types that JSON has. What is so already is not copied: a result may take half of the memory."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if isinstance(value, set | frozenset):
        return sorted(
            (_plain(each, blobs) for each in value), key=canonical_json
        )  # Their own order is another in every process.
    if kind not in _BUILT_IN and not isinstance(value, str):  # What a kind of text says of itself is not its text.
        value = msgspec.to_builtins(value, builtin_types=BYTES, enc_hook=_foreign)
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list | tuple):
        return _plain_list(value, blobs)
    if isinstance(value, dict):
        return _plain_dict(value, blobs)
    if isinstance(value, BYTES):
        blobs.append(bytes(value))
        return told_of_bytes(blobs[-1])
    return value


_BUILT_IN = frozenset((float, str, list, tuple, dict, *BYTES))


def _plain_list(value: list[Any] | tuple[Any, ...], blobs: list[bytes]) -> list[Any]:
    made: list[Any] | None = None if type(value) is list else []
    for place, each in enumerate(value):
        plain = _plain(each, blobs)
        if made is None and plain is not each:
            made = list(value[:place])
        if made is not None:
            made.append(plain)
    return value if made is None and isinstance(value, list) else made or []


def _plain_dict(value: dict[Any, Any], blobs: list[bytes]) -> dict[str, Any]:
    made: dict[str, Any] | None = None if type(value) is dict else {}
    for place, (key, each) in enumerate(value.items()):
        name, plain = _key(key), _plain(each, blobs)
        if made is None and (name is not key or plain is not each):
            made = dict(islice(value.items(), place))
        if made is not None:
            if name in made:
                raise CannotShow("two of its keys are written alike")
            made[name] = plain
    return value if made is None else made


def _key(key: Any) -> str:
    if type(key) not in _BUILT_IN and type(key) not in _AS_IT_IS:
        key = msgspec.to_builtins(key, builtin_types=BYTES, enc_hook=_foreign)
    if isinstance(key, str):
        return readable(key)
    if type(key) is int:
        return str(key)
    if isinstance(key, int | float) or key is None:
        return str(_plain(key, [])) if isinstance(key, float) else canonical_json(key)
    raise CannotShow(f"a {type(key).__name__} cannot be a key in JSON")
