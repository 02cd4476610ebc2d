"""Disks that kill, fail, or remember: the file layer is a value, so the program under test is the real one."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from edgeagent.trace.disk import Disk

OPERATIONS = ("create", "open_append", "write", "sync", "truncate", "close", "rename", "remove", "sync_folder")


class Counting(Disk):
    """Counts operations and calls `before(number, name)` ahead of each, `after` behind it."""

    def __init__(self) -> None:
        self.count = 0

    def before(self, name: str) -> None:
        """Ahead of an operation."""

    def after(self, name: str) -> None:
        """Behind an operation."""

    def _do(self, name: str, call: Callable[[], object]) -> object:
        self.count += 1
        self.before(name)
        result = call()
        self.after(name)
        return result

    def create(self, path: Path) -> int:
        return self._do("create", lambda: super(Counting, self).create(path))  # type: ignore[return-value] # passed through

    def open_append(self, path: Path) -> int:
        return self._do("open_append", lambda: super(Counting, self).open_append(path))  # type: ignore[return-value] # passed through

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        return self._do("write", lambda: super(Counting, self).write(descriptor, block))  # type: ignore[return-value] # passed through

    def sync(self, descriptor: int) -> None:
        self._do("sync", lambda: super(Counting, self).sync(descriptor))

    def truncate(self, descriptor: int, size: int) -> None:
        self._do("truncate", lambda: super(Counting, self).truncate(descriptor, size))

    def close(self, descriptor: int) -> None:
        self._do("close", lambda: super(Counting, self).close(descriptor))

    def rename(self, old: Path, new: Path) -> None:
        self._do("rename", lambda: super(Counting, self).rename(old, new))

    def remove(self, path: Path) -> None:
        self._do("remove", lambda: super(Counting, self).remove(path))

    def sync_folder(self, folder: Path) -> None:
        self._do("sync_folder", lambda: super(Counting, self).sync_folder(folder))


class Killing(Counting):
    """Ends the process by SIGKILL before, in the middle of (a write), or after the N-th operation."""

    def __init__(self, at: int, when: str) -> None:
        super().__init__()
        self.at, self.when = at, when

    def before(self, name: str) -> None:
        if self.count == self.at and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, name: str) -> None:
        if self.count == self.at and self.when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        if self.count + 1 == self.at and self.when == "within":
            os.write(descriptor, memoryview(block)[: len(block) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(descriptor, block)


class Failing(Counting):
    """The N-th operation fails with an error, or is cut short if it is a write; with `stays` all later ones do too."""

    def __init__(self, at: int, error: int, *, stays: bool = False) -> None:
        super().__init__()
        self.at, self.error, self.stays, self.hit = at, error, stays, False
        self.only_the_cache, self.failed_name = False, ""

    def create(self, path: Path) -> int:
        # The snapshot is written last; that a cache cannot be written is no error.
        self.only_the_cache = not self.failed_name and "snapshot" in path.name
        return super().create(path)

    def before(self, name: str) -> None:
        if self.count == self.at or (self.stays and self.count > self.at):
            self.hit = True
            # The kernel interrupts only these two, and closing is over whatever it says.
            if name == "close" or (self.error == errno.EINTR and name not in ("write", "sync")):
                return
            self.failed_name = name
            raise OSError(self.error, os.strerror(self.error))

    @property
    def must_stop(self) -> bool:
        """Whether a failure has been reported that the session must not go on after."""
        return bool(self.failed_name) and self.error != errno.EINTR and not self.only_the_cache


class ShortWrites(Counting):
    """Every write takes at most `size` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        return super().write(descriptor, memoryview(block)[: self.size])


class Small(Disk):
    """A disk with room for so many bytes below `root`, and for so many names; a write takes what still fits."""

    def __init__(self, root: Path, size: int, names: int = 10_000) -> None:
        self.root, self.size, self.names = root, size, names
        self.error = errno.ENOSPC

    def taken(self) -> tuple[int, int]:
        """Bytes and names below the root."""
        found = []
        for path in self.root.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # Another process has removed it.
                found.append(path.lstat())
        return sum(f.st_size for f in found if stat.S_ISREG(f.st_mode)), len(found)

    def create(self, path: Path) -> int:
        if self.taken()[1] >= self.names:
            raise OSError(self.error, os.strerror(self.error))
        return super().create(path)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        fits = self.size - self.taken()[0]
        if fits <= 0:
            raise OSError(self.error, os.strerror(self.error))
        return super().write(descriptor, memoryview(block)[:fits])

    def space(self, folder: Path) -> os.statvfs_result:
        size, names = self.taken()
        free, names_free = max(0, self.size - size), max(0, self.names - names)
        return os.statvfs_result((1, 1, self.size, free, free, self.names, names_free, names_free, 0, 255))


ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EINTR)


@dataclass
class File:
    """A file as a power cut sees it: what it holds, and how much of that is durable."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


class Remembering(Disk):
    """Writes through, and remembers what a power cut would leave: contents since the last sync, names since theirs."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.runs: list[str] = []
        self._files: dict[Path, File] = {}
        self._names: dict[Path, File] = {}
        self._open: dict[int, File] = {}

    def ran(self, what: str) -> None:
        """A tool had its effect in the world."""
        self.runs.append(what)
        self._remember(f"tool ran: {what}")

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self._files[path] = self._open[descriptor] = File()
        self._remember(f"create {path.name}")
        return descriptor

    def open_append(self, path: Path) -> int:
        descriptor = super().open_append(path)
        if path not in self._files:
            whole = path.read_bytes()
            self._files[path] = self._names[path] = File(bytearray(whole), whole)
        self._open[descriptor] = self._files[path]
        return descriptor

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        wrote = super().write(descriptor, block)
        self._open[descriptor].content += block[:wrote]
        self._remember("write")
        return wrote

    def sync(self, descriptor: int) -> None:
        file = self._open[descriptor]
        file.durable = bytes(file.content)
        self._remember("sync")

    def truncate(self, descriptor: int, size: int) -> None:
        super().truncate(descriptor, size)
        del self._open[descriptor].content[size:]
        self._remember("truncate")

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self._files[new] = self._files.pop(old)
        self._remember(f"rename to {new.name}")

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._files.pop(path, None)
        self._remember("remove")

    def sync_folder(self, folder: Path) -> None:
        for path in [p for p in self._names if p.parent == folder and p not in self._files]:
            del self._names[path]
        self._names |= {p: f for p, f in self._files.items() if p.parent == folder}
        self._remember("sync_folder")

    def _remember(self, what: str) -> None:
        durable = {p: (f.durable, bytes(f.content)) for p, f in self._names.items()}
        named = {p: (f.durable, bytes(f.content)) for p, f in self._files.items()}
        self.moments.append(Moment(what, durable, named, tuple(self.runs)))


@dataclass(frozen=True)
class Moment:
    """The world right after an operation: names that are durable, names that may be, and what tools have done."""

    what: str
    durable: dict[Path, tuple[bytes, bytes]]
    named: dict[Path, tuple[bytes, bytes]]
    runs: tuple[str, ...]

    def after_power_cut(self, *, names: bool, content: str) -> dict[Path, bytes]:
        """What the disk holds: with or without the names that were not synced; `content` says what of the rest."""
        files = self.named if names else self.durable
        return {path: _left(durable, written, content) for path, (durable, written) in files.items()}


def _left(durable: bytes, written: bytes, content: str) -> bytes:
    if not written.startswith(durable):
        return written if content == "all" else durable  # It had been cut: the cut arrived or it did not.
    new = written[len(durable) :]
    match content:
        case "none":
            return durable
        case "all":
            return written
        case "half":
            return durable + new[: len(new) // 2]
        case "zeros":
            return durable + bytes(len(new))
        case "half, then zeros":
            return durable + new[: len(new) // 2] + bytes(len(new) - len(new) // 2)
        case other:
            raise AssertionError(other)


CONTENTS = ("none", "all", "half", "zeros", "half, then zeros")
