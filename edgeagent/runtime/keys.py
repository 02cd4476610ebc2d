"""The secrets of this state folder: caches are believed only if sealed with one, exports are hashed with another."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from edgeagent.errors import TraceError

KEY_NAME = "cache.key"
AUDIT_KEY_NAME = "audit.key"
KV_NAME = "kv"
"""The folder of a model's saved memories, in a session and in the state folder."""
KEY_BYTES = 32


def local_key(root: Path, name: str = KEY_NAME) -> bytes:
    """Return the key of that name, made on first use, for its owner only. Raises TraceError if there can be none."""
    path = root / name
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path.with_name(f".{name}.{os.getpid()}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if not path.exists():
                    os.write(descriptor, os.urandom(KEY_BYTES))
                    os.link(path.with_name(f".{name}.{os.getpid()}"), path)  # Fails if another process was first.
            finally:
                os.close(descriptor)
                path.with_name(f".{name}.{os.getpid()}").unlink()
        key = path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot keep a key at {path}: {error.strerror or error}") from None
    if len(key) != KEY_BYTES:
        raise TraceError(f"{path} is not a key; remove it, and what was cached is made again")
    return key
