"""Keep a trace from growing for ever: fold it, check it, and begin a new file that carries on from there.

The new file begins with the verified state, the hash before it and the Merkle tree of what came before, so the chain
and its checkpoints go on. The old file stays beside it as an archive, or is dropped.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from edgeagent.errors import TraceError
from edgeagent.runtime.folder import SNAPSHOT_NAME, TRACE_NAME, locked
from edgeagent.runtime.recording import load_recording, records_of, start_of
from edgeagent.trace.check import fold
from edgeagent.trace.checkpoint import grown
from edgeagent.trace.disk import DISK, Disk, write_atomically
from edgeagent.trace.record import Header, encode_header
from edgeagent.trace.recover import Clean
from edgeagent.trace.snapshot import encode_state
from edgeagent.trace.upgrade import FORMAT


@dataclass(frozen=True)
class Rotated:
    """What a rotation has done. `archive` is None when the old records were dropped."""

    records: int
    bytes_before: int
    bytes_after: int
    archive: Path | None


def rotate(directory: Path, *, drop: bool = False, agent_spec: str | None = None, disk: Disk = DISK) -> Rotated:
    """Rotate the trace of a session in which nobody works. A crash in the middle leaves the old or the new trace.

    Raises TraceDisagrees when the records do not lead where they say, TraceDamaged, ConfigError and TraceError.
    """
    path = directory / TRACE_NAME
    with locked(directory):
        recording = load_recording(path, agent_spec)
        found = records_of(path)
        if found.header is None or not isinstance(found.verdict, Clean):
            raise TraceError(f"{path} is not whole: resume the session once, then rotate it")
        state, _ = fold(recording.step, found.records, start_of(found))
        peaks, size = grown(found.header.peaks, found.header.first_seq, (r.hash for r in found.records))
        header = Header(FORMAT, os.urandom(8), size, found.head, encode_state(state), peaks)
        archive = directory / f"{TRACE_NAME}.{found.header.first_seq}-{size - 1}"
        before = path.stat().st_size
        try:
            if not drop:
                with contextlib.suppress(FileExistsError):  # A rotation that was cut off had come so far.
                    os.link(path, archive)
            write_atomically(disk, path, encode_header(header))
            (directory / SNAPSHOT_NAME).unlink(missing_ok=True)
        except OSError as error:
            raise TraceError(f"cannot rotate {path}: {error.strerror or error}") from None
    return Rotated(len(found.records), before, path.stat().st_size, None if drop else archive)
