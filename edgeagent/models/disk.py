"""Bytes of models on the disk: where they lie, whether there is room, digests, and one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeagent.errors import ModelError
from edgeagent.models.gguf_format import DAMAGED

Progress = Callable[[str, int, int], None]
"""Called with (stage, bytes done, bytes in all) and often; 0 in all means that it is not known."""

CHUNK_BYTES = 1 << 20
SPARE_BYTES = 16 << 20  # left free on the disk: other programs on a small device need to write too


def no_progress(stage: str, done_bytes: int, total_bytes: int) -> None:
    """For callers that show nothing."""


def store_root() -> Path:
    """`$EDGEAGENT_MODELS`, else `edgeagent/models` under the XDG cache."""
    if own := os.environ.get("EDGEAGENT_MODELS"):
        return Path(own).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: a relative path there is to be ignored.
    base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return base / "edgeagent" / "models"


def digest(path: Path, total_bytes: int, progress: Progress) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done_bytes += len(chunk)
            progress("verify", done_bytes, total_bytes)
    return digest.hexdigest()


def copied(source: Path, target: Path, total_bytes: int, progress: Progress) -> str:
    """Copy, and digest what was copied."""
    digest = hashlib.sha256()
    done_bytes = 0
    with source.open("rb") as file, target.open("wb") as out:
        while chunk := file.read(CHUNK_BYTES):
            out.write(chunk)
            digest.update(chunk)
            done_bytes += len(chunk)
            progress("copy", done_bytes, total_bytes)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def refuse_if_full(folder: Path, wanted_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if wanted_bytes + SPARE_BYTES > free_bytes:
        raise ModelError(
            f"{folder}: {(wanted_bytes + SPARE_BYTES) >> 20} MB are needed and {free_bytes >> 20} MB are free; "
            "make room, or set EDGEAGENT_MODELS to a folder on another disk"
        )


@contextmanager
def locked(name: str, root: Path, progress: Progress) -> Iterator[int]:
    """One at a time for each name; yields the descriptor that holds the lock.

    The lock file stays: deleting it would let two hold "the" lock.
    """
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait for another pull", 0, 0)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn what the disk says into a `ModelError`."""
    try:
        yield
    except OSError as error:
        place = error.filename or root
        if error.errno == errno.ENOSPC:
            raise ModelError(
                f"{place}: the disk is full; make room, or set EDGEAGENT_MODELS to another disk"
            ) from error
        raise ModelError(f"{place}: {error.strerror or error}; set EDGEAGENT_MODELS to a folder you may use") from error


@contextmanager
def mapped(path: Path) -> Iterator[tuple[mmap.mmap, int]]:
    """Map the file for reading. O_NONBLOCK, because opening a pipe that has no writer would wait for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: {_why_not_opened(error)}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise ModelError(f"{path}: this is {kind}, not a model; name the .gguf file itself")
        if status.st_size == 0:
            raise ModelError(f"{path}: the file is empty (0 bytes at byte 0); {DAMAGED}")
        with mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ) as data:
            yield data, status.st_size
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error}); check the disk it is on") from error
    finally:
        os.close(descriptor)


def _why_not_opened(error: OSError | ValueError) -> str:
    match getattr(error, "errno", None):
        case errno.ENOENT | errno.ENOTDIR:
            return "there is no such file; check the path, or get a model with `edgeagent model pull smollm2`"
        case errno.EACCES | errno.EPERM:
            return "no permission to read it; give this user read permission (chmod a+r)"
        case _:
            return f"cannot be opened ({error}); check the path"
