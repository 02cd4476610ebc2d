"""Where sessions live: one directory each, its lock, and what it remembers about how it was started.

    <state>/sessions/<id>/
      session.json     which agent, limits and model; written once
      trace.cbor       the truth
      snapshot.cbor    a cache of the fold
      lock             who works in it now
    <state>/heads/<id>     how far it has come, kept apart from its trace

Knows no loop and no driver.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from edgeagent.errors import ConfigError, TraceError
from edgeagent.trace.disk import DISK, Disk, write_atomically
from edgeagent.trace.disk import file_behind as file_behind
from edgeagent.trace.file import Durability
from edgeagent.version import __version__

TRACE_NAME = "trace.cbor"
ABOUT_NAME = "session.json"
SNAPSHOT_NAME = "snapshot.cbor"
LOCK_NAME = "lock"
GONE = ".gone"
"""The end of a directory's name that is being removed."""


_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
"""What the id of a session, or the beginning of one, is made of."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line changed of the agent's budget; part of what a trace can be folded with."""

    steps: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None
    money: float | None = None


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen when a session begins, and stays: all of it is kept in session.json.

    `agent_spec` is where the agent's file is, empty for an agent that was given as a value. `policy` is the section of
    that name in edgeagent.toml: the operator's rules, under which the session stays. `servers` are those of MCP by
    name, with their tools as they were approved.
    """

    agent_spec: str
    model: str
    seed: int = 0
    context_tokens: int = 2048
    durability: str = "effects"
    limits: Limits = Limits()
    policy: dict[str, Any] = {}
    servers: dict[str, Any] = {}


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a session was started with; kept beside its trace so that it can be replayed and resumed.

    `parts` are digests of the agent's parts, by name, so that a change can be named. `sealed_by` names the key that its
    head was sealed with (see `vouched`), empty for a session from before there were heads. The rest as in `Beginning`.
    """

    id: str
    agent: str
    agent_spec: str
    agent_digest: str
    model: str
    dialect: str
    created_ms: int
    seed: int = 0
    context_tokens: int = 2048
    durability: str = "effects"
    limits: Limits = Limits()
    parts: dict[str, str] = {}
    forked_from: str = ""
    version: str = __version__
    policy: dict[str, Any] = {}
    sealed_by: str = ""
    servers: dict[str, Any] = {}


def sessions_folder(root: Path) -> Path:
    """Where all session directories of this state folder are."""
    return root / "sessions"


def root_of(directory: Path) -> Path:
    """The state folder that a session's directory is in."""
    return directory.absolute().parent.parent


def head_path(directory: Path) -> Path:
    """Where the head of this session is."""
    return root_of(directory) / "heads" / directory.name


def new_directory(root: Path, now_ms: int, disk: Disk = DISK) -> Path:
    """Make a session directory with a name that sorts by time. Raises ConfigError if it cannot be made."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now_ms / 1000))
    folder = sessions_folder(root)
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        while True:
            directory = folder / f"{stamp}-{secrets.token_hex(2)}"
            with contextlib.suppress(FileExistsError):
                directory.mkdir(mode=0o700)
                return directory
    except OSError as error:
        if disk.yields(error):
            return new_directory(root, now_ms, disk)
        remedy = "set another place with --state DIR or $EDGEAGENT_STATE"
        raise ConfigError(f"cannot write sessions under {folder}: {os.strerror(error.errno or 0)}; {remedy}") from error


def find_directory(root: Path, name: str) -> Path:
    """Return the directory of the session whose id is, or alone begins with, `name`. Raises ConfigError."""
    folder = sessions_folder(root)
    if not _ID.fullmatch(name) or name in {".", ".."}:
        raise ConfigError(f"{name[:80]!r} is no session's id; `edgeagent sessions list` shows them")
    if (folder / name / TRACE_NAME).exists():
        return folder / name
    found = [d for d in directories(root) if d.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    which = f"{len(found)} sessions begin with {name!r}" if found else f"no session {name!r}"
    raise ConfigError(f"{which} under {folder}; `edgeagent sessions list` shows them")


def directories(root: Path) -> list[Path]:
    """All session directories, oldest first."""
    folder = sessions_folder(root)
    if not folder.is_dir():
        return []
    found = (d for d in folder.iterdir() if not d.name.startswith("."))
    return sorted(d for d in found if (d / TRACE_NAME).exists() or (d / ABOUT_NAME).exists())


def last_directory(root: Path) -> Path:
    """The session that was worked in last. Raises ConfigError if there is none."""
    with_trace = [d for d in directories(root) if (d / TRACE_NAME).exists()]
    if not with_trace:
        raise ConfigError(f"there is no session under {sessions_folder(root)} yet; start one with `edgeagent run`")
    return max(with_trace, key=lambda d: ((d / TRACE_NAME).stat().st_mtime_ns, d.name))


def remove_directory(directory: Path) -> None:
    """Remove a session that nobody works in. Raises ConfigError."""
    if directory.is_symlink():
        raise ConfigError(
            f"{directory} is a link to {directory.readlink()}; remove the link itself, or that session there"
        )
    if not directory.exists():
        return  # Another process was first.
    gone = directory.with_name(f".{directory.name}.{secrets.token_hex(4)}{GONE}")
    with locked(directory):
        directory.rename(gone)  # From here on it is no session, whatever happens.
        head_path(directory).unlink(missing_ok=True)
        shutil.rmtree(gone)


def write_about(directory: Path, about: About, disk: Disk = DISK) -> None:
    """Write session.json, whole or not at all. Raises TraceError."""
    content = orjson.dumps(msgspec.to_builtins(about), option=orjson.OPT_INDENT_2) + b"\n"
    try:
        write_atomically(disk, directory / ABOUT_NAME, content)
    except OSError as error:
        raise TraceError(f"cannot write {directory / ABOUT_NAME}: {error.strerror or error}") from None


def make_durable(directory: Path, disk: Disk = DISK) -> None:
    """Make the directory's own name durable. Raises TraceError."""
    try:
        disk.sync_folder(directory.parent)
    except OSError as error:
        raise TraceError(f"cannot make {directory} durable: {error.strerror or error}") from None


def read_about(directory: Path) -> About:
    """Read session.json. Raises ConfigError when it is missing or not ours."""
    file = directory / ABOUT_NAME
    try:
        return msgspec.json.decode(file.read_bytes(), type=About)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{file}: {error}; is {directory} a session directory?") from error


def durability_of(about: About) -> Durability:
    """The mode that the session was started in. Raises ConfigError."""
    match about.durability:
        case "strict" | "effects" | "relaxed" as mode:
            return mode
        case other:
            raise ConfigError(f"session {about.id}: durability {other!r} is none; there are strict, effects, relaxed")


class Lock:
    """A session directory that this process alone may write in. It dies with the process, and no child inherits it."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory, self._disk = directory, disk
        self._descriptor = _taken(directory, disk)
        self._identity = file_behind(self._descriptor)
        _HELD.add(self)

    def keep(self) -> None:
        """Take it again if a tool has closed its descriptor. Raises ConfigError if somebody else was first."""
        if self._identity is not None and file_behind(self._descriptor) != self._identity:
            self._descriptor = _taken(self._directory, self._disk)
            self._identity = file_behind(self._descriptor)

    def release(self) -> None:
        """Let others in, also where a child has begun that has not let go of its copy yet."""
        if self._identity is not None and file_behind(self._descriptor) == self._identity:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.drop()

    def drop(self) -> None:
        """Close this process's copy; the lock stays with who took it."""
        _HELD.discard(self)
        if self._identity is not None and file_behind(self._descriptor) == self._identity:
            os.close(self._descriptor)
        self._identity = None


_HELD: weakref.WeakSet[Lock] = weakref.WeakSet()
"""The locks of this process: a child must let go of them, or it would hold them after our end."""


def _let_go_in_child() -> None:
    for held in list(_HELD):
        held.drop()


os.register_at_fork(after_in_child=_let_go_in_child)


def lock(directory: Path, disk: Disk = DISK) -> Lock:
    """Take the directory for this process. Raises ConfigError naming the process that has it."""
    return Lock(directory, disk)


def _taken(directory: Path, disk: Disk) -> int:
    path = directory / LOCK_NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if disk.yields(error):
            return _taken(directory, disk)
        if error.errno != errno.EROFS:
            raise ConfigError(f"cannot lock {path}: {error.strerror}") from None
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)  # Nobody can write there; it may be read.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = path.read_bytes()[:200].decode(errors="replace").strip() if path.exists() else "another process"
        os.close(descriptor)
        raise ConfigError(f"session {directory.name} is in use by {holder}; end it, or fork the session") from None
    if not directory.exists():
        os.close(descriptor)
        raise ConfigError(f"session {directory.name} was removed by another process")
    with contextlib.suppress(OSError):  # A full disk must not keep anyone from looking.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode(), 0)
    return descriptor


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock for a while. Raises ConfigError naming the process that has it."""
    held = lock(directory)
    try:
        yield
    finally:
        held.release()
