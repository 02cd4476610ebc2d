"""Bytes of a device as a person's terminal may have them: in, what came; out, what is harmless. No port, no clock.

Law: a byte that is no text reaches the terminal only as one of the sequences of `PERMITTED`. Of the rest a few that
every console sends are left out (`LEFT_OUT`), and all others are shown escaped: a title may not be set, the clipboard
not written, a printer not started, and no question be asked that the terminal would answer by typing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from edgeagent.core.text import shown
from edgeagent.driver.line.screen import CursorAsked, Cutter, Moved, Printed, Rang, Seen

BYTES_A_ROW = 16

PERMITTED: tuple[tuple[str, bytes], ...] = (
    (r"\[\d{0,4}[A-G@LMPSTXade`]", b""),  # moves of the cursor; characters and lines put in, taken out, scrolled
    (r"\[(\d{0,4};)?\d{0,4}[Hf]", b""),  # the cursor goes to a place
    (r"\[[0-2]?[JK]", b""),  # erasing, but never what was scrolled away (3 J)
    (r"\[[\d;:]{0,48}m", b"\x1b[m"),  # colours
    (r"\[(\d{0,4};\d{0,4})?r", b"\x1b7\x1b[r\x1b8"),  # the part that scrolls
    (r"\[4[hl]", b"\x1b[4l"),  # typing over
    (r"\[\?(1|12)[hl]", b"\x1b[?1l"),  # what the arrow keys send; a blinking cursor
    (r"\[\?(7|25|7;25|12;25)[hl]", b"\x1b[?7h\x1b[?25h"),  # the margin; a hidden cursor
    (r"\[\?(47|1047|1048|1049)[hl]", b"\x1b[?1049l"),  # the other screen of editors and menus
    (r"\[\?2004[hl]", b"\x1b[?2004l"),  # what is pasted is marked
    (r"\[[su]|[78DEM]", b""),  # a place kept and gone back to; up and down a line
    (r"[=>]", b"\x1b>"),  # what the number pad sends
    (r"[()][0AB]", b"\x1b(B\x0f"),  # lines of boxes
)
"""What may follow ESC, and what puts the terminal right again afterwards."""

LEFT_OUT = re.compile(
    rb"\x00"
    rb"|\x1b\[3J"  # erasing what was scrolled away
    rb"|\x1b\[[=>?]?[\d;]{0,8}[cn]|\x1b\[18t|\x1bZ"  # questions: what are you, where is the cursor, how large are you
    rb"|\x1b\][0-2];[^\x07\x1b]*(\x07|\x1b\\)",  # titles
)
"""What a console sends at every prompt, and who reads it need not see."""

_PERMITTED = tuple((re.compile(rb"\x1b(?:" + pattern.encode() + rb")"), undo) for pattern, undo in PERMITTED)
_SHIFT_OUT, _SHIFT_IN = b"\x0e", b"\x0f"


class Displayed:
    """What a terminal is given of a stream of bytes. Give it bytes in any portions; the result is the same."""

    def __init__(self) -> None:
        self._cutter = Cutter()
        self._undo: dict[bytes, None] = {}
        self._begins = True

    def feed(self, portion: bytes, stamp: Callable[[], str] = str) -> bytes:
        """Return what may be shown of it; a stamp is asked for, and stands before, each line that begins in it."""
        return b"".join(self._one(event, stamp) for event in self._cutter.feed(portion))

    @property
    def restoring(self) -> bytes:
        """What puts the terminal right again: only what was changed is taken back."""
        return b"".join(self._undo)

    def _one(self, event: Seen, stamp: Callable[[], str]) -> bytes:
        if isinstance(event, CursorAsked) or LEFT_OUT.fullmatch(event.raw):
            return b""
        if event.raw in (b"\r", b"\n"):
            self._begins = True
            return event.raw
        before = shown(stamp()).encode() if self._begins else b""
        self._begins = False
        if isinstance(event, Printed):
            return before + shown(event.text, lines=True).encode()
        if isinstance(event, Rang) or event.raw == b"\b" or self._permits(event):
            return before + event.raw
        return before + shown(event.raw.decode("utf-8", "backslashreplace")).encode()

    def _permits(self, event: Seen) -> bool:
        if event.raw in (_SHIFT_OUT, _SHIFT_IN):
            return b"\x1b(B\x0f" in self._undo  # Without a set of boxes it is noise that would spoil what follows.
        for pattern, undo in _PERMITTED:
            if pattern.fullmatch(event.raw):
                if event.raw == undo:  # The device puts it right itself; doing so twice would move the cursor.
                    self._undo.pop(undo, None)
                elif undo:
                    self._undo[undo] = None
                return True
        return False


def as_text(events: Iterable[Seen]) -> Iterator[Seen]:
    """The same for who can show text and moves of the cursor alone: what a terminal may be told besides is left out,
    and what it may not is text, escaped.
    """
    for event in events:
        if isinstance(event, Printed):
            yield Printed(event.raw, shown(event.text, lines=True))
        elif isinstance(event, Moved):
            yield event
        elif not _is_left_out(event):
            yield Printed(event.raw, shown(event.raw.decode("utf-8", "backslashreplace")))


def _is_left_out(event: Seen) -> bool:
    if isinstance(event, CursorAsked | Rang) or event.raw in (_SHIFT_OUT, _SHIFT_IN):
        return True
    return LEFT_OUT.fullmatch(event.raw) is not None or any(each.fullmatch(event.raw) for each, _ in _PERMITTED)


class HexView:
    """Rows of bytes in hex and as text; the row that is not full yet is drawn again when more comes."""

    def __init__(self) -> None:
        self._row = b""
        self._stamp = ""
        self._at = 0

    def feed(self, portion: bytes, stamp: Callable[[], str] = str) -> bytes:
        """Return the rows, the last one where it stands now. A stamp is asked for, and stands before, each."""
        drawn: list[bytes] = []
        pending = self._row + portion
        while pending:
            self._stamp = self._stamp if self._row and not drawn else shown(stamp())
            self._row, pending = pending[:BYTES_A_ROW], pending[BYTES_A_ROW:]
            drawn.append(b"\r" + self._drawn())
            if len(self._row) == BYTES_A_ROW:
                drawn.append(b"\r\n")
                self._at += BYTES_A_ROW
                self._row = b""
        return b"".join(drawn)

    @property
    def restoring(self) -> bytes:
        """What ends the row that was begun."""
        return b"\r\n" if self._row else b""

    def _drawn(self) -> bytes:
        halves = (self._row[:8].hex(" "), self._row[8:].hex(" "))
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in self._row)
        return f"{self._stamp}{self._at:08x}  {halves[0]:<23}  {halves[1]:<23}  |{text}|".encode()


class PlainText:
    """Text of a stream of bytes without any sequence, for a file. Give it bytes in any portions."""

    def __init__(self) -> None:
        self._cutter = Cutter()
        self._begins = True

    def feed(self, portion: bytes, stamp: Callable[[], str] = str) -> bytes:
        """Return the text; a stamp is asked for, and stands before, each line that begins in it."""
        text = ""
        for event in self._cutter.feed(portion):
            if isinstance(event, Printed):
                text += (stamp() if self._begins else "") + shown(event.text, lines=True)
                self._begins = False
            elif event.raw == b"\n":
                text += (stamp() if self._begins else "") + "\n"
                self._begins = True
        return text.encode()
