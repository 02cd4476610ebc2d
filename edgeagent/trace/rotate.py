"""Begin a trace file that carries on from another one: with its state, its last hash and its Merkle tree.

The old file stays beside it as an archive, or goes. A crash in the middle leaves the old or the new file, whole.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from edgeagent.core.state import State
from edgeagent.errors import TraceError
from edgeagent.trace.disk import DISK, Disk, write_atomically
from edgeagent.trace.export.checkpoint import grown
from edgeagent.trace.record import NONCE_BYTES, Header, encode_header
from edgeagent.trace.recover import Clean, Examined
from edgeagent.trace.snapshot import encode_state
from edgeagent.trace.upgrade import FORMAT

ARCHIVES_MAX = 8
"""Archives that a running session keeps; with 8 MB each that is two thirds of a million records."""


def header_after(found: Examined, state: State) -> Header:
    """The header of a file that goes on where `found` ends, with its fold. Raises TraceError if it is not whole."""
    if found.header is None or not isinstance(found.verdict, Clean):
        raise TraceError("the trace is not whole: resume the session once, then rotate it")
    peaks, size = grown(found.header.peaks, found.header.first_seq, (r.hash for r in found.records))
    return Header(FORMAT, os.urandom(NONCE_BYTES), size, found.head, encode_state(state), peaks)


def begin_anew(path: Path, found: Examined, state: State, *, archives: int, disk: Disk = DISK) -> Path | None:
    """Put a new file in the place of `path`; keep the newest `archives` old ones. Raises TraceError."""
    header = header_after(found, state)
    assert found.header is not None, "header_after has looked"
    archive = path.with_name(f"{path.name}.{found.header.first_seq}-{header.first_seq - 1}")
    try:
        if archives:
            with contextlib.suppress(FileExistsError):  # A rotation that was cut off had come so far.
                os.link(path, archive)
        write_atomically(disk, path, encode_header(header))
        for old in archives_of(path)[: -archives or None]:
            old.unlink()
    except OSError as error:
        raise TraceError(f"cannot rotate {path}: {error.strerror or error}") from None
    return archive if archives else None


def archives_of(path: Path) -> list[Path]:
    """The archives of a trace, oldest first."""
    found = [(int(m[1]), p) for p in path.parent.glob(f"{path.name}.*") if (m := _RANGE.search(p.name))]
    return [archive for _, archive in sorted(found)]


_RANGE = re.compile(r"\.(\d+)-\d+$")
