"""Moments that a line told of and nobody has taken yet: bounded, with a descriptor that is readable meanwhile."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque

from edgeagent.driver.line.port import Moment

INCOMING_BYTES_MAX = 1 << 20
"""A line may flood faster than a terminal draws; what is above this is not shown."""


class Incoming:
    """Moments on their way from the thread of a line to the loop of a terminal."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lock = threading.RLock()  # A signal may wake us while this very thread takes something.
        self._ended = ""
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)

    def put(self, moment: Moment) -> None:
        """Keep this for whoever takes it; never waits."""
        with self._lock:
            if self._bytes + len(moment.data) > INCOMING_BYTES_MAX:
                self._dropped += len(moment.data)
                return
            self._moments.append(moment)
            self._bytes += len(moment.data)
        self.wake()

    def note(self, text: str) -> None:
        """Keep a word of our own."""
        self.put(Moment(time.monotonic_ns(), "port", b"", text))

    def end(self, because: str) -> None:
        """Nothing more will come."""
        with self._lock:
            self._ended = because
        self.wake()

    @property
    def ended(self) -> str:
        """Why nothing more will come, once everything before has been taken; empty while more may."""
        with self._lock:
            return "" if self._moments else self._ended

    def take(self) -> Moment | None:
        """Return the next moment, or None. What had to be dropped is a note, where it was."""
        with self._lock:
            if self._dropped and not self._moments:
                dropped, self._dropped = self._dropped, 0
                return Moment(time.monotonic_ns(), "port", b"", f"{dropped} bytes came too fast to be shown")
            if not self._moments:
                return None
            moment = self._moments.popleft()
            self._bytes -= len(moment.data)
            return moment

    # -- the descriptor that a selector waits on

    def fileno(self) -> int:
        """The descriptor that is readable when there is something to take."""
        return self._wake_out

    def wake(self) -> None:
        """Have whoever waits look."""
        with self._lock, contextlib.suppress(BlockingIOError):  # Full: it is readable already.
            if self._wake_in >= 0:
                os.write(self._wake_in, b"x")

    def calm(self) -> None:
        """What was readable has been looked at."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_out, 4_096)

    def close(self) -> None:
        """Let the descriptor go; what is put afterwards is kept, and nobody is woken. Closing twice is fine."""
        with self._lock:
            ends, self._wake_out, self._wake_in = (self._wake_out, self._wake_in), -1, -1
            for end in ends:
                if end >= 0:
                    os.close(end)
