"""The serial line: cutting what a console sends, reading a frame, and how often a command writes."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import threading
import tty
from collections.abc import Callable

import pytest

from bench.measure import ratio
from edgeagent.driver.bus import smp
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.line.screen import Cutter, Screen

KILOBYTE = (b"\x1b[?2004hroot@board:~# ls -l /etc\r\n\x1b[?2004l\r" + b"-rw-r--r-- 1 root root 367 motd\r\n" * 32)[
    :1024
]
FRAME = b"".join(smp.lines(smp.encode(smp.Message(smp.WRITE, smp.OS, smp.ECHO, 1, {"d": "x" * 60}))))


def show(data: bytes) -> None:
    """Cut and show."""
    screen = Screen()
    screen.show(Cutter().feed(data))


def read(frame: bytes) -> None:
    """Find the packet and read its message."""
    for heard in smp.Reader().feed(frame):
        assert isinstance(heard, smp.Packet)
        smp.decode(heard.data)


def test_a_kilobyte_on_the_screen(
    benchmark: Callable[..., object], record_figure: Callable[[str, float], None]
) -> None:
    """At 115200 baud a kilobyte comes every 89 ms."""
    benchmark(show, KILOBYTE)
    record_figure("serial.screen_ratio", ratio(lambda: show(KILOBYTE), inner=2))


def test_an_smp_frame(benchmark: Callable[..., object], record_figure: Callable[[str, float], None]) -> None:
    """One line, with its checksum and its CBOR."""
    benchmark(read, FRAME)
    record_figure("serial.frame_ratio", ratio(lambda: read(FRAME)))


def test_what_a_command_writes(record_figure: Callable[[str, float], None]) -> None:
    """Clear, probe, Enter, line, Enter: each write is a round trip."""
    pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")
    device, ours = pty.openpty()
    tty.setraw(ours)
    threading.Thread(target=_shell, args=(device,), daemon=True).start()
    port = SerialPort(PortSettings(os.ttyname(ours)))
    port.open()
    console = Console(port, load_profile("u-boot"))
    console.enter(20)
    before = len([m for m in port.timeline() if m.who == "agent"])
    assert console.run("version", 20) == Done("")
    record_figure("serial.writes_a_command", len([m for m in port.timeline() if m.who == "agent"]) - before)
    port.close()
    os.close(ours)


def _shell(device: int) -> None:
    """Echo, join the halves of our words, prompt."""
    line = b""
    with contextlib.suppress(OSError):
        while portion := os.read(device, 256):
            for byte in portion:
                if byte == 0x0D:
                    words = re.findall(rb'echo "(\w+)""(\w+)"( \$\?)?', line)
                    said = b"".join(a + b + (b" 0" if status else b"") + b"\r\n" for a, b, status in words)
                    os.write(device, b"\r\n" + said + b"=> ")
                    line = b""
                elif byte >= 0x20:
                    line += bytes([byte])
                    os.write(device, bytes([byte]))
