"""A person can always leave a line: over real pseudo-terminals, each with a device or a terminal that is stuck."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.line.terminals import LEAVE, a_device, at

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

pytestmark = pytest.mark.long  # Each starts a Python of its own.


@pytest.fixture
def device() -> Iterator[tuple[int, str]]:
    """A device that says nothing, reads nothing: its end, and the line's path."""
    with a_device() as found:
        yield found


def flood(end: int) -> None:
    """Say something until the line is gone; through a descriptor of its own, whose number nobody else gets."""
    own = os.dup(end)

    def say() -> None:
        with contextlib.suppress(OSError):
            while True:
                os.write(own, b"\x1b[31mpanic\x1b[0m " * 80)
        os.close(own)

    threading.Thread(target=say, daemon=True).start()


@pytest.mark.parametrize("leave", [LEAVE, b"\x14q"])
def test_a_quiet_device_is_left_and_the_terminal_is_as_it_was(device: tuple[int, str], leave: bytes) -> None:
    with at(device[1]) as terminal:
        terminal.press(leave)
        assert terminal.left() == 0
        assert terminal.restored()


@pytest.mark.deep
def test_a_flood_on_a_terminal_that_is_stuck_is_left(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        flood(device[0])
        time.sleep(1)  # Nobody reads the terminal: its buffer is full by now.
        terminal.press(LEAVE)
        assert terminal.left() == 0
        assert terminal.restored()


@pytest.mark.deep
def test_a_device_that_stopped_the_flow_is_left(device: tuple[int, str], tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text('name = "slow"\nextends = "generic"\nwire = { flow = "xonxoff" }\n')
    with at(device[1], "--profile", str(tmp_path / "slow.toml")) as terminal:
        os.write(device[0], b"\x13")
        terminal.press(b"x" * 3_000)
        terminal.see(b"does not take what is typed")
        terminal.press(LEAVE)
        assert terminal.left() == 0
        assert terminal.restored()


def test_a_line_that_is_gone_is_said_looked_for_and_left(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        os.close(device[0])
        terminal.see(b"link lost")
        terminal.press(b"reboot\r" + LEAVE)
        assert terminal.left() == 0
        assert terminal.restored()


def test_without_reconnecting_a_line_that_is_gone_ends_the_console(device: tuple[int, str]) -> None:
    with at(device[1], "--no-reconnect") as terminal:
        os.close(device[0])
        assert terminal.left() == 1
        assert b"link lost" in terminal.see(b"link lost")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(device: tuple[int, str], number: signal.Signals) -> None:
    with at(device[1]) as terminal:
        terminal.process.send_signal(number)
        terminal.left()
        assert terminal.restored()


def test_a_terminal_that_is_hung_up_ends_it(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        os.close(terminal.theirs)
        os.close(terminal.person)
        terminal.left()


@pytest.mark.deep
def test_a_terminal_that_is_stuck_is_left_by_a_signal(device: tuple[int, str]) -> None:
    with at(device[1]) as terminal:
        flood(device[0])
        time.sleep(1)
        terminal.process.send_signal(signal.SIGTERM)
        terminal.left()
        assert terminal.restored()


def test_closed_keys_end_it_too(device: tuple[int, str]) -> None:
    with Path(os.devnull).open() as nothing, at(device[1], stdin=nothing.fileno()) as terminal:
        assert terminal.left() == 0


def test_a_reader_that_went_away_ends_it(device: tuple[int, str]) -> None:
    (reads, writes), (keys, typed) = os.pipe(), os.pipe()  # The keys stay open: they are not what ends it.
    with at(device[1], stdout=writes, stdin=keys) as terminal:
        os.close(writes)
        os.close(reads)
        flood(device[0])
        terminal.left()
    os.close(keys)
    os.close(typed)
