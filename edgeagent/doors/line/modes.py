"""Modes of a person at a line: a question of ours, a file on its way. Keys in, bytes for the screen out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, Protocol

from edgeagent.core.text import readable, shown

ANSWER_CHARS_MAX = 4_096
ENTER, ERASE, GIVE_UP = b"\r\n", b"\x7f\x08", b"\x03\x1b"

Shows = Literal["all", "later", "notes"]


class Mode(Protocol):
    """Something that takes the keys until it is over."""

    over: bool
    shows: Shows
    """What of the line is shown meanwhile: all; nothing, but later; only our notes."""

    @property
    def opening(self) -> bytes:
        """What is written when it begins."""
        ...

    @property
    def closing(self) -> bytes:
        """What is written when it is over."""
        ...

    def feed(self, typed: bytes) -> bytes:
        """Take these keys; return what is written."""
        ...


class Asking:
    """One line that a person types for us: Enter ends it, Escape and Ctrl-C give up."""

    shows: Shows = "later"

    def __init__(self, question: str, then: Callable[[str], None]) -> None:
        """`then` is for whoever asked: it takes `answer` once this is over."""
        self.over = False
        self.answer = ""
        self.then = then
        self._question = question
        self._typed = b""
        self.opening = f"\r\n{shown(question)}: ".encode()
        self.closing = b"\r\n"

    def feed(self, typed: bytes) -> bytes:
        """Take these keys; the line as it stands then is drawn again."""
        for number, byte in enumerate(typed):
            if byte in GIVE_UP:
                self.over = True
                break
            if byte in ENTER:
                self.over = True
                self.answer = readable(self._typed).strip()
                break
            if byte in ERASE:
                self._typed = self._typed.decode("utf-8", "ignore")[:-1].encode()
            elif byte >= 0x20:
                self._typed = (self._typed + typed[number : number + 1])[:ANSWER_CHARS_MAX]
        return f"\r{shown(self._question)}: {shown(readable(self._typed))}\x1b[K".encode()


class Sending:
    """A file on its way: what the device answers is the protocol's. Ctrl-C gives up."""

    opening = closing = b""

    def __init__(self, shows: Shows) -> None:
        self.shows = shows
        self.over = False
        self.stopped = threading.Event()

    def feed(self, typed: bytes) -> bytes:
        """Take these keys: all but Ctrl-C are for nobody."""
        if 0x03 in typed:
            self.stopped.set()
        return b""
