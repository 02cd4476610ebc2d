"""Rotate the trace of a session that rests: fold it, check it, and begin a new file that carries on from there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeagent.runtime.folder import SNAPSHOT_NAME, TRACE_NAME, locked
from edgeagent.runtime.recording import load_recording, records_of, start_of
from edgeagent.trace.check import fold
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.rotate import begin_anew

ALL = 1_000_000
"""More archives than there will ever be."""


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
        state, _ = fold(recording.step, found.records, start_of(found))
        before = path.stat().st_size
        archive = begin_anew(path, found, state, archives=0 if drop else ALL, disk=disk)
        (directory / SNAPSHOT_NAME).unlink(missing_ok=True)
    return Rotated(len(found.records), before, path.stat().st_size, archive)
