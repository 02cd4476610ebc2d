"""What a session is given when it is made: what it touches besides its drivers, and the files that are its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.folder import Lock
from edgeagent.runtime.stamps import Clock, monotonic_ms, wall_clock_ms
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import TraceFile


@dataclass(frozen=True)
class Outside:
    """What a session touches besides its drivers: its doors, the clocks, the disk."""

    doors: Attached | None = None
    clock_ms: Clock = wall_clock_ms
    disk: Disk = DISK
    steady_ms: Clock | None = None

    @property
    def steady(self) -> Clock | None:
        """The clock that never jumps; none beside a wall clock that was given, unless it was given too."""
        return self.steady_ms or (monotonic_ms if self.clock_ms is wall_clock_ms else None)


NOTHING_GIVEN = Outside()


class Files(NamedTuple):
    """A session's directory, locked, with its trace open."""

    directory: Path
    held: Lock
    trace: TraceFile

    def append(self, event: Event, effects: tuple[Effect, ...], *, sync: bool) -> None:
        """Write one record, as `TraceFile.append`. Raises ConfigError too, where the lock was lost to another."""
        self.held.keep()
        self.trace.append(event, effects, sync=sync)
