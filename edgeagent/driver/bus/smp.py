"""How does Zephyr's MCUmgr speak over a serial line? Bytes to packets to messages and back; no port, no clock.

    line      06 09 (first) or 04 14 (further), base64, newline
    frame     u16 length of what follows, packet, CRC16/XMODEM of the packet
    packet    header (op, flags, length, group, sequence, id), CBOR map

Laws: a frame is accepted only when length, checksum and the base64 itself are right to the last bit. What is not a
frame is kept aside: a console often shares the line.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from typing import Any, Literal

import cbor2
from msgspec import Struct

from edgeagent.driver.bus import cbor
from edgeagent.errors import PeerMisbehaved

FIRST = b"\x06\x09"
FURTHER = b"\x04\x14"
LINE_BYTES = 127
"""What every server takes, marker and newline included; of answers we take more (mcuboot PR#1507)."""

FRAME_BYTES = 4
"""What a frame adds to its packet: length and checksum."""

HEARD_LINE_BYTES_MAX = 4_096
PACKET_BYTES_MAX = 65_535
_HEADER = struct.Struct(">BBHHBB")
HEADER_BYTES = _HEADER.size

READ, READ_ANSWER, WRITE, WRITE_ANSWER = 0, 1, 2, 3

OS, IMAGE, STATISTICS, SETTINGS, SHELL = 0, 1, 2, 3, 9
ECHO, RESET, PARAMETERS = 0, 5, 6

Version = Literal[0, 1]
"""0 is the first version of SMP (errors as `rc`), 1 the second (errors as `err`)."""


class Message(Struct, frozen=True):
    """One request or answer."""

    op: int
    group: int
    command: int
    sequence: int
    body: dict[Any, Any]
    version: int = 1


class Packet(Struct, frozen=True):
    """A frame that was right in every way; its packet."""

    data: bytes


class Aside(Struct, frozen=True):
    """Bytes that are no frame: console text, or a lost beginning."""

    data: bytes


class Broken(Struct, frozen=True):
    """Something that began as a frame and is none."""

    data: bytes
    because: str


Heard = Packet | Aside | Broken


def encode(message: Message) -> bytes:
    """Return the packet of a message."""
    body = cbor2.dumps(message.body, canonical=True)
    first = (message.version << 3) | message.op
    return _HEADER.pack(first, 0, len(body), message.group, message.sequence, message.command) + body


def decode(packet: bytes) -> Message:
    """Return the message of a packet. Raises PeerMisbehaved."""
    if len(packet) < HEADER_BYTES:
        raise PeerMisbehaved(f"an SMP packet of {len(packet)} bytes; its header alone has {HEADER_BYTES}")
    first, _flags, length, group, sequence, command = _HEADER.unpack_from(packet)
    if length != len(packet) - HEADER_BYTES:
        raise PeerMisbehaved(f"an SMP header says {length} bytes, {len(packet) - HEADER_BYTES} follow")
    if first & 0xE0 or (first >> 3) & 3 > 1 or first & 7 > WRITE_ANSWER:
        raise PeerMisbehaved(f"an SMP header begins with {first:#04x}, which no version has")
    body = cbor.decode(packet[HEADER_BYTES:])
    if not isinstance(body, dict):
        raise PeerMisbehaved(f"an SMP body is {type(body).__name__}, not a map")
    return Message(first & 7, group, command, sequence, body, (first >> 3) & 3)


def lines(packet: bytes, line_bytes: int = LINE_BYTES) -> tuple[bytes, ...]:
    """Return the lines that carry a packet; each is to be sent on its own."""
    framed = struct.pack(">H", len(packet) + 2) + packet + struct.pack(">H", binascii.crc_hqx(packet, 0))
    portion = (line_bytes - len(FIRST) - 1) // 4 * 3
    cut = [framed[at : at + portion] for at in range(0, len(framed), portion)]
    return tuple((FURTHER if n else FIRST) + base64.b64encode(part) + b"\n" for n, part in enumerate(cut))


class Reader:
    """Cuts what is heard into packets. Finds its way again at the next frame, whatever came before."""

    def __init__(self) -> None:
        self._pending = b""
        self._frame = b""
        self._raw = b""

    def feed(self, portion: bytes) -> tuple[Heard, ...]:
        """Return what is complete now."""
        self._pending += portion
        heard: list[Heard] = []
        while (line := self._next_line(heard)) is not None:
            heard.extend(self._take(line))
        return tuple(heard)

    def _next_line(self, heard: list[Heard]) -> bytes | None:
        """Return the next line that has a marker; text before it goes aside. None when there is none yet."""
        start = _first_marker(self._pending)
        if start > 0:
            heard.append(Aside(self._pending[:start]))
            self._pending = self._pending[start:]
        if start < 0:
            keep = 1 if self._pending.endswith((FIRST[:1], FURTHER[:1])) else 0
            text = self._pending[: len(self._pending) - keep]
            if text:
                heard.append(Aside(text))
            self._pending = self._pending[len(self._pending) - keep :]
            return None
        end = self._pending.find(b"\n")
        again = _first_marker(self._pending[2:]) + 2
        if again > 1 and (end < 0 or again < end):
            # The newline of the line before was lost: a new frame begins inside it.
            heard.append(Broken(self._pending[:again], "a line without its newline"))
            self._pending, self._frame = self._pending[again:], b""
            return self._next_line(heard)
        if end < 0:
            if len(self._pending) > HEARD_LINE_BYTES_MAX:
                heard.append(Broken(self._pending, f"no newline within {HEARD_LINE_BYTES_MAX} bytes"))
                self._pending, self._frame = b"", b""
            return None
        line, self._pending = self._pending[: end + 1], self._pending[end + 1 :]
        return line

    def _take(self, line: bytes) -> tuple[Heard, ...]:
        first = line.startswith(FIRST)
        unfinished = (Broken(self._raw, "a frame that did not end"),) if first and self._frame else ()
        if first:
            self._frame = self._raw = b""
        elif not self._frame:
            return (Broken(line, "a further line without its first"),)
        part = _decoded(line[2:].removesuffix(b"\n").removesuffix(b"\r"))
        self._raw += line
        if part is None:
            return (*unfinished, *self._fail("a line that is no base64"))
        self._frame += part
        return (*unfinished, *self._finished())

    def _finished(self) -> tuple[Heard, ...]:
        if len(self._frame) < 2:
            return self._fail("a line too short for a length")
        length = struct.unpack_from(">H", self._frame)[0]
        if len(self._frame) < length + 2:
            return ()
        if len(self._frame) > length + 2 or length < 2 + HEADER_BYTES:
            return self._fail(f"a frame of {len(self._frame) - 2} bytes that says {length}")
        packet, checksum = self._frame[2:-2], struct.unpack(">H", self._frame[-2:])[0]
        if binascii.crc_hqx(packet, 0) != checksum:
            return self._fail("a wrong checksum")
        self._frame = self._raw = b""
        return (Packet(packet),)

    def _fail(self, because: str) -> tuple[Heard, ...]:
        broken = Broken(self._raw, because)
        self._frame = self._raw = b""
        return (broken,)


def _first_marker(data: bytes) -> int:
    found = [at for at in (data.find(FIRST), data.find(FURTHER)) if at >= 0]
    return min(found, default=-1)


def _decoded(text: bytes) -> bytes | None:
    """Return the bytes of strict base64, or None. The bits that padding leaves over must be zero."""
    try:
        part = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        return None
    return part if base64.b64encode(part) == text else None


def error_of(answer: Message) -> tuple[int, int] | None:
    """Return (group, code) when the answer is a refusal, in the words of either version. Raises PeerMisbehaved."""
    if "err" in answer.body:
        error = answer.body["err"]
        if not isinstance(error, Mapping) or not isinstance(error.get("rc"), int):
            raise PeerMisbehaved(f"an SMP error is {error!r}; it must be a map with rc")
        group = error.get("group", answer.group)
        if error["rc"] == 0:
            return None
        return (group if isinstance(group, int) else answer.group, error["rc"])
    code = answer.body.get("rc", 0)
    if not isinstance(code, int):
        raise PeerMisbehaved(f"an SMP error code is {code!r}; it must be a number")
    return (answer.group, code) if code else None
