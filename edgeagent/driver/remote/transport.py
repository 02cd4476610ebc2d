"""Bytes to and from servers: requests of every session over one CurlMulti, in one thread, each within its deadlines.

It knows HTTP and no model. A `Receiver` is told in that thread what comes, and last, once and in every case, how it
ended. Nothing is ever followed elsewhere: a redirection is an answer like any other.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import pycurl

from edgeagent.driver.remote.endpoint import Endpoint, authorities
from edgeagent.driver.remote.secret import Secret, resolve
from edgeagent.errors import ConfigError
from edgeagent.version import __version__

RESPONSE_BYTES_MAX = 8 << 20
"""The most of one response: a thousand times what a small model writes, with its events around it."""

HEAD_BYTES_MAX = 64 << 10
HEADERS_MAX = 200

WAIT_S_MAX = 60.0
"""The longest sleep of the thread: nothing depends on it."""

How = Literal[
    "done", "unreachable", "untrusted", "no first event", "silent", "out of time", "cancelled", "too large", "broken"
]
"""How a request ended. `unreachable`: nothing of it was sent; `untrusted`: the server's certificate is none for it."""

UNREACHABLE = (pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_CONNECT)
UNTRUSTED = (
    pycurl.E_PEER_FAILED_VERIFICATION,
    pycurl.E_SSL_CACERT_BADFILE,
    pycurl.E_SSL_CONNECT_ERROR,
    pycurl.E_SSL_ISSUER_ERROR,
)


Progress = Literal["nothing", "event", "last"]
"""What has come with a piece of a body: nothing of the answer yet, something of it, its end."""

BEFORE = {"authorization": "Authorization: Bearer ", "x-api-key": "x-api-key: "}
"""How the line of a header begins that carries a key."""

LINGER_S = 0.5
"""After the answer's end: what servers send behind it is waited for so long, so that the connection can be kept."""


class Receiver(Protocol):
    """Whoever waits for a response. It raises nothing."""

    def begun(self, secret: Secret | None) -> None:
        """The request leaves, with this credential."""

    def head(self, status: int, headers: dict[str, str]) -> None:
        """The status and the headers, their names in small letters."""

    def body(self, piece: bytes) -> Progress:
        """More of the body."""

    def ended(self, how: How, why: str) -> None:
        """Nothing more comes."""


@dataclass(eq=False)
class Request:
    """One request, and where it stands. `until` is when it must have ended, by the clock that never jumps.

    `method` is another than GET, or POST where there is a body. Where it `is_sent_once` it has a connection of its own:
    on one that was kept curl sends again what the server may have read before it closed.
    """

    endpoint: Endpoint
    path: str
    body: bytes | None
    receiver: Receiver
    until: float
    streams: bool = True
    after: float = 0.0
    headers: tuple[str, ...] = ()
    method: str = ""
    is_sent_once: bool = False
    carries: Literal["authorization", "x-api-key"] = "authorization"
    received: int = 0
    lines: list[bytes] = field(default_factory=list)
    quiet_since: float = 0.0
    has_event: bool = False
    is_answered: bool = False
    cut: tuple[How, str] | None = None
    curl: Any = None

    def due(self) -> float:
        """When it is cut, if nothing comes."""
        if self.is_answered:
            return min(self.until, self.quiet_since + LINGER_S)
        if not self.streams:
            return self.until
        limit = self.endpoint.idle_s if self.has_event else self.endpoint.first_event_s
        return min(self.until, self.quiet_since + limit)

    def overdue(self) -> tuple[How, str]:
        """What is said when that has come."""
        if self.is_answered:
            return "done", ""
        if self.until <= self.due():
            return "out of time", "the time of the turn is over"
        if self.has_event:
            return "silent", f"it said nothing for {self.endpoint.idle_s:g} s in the middle of its answer"
        return "no first event", f"nothing of an answer came in {self.endpoint.first_event_s:g} s"


class Transport:
    """Owns the thread. Close it after everything that uses it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, name: str = "remote models") -> None:
        """`clock` is what every deadline is read from; it never goes back. `name` is that of the thread."""
        self.clock = clock
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._asked: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._waiting: list[tuple[float, int, Request]] = []
        self._running: dict[Any, Request] = {}
        self._numbers = itertools.count()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, request: Request) -> None:
        """Send a request, at its time."""
        self._tell(lambda: heapq.heappush(self._waiting, (request.after, next(self._numbers), request)))

    def cancel(self, request: Request) -> None:
        """Stop it, wherever it stands; it has ended then as `cancelled`, unless it has already."""
        self._tell(lambda: self._cut(request, "cancelled", "it was cancelled"))

    def close(self) -> None:
        """Stop everything, telling nobody."""
        self._is_closed = True
        self._tell(lambda: None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _tell(self, do: Callable[[], None]) -> None:
        self._asked.put(do)
        with contextlib.suppress(OSError):  # It is awake, or has ended.
            self._wake.send(b"x")

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            try:
                self._serve()
            # Whatever goes wrong between us and curl ends what is on its way, and not the thread of all that follows.
            except Exception as error:
                running, self._running = list(self._running.values()), {}
                for request in running:
                    request.receiver.ended("broken", f"curl has failed ({type(error).__name__})")
        self._wake.close()
        self._woken.close()

    def _serve(self) -> None:
        selector, multi = selectors.DefaultSelector(), pycurl.CurlMulti()
        selector.register(self._woken, selectors.EVENT_READ)
        multi.setopt(pycurl.M_SOCKETFUNCTION, _watching(selector))
        try:
            while not self._is_closed:
                for key, events in selector.select(self._pause(multi)):
                    if key.fileobj is self._woken:
                        self._take_up()
                    else:
                        multi.socket_action(key.fd, _as_curl(events))
                multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
                self._begin_due(multi)
                self._cut_overdue()
                self._end_cut(multi)
                self._end_done(multi)
        finally:
            for curl in self._running:
                multi.remove_handle(curl)
                curl.close()
            multi.close()
            selector.close()

    def _take_up(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            pass
        while True:
            try:
                self._asked.get_nowait()()
            except Empty:
                return

    def _pause(self, multi: Any) -> float:
        now, curl_ms = self.clock(), multi.timeout()
        waits = [WAIT_S_MAX, *(request.due() - now for request in self._running.values())]
        if curl_ms is not None and curl_ms >= 0:
            waits.append(curl_ms / 1000)
        if self._waiting:
            waits.append(self._waiting[0][0] - now)
        return max(0.0, min(waits))

    def _begin_due(self, multi: Any) -> None:
        while self._waiting and self._waiting[0][0] <= self.clock():
            _, _, request = heapq.heappop(self._waiting)
            try:
                curl = _prepared(request, self.clock)
            except ConfigError as error:
                request.receiver.ended("unreachable", str(error))
                continue
            # A setting that curl does not take ends this request, and not the thread of all of them.
            except Exception as error:
                request.receiver.ended("broken", f"curl refuses what it was set to ({type(error).__name__})")
                continue
            request.curl, request.quiet_since = curl, self.clock()
            self._running[curl] = request
            multi.add_handle(curl)

    def _cut(self, request: Request, how: How, why: str) -> None:
        for place, (_, _, waiting) in enumerate(self._waiting):
            if waiting is request:
                del self._waiting[place]
                heapq.heapify(self._waiting)
                request.receiver.ended(how, why)
                return
        if request.cut is None:
            request.cut = how, why

    def _cut_overdue(self) -> None:
        now = self.clock()
        for request in self._running.values():
            if request.cut is None and request.due() <= now:
                request.cut = request.overdue()

    def _end_cut(self, multi: Any) -> None:
        for curl, request in list(self._running.items()):
            if request.cut is not None:
                self._end(multi, curl, *request.cut)

    def _end_done(self, multi: Any) -> None:
        while True:
            left, done, failed = multi.info_read()
            for curl in done:
                self._end(multi, curl, "done", "")
            for curl, code, text in failed:
                request = self._running.get(curl)
                how, why = (request.cut if request else None) or _how(code, text)
                self._end(multi, curl, how, why)
            if not left:
                return

    def _end(self, multi: Any, curl: Any, how: How, why: str) -> None:
        request = self._running.pop(curl, None)
        if request is None:
            return
        multi.remove_handle(curl)
        curl.close()
        request.receiver.ended(how, why)


def _watching(selector: selectors.BaseSelector) -> Callable[..., None]:
    """What curl tells of the sockets it wants to be woken for."""

    def watch(what: int, fd: int, multi: Any, data: Any) -> None:
        known = fd in selector.get_map()
        if what == pycurl.POLL_REMOVE:
            if known:
                selector.unregister(fd)
            return
        events = selectors.EVENT_READ * bool(what & pycurl.POLL_IN) | selectors.EVENT_WRITE * bool(
            what & pycurl.POLL_OUT
        )
        if events:
            (selector.modify if known else selector.register)(fd, events)

    return watch


def _as_curl(events: int) -> int:
    read, write = events & selectors.EVENT_READ, events & selectors.EVENT_WRITE
    return (pycurl.CSELECT_IN if read else 0) | (pycurl.CSELECT_OUT if write else 0)


def _how(code: int, text: str) -> tuple[How, str]:
    """What curl's own reason comes to."""
    if code in UNREACHABLE:
        return "unreachable", text
    if code in UNTRUSTED:
        return "untrusted", text
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return "unreachable", text  # Only the time to connect is curl's to watch.
    return "broken", text


def _prepared(request: Request, clock: Callable[[], float]) -> Any:
    """The handle of a request. Its credential is read now, and stands nowhere but in curl. Raises ConfigError."""
    endpoint, curl = request.endpoint, pycurl.Curl()
    secret = resolve(endpoint.credential) if endpoint.credential else None
    carried = [] if secret is None else [secret.sent(BEFORE[request.carries])]
    request.receiver.begun(secret)
    curl.setopt(pycurl.URL, endpoint.address(request.path))
    curl.setopt(pycurl.HTTPHEADER, [*map(_as_curl_header, request.headers), "Expect:", *carried])
    if request.body is not None:
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.POSTFIELDS, request.body)
    if request.method:
        curl.setopt(pycurl.CUSTOMREQUEST, request.method)
    if request.is_sent_once:
        curl.setopt(pycurl.FRESH_CONNECT, 1)
    curl.setopt(pycurl.USERAGENT, f"edgeagent/{__version__}")
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
    curl.setopt(pycurl.SSL_VERIFYPEER, 1)
    curl.setopt(pycurl.SSL_VERIFYHOST, 2)
    curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(endpoint.connect_s * 1000)))
    curl.setopt(pycurl.TCP_KEEPALIVE, 1)
    if urlsplit(endpoint.url).scheme == "https" and (bundle := authorities(endpoint, os.environ.get("SSL_CERT_FILE"))):
        curl.setopt(pycurl.CAINFO, bundle)
    _set_way(curl, endpoint)
    curl.setopt(pycurl.HEADERFUNCTION, lambda line: _header(request, line))
    curl.setopt(pycurl.WRITEFUNCTION, lambda piece: _piece(request, piece, clock))
    return curl


def _as_curl_header(line: str) -> str:
    """A header without a value is one to curl only with a semicolon; with a colon it would be taken out."""
    name, _, value = line.partition(":")
    return line if value.strip() else f"{name};"


def _set_way(curl: Any, endpoint: Endpoint) -> None:
    """The way to the server: a socket; straight to this machine; or as the operator or the environment says."""
    if endpoint.socket:
        curl.setopt(pycurl.UNIX_SOCKET_PATH, endpoint.socket)
    if endpoint.is_loopback:
        curl.setopt(pycurl.NOPROXY, "*")
    elif endpoint.proxy:
        curl.setopt(pycurl.PROXY, endpoint.proxy)


def _header(request: Request, line: bytes) -> int | None:
    """One line of the head; at its end the receiver is told, but not of what only announces another head."""
    if line.startswith(b"HTTP/"):
        request.lines = [line]
        return None
    if line.strip():
        request.lines.append(line)
        if len(request.lines) > HEADERS_MAX or sum(map(len, request.lines)) > HEAD_BYTES_MAX:
            request.cut = request.cut or ("too large", f"its headers have more than {HEAD_BYTES_MAX} bytes")
            return -1
        return None
    if request.lines:
        status = _status(request.lines[0])
        if status >= 200:
            request.receiver.head(status, _headers(request.lines[1:]))
    request.lines = []
    return None


def _status(line: bytes) -> int:
    parts = line.split(None, 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


def _headers(lines: list[bytes]) -> dict[str, str]:
    pairs = (line.decode("latin-1").partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _piece(request: Request, piece: bytes, clock: Callable[[], float]) -> int | None:
    """More of the body. Whoever returns another number than that of the bytes ends the transfer."""
    if request.cut is not None:
        return -1
    request.received += len(piece)
    if request.received > RESPONSE_BYTES_MAX:
        request.cut = "too large", f"its answer has more than {RESPONSE_BYTES_MAX >> 20} MB"
        return -1
    if request.is_answered:
        return None
    progress = request.receiver.body(piece)
    if progress != "nothing":
        request.has_event, request.quiet_since = True, clock()
        request.is_answered = progress == "last"
    return None
