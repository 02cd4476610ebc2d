"""Terminals with a console in them, and a device on a pseudo-terminal: what the tests of a person at a line share."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
LEAVE = b"\x1c"
WITHIN_S = 120.0
"""A stuck console would never end; a slow machine may take a while to start one."""

START = """
import fcntl, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
from edgeagent.doors.cli.console import console
sys.exit(console(standalone_mode=False))
"""


class Terminal:
    """A terminal with a console in it: the person's side of a pseudo-terminal."""

    def __init__(self, *arguments: str, **streams: int) -> None:
        self.person, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.seen = b""
        given = {"stdin": self.theirs, "stdout": self.theirs, "stderr": self.theirs, **streams}
        command = [sys.executable, "-c", START, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, env=environment, start_new_session=True, **given)  # type: ignore[call-overload]

    def see(self, wanted: bytes) -> bytes:
        """Read the terminal until this was seen."""
        until = time.monotonic() + WITHIN_S
        while wanted not in self.seen:
            assert time.monotonic() < until, self.seen
            if select.select([self.person], [], [], 0.1)[0]:
                self.seen += os.read(self.person, 65_536)
        return self.seen

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self.person, keys)

    def left(self) -> int:
        """Wait until the console has ended; return its code."""
        return self.process.wait(WITHIN_S)

    def restored(self) -> bool:
        """Whether the terminal is as it was."""
        return termios.tcgetattr(self.theirs) == self.before

    def close(self) -> None:
        """Take the terminal away."""
        self.process.kill()
        self.process.wait()
        for end in (self.person, self.theirs):
            with contextlib.suppress(OSError):
                os.close(end)


@contextlib.contextmanager
def a_device() -> Iterator[tuple[int, str]]:
    """A device that says nothing, reads nothing: its end, and the line's path."""
    end, ours = pty.openpty()
    tty.setraw(ours)
    yield end, os.ttyname(ours)
    for each in (ours, end):
        with contextlib.suppress(OSError):
            os.close(each)


@contextlib.contextmanager
def at(line: str, *options: str, **streams: int) -> Iterator[Terminal]:
    """A console on this line, open already."""
    terminal = Terminal(line, *options, **streams)
    try:
        terminal.see(b"leaves")
        yield terminal
    finally:
        terminal.close()
