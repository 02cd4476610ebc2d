"""The few file operations that traces and sessions need, as a value, so that a test can make the N-th one fail.

Knows no records.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Block = bytes | bytearray | memoryview


class Disk:
    """The real one: thin over `os`. Every method raises OSError."""

    def create(self, path: Path) -> int:
        """Make a new file for appending; it must not exist."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def open_append(self, path: Path) -> int:
        """Open an existing file for appending."""
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        """Write some of the block; return how many bytes."""
        return os.write(descriptor, block)

    def sync(self, descriptor: int) -> None:
        """Make the file's bytes and length durable."""
        os.fdatasync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut the file."""
        os.ftruncate(descriptor, size)

    def close(self, descriptor: int) -> None:
        """Let go of the file."""
        os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Put one file in another's place at once."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Take a file away."""
        path.unlink()

    def sync_folder(self, folder: Path) -> None:
        """Make names in a folder durable; a file system that cannot sync a folder keeps them in its own way."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF):
                raise
        finally:
            os.close(descriptor)

    def space(self, folder: Path) -> os.statvfs_result:
        """How much room and how many names the file system of a folder has."""
        return os.statvfs(folder)

    def yields(self, error: OSError) -> bool:
        """Whether something less important has made room since, so that what failed may be tried again."""
        return False

    def write_cache(self, path: Path, *content: Block) -> bool:
        """Put a cache at `path`, whole or not at all; False if it was not written, which costs only time."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self, path, *content)
        except OSError:
            return False
        return True

    def was_used(self, path: Path) -> None:
        """Hear that a cache was of use just now, so that it yields later than others."""


DISK = Disk()

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""What a disk says that has no room left: for bytes, for names, or for this user."""


def file_behind(descriptor: int) -> tuple[int, int] | None:
    """Which file a descriptor stands for; None if it is closed.

    Tools run in this process. One that closes descriptors that are not its own closes ours, and what it opens then may
    get their numbers: so whoever writes to one for long asks first whether it still is the file that it was.
    """
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def write_all(disk: Disk, descriptor: int, block: Block) -> None:
    """Write the whole block, however short the single writes are. Raises OSError."""
    done = 0
    while done < len(block):
        try:
            wrote = _again(lambda: disk.write(descriptor, memoryview(block)[done:]))  # noqa: B023 # called at once
            if wrote == 0:
                raise OSError(errno.ENOSPC, "the disk takes no more bytes")
        except OSError as error:  # A write that is refused has taken nothing, so the rest may be tried again.
            if not disk.yields(error):
                raise
        else:
            done += wrote


def sync(disk: Disk, descriptor: int) -> None:
    """Make the file durable. Raises OSError, after which nobody knows what is on the disk."""
    _again(lambda: disk.sync(descriptor))


ATTEMPTS_MAX = 10
"""How often a scratch file is written again that another process took for a leftover."""


def write_atomically(disk: Disk, path: Path, *content: Block) -> None:
    """Put `content`, block by block, at `path`; after a crash the old or the new is there, whole. Raises OSError.

    What a failed attempt leaves is removed. The writer holds a lock on its scratch file: one that nobody holds is what
    a killed process has left.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
        try:
            _write_whole(disk, scratch, content, path)
            break
        except FileNotFoundError:
            # Somebody took it for a leftover before it was locked. Where the folder is gone, it cannot be made again.
            if attempt == ATTEMPTS_MAX or not path.parent.is_dir() or scratch.exists():
                raise
        except OSError as error:
            with contextlib.suppress(OSError):
                scratch.unlink()
            if not disk.yields(error):
                raise
    disk.sync_folder(path.parent)


def _write_whole(disk: Disk, scratch: Path, content: tuple[Block, ...], path: Path) -> None:
    descriptor = disk.create(scratch)
    try:
        with contextlib.suppress(OSError):  # A file system without locks; what is left there stays.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        for block in content:
            write_all(disk, descriptor, block)
        sync(disk, descriptor)
        disk.rename(scratch, path)
    finally:
        disk.close(descriptor)


def _again(call: Callable[[], T]) -> T:
    """Repeat an interrupted call. Python does so itself (PEP 475), except where a signal handler raised."""
    while True:
        try:
            return call()
        except InterruptedError:
            continue
