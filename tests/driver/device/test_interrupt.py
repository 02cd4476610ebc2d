"""The agent's own interrupt: into a command that has not ended, or into what nobody knows; never at a prompt."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

from edgeagent.core.agent import Tool
from edgeagent.driver.device.device import Device
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import DriverError, DriverUnavailable

pytestmark = pytest.mark.long

PROFILE = """
name = "field-switch"
extends = "generic"
about = "a switch"
may_interrupt = true

[[commands]]
name = "ping_forever"
help = "Ping."
command = "ping"
effect = "write"
idempotent = false
timeout_s = 1.5
"""


class Switch:
    """A console behind a terminal server: `ping` runs until it is interrupted. Notes each key that it was sent."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.where = f"socket://127.0.0.1:{self.listening.getsockname()[1]}"
        self.prompt = b"sw1# "
        self.pings = self.deaf = False
        self.keys = b""
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.connections.append(connection)
                threading.Thread(target=self._live, args=(connection,), daemon=True).start()

    def _live(self, connection: socket.socket) -> None:
        line = b""
        with contextlib.suppress(OSError):
            while portion := connection.recv(64):
                self.keys += portion
                for byte in portion:
                    answer, line = self._answer(byte, line)
                    connection.sendall(answer)

    def _answer(self, byte: int, line: bytes) -> tuple[bytes, bytes]:
        if self.pings:
            if byte != 0x03 or self.deaf:
                return b"", b""
            self.pings = False
            return b"^C\r\n" + self.prompt, b""
        if byte == 0x0D:
            self.pings = line.strip() == b"ping"
            return (b"\r\n64 bytes from\r\n" if self.pings else b"\r\n" + self.prompt), b""
        if byte == 0x15:
            return b"", b""
        return (bytes([byte]), line + bytes([byte])) if byte >= 0x20 else (b"", line)

    def close(self) -> None:
        """Go away."""
        self.listening.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def switch() -> Iterator[Switch]:
    """A switch."""
    switch = Switch()
    yield switch
    switch.close()


@pytest.fixture
def device(switch: Switch, tmp_path: Path) -> Iterator[Device]:
    """It, as an agent has it."""
    (tmp_path / "switch.toml").write_text(PROFILE)
    device = Device(switch.where, str(tmp_path / "switch.toml"), mirrored=False)
    yield device
    device.close()


@pytest.fixture
def never_enters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that never comes is waited for a second."""
    monkeypatch.setattr("edgeagent.driver.device.device.ENTER_S", 1.0)


def tool(device: Device, name: str) -> Tool:
    """The device's tool of this name."""
    return next(each for each in device.tools if each.name == name)


def interrupt(device: Device) -> str:
    """Call the interrupting tool."""
    return str(tool(device, "field_switch_interrupt").function())


def test_it_is_there_only_where_the_profile_says_so_and_asks_a_person_each_time(device: Device) -> None:
    assert tool(device, "field_switch_interrupt").confirm
    assert not tool(device, "field_switch_interrupt").idempotent
    assert not any(each.name.endswith("interrupt") for each in Device("usb:1", load_profile("generic")).tools)


def test_a_command_that_does_not_end_is_broken_off_and_its_effect_stays_unknown(switch: Switch, device: Device) -> None:
    with pytest.raises(EffectUnknown):
        tool(device, "ping_forever").function()
    assert "'ping' was interrupted; what it did is unknown. The console is in state shell" in interrupt(device)
    assert not device.console().running
    with pytest.raises(EffectUnknown, match="A person must look"):
        tool(device, "ping_forever").function()


def test_at_a_prompt_nothing_is_pressed(switch: Switch, device: Device) -> None:
    device.console()
    with pytest.raises(DriverUnavailable, match="nothing runs there; the console is in state shell"):
        interrupt(device)
    assert b"\x03" not in switch.keys


@pytest.mark.parametrize("prompt", [b"\r\nboard login: ", b"Password: "])
def test_at_a_log_in_nothing_is_pressed(switch: Switch, device: Device, prompt: bytes) -> None:
    switch.prompt = prompt
    device.console()
    with pytest.raises(DriverUnavailable, match="nothing runs there"):
        interrupt(device)
    assert b"\x03" not in switch.keys


@pytest.mark.usefixtures("never_enters")
def test_after_a_restart_what_nobody_knows_is_interrupted(switch: Switch, device: Device) -> None:
    switch.pings = True
    assert "what ran was interrupted. The console is in state shell" in interrupt(device)


def test_while_a_person_has_the_console_nothing_is_pressed(switch: Switch, device: Device) -> None:
    device.console().break_in()
    with pytest.raises(DriverUnavailable, match="a person has the console"):
        interrupt(device)
    assert b"\x03" not in switch.keys


@pytest.mark.usefixtures("never_enters")
def test_a_device_that_cannot_be_interrupted_is_said_to_be_so(
    switch: Switch, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeagent.driver.device.interrupt.INTERRUPT_S", 1.0)
    switch.pings = switch.deaf = True
    with pytest.raises(CommandFailed, match="no prompt came"):
        interrupt(device)


def test_a_command_of_the_same_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.toml").write_text(PROFILE.replace("ping_forever", "field_switch_interrupt"))
    with pytest.raises(DriverError, match="rename it"):
        Device("usb:1", str(tmp_path / "twice.toml"))
