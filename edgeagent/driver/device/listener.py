"""Lines that a device prints by itself: those that its profile's `wake` names are told to whoever listens.

Law: what came while a command of ours was awaited is that command's, and is never told. A line that is lost is opened
again, with pauses; what was printed meanwhile was heard by nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from re import Pattern

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.screen import Cutter, Printed, Screen
from edgeagent.errors import DriverUnavailable

LINES_A_MINUTE_MAX = 20
"""A device in trouble repeats itself; each line may begin a turn. The rest of the minute is counted and told as one."""

AWAKE_S = 1.0
"""How often a silent line is looked after: whether it is closed, whether a count is to be told."""

BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 60.0)


class WakeLines:
    """Cuts what a device prints into lines and finds those that wake. Bytes and time in, lines out."""

    def __init__(self, patterns: Sequence[Pattern[str]]) -> None:
        self._patterns = patterns
        self._cutter = Cutter()
        self._screen = Screen()
        self._minute = 0
        self._told = 0
        self._held_back = 0

    def feed(self, portion: bytes, now: float) -> Iterable[str]:
        """Return the lines that are complete now and are to be told."""
        if int(now // 60) != self._minute:
            self._minute, self._told = int(now // 60), 0
            if self._held_back:
                yield f"({self._held_back} more such lines were printed within a minute and are not shown)"
            self._held_back = 0
        self._screen.show(self._cutter.feed(portion))
        *lines, rest = self._screen.text.split("\n")
        if not lines:
            return
        self._screen = Screen()
        self._screen.show((Printed(b"", rest),))
        for line in lines:
            if any(pattern.search(line) for pattern in self._patterns):
                self._told += 1
                self._held_back += self._told > LINES_A_MINUTE_MAX
                if self._told <= LINES_A_MINUTE_MAX:
                    yield line.strip()


class Listener:
    """Listens to one console from a thread of its own until it is closed."""

    def __init__(self, console: Callable[[], Console], hear: Callable[[str], None], since: int) -> None:
        """`console` gives the open console, or raises DriverUnavailable; `hear` takes each line from `since` on."""
        self._console = console
        self._at = since
        self._hear = hear
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="device listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Closing twice is fine."""
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _listen(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                console = self._console()
                failures = 0
                self._until_lost(console)
            except DriverUnavailable:  # Also LinkLost, which is one.
                self._closing.wait(BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)])
                failures += 1

    def _until_lost(self, console: Console) -> None:
        lines, seen = WakeLines(console.profile.wake_patterns), self._at
        while not self._closing.is_set():
            _, seen = console.port.wait(seen, AWAKE_S)
            unasked, self._at = console.unasked(self._at, seen)
            for line in lines.feed(unasked, time.monotonic()):
                self._hear(line)
