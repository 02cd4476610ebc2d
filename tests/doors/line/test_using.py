"""What a person does at a line without a second program: files, logs, times, hex, looking back. Over real terminals."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.mirror import Mirror, socket_path
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.errors import DriverUnavailable
from tests.doors.line.terminals import LEAVE, ROOT, a_device, at

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

pytestmark = pytest.mark.long  # Each starts a Python of its own.


@pytest.fixture
def device() -> Iterator[tuple[int, str]]:
    """A device that says nothing by itself: its end, and the line's path."""
    with a_device() as found:
        yield found


def test_the_keys_are_listed(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        terminal.press(b"\x14?")
        terminal.see(b"Ctrl-T y       send a file by YMODEM")


def test_what_is_typed_goes_to_the_device_ctrl_t_and_ctrl_backslash_too(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        terminal.press(b"a\x14\x14b\x14\\c")
        got = b""
        while len(got) < 5:
            got += os.read(device[0], 16)
        assert got == b"a\x14b\x1cc"


def test_what_is_typed_just_before_leaving_still_goes(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        terminal.press(b"logout\r" + LEAVE)
        assert terminal.left() == 0
        assert os.read(device[0], 64) == b"logout\r"


def test_a_device_cannot_write_the_clipboard_of_who_looks(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        os.write(device[0], b"before\x1b]52;c;cm0gLXJmIC8=\x07after\r\n")
        assert b"\x1b]52" not in terminal.see(b"after")


def test_bytes_are_shown_in_hex_and_as_text_again(device: tuple[int, str]) -> None:
    with at(device[1], "--hex") as terminal:
        os.write(device[0], b"\x01AB")
        terminal.see(b"00000000  01 41 42")
        terminal.press(b"\x14h")
        terminal.see(b"text]")
        os.write(device[0], b"plain\r\n")
        terminal.see(b"plain")


def test_times_stand_before_lines(device: tuple[int, str]) -> None:
    with at(device[1], "--timestamps", "clock") as terminal:
        os.write(device[0], b"U-Boot 2023.01\r\n")
        assert re.search(rb"\[\d\d:\d\d:\d\d\.\d{3}\] U-Boot", terminal.see(b"U-Boot 2023.01"))


def test_a_log_has_every_byte_and_only_its_owner_reads_it(device: tuple[int, str], tmp_path: Path) -> None:
    with at(device[1], "--log", str(tmp_path / "log")) as terminal:
        os.write(device[0], b"\x1b[31mred\x00\r\n")
        terminal.see(b"red")
        terminal.press(LEAVE)
        terminal.left()
    assert (tmp_path / "log").read_bytes() == b"\x1b[31mred\x00\r\n"
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_a_log_as_text_has_times_and_no_sequences(device: tuple[int, str], tmp_path: Path) -> None:
    with at(device[1], "--log", str(tmp_path / "log"), "--log-text") as terminal:
        os.write(device[0], b"\x1b[31mred\x1b[0m\r\nsecond\r\n")
        terminal.see(b"second")
        terminal.press(LEAVE)
        terminal.left()
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.partition("] ")[2] for line in lines] == ["red", "second"]


def test_a_log_that_takes_no_more_is_said_and_the_console_goes_on(device: tuple[int, str]) -> None:
    with at(device[1], "--log", "/dev/full") as terminal:
        os.write(device[0], b"first\r\n")
        terminal.see(b"takes no more")
        os.write(device[0], b"second\r\n")
        terminal.see(b"second")


def test_a_log_into_a_pipe_that_nobody_reads_is_refused(device: tuple[int, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "edgeagent", "console", device[1], "--log", str(tmp_path / "pipe")]
    done = subprocess.run(
        command, capture_output=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 2
    assert b"cannot log to" in done.stderr


def test_a_log_is_begun_by_a_key(device: tuple[int, str], tmp_path: Path) -> None:
    with at(device[1]) as terminal:
        terminal.press(b"\x14l")
        terminal.see(b"log to file:")
        terminal.press(f"{tmp_path}/lag".encode() + b"\x7f\x7fog\r")
        terminal.see(b"logging to")
        os.write(device[0], b"kept\r\n")
        terminal.see(b"kept")
        terminal.press(b"\x14l")
        terminal.see(b"logged to")
    assert (tmp_path / "log").read_bytes() == b"kept\r\n"


def test_a_person_looks_back_searches_and_misses_nothing_meanwhile(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        os.write(device[0], b"".join(b"line %d\r\n" % number for number in range(200)))
        terminal.see(b"line 199")
        terminal.press(b"\x14u")
        terminal.see(b"q: back")
        os.write(device[0], b"meanwhile\r\n")
        terminal.press(b"/line 42\r")
        terminal.see(b"line 42\x1b[K")
        assert b"meanwhile" not in terminal.seen
        terminal.press(b"q")
        terminal.see(b"meanwhile")


@pytest.mark.skipif(shutil.which("rb") is None, reason="NO FILE WAS SENT TO A REAL RECEIVER: apt-get install lrzsz")
def test_a_file_is_sent_by_a_key(device: tuple[int, str], tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "u-boot.bin").write_bytes(bytes(range(256)) * 20)
    ours, theirs = socket.socketpair()
    with ours, theirs, at(device[1]) as terminal:
        threading.Thread(target=carry, args=(os.dup(device[0]), os.dup(ours.fileno())), daemon=True).start()
        threading.Thread(target=carry, args=(os.dup(ours.fileno()), os.dup(device[0])), daemon=True).start()
        terminal.press(b"\x14y")
        terminal.see(b"file to send (ymodem):")
        terminal.press(f"{tmp_path}/u-boot.bin\r".encode())
        terminal.see(b"sending u-boot.bin")
        receiver = subprocess.Popen(["rb"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, cwd=there)
        terminal.see(b"u-boot.bin sent")
        assert receiver.wait(60) == 0
        terminal.press(LEAVE)
        assert terminal.left() == 0
        ours.shutdown(socket.SHUT_RDWR)
    assert (there / "u-boot.bin").read_bytes() == bytes(range(256)) * 20


def test_a_file_that_nobody_takes_is_given_up_and_the_line_goes_on(device: tuple[int, str], tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"x")
    with at(device[1]) as terminal:
        terminal.press(b"\x14x")
        terminal.see(b"file to send")
        terminal.press(f"{tmp_path}/image\r".encode())
        terminal.see(b"Ctrl-C gives up")
        time.sleep(0.3)
        terminal.press(b"\x03")
        terminal.see(b"was not sent: given up")
        os.write(device[0], b"=> \r\n")
        terminal.see(b"=> ")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder in which a socket's whole path is short enough for one: pytest's own may be too deep."""
    with tempfile.TemporaryDirectory(prefix="edgeagent") as folder:
        yield Path(folder)


def test_where_no_socket_can_lie_no_view_is_offered_and_that_is_said(device: tuple[int, str], tmp_path: Path) -> None:
    mirror = Mirror(Console(SerialPort(PortSettings(device[1])), load_profile("generic")))
    with pytest.raises(DriverUnavailable, match="XDG_RUNTIME_DIR"):
        mirror.serve_socket(tmp_path / ("x" * 120))


def test_at_an_agents_line_a_person_breaks_in_is_refused_the_port_and_told_when_the_agent_ends(
    device: tuple[int, str], short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    port = SerialPort(PortSettings(device[1]))
    port.open()
    mirror = Mirror(Console(port, load_profile("generic")))
    mirror.serve_socket(socket_path(device[1]))
    try:
        with at(device[1]) as terminal:
            terminal.see(b"attached to the agent")
            terminal.press(b"\x1d")
            terminal.see(b"you have the console")
            terminal.press(b"help\r\x14b")
            terminal.see(b"has its port: for this, end it")
            assert os.read(device[0], 64) == b"help\r"
            mirror.close()
            assert terminal.left() == 1
            terminal.see(b"the agent that owns the line has ended")
    finally:
        mirror.close()
        port.close()


def test_a_line_over_the_network_comes_back(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"socket://127.0.0.1:{listening.getsockname()[1]}"
    with at(url) as terminal:
        first, _ = listening.accept()
        first.sendall(b"one\r\n")
        terminal.see(b"one")
        first.close()
        terminal.see(b"link lost")
        second, _ = listening.accept()
        second.sendall(b"two\r\n")
        terminal.see(b"two")
        terminal.press(LEAVE)
        assert terminal.left() == 0
        second.close()
    listening.close()


def carry(source: int, sink: int) -> None:
    """Be one wire of a cable, whose ends are its own."""
    try:
        while portion := os.read(source, 4_096):
            while portion:
                portion = portion[os.write(sink, portion) :]
    except OSError:
        pass
    os.close(source)
    os.close(sink)
