"""A device's alarm wakes a session: a line on a pseudo-terminal becomes an event, a turn and a call, and replays."""

from __future__ import annotations

import json
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

from edgeagent.core.agent import Agent
from edgeagent.core.effects import Say
from edgeagent.core.events import Heard, ToolReturned
from edgeagent.driver.device.device import Device
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import effects_of, load_recording, records_of
from tests.driver.device.test_listener import Pump, pump  # noqa: F401  # the fixture

PROFILE = """
name = "pump"
extends = "generic"
wake = ['^ALARM ']

[[commands]]
name = "show_alarms"
help = "Show the alarms."
command = "show alarms"
effect = "read"
idempotent = true
"""


class Told(QuietDoor):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: queue.Queue[str] = queue.Queue()

    def watch(self, event: Any, state: Any, effects: Any) -> None:
        """Keep what is said."""
        for effect in effects:
            if isinstance(effect, Say):
                self.said.put(effect.text)


def test_an_alarm_line_wakes_a_session_and_becomes_a_call_and_replays(pump: Pump, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "pump.toml").write_text(PROFILE)
    (tmp_path / "script.json").write_text(
        json.dumps([json.dumps({"name": "show_alarms", "arguments": {}}), "The pump's pressure is too high."])
    )
    device = Device(pump.place, str(tmp_path / "pump.toml"), mirrored=False)
    agent = Agent("watch", "You watch a pump.", device.tools, hears=("pump",))
    door = Told()
    asked = OpenRequest(agent=agent, model=f"script:{tmp_path / 'script.json'}", state=tmp_path / "state")
    session = open_session(asked, door)
    serving = threading.Thread(target=session.serve)
    serving.start()
    device.console()
    listener = device.listen(lambda line: session.post_heard("pump", line))
    try:
        pump.say("\r\nALARM pressure 12 bar\r\npump# ")
        assert door.said.get(timeout=60) == "The pump's pressure is too high."
    finally:
        session.close()
        serving.join()
        listener.close()
        device.close()
    found = effects_of(load_recording(session.trace_path, agent), records_of(session.trace_path))
    events = [record.event for record, _, _ in found]  # Each was folded again and came to the same effects.
    assert [event.text for event in events if isinstance(event, Heard)] == ["ALARM pressure 12 bar"]
    assert [json.loads(event.value) for event in events if isinstance(event, ToolReturned)] == ["ALARM list: none"]
