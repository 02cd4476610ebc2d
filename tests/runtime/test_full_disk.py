"""A disk without room, or that may not be written: what can be read is read, nothing is lost, and room mends it."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from edgeagent.core.events import TraceRepaired
from edgeagent.core.state import is_resting
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.caches import KINDS
from edgeagent.trace.caches import Allowance, YieldingDisk
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import examine_file
from edgeagent.trace.recover import Clean, Torn
from tests.crash.disks import Small  # the path above makes it importable
from tests.crash.world import QUICK, TURNS, live, reopen, revive, start


def nothing(what: str) -> None:
    """Hear nothing."""


class ReadOnly(Disk):
    """A file system that was mounted read-only, as an SD card's is after an error."""

    def create(self, path: Path) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def open_append(self, path: Path) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def truncate(self, descriptor: int, size: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def full(root: Path) -> Small:
    disk = Small(root, 0)
    disk.size = disk.taken()[0]
    return disk


def torn(root: Path) -> Path:
    """A session that came to rest, was killed in the middle of the next record, and left no snapshot."""
    session = start(root, nothing, QUICK)
    live(session)
    with session.trace_path.open("ab") as file:
        file.write(b"\x40\x00\x00\x00 half a record")
    return session.directory


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_torn_trace_is_opened_and_read_where_nothing_can_be_written(tmp_path: Path, kind: str) -> None:
    directory = torn(tmp_path)
    before = (directory / "trace.cbor").read_bytes()
    session = reopen(directory, nothing, full(tmp_path) if kind == "full" else ReadOnly())
    assert session.state.turn == len(TURNS)
    assert is_resting(session.resume_turn())
    with pytest.raises(TraceError, match=r"can be read but not written.*then resume"):
        session.say("And now?")
    session.close()
    assert (directory / "trace.cbor").read_bytes() == before


def test_once_there_is_room_the_torn_end_is_put_aside_and_the_session_goes_on(tmp_path: Path) -> None:
    directory = torn(tmp_path)
    reopen(directory, nothing, full(tmp_path)).close()
    revive(directory, nothing, QUICK)
    found = examine_file(directory / "trace.cbor")
    assert isinstance(found.verdict, Clean)
    assert any(isinstance(r.event, TraceRepaired) for r in found.records)
    assert list(directory.glob("trace.cbor.cut-*"))


def test_a_clean_session_at_rest_is_read_on_a_read_only_disk(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    live(session)
    again = reopen(session.directory, nothing, ReadOnly())
    assert again.state.turn == len(TURNS)
    again.close()


def test_a_record_that_finds_no_room_leaves_no_half_of_it(tmp_path: Path) -> None:
    disk = Small(tmp_path, 1 << 20)
    session = start(tmp_path, nothing, disk)
    session.say("Pay the first bill, please.")
    disk.size = disk.taken()[0] + 20
    with pytest.raises(TraceError, match="free some space, then resume"):
        session.say("Pay the second one.")
    session.close()
    assert isinstance(examine_file(session.trace_path).verdict, Clean)


def test_a_torn_trace_takes_the_room_of_caches(tmp_path: Path) -> None:
    directory = torn(tmp_path)
    (directory / "kv").mkdir()
    (directory / "kv" / "session.kv").write_bytes(b"edgeagent-kv\n" + bytes(50_000))
    disk = YieldingDisk(tmp_path, KINDS, Allowance(reserve_bytes=0), under=full(tmp_path))
    reopen(directory, nothing, disk).close()
    assert isinstance(examine_file(directory / "trace.cbor").verdict, Clean)
    assert not (directory / "kv" / "session.kv").exists()


def test_a_session_that_could_not_begin_leaves_nothing_behind(tmp_path: Path) -> None:
    for size in range(0, 3_000, 100):
        root = tmp_path / str(size)
        root.mkdir()
        try:
            start(root, nothing, Small(root, size)).close()
        except (TraceError, ConfigError):
            assert list((root / "sessions").glob("*")) == []
            assert list((root / "heads").glob("*")) == []


def test_a_torn_trace_stays_torn_until_there_is_room(tmp_path: Path) -> None:
    directory = torn(tmp_path)
    reopen(directory, nothing, full(tmp_path)).close()
    assert isinstance(examine_file(directory / "trace.cbor").verdict, Torn)


def test_on_a_small_partition_every_session_begins_and_every_trace_is_whole(tmp_path: Path) -> None:
    """As `test_partitions.py` does on mounted ones: 20 kB a session, with caches that alone would fill the disk."""
    small = Small(tmp_path, 120_000)
    for number in range(12):
        disk = YieldingDisk(tmp_path, KINDS, under=small)
        session = start(tmp_path, nothing, disk)
        live(session)
        disk.write_cache(session.directory / "kv" / "session.kv", b"edgeagent-kv\n", bytes(25_000))
        disk.write_cache(tmp_path / "kv" / f"{number % 2}.kv", b"edgeagent-kv\n", bytes(20_000))
    traces = list(tmp_path.glob("sessions/*/trace.cbor"))
    assert len(traces) == 12
    assert all(isinstance(examine_file(trace).verdict, Clean) for trace in traces)
    kept = sum(p.stat().st_size for p in tmp_path.rglob("*.kv"))
    assert 0 < kept <= small.size // 2
    assert small.size - small.taken()[0] >= small.size // 4
