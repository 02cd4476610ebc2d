"""Views of a live console, and a person who breaks in."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.mirror import Mirror, attach, socket_path
from edgeagent.driver.line.outcome import NotSent
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.errors import DriverUnavailable

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")
BREAK_IN = b"\x1d"


@pytest.fixture
def line() -> Iterator[tuple[int, str]]:
    """A pseudo-terminal: the device's end, and our path."""
    device, ours = pty.openpty()
    tty.setraw(ours)
    yield device, os.ttyname(ours)
    os.close(device)
    os.close(ours)


@pytest.fixture
def console(line: tuple[int, str]) -> Iterator[Console]:
    """A console on it."""
    port = SerialPort(PortSettings(line[1]))
    port.open()
    yield Console(port, load_profile("generic"))
    port.close()


@pytest.fixture
def mirror(console: Console) -> Iterator[Mirror]:
    """Its mirror."""
    mirror = Mirror(console)
    yield mirror
    mirror.close()


def read_until(view: socket.socket | int, wanted: bytes) -> bytes:
    """Read a view until this was seen."""
    heard, until = b"", time.monotonic() + 60  # Under emulation megabytes take their time.
    while wanted not in heard:
        assert time.monotonic() < until, heard[-1_000:]
        with contextlib.suppress(BlockingIOError):
            heard += os.read(view if isinstance(view, int) else view.fileno(), 1 << 20)
    return heard


def heard(console: Console, wanted: bytes) -> None:
    """Wait until the port has heard this, and noted it."""
    until = time.monotonic() + 60
    while wanted not in b"".join(moment.data for moment in console.port.timeline()):
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_view_sees_the_line_live_and_what_was_just_before(
    line: tuple[int, str], console: Console, mirror: Mirror, tmp_path: Path
) -> None:
    os.write(line[0], b"before ")
    heard(console, b"before ")
    mirror.serve_socket(tmp_path / "view.sock")
    with socket.socket(socket.AF_UNIX) as view:
        view.connect(str(tmp_path / "view.sock"))
        os.write(line[0], b"after")
        assert b"before after" in read_until(view, b"after")


def test_a_view_that_comes_while_the_device_talks_sees_each_byte_once_and_in_order(
    line: tuple[int, str], mirror: Mirror, tmp_path: Path
) -> None:
    said = b"".join(b"%03d " % number for number in range(300)) + b"end"
    mirror.serve_socket(tmp_path / "view.sock")
    views = []
    for begin in range(0, len(said), 60):
        os.write(line[0], said[begin : begin + 60])
        views.append(socket.socket(socket.AF_UNIX))
        views[-1].connect(str(tmp_path / "view.sock"))
    for view in views:
        with view:
            assert said.endswith(read_until(view, b"end"))


def test_only_this_user_may_open_the_socket(mirror: Mirror, tmp_path: Path) -> None:
    mirror.serve_socket(tmp_path / "view.sock")
    assert (tmp_path / "view.sock").stat().st_mode & 0o777 == 0o600


def test_keys_go_nowhere_before_a_person_breaks_in(line: tuple[int, str], mirror: Mirror) -> None:
    with socket.create_connection(("127.0.0.1", mirror.serve_tcp(0))) as view:
        view.sendall(b"reset\r")
        time.sleep(0.2)
        view.sendall(BREAK_IN)
        read_until(view, b"the agent waits")
        view.sendall(b"help\r")
        assert read_until(line[0], b"help\r") == b"help\r"


def test_the_agent_waits_until_the_console_is_handed_back(console: Console, mirror: Mirror) -> None:
    with socket.create_connection(("127.0.0.1", mirror.serve_tcp(0))) as view:
        view.sendall(BREAK_IN)
        read_until(view, b"the agent waits")
        outcome = console.run("reset")
        assert isinstance(outcome, NotSent)
        assert "person" in outcome.because
        view.sendall(BREAK_IN)
        read_until(view, b"handed back")
        assert not console.person_has_it


def test_a_person_who_leaves_hands_back(console: Console, mirror: Mirror) -> None:
    with socket.create_connection(("127.0.0.1", mirror.serve_tcp(0))) as view:
        view.sendall(BREAK_IN)
        read_until(view, b"the agent waits")
    until = time.monotonic() + 60
    while console.person_has_it:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_pty_view_works_with_any_terminal_program(line: tuple[int, str], mirror: Mirror) -> None:
    view = os.open(mirror.serve_pty(), os.O_RDWR | os.O_NOCTTY)
    os.write(line[0], b"hello view")
    read_until(view, b"hello view")
    os.write(view, BREAK_IN + b"typed")
    assert read_until(line[0], b"typed") == b"typed"
    os.close(view)


def test_a_view_that_does_not_read_holds_nothing_up(line: tuple[int, str], console: Console, mirror: Mirror) -> None:
    with socket.create_connection(("127.0.0.1", mirror.serve_tcp(0))):
        sender = threading.Thread(target=lambda: [os.write(line[0], b"x" * 1000) for _ in range(8_000)], daemon=True)
        sender.start()
        sender.join(timeout=120)
        assert not sender.is_alive()
    until = time.monotonic() + 60
    while console.port.offset < 8_000_000:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_view_that_reads_too_slowly_is_kept_and_told_what_it_missed(line: tuple[int, str], mirror: Mirror) -> None:
    with socket.create_connection(("127.0.0.1", mirror.serve_tcp(0))) as view:
        for _ in range(8_000):
            os.write(line[0], b"x" * 1000)  # Much more than may wait for it, and nobody reads.
        read_until(view, b"bytes not shown: read too slowly")
        os.write(line[0], b"still here")
        read_until(view, b"still here")


def test_everything_is_in_one_timeline(line: tuple[int, str], console: Console, mirror: Mirror) -> None:
    console.port.write(b"agent")
    os.write(line[0], b"device")
    heard(console, b"device")
    console.break_in()
    console.person_types(b"person")
    assert [m.who for m in console.port.timeline()] == ["port", "agent", "device", "person"]


def test_attaching_without_an_agent_says_so() -> None:
    with pytest.raises(DriverUnavailable, match="no agent of yours"):
        attach("usb:nobody")


def test_each_port_has_a_socket_of_its_own() -> None:
    assert socket_path("usb:A") != socket_path("usb:B")


def test_a_mirror_that_is_just_waking_up_closes_as_well(console: Console) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(300):
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        mirror = Mirror(console)
        mirror.add_view(theirs)  # wakes the thread, which may see the end before it is told
        mirror.close()
        mirror.close()
        ours.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
