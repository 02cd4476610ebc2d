"""Stream of one reply: the bytes of a response's body → deltas, the same ones however the bytes are cut.

What comes in place of events is found by its first byte: JSON (an error, or a whole reply that was not streamed) and
HTML are read when they have ended. The last delta is Ended or Failure; after it nothing is read. Raises nothing.
"""

from __future__ import annotations

from typing import Any, Protocol

from edgeagent.codec.conversation import Delta, Reply
from edgeagent.codec.failures import Failure, error_in, failure_in, failure_of, malformed
from edgeagent.codec.json_text import read_object
from edgeagent.codec.sse import SseEvent, SseReader

REPLY_BYTES_MAX = 1 << 24
"""The most of one response: some 60,000 tokens, each in an event of its own."""


class Reading(Protocol):
    """What one API's events come to. Every call adds deltas to `out`; after Ended or Failure `done` is true."""

    done: bool

    def take(self, events: list[SseEvent], out: list[Delta]) -> None:
        """Read events, up to the one that ends the reply."""

    def take_whole(self, value: dict[str, Any], out: list[Delta]) -> None:
        """Read a reply that was not streamed."""

    def end(self, out: list[Delta]) -> None:
        """Read the end of the bytes."""

    def reply(self) -> Reply:
        """Return what has come so far, as a reply."""


class Stream:
    """One reply on its way."""

    def __init__(self, reading: Reading, bytes_max: int = REPLY_BYTES_MAX) -> None:
        self._reading = reading
        self._sse = SseReader()
        self._left = bytes_max
        self._start = b""
        self._plain: list[bytes] | None = None
        self._is_events = False
        self._failure: Failure | None = None

    def feed(self, chunk: bytes) -> list[Delta]:
        """Return what these bytes of the body add."""
        out: list[Delta] = []
        if self._is_over or not chunk:
            return out
        overlong = len(chunk) > self._left
        chunk = chunk[: self._left]
        self._left -= len(chunk)
        if self._is_events or self._begins_with_events(chunk):
            chunk, self._start = (self._start + chunk, b"") if self._start else (chunk, b"")
            self._reading.take(self._sse.feed(chunk), out)
            overlong = overlong or self._sse.overlong
        elif self._plain is not None:
            self._plain.append(chunk)
        self._note(out)
        if overlong and not self._is_over:
            self._fail(Failure("too_large", "the answer is larger than any that is taken"), out)
        return out

    def close(self) -> list[Delta]:
        """Return what is still to come now that the body has ended, whichever way."""
        out: list[Delta] = []
        if self._is_over:
            return out
        if self._plain is not None:
            self._close_plain(b"".join(self._plain), out)
        else:
            self._reading.take(self._sse.feed(self._start) + self._sse.close(), out)
        if not self._is_over and not (out and isinstance(out[-1], Failure)):
            self._reading.end(out)
        self._note(out)
        return out

    def reply(self) -> Reply | Failure:
        """Return the whole reply, or why there is none."""
        if self._failure is not None:
            return self._failure
        return self._reading.reply() if self._reading.done else CUT_SHORT

    @property
    def _is_over(self) -> bool:
        return self._reading.done or self._failure is not None

    def _begins_with_events(self, chunk: bytes) -> bool:
        """Whether this is a stream of events; decided by the first byte that is not blank."""
        if self._plain is not None:
            return False
        start = self._start + chunk
        first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if first in (b"{", b"[", b"<"):
            self._plain = [self._start]
            return False
        if not first or (len(start) < 3 and b"\xef\xbb\xbf".startswith(start)):
            self._start = start
            return False
        self._is_events = True
        return True

    def _close_plain(self, body: bytes, out: list[Delta]) -> None:
        value = read_object(body)
        if value is None or error_in(value) is not None:
            self._fail(failure_of(200, {}, body), out)
        else:
            self._reading.take_whole(value, out)

    def _note(self, out: list[Delta]) -> None:
        if out and isinstance(out[-1], Failure):
            self._failure = out[-1]

    def _fail(self, failure: Failure, out: list[Delta]) -> None:
        self._failure = failure
        out.append(failure)


CUT_SHORT = Failure("cut_short", "the answer ended before its end")


def decoded(reading: Reading, body: bytes) -> Reply | Failure:
    """Return the reply that a body carries which was not streamed."""
    value = read_object(body)
    if value is None or error_in(value) is not None:
        return failure_of(200, {}, body)
    out: list[Delta] = []
    reading.take_whole(value, out)
    if out and isinstance(out[-1], Failure):
        return out[-1]
    return reading.reply()


def event_value(event: SseEvent, out: list[Delta]) -> dict[str, Any] | None:
    """Return the object of an event; None after a failure, which is in `out`: no JSON, or an error that it carries."""
    value = read_object(event.data)
    if value is None:
        if event.name == b"error":
            out.append(failure_in({"message": event.data.decode(errors="replace")}))
        else:
            out.append(malformed("has an event that is no JSON object", event.data))
        return None
    error = error_in(value)
    if error is None and event.name == b"error":
        error = value
    if error is not None:
        out.append(failure_in(error))
        return None
    return value
