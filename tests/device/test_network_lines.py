"""Lines over the network, by ser2net (RFC 2217) and BusyBox's telnetd: cut and healed, at a set speed, logged in to."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done, LinkWasLost, NotSent
from edgeagent.driver.line.port import LinkLost, PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.errors import DriverUnavailable
from tests.device import login_device
from tests.device.conftest import loopback_port

pytestmark = [
    pytest.mark.device,
    pytest.mark.filterwarnings("ignore:set(Daemon|Name)..:DeprecationWarning"),  # pyserial rfc2217 still calls them.
    pytest.mark.skipif(os.getuid() != 0, reason="busybox login needs root for its own root directory"),
    pytest.mark.skipif(
        not Path("/bin/busybox").exists(), reason="busybox-static is missing: run tests/device/setup.sh"
    ),
]
PASSWORD = "s3cret-of-this-test"
HERE = Path(__file__).parent


@pytest.fixture
def ports() -> Iterator[list[SerialPort]]:
    """Ports that are closed at the end."""
    opened: list[SerialPort] = []
    yield opened
    for port in opened:
        port.close()


def notes(port: SerialPort) -> list[str]:
    """What the port noted of itself."""
    return [moment.note for moment in port.timeline() if moment.who == "port"]


class Bridge:
    """A ser2net that serves one line; it may end and be started again at the same place."""

    def __init__(self, begin: Callable[..., Any], tcp: int, connector: str, folder: Path) -> None:
        self.place = f"rfc2217://127.0.0.1:{tcp}"
        self._begin = begin
        self._file = folder / "ser2net.yaml"
        self._file.write_text(
            f"%YAML 1.1\n---\nconnection: &con\n  accepter: telnet(rfc2217),tcp,127.0.0.1,{tcp}\n"
            f"  connector: {connector}\n  options:\n    kickolduser: true\n"
        )
        self.target = self.start()

    def start(self) -> Any:
        """Serve the line."""
        program = shutil.which("ser2net") or "/usr/sbin/ser2net"
        self.target = self._begin("ser2net", [program, "-n", "-d", "-u", "-c", str(self._file)], place=self.place)
        return self.target


@pytest.fixture
def bridge(start_target: Callable[..., Any], free_port: int, tmp_path: Path) -> Iterator[tuple[Bridge, str]]:
    """A bridge to a console with a log-in, and the path of its serial line."""
    if not (shutil.which("ser2net") or Path("/usr/sbin/ser2net").exists()):
        pytest.skip("ser2net is missing: run tests/device/setup.sh")
    (tmp_path / "root").mkdir()
    line = start_target(
        "busybox login", [sys.executable, str(HERE / "login_device.py"), str(tmp_path / "root"), PASSWORD]
    ).place
    yield Bridge(start_target, free_port, f"serialdev,{line},9600n81,local", tmp_path), line


def test_a_bridge_is_cut_and_healed_sets_the_speed_and_says_that_it_has_no_break(
    bridge: tuple[Bridge, str], ports: list[SerialPort]
) -> None:
    served, line = bridge
    port = SerialPort(PortSettings(served.place, 57_600))
    ports.append(port)
    port.reopen(60)
    with open(line, "rb", buffering=0, opener=lambda path, flags: os.open(path, os.O_RDWR | os.O_NOCTTY)) as held:
        assert termios.tcgetattr(held)[4] == termios.B57600
    console = Console(port, load_profile("linux"))
    assert console.enter(60) == "log_in"
    assert console.log_in("operator", lambda: PASSWORD) == "shell"
    assert console.run("echo $((6*7))") == Done("42")
    with pytest.raises(DriverUnavailable, match="cannot send a break"):
        port.send_break(0.1)  # A pseudo-terminal has none, and the bridge says so.
    assert console.run("echo still here") == Done("still here")

    served.target.end()
    outcome = console.run("echo into nowhere", 5)
    assert isinstance(outcome, LinkWasLost | NotSent)
    with pytest.raises(LinkLost):
        console.confirm(2)
    served.start()
    port.reopen(60)
    assert console.confirm(10) == "shell"
    assert console.run("echo back") == Done("back")
    said = notes(port)
    assert any("link lost" in note for note in said), said
    assert sum(note.startswith("opened") for note in said) == 2, said


def test_a_break_and_a_speed_go_through_a_bridge(
    start_target: Callable[..., Any], free_port: int, tmp_path: Path, ports: list[SerialPort]
) -> None:
    """A pseudo-terminal has no break, so behind the bridge is a second server, which tells what it is asked."""
    if not (shutil.which("ser2net") or Path("/usr/sbin/ser2net").exists()):
        pytest.skip("ser2net is missing: run tests/device/setup.sh")
    behind = loopback_port()
    command = [sys.executable, "-W", "ignore", str(HERE / "rfc2217_device.py"), str(behind)]
    device = start_target("RFC 2217 line", command, where="(ready)")
    served = Bridge(start_target, free_port, f"telnet(rfc2217),tcp,127.0.0.1,{behind}", tmp_path)
    port = SerialPort(PortSettings(served.place, 57_600))
    ports.append(port)
    port.reopen(60)
    port.write(b"before ")
    told(device, b"speed 57600")
    port.send_break(0.2)
    told(device, b"break begins")
    told(device, b"break ends")
    assert any("break for 0.2 s" in note for note in notes(port))
    port.write(b"after")
    until = time.monotonic() + 60
    while b"after" not in port.heard(0):
        assert time.monotonic() < until, port.heard(0)
        port.wait(port.offset, 0.2)


def told(device: Any, words: bytes) -> None:
    """Wait until the device has printed this."""
    until = time.monotonic() + 60
    while words not in device.printed:
        assert time.monotonic() < until, device.printed
        if select.select([device.process.stdout], [], [], 0.2)[0]:
            device.printed += os.read(device.process.stdout.fileno(), 1_024)


def test_a_telnet_server_is_logged_in_to(
    start_target: Callable[..., Any], free_port: int, tmp_path: Path, ports: list[SerialPort]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    login_device.furnish(root, PASSWORD)
    offered = tmp_path / "offer"
    offered.write_text(f"#!/bin/sh\nexec chroot {root} /bin/login\n")
    offered.chmod(0o755)
    command = f"/bin/busybox telnetd -F -K -b 127.0.0.1 -p {free_port} -l {offered}"
    target = start_target("BusyBox telnetd", command.split(), place=f"socket://127.0.0.1:{free_port}")
    port = target.port(60)
    console = Console(port, load_profile("linux"))
    assert console.enter(60) == "log_in"
    assert console.log_in("operator", lambda: "wrong") == "log_in"
    assert console.log_in("operator", lambda: PASSWORD) == "shell"
    assert console.run("echo $((6*7))") == Done("42")
    assert PASSWORD.encode() not in port.heard(0)
    target.process.kill()
    until = time.monotonic() + 60
    while port.is_open:
        assert time.monotonic() < until, "the end of the connection was not noticed"
        time.sleep(0.05)
    assert any("link lost" in note for note in notes(port))
