"""A device behind a network: a connection that is dead and does not know is made anew."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

import msgspec

from edgeagent.driver.device.device import Device
from edgeagent.driver.line.outcome import Done, NotSent
from edgeagent.driver.line.profile import load_profile


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


def test_ser2net_33_after_silence_twice_the_connection_is_made_anew(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeagent.driver.device.device.ENTER_S", 1.0)
    profile = msgspec.structs.replace(load_profile("generic"))
    device = Device(bridge.where, profile, mirrored=False)
    try:
        for _ in range(2):
            assert isinstance(device.console().run("show version", 1.0), NotSent)
        assert device.console().run("show version") == Done("")
        assert len(bridge.connections) == 2
    finally:
        device.close()
