"""What one record is, in bytes: an event, the digest of the effects it led to, and the hash of what came before.

    file    := magic  header  record*
    header  := length u32 · check u32 · CBOR [format, nonce, …] · crc u32
    record  := length u32 · check u32 · CBOR [seq, link, event, effects digest]                         · crc u32

    check   CRC-32 over nonce, the frame's own offset and its length: a frame is valid in one place of one file only,
            so what an old file left on the disk is never taken for a record of this one.
    crc     CRC-32 over nonce, length, check and CBOR.
    hash    SHA-256 over the hash before and the CBOR. `link` is the first half of the hash before, so each record
            vouches for everything up to it; `trace head` is the last hash.

Step is pure, so an event's effects are known before its record is written. Event and digest therefore stand in one
record, and that record *is* the intent: it is made durable before an effect that must not happen twice is submitted.
All numbers are little-endian. The CBOR is canonical and is checked to be so when it is read. No files here.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import cbor2
import msgspec

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.values import Message
from edgeagent.errors import TraceDamaged, TraceError
from edgeagent.trace.upgrade import FORMAT, check_format, upgraded
from edgeagent.version import __version__

MAGIC = b"edgeagent-trace\n"
GENESIS = bytes(32)
"""The hash before the first record of a session."""

DIGEST_BYTES = 16
LINK_BYTES = 16
NONCE_BYTES = 8
HEAD = struct.Struct("<II")
TAIL = struct.Struct("<I")
FRAME_BYTES = HEAD.size + TAIL.size
RECORD_BYTES_MAX = 16 << 20
"""A record holds one event; a tool's result or a pasted text is far below this, a wrong length rarely is."""


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What a trace file begins with. After a rotation it carries on from `before` with the verified `state`.

    `peaks` are the Merkle tree over the records before it, so that checkpoints can still be signed and compared.
    """

    format: int
    nonce: bytes
    first_seq: int = 0
    before: bytes = GENESIS
    state: bytes | None = None
    peaks: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Record:
    """One recorded event. `offset` and `size` say where it stands in its file, `hash` vouches for all up to it.

    The event is decoded when it is first asked for: a resumed session needs only those after its snapshot.
    """

    seq: int
    offset: int
    size: int
    event_cbor: bytes
    effects_digest: bytes
    hash: bytes
    format: int = FORMAT

    @cached_property
    def event(self) -> Event:
        """The event. Raises TraceDamaged when this version knows none like it."""
        try:
            array = upgraded(_canonical(self.event_cbor, self.offset), self.format)
            return msgspec.convert(array, Event, builtin_types=(bytes,))  # type: ignore[no-any-return] # a union is not a type to mypy
        except msgspec.ValidationError as error:
            where = f"record {self.seq} at byte {self.offset}"
            text = f"{where} holds no event that edgeagent {__version__} knows: {error}"
            raise TraceDamaged(text, self.offset) from None


class Broken(Exception):
    """These bytes are not a frame; the text says what is wrong. Never leaves trace/."""


def effects_digest(effects: Sequence[Effect]) -> bytes:
    """Return 16 bytes that stand for exactly these effects. msgspec writes every number in its shortest form."""
    return hashlib.sha256(msgspec.msgpack.encode(compact(tuple(effects)))).digest()[:DIGEST_BYTES]


def chained(before: bytes, payload: bytes) -> bytes:
    """Return the hash of a record from the hash before it and its CBOR."""
    return hashlib.sha256(before + payload).digest()


def compact(value: Any) -> Any:
    """Return a value as it is recorded: a struct is its tag and its fields, without those at the end that are defaults.

    So a field that a later version adds, with a default, changes neither the bytes nor the digests of what is older.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is Message:
        return _compact_message(value)
    if kind is tuple:
        if value and type(value[0]) is Message:
            return [_compact_message(each) for each in value]
        return [each if type(each) in _PLAIN else compact(each) for each in value]
    return _compact_struct(value) if isinstance(value, msgspec.Struct) else msgspec.to_builtins(value)


_PLAIN = frozenset((str, int, bool, bytes, float, type(None)))


def _compact_struct(value: msgspec.Struct) -> list[Any]:
    fields = list(msgspec.structs.astuple(value))
    for default in reversed(type(value).__struct_defaults__):
        if fields[-1] != default:
            break
        fields.pop()
    tag = type(value).__struct_config__.tag
    begin = [] if tag is None else [tag]
    return begin + [each if type(each) in _PLAIN else compact(each) for each in fields]


@lru_cache(maxsize=256)
def _compact_message(message: Message) -> msgspec.Raw:
    # A prompt repeats the messages of the one before it, so their bytes are kept. They occur only in effects.
    return msgspec.Raw(msgspec.msgpack.encode(_compact_struct(message)))


def named_fields(value: Event | Effect) -> dict[str, Any]:
    """An event or effect as an object with its type's name and its fields'; bytes become hex."""
    fields = _fields(value)
    for name in _LATER & fields.keys():
        if not fields[name]:
            del fields[name]  # Exports of older traces stay what they were.
    return {"type": type(value).__name__, **fields}


_LATER = frozenset(("by", "door", "unshown", "total", "skew_ms", "session", "tool", "arguments", "notes", "stays"))
_LATER |= {"asked", "spent", "kept"}
"""Fields that were added later, and are told where they say something."""


def _fields(value: msgspec.Struct) -> dict[str, Any]:
    told = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    for name in ("cost", "part"):  # Of a `Usage`, of a `Message`, which stand inside: added later, as those above.
        if not told.get(name, True):
            del told[name]
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _fields(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value.hex() if isinstance(value, bytes) else value


def encode_payload(seq: int, before: bytes, event: Event, digest: bytes) -> bytes:
    """Return a record's CBOR. Raises TraceError for text that is no Unicode, or too much of it."""
    try:
        payload = cbor2.dumps([seq, before[:LINK_BYTES], compact(event), digest], canonical=True)
    except UnicodeEncodeError as error:
        raise TraceError(
            f"{type(event).__name__} holds text that is not Unicode ({error.reason}); clean it first"
        ) from None
    if len(payload) > RECORD_BYTES_MAX:
        raise TraceError(f"{type(event).__name__} has {len(payload)} bytes; {RECORD_BYTES_MAX} is the most of a record")
    return payload


def encode_header(header: Header) -> bytes:
    """Return the bytes that a file begins with."""
    payload = cbor2.dumps(compact(header), canonical=True)
    return MAGIC + frame(b"", len(MAGIC), payload)


def frame(nonce: bytes, offset: int, payload: bytes) -> bytes:
    """Put length and checksums around CBOR that will stand at `offset`."""
    head = HEAD.pack(len(payload), length_check(nonce, offset, len(payload)))
    return b"".join((head, payload, TAIL.pack(frame_crc(nonce, head, payload))))


def length_check(nonce: bytes, offset: int, length: int) -> int:
    """The CRC that makes a length trustworthy in this one place."""
    return zlib.crc32(struct.pack("<QI", offset, length), zlib.crc32(nonce))


def frame_crc(nonce: bytes, head: bytes, payload: bytes | memoryview) -> int:
    """The CRC over a whole frame."""
    return zlib.crc32(payload, zlib.crc32(head, zlib.crc32(nonce)))


def read_length(source: bytes, offset: int, nonce: bytes) -> int:
    """Return the length that the frame at `offset` gives itself. Raises Broken when the 8 bytes are not a head."""
    if len(source) - offset < HEAD.size:
        raise Broken(f"{len(source) - offset} bytes are too few for a record")
    length, check = HEAD.unpack_from(source, offset)
    if not 0 < length <= RECORD_BYTES_MAX or check != length_check(nonce, offset, length):
        raise Broken("the length does not agree with its checksum")
    return int(length)


def read_frame(source: bytes, offset: int, nonce: bytes) -> bytes:
    """Return the CBOR of the frame at `offset`. Raises Broken when it is not whole and right."""
    length = read_length(source, offset, nonce)
    end = offset + HEAD.size + length
    if end + TAIL.size > len(source):
        raise Broken(f"the record is {length + FRAME_BYTES} bytes long and only {len(source) - offset} are there")
    payload = source[offset + HEAD.size : end]
    if TAIL.unpack_from(source, end)[0] != frame_crc(nonce, source[offset : offset + HEAD.size], payload):
        raise Broken("the checksum is wrong")
    return payload


def decode_header(source: bytes) -> tuple[Header, int]:
    """Return the header and where the first record begins. Raises TraceDamaged, or TraceError for another format."""
    if source[: len(MAGIC)] != MAGIC:
        raise TraceDamaged("this is not a trace: it does not begin with 'edgeagent-trace'", 0)
    try:
        payload = read_frame(source, len(MAGIC), b"")
    except Broken as broken:
        raise TraceDamaged(f"the trace's header is damaged: {broken}", 0) from None
    array = _canonical(payload, len(MAGIC))
    if isinstance(array, list) and array and isinstance(array[0], int):
        check_format(array[0])
    try:
        header = msgspec.convert(array, Header, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise TraceDamaged(f"the trace's header is none: {error}", 0) from None
    return header, len(MAGIC) + len(payload) + FRAME_BYTES


def decode_record(payload: bytes, offset: int, seq: int, before: bytes, form: int = FORMAT) -> Record:
    """Return the record in a frame's CBOR. Raises TraceDamaged when it does not follow what came before it."""
    begin = _ARRAY_OF_FOUR + cbor2.dumps(seq)
    link_end = len(begin) + 1 + LINK_BYTES
    digest_at = len(payload) - DIGEST_BYTES
    if not payload.startswith(begin + _SIXTEEN_BYTES) or payload[digest_at - 1 : digest_at] != _SIXTEEN_BYTES:
        raise TraceDamaged(f"what stands at byte {offset} is not record {seq}: cut out or rewritten", offset)
    if payload[len(begin) + 1 : link_end] != before[:LINK_BYTES]:
        raise TraceDamaged(f"record {seq} at byte {offset} does not follow the record before it: rewritten", offset)
    event_cbor, digest = payload[link_end : digest_at - 1], payload[digest_at:]
    return Record(seq, offset, len(payload) + FRAME_BYTES, event_cbor, digest, chained(before, payload), form)


_ARRAY_OF_FOUR = b"\x84"
_SIXTEEN_BYTES = b"\x50"
"""How CBOR begins an array of four items and a string of sixteen bytes."""


def _canonical(payload: bytes, offset: int) -> Any:
    """Decode CBOR that has only one way to be written; tags, indefinite lengths and the like do not survive this."""
    try:
        value = cbor2.loads(payload)
        again = cbor2.dumps(value, canonical=True)
    except Exception as error:  # cbor2's versions differ in what they raise for bad input
        raise TraceDamaged(f"the record at byte {offset} is not CBOR: {error}", offset) from None
    if again != payload:
        raise TraceDamaged(f"the record at byte {offset} is not in the canonical form we write", offset)
    return value
