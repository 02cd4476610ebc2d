"""Is a trace whole, torn at its end, or damaged? Bytes in, a verdict out; nothing is repaired here.

    Clean     every byte belongs to a right record.
    Torn      the last write did not arrive whole: too short, or zeros or leftovers of the disk in its place.
    Damaged   what had been written is no longer there: a changed record, one with right records behind it, a gap.

A tear is the end of a healthy file and may be cut off. Damage is not ours to repair. When a bad last record could be
either, these signs speak for damage: flipping a single bit makes the record right; or the file ends exactly where the
record ends and the record is right but for one byte, or but for its head, or lies in one sector, which a disk writes
whole or not at all.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from edgeagent.errors import TraceDamaged
from edgeagent.trace.record import (
    FRAME_BYTES,
    HEAD,
    MAGIC,
    TAIL,
    Broken,
    Header,
    Record,
    decode_header,
    decode_record,
    frame_crc,
    length_check,
    read_frame,
    read_length,
)

SECTOR_BYTES = 512
"""The smallest piece that every disk, SD card and eMMC writes whole."""


@dataclass(frozen=True)
class Clean:
    """Every byte is as it was written."""


@dataclass(frozen=True)
class Torn:
    """The bytes from `offset` on are the beginning of a write that did not arrive whole, or less."""

    offset: int
    size: int
    because: str


@dataclass(frozen=True)
class Damaged:
    """At `offset` stands something else than was written there."""

    offset: int
    because: str


Verdict = Clean | Torn | Damaged


@dataclass(frozen=True)
class Examined:
    """All right records from the beginning, and what follows them. `end` is where they end, in bytes."""

    header: Header | None
    records: tuple[Record, ...]
    end: int
    verdict: Verdict

    @property
    def head(self) -> bytes:
        """The hash that vouches for every record."""
        if self.records:
            return self.records[-1].hash
        return self.header.before if self.header else bytes(32)


def examine(source: bytes, *, events: bool = True) -> Examined:
    """Read a whole trace file; without `events` only frames, checksums and the chain are looked at.

    Raises TraceError only for a format newer than ours.
    """
    if _header_is_torn(source):
        return Examined(None, (), 0, Torn(0, len(source), "the file's header did not arrive whole"))
    try:
        header, start = decode_header(source)
    except TraceDamaged as damage:
        return Examined(None, (), 0, Damaged(damage.offset, str(damage)))
    records: list[Record] = []
    verdict: Verdict = Clean()
    end = start
    try:
        for record in _records(source, header, start):
            _ = events and record.event
            records.append(record)
            end = record.offset + record.size
    except Broken as broken:
        verdict = judge(source, end, header.nonce, str(broken))
    except TraceDamaged as damage:
        verdict = Damaged(damage.offset, str(damage))
    return Examined(header, tuple(records), end, verdict)


def judge(source: bytes, offset: int, nonce: bytes, broken: str) -> Verdict:
    """Torn or damaged? `offset` is where the right records end and something else begins."""
    follows = next_frame(source, offset + 1, nonce)
    if follows is not None:
        return Damaged(offset, f"{broken}, but a right record follows at byte {follows}")
    if not any(source[offset:]):
        return Torn(offset, len(source) - offset, "only zeros follow")
    changed = _changed_head(source, offset, nonce) or _changed_body(source, offset, nonce)
    if changed:
        return Damaged(offset, f"{broken}: {changed}")
    return Torn(offset, len(source) - offset, broken)


def next_frame(source: bytes, start: int, nonce: bytes) -> int | None:
    """Return where the next whole frame at or after `start` begins, or None."""
    at = source.find(_ARRAY_OF_FOUR, start + HEAD.size)
    while at >= 0:
        try:
            read_frame(source, at - HEAD.size, nonce)
        except Broken:
            at = source.find(_ARRAY_OF_FOUR, at + 1)
        else:
            return at - HEAD.size
    return None


_ARRAY_OF_FOUR = b"\x84"
"""How the CBOR of every record begins."""


def _records(source: bytes, header: Header, start: int) -> Iterator[Record]:
    offset, seq, before = start, header.first_seq, header.before
    while offset < len(source):
        record = decode_record(read_frame(source, offset, header.nonce), offset, seq, before, header.format)
        yield record
        offset, seq, before = offset + record.size, seq + 1, record.hash


def _header_is_torn(source: bytes) -> bool:
    """Whether the file ends before its header does: it was being created when the power went."""
    there = source.rstrip(b"\0")
    if not there.startswith(MAGIC):
        return MAGIC.startswith(there)
    if len(there) < len(MAGIC) + HEAD.size:
        return True
    try:
        size = len(MAGIC) + FRAME_BYTES + read_length(source, len(MAGIC), b"")
    except Broken:
        return False
    return len(there) < size and not _is_whole(source)


def _is_whole(source: bytes) -> bool:
    try:
        read_frame(source, len(MAGIC), b"")
    except Broken:
        return False
    return True


def _changed_head(source: bytes, offset: int, nonce: bytes) -> str:
    """Say so if a whole record stands here and only its first eight bytes were changed."""
    head = source[offset : offset + HEAD.size]
    if len(head) < HEAD.size or HEAD.unpack(head)[1] == length_check(nonce, offset, HEAD.unpack(head)[0]):
        return ""
    number = int.from_bytes(head, "little")
    for bit in range(HEAD.size * 8):
        flipped = (number ^ 1 << bit).to_bytes(HEAD.size, "little")
        if _is_frame(source, offset, nonce, flipped):
            return f"bit {bit % 8} of byte {offset + bit // 8} was flipped"
    length = len(source) - offset - FRAME_BYTES
    if length > 0 and _is_frame(source, offset, nonce, HEAD.pack(length, length_check(nonce, offset, length))):
        return "its first eight bytes were changed"
    return ""


def _is_frame(source: bytes, offset: int, nonce: bytes, head: bytes) -> bool:
    length, check = HEAD.unpack(head)
    if check != length_check(nonce, offset, length):
        return False
    try:
        read_frame(source[:offset] + head + source[offset + HEAD.size :], offset, nonce)
    except Broken:
        return False
    return True


def _changed_body(source: bytes, offset: int, nonce: bytes) -> str:
    """Say so if a whole record stands here whose content was changed after it had arrived."""
    try:
        length = read_length(source, offset, nonce)
    except Broken:
        return ""
    end = offset + length + FRAME_BYTES
    if end > len(source):
        return ""  # Cut short: there is nothing to compare with.
    changed = _changed_byte(source, offset, length, nonce)
    if changed is not None and (end == len(source) or changed[1].bit_count() == 1):
        at, bits = changed
        if end == len(source) or any(source[at:]):  # Else the byte is the first of a run of zeros: a tear.
            return f"byte {at} was changed by {bits:#04x}"
    in_one_sector = offset // SECTOR_BYTES == (end - 1) // SECTOR_BYTES
    if end == len(source) and in_one_sector and any(source[end - TAIL.size :]):
        return "it lies in one sector, which is written whole or not at all"
    return ""


def _changed_byte(source: bytes, offset: int, length: int, nonce: bytes) -> tuple[int, int] | None:
    """Return where a single changed byte explains the wrong CRC, and which bits of it, or None.

    CRC is linear: the difference of the two CRCs is the CRC of the change alone. Winding it back byte by byte
    ends in the changed byte itself, if it is one.
    """
    end = offset + HEAD.size + length
    stored = TAIL.unpack_from(source, end)[0]
    payload = source[offset + HEAD.size : end]
    register = stored ^ frame_crc(nonce, source[offset : offset + HEAD.size], payload)
    for place in range(TAIL.size):
        if register & ~(0xFF << 8 * place) == 0:
            return end + place, register >> 8 * place
    for at in range(end - 1, offset - 1, -1):
        index = _BY_TOP_BYTE[register >> 24]
        register = ((register ^ _STEP[index]) << 8 & 0xFFFF_FFFF) | index
        if register <= 0xFF:
            return at, register
    return None


_STEP = [zlib.crc32(bytes([n ^ 0xFF])) ^ 0xFF00_0000 for n in range(256)]
_BY_TOP_BYTE = {value >> 24: n for n, value in enumerate(_STEP)}
