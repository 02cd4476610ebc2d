"""Stream of one reply: the bytes of a response's body → deltas, the same ones however the bytes are cut.

What comes in place of events is found by its first byte: JSON (an error, or a whole reply that was not streamed) and
HTML are read when they have ended. The last delta is Ended or Failure; after it nothing is read. Raises nothing.
"""

from __future__ import annotations

import re

from edgeagent.codec.conversation import Delta, Reply
from edgeagent.codec.failures import CUT_SHORT, TOO_LARGE, Failure, error_in, failure_of, malformed
from edgeagent.codec.json_text import read_object
from edgeagent.codec.reading import Broken, Reading
from edgeagent.codec.sse import SseEvent, SseReader

REPLY_BYTES_MAX = 1 << 24
"""The most of one response: some 60,000 tokens, each in an event of its own."""

_BEGIN_BYTES = 1 << 10
"""The most that is kept of a body's beginning, to show it if it is nothing that we know."""

_PLAIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[<]")
_UNDECIDED = re.compile(rb"(?:\xef|\xef\xbb|(?:\xef\xbb\xbf)?\s*)")
_EVENTS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?::|data|event|id|retry|error:)")


class Stream:
    """One reply on its way."""

    def __init__(self, reading: Reading, bytes_max: int = REPLY_BYTES_MAX) -> None:
        self._reading = reading
        self._sse = SseReader()
        self._left = bytes_max
        self._begin = b""
        self._plain: list[bytes] | None = None  # A body that is no stream of events.
        self._is_decided = False

    def feed(self, chunk: bytes) -> list[Delta]:
        """Return what these bytes of the body add."""
        is_overlong = len(chunk) > self._left
        chunk = chunk[: self._left]
        self._left -= len(chunk)
        if not self._is_decided:
            self._decide(chunk)
        if self._plain is None:
            return self._told(self._sse.feed(chunk), is_overlong or self._sse.overlong)
        self._plain.append(chunk)
        return self._told([], is_overlong)

    def close(self) -> list[Delta]:
        """Return what is still to come now that the body has ended, whichever way."""
        return self._told(self._sse.close(), self._sse.overlong, is_last=True)

    def _told(self, events: list[SseEvent], is_overlong: bool, *, is_last: bool = False) -> list[Delta]:
        reading = self._reading
        if reading.done:
            return []
        try:
            reading.take(events)
            if is_overlong and not reading.done:
                raise Broken(TOO_LARGE)
            if is_last and not reading.done:
                self._end()
        except Broken as broken:
            reading.fail(broken.failure)
        told, reading.out = reading.out, []
        return told

    def _end(self) -> None:
        if self._plain is not None:
            body = b"".join(self._plain)
            value = read_object(body)
            if value is None or error_in(value) is not None:
                raise Broken(failure_of(200, {}, body))
            self._reading.take_body(value)
        elif self._is_decided and not _EVENTS.match(self._begin):
            raise Broken(malformed("is neither events nor JSON", self._begin))
        self._reading.finished()

    def reply(self) -> Reply | Failure:
        """Return the whole reply, or why there is none."""
        if self._reading.done:
            return self._reading.failure or self._reading.reply()
        return CUT_SHORT

    def _decide(self, chunk: bytes) -> None:
        """Find out by the first bytes what comes; the reader of events waits, too, until it is clear."""
        before, self._begin = self._begin, (self._begin + chunk)[:_BEGIN_BYTES]
        if _PLAIN.match(self._begin):
            self._plain = [before]
        self._is_decided = not _UNDECIDED.fullmatch(self._begin)


def decoded(reading: Reading, body: bytes) -> Reply | Failure:
    """Return the reply that a body carries which was not streamed."""
    stream = Stream(reading)
    stream.feed(body)
    stream.close()
    return stream.reply()
