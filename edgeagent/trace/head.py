"""The head of a trace, kept apart from it: how far the session had come when it last did what must not be done twice.

    head file := magic · keyed hash of the rest · CBOR [session, seq, hash]

A trace that was cut exactly between two records is whole to look at; so what vouches for its end stands elsewhere. The
law: the record is on the disk, then the head that vouches for it, then the effect leaves. So the trace is never behind
its head, whatever crashes, and one that is has lost what may have happened. `judged` says so. No files here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cbor2
import msgspec
from msgspec.structs import astuple

from edgeagent.trace.record import GENESIS
from edgeagent.trace.recover import Damaged, Examined
from edgeagent.trace.seal import seal, unseal

MAGIC = b"edgeagent-head1\n"


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The session has at least `seq` records, the last of which has the hash `hash`."""

    session: str
    seq: int = 0
    hash: bytes = GENESIS


@dataclass(frozen=True)
class Vouched:
    """What vouches for `seq` records of a trace, in words, and for the hash of the last one."""

    by: str
    seq: int
    hash: bytes


def encode_head(head: Head, secret: bytes) -> bytes:
    """Return the bytes of a head file."""
    return seal(MAGIC, cbor2.dumps(list(astuple(head)), canonical=True), secret)


def decode_head(source: bytes, secret: bytes) -> Head | None:
    """Return the head, or None for anything that was not sealed with this key."""
    rest = unseal(MAGIC, source, secret)
    if rest is None:
        return None
    array: Any = cbor2.loads(rest)  # We have written it.
    return msgspec.convert(array, Head, builtin_types=(bytes,))


def judged(found: Examined, vouchers: Iterable[Vouched]) -> Examined:
    """The same trace; damaged if it is not, though whole, what was vouched for."""
    if isinstance(found.verdict, Damaged):
        return found
    for vouched in vouchers:
        because = _missing(found, vouched)
        if because:
            return Examined(found.header, found.records, found.end, Damaged(found.end, because))
    return found


def _missing(found: Examined, vouched: Vouched) -> str:
    first = found.header.first_seq if found.header else 0
    before = found.header.before if found.header else GENESIS
    ends = first + len(found.records)
    if ends < vouched.seq:
        what = f"the trace ends after record {ends - 1}" if ends else "there is no record"
        return f"{what}, and {vouched.by} vouches for {vouched.seq}: what is missing may have happened"
    if vouched.seq < first:
        return ""  # It stands in an archive.
    hash_there = before if vouched.seq == first else found.records[vouched.seq - first - 1].hash
    if hash_there == vouched.hash:
        return ""
    return f"the trace has another record {vouched.seq - 1} than {vouched.by} vouches for: exchanged or rewritten"
