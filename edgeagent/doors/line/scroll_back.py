"""Looking back at what a line said: pages, search, without the escape sequences of then. Keys in, drawn pages out."""

from __future__ import annotations

import re

from edgeagent.core.text import shown
from edgeagent.doors.line.modes import Shows
from edgeagent.driver.line.screen import Cutter, Screen

KEYS = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)
QUIT = (b"q", b"\x03", b"\x1b")
LINE_UP, LINE_DOWN = (b"k", b"\x1b[A", b"\x1bOA"), (b"j", b"\r", b"\x1b[B", b"\x1bOB")
PAGE_UP, PAGE_DOWN = (b"b", b"\x02", b"\x1b[5~"), (b" ", b"f", b"\x06", b"\x1b[6~")
TO_START, TO_END = (b"g", b"\x1b[H", b"\x1b[1~", b"\x1bOH"), (b"G", b"\x1b[F", b"\x1b[4~", b"\x1bOF")
HELP = "arrows, PgUp, PgDn, g, G: move  / n N: search  q: back"


class ScrollBack:
    """The lines heard so far, as a terminal of endless height would show them."""

    shows: Shows = "later"
    closing = b"\x1b[?7h\x1b[?1049l"

    def __init__(self, heard: bytes, rows: int, columns: int) -> None:
        screen = Screen()
        screen.show(Cutter().feed(heard))
        self.over = False
        self._lines = screen.text.split("\n")
        self._rows = max(2, rows) - 1
        self._columns = max(10, columns)
        self._top = self._last_top
        self._searched = ""
        self._typing: str | None = None
        self._said = HELP

    @property
    def opening(self) -> bytes:
        """The terminal's other screen, and the last page on it."""
        return b"\x1b[?1049h\x1b[?7l" + self._drawn()

    def feed(self, typed: bytes) -> bytes:
        """Take these keys; return the page as it is then."""
        for key in KEYS.findall(typed):
            if self._typing is not None:
                self._search_key(key)
            else:
                self._key(key)
        return b"" if self.over else self._drawn()

    @property
    def _last_top(self) -> int:
        return max(0, len(self._lines) - self._rows)

    def _key(self, key: bytes) -> None:
        steps = {LINE_UP: -1, LINE_DOWN: 1, PAGE_UP: -self._rows, PAGE_DOWN: self._rows}
        steps |= {TO_START: -len(self._lines), TO_END: len(self._lines)}
        self._said = HELP
        if key in QUIT:
            self.over = True
        elif key == b"/":
            self._typing = ""
        elif key in (b"n", b"N"):
            self._find(1 if key == b"n" else -1)
        for keys, step in steps.items():
            if key in keys:
                self._top = min(max(0, self._top + step), self._last_top)

    def _search_key(self, key: bytes) -> None:
        typing = self._typing or ""
        if key in (b"\r", b"\n"):
            self._searched, self._typing = typing or self._searched, None
            self._find(-1)
        elif key in (b"\x03", b"\x1b"):
            self._typing = None
        elif key in (b"\x7f", b"\x08"):
            self._typing = typing[:-1]
        elif len(key) == 1 and key >= b" ":
            self._typing = typing + key.decode("latin-1")

    def _find(self, step: int) -> None:
        """Go to the next line, up or down, that holds what is searched for."""
        at = self._top + step
        while 0 <= at < len(self._lines):
            if self._searched.lower() in self._lines[at].lower():
                self._top = min(at, self._last_top)
                return
            at += step
        self._said = f"{self._searched!r} is not found {'below' if step > 0 else 'above'}"

    def _drawn(self) -> bytes:
        page = self._lines[self._top : self._top + self._rows]
        rows = [shown(line.replace("\t", " "))[: self._columns] + "\x1b[K" for line in page]
        said = f"/{self._typing}" if self._typing is not None else self._said
        status = f"{self._top + 1}-{self._top + len(page)} of {len(self._lines)}  {said}"[: self._columns]
        return ("\x1b[H\x1b[2J" + "\r\n".join(rows) + f"\x1b[{self._rows + 1};1H\x1b[7m{shown(status)}\x1b[m").encode()
