"""Frames of JSON-RPC: bytes in, texts of messages out, the same ones however the bytes are cut.

By lines, as MCP and ACP are spoken over stdio, or by `Content-Length`, as editors speak to language servers. What is
too long is skipped as it comes and never held. Raises nothing.
"""

from __future__ import annotations

import re
from typing import Protocol

import msgspec

from edgeagent.core.text import readable, shown

MESSAGE_BYTES_MAX = 1 << 22
"""The most of one message: more than any model's window holds."""

HEADER_BYTES_MAX = 8192
"""The most of one line where a header stands."""

SHOWN_CHARS_MAX = 200
"""The most that is kept of what was skipped."""


class Skipped(msgspec.Struct, frozen=True):
    """What stood where a message should: why it is none, and its beginning, fit to be shown.

    `code` is JSON-RPC's for it, should the other side be told; `id` is the message's own, where it had one.
    """

    why: str
    text: str
    code: int = -32700
    id: int | str | None = None


class Framing(Protocol):
    """A way to tell where a message ends."""

    def feed(self, chunk: bytes) -> list[bytes | Skipped]:
        """Return what these bytes complete."""

    def close(self) -> list[bytes | Skipped]:
        """Return what is left over: the stream has ended."""


def skipped(why: str, found: bytes, code: int = -32700, message_id: int | str | None = None) -> Skipped:
    """Return what is recorded of bytes that are no message."""
    text = shown(readable(found[: 4 * SHOWN_CHARS_MAX]).strip()[:SHOWN_CHARS_MAX])
    return Skipped(why, text, code, message_id)


class Lines:
    """Frames that are lines; blank ones are left out. The last one counts even without its end."""

    def __init__(self, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._most = bytes_max
        self._line: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes | Skipped]:
        """Return the lines that these bytes complete."""
        found: list[bytes | Skipped] = []
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line, found)
            found += self.close()
        self._add(rest, found)
        return found

    def close(self) -> list[bytes | Skipped]:
        """Return the line that has begun: it has ended."""
        line = b"".join(self._line)
        self._line, self._held = [], 0
        return [line] if line.strip() else []

    def _add(self, piece: bytes, found: list[bytes | Skipped]) -> None:
        if self._held <= self._most and piece:
            self._line.append(piece)
            self._held += len(piece)
            if self._held > self._most:  # From here to the line's end nothing is kept.
                found.append(skipped(f"it is longer than {self._most} bytes", b"".join(self._line)[: self._most]))
                self._line = []


_LENGTH = re.compile(rb"\s*content-length:\s*(\d{1,18})\s*", re.IGNORECASE)
_OTHER_HEADER = re.compile(rb"\s*content-type:.*", re.IGNORECASE | re.DOTALL)


class Lengths:
    """Frames behind a header that says their length. A line that is no header is skipped, so text does no harm."""

    def __init__(self, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._most = bytes_max
        self._line = b""
        self._is_line_skipped = False
        self._length = -1  # What the header says; -1: nothing yet.
        self._left = 0  # Bytes of the body that are still to come; 0: a header comes.
        self._body: list[bytes] | None = []  # None: it is skipped.

    def feed(self, chunk: bytes) -> list[bytes | Skipped]:
        """Return the messages that these bytes complete."""
        found: list[bytes | Skipped] = []
        while chunk:
            if self._left:
                piece, chunk = chunk[: self._left], chunk[self._left :]
                self._take_body(piece, found)
            else:
                line, end, chunk = chunk.partition(b"\n")
                self._take_line(line, bool(end), found)
        return found

    def close(self) -> list[bytes | Skipped]:
        """Return what is left over: a message whose end is missing is none."""
        found: list[bytes | Skipped] = []
        if self._line.strip():
            found.append(skipped("it is no header", self._line))
        if self._left and self._body is not None:
            found.append(skipped("the stream ended before it did", b"".join(self._body)))
        self._line, self._left = b"", 0
        return found

    def _take_line(self, piece: bytes, is_whole: bool, found: list[bytes | Skipped]) -> None:
        if not self._is_line_skipped:
            self._line += piece
        if len(self._line) > HEADER_BYTES_MAX:
            found.append(skipped("it is no header", self._line))
            self._line, self._is_line_skipped = b"", True
        if is_whole:
            if not self._is_line_skipped:
                self._take_header(self._line, found)
            self._line, self._is_line_skipped = b"", False

    def _take_header(self, line: bytes, found: list[bytes | Skipped]) -> None:
        if length := _LENGTH.fullmatch(line):
            self._length = int(length[1])
        elif line.strip():
            if not _OTHER_HEADER.fullmatch(line):
                found.append(skipped("it is no header", line))
        elif self._length >= 0:
            self._left, self._length = self._length, -1
            self._body = [] if self._left <= self._most else None
            if self._body is None:
                found.append(skipped(f"it is longer than {self._most} bytes", b"Content-Length: %d" % self._left))

    def _take_body(self, piece: bytes, found: list[bytes | Skipped]) -> None:
        self._left -= len(piece)
        if self._body is not None:
            self._body.append(piece)
            if not self._left:
                found.append(b"".join(self._body))
