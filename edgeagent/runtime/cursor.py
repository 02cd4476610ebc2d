"""Cursor: how far one door has come in a session's trace. A small file for each door that has a name.

    <session>/doors/<name>      the number of the first record that it has not had, and the hash of the one before

The law: record → deliver → the door acknowledges by returning → the records are as safe as the session's mode makes
them → the cursor is written. So nothing that is said is ever lost to a door. A process that is killed between a
delivery and its cursor delivers again when the session is opened: a door that can remember drops what it has had, since
the ids of effects only grow; then each answer reaches it exactly once.

A cursor that does not fit its trace (a power cut took records that were delivered, or somebody wrote the file) begins
at the trace's beginning: better twice than never.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.recording import start_of
from edgeagent.trace.check import GuardStep
from edgeagent.trace.disk import Disk, write_atomically
from edgeagent.trace.file import examine_file
from edgeagent.trace.rotate import archives_of

FOLDER_NAME = "doors"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Place(msgspec.Struct, frozen=True):
    """A place between two records: the number of the next one, and the hash of all before it in hex digits."""

    seq: int
    head: str


class Delivery(NamedTuple):
    """What a door is shown of one record. `seq` is its number."""

    seq: int
    event: Event
    state: State
    effects: tuple[Effect, ...]


class Cursor:
    """The place of one door. Only the session's own thread writes it."""

    def __init__(self, directory: Path, name: str, disk: Disk) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"door name {name!r}: use up to 64 letters, digits, '.', '_' or '-'; it names a file")
        self._file, self._disk = directory / FOLDER_NAME / name, disk
        self._place = self._read()

    @property
    def is_new(self) -> bool:
        """Whether this door has never had a place in the session."""
        return self._place is None

    def behind(self, trace: Path, step: GuardStep) -> Iterator[Delivery]:
        """What the door has not had. Raises TraceError."""
        place = self._place or Place(0, "")
        fits = place.seq == 0 or _head_before(trace, place.seq) == place.head
        return deliveries(trace, step, place.seq if fits else 0)

    def move(self, seq: int, head: bytes) -> None:
        """Write that the door has had everything before record `seq`. Raises TraceError."""
        place = Place(seq, head.hex())
        if place == self._place:
            return
        try:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(self._disk, self._file, msgspec.json.encode(place))
        except OSError as error:
            raise TraceError(f"cannot write the cursor {self._file}: {error.strerror or error}") from None
        self._place = place

    def _read(self) -> Place | None:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Place)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            return Place(0, "")  # Nobody knows what it has had.


def deliveries(trace: Path, step: GuardStep, since: int) -> Iterator[Delivery]:
    """Fold a trace and its archives again; yield the records from `since` on, as far as they are still kept."""
    for path in (*archives_of(trace), trace):
        found = examine_file(path)
        if found.header is None or found.header.first_seq + len(found.records) <= since:
            continue
        state = start_of(found)
        for record in found.records:
            state, effects = step(state, record.event)
            if record.seq >= since:
                yield Delivery(record.seq, record.event, state, effects)


def _head_before(trace: Path, seq: int) -> str:
    """The hash before record `seq` in the trace, as far as it is still kept; empty if there is none."""
    for path in (trace, *reversed(archives_of(trace))):
        found = examine_file(path, events=False)
        if found.header is None or found.header.first_seq > seq:
            continue
        if found.header.first_seq == seq:
            return found.header.before.hex()
        return next((r.hash.hex() for r in found.records if r.seq == seq - 1), "")
    return ""
