"""Appending to a trace, reading it, and what happens when the disk fails."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest

from edgeagent.core.effects import CallTool, Say
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.values import Usage
from edgeagent.errors import TraceError
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import TraceFile, read
from edgeagent.trace.record import FRAME_BYTES, compact, effects_digest

STARTED = SessionStarted(1_764_535_117_000, "greenhouse", "a" * 64, 7, "envelope", 2048, "0.1.0")
SAID = UserSaid(1_764_535_118_000, "open the north valve for 30 seconds")
CALL = '{"tool":"open_valve","arguments":{"valve":"north","seconds":30}}'
ANSWERED = ModelAnswered(1_764_535_119_000, 1, CALL, "closed", Usage(540, 12, 25, 14, 123_456), b"abc" * 25)
RETURNED = ToolReturned(1_764_535_120_000, 2, '{"opened":"north","seconds":30}', 812)


class Failing(Disk):
    """A disk whose writes are short or fail, and which counts its syncs."""

    def __init__(self, *, write_at_most: int = 1 << 30, fail_write: int = 0, fail_sync: int = 0) -> None:
        self.write_at_most, self.fail_write, self.fail_sync = write_at_most, fail_write, fail_sync
        self.syncs = 0

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        if self.fail_write:
            raise OSError(self.fail_write, "injected")
        return super().write(descriptor, block[: self.write_at_most])

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        if self.fail_sync:
            raise OSError(self.fail_sync, "injected")
        super().sync(descriptor)


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    trace = TraceFile.create(tmp_path / "trace.cbor")
    for event in (STARTED, SAID, ANSWERED, RETURNED):
        trace.append(event, (), sync=False)
    trace.close()
    records = list(read(tmp_path / "trace.cbor"))
    assert [r.event for r in records] == [STARTED, SAID, ANSWERED, RETURNED]
    assert [r.seq for r in records] == [0, 1, 2, 3]
    assert records[-1].hash == trace.head


def test_a_record_keeps_the_digest_of_its_effects(tmp_path: Path) -> None:
    effects = (CallTool(3, "open_valve", "{}", 30_000), Say(4, "done"))
    with_effects = TraceFile.create(tmp_path / "t")
    with_effects.append(STARTED, effects, sync=True)
    assert next(read(tmp_path / "t")).effects_digest == effects_digest(effects)
    assert effects_digest(effects) != effects_digest(effects[:1])
    with_effects.close()


def test_short_writes_are_completed(tmp_path: Path) -> None:
    trace = TraceFile.create(tmp_path / "t", disk=Failing(write_at_most=3))
    trace.append(STARTED, (), sync=False)
    trace.append(SAID, (), sync=False)
    trace.close()
    assert [r.event for r in read(tmp_path / "t")] == [STARTED, SAID]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_after_a_failed_write_nothing_more_is_taken(tmp_path: Path, number: int) -> None:
    disk = Failing()
    trace = TraceFile.create(tmp_path / "t", disk=disk)
    trace.append(STARTED, (), sync=False)
    disk.fail_write = number
    with pytest.raises(TraceError, match="write failed"):
        trace.append(SAID, (), sync=False)
    disk.fail_write = 0
    with pytest.raises(TraceError, match="takes no more records"):
        trace.append(SAID, (), sync=False)
    trace.close()


def test_after_a_failed_sync_nothing_more_is_taken(tmp_path: Path) -> None:
    disk = Failing()
    trace = TraceFile.create(tmp_path / "t", disk=disk)
    disk.fail_sync = errno.EIO
    with pytest.raises(TraceError, match="sync failed"):
        trace.append(STARTED, (), sync=True)
    disk.fail_sync = 0
    with pytest.raises(TraceError, match="takes no more records"):
        trace.append(SAID, (), sync=False)
    trace.close()


@pytest.mark.parametrize(("durability", "syncs"), [("strict", 4), ("effects", 1), ("relaxed", 1)])
def test_every_mode_syncs_before_an_effect_that_must_not_happen_twice(
    tmp_path: Path, durability: str, syncs: int
) -> None:
    disk = Failing()
    trace = TraceFile.create(tmp_path / "t", durability=durability, disk=disk, clock=lambda: 0.0)  # type: ignore[arg-type] # parametrised
    before = disk.syncs
    for event in (STARTED, SAID, ANSWERED):
        trace.append(event, (), sync=False)
    trace.append(RETURNED, (), sync=True)
    assert disk.syncs - before == syncs
    trace.close()


def test_records_wait_for_their_sync_no_longer_than_the_window(tmp_path: Path) -> None:
    disk, now = Failing(), [0.0]
    trace = TraceFile.create(tmp_path / "t", durability="relaxed", disk=disk, clock=lambda: now[0])
    before = disk.syncs
    trace.append(STARTED, (), sync=False)
    now[0] = 29.0
    trace.append(SAID, (), sync=False)
    assert disk.syncs == before
    now[0] = 30.0
    trace.append(ANSWERED, (), sync=False)
    assert disk.syncs == before + 1
    trace.close()


def test_a_trace_is_never_written_over(tmp_path: Path) -> None:
    TraceFile.create(tmp_path / "t").close()
    with pytest.raises(TraceError, match="cannot create"):
        TraceFile.create(tmp_path / "t")


def test_typical_records_are_under_200_bytes(tmp_path: Path) -> None:
    trace = TraceFile.create(tmp_path / "t")
    for event in (SAID, ANSWERED, RETURNED, SAID):
        trace.append(event, (), sync=False)
    trace.close()
    sizes = [r.size for r in read(tmp_path / "t")]
    assert sum(sizes) / len(sizes) < 200
    assert min(sizes) > FRAME_BYTES


def test_a_field_that_is_added_later_changes_neither_bytes_nor_digests() -> None:
    class Older(msgspec.Struct, frozen=True, array_like=True, tag=3):
        effect_id: int
        text: str = ""

    class Newer(msgspec.Struct, frozen=True, array_like=True, tag=3):
        effect_id: int
        text: str = ""
        added: tuple[str, ...] = ()

    assert compact(Older(7, "x")) == compact(Newer(7, "x")) == [3, 7, "x"]
    assert compact(Newer(7, added=("y",))) == [3, 7, "", ["y"]]


def test_what_is_left_out_is_read_back_as_the_default(tmp_path: Path) -> None:
    trace = TraceFile.create(tmp_path / "t")
    plain = ModelAnswered(1, 2, "hm", "end", Usage())
    trace.append(plain, (), sync=False)
    trace.close()
    assert next(read(tmp_path / "t")).event == plain
