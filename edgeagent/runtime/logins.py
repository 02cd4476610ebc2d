"""Log-ins that stand, kept in the state folder, so that a server that starts again knows them. No key is among them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgeagent.errors import TraceError
from edgeagent.trace.disk import DISK, write_atomically

LOGINS_NAME = "logins.json"

Standing = dict[str, dict[str, int]]
"""By the name of the key: each log-in's number, and when it ends, as Unix time."""


def write_logins(root: Path, standing: Standing) -> None:
    """Write them, whole or not at all. Raises TraceError."""
    try:
        write_atomically(DISK, root / LOGINS_NAME, msgspec.json.encode(standing))
    except OSError as error:
        raise TraceError(f"cannot keep who is logged in, at {root / LOGINS_NAME}: {error.strerror or error}") from None


def logins_of(root: Path) -> Standing:
    """The log-ins that stand; none where they cannot be read, so everyone logs in again."""
    try:
        return msgspec.json.decode((root / LOGINS_NAME).read_bytes(), type=Standing)
    except (OSError, msgspec.DecodeError):
        return {}
