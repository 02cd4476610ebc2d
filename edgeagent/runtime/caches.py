"""Which files of a state folder are caches, and the disk on which they yield to traces.

A new kind of cache is a row here; whoever writes it calls `write_cache` of the session's disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from edgeagent.driver.llama.kv_head import MAGIC
from edgeagent.runtime.config import StateSettings
from edgeagent.runtime.folder import GONE, SNAPSHOT_NAME
from edgeagent.runtime.keys import KV_NAME
from edgeagent.runtime.rests import MAGIC as RESULT_MAGIC
from edgeagent.runtime.rests import RESULTS_NAME
from edgeagent.trace.caches import Allowance, Kind, YieldingDisk, remove_leftovers
from edgeagent.trace.snapshot import MAGIC as SNAPSHOT_MAGIC

DOORS_NAME = "doors"
"""The folder of a session's cursors."""

KINDS = (
    Kind("half written", f"sessions/*/{KV_NAME}/.*.new"),
    Kind("half written", f"{KV_NAME}/.*.new"),
    Kind("session memory", f"sessions/*/{KV_NAME}/*.kv", MAGIC),
    Kind("agent memory", f"{KV_NAME}/*.kv", MAGIC),
    Kind("tools' texts", f"{KV_NAME}/texts/*.kv", MAGIC),
    Kind("half written", f"sessions/*/{RESULTS_NAME}/.*.new"),
    Kind("bytes of a result", f"sessions/*/{RESULTS_NAME}/*-*.bin", loss="only what they are is told of them"),
    Kind(
        "result",
        f"sessions/*/{RESULTS_NAME}/*[0-9]",
        RESULT_MAGIC,
        loss="only its recorded beginning can be read on",
    ),
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


def clear_leftovers(directory: Path) -> None:
    """Remove what killed processes have left in a session that nobody else works in, and in what all share."""
    for folder in (directory, directory / KV_NAME, directory / RESULTS_NAME, directory / DOORS_NAME):
        remove_leftovers(folder)
    clear_shared_leftovers(directory.parent.parent)


def clear_shared_leftovers(root: Path) -> None:
    """Remove what killed processes have left in what all sessions share."""
    for folder in (root, root / KV_NAME, root / KV_NAME / "texts", root / "calibrations", root / "heads"):
        remove_leftovers(folder)
    for gone in root.glob(f"sessions/.*{GONE}"):
        shutil.rmtree(gone, ignore_errors=True)


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else round(megabytes * 1e6)
