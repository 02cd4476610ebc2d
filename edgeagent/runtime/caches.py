"""Which files of a state folder are caches, and the disk on which they yield to traces.

A new kind of cache is a row here; whoever writes it calls `write_cache` of the session's disk.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edgeagent.runtime.config import StateSettings
from edgeagent.runtime.folder import SNAPSHOT_NAME
from edgeagent.runtime.keys import KV_NAME
from edgeagent.trace.caches import Allowance, Kind, YieldingDisk, remove_leftovers
from edgeagent.trace.snapshot import MAGIC as SNAPSHOT_MAGIC

KV_MAGIC = b"edgeagent-kv\n"
"""With which a model's saved memory begins; llama.cpp need not be loaded to know it."""

DOORS_NAME = "doors"
"""The folder of a session's cursors."""

KINDS = (
    Kind("half written", f"sessions/*/{KV_NAME}/.*.new"),
    Kind("half written", f"{KV_NAME}/.*.new"),
    Kind("session memory", f"sessions/*/{KV_NAME}/*.kv", KV_MAGIC),
    Kind("agent memory", f"{KV_NAME}/*.kv", KV_MAGIC),
    Kind("tools' texts", f"{KV_NAME}/texts/*.kv", KV_MAGIC),
    Kind("snapshot", f"sessions/*/{SNAPSHOT_NAME}", SNAPSHOT_MAGIC, vouches=True),
)
"""All caches of a state folder. Those that vouch yield last."""


def state_disk(
    root: Path, settings: StateSettings | None = None, tell: Callable[[str], None] = lambda _: None
) -> YieldingDisk:
    """The disk of a state folder within what the operator allows; `tell` hears once if a cache cannot be kept."""
    settings = settings or StateSettings()
    allowance = Allowance(_bytes(settings.cache_mb), _bytes(settings.reserve_mb))
    return YieldingDisk(root, KINDS, allowance, tell)


def clear_leftovers(directory: Path) -> int:
    """Remove what killed processes have left half written in a session that nobody else works in, and in what all
    share; return how many bytes that was.
    """
    root = directory.parent.parent
    own = (directory, directory / KV_NAME, directory / DOORS_NAME)
    shared = (root, root / KV_NAME, root / KV_NAME / "texts", root / "calibrations", root / "heads")
    return sum(map(remove_leftovers, (*own, *shared)))


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else round(megabytes * 1e6)
