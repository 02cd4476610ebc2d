"""What a person wants done on a line, one thing after another, by a thread of its own: the line may take its time.

Law: whoever typed it can leave at any moment; what was not done by then is not done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from edgeagent.errors import DriverUnavailable

TYPED_BYTES_MAX = 1 << 20
"""What may wait to be typed: more than anybody pastes."""

PORTION_BYTES = 256
"""Small enough that leaving is noticed soon at every speed."""

END_S = 1.0
"""How long leaving waits for what is under way; the thread ends by itself once the line is closed."""

Act = Callable[[], None]
Typing = Callable[[bytes], int]


class Sender:
    """Types, and does other things on a line, in order. `told` says what could not be done."""

    def __init__(self, typing: Typing, told: Callable[[str], None]) -> None:
        """`typing` sends some bytes and says how many were taken within about a second."""
        self._typing = typing
        self._told = told
        self._waiting: deque[bytes | Act] = deque()
        self._bytes = 0
        self._busy = False
        self._changed = threading.Condition()
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sender", daemon=True)
        self._thread.start()

    def type(self, data: bytes) -> None:
        """Have this typed, after everything before."""
        with self._changed:
            room = max(0, TYPED_BYTES_MAX - self._bytes)
            if room < len(data):
                self._told(f"{len(data) - room} bytes were not typed: {self._bytes} wait already")
            self._put(data[:room])

    def do(self, act: Act) -> None:
        """Have this done, after everything before. What it raises as DriverUnavailable is told."""
        with self._changed:
            self._put(act)

    def forget(self) -> None:
        """Leave undone what waits."""
        with self._changed:
            self._bytes -= sum(len(each) for each in self._waiting if isinstance(each, bytes))
            self._waiting.clear()

    @property
    def idle(self) -> bool:
        """Whether everything has been done."""
        with self._changed:
            return not self._busy and not self._waiting

    def finish(self) -> None:
        """Wait for what was asked for, in bounded time: what was typed before leaving is meant."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._waiting, END_S)

    def stop(self) -> None:
        """Do nothing more of it."""
        self.stopped.set()
        self.forget()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(END_S)

    def _put(self, wanted: bytes | Act) -> None:
        if wanted == b"":
            return
        self._waiting.append(wanted)
        self._bytes += len(wanted) if isinstance(wanted, bytes) else 0
        self._changed.notify_all()

    def _work(self) -> None:
        while not self.stopped.is_set():
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self.stopped.is_set())
                if self.stopped.is_set():
                    return
                wanted = self._waiting.popleft()
                self._busy = True
            try:
                self._type(wanted) if isinstance(wanted, bytes) else wanted()
            except DriverUnavailable as error:  # LinkLost among them.
                if not self.stopped.is_set():
                    self._told(str(error))
            finally:
                if isinstance(wanted, bytes):
                    with self._changed:
                        self._bytes -= len(wanted)

    def _type(self, data: bytes) -> None:
        at, said = 0, False
        while at < len(data) and not self.stopped.is_set():
            taken = self._typing(data[at : at + PORTION_BYTES])
            at += taken
            if not taken and not said and not self.stopped.is_set():
                self._told(f"the device does not take what is typed ({len(data) - at} keys wait)")
                said = True
