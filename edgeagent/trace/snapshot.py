"""The folded state as a cache: how it is written, and when it may be believed. Damage to it costs time, never truth.

    snapshot.cbor := magic · keyed hash of the rest · CBOR [format, key, seq, head, state]

`key` stands for everything that the fold depends on besides the records: the agent, the guard's form, the version.
`head` is the hash of the record that it was folded up to; it is used only if the trace has just this record there.
"""

from __future__ import annotations

from typing import Any

import cbor2
import msgspec

from edgeagent.core.state import STATE_VERSION, State
from edgeagent.errors import TraceError
from edgeagent.trace.seal import seal, unseal

SNAPSHOT_FORMAT = 1
MAGIC = b"edgeagent-fold1\n"


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """A state and what it is the fold of: `seq` records, the last of which has the hash `head`."""

    format: int
    key: str
    seq: int
    head: bytes
    state: bytes


def encode_state(state: State) -> bytes:
    """Return the state as canonical CBOR."""
    return cbor2.dumps(msgspec.to_builtins(state, builtin_types=(bytes,)), canonical=True)


def decode_state(source: bytes) -> State:
    """Return the state. Raises TraceError when it is none, or of another version."""
    try:
        array = cbor2.loads(source)
        state = msgspec.convert(array, State, builtin_types=(bytes,))
        # CBOR has one kind of array; what we keep is immutable.
        state = _immutable(state)
    except Exception as error:  # cbor2's versions differ in what they raise for bad input
        raise TraceError(f"a stored state cannot be read: {error}") from None
    if state.version != STATE_VERSION:
        raise TraceError(f"a stored state has version {state.version}; this edgeagent knows {STATE_VERSION}")
    return state


def encode_snapshot(snapshot: Snapshot, secret: bytes) -> bytes:
    """Return the bytes of a snapshot file."""
    rest = cbor2.dumps(msgspec.to_builtins(snapshot, builtin_types=(bytes,)), canonical=True)
    return seal(MAGIC, rest, secret)


def decode_snapshot(source: bytes, secret: bytes) -> Snapshot | None:
    """Return the snapshot, or None for anything that is not exactly what we wrote."""
    rest = unseal(MAGIC, source, secret)
    if rest is None:
        return None
    try:
        array: Any = cbor2.loads(rest)
        snapshot = msgspec.convert(array, Snapshot, builtin_types=(bytes,))
    except Exception:  # as above; a cache is never worth an error
        return None
    return snapshot if snapshot.format == SNAPSHOT_FORMAT else None


def _immutable(state: State) -> State:
    below = tuple(
        msgspec.structs.replace(child, state=_immutable(child.state)) if child.state else child
        for child in state.children
    )
    return msgspec.structs.replace(state, monitors=_tuples(state.monitors), children=below)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list | tuple) else value
