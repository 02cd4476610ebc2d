"""Terminal of a person, used so that it can hold up nothing: writing has a thread, keys come raw, signals are noticed.

Law: nothing here waits for the terminal in the thread that decides to leave.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import threading
import tty
from collections import deque
from collections.abc import Callable, Iterator
from typing import TextIO

OUTLET_BYTES_MAX = 256 * 1024
"""What may wait for a terminal that does not take it: a hundred screens. More is not shown, and that is said."""

PORTION_BYTES = 4_096
END_S = 0.5
"""How long a terminal may take for the last words; one that is stuck does not get them."""

LEAVING = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Outlet:
    """One stream that is written to from a thread of its own. `put` returns at once, whatever the reader does."""

    def __init__(self, stream: TextIO | None, told: Callable[[int], bytes], bytes_max: int = OUTLET_BYTES_MAX) -> None:
        """`told` makes the words about so many bytes that were not shown. None is a stream that was closed."""
        self.gone = False
        self._descriptor = descriptor_of(stream)
        self._write_some = _writing(stream)
        self.is_terminal = stream is not None and stream.isatty()
        self._told = told
        self._bytes_max = bytes_max
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0
        self._changed = threading.Condition()
        self._ending = False
        threading.Thread(target=self._write, name="terminal", daemon=True).start()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(-1 if self._descriptor is None else self._descriptor)
            if columns and rows:  # A terminal on a serial line does not know.
                return columns, rows
        return 80, 24

    def put(self, data: bytes) -> None:
        """Have this written. It is dropped, counted and told of when too much waits already."""
        with self._changed:
            if not data or self.gone:
                return
            if self._bytes + len(data) > self._bytes_max:
                self._dropped += len(data)
                return
            self._say_dropped()
            self._waiting.append(data)
            self._bytes += len(data)
            self._changed.notify_all()

    def end(self, within_s: float = END_S) -> None:
        """Have the rest written, but wait no longer than this for it."""
        with self._changed:
            self._say_dropped()
            self._ending = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.gone or not self._bytes, within_s)

    def _say_dropped(self) -> None:
        if self._dropped:
            words = self._told(self._dropped)
            self._waiting.append(words)
            self._bytes += len(words)
            self._dropped = 0

    def _write(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._ending)
                    if not self._waiting:
                        return
                    data = self._waiting.popleft()
                at = 0
                while at < len(data):
                    at += self._write_some(data[at : at + PORTION_BYTES])
                with self._changed:
                    self._bytes -= len(data)
                    self._changed.notify_all()
        except OSError:  # Hung up, or a pipe that nobody reads any more.
            with self._changed:
                self.gone = True
                self._changed.notify_all()


def _writing(stream: TextIO | None) -> Callable[[bytes], int]:
    """How a portion is written to this stream: past its buffers, whose locks a stuck thread would take with it."""
    descriptor = descriptor_of(stream)
    if descriptor is not None:
        return lambda data: os.write(descriptor, data)
    return len if stream is None else stream.buffer.write


def descriptor_of(stream: object) -> int | None:
    """Return the descriptor behind a stream of ours; None where it was closed before we were started, or is none."""
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]  # None, or a stream of a test, has no number
    except (OSError, ValueError, AttributeError):
        return None


@contextlib.contextmanager
def raw_keys(descriptor: int | None) -> Iterator[None]:
    """Have the keys come as they are pressed; put the terminal back afterwards, whatever has become of it."""
    if descriptor is None or not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSANOW)
        yield
    finally:
        # From the background the kernel would stop us here, where nobody could see why.
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with contextlib.suppress(termios.error, OSError):
            # The rest of a paste would go to the shell. And never TCSADRAIN: it waits for a terminal that is stuck.
            termios.tcflush(descriptor, termios.TCIFLUSH)
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)


@contextlib.contextmanager
def leaving_noticed(notice: Callable[[int], None]) -> Iterator[None]:
    """Have the signals that end a program told to `notice` instead. One that is ignored (nohup) stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in LEAVING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: notice(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
