"""A server behind HTTP: each message of ours is a POST, what it says by itself comes on a GET that stands (Streamable
HTTP of 2025-03-26 and later, https://modelcontextprotocol.io/specification/2025-11-25/basic/transports).

Laws: nothing that may have an effect is sent twice. An answer whose stream breaks is asked for again only where the
server has named a place in it. Nothing is sent after a redirection. A key goes to the operator's address alone.
"""

from __future__ import annotations

import math
import re
import threading
import time
from functools import partial

from edgeagent.codec.jsonrpc import Incoming, Message, Request, body_of
from edgeagent.driver.mcp.answer import Answer
from edgeagent.driver.mcp.connection import INITIALIZED, Connection, SessionEnded
from edgeagent.driver.remote import transport
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.unknown import EffectUnknown
from edgeagent.errors import DriverError, DriverUnavailable

GRACE_S = 1.0
"""An answer may come so much later than it is waited for: who waits has given up by then, and told the server."""

ENDING_S = 3.0
"""For the server to be told that the session is over."""

STANDING_FAILURES_MAX = 5
PAUSES_S = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Before the standing GET is opened again, by how often in a row nothing came on it; after the last it is left."""

STOOD_S = 20.0
"""What stood so long was not in vain: proxies and servers end what is quiet."""

RESUMED_MAX = 100
"""How often one answer is gone on with: each time the server has closed its stream, as it may to save connections."""

SESSION = re.compile(r"[\x21-\x7e]{1,1024}")
"""What a session may be called: it stands in a header."""

ONCE = frozenset({"tools/call"})
"""Methods that may have an effect."""

BOTH = "Accept: application/json, text/event-stream"
EVENTS = "Accept: text/event-stream"


class Web:
    """A `Wire`. Owns a thread, in which the connection is told what comes."""

    is_met_alone_first = True

    def __init__(self, name: str, endpoint: Endpoint, connection: Connection) -> None:
        self._endpoint, self._connection = endpoint, connection
        self._transport = transport.Transport(name=f"mcp {name}")
        self._lock = threading.Lock()
        self._open: dict[Answer, transport.Request] = {}
        self._session = self._version = ""
        self._is_ended = False
        self._standing_failures = 0

    def send(self, message: Message, until: float, headers: tuple[str, ...] = ()) -> None:
        """Send one. Raises DriverUnavailable after the end; what turns out later the connection is told."""
        wanted = message.id if isinstance(message, Request) else None
        method = message.method if isinstance(message, Request) else ""
        answer = Answer(wanted, self._connection.incoming, lambda a: self._posted(a, until + GRACE_S, method))
        if method == "initialize":
            answer.take = partial(self._greeted, answer)
        self._post(message, answer, until + GRACE_S, headers, is_sent_once=method in ONCE)

    def begin(self, version: str, until: float) -> None:
        """Speak this version, end the greeting, and listen to what it says by itself. Raises DriverUnavailable."""
        self._version = version
        taken = threading.Event()
        answer = Answer(None, self._connection.incoming, lambda _: taken.set())
        self._post(INITIALIZED, answer, until)
        taken.wait(max(0.0, until - time.monotonic()))
        if not answer.is_taken:
            raise DriverUnavailable(str(self._why(answer, "")))
        self._listen(b"", 0.0)

    def alone(self, version: str) -> None:
        """Speak this version, without a session."""
        self._version = version

    def standing(self) -> str:
        """Where it is."""
        return f"at {self._endpoint.origin}"

    def kill(self) -> None:
        """End it now, and tell the server nothing."""
        with self._lock:
            self._is_ended = True
            running = list(self._open.values())
        for request in running:
            self._transport.cancel(request)
        self._connection.lost("it was ended")

    def close(self) -> None:
        """End it, and tell the server so if it keeps a session."""
        is_told = not self._is_ended and bool(self._session)
        self.kill()
        if is_told:
            self._delete()
        self._transport.close()

    # -- requests --------------------------------------------------------------------------------------------------

    def _post(
        self, message: Message, answer: Answer, until: float, said: tuple[str, ...] = (), *, is_sent_once: bool = False
    ) -> None:
        headers = ("Content-Type: application/json", BOTH, *self._headers(), *said)
        request = transport.Request(
            self._endpoint,
            "",
            body_of(message),
            answer,
            until,
            streams=False,
            headers=headers,
            is_sent_once=is_sent_once,
        )
        if not self._start(answer, request):
            raise DriverUnavailable(self._connection.why_lost or "it was ended")

    def _get(self, answer: Answer, place: bytes, until: float, wait_s: float) -> bool:
        """Ask for what follows a place in a stream, or for what it says by itself."""
        behind = (f"Last-Event-ID: {place.decode('ascii')}",) if place else ()
        headers = (EVENTS, *self._headers(), *behind)
        after = self._transport.clock() + wait_s if wait_s else 0.0
        request = transport.Request(
            self._endpoint, "", None, answer, until, streams=False, after=after, headers=headers
        )
        return self._start(answer, request)

    def _delete(self) -> None:
        done = threading.Event()
        answer = Answer(None, lambda _: None, lambda _: done.set())
        until = self._transport.clock() + ENDING_S
        headers = tuple(self._headers())
        self._transport.start(
            transport.Request(self._endpoint, "", None, answer, until, streams=False, headers=headers, method="DELETE")
        )
        done.wait(ENDING_S)

    def _start(self, answer: Answer, request: transport.Request) -> bool:
        with self._lock:
            if self._is_ended:
                return False
            self._open[answer] = request
        self._transport.start(request)
        return True

    def _headers(self) -> list[str]:
        named = [f"Mcp-Session-Id: {self._session}"] if self._session else []
        return named + ([f"MCP-Protocol-Version: {self._version}"] if self._version else [])

    # -- how they end, in the transport's thread -------------------------------------------------------------------

    def _posted(self, answer: Answer, until: float, method: str) -> None:
        """One message of ours has had its answer, goes on elsewhere, or has none."""
        self._forget(answer)
        if not (answer.wanted is None or answer.is_answered or self._goes_on(answer, until, 1)):
            self._fail(answer, self._why(answer, method))

    def _greeted(self, answer: Answer, found: list[Incoming]) -> None:
        """The session is known before anything is said in it."""
        named = answer.headers.get("mcp-session-id", "")
        self._session = named if SESSION.fullmatch(named) else ""
        self._connection.incoming(found)

    def _goes_on(self, answer: Answer, until: float, times: int) -> bool:
        """Ask for the rest of a stream that has ended before its answer."""
        if not (answer.is_stream and answer.place) or answer.is_too_long or times > RESUMED_MAX:
            return False
        rest = Answer(answer.wanted, self._connection.incoming, lambda a: self._resumed(a, until, times))
        rest.place = answer.place
        wait_s = answer.retry_s if answer.retry_s >= 0 else PAUSES_S[0]
        return self._transport.clock() + wait_s < until and self._get(rest, answer.place, until, wait_s)

    def _resumed(self, answer: Answer, until: float, times: int) -> None:
        self._forget(answer)
        if answer.is_answered or answer.wanted is None or self._goes_on(answer, until, times + 1):
            return
        self._fail(answer, EffectUnknown(f"the rest of its answer did not come: {self._why(answer, 'a rest')}"))

    def _listen(self, place: bytes, wait_s: float) -> None:
        began = self._transport.clock() + wait_s
        answer = Answer(None, self._connection.incoming, lambda a: self._listened(a, place, began))
        answer.place = place
        self._get(answer, place, math.inf, wait_s)

    def _listened(self, answer: Answer, place: bytes, began: float) -> None:
        """What it says by itself has ended: listen again, unless it says nothing by itself."""
        self._forget(answer)
        if not answer.is_stream and answer.status:
            return
        stood = answer.place != place or self._transport.clock() - began >= STOOD_S
        self._standing_failures = 0 if stood else self._standing_failures + 1
        if self._standing_failures <= STANDING_FAILURES_MAX:
            pause_s = PAUSES_S[max(0, self._standing_failures - 1)]
            self._listen(answer.place, max(answer.retry_s, pause_s))

    def _forget(self, answer: Answer) -> None:
        with self._lock:
            self._open.pop(answer, None)

    def _fail(self, answer: Answer, error: DriverError) -> None:
        assert answer.wanted is not None, "nobody waits for it"
        self._connection.unanswered(answer.wanted, error)
        if isinstance(error, SessionEnded) or (isinstance(error, DriverUnavailable) and not answer.status):
            self._connection.lost(str(error))  # It is greeted anew before it is asked for anything more.

    def _why(self, answer: Answer, method: str) -> DriverError:
        """Why there is no answer, and whether anything can have been done."""
        where, said = self._endpoint.origin, answer.said()
        told = f"{where} answers with HTTP {answer.status}" + (f": {said}" if said else "")
        match answer.status:
            case 0 if answer.how in ("unreachable", "untrusted"):
                return DriverUnavailable(f"{where} is not reached: {answer.why}")
            case 0:
                return EffectUnknown(f"{where} did not answer: {answer.why or answer.how}")
            case 404 if self._session and method:
                return SessionEnded(f"{where} has forgotten the session")
            case 400 if self._session and method and "session" in said.lower():  # As many say it.
                return SessionEnded(f"{where} does not know the session")
            case 401 | 403:
                return DriverUnavailable(f"{told}; which key it wants is said with `credential`")
            case status if 300 <= status < 400:
                return DriverUnavailable(f"{told}: it redirects elsewhere, and nothing is sent there: name that `url`")
            case status if 400 <= status < 500:
                return DriverUnavailable(told)
            case status if status >= 500:
                return EffectUnknown(told)
        if answer.is_too_long:
            return EffectUnknown("its answer cannot be read: it is too long")
        return EffectUnknown(answer.why or "its answer ended before its end")
