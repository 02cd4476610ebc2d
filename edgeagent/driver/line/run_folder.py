"""Folder of what lives as long as this machine runs: sockets of views, and requests that are out on a line."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def run_folder() -> Path:
    """Return where it is; it need not be there yet."""
    run = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/edgeagent-{os.getuid()}"
    return Path(run) / "edgeagent"


def made_ours(folder: Path) -> None:
    """Make the folder, and make sure that only this user may write there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    about = folder.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise OSError(f"{folder} may be written by others")


def name_of(line: str) -> str:
    """Return a name for a line that any file may have."""
    return hashlib.sha256(line.encode()).hexdigest()[:16]
