"""Last lines that a device has printed, as a person may read them: numbered, escaped by the console's own list.

Laws: looking opens nothing and types nothing. However much comes, so much is kept at most; and what comes while nobody
looks costs no more than to be kept. What is typed is never shown, only what the device prints of it; a secret that the
port hides is hidden before it comes here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from edgeagent.core.lines import Excerpt, Line
from edgeagent.core.text import shown
from edgeagent.driver.line.displayed import as_text
from edgeagent.driver.line.port import LOST, Moment, SerialPort
from edgeagent.driver.line.screen import COLUMNS, Cutter, Screen

LINES_KEPT = 200
"""A few screens: what a person scrolls back to. What was before that is in the device's own logs."""

LINE_CHARS_KEPT = 500
"""Of one line; a flood without line ends costs no more."""

WAITING_BYTES_MAX = 64 * 1024
"""What came while nobody looked, and is cut into lines when somebody does: more than the lines that are kept."""


class LastLines:
    """The last lines of one port. Safe to use from any thread."""

    def __init__(self, port: SerialPort, columns: int = COLUMNS) -> None:
        self._port = port
        self._working = threading.Lock()
        self._waiting: deque[Moment] = deque()
        self._waiting_bytes = 0
        self._cutter, self._screen = Cutter(), Screen(columns)
        self._lines: deque[Line] = deque(maxlen=LINES_KEPT)
        self._next = 0
        self.is_lost = False
        """Whether the line went away by itself; until it is opened again."""
        self._followers: tuple[Callable[[], None], ...] = ()
        port.watchers.append(self._take)

    @property
    def name(self) -> str:
        """Where the device is, as it was named."""
        return self._port.settings.identity

    @property
    def is_open(self) -> bool:
        """Whether the line is open."""
        return self._port.is_open

    def since(self, number: int) -> Excerpt:
        """The lines from this number on, as far as they are kept."""
        with self._working:
            while self._waiting:
                self._work_off(self._waiting.popleft())
            self._waiting_bytes = 0
            lines = tuple(line for line in self._lines if line.number >= number)
            return Excerpt(lines, self._next, self._screen.begun[:LINE_CHARS_KEPT])

    def follow(self, changed: Callable[[], None]) -> None:
        """Call this whenever there may be more."""
        with self._working:
            self._followers = (*self._followers, changed)

    def leave(self, changed: Callable[[], None]) -> None:
        """Call it no more."""
        with self._working:
            self._followers = tuple(each for each in self._followers if each is not changed)

    def _take(self, moment: Moment) -> None:
        if moment.who != "device" and not (moment.who == "port" and moment.note):
            return
        if moment.who == "port":
            self.is_lost = moment.note.startswith(LOST) or (self.is_lost and not self._port.is_open)
        with self._working:
            self._waiting.append(moment)
            self._waiting_bytes += len(moment.data) + len(moment.note)
            while self._waiting_bytes > WAITING_BYTES_MAX:
                gone = self._waiting.popleft()
                self._waiting_bytes -= len(gone.data) + len(gone.note)
            followers = self._followers
        for changed in followers:
            changed()

    def _work_off(self, moment: Moment) -> None:
        if moment.who == "port":
            self._keep(shown(moment.note), is_note=True)
            return
        self._screen.show(as_text(self._cutter.feed(moment.data)))
        for text in self._screen.take_lines():
            self._keep(text)

    def _keep(self, text: str, *, is_note: bool = False) -> None:
        cut = text if len(text) <= LINE_CHARS_KEPT else f"{text[:LINE_CHARS_KEPT]}…"
        self._lines.append(Line(self._next, cut, is_note))
        self._next += 1
