"""A device behind a network: a connection that is dead and does not know is made anew."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

import msgspec

from edgeagent.core.effects import CallTool
from edgeagent.core.events import ToolReturned
from edgeagent.driver.device.device import Device
from edgeagent.driver.line.outcome import Done, NotSent
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.tool import ToolDriver


class Bridge:
    """A terminal server whose first connection goes dead without a word; further ones have a shell."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.where = f"socket://127.0.0.1:{self.listening.getsockname()[1]}"
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self.listening.accept()
                self.connections.append(connection)
                if len(self.connections) > 1:
                    threading.Thread(target=self._live, args=(connection,), daemon=True).start()
        except OSError:
            pass

    def _live(self, connection: socket.socket) -> None:
        line = b""
        while portion := connection.recv(64):
            for byte in portion:
                line = b"" if byte in (0x0D, 0x15) else line + bytes([byte])
                connection.sendall(b"\r\nsw1# " if byte == 0x0D else bytes([byte]) if byte >= 0x20 else b"")

    def close(self) -> None:
        """Go away."""
        self.listening.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    """A bridge."""
    bridge = Bridge()
    yield bridge
    bridge.close()


@pytest.mark.deep
def test_ser2net_33_after_silence_twice_the_connection_is_made_anew(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeagent.driver.device.device.ENTER_S", 1.0)
    profile = msgspec.structs.replace(load_profile("generic"))
    device = Device(bridge.where, profile, mirrored=False)
    try:
        for _ in range(2):
            assert isinstance(device.console().run("show version", 1.0), NotSent)
        monkeypatch.setattr("edgeagent.driver.device.device.ENTER_S", 60.0)
        assert device.console().run("show version") == Done("")
        assert len(bridge.connections) == 2
        assert device.port.take_notes() == ("nothing was heard 2 times: connected anew", f"opened {bridge.where}")
    finally:
        device.close()


SWITCH = """
name = "sw"
extends = "generic"
[[commands]]
name = "read_version"
help = "Read the version."
command = "show version"
effect = "read"
idempotent = true
"""


@pytest.mark.deep
def test_a_line_that_died_and_came_back_is_noted_in_the_result_of_the_call(bridge: Bridge, tmp_path: Path) -> None:
    bridge.connections.append(socket.socket())  # Every connection has a shell.
    (tmp_path / "sw.toml").write_text(SWITCH)
    device = Device(bridge.where, str(tmp_path / "sw.toml"), mirrored=False)
    driver, events = ToolDriver({tool.name: tool for tool in device.tools}), queue.Queue[ToolReturned]()

    def called() -> ToolReturned:
        driver.submit(CallTool(7, "read_version", "{}", 20_000), events.put)  # type: ignore[arg-type]
        return events.get(timeout=60)

    try:
        assert called().notes == ()
        bridge.connections[-1].shutdown(socket.SHUT_RDWR)
        while device.port.is_open:
            time.sleep(0.01)
        again = called()
        assert isinstance(again, ToolReturned)
        assert [note.split(":")[0].split()[0] for note in again.notes] == ["link", "opened"]
        assert called().notes == ()
    finally:
        driver.close()
        device.close()
