"""Text of a console, from the bytes it sent. Bytes in, events out; no port, no clock.

Law: the `raw` of the events, joined, is the input again. What is not text is kept aside, never thrown away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec import Struct

COLUMNS = 80
"""What devices assume when nobody told them; line editors wrap their echo there."""

SEQUENCE_BYTES_MAX = 64
"""No terminal sequence we know is longer, but for titles; a longer one is noise and is let go as it stands."""

TITLE_BYTES_MAX = 256
LINES_MAX = 4_096
LINE_CHARS_MAX = 16_384
"""More than any prompt, question or answer of a console; a flood costs at most this much memory."""


class Printed(Struct, frozen=True):
    """Text that a terminal would show."""

    raw: bytes
    text: str


class Moved(Struct, frozen=True):
    """The cursor moved: `\\r`, `\\n`, `\\b`, or a sequence; `how` is the final letter, `by` its count."""

    raw: bytes
    how: str
    by: int = 1


class CursorAsked(Struct, frozen=True):
    """The device asks where the cursor is (ESC [ 6 n). Nobody answers unless the profile says so."""

    raw: bytes


class PasteModeSet(Struct, frozen=True):
    """Bracketed paste goes on or off, as around every prompt of a modern shell."""

    raw: bytes
    on: bool


class Rang(Struct, frozen=True):
    """The bell: often a line that was too long for the device."""

    raw: bytes


class SetAside(Struct, frozen=True):
    """Colours, titles, NUL bytes and what we do not know: nothing of it is text."""

    raw: bytes


Seen = Printed | Moved | CursorAsked | PasteModeSet | Rang | SetAside

_CSI = re.compile(rb"\x1b\[([0-?]*)([ -/]*)([@-~])")
_MOVES = b"CDGKJ"


class Cutter:
    """Cuts a stream of bytes into events. Give it bytes in any portions; the events are the same."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, portion: bytes) -> tuple[Seen, ...]:
        """Return the events that are complete now; what may still go on is held back."""
        pending = self._held + portion
        seen: list[Seen] = []
        at = 0
        while at < len(pending):
            event = _next(pending, at)
            if event is None:
                break
            seen.append(event)
            at += len(event.raw)
        self._held = pending[at:]
        return tuple(_joined(seen))

    @property
    def held(self) -> bytes:
        """The begun sequence or character that has not ended yet."""
        return self._held


def _next(data: bytes, at: int) -> Seen | None:
    byte = data[at]
    if byte == 0x1B:
        return _sequence(data, at)
    if byte in b"\r\n\b":
        return Moved(data[at : at + 1], chr(byte))
    if byte == 0x07:
        return Rang(b"\x07")
    if byte == 0x09:
        return Printed(b"\t", "\t")
    if byte < 0x20 or byte == 0x7F:
        return SetAside(data[at : at + 1])
    return _text(data, at)


def _text(data: bytes, at: int) -> Seen | None:
    """Printable bytes up to the next control byte; a UTF-8 character that is not whole yet waits."""
    end = at
    while end < len(data) and data[end] >= 0x20 and data[end] != 0x7F:
        end += 1
    raw = data[at:end]
    if end == len(data) and (missing := _unfinished(raw)):
        raw = raw[: len(raw) - missing]
        if not raw:
            return None
    # latin-1 bytes of a wrong baud rate are shown as such, one character each, and so stay countable.
    return Printed(raw, raw.decode("utf-8", "backslashreplace"))


def _unfinished(raw: bytes) -> int:
    """Return how many bytes at the end begin a UTF-8 character that needs more of them."""
    for back in range(1, min(4, len(raw) + 1)):
        lead = raw[-back]
        if lead & 0xC0 == 0x80:
            continue
        needs = 2 if 0xC2 <= lead <= 0xDF else 3 if 0xE0 <= lead <= 0xEF else 4 if 0xF0 <= lead <= 0xF4 else 1
        return back if needs > back else 0
    return 0


def _sequence(data: bytes, at: int) -> Seen | None:
    following = data[at + 1 : at + 2]
    if not following:
        return None
    if following == b"[":
        return _control_sequence(data, at)
    if following in (b"]", b"P", b"_", b"^"):
        return _title(data, at)
    if b" " <= following <= b"/":
        return _designation(data, at)
    if following[0] < 0x20 or following[0] > 0x7E:
        return SetAside(b"\x1b")
    return SetAside(data[at : at + 2])


def _control_sequence(data: bytes, at: int) -> Seen | None:
    found = _CSI.match(data, at)
    if found is None:
        waiting = re.fullmatch(rb"\x1b\[[0-?]*[ -/]*", data[at : at + SEQUENCE_BYTES_MAX])
        return None if waiting and len(data) - at < SEQUENCE_BYTES_MAX else SetAside(b"\x1b[")
    raw, numbers, final = found.group(), found.group(1), found.group(3)
    if len(raw) > SEQUENCE_BYTES_MAX:
        return SetAside(raw)
    if final == b"n" and numbers == b"6":
        return CursorAsked(raw)
    if numbers == b"?2004" and final in (b"h", b"l"):
        return PasteModeSet(raw, final == b"h")
    if final in _MOVES and re.fullmatch(rb"\d{0,4}", numbers):
        return Moved(raw, final.decode(), int(numbers or (b"0" if final in b"KJ" else b"1")))
    return SetAside(raw)


def _designation(data: bytes, at: int) -> Seen | None:
    """ESC, one or two bytes in between, and a last one: a character set, as in ESC ( B."""
    found = re.compile(rb"\x1b[ -/]{1,2}([0-~])?").match(data, at)
    assert found is not None
    if found.group(1) is None:
        return None if found.end() == len(data) and len(found.group()) < 3 else SetAside(b"\x1b")
    return SetAside(found.group())


def _title(data: bytes, at: int) -> Seen | None:
    found = re.compile(rb"\x1b[\]P_^][^\x07\x1b\r\n]*(\x07|\x1b\\)").match(data, at)
    if found:
        return SetAside(found.group())
    going_on = re.fullmatch(rb"\x1b[\]P_^][^\x07\x1b\r\n]*\x1b?", data[at : at + TITLE_BYTES_MAX])
    return None if going_on and len(data) - at < TITLE_BYTES_MAX else SetAside(data[at : at + 2])


def _joined(seen: Iterable[Seen]) -> Iterable[Seen]:
    """Join neighbouring text, so that portions do not show in the events."""
    before: Printed | None = None
    for event in seen:
        if isinstance(event, Printed) and before is not None:
            before = Printed(before.raw + event.raw, before.text + event.text)
        elif isinstance(event, Printed):
            before = event
        else:
            if before is not None:
                yield before
            before = None
            yield event
    if before is not None:
        yield before


class Screen:
    """The lines that a terminal of endless height would show; fed with events, asked for text."""

    def __init__(self, columns: int = COLUMNS, noise: Sequence[re.Pattern[str]] = ()) -> None:
        """`noise`: what others print, which may come between a return and its line feed; nothing is lost below it."""
        self.columns = columns
        self._noise = noise
        self._under, self._over = "", 0
        self._lines: list[str] = []
        self._line: list[str] = []
        self._column = 0
        self._wiped = False

    def show(self, events: Iterable[Seen]) -> None:
        """Take in what was seen."""
        for event in events:
            match event:
                case Printed():
                    self._print(event.text)
                case Moved():
                    self._move(event.how, event.by)
                case CursorAsked() | PasteModeSet() | Rang() | SetAside():
                    pass
                case _:
                    assert_never(event)

    @property
    def text(self) -> str:
        """All lines, the unfinished last one included, joined by line feeds."""
        return "\n".join([*self._lines, "".join(self._line)])

    @property
    def begun(self) -> str:
        """The line that the cursor is on."""
        return "".join(self._line)

    def take_lines(self) -> list[str]:
        """Take out the lines that are whole; the one that the cursor is on stays as it is."""
        taken, self._lines = self._lines, []
        return taken

    def drop_line(self) -> None:
        """Take back the line that the cursor is on; the spaces that the device draws over it are no text either."""
        self._line, self._column, self._wiped = [], 0, True

    def _print(self, text: str) -> None:
        end = self._column + len(text)
        if self._wiped and not text.strip(" "):
            self._column = end
            return
        self._wiped = False
        if end > LINE_CHARS_MAX:
            self._end_line()
            end = len(text)
        if self._column > len(self._line):
            self._line.extend(" " * (self._column - len(self._line)))
        self._line[self._column : end] = text
        self._column = end
        self._over = max(self._over, end) if self._under else 0

    def _move(self, how: str, by: int) -> None:
        match how:
            case "\n":
                self._end_line()
            case "\r":
                self._return()
            case "\b" | "D":
                self._column = max(0, self._column - max(by, 1))
            case "C":
                self._column = min(self._column + max(by, 1), LINE_CHARS_MAX)
            case "G":
                self._column = min(max(by, 1), LINE_CHARS_MAX) - 1
            case "K" if by == 0:
                del self._line[self._column :]
            case "J" if by == 0:
                del self._line[self._column :]
            case _:
                pass  # The other kinds of erasing do not come at the end of a line.

    def _return(self) -> None:
        if not self._noise_over():
            self._under, self._over = "".join(self._line), 0
        # Line editors wrap a long echo by a space in the column after the last and a return: the text goes on.
        length = len(self._line)
        if length > self.columns and length % self.columns == 1 and self._column == length and self._line[-1] == " ":
            self._line.pop()
            self._column = len(self._line)
        else:
            self._column = 0

    def _noise_over(self) -> bool:
        """Whether what was printed over this line is others': then the line is still there, below it."""
        over = "".join(self._line[: self._over]) + "\n" if self._under and self._over else ""
        return bool(over) and any(pattern.match(over) for pattern in self._noise)

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._lines.append(self._under + line[: self._over] if self._noise_over() else line)
        self._under, self._over = "", 0
        self._line, self._column, self._wiped = [], 0, False
        if len(self._lines) > LINES_MAX:
            del self._lines[0]


def set_aside(text: str, noise: Sequence[re.Pattern[str]]) -> tuple[str, tuple[str, ...]]:
    """Return `text` without the lines that `noise` matches, and those lines.

    A kernel prints where it wants: a noise line may begin in the middle of a line of the answer, and the rest of the
    answer's line follows after it. Cutting it out joins the two parts again.
    """
    aside: list[str] = []

    def keep(found: re.Match[str]) -> str:
        aside.append(found.group().strip("\n"))
        return ""

    for pattern in noise:
        text = pattern.sub(keep, text)
    return text, tuple(aside)


def printed(events: Iterable[Seen]) -> str:
    """Return the text with its returns and line feeds as they came: what an echo is compared with."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, Printed):
            parts.append(event.text)
        elif isinstance(event, Moved) and event.how in "\r\n\b":
            parts.append(event.how)
    return "".join(parts)


def echo_length(shown: str, sent: str) -> int | None:
    """Return how many characters of `shown` are the echo of `sent`; None while it is not whole, or differs.

    A wrapped echo has returns, line feeds and spaces that were never sent (pexpect#238); nothing else may differ.
    """
    matched = {0}
    for end, char in enumerate(shown):
        if len(sent) in matched:
            return end
        matched = _echo_step(matched, char, sent)
    return len(shown) if len(sent) in matched else None


def echo_differs(shown: str, sent: str) -> bool:
    """Return whether `shown` can no longer become the echo of `sent`."""
    matched = {0}
    for char in shown:
        if len(sent) in matched:
            return False
        matched = _echo_step(matched, char, sent)
    return not matched


def _echo_step(matched: set[int], char: str, sent: str) -> set[int]:
    """How much of `sent` may be matched after one more character, given how much may be matched before it."""
    after = {at + 1 for at in matched if at < len(sent) and sent[at] == char}
    if char in "\r\n ":
        after |= matched
    if char == "\r":
        # bash prints the first character of the next row, returns, and prints it again.
        after |= {at - 1 for at in matched if at}
    return after


class Redactor:
    """Replaces a secret in a stream of bytes by stars, also when it comes in portions."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._held = b""

    def feed(self, portion: bytes) -> bytes:
        """Return what may be shown; the begin of what could become the secret is held back."""
        pending = (self._held + portion).replace(self._secret, b"*" * len(self._secret))
        keep = self._begun(pending)
        self._held = pending[len(pending) - keep :]
        return pending[: len(pending) - keep]

    def flush(self) -> bytes:
        """Return what was held back: nothing followed, so it was not the secret."""
        held, self._held = self._held, b""
        return held

    def _begun(self, pending: bytes) -> int:
        for length in range(min(len(self._secret) - 1, len(pending)), 0, -1):
            if self._secret.startswith(pending[-length:]):
                return length
        return 0


def unreadable(heard: bytes) -> float:
    """Return the share of bytes that no console prints: a line at the wrong speed has a third of them and more."""
    text = heard.decode("utf-8", "replace")
    wrong = sum(1 for c in text if c == "\ufffd" or (c < " " and c not in "\r\n\t\b\x1b\x07\0") or c == "\x7f")
    return wrong / max(1, len(text))
