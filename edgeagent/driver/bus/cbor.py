"""What does a device's CBOR say, within bounds? Bytes in, plain values out; the only error is PeerMisbehaved.

Maps, arrays, texts, bytes, numbers, true, false, null. Indefinite lengths are accepted, because devices send them. No
tags, no duplicate keys, no depth without end, and no memory for a length that is only claimed.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Never

from edgeagent.errors import PeerMisbehaved

DEPTH_MAX = 16
"""A statistics group has depth 3; a device has no use for more than a few."""

ITEMS_MAX = 4_096
"""In all, over one message: an SMP message of 64 KB holds fewer."""

_BREAK = object()


def decode(data: bytes) -> Any:
    """Return the one value that `data` holds; bytes after it are an error. Raises PeerMisbehaved."""
    reader = _Reader(data)
    value = reader.value(0)
    if value is _BREAK:
        _refuse(f"a break without a begin at byte {reader.at - 1}")
    if reader.at != len(data):
        _refuse(f"{len(data) - reader.at} bytes follow the value that ends at byte {reader.at}")
    return value


class _Reader:
    """A position in the bytes, and how much may still be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.items_left = ITEMS_MAX

    def value(self, depth: int) -> Any:
        """Read one value, or _BREAK."""
        if depth > DEPTH_MAX:
            _refuse(f"nested deeper than {DEPTH_MAX} at byte {self.at}")
        self.items_left -= 1
        if self.items_left < 0:
            _refuse(f"more than {ITEMS_MAX} values")
        head = self.take(1)[0]
        major, info = head >> 5, head & 0x1F
        match major:
            case 0:
                return self.count(info)
            case 1:
                return -1 - self.count(info)
            case 2:
                return self.string(info, major)
            case 3:
                return _text(self.string(info, major))
            case 4:
                return self.array(info, depth)
            case 5:
                return self.map(info, depth)
            case 6:
                return _refuse(f"a tag at byte {self.at - 1}; devices have no use for one")
            case _:
                return self.simple(info)

    def take(self, count: int) -> bytes:
        """Return the next bytes; a claimed length costs nothing until the bytes are there."""
        if count > len(self.data) - self.at:
            _refuse(f"{count} bytes wanted at byte {self.at}, {len(self.data) - self.at} are there")
        self.at += count
        return self.data[self.at - count : self.at]

    def count(self, info: int) -> int:
        """Read a number or length."""
        if info < 24:
            return info
        if info > 27:
            _refuse(f"the reserved length {info} at byte {self.at - 1}")
        return int.from_bytes(self.take(1 << (info - 24)), "big")

    def string(self, info: int, major: int) -> bytes:
        """Read a byte or text string, in one piece or in chunks of the same kind."""
        if info != 31:
            return self.take(self.count(info))
        chunks: list[bytes] = []
        while (head := self.take(1)[0]) != 0xFF:
            self.items_left -= 1
            if self.items_left < 0 or head >> 5 != major or head & 0x1F == 31:
                _refuse(f"a chunk of another kind, or too many, at byte {self.at - 1}")
            chunks.append(self.take(self.count(head & 0x1F)))
        return b"".join(chunks)

    def array(self, info: int, depth: int) -> list[Any]:
        """Read an array of known or of open length."""
        items: list[Any] = []
        left = -1 if info == 31 else self.fitting(self.count(info))
        while len(items) != left:
            item = self.value(depth + 1)
            if item is _BREAK:
                if left >= 0:
                    _refuse(f"a break inside an array of {left} at byte {self.at - 1}")
                break
            items.append(item)
        return items

    def map(self, info: int, depth: int) -> dict[Any, Any]:
        """Read a map; its keys are texts or numbers, each once."""
        entries: dict[Any, Any] = {}
        left = -1 if info == 31 else self.fitting(self.count(info))
        while len(entries) != left:
            key = self.value(depth + 1)
            if key is _BREAK:
                if left >= 0:
                    _refuse(f"a break inside a map of {left} at byte {self.at - 1}")
                break
            if isinstance(key, bool) or not isinstance(key, str | int):
                _refuse(f"a key that is neither text nor whole number, before byte {self.at}")
            if key in entries:
                _refuse(f"the key {key!r} twice, before byte {self.at}")
            entry = self.value(depth + 1)
            if entry is _BREAK:
                _refuse(f"a key without a value at byte {self.at - 1}")
            entries[key] = entry
        return entries

    def fitting(self, count: int) -> int:
        """Refuse a count that the bytes left cannot hold: an array of 2**63 is nine bytes long (cbor2#186)."""
        if count > len(self.data) - self.at:
            _refuse(f"{count} values claimed at byte {self.at}, with {len(self.data) - self.at} bytes left")
        return count

    def simple(self, info: int) -> Any:
        """Read true, false, null, undefined (as null), a float, or the break."""
        match info:
            case 20 | 21:
                return info == 21
            case 22 | 23:
                return None
            case 25 | 26 | 27:
                number = struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], self.take(1 << (info - 24)))[0]
                return number if math.isfinite(number) else _refuse(f"a float that is no number before byte {self.at}")
            case 31:
                return _BREAK
            case _:
                return _refuse(f"the simple value {info} at byte {self.at - 1}")


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("a text that is not UTF-8")


def _refuse(found: str) -> Never:
    raise PeerMisbehaved(f"the device's CBOR has {found}")
