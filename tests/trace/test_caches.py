"""Caches of a state folder: what they may take, which yield first, and what is never touched."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from edgeagent.trace.caches import Allowance, Kind, YieldingDisk, remove_leftovers
from edgeagent.trace.disk import Disk, sync, write_all, write_atomically
from tests.crash.disks import Small  # the path above makes it importable

MAGIC = b"ours\n"
KINDS = (
    Kind("half written", "*/.*.new"),
    Kind("memory", "kv/*.kv", MAGIC),
    Kind("snapshot", "snapshots/*.cbor", MAGIC, vouches=True),
)
FREE = Allowance(reserve_bytes=0)
KB = 1_000


def disk_of(root: Path, size: int = 10_000 * KB, allowance: Allowance = FREE, **more: object) -> YieldingDisk:
    return YieldingDisk(root, KINDS, allowance, under=Small(root, size), **more)  # type: ignore[arg-type] # passed on


def keep(disk: YieldingDisk, *names: str, size: int = 100 * KB) -> list[bool]:
    """Write caches of these names, each as another program would."""
    outcomes = []
    for name in names:
        disk._own.clear()
        outcomes.append(disk.write_cache(disk.root / "kv" / f"{name}.kv", MAGIC, bytes(size)))
    return outcomes


def kept(root: Path) -> set[str]:
    return {p.stem for p in (root / "kv").glob("*.kv")}


def test_caches_stay_within_their_limit_and_the_oldest_go_first(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, allowance=Allowance(limit_bytes=350 * KB, reserve_bytes=0))
    assert keep(disk, "a", "b", "c", "d") == [True] * 4
    assert kept(tmp_path) == {"b", "c", "d"}


def test_a_cache_that_is_used_outlives_those_that_are_not(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, allowance=Allowance(limit_bytes=350 * KB, reserve_bytes=0))
    keep(disk, "a", "b", "c")
    disk.was_used(tmp_path / "kv" / "a.kv")
    keep(disk, "d")
    assert kept(tmp_path) == {"a", "c", "d"}


def test_caches_of_one_program_do_not_push_each_other_out_and_wear_the_disk(tmp_path: Path) -> None:
    first = disk_of(tmp_path, allowance=Allowance(limit_bytes=250 * KB, reserve_bytes=0))
    paths = [tmp_path / "kv" / f"{name}.kv" for name in "abc"]
    assert [first.write_cache(path, MAGIC, bytes(100 * KB)) for path in paths] == [True, True, False]
    second = disk_of(tmp_path, allowance=Allowance(limit_bytes=250 * KB, reserve_bytes=0))
    second.was_used(paths[0])
    assert second.write_cache(paths[2], MAGIC, bytes(100 * KB))
    assert kept(tmp_path) == {"a", "c"}


def test_where_no_caches_are_wanted_none_are_written_and_nothing_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    disk = disk_of(tmp_path, allowance=Allowance(limit_bytes=0), tell=said.append)
    assert keep(disk, "a") == [False]
    assert (said, list(tmp_path.iterdir())) == ([], [])


def test_a_clock_that_goes_back_makes_no_new_cache_the_oldest(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, allowance=Allowance(limit_bytes=350 * KB, reserve_bytes=0))
    keep(disk, "a", "b")
    for name, ahead_s in (("a", 1e9), ("b", 2e9)):  # Written before the clock went back by decades.
        os.utime(tmp_path / "kv" / f"{name}.kv", (time.time() + ahead_s,) * 2)
    keep(disk, "c", "d")
    assert kept(tmp_path) == {"b", "c", "d"}
    keep(disk, "e")
    assert kept(tmp_path) == {"c", "d", "e"}


def test_a_cache_larger_than_the_limit_pushes_nothing_out_and_that_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    disk = disk_of(tmp_path, allowance=Allowance(limit_bytes=350 * KB, reserve_bytes=0), tell=said.append)
    keep(disk, "a", "b")
    assert keep(disk, "huge", "huger", size=400 * KB) == [False, False]
    assert kept(tmp_path) == {"a", "b"}
    assert len(said) == 1
    assert said[0].startswith("memory huge.kv is not kept, so what it saves is done again next time: it takes 0.4 MB")
    assert "cache_mb" in said[0]


def test_what_is_kept_for_traces_is_never_given_to_a_cache(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, 500 * KB, Allowance(limit_bytes=10_000 * KB, reserve_bytes=250 * KB))
    (tmp_path / "trace").write_bytes(bytes(100 * KB))
    assert keep(disk, "a", "b") == [True, True]
    assert kept(tmp_path) == {"b"}
    (tmp_path / "trace").write_bytes(bytes(200 * KB))
    disk.keep_reserve()
    assert keep(disk, "c") == [False]
    assert kept(tmp_path) == set()


def test_without_a_word_of_the_operator_a_quarter_is_kept_for_traces_and_half_of_the_rest_for_caches(
    tmp_path: Path,
) -> None:
    disk = disk_of(tmp_path, 1_000 * KB, Allowance())
    keep(disk, *"abcdefgh")
    taken = sum(p.stat().st_size for p in tmp_path.rglob("*.kv"))
    assert 300 * KB < taken <= 500 * KB


def test_a_trace_that_finds_no_room_is_given_that_of_caches(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, 500 * KB)
    assert keep(disk, "a", "b", "c", "d", size=115 * KB) == [True] * 4
    descriptor = disk.create(tmp_path / "trace")
    write_all(disk, descriptor, bytes(300 * KB))
    disk.close(descriptor)
    assert (tmp_path / "trace").stat().st_size == 300 * KB
    assert kept(tmp_path) == {"d"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_caches_yield_to_a_full_disk_and_to_a_full_quota(tmp_path: Path, number: int) -> None:
    disk = disk_of(tmp_path, 230 * KB)
    keep(disk, "a", "b")
    disk._under.error = number  # type: ignore[attr-defined] # it is a Small
    write_atomically(disk, tmp_path / "session.json", bytes(90 * KB))
    assert (tmp_path / "session.json").stat().st_size == 90 * KB
    assert kept(tmp_path) == {"b"}


def test_a_quota_that_nobody_can_ask_for_turns_caches_over_all_the_same(tmp_path: Path) -> None:
    class Quota(Small):
        def space(self, folder: Path) -> os.statvfs_result:
            return os.statvfs(folder)

    disk = YieldingDisk(tmp_path, KINDS, FREE, under=Quota(tmp_path, 330 * KB))
    assert keep(disk, "a", "b", "c", "d") == [True] * 4
    assert kept(tmp_path) == {"b", "c", "d"}


def test_caches_yield_where_no_more_files_can_be_made(tmp_path: Path) -> None:
    disk = YieldingDisk(tmp_path, KINDS, FREE, under=Small(tmp_path, 10_000 * KB, names=5))
    (tmp_path / "kv").mkdir()
    for name in "abcd":
        (tmp_path / "kv" / f"{name}.kv").write_bytes(MAGIC)
    write_atomically(disk, tmp_path / "session.json", b"{}")
    assert (tmp_path / "session.json").read_bytes() == b"{}"
    assert kept(tmp_path) == {"c", "d"}  # One for the file, and one for the name that is kept for the next trace.


@pytest.mark.deep
def test_names_are_kept_for_traces_too(tmp_path: Path) -> None:
    disk = YieldingDisk(tmp_path, KINDS, FREE, under=Small(tmp_path, 100_000 * KB, names=140))
    keep(disk, *(str(n) for n in range(130)), size=KB)
    assert len(list(tmp_path.rglob("*"))) <= 140 - 32


def test_what_vouches_for_a_trace_yields_last_and_only_to_a_trace(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, 500 * KB, Allowance(limit_bytes=10_000 * KB, reserve_bytes=0))
    assert disk.write_cache(tmp_path / "snapshots" / "s.cbor", MAGIC, bytes(100 * KB))
    assert keep(disk, "a", "b", "c", "d", size=90 * KB) == [True] * 4
    assert keep(disk, "e", size=450 * KB) == [False]
    assert (tmp_path / "snapshots" / "s.cbor").exists()
    write_atomically(disk, tmp_path / "trace", bytes(450 * KB))
    assert not (tmp_path / "snapshots" / "s.cbor").exists()
    assert kept(tmp_path) == set()


def test_a_trace_that_no_cache_can_help_gets_the_disks_own_error(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, 100 * KB, Allowance(limit_bytes=90 * KB, reserve_bytes=0))
    keep(disk, "a", size=50 * KB)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(disk, tmp_path / "trace", bytes(200 * KB))
    assert list(tmp_path.rglob("*")) == [tmp_path / "kv"]


def test_no_room_that_shows_only_in_a_sync_makes_caches_yield_for_a_whole_new_try(tmp_path: Path) -> None:
    class Late(Small):
        """Takes every byte and says only when it syncs that there was no room, as network file systems do."""

        def write(self, descriptor: int, block: bytes | memoryview) -> int:
            return Disk.write(self, descriptor, block)

        def sync(self, descriptor: int) -> None:
            if self.taken()[0] > self.size:
                raise OSError(errno.ENOSPC, "No space left on device")

        def space(self, folder: Path) -> os.statvfs_result:
            return os.statvfs(folder)

    disk = YieldingDisk(tmp_path, KINDS, FREE, under=Late(tmp_path, 400 * KB))
    keep(disk, "a", "b", "c")
    write_atomically(disk, tmp_path / "session.json", bytes(150 * KB))
    assert (tmp_path / "session.json").exists()
    descriptor = disk.open_append(tmp_path / "session.json")
    write_all(disk, descriptor, bytes(400 * KB))
    with pytest.raises(OSError, match="No space left"):  # Nobody knows what the disk holds, so this is never retried.
        sync(disk, descriptor)


def test_before_a_trace_is_synced_caches_yield_so_that_its_sync_has_room(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, 500 * KB, Allowance(limit_bytes=10_000 * KB, reserve_bytes=100 * KB))
    keep(disk, "a", "b", "c")
    descriptor = disk.create(tmp_path / "trace")
    write_all(disk, descriptor, bytes(150 * KB))
    sync(disk, descriptor)
    assert kept(tmp_path) == {"b", "c"}


def test_a_cache_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    class Broken(Disk):
        def sync(self, descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

    said: list[str] = []
    disk = YieldingDisk(tmp_path, KINDS, FREE, said.append, Broken())
    assert keep(disk, "a", "b") == [False, False]
    assert list((tmp_path / "kv").iterdir()) == []
    assert len(said) == 1


def test_what_killed_processes_left_half_written_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".session.kv.new", ".session.json.0123abcd.new", ".door-7.89abcdef.new"):
        (tmp_path / name).write_bytes(b"half")
    for name in ("notes.new", ".vimrc.new", ".bashrc.0123.new", "session.json"):
        (tmp_path / name).write_bytes(b"mine")
    assert remove_leftovers(tmp_path) == 12
    assert {p.name for p in tmp_path.iterdir()} == {"notes.new", ".vimrc.new", ".bashrc.0123.new", "session.json"}


def test_what_another_process_is_writing_now_is_no_leftover(tmp_path: Path) -> None:
    found: list[int] = []

    class Watched(Disk):
        def sync(self, descriptor: int) -> None:
            found.append(remove_leftovers(tmp_path))
            super().sync(descriptor)

    write_atomically(Watched(), tmp_path / "a", b"whole")
    assert found == [0]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_leftovers_of_other_sessions_yield_first(tmp_path: Path) -> None:
    disk = disk_of(tmp_path, 500 * KB)
    keep(disk, "a", "b")
    (tmp_path / "kv" / ".c.kv.0123abcd.new").write_bytes(bytes(200 * KB))
    write_atomically(disk, tmp_path / "trace", bytes(250 * KB))
    assert kept(tmp_path) == {"a", "b"}


def test_a_foreign_file_is_never_removed_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "kv").mkdir()
    (tmp_path / "kv" / "mine.kv").write_bytes(bytes(200 * KB))
    (tmp_path / "kv" / ".mine.new").write_bytes(bytes(200 * KB))
    disk = disk_of(tmp_path, 450 * KB)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(disk, tmp_path / "trace", bytes(100 * KB))
    assert {p.name for p in (tmp_path / "kv").iterdir()} == {"mine.kv", ".mine.new"}


def test_nothing_behind_a_link_is_removed(tmp_path: Path) -> None:
    root, other = tmp_path / "state", tmp_path / "other"
    other.mkdir()
    (other / "theirs.kv").write_bytes(MAGIC + bytes(200 * KB))
    (root / "kv2").mkdir(parents=True)
    (root / "kv").symlink_to(other)
    disk = YieldingDisk(root, (*KINDS, Kind("memory", "kv2/*.kv", MAGIC)), FREE, under=Small(root, 100 * KB))
    (root / "kv2" / "link.kv").symlink_to(other / "theirs.kv")
    with pytest.raises(OSError, match="No space left"):
        write_atomically(disk, root / "trace", bytes(200 * KB))
    assert (other / "theirs.kv").exists()
    assert (root / "kv2" / "link.kv").is_symlink()


def test_a_state_folder_that_is_itself_a_link_has_caches_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "real")
    disk = disk_of(tmp_path / "state", allowance=Allowance(limit_bytes=250 * KB, reserve_bytes=0))
    keep(disk, "a", "b", "c")
    assert kept(tmp_path / "real") == {"b", "c"}


def test_two_processes_that_remove_at_once_get_in_nobodys_way(tmp_path: Path) -> None:
    disks = [disk_of(tmp_path, 2_000 * KB, Allowance(limit_bytes=250 * KB, reserve_bytes=0)) for _ in range(2)]
    failures: list[BaseException] = []

    def work(disk: YieldingDisk, name: str) -> None:
        try:
            for number in range(40):
                disk._own.clear()
                assert disk.write_cache(tmp_path / "kv" / f"{name}{number}.kv", MAGIC, bytes(60 * KB))
        except BaseException as error:  # whatever it is, the test must see it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(disk, name)) for disk, name in zip(disks, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(kept(tmp_path)) <= 8


def test_a_read_only_file_system_costs_only_the_cache(tmp_path: Path) -> None:
    class ReadOnly(Disk):
        def create(self, path: Path) -> int:
            raise OSError(errno.EROFS, "Read-only file system")

    assert not YieldingDisk(tmp_path, KINDS, FREE, under=ReadOnly()).write_cache(tmp_path / "kv" / "a.kv", MAGIC)


def test_a_folder_that_cannot_be_synced_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)  # There is no such file system to be had here.
    write_atomically(Disk(), tmp_path / "a", b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_what_is_written_is_counted(tmp_path: Path) -> None:
    disk = disk_of(tmp_path)
    write_atomically(disk, tmp_path / "trace", b"12345", b"678")
    keep(disk, "a", size=1000)
    assert disk.written == 8 + 1000 + len(MAGIC)


def test_a_scratch_file_that_somebody_took_for_a_leftover_is_written_again(tmp_path: Path) -> None:
    class Taken(Disk):
        times = 0

        def create(self, path: Path) -> int:
            descriptor = super().create(path)
            self.times += 1
            if self.times == 1:
                remove_leftovers(path.parent)  # Before the writer has locked it.
            return descriptor

    disk = Taken()
    write_atomically(disk, tmp_path / "a", b"whole")
    assert ((tmp_path / "a").read_bytes(), disk.times, len(list(tmp_path.iterdir()))) == (b"whole", 2, 1)
