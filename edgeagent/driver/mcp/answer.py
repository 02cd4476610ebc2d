"""What a server behind HTTP answers to one request: a message as JSON, or messages as server-sent events.

Law: no key of ours is in anything that goes further, also where the server sends it back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from edgeagent.codec.frames import MESSAGE_BYTES_MAX, Skipped, skipped
from edgeagent.codec.jsonrpc import Batch, Fault, Id, Incoming, Result, read
from edgeagent.codec.sse import SseReader
from edgeagent.core.text import readable, shown
from edgeagent.driver.remote.scrub import Scrub
from edgeagent.driver.remote.secret import Secret
from edgeagent.driver.remote.transport import How, Progress

SHOWN_CHARS = 200
"""Of what it says in the place of an answer."""

PLACE = re.compile(rb"[\x20-\x7e]{1,1024}")
"""What may be said back to a server as the place in its stream: it stands in a header."""

Take = Callable[[list[Incoming]], None]


class Answer:
    """A `Receiver` of one response. `take` is given what comes, in order; `done` is called last, once."""

    def __init__(self, wanted: Id | None, take: Take, done: Callable[[Answer], None]) -> None:
        """`wanted` is the id of the request that is to be answered; None where none is."""
        self.wanted, self.take, self._done = wanted, take, done
        self.status, self.headers = 0, dict[str, str]()
        self.how: How = "done"
        self.why = ""
        self.is_answered = False
        self.place = b""
        """Behind which event of the stream another connection goes on; empty where the server names none."""
        self._scrub = Scrub(None)
        self._has_secret = False
        self._events: SseReader | None = None
        self._whole = bytearray()
        self.is_too_long = False

    @property
    def is_stream(self) -> bool:
        """Whether it came, or comes, as events."""
        return self._events is not None

    @property
    def is_taken(self) -> bool:
        """Whether the server has taken what it was sent."""
        return 200 <= self.status < 300

    @property
    def retry_s(self) -> float:
        """How long the server wants to be left alone before another connection; negative where it does not say."""
        return self._events.retry_ms / 1000 if self._events is not None else -1.0

    def said(self) -> str:
        """What it said in the place of an answer, to be shown."""
        text = self._scrub.text(readable(bytes(self._whole[: 4 * SHOWN_CHARS])))
        return shown(" ".join(text.split()))[:SHOWN_CHARS]

    # -- a receiver ------------------------------------------------------------------------------------------------

    def begun(self, secret: Secret | None) -> None:
        """From now on what comes may hold this secret."""
        self._scrub, self._has_secret = Scrub(secret), secret is not None

    def head(self, status: int, headers: dict[str, str]) -> None:
        """The response begins."""
        self.status, self.headers = status, headers
        if self.is_taken and self._kind() == "text/event-stream":
            self._events = SseReader(MESSAGE_BYTES_MAX)

    def body(self, piece: bytes) -> Progress:
        """More of it."""
        if self._events is None:
            self.is_too_long |= len(self._whole) + len(piece) > MESSAGE_BYTES_MAX
            self._whole += piece[: MESSAGE_BYTES_MAX - len(self._whole)]
            return "nothing"
        self._take_events(self._events.feed(piece))
        return "last" if self.is_answered or self.is_too_long else "nothing"

    def ended(self, how: How, why: str) -> None:
        """Nothing more comes."""
        self.how, self.why = how, why
        if self._events is None and self._whole:
            self._take_whole()
        self._done(self)

    # -- within ----------------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def _take_events(self, events: list[Any]) -> None:
        for each in events:
            if PLACE.fullmatch(each.id):
                self.place = each.id
            if each.data:  # Without any it only names a place.
                self._give(read(self._clean(each.data), batches=True))
        if self._events is not None and self._events.overlong and not self.is_too_long:
            self.is_too_long = True
            self._give(_too_long(b""))

    def _take_whole(self) -> None:
        """A message that came as JSON; of another status only what answers the request."""
        if self.is_too_long:
            self._give(_too_long(bytes(self._whole)))
            return
        found = read(self._clean(bytes(self._whole)), batches=True) if self._kind() == "application/json" else None
        if self.is_taken:
            self._give(found or skipped(f"it is {shown(self._kind())[:40] or 'of no kind'}", bytes(self._whole)))
        elif isinstance(found, Fault) and self.wanted is not None and found.id == self.wanted:
            self._give(found)

    def _give(self, found: Incoming) -> None:
        for each in found.messages if isinstance(found, Batch) else (found,):
            self.is_answered |= isinstance(each, Result | Fault) and self.wanted is not None and each.id == self.wanted
        self.take([found])

    def _clean(self, data: bytes) -> bytes:
        return self._scrub.text(readable(data)).encode() if self._has_secret else data


def _too_long(found: bytes) -> Skipped:
    return skipped(f"it is longer than {MESSAGE_BYTES_MAX} bytes", found)
