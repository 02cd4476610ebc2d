"""Keep the folded state beside the trace, so that a long session opens at once. A cache: nothing depends on it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from edgeagent.core.agent import Agent
from edgeagent.core.state import State
from edgeagent.errors import TraceError
from edgeagent.runtime.folder import SNAPSHOT_NAME
from edgeagent.runtime.keys import local_key
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.recover import Examined
from edgeagent.trace.snapshot import (
    SNAPSHOT_FORMAT,
    Snapshot,
    decode_snapshot,
    decode_state,
    encode_snapshot,
    encode_state,
)
from edgeagent.version import __version__


def write_snapshot(directory: Path, agent: Agent, state: State, seq: int, head: bytes, disk: Disk = DISK) -> None:
    """Keep the state as a cache; a disk that does not take it does no harm."""
    snapshot = Snapshot(SNAPSHOT_FORMAT, snapshot_key(agent), seq, head, encode_state(state))
    with contextlib.suppress(TraceError):  # Without a key nothing is cached.
        disk.write_cache(directory / SNAPSHOT_NAME, encode_snapshot(snapshot, local_key(directory.parent.parent)))


def snapshot_key(agent: Agent) -> str:
    """Everything that a fold depends on besides the records."""
    dialect = agent.dialect.name if agent.dialect else ""
    return " ".join((__version__, agent.digest, dialect, *State.__struct_fields__))


def vouched_for(directory: Path) -> tuple[int, bytes] | None:
    """How many records the sealed snapshot vouches for, and the last one's hash; None without one. Whoever left it."""
    snapshot = _sealed(directory)
    return None if snapshot is None else (snapshot.seq, snapshot.head)


def _sealed(directory: Path) -> Snapshot | None:
    try:
        source = (directory / SNAPSHOT_NAME).read_bytes()
        return decode_snapshot(source, local_key(directory.parent.parent))
    except (OSError, TraceError):
        return None


def sealed_state(directory: Path, found: Examined) -> State | None:
    """The state after the last record, if the sealed snapshot is of just that, whatever agent left it; or None."""
    snapshot = _sealed(directory)
    ends = len(found.records) + (found.header.first_seq if found.header else 0)
    if snapshot is None or (snapshot.seq, snapshot.head) != (ends, found.head):
        return None
    with contextlib.suppress(TraceError):  # Of another version of the state.
        return decode_state(snapshot.state)
    return None


def read_snapshot(directory: Path, agent: Agent) -> Snapshot | None:
    """The snapshot that this agent, in this version, has left; or None."""
    snapshot = _sealed(directory)
    return snapshot if snapshot is not None and snapshot.key == snapshot_key(agent) else None
