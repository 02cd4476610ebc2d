"""Secrets of this state folder: one seals caches, one heads of traces, one log-ins; with one exports are hashed."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from edgeagent.errors import TraceError
from edgeagent.trace.disk import DISK

KEY_NAME = "cache.key"
AUDIT_KEY_NAME = "audit.key"
HEAD_KEY_NAME = "head.key"
LOGIN_KEY_NAME = "login.key"
KV_NAME = "kv"
"""The folder of a model's saved memories, in a session and in the state folder."""
KEY_BYTES = 32


def local_key(root: Path, name: str = KEY_NAME) -> bytes:
    """Return the key of that name, made on first use, for its owner only. Raises TraceError if there can be none."""
    path = root / name
    try:
        if not path.exists():
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make(path)
        key = path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot keep a key at {path}: {error.strerror or error}") from None
    if len(key) != KEY_BYTES:
        raise TraceError(f"{path} is not a key; remove it, and a new one is made. {_LOST[name]}")
    return key


def key_there(root: Path, name: str) -> bytes | None:
    """Return the key of that name if there is one; nothing is made."""
    try:
        key = (root / name).read_bytes()
    except OSError:
        return None
    return key if len(key) == KEY_BYTES else None


_LOST = {
    KEY_NAME: "What was cached is made again",
    AUDIT_KEY_NAME: "Earlier exports cannot be checked any more",
    HEAD_KEY_NAME: "Each session then goes on once `edgeagent trace repair --to` has accepted its trace",
    LOGIN_KEY_NAME: "Pages must log in again",
}
"""What it costs to lose a key."""


def _make(path: Path) -> None:
    """Make a key, durably, unless another process is first. Raises OSError."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, os.urandom(KEY_BYTES))
        os.fsync(descriptor)  # What is sealed with it would be worth nothing after a power cut.
        with contextlib.suppress(FileExistsError):
            os.link(scratch, path)
    finally:
        os.close(descriptor)
        scratch.unlink()
    DISK.sync_folder(path.parent)
