"""Server-sent events: bytes in, events out, the same events however the bytes are cut.

As the HTML standard reads them, with two differences, both towards careless servers: the last event counts even
without its blank line once the stream has ended (`close`), and a field `error`, which llama.cpp's server writes, is
taken for data of an event of that name. Never raises: an event that is too large ends the stream (`overlong`).
"""

from __future__ import annotations

import re

import msgspec

EVENT_BYTES_MAX = 1 << 22
"""The most of one line and of one event's data: the last event of OpenAI's responses repeats the whole answer."""

_MARK = b"\xef\xbb\xbf"


_usual = re.compile(rb"(?:event: ([^\n]*)\n)?data: ([^\n]*)\n\n").findall
"""The usual events: a line of data, and at most one before it that names them."""

_AROUND_DATA, _AROUND_NAME = len(b"data: \n\n"), len(b"event: \n")


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its data, its name (empty for the usual `message`), and the last id that the stream has named."""

    data: bytes
    name: bytes = b""
    id: bytes = b""


class SseReader:
    """Reader of one stream."""

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self.overlong = False
        self.retry_ms = -1
        self._most = event_bytes_max
        self._has_begun = False
        self._after_cr = False
        self._line: list[bytes] = []  # The pieces of a line whose end has not come.
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self._id = b""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete."""
        events: list[SseEvent] = []
        if not self._has_begun:
            chunk = self._without_mark(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._without_cr(chunk)
        if self._line or self._data or self._name:  # Within an event: up to its end, line by line.
            end = chunk.find(b"\n\n") + 2
            if end < 2:
                self._feed_lines(chunk, events)
                return events
            self._feed_lines(chunk[:end], events)
            chunk = chunk[end:]
        end = chunk.rfind(b"\n\n") + 2
        if end >= 2:
            self._take_whole(chunk[:end], events)
            chunk = chunk[end:]
        self._feed_lines(chunk, events)
        return events

    def _take_whole(self, chunk: bytes, events: list[SseEvent]) -> None:
        """Whole events: at once if all are usual ones, which leave no byte of the chunk over, and else line by line."""
        found = _usual(chunk)
        names = b"".join([name for name, _ in found])
        named = sum([name != b"" for name, _ in found])
        datas = sum([len(data) for _, data in found])
        if len(found) * _AROUND_DATA + named * _AROUND_NAME + len(names) + datas == len(chunk) <= self._most:
            if not self.overlong:
                last = self._id
                events += [SseEvent(data, name, last) for name, data in found]
            return
        self._take_lines(chunk.split(b"\n")[:-1], events)

    def _feed_lines(self, chunk: bytes, events: list[SseEvent]) -> None:
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line, self._line_bytes = [], 0
            rest = lines.pop()
            self._take_lines(lines, events)
        else:
            rest = chunk
        if rest and not self.overlong:
            self._line.append(rest)
            self._line_bytes += len(rest)
            if self._line_bytes + self._data_bytes > self._most:
                self._stop()

    def close(self) -> list[SseEvent]:
        """Return the last event, if one was begun: the stream has ended."""
        events: list[SseEvent] = []
        self._take_lines([b"".join(self._line), b""], events)
        self._line = []
        return events

    def _take_lines(self, lines: list[bytes], events: list[SseEvent]) -> None:
        data, most = self._data, self._most
        for line in lines:
            if self.overlong:
                return
            if len(line) + self._data_bytes > most:
                self._stop()
            elif line[:6] == b"data: ":
                data.append(line[6:])
                self._data_bytes += len(line)
            elif line:
                self._take_field(line)
            else:
                if data:
                    events.append(SseEvent(data[0] if len(data) == 1 else b"\n".join(data), self._name, self._id))
                    data.clear()
                    self._data_bytes = 0
                self._name = b""

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data" | b"error":
                self._name = b"error" if field == b"error" else self._name
                self._data.append(value)
                self._data_bytes += len(line)
            case b"event":
                self._name = value
            case b"id" if b"\0" not in value:
                self._id = value
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry_ms = int(value)
            case _:
                pass  # A comment, or a field that nobody knows.

    def _stop(self) -> None:
        self.overlong = True
        self._line.clear()
        self._data.clear()

    def _without_mark(self, chunk: bytes) -> bytes:
        """The first bytes without a byte order mark; nothing, while they may still become one."""
        chunk = b"".join((*self._line, chunk))
        self._line, self._line_bytes = [], 0
        if len(chunk) < len(_MARK) and _MARK.startswith(chunk):
            self._line = [chunk]
            return b""
        self._has_begun = True
        return chunk.removeprefix(_MARK)

    def _without_cr(self, chunk: bytes) -> bytes:
        """The bytes with every line end as a line feed; one after a carriage return that came before is its own."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
