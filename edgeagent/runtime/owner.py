"""Owner: for whom a session is served, kept beside its trace so that a server that starts again knows."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgeagent.errors import TraceError
from edgeagent.runtime.folder import directories
from edgeagent.trace.disk import DISK, write_atomically

OWNER_NAME, EDITOR_NAME = "served.json", "editor.json"
"""The file of a session that is served over the network, and of one that is an editor's."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose the session is, by the name of a key, and of which agent; `title` is how its first word begins.

    `is_resting` says that it was put down with nothing outstanding; one that was not is taken up again at once.
    `history` is the digest of what was said in it through the chat door, by which a client that knows no id finds it.
    `folders` are those of an editor that the session is about, the first being where it works.
    """

    key: str
    agent: str
    title: str = ""
    begun_ms: int = 0
    is_resting: bool = False
    history: str = ""
    folders: tuple[str, ...] = ()


def write_owner(directory: Path, owner: Owner, file: str = OWNER_NAME) -> None:
    """Write it, whole or not at all. Raises TraceError."""
    try:
        write_atomically(DISK, directory / file, msgspec.json.encode(owner))
    except OSError as error:
        raise TraceError(f"cannot write {directory / file}: {error.strerror or error}") from None


def owners(root: Path, file: str = OWNER_NAME) -> dict[str, Owner]:
    """The sessions of this state folder that are served, by id; what cannot be read is nobody's, so nobody's to see."""
    found = {}
    for directory in directories(root):
        try:
            found[directory.name] = msgspec.json.decode((directory / file).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            continue
    return found
