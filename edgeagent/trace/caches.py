"""Caches of a state folder: which there are, how much they may take, and which yields first.

    free space   [ … traces … ][ caches: at most `limit` ][ free ][ reserve: for traces alone ]

Laws. A cache is written only if the limit and the reserve hold afterwards; the ones used longest ago yield to it. What
is not a cache is never refused for one: when the disk has no room, caches yield until it has or none is left. Only what
we have written is removed: a plain file, not behind a link, of a name of ours and beginning as ours do. Losing any of
them costs time. Order is by use and not by the clock, which may go back: a use is later than all that came before.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from edgeagent.trace.disk import DISK, NO_ROOM, Block, Disk, write_atomically

LIMIT_BYTES_MAX = 512 << 20
"""The most that caches take where nobody has set a limit; else half of what were free without them."""

RESERVE_BYTES_MAX = 16 << 20
"""What is kept free for traces where nobody has set it, or a quarter of a smaller disk: some 100,000 records."""

INODES_KEPT = 32
"""Names that are kept free for traces: a new session takes six."""

YIELD_BYTES = 64 << 10
"""What is made free at least when a trace finds no room: some 400 records."""

BLOCK_BYTES = 4_096


class Kind(NamedTuple):
    """A kind of cache: its files, by a pattern below the state folder, and the bytes with which each begins.

    Of those that vouch for a trace each is small, and they yield last, and only where a trace needs the room. `loss` is
    what it means that one is not kept.
    """

    name: str
    pattern: str
    magic: bytes = b""
    vouches: bool = False
    loss: str = "what it saves is done again next time"


class Cache(NamedTuple):
    """A file that may yield. `room` is what it takes on the disk, `used_ns` tells which was used before which."""

    path: Path
    kind: Kind
    size: int
    room: int
    used_ns: int


@dataclass(frozen=True)
class Allowance:
    """What the operator allows: the most that caches may take, and what is kept free. None is for us to choose."""

    limit_bytes: int | None = None
    reserve_bytes: int | None = None


class YieldingDisk(Disk):
    """The disk of a state folder, on which caches yield to whatever else is written."""

    def __init__(
        self,
        root: Path,
        kinds: tuple[Kind, ...],
        allowance: Allowance = Allowance(),  # immutable
        tell: Callable[[str], None] = lambda _: None,
        under: Disk = DISK,
    ) -> None:
        self.root = root
        self._kinds, self._allowance, self._tell, self._under = kinds, allowance, tell, under
        self._has_told = self._is_spent = False
        self._latest_ns = 0
        self._own: set[Path] = set()
        """What was written or of use here: none of it yields to another, or each close would write it all again."""
        self.written = 0
        """Bytes that were written: what a card is worn by."""

    # -- the disk itself

    def create(self, path: Path) -> int:
        """As the disk below."""
        return self._under.create(path)

    def open_append(self, path: Path) -> int:
        """As the disk below."""
        return self._under.open_append(path)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        """As the disk below, counted."""
        wrote = self._under.write(descriptor, block)
        self.written += wrote
        return wrote

    def sync(self, descriptor: int) -> None:
        """Make it durable; before that there must be room, since a sync that fails cannot be tried again."""
        if not self._is_spent:
            self.keep_reserve()
        self._under.sync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """As the disk below."""
        self._under.truncate(descriptor, size)

    def close(self, descriptor: int) -> None:
        """As the disk below."""
        self._under.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """As the disk below."""
        self._under.rename(old, new)

    def remove(self, path: Path) -> None:
        """As the disk below."""
        self._under.remove(path)

    def sync_folder(self, folder: Path) -> None:
        """As the disk below."""
        self._under.sync_folder(folder)

    # -- what yields

    def yields(self, error: OSError) -> bool:
        """Remove caches if the disk has no room left; whether any was removed."""
        if error.errno not in NO_ROOM:
            return False
        short = self._reserve() - self._free()
        return self._remove(short) or self._remove(YIELD_BYTES, vouching=True)

    def keep_reserve(self) -> None:
        """Remove the caches used longest ago while less is free than is kept for traces."""
        short = self._reserve() - self._free()
        if short > 0 or not self._has_names():
            self._is_spent = not self._remove(short)

    def write_cache(self, path: Path, *content: Block) -> bool:
        """Put a cache at `path` if there is room, or others that were used before it give it; says once if not."""
        if self._allowance.limit_bytes == 0:
            return False  # None are wanted.
        size = sum(map(len, content))
        because = self._made_room(path, size + 2 * BLOCK_BYTES)
        if not because:
            because = self._written(path, content, size)
        if because and not self._has_told:
            self._has_told = True
            kinds = (k for k in self._kinds if path.is_relative_to(self.root) and path.match(k.pattern))
            kind = next(kinds, Kind("cache", ""))
            self._tell(f"{kind.name} {path.name} is not kept, so {kind.loss}: {because}")
        return not because

    def was_used(self, path: Path) -> None:
        """Let the others yield before this one."""
        self._own.add(path)
        if not self._latest_ns:
            self.caches()
        self._latest_ns = max(time.time_ns(), self._latest_ns + 1)
        with contextlib.suppress(OSError, OverflowError):
            os.utime(path, ns=(self._latest_ns, self._latest_ns))

    def caches(self) -> list[Cache]:
        """All caches of the state folder in the order in which they yield."""
        found = [cache for kind in self._kinds for cache in _caches_of(kind, self.root)]
        self._latest_ns = max((cache.used_ns for cache in found), default=0)
        return sorted(found, key=lambda c: (c.kind.vouches, not c.path.name.startswith("."), c.used_ns, c.path))

    def _made_room(self, path: Path, needed: int) -> str:
        """Remove what must yield to a cache of that size; why it cannot be, or ''. Removes nothing then."""
        caches = self.caches()
        others = [c for c in caches if c.path not in {path, *self._own} and not c.kind.vouches]
        taken = sum(c.size for c in caches if c.path != path)
        limit = self._limit(sum(c.room for c in caches))
        free, reserve = self._free(), self._reserve()
        old = [c for c in caches if c.path == path]  # It goes first: it is replaced anyway.
        if taken - sum(c.size for c in others) + needed > limit:
            return f"it takes {megabytes(needed)}, and caches may take {megabytes(limit)} ([state] cache_mb)"
        if free + sum(c.room for c in others + old) - needed < reserve:
            left = f"{megabytes(free)} are free in {self.root}"
            return f"{left}, and {megabytes(reserve)} of it are kept for traces ([state] reserve_mb)"
        for cache in old + others:
            is_short = free - needed < reserve or not self._has_names()
            if not is_short and (taken + needed <= limit or cache in old):
                continue
            if removed(cache):
                free += cache.room
                taken -= cache.size if cache not in old else 0
        if free - needed < reserve:
            return f"{megabytes(free)} are free in {self.root}, and {megabytes(reserve)} of it are kept for traces"
        return "" if self._has_names() else f"no more files can be made in {self.root}"

    def _written(self, path: Path, content: tuple[Block, ...], size: int) -> str:
        """Write a cache, once more if what was used before it can yield; why it is not, or ''."""
        for is_last in (False, True):
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_atomically(self._under, path, *content)
            except OSError as error:
                if is_last or error.errno not in NO_ROOM or not self._remove(size, keep=self._own):
                    return f"{path.parent}: {error.strerror or error}"
            else:
                break
        self.written += size
        self._is_spent = False
        self.was_used(path)
        return ""

    def _remove(self, needed: int, *, vouching: bool = False, keep: Collection[Path] = ()) -> bool:
        """Remove what was used longest ago until so much is free; whether anything was."""
        freed, any_removed = 0, False
        for cache in (each for each in self.caches() if each.path not in keep):
            if (freed >= needed and any_removed) or (cache.kind.vouches and not vouching):
                break
            if removed(cache):
                freed, any_removed = freed + cache.room, True
        return any_removed

    def _limit(self, taken: int) -> int:
        if self._allowance.limit_bytes is not None:
            return self._allowance.limit_bytes
        return min(LIMIT_BYTES_MAX, (self._free() + taken) // 2)

    def _reserve(self) -> int:
        if self._allowance.reserve_bytes is not None:
            return self._allowance.reserve_bytes
        found = self._space()
        return min(RESERVE_BYTES_MAX, found.f_blocks * found.f_frsize // 4)

    def _free(self) -> int:
        found = self._space()
        return found.f_bavail * found.f_frsize

    def _has_names(self) -> bool:
        """Whether enough names are free; file systems that make them as they are needed tell of none at all."""
        found = self._space()
        return not found.f_files or found.f_favail > min(INODES_KEPT, found.f_files // 4)

    def _space(self) -> os.statvfs_result:
        return self._under.space(next(p for p in (self.root, *self.root.absolute().parents) if p.exists()))


SCRATCH = re.compile(r"\.(.+\.[0-9a-f]{8}|session\.json|snapshot\.cbor|trace\.cbor[^/]*|[\w-]+\.kv)\.new")
"""Names under which a file is written before it has its own; the second part is how earlier versions named them."""


def remove_leftovers(folder: Path) -> int:
    """Remove what killed processes have left half written in a folder; return how many bytes that was."""
    freed = 0
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if SCRATCH.fullmatch(path.name):
                size = path.lstat().st_size
                freed += size if _gone_if_unheld(path) else 0
    return freed


def removed(cache: Cache) -> bool:
    """Remove a cache if it is what it seems; False if it is not, or somebody else has."""
    try:
        with cache.path.open("rb") as file:
            is_ours = file.read(len(cache.kind.magic)) == cache.kind.magic
    except OSError:
        return False
    gone = _gone_if_unheld if SCRATCH.fullmatch(cache.path.name) else _gone
    return is_ours and gone(cache.path)


def megabytes(size: int) -> str:
    """A size for a person."""
    return f"{max(size, 0) / 1e6:.1f} MB" if abs(size) >= 100_000 else f"{max(size, 0) / 1e3:.1f} kB"


def _caches_of(kind: Kind, root: Path) -> Iterator[Cache]:
    *folders, name = kind.pattern.split("/")
    for path in _named(os.fspath(root), folders, name):
        with contextlib.suppress(OSError):
            found = os.lstat(path)
            own = path.rpartition("/")[2]
            if stat.S_ISREG(found.st_mode) and (own[0] != "." or SCRATCH.fullmatch(own)):
                yield Cache(Path(path), kind, found.st_size, found.st_blocks * 512, found.st_mtime_ns)


def _named(folder: str, below: list[str], name: str) -> Iterator[str]:
    """The files that a pattern names, none behind a link: `*` alone is any folder, the last part a pattern.

    With a thousand sessions it is several times as fast as `Path.glob`, which a small board waits for at each start.
    """
    if not below and "*" not in name:
        yield f"{folder}/{name}"
        return
    if below and below[0] != "*":
        inner = f"{folder}/{below[0]}"
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(os.lstat(inner).st_mode):
                yield from _named(inner, below[1:], name)
        return
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if not below:
            yield from (entry.path,) if fnmatchcase(entry.name, name) else ()
        elif entry.is_dir(follow_symlinks=False):
            yield from _named(entry.path, below[1:], name)


def _gone_if_unheld(path: Path) -> bool:
    """Remove a file in which nobody writes; it is locked meanwhile, so that nobody begins to."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return error.errno == errno.EACCES and _gone(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _gone(path)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _gone(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False
