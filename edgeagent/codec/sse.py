"""Server-sent events: bytes in, events out, the same events however the bytes are cut.

As the HTML standard reads them, with two differences, both towards careless servers: the last event counts even
without its blank line once the stream has ended (`close`), and a field `error`, which llama.cpp's server writes, is
taken for data of an event of that name. Never raises: an event that is too large ends the stream (`overlong`).
"""

from __future__ import annotations

import msgspec

EVENT_BYTES_MAX = 1 << 22
"""The most of one event: the last one of OpenAI's responses repeats the whole answer."""


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
        self._started = False
        self._after_cr = False
        self._line: list[bytes] = []  # The pieces of a line whose end has not come.
        self._held = 0  # Bytes in `_line` and `_data`.
        self._data: list[bytes] = []
        self._name = b""
        self._id = b""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete."""
        if self.overlong:
            return []
        if not self._started and not (chunk := self._without_mark(chunk)):
            return []
        if self._after_cr or b"\r" in chunk:
            chunk = self._without_cr(chunk)
        end = chunk.rfind(b"\n") + 1
        if not end:
            return self._kept_back(chunk, [])
        whole = chunk[:end]
        if self._line:
            whole = b"".join((*self._line, whole))
            self._line = []
        self._held = sum(map(len, self._data)) if self._data else 0
        return self._kept_back(chunk[end:], self._events(whole))

    def close(self) -> list[SseEvent]:
        """Return the last event, if one was begun: the stream has ended."""
        if self.overlong:
            return []
        rest = b"".join(self._line)
        self._line = []
        events: list[SseEvent] = []
        if rest:
            self._take_line(rest)
        self._dispatch(events)
        return events

    def _events(self, whole: bytes) -> list[SseEvent]:
        """The events of whole lines. Most often an event is one line of data: it is cut out at once."""
        events: list[SseEvent] = []
        parts = whole.split(b"\n\n")
        tail = parts.pop()
        for part in parts:
            if not self._data and not self._name and b"\n" not in part and part[:6] == b"data: ":
                if len(part) <= self._most:
                    events.append(SseEvent(part[6:], b"", self._id))
                    continue
                self.overlong = True
            elif not self.overlong:
                self._take_lines(part, events)
                self._dispatch(events)
            if self.overlong:
                return events
        if tail:
            self._take_lines(tail[:-1], events)
        return events

    def _take_lines(self, lines: bytes, events: list[SseEvent]) -> None:
        for line in lines.split(b"\n"):
            if line:
                self._take_line(line)
            else:
                self._dispatch(events)

    def _take_line(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._take_data(value)
            case b"error" if value:
                self._name = b"error"
                self._take_data(value)
            case b"event":
                self._name = value
            case b"id" if b"\0" not in value:
                self._id = value
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry_ms = int(value)
            case _:
                pass  # A comment, or a field that nobody knows.

    def _take_data(self, value: bytes) -> None:
        self._held += len(value) + 1
        if self._held > self._most:
            self.overlong = True
            self._data.clear()
        elif not self.overlong:
            self._data.append(value)

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data and not self.overlong:
            events.append(SseEvent(b"\n".join(self._data), self._name, self._id))
        self._data.clear()
        self._name = b""
        self._held = 0

    def _kept_back(self, rest: bytes, events: list[SseEvent]) -> list[SseEvent]:
        if rest and not self.overlong:
            self._line.append(rest)
            self._held += len(rest)
            if self._held > self._most + len(b"data: "):
                self.overlong = True
                self._line.clear()
        return events

    def _without_mark(self, chunk: bytes) -> bytes:
        """The first bytes without a byte order mark; nothing, while they may still become one."""
        chunk = b"".join((*self._line, chunk))
        self._line.clear()
        if len(chunk) < 3 and b"\xef\xbb\xbf".startswith(chunk):
            self._line.append(chunk)
            return b""
        self._started = True
        return chunk.removeprefix(b"\xef\xbb\xbf")

    def _without_cr(self, chunk: bytes) -> bytes:
        """The bytes with every line end as a line feed. One after a carriage return that ended the bytes before is its."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n") if chunk else chunk
        ended = chunk.endswith(b"\r") if chunk else self._after_cr
        self._after_cr = ended
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
