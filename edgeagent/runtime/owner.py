"""Owner: for whom a session is served, kept beside its trace so that a server that starts again knows."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgeagent.errors import TraceError
from edgeagent.runtime.folder import directories
from edgeagent.trace.disk import DISK, write_atomically

OWNER_NAME = "served.json"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose the session is, by the name of a key, and of which agent; `title` is how its first word begins.

    `is_resting` says that it was put down with nothing outstanding; one that was not is taken up again at once.
    `history` is the digest of what was said in it through the chat door, by which a client that knows no id finds it.
    """

    key: str
    agent: str
    title: str = ""
    begun_ms: int = 0
    is_resting: bool = False
    history: str = ""


def write_owner(directory: Path, owner: Owner) -> None:
    """Write it, whole or not at all. Raises TraceError."""
    try:
        write_atomically(DISK, directory / OWNER_NAME, msgspec.json.encode(owner))
    except OSError as error:
        raise TraceError(f"cannot write {directory / OWNER_NAME}: {error.strerror or error}") from None


def owners(root: Path) -> dict[str, Owner]:
    """The sessions of this state folder that are served, by id; what cannot be read is nobody's, so nobody's to see."""
    found = {}
    for directory in directories(root):
        try:
            found[directory.name] = msgspec.json.decode((directory / OWNER_NAME).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            continue
    return found
