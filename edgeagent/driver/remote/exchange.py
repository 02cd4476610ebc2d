"""One ask of a remote model: sent, read as it comes, sent again only where that is safe, and answered exactly once.

It is sent again only while nothing of an answer has come, when the server was not reached or asked to wait, at most
`ATTEMPTS_MAX` times and never past the end of the turn's time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from edgeagent.codec.conversation import Delta, Ended, Reply, Text
from edgeagent.codec.failures import Failure, failure_of, malformed
from edgeagent.driver.remote.apis import Api, Reading
from edgeagent.driver.remote.endpoint import PATHS, Endpoint
from edgeagent.driver.remote.scrub import Scrub, Stream
from edgeagent.driver.remote.secret import Secret
from edgeagent.driver.remote.transport import How, Request, Transport

ATTEMPTS_MAX = 4

FIRST_WAIT_S, WAIT_S_MAX = 0.5, 60.0
"""Before the second attempt, where the server names no wait; it doubles. A longer one is not waited for."""

WAITED_FOR = ("rate_limited", "overloaded")

HEADERS = ("Content-Type: application/json", "Accept: text/event-stream, application/json")
VERSION = "anthropic-version: 2023-06-01"


@dataclass(frozen=True)
class Result:
    """What came of it: a reply; or why there is none, with what was written until then, and whether it was reached."""

    reply: Reply | None
    why: str = ""
    how: How | str = "done"
    partial: str = ""
    has_begun: bool = False


class Exchange:
    """A `Receiver` of one ask's responses."""

    def __init__(
        self,
        endpoint: Endpoint,
        api: Api,
        body: bytes,
        until: float,
        seed: int,
        on_text: Callable[[str], None] | None,
        done: Callable[[Result], None],
    ) -> None:
        self._endpoint, self._api, self._body, self._until = endpoint, api, body, until
        self._on_text, self._done = on_text, done
        self._chance, self._attempt, self._may_retry = random.Random(seed), 0, True
        self._transport: Transport | None = None
        self._request: Request | None = None
        self._is_cancelled = False
        self._forget()

    def _forget(self) -> None:
        self._status, self._headers, self._content = 0, dict[str, str](), bytearray()
        self._scrub = Scrub(None)
        self._shown: Stream = self._scrub.stream()
        self._reading: Reading | None = None
        self._final: Ended | Failure | None = None
        self._has_begun = False

    def start(self, transport: Transport, *, may_retry: bool = True) -> None:
        """Send it."""
        self._transport, self._may_retry = transport, may_retry
        self._send(0.0)

    def cancel(self) -> None:
        """Stop it; its result says so."""
        self._is_cancelled = True
        if self._transport is not None and self._request is not None:
            self._transport.cancel(self._request)

    def _send(self, wait_s: float) -> None:
        assert self._transport is not None, "it was started"
        self._attempt += 1
        self._forget()
        self._request = Request(
            self._endpoint,
            PATHS[self._endpoint.api],
            self._body,
            self,
            self._until,
            streams=self._endpoint.stream,
            after=time.monotonic() + wait_s if wait_s else 0.0,
            headers=(*HEADERS, VERSION) if self._endpoint.api == "messages" else HEADERS,
        )
        self._transport.start(self._request)

    # -- a receiver ------------------------------------------------------------------------------------------------

    def begun(self, secret: Secret | None) -> None:
        """From now on what comes may hold this secret."""
        self._scrub = Scrub(secret)
        self._shown = self._scrub.stream()

    def head(self, status: int, headers: dict[str, str]) -> None:
        """The answer begins: events, or one text."""
        self._status, self._headers = status, headers
        if status == 200 and headers.get("content-type", "").lower().startswith("text/event-stream"):
            self._reading = self._api.reading()

    def body(self, piece: bytes) -> bool:
        """More of it."""
        if self._reading is None:
            self._content += piece
            return False
        deltas = self._reading.feed(piece)
        for each in deltas:
            self._take(each)
        return bool(deltas)

    def _take(self, delta: Delta) -> None:
        self._has_begun = self._has_begun or not isinstance(delta, Ended | Failure)
        if isinstance(delta, Ended | Failure):
            self._final = self._final or delta
        elif isinstance(delta, Text) and (shown := self._shown.feed(delta.text)):
            self._show(shown)

    def _show(self, text: str) -> None:
        if self._on_text is not None and text:
            self._on_text(text)

    def ended(self, how: How, why: str) -> None:
        """Nothing more comes: it is answered, or sent again."""
        if self._is_cancelled and how != "done":
            self._done(Result(None, "it was cancelled", "cancelled"))
            return
        found = self._found(how, why)
        wait_s = None if isinstance(found, Reply) else self._wait(how, found)
        if wait_s is not None:
            self._send(wait_s)
            return
        self._show(self._shown.end())
        if isinstance(found, Reply):
            self._done(Result(self._clean(found)))
            return
        partial = self._scrub.text(self._reading.reply().text) if self._reading is not None else ""
        reached = f"{self._endpoint.origin}: {self._scrub.text(found.text)}"
        kind = found.kind if how == "done" else how
        self._done(Result(None, reached, kind, partial, self._has_begun))

    def _found(self, how: How, why: str) -> Reply | Failure:
        """The reply, or what is wrong."""
        if self._reading is not None:
            for each in self._reading.end() if how in ("done", "broken") else ():
                self._take(each)
            if isinstance(self._final, Ended):
                return self._reading.reply()
            if isinstance(self._final, Failure) and how == "done":
                return self._final
            return Failure("cut_short", why or "the answer ends before its end")
        if how != "done":
            return Failure("cut_short", why)
        if 300 <= self._status < 400:
            where = "it redirects elsewhere, and nothing is sent after a redirection: name the right address"
            return Failure("not_found", where, self._status)
        if self._status != 200:
            return failure_of(self._status, self._headers, bytes(self._content))
        if self._headers.get("content-type", "").lower().startswith("text/html"):
            return failure_of(self._status, self._headers, bytes(self._content))
        if not self._content:
            return malformed("is empty")
        return self._api.whole(bytes(self._content), self._headers)

    def _wait(self, how: How, failure: Failure) -> float | None:
        """How long to wait before it is sent again; None if it is not."""
        asks_to_wait = how == "done" and failure.kind in WAITED_FOR
        if self._has_begun or self._attempt >= ATTEMPTS_MAX or not (asks_to_wait or how == "unreachable"):
            return None
        if not self._may_retry:
            return None  # Another model is asked meanwhile.
        named = failure.wait_ms / 1000 if failure.wait_ms >= 0 else FIRST_WAIT_S * 2 ** (self._attempt - 1)
        wait_s = named + self._chance.uniform(0, named / 4 + 0.05)
        left = self._until - time.monotonic()
        return wait_s if wait_s < min(left, WAIT_S_MAX) else None

    def _clean(self, reply: Reply) -> Reply:
        """The reply with no key in anything that is kept or shown."""
        calls = tuple(
            type(each)(each.id, self._scrub.text(each.tool), self._scrub.text(each.arguments)) for each in reply.calls
        )
        return Reply(
            text=self._scrub.text(reply.text),
            refusal=self._scrub.text(reply.refusal),
            calls=calls,
            usage=reply.usage,
            ended=reply.ended,
        )
