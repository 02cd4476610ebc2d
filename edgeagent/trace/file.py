"""One trace file: append records to it, read it, open it again after a crash.

A record is durable before an effect that must not happen twice is submitted, in every mode. What else is lost:

    durability   a killed process loses   a power cut loses at most
    strict       nothing                  nothing
    effects      nothing                  what came after the last sync: `window_s` (1 s), or since the session rested
    relaxed      nothing                  what came after the last sync: `window_s` (30 s); kind to SD cards

After a failed write or sync nobody knows what the disk holds, so the file refuses everything from then on. Knows no
agent and no session; who may write at all is decided by the session's lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.errors import TraceDamaged, TraceError
from edgeagent.trace.disk import DISK, NO_ROOM, Disk, file_behind, sync, write_all, write_atomically
from edgeagent.trace.record import (
    HEAD,
    NONCE_BYTES,
    TAIL,
    Header,
    Record,
    chained,
    effects_digest,
    encode_header,
    encode_payload,
    frame,
)
from edgeagent.trace.recover import Clean, Damaged, Examined, Torn, examine
from edgeagent.trace.rotate import ARCHIVES_MAX, begin_anew
from edgeagent.trace.upgrade import FORMAT

Durability = Literal["strict", "effects", "relaxed"]

WINDOW_S: dict[Durability, float] = {"strict": 0.0, "effects": 1.0, "relaxed": 30.0}
"""For how long a record may wait for its sync. 30 s is also how long Linux itself keeps dirty pages."""


READ_ONLY = -1

Vouch = Callable[[int, bytes], None]
"""Writes down elsewhere how many records there are, and the last one's hash. Raises OSError."""


class TraceFile:
    """A trace that is open for appending. Make one with `create` or `resume`."""

    def __init__(
        self,
        path: Path,
        descriptor: int,
        header: Header,
        at: Examined,
        *,
        durability: Durability,
        disk: Disk,
        clock: Callable[[], float],
        vouch: Vouch | None = None,
    ) -> None:
        self.path = path
        self.seq = header.first_seq + len(at.records)
        self.head = at.head
        self._descriptor, self._identity = descriptor, file_behind(descriptor)
        self._nonce = header.nonce
        self._offset = at.end
        self._begin = at.records[0].offset if at.records else at.end
        self._disk = disk
        self._clock = clock
        self._vouch = vouch
        self._window_s = WINDOW_S[durability]
        self._waiting_since: float | None = None
        self._closed = ""
        self.failed = False

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        durability: Durability = "effects",
        disk: Disk = DISK,
        clock: Callable[[], float] = time.monotonic,
        header: Header | None = None,
        vouch: Vouch | None = None,
    ) -> TraceFile:
        """Make a new trace file; its header and its name are durable when this returns. Raises TraceError."""
        header = header or Header(FORMAT, os.urandom(NONCE_BYTES))
        first = encode_header(header)
        while True:
            try:
                descriptor = _begun(disk, path, first)
                break
            except OSError as error:
                if not disk.yields(error):
                    raise TraceError(f"cannot create the trace {path}: {error.strerror or error}") from None
        at = Examined(header, (), len(first), Clean())
        return cls(path, descriptor, header, at, durability=durability, disk=disk, clock=clock, vouch=vouch)

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        durability: Durability = "effects",
        disk: Disk = DISK,
        clock: Callable[[], float] = time.monotonic,
        vouch: Vouch | None = None,
        found: Examined | None = None,
    ) -> tuple[TraceFile, Examined]:
        """Open a trace after a crash or a rest; a torn tail is put beside it and cut off.

        The second value tells what was found; `found` is given by who has looked. Where nothing can be written, by want
        of room or by right, the trace is closed from the beginning. Raises TraceDamaged, having changed nothing, and
        TraceError.
        """
        found = found or examine_file(path, events=False)
        if isinstance(found.verdict, Damaged):
            raise damaged(path, found.verdict)
        closed = ""
        try:
            if isinstance(found.verdict, Torn):
                cut(path, found.verdict.offset, disk)
            if found.header is None:
                disk.remove(path)  # Nothing was ever recorded in it.
                return cls.create(path, durability=durability, disk=disk, clock=clock, vouch=vouch), found
            descriptor = disk.open_append(path)
            sync(disk, descriptor)  # What a killed process had written may still be only in memory.
        except OSError as error:
            if found.header is None or error.errno not in (*NO_ROOM, errno.EROFS):
                raise TraceError(f"cannot open the trace {path}: {error.strerror or error}") from None
            descriptor = READ_ONLY  # What is recorded can be read, and nothing of it is lost.
            closed = f"it can be read but not written ({error.strerror}); make room for it, then resume the session"
        trace = cls(path, descriptor, found.header, found, durability=durability, disk=disk, clock=clock, vouch=vouch)
        trace._closed = closed
        return trace, found

    def append(self, event: Event, effects: Sequence[Effect], *, sync: bool) -> None:
        """Record an event and the effects it led to; with `sync` it is durable, and vouched for, when this returns.

        Raises TraceError, after which nothing more can be appended: the session must end.
        """
        if self._closed:
            raise TraceError(f"the trace {self.path} takes no more records: {self._closed}")
        payload = encode_payload(self.seq, self.head, event, effects_digest(effects))
        block = frame(self._nonce, self._offset, payload)
        try:
            write_all(self._disk, self._own(), block)
        except OSError as error:
            with contextlib.suppress(OSError):  # Half a record is nothing; cutting it off takes no room, now.
                self._disk.truncate(self._own(), self._offset)
            raise self._failed("write", error) from None
        self.seq += 1
        self.head = chained(self.head, payload)
        self._offset += len(block)
        self._sync_if_due(sync)
        if sync and self._vouch is not None:
            try:
                self._vouch(self.seq, self.head)
            except OSError as error:
                raise self._failed("writing its head", error) from None

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be appended; what was, is on the disk then, or `failed` says that it may not be."""
        return bool(self._closed)

    @property
    def grown_bytes(self) -> int:
        """Bytes of records in the file."""
        return self._offset - self._begin

    def rotate(self, state: State, *, archives: int = ARCHIVES_MAX) -> None:
        """Go on in a new file that begins with `state`, which must be the fold of all records. Raises TraceError."""
        self.sync()
        found = examine_file(self.path, events=False)
        if found.head != self.head:
            raise TraceError(f"{self.path} is not what was written to it: someone else has changed it")
        begin_anew(self.path, found, state, archives=archives, disk=self._disk)
        begun = examine_file(self.path, events=False)
        assert begun.header is not None, "it has just been written"
        try:
            descriptor = self._disk.open_append(self.path)
        except OSError as error:
            raise self._failed("rotation", error) from None
        self._let_go()
        self._descriptor, self._identity, self._nonce = descriptor, file_behind(descriptor), begun.header.nonce
        self._begin = self._offset = begun.end

    def settle(self) -> None:
        """The session rests: sync now, unless the mode is `relaxed` and its window is still open."""
        self._sync_if_due(self._window_s < WINDOW_S["relaxed"])

    def sync(self) -> None:
        """Make everything durable that has been appended. Raises TraceError, as `append` does."""
        if self._closed:
            raise TraceError(f"the trace {self.path} is not safe on the disk: {self._closed}")
        try:
            sync(self._disk, self._own())
        except OSError as error:
            raise self._failed("sync", error) from None
        self._waiting_since = None

    def close(self) -> None:
        """Sync what waits and let go of the file. Raises TraceError when that fails."""
        if self._descriptor < 0:
            return
        try:
            if not self._closed:
                self.sync()
        finally:
            self._closed = self._closed or "it is closed"
            self._let_go()
            self._descriptor = -1

    def _own(self) -> int:
        """The trace's descriptor, opened again if a tool has closed it. Raises OSError."""
        if file_behind(self._descriptor) != self._identity:
            try:
                again = self._disk.open_append(self.path)
            except OSError as error:
                raise OSError(error.errno, f"a tool closed the trace's descriptor; {error.strerror or error}") from None
            self._descriptor = again
            if file_behind(again) != self._identity:
                raise OSError(errno.EBADF, "a tool closed the trace's descriptor, and another file is in its place")
        return self._descriptor

    def _let_go(self) -> None:
        if file_behind(self._descriptor) == self._identity:  # Else a tool has closed it, and the number is not ours.
            self._disk.close(self._descriptor)

    def _sync_if_due(self, now: bool) -> None:
        if self._waiting_since is None:
            self._waiting_since = self._clock()
        if now or self._clock() - self._waiting_since >= self._window_s:
            self.sync()

    def _failed(self, what: str, error: OSError) -> TraceError:
        self.failed = True
        self._closed = f"{what} failed ({error.strerror or error})"
        remedy = "free some space, then resume the session" if error.errno in NO_ROOM else "check the disk, then resume"
        return TraceError(f"the trace {self.path} stopped: {self._closed}; {remedy}")


def _begun(disk: Disk, path: Path, first: bytes) -> int:
    """Make a file that begins so, durably; what a failed attempt leaves is removed. Raises OSError."""
    descriptor = disk.create(path)
    try:
        write_all(disk, descriptor, first)
        sync(disk, descriptor)
        disk.sync_folder(path.parent)
    except OSError:
        disk.close(descriptor)
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    return descriptor


def examine_file(path: Path, *, events: bool = True) -> Examined:
    """Read a whole trace file and judge it, as `examine` does. Raises TraceError when it cannot be read."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror or error}") from None
    return examine(source, events=events)


def read(path: Path) -> Iterator[Record]:
    """Yield every right record from the beginning; then raise TraceDamaged if something else follows them."""
    found = examine_file(path)
    yield from found.records
    match found.verdict:
        case Torn(offset=offset, because=because):
            raise TraceDamaged(
                f"{path} is torn at byte {offset} ({because}); resuming the session cuts it there", offset
            )
        case Damaged():
            raise damaged(path, found.verdict)


def copy_records(source: Path, target: Path, found: Examined, count: int, *, disk: Disk = DISK) -> None:
    """Make a new trace of the first `count` records of another; the hashes stay the same. Raises TraceError."""
    assert found.header is not None, "a trace with records has a header"
    header = replace(found.header, nonce=os.urandom(NONCE_BYTES))
    content = source.read_bytes()
    block = encode_header(header)
    for record in found.records[:count]:
        payload = content[record.offset + HEAD.size : record.offset + record.size - TAIL.size]
        block += frame(header.nonce, len(block), payload)
    try:
        write_atomically(disk, target, block)
    except OSError as error:
        raise TraceError(f"cannot write the trace {target}: {error.strerror or error}") from None


def cut(path: Path, offset: int, disk: Disk = DISK) -> Path:
    """Cut a trace at `offset`; the bytes cut off are durable beside it before that. Raises OSError."""
    beside = kept_beside(path, offset)
    write_atomically(disk, beside, path.read_bytes()[offset:])
    descriptor = disk.open_append(path)
    try:
        disk.truncate(descriptor, offset)
        sync(disk, descriptor)
    finally:
        disk.close(descriptor)
    return beside


def kept_beside(path: Path, offset: int) -> Path:
    """Where the bytes go that are cut off at `offset`."""
    return path.with_name(f"{path.name}.cut-{offset}")


def cut_before(path: Path, found: Examined) -> int:
    """How many bytes were, by this resume or an interrupted one, cut off where the records end; 0 if none."""
    beside = kept_beside(path, found.end)
    try:
        return beside.stat().st_size
    except OSError:
        return 0


def damaged(path: Path, verdict: Damaged) -> TraceDamaged:
    """The error for a damaged trace, with the remedy."""
    return TraceDamaged(
        f"{path} is damaged at byte {verdict.offset}: {verdict.because}. Look at it with `edgeagent trace check`; "
        f"`edgeagent trace repair --to {verdict.offset}` keeps what stands before, and who uses it accepts the loss",
        verdict.offset,
    )
