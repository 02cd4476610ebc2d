"""One ask of a remote model: sent, read as it comes, sent again only where that is safe, and answered exactly once.

It is sent again only while nothing of an answer has come, when the server was not reached or asked to wait, at most
`ATTEMPTS_MAX` times and never past the end of the turn's time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from edgeagent.codec.apis import Api
from edgeagent.codec.conversation import Call, Delta, Ended, Reply, Text
from edgeagent.codec.failures import BODY_BYTES_MAX, Failure, Kind, failure_of
from edgeagent.codec.stream import Stream as Reading
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.scrub import Scrub, Stream
from edgeagent.driver.remote.secret import Secret
from edgeagent.driver.remote.transport import How, Progress, Request, Transport

ATTEMPTS_MAX = 4

FIRST_WAIT_S, WAIT_S_MAX = 0.5, 60.0
"""Before the second attempt, where the server names no wait; it doubles. A longer one is not waited for."""

WAITED_FOR = ("rate_limited", "overloaded")

HEADERS = ("Content-Type: application/json", "Accept: text/event-stream, application/json")


@dataclass(frozen=True)
class Result:
    """What came of it: a reply; or why there is none, with what was written until then, and whether anything was."""

    reply: Reply | None
    why: str = ""
    how: How | Kind = "done"
    partial: str = ""
    has_begun: bool = False


@dataclass(frozen=True)
class Asked:
    """One ask, ready to be sent: its body, until when it must have ended, and what jitter is drawn from."""

    endpoint: Endpoint
    api: Api
    body: bytes
    until: float
    seed: int = 0
    may_retry: bool = True


class Exchange:
    """A `Receiver` of one ask's responses."""

    def __init__(
        self,
        asked: Asked,
        transport: Transport,
        on_text: Callable[[str], None] | None,
        done: Callable[[Result], None],
    ) -> None:
        self._asked, self._transport, self._on_text, self._done = asked, transport, on_text, done
        self._chance, self._attempt = random.Random(asked.seed), 0
        self._request: Request | None = None
        self._is_cancelled = False
        self._forget()

    def _forget(self) -> None:
        self._status, self._headers, self._content = 0, dict[str, str](), bytearray()
        self._scrub = Scrub(None)
        self._shown: Stream = self._scrub.stream()
        self._reading: Reading | None = None
        self._final: Ended | Failure | None = None
        self._said: list[str] = []
        self._has_begun = False

    def start(self) -> None:
        """Send it."""
        self._send(0.0)

    @property
    def is_cancelled(self) -> bool:
        """Whether it was to stop."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Stop it; its result says so."""
        self._is_cancelled = True
        if self._request is not None:
            self._transport.cancel(self._request)

    def _send(self, wait_s: float) -> None:
        asked, self._attempt = self._asked, self._attempt + 1
        self._forget()
        self._request = Request(
            asked.endpoint,
            asked.api.path,
            asked.body,
            self,
            asked.until,
            streams=asked.endpoint.stream,
            after=self._transport.clock() + wait_s if wait_s else 0.0,
            headers=(*HEADERS, *(f"{name}: {value}" for name, value in asked.api.headers)),
            carries=asked.api.credential,
        )
        self._transport.start(self._request)
        if self._is_cancelled:  # While this one was not there yet.
            self._transport.cancel(self._request)

    # -- a receiver ------------------------------------------------------------------------------------------------

    def begun(self, secret: Secret | None) -> None:
        """From now on what comes may hold this secret."""
        self._scrub = Scrub(secret)
        self._shown = self._scrub.stream()

    def head(self, status: int, headers: dict[str, str]) -> None:
        """The answer begins."""
        self._status, self._headers = status, headers
        self._reading = self._asked.api.stream() if status == 200 else None

    def body(self, piece: bytes) -> Progress:
        """More of it: of an answer, or of what stands in the place of one."""
        if self._reading is None:
            self._content += piece[: BODY_BYTES_MAX - len(self._content)]
            return "nothing"
        deltas = self._reading.feed(piece)
        for each in deltas:
            self._take(each)
        return "last" if self._final is not None else "event" if deltas else "nothing"

    def _take(self, delta: Delta) -> None:
        if isinstance(delta, Ended | Failure):
            self._final = self._final or delta
            return
        self._has_begun = True
        if isinstance(delta, Text):
            self._said.append(delta.text)
            self._show(self._shown.feed(delta.text))

    def _show(self, text: str) -> None:
        if self._on_text is not None and text:
            self._on_text(text)

    def ended(self, how: How, why: str) -> None:
        """Nothing more comes: it is answered, or sent again."""
        try:
            result = self._result(how, why)
        # Whatever is wrong with us, it ends this ask and not the thread of all of them.
        except Exception as error:
            result = Result(None, f"{type(error).__name__}: {error}", "broken", has_begun=self._has_begun)
        if result is not None:
            self._done(result)

    def _result(self, how: How, why: str) -> Result | None:
        """What came of it; None if it is sent again."""
        if self._is_cancelled and how != "done":
            return Result(None, "it was cancelled", "cancelled", self._written(), self._has_begun)
        found = self._found(how, why)
        wait_s = None if isinstance(found, Reply) else self._wait(how, found)
        if wait_s is not None:
            self._send(wait_s)
            return None
        self._show(self._shown.end())
        if isinstance(found, Reply):
            return Result(self._clean(found))
        what = f"{self._asked.endpoint.origin}: {self._scrub.text(found.text)}"
        return Result(None, what, found.kind if how == "done" else how, self._written(), self._has_begun)

    def _found(self, how: How, why: str) -> Reply | Failure:
        """The reply, or what is wrong."""
        if self._reading is None:
            return Failure("cut_short", why) if how != "done" else self._instead()
        # A whole reply that was not streamed is only whole if its bytes are; of a stream the last event says so.
        for each in self._reading.close() if how == "done" or self._has_begun else ():
            self._take(each)
        if isinstance(self._final, Ended):
            return self._reading.reply()
        if isinstance(self._final, Failure) and how == "done":
            return self._final
        return Failure("cut_short", why or "the answer ended before its end")

    def _instead(self) -> Failure:
        """What came in the place of an answer."""
        if 300 <= self._status < 400:
            where = "it redirects elsewhere, and nothing is sent after a redirection: name the right address"
            return Failure("not_found", where, self._status)
        return failure_of(self._status, self._headers, bytes(self._content))

    def _wait(self, how: How, failure: Failure) -> float | None:
        """How long to wait before it is sent again; None if it is not."""
        asks_to_wait = how == "done" and failure.kind in WAITED_FOR
        if self._has_begun or self._attempt >= ATTEMPTS_MAX or not (asks_to_wait or how == "unreachable"):
            return None
        if not self._asked.may_retry:
            return None  # Another model is asked meanwhile.
        named = failure.wait_ms / 1000 if failure.wait_ms >= 0 else FIRST_WAIT_S * 2 ** (self._attempt - 1)
        wait_s = named + self._chance.uniform(0, named / 4 + 0.05)
        left = self._asked.until - self._transport.clock()
        return wait_s if wait_s < min(left, WAIT_S_MAX) else None

    def _written(self) -> str:
        """What was written until now."""
        return self._scrub.text("".join(self._said))

    def _clean(self, reply: Reply) -> Reply:
        """The reply with no key in anything that is kept or shown."""
        clean = self._scrub.text
        return Reply(
            text=clean(reply.text),
            refusal=clean(reply.refusal),
            calls=tuple(Call(each.id, clean(each.tool), clean(each.arguments)) for each in reply.calls),
            usage=reply.usage,
            ended=reply.ended,
        )
