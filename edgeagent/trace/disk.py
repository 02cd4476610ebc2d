"""The few file operations that traces and sessions need, as a value, so that a test can make the N-th one fail.

Knows no records.
"""

from __future__ import annotations

import errno
import os
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
        """Make names in a folder durable."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


DISK = Disk()


def write_all(disk: Disk, descriptor: int, block: Block) -> None:
    """Write the whole block, however short the single writes are. Raises OSError."""
    done = 0
    while done < len(block):
        wrote = _again(lambda: disk.write(descriptor, memoryview(block)[done:]))  # noqa: B023 # called at once
        if wrote == 0:
            raise OSError(errno.ENOSPC, "the disk takes no more bytes")
        done += wrote


def sync(disk: Disk, descriptor: int) -> None:
    """Make the file durable. Raises OSError, after which nobody knows what is on the disk."""
    _again(lambda: disk.sync(descriptor))


def write_atomically(disk: Disk, path: Path, *content: Block) -> None:
    """Put `content`, block by block, at `path`; after a crash the old or the new is there, whole. Raises OSError."""
    scratch = path.with_name(f".{path.name}.new")
    scratch.unlink(missing_ok=True)
    descriptor = disk.create(scratch)
    try:
        for block in content:
            write_all(disk, descriptor, block)
        sync(disk, descriptor)
    finally:
        disk.close(descriptor)
    disk.rename(scratch, path)
    disk.sync_folder(path.parent)


def _again(call: Callable[[], T]) -> T:
    """Repeat an interrupted call. Python does so itself (PEP 475), except where a signal handler raised."""
    while True:
        try:
            return call()
        except InterruptedError:
            continue
