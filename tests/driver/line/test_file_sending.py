"""Files that are sent to real receivers: lrzsz's `rx` and `rb` on the other end of a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import socket
import subprocess
import threading
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.line.file_sending import TransferFailed, Way, send_file
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import Pacing
from edgeagent.errors import ConfigError

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")
pytest.importorskip("xmodem", reason="xmodem is not installed: pip install edgeagent[serial]")

pytestmark = pytest.mark.long  # `rx` and `rb` wait seconds for what may still come.

needs_lrzsz = pytest.mark.skipif(
    shutil.which("rx") is None, reason="NO FILE WAS SENT TO A REAL RECEIVER: apt-get install lrzsz"
)
EVERY_BYTE = bytes(range(256))
CANCEL = b"\x18"


@pytest.fixture
def line() -> Iterator[tuple[int, SerialPort]]:
    """A device's end of a cable, and an open port at the other.

    Its end is a socket: on a terminal `rx` flushes its last answer away before it ends, as no UART would.
    """
    (master, ours), (device, cable) = pty.openpty(), socket.socketpair()
    tty.setraw(ours)
    wires = ((master, cable.fileno()), (cable.fileno(), master))
    threads = [threading.Thread(target=carry, args=wire, daemon=True) for wire in wires]
    for thread in threads:
        thread.start()
    port = SerialPort(PortSettings(os.ttyname(ours)))
    port.open()
    yield device.fileno(), port
    port.close()
    os.close(ours)
    cable.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(60)  # Before their descriptors are closed: the numbers are used again.
    device.close()
    cable.close()
    os.close(master)


def carry(source: int, sink: int) -> None:
    """Be one wire of a cable."""
    with contextlib.suppress(OSError):
        while portion := os.read(source, 4_096):
            while portion:
                portion = portion[os.write(sink, portion) :]


def send(port: SerialPort, path: Path, way: Way, stopped: threading.Event | None = None) -> list[int]:
    """Send it; return how far it came, step by step."""
    steps: list[int] = []
    send_file(port, path, way, Pacing(), stopped or threading.Event(), lambda done, _: steps.append(done))
    return steps


class Begins(threading.Event):
    """Not set; begins the other end when the sender first looks, so that nothing of it comes before it is heard."""

    def __init__(self, other_end: Callable[[], Any]) -> None:
        super().__init__()
        self._other_end = other_end
        self.made: Any = None

    def is_set(self) -> bool:
        if self.made is None:
            self.made = self._other_end()
        return super().is_set()


def receiving(end: int, folder: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start a receiver at the device's end."""
    return subprocess.Popen(command, stdin=end, stdout=end, stderr=subprocess.DEVNULL, cwd=folder)


@needs_lrzsz
@pytest.mark.parametrize("way", ["xmodem", "xmodem-1k"])
@pytest.mark.parametrize("size", [129, 40_000])
def test_rx_gets_the_file_whole(line: tuple[int, SerialPort], tmp_path: Path, way: Way, size: int) -> None:
    content = (EVERY_BYTE * 160)[:size]
    (tmp_path / "sent").write_bytes(content)
    receiver = Begins(lambda: receiving(line[0], tmp_path, "rx", "got"))
    steps = send(line[1], tmp_path / "sent", way, receiver)
    assert receiver.made.wait(60) == 0
    got = (tmp_path / "got").read_bytes()
    assert got[:size] == content
    assert set(got[size:]) <= {0x1A}, "XMODEM fills up the last block, with nothing else"
    assert steps[-1] == size


@needs_lrzsz
@pytest.mark.parametrize("size", [0, 40_001])
def test_rb_gets_the_file_its_name_and_its_length(line: tuple[int, SerialPort], tmp_path: Path, size: int) -> None:
    content, there = (EVERY_BYTE * 160)[:size], tmp_path / "there"
    there.mkdir()
    (tmp_path / "u-boot 2.bin").write_bytes(content)
    receiver = Begins(lambda: receiving(line[0], there, "rb"))
    send(line[1], tmp_path / "u-boot 2.bin", "ymodem", receiver)
    assert receiver.made.wait(60) == 0
    assert (there / "u-boot 2.bin").read_bytes() == content


@needs_lrzsz
def test_what_was_not_acknowledged_is_not_said_to_be_sent(line: tuple[int, SerialPort], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(EVERY_BYTE * 2_000)
    receiver = Begins(lambda: receiving(line[0], tmp_path, "rx", "/dev/full"))
    with pytest.raises(TransferFailed, match="cancelled"):
        send(line[1], tmp_path / "sent", "xmodem-1k", receiver)
    assert receiver.made.wait(60) != 0


@needs_lrzsz
def test_giving_up_cancels_at_the_device_too(line: tuple[int, SerialPort], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(EVERY_BYTE * 40_000)
    stopped = Begins(lambda: receiving(line[0], tmp_path, "rx", "got"))
    with pytest.raises(TransferFailed, match="given up"):
        send_file(
            line[1], tmp_path / "sent", "xmodem", Pacing(), stopped, lambda done, _: done > 4_000 and stopped.set()
        )
    assert stopped.made.wait(60) != 0


def device_answers(end: int, script: list[tuple[int, bytes]], heard: list[bytes]) -> threading.Thread:
    """A device that waits for so many bytes, then answers, for each row of the script."""

    def live() -> None:
        for count, answer in script:
            got = b""
            while len(got) < count:
                try:
                    portion = os.read(end, count - len(got))
                except OSError:
                    portion = b""
                if not portion:
                    return  # The test is over.
                got += portion
            heard.append(got)
            os.write(end, answer)

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    return thread


def test_a_block_that_is_refused_is_sent_again(line: tuple[int, SerialPort], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"x" * 128)
    heard: list[bytes] = []
    device = Begins(lambda: device_answers(line[0], [(0, b"C"), (133, b"\x15"), (133, b"\x06"), (1, b"\x06")], heard))
    send(line[1], tmp_path / "sent", "xmodem", device)
    device.made.join(60)
    assert heard[1] == heard[2]
    assert heard[3] == b"\x04"


def test_a_question_asked_several_times_sends_no_block_twice(line: tuple[int, SerialPort], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"a" * 128 + b"b" * 128)
    heard: list[bytes] = []
    script = [(0, b"rx: ready\r\nCCC"), (133, b"C\x06"), (133, b"\x06"), (1, b"\x06")]
    device = Begins(lambda: device_answers(line[0], script, heard))
    send(line[1], tmp_path / "sent", "xmodem", device)
    device.made.join(60)
    assert [each[1:2] for each in heard[1:]] == [b"\x01", b"\x02", b""]


def test_an_end_that_is_not_acknowledged_is_said_and_not_typed_into_the_shell_that_follows(
    line: tuple[int, SerialPort], tmp_path: Path
) -> None:
    (tmp_path / "sent").write_bytes(b"x" * 128)
    heard: list[bytes] = []
    script = [(0, b"C"), (133, b"\x06"), (1, b"\r\nTransfer complete\r\nroot@board:~# ")]
    device = Begins(lambda: device_answers(line[0], script, heard))
    with pytest.raises(TransferFailed, match="every block was acknowledged, but not the end"):
        send(line[1], tmp_path / "sent", "xmodem", device)
    device.made.join(60)
    os.set_blocking(line[0], False)
    with pytest.raises(BlockingIOError):
        os.read(line[0], 1)


def test_a_device_that_never_asks_can_be_given_up(line: tuple[int, SerialPort], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"x")
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    with pytest.raises(TransferFailed, match="given up"):
        send(line[1], tmp_path / "sent", "ymodem", stopped)
    assert os.read(line[0], 64).startswith(CANCEL * 8)


def test_a_file_goes_as_it_is_too(line: tuple[int, SerialPort], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(EVERY_BYTE * 4)
    got = bytearray()
    assert send(line[1], tmp_path / "sent", "raw")[-1] == 1_024
    while len(got) < 1_024:
        got += os.read(line[0], 1_024)
    assert bytes(got) == EVERY_BYTE * 4


def test_a_file_is_not_sent_in_blocks_where_flow_control_eats_bytes(tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"x")
    with pytest.raises(ConfigError, match="set flow to none"):
        send(SerialPort(PortSettings("/dev/null", flow="xonxoff")), tmp_path / "sent", "xmodem")


def test_what_is_no_file_is_refused_before_the_line_is_touched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="is no file"):
            send(SerialPort(PortSettings("/dev/null")), path, "raw")
