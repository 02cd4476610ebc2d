"""The disk: what a turn writes, how often it syncs, and what watching a silent line costs in an hour."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime.caches import KINDS
from edgeagent.runtime.folder import Beginning
from edgeagent.runtime.outside import Outside
from edgeagent.runtime.session import new_session
from edgeagent.runtime.wiring import drivers_of, step_of, with_dialect
from edgeagent.trace.caches import YieldingDisk
from edgeagent.trace.disk import Disk

TURNS = 50
CALL = json.dumps({"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}})


@tool(idempotent=False, effect="write")
def set_valve(valve: str, seconds: int) -> str:
    """Open a valve for some seconds."""
    return f"{valve} is open for {seconds} s"


GARDENER = with_dialect(Agent("gardener", "You open valves.", [set_valve]), "plain")


class CountingSyncs(Disk):
    """Counts what makes a card write: each sync is a block of its own, and the file system's notes about it."""

    syncs = 0

    def sync(self, descriptor: int) -> None:
        """As the disk, counted."""
        self.syncs += 1
        super().sync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """As the disk, counted."""
        self.syncs += 1
        super().sync_folder(folder)


def test_what_a_turn_writes(tmp_path: Path, record_figure: Callable[[str, float], None]) -> None:
    """A turn with one call that must not be repeated, in the default mode, and the close behind it."""
    under = CountingSyncs()
    disk = YieldingDisk(tmp_path, KINDS, under=under)
    drivers = drivers_of(GARDENER, ScriptedModel([CALL, "It is open."] * TURNS))
    beginning = Beginning(agent_spec="", model="script")
    session = new_session(GARDENER, step_of(GARDENER), drivers, tmp_path, beginning, Outside(disk=disk))
    written, syncs = disk.written, under.syncs
    for _ in range(TURNS):
        assert session.ask("Open the north valve for 30 seconds.").text == "It is open."
    session.close()
    record_figure("disk.bytes_a_turn", (disk.written - written) / TURNS)
    record_figure("disk.syncs_a_turn", (under.syncs - syncs) / TURNS)


def test_watching_a_silent_line(record_figure: Callable[[str, float], None]) -> None:
    """A session that waits while its device's console is listened to; and what an hour of that leaves in memory."""
    pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")
    from bench.idle import LINE, cpu_percent, kilobytes_an_hour

    percent, wakes = cpu_percent(4)
    record_figure("idle.cpu_percent", percent)
    record_figure("idle.wakes_a_second", wakes)
    record_figure("idle.kb_an_hour", max(kilobytes_an_hour(), kilobytes_an_hour(LINE)))
